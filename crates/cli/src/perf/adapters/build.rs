//! Building adapters, in and from a directory.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::recipes::{Kind, Recipe, missing_packages, runs};
use super::steps::{Steps, find};
use crate::command;

/// The folder of adapters in a checkout.
const FOLDER: &str = "perf/adapters";
/// What C and C++ adapters are linked with besides their product.
const SYSTEM_LIBRARIES: [&str; 3] = ["-lpthread", "-ldl", "-lm"];

/// Where adapters are built.
pub(super) struct Workshop {
    /// A checkout of Plainsong.
    source: PathBuf,
    /// Where executables go; below it `build`, `logs` and `venv`.
    directory: PathBuf,
}

impl Workshop {
    pub(super) fn new(directory: &Path, source: Option<&Path>) -> Result<Self, String> {
        let source = find_source(source)?;
        for below in ["build", "logs"] {
            let path = directory.join(below);
            std::fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        let directory =
            directory.canonicalize().map_err(|error| format!("{}: {error}", directory.display()))?;
        Ok(Self { source, directory })
    }

    /// Builds an adapter unless it is there and nothing has changed since; what was done.
    pub(super) fn build(&self, recipe: &Recipe) -> Result<&'static str, String> {
        let program = self.directory.join(recipe.program());
        let stamp_path = self.folder(recipe).join("stamp");
        let stamp = self.stamp(recipe);
        if program.is_file() && std::fs::read_to_string(&stamp_path).is_ok_and(|old| old == stamp) {
            return Ok("already built");
        }
        let cannot = |error: std::io::Error| format!("{}: {error}", self.folder(recipe).display());
        std::fs::create_dir_all(self.folder(recipe)).map_err(cannot)?;
        let steps = Steps::new(self.directory.join("logs").join(format!("{}.log", recipe.name)))?;
        install_packages(recipe, &steps)?;
        // The old one may be running: it is replaced, not written to.
        let new = self.folder(recipe).join(recipe.program());
        match recipe.kind {
            Kind::Cyclone => self.cyclone(recipe, &new, &steps)?,
            Kind::CycloneWheel => self.cyclone_wheel(recipe, &new, &steps)?,
            Kind::Fast => self.fast(recipe, &new, &steps)?,
            Kind::FastWheel => self.fast_wheel(recipe, &new, &steps)?,
            Kind::Cargo => self.cargo(recipe, &new, &steps)?,
            Kind::Connext => self.connext(recipe, &new, &steps)?,
        }
        std::fs::rename(&new, &program).map_err(cannot)?;
        std::fs::write(&stamp_path, stamp).map_err(cannot)?;
        Ok("built")
    }

    /// The folder in which an adapter is built.
    fn folder(&self, recipe: &Recipe) -> PathBuf {
        self.directory.join("build").join(recipe.name)
    }

    fn adapters(&self) -> PathBuf {
        self.source.join(FOLDER)
    }

    /// Changes when something changes that the adapter is built from.
    fn stamp(&self, recipe: &Recipe) -> String {
        let mut hasher = DefaultHasher::new();
        let crates = self.source.join("crates/perfkit");
        for path in [self.adapters().join(recipe.folder), self.adapters().join("perf.idl"), crates] {
            hash_tree(&path, &mut hasher);
        }
        format!("{} {} {:016x}\n", recipe.name, recipe.version, hasher.finish())
    }

    /// The library that C and C++ adapters share.
    fn perfkit(&self, steps: &Steps) -> Result<PathBuf, String> {
        let target = self.directory.join("build/perfkit");
        let manifest = self.source.join("Cargo.toml");
        let mut cargo = command!("cargo", "build", "--release", "--lib", "--package", "plainsong-perfkit");
        steps.run(cargo.arg("--manifest-path").arg(manifest).arg("--target-dir").arg(&target))?;
        Ok(target.join("release/libplainsong_perfkit.a"))
    }

    fn headers(&self) -> PathBuf {
        self.source.join("crates/perfkit/include")
    }

    /// Generates the type support of Cyclone, without type information: 0.10 does not bear that of 11.
    fn cyclone_compile(&self, recipe: &Recipe, new: &Path, steps: &Steps) -> Result<Command, String> {
        let folder = self.folder(recipe);
        let copied = std::fs::copy(self.adapters().join("perf.idl"), folder.join("perf.idl"));
        copied.map_err(|error| format!("perf.idl: {error}"))?;
        steps.run(command!("idlc", "-t", "perf.idl").current_dir(&folder))?;
        let mut compile =
            command!("cc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-I", &folder, "-I", self.headers());
        compile.arg("-o").arg(new).arg(self.adapters().join("cyclone/adapter.c")).arg(folder.join("perf.c"));
        compile.arg(self.perfkit(steps)?);
        Ok(compile)
    }

    fn cyclone(&self, recipe: &Recipe, new: &Path, steps: &Steps) -> Result<(), String> {
        let mut compile = self.cyclone_compile(recipe, new, steps)?;
        steps.run(compile.arg("-lddsc").args(SYSTEM_LIBRARIES))
    }

    /// The package has the library and no headers. The declarations that the adapter uses are the same in the
    /// headers of 0.10.2 (see the README of adapters), so it is these two versions and no others.
    fn cyclone_wheel(&self, recipe: &Recipe, new: &Path, steps: &Steps) -> Result<(), String> {
        if !runs("pkg-config", &["--exact-version=0.10.2", "CycloneDDS"])
            && runs("pkg-config", &["--exists", "CycloneDDS"])
        {
            return Err(
                "the headers of Cyclone DDS are not those of 0.10.2, which are known to fit".to_owned()
            );
        }
        let packages = self.wheels(recipe, steps)?;
        let library = find(&packages.join("cyclonedds/.libs"), |name| name.starts_with("libddsc.so"))?;
        // Under the name by which the adapter will look for it.
        let named = self.folder(recipe).join("libddsc.so.11");
        let _ = std::fs::remove_file(&named);
        std::os::unix::fs::symlink(&library, &named)
            .map_err(|error| format!("{}: {error}", named.display()))?;
        let mut compile = self.cyclone_compile(recipe, new, steps)?;
        compile.arg("-DPERF_CYCLONE_11").arg(&named).args(SYSTEM_LIBRARIES);
        steps.run(compile.arg(run_path(&self.folder(recipe))))
    }

    fn fast_compile(&self, new: &Path, steps: &Steps) -> Result<Command, String> {
        let mut compile =
            command!("c++", "-std=c++17", "-O2", "-Wall", "-Wextra", "-I", self.headers(), "-o", new);
        compile.arg(self.adapters().join("fastdds/adapter.cpp")).arg(self.perfkit(steps)?);
        Ok(compile)
    }

    fn fast(&self, _recipe: &Recipe, new: &Path, steps: &Steps) -> Result<(), String> {
        let mut compile = self.fast_compile(new, steps)?;
        steps.run(compile.args(["-lfastrtps", "-lfastcdr"]).args(SYSTEM_LIBRARIES))
    }

    fn fast_wheel(&self, recipe: &Recipe, new: &Path, steps: &Steps) -> Result<(), String> {
        let packages = self.wheels(recipe, steps)?;
        let venv = self.directory.join("venv");
        let others = packages.join("ros_fastdds.libs");
        let mut compile = self.fast_compile(new, steps)?;
        compile.arg("-DPERF_FASTDDS_3").arg("-isystem").arg(venv.join("include"));
        compile.arg("-L").arg(venv.join("lib")).args(["-lfastdds", "-lfastcdr"]).args(SYSTEM_LIBRARIES);
        // The old kind of path holds for the libraries of libraries too.
        compile.args(["-Wl,--disable-new-dtags", "-Wl,--allow-shlib-undefined"]);
        steps.run(compile.arg(run_path(&venv.join("lib"))).arg(run_path(&others)))
    }

    fn cargo(&self, recipe: &Recipe, new: &Path, steps: &Steps) -> Result<(), String> {
        let target = self.directory.join("build/cargo");
        let manifest = self.adapters().join(recipe.folder).join("Cargo.toml");
        let mut cargo = command!("cargo", "build", "--release", "--manifest-path", manifest);
        steps.run(cargo.arg("--target-dir").arg(&target))?;
        let built = target.join("release").join(recipe.program());
        std::fs::copy(&built, new).map_err(|error| format!("{}: {error}", built.display()))?;
        Ok(())
    }

    fn connext(&self, recipe: &Recipe, new: &Path, steps: &Steps) -> Result<(), String> {
        let home = PathBuf::from(std::env::var_os("NDDSHOME").unwrap_or_default());
        let architecture = std::env::var("CONNEXTDDS_ARCH").map_err(|_| {
            "CONNEXTDDS_ARCH is not set: it is the name of a folder in $NDDSHOME/lib".to_owned()
        })?;
        let folder = self.folder(recipe);
        let mut generate = command!(home.join("bin/rtiddsgen"), "-language", "C", "-replace", "-d", &folder);
        steps.run(generate.arg(self.adapters().join("perf.idl")))?;
        let libraries = home.join("lib").join(architecture);
        let mut compile =
            command!("cc", "-O2", "-DRTI_UNIX", "-DRTI_LINUX", "-I", &folder, "-I", self.headers());
        for headers in ["include", "include/ndds"] {
            compile.arg("-I").arg(home.join(headers));
        }
        compile.arg("-o").arg(new).arg(self.adapters().join("connext/adapter.c"));
        compile.args(["perf.c", "perfPlugin.c", "perfSupport.c"].map(|file| folder.join(file)));
        compile.arg(self.perfkit(steps)?).arg("-L").arg(&libraries).args(["-lnddsc", "-lnddscore"]);
        steps.run(compile.args(SYSTEM_LIBRARIES).arg(run_path(&libraries)))
    }

    /// Installs Python packages into an environment of their own; the folder they are in.
    fn wheels(&self, recipe: &Recipe, steps: &Steps) -> Result<PathBuf, String> {
        let venv = self.directory.join("venv");
        let python = venv.join("bin/python");
        // The last that comes into being, so that an environment which was not finished is made again.
        if !venv.join("bin/pip").is_file() {
            steps.run(&mut command!("python3", "-m", "venv", &venv))?;
        }
        steps.run(command!(&python, "-m", "pip", "install", "--quiet").args(recipe.wheels()))?;
        let library = find(&venv.join("lib"), |name| name.starts_with("python3"))?;
        Ok(library.join("site-packages"))
    }
}

/// Where the executable looks for libraries.
fn run_path(folder: &Path) -> String {
    format!("-Wl,-rpath,{}", folder.display())
}

fn install_packages(recipe: &Recipe, steps: &Steps) -> Result<(), String> {
    let missing = missing_packages(recipe.packages());
    if missing.is_empty() {
        return Ok(());
    }
    if !rustix::process::geteuid().is_root() {
        return Err(format!("packages are missing; as root: apt-get install {}", missing.join(" ")));
    }
    steps.run(&mut command!("apt-get", "update", "-qq"))?;
    let mut install = command!("apt-get", "install", "-y", "-qq", "--no-install-recommends");
    steps.run(install.env("DEBIAN_FRONTEND", "noninteractive").args(missing))
}

/// The checkout that is given, or that the working directory or this program is in.
fn find_source(given: Option<&Path>) -> Result<PathBuf, String> {
    let is_checkout =
        |path: &Path| path.join(FOLDER).join("perf.idl").is_file() && path.join("Cargo.toml").is_file();
    if let Some(given) = given {
        let path = given.canonicalize().map_err(|error| format!("{}: {error}", given.display()))?;
        return if is_checkout(&path) {
            Ok(path)
        } else {
            Err(format!("{} is no checkout of Plainsong", given.display()))
        };
    }
    let starts = [std::env::current_dir(), std::env::current_exe()];
    let found = starts.iter().flatten().flat_map(|start| start.ancestors()).find(|path| is_checkout(path));
    found.map(Path::to_owned).ok_or_else(|| {
        "adapters are built from a checkout of Plainsong, of the same version best, and neither this directory nor this program \
         is in one: get one with git and give it with --source DIR"
            .to_owned()
    })
}

/// Names and contents of all files in a tree, in order.
fn hash_tree(path: &Path, hasher: &mut DefaultHasher) {
    if let Ok(entries) = std::fs::read_dir(path) {
        let mut entries: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        entries.sort();
        entries.iter().filter(|entry| !entry.ends_with("target")).for_each(|entry| hash_tree(entry, hasher));
    } else if let Ok(octets) = std::fs::read(path) {
        path.file_name().hash(hasher);
        octets.hash(hasher);
    }
}
