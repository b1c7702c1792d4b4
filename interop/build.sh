#!/bin/sh
# Builds the peers of the interop harness into a directory: sh interop/build.sh OUT
# A peer whose product is not installed is left out, with a line that says so.
set -u
[ $# -eq 1 ] || { echo "usage: build.sh OUT" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
missing() { echo "peer $1: left out: $2"; rm -f "$out/$1"; }

# Cyclone DDS, C. The final twin of the type, of which nothing is told, is for XCDR1, see peers/cyclone_c/shapes.c.
cyclone_c() {
  command -v idlc >/dev/null || { missing cyclone_c "no idlc (package cyclonedds-tools)"; return; }
  generated=$out/cyclone_c.generated
  mkdir -p "$generated"
  idl=$here/peers/common/shape_type.idl
  cp "$idl" "$generated/shape_type.idl"
  sed 's/@appendable/@final/; s/ShapeType/ShapeTypePlain/' "$idl" >"$generated/shape_type_plain.idl"
  (cd "$generated" && idlc shape_type.idl && idlc -t shape_type_plain.idl) \
    && cc -std=gnu11 -O2 -Wall -Wextra -I "$generated" -o "$out/cyclone_c" \
      "$here/peers/cyclone_c/shapes.c" "$generated/shape_type.c" "$generated/shape_type_plain.c" -lddsc \
    || { missing cyclone_c "it does not build (package cyclonedds-dev)"; return; }
  echo "peer cyclone_c: built"
}

# Cyclone DDS, Python. A virtual environment from the package index, and a starter.
cyclone_python() {
  venv=$out/venv
  if ! "$venv/bin/python" -c 'import cyclonedds, mcap' 2>/dev/null; then
    rm -rf "$venv"
    python3 -m venv "$venv" && "$venv/bin/python" -m pip install --quiet cyclonedds==11.0.1 mcap==1.3.1 \
      || { missing cyclone_python "no virtual environment with cyclonedds and mcap"; return; }
  fi
  printf '#!/bin/sh\nexec "%s" "%s" "$@"\n' \
    "$venv/bin/python" "$here/peers/cyclone_python/shapes.py" >"$out/cyclone_python"
  chmod +x "$out/cyclone_python"
  echo "peer cyclone_python: built"
}

# Fast DDS, C++.
fastdds_cpp() {
  c++ -std=c++17 -O2 -Wall -Wextra -o "$out/fastdds_cpp" "$here/peers/fastdds_cpp/shapes.cpp" \
    -lfastrtps -lfastcdr \
    || { missing fastdds_cpp "it does not build (packages libfastrtps-dev, libfastcdr-dev)"; return; }
  echo "peer fastdds_cpp: built"
}

# Fast DDS 3.2.2, C++, from its Python packages: types that are made at run time.
fastdds_types() {
  venv=$out/venv
  [ -x "$venv/bin/python" ] || { missing fastdds_types "no virtual environment"; return; }
  [ -e "$venv/include/fastdds" ] || "$venv/bin/python" -m pip install --quiet ros-fastdds==3.2.3 ros-fastcdr==2.3.3 \
    || { missing fastdds_types "no packages ros-fastdds and ros-fastcdr"; return; }
  others=$(echo "$venv"/lib/python3*/site-packages/ros_fastdds.libs)
  c++ -std=c++17 -O1 -Wall -Wextra -isystem "$venv/include" -o "$out/fastdds_types" \
    "$here/peers/fastdds_types/types.cpp" -L "$venv/lib" -lfastdds -lfastcdr -lpthread -Wl,--disable-new-dtags \
    -Wl,--allow-shlib-undefined "-Wl,-rpath,$venv/lib" "-Wl,-rpath,$others" \
    || { missing fastdds_types "it does not build"; return; }
  echo "peer fastdds_types: built"
}

cyclone_c
cyclone_python
fastdds_cpp
fastdds_types
