//! What each adapter is built from.

use std::process::{Command, Stdio};

/// An adapter that can be built.
pub(super) struct Recipe {
    pub(super) name: &'static str,
    /// The product and its version, as long as the adapter itself cannot be asked.
    pub(super) product: &'static str,
    pub(super) version: &'static str,
    /// The folder of its source, below `perf/adapters`.
    pub(super) folder: &'static str,
    pub(super) kind: Kind,
}

/// How an adapter is built.
pub(super) enum Kind {
    /// C, against Cyclone DDS of Debian.
    Cyclone,
    /// C, against the library in the Python package of Cyclone DDS, and the headers of Debian.
    CycloneWheel,
    /// C++, against Fast DDS of Debian.
    Fast,
    /// C++, against headers and libraries of the Python package of Fast DDS.
    FastWheel,
    /// A cargo package of its own.
    Cargo,
    /// C, against RTI Connext DDS in `NDDSHOME`.
    Connext,
}

pub(super) const RECIPES: [Recipe; 10] = [
    recipe("cyclone", "Cyclone DDS", "0.10.2", "cyclone", Kind::Cyclone),
    recipe("cyclone11", "Cyclone DDS", "11.0.1", "cyclone", Kind::CycloneWheel),
    recipe("fastdds", "Fast DDS", "2.9.1", "fastdds", Kind::Fast),
    recipe("fastdds3", "Fast DDS", "3.2.2", "fastdds", Kind::FastWheel),
    recipe("fastdds3-shm", "Fast DDS, shared memory", "3.2.2", "fastdds", Kind::FastWheel),
    recipe("rustdds", "RustDDS", "0.15.1", "rustdds", Kind::Cargo),
    recipe("dust", "Dust DDS", "0.16.0", "dust", Kind::Cargo),
    recipe("zenoh", "zenoh", "1.10.2", "zenoh", Kind::Cargo),
    recipe("iceoryx2", "iceoryx2", "0.10.0", "iceoryx2", Kind::Cargo),
    recipe("connext", "RTI Connext DDS", "?", "connext", Kind::Connext),
];

const fn recipe(
    name: &'static str,
    product: &'static str,
    version: &'static str,
    folder: &'static str,
    kind: Kind,
) -> Recipe {
    Recipe { name, product, version, folder, kind }
}

impl Recipe {
    /// The name of the executable.
    pub(super) fn program(&self) -> String {
        format!("perf-adapter-{}", self.name)
    }

    /// Debian packages it is built with.
    pub(super) fn packages(&self) -> &'static [&'static str] {
        match self.kind {
            Kind::Cyclone => &["gcc", "libc6-dev", "cyclonedds-tools", "cyclonedds-dev"],
            Kind::CycloneWheel => &["gcc", "libc6-dev", "cyclonedds-tools", "cyclonedds-dev", "python3-venv"],
            Kind::Fast => &["g++", "libfastrtps-dev", "libfastcdr-dev"],
            Kind::FastWheel => &["g++", "python3-venv"],
            Kind::Cargo => &[],
            Kind::Connext => &["gcc", "libc6-dev"],
        }
    }

    /// Python packages it is built with, with their versions.
    pub(super) fn wheels(&self) -> &'static [&'static str] {
        match self.kind {
            Kind::CycloneWheel => &["cyclonedds==11.0.1"],
            Kind::FastWheel => &["ros-fastdds==3.2.3", "ros-fastcdr==2.3.3"],
            Kind::Cyclone | Kind::Fast | Kind::Cargo | Kind::Connext => &[],
        }
    }

    /// What is missing that `--install` cannot bring, and what to do.
    pub(super) fn missing_for_ever(&self) -> Option<String> {
        let is_set = std::env::var_os("NDDSHOME").is_some_and(|it| !it.is_empty());
        (matches!(self.kind, Kind::Connext) && !is_set).then(|| {
            "missing: RTI Connext DDS, which has its own licence; install it and set NDDSHOME and CONNEXTDDS_ARCH".to_owned()
        })
    }

    /// What is missing that `--install` brings, and the command that does.
    pub(super) fn missing(&self) -> Option<String> {
        if !runs("cargo", &["--version"]) {
            return Some(
                "missing: cargo (see rustup.rs), which builds adapters and what they share".to_owned(),
            );
        }
        let packages = missing_packages(self.packages());
        (!packages.is_empty()).then(|| {
            let packages = packages.join(" ");
            format!("missing: packages {packages}; as root: plainsong perf adapters --install {}", self.name)
        })
    }
}

/// Packages of the list that are not installed. Without dpkg nobody knows: the compiler will tell.
pub(super) fn missing_packages(packages: &[&'static str]) -> Vec<&'static str> {
    if !runs("dpkg-query", &["--version"]) {
        return Vec::new();
    }
    let is_installed = |package: &str| {
        let query = Command::new("dpkg-query")
            .args(["-W", "-f", "${Status}", package])
            .stderr(Stdio::null())
            .output();
        query.is_ok_and(|output| output.stdout.ends_with(b" installed"))
    };
    packages.iter().copied().filter(|package| !is_installed(package)).collect()
}

/// Whether a program is there and content.
pub(super) fn runs(program: &str, arguments: &[&str]) -> bool {
    let status = Command::new(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}
