//! What the tests need from the system, and the peers that interop runs against.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::shell;
use crate::step::Steps;

/// Debian packages: the tools of the tests, then what the peers are built from.
const PACKAGES: [&str; 12] = [
    "iproute2",
    "faketime",
    "nftables",
    "tshark",
    "valgrind",
    "gcc",
    "g++",
    "python3-venv",
    "cyclonedds-tools",
    "cyclonedds-dev",
    "libfastrtps-dev",
    "libfastcdr-dev",
];

/// `cargo xtask setup`.
pub(crate) fn run(_arguments: &[String]) -> Result<bool, String> {
    let mut steps = Steps::default();
    add_steps(&mut steps);
    Ok(steps.report())
}

/// Adds the installation of packages and the building of peers. A peer that cannot be built is no
/// failure here: the interop harness skips it loudly, or fails in CI.
pub(crate) fn add_steps(steps: &mut Steps) {
    let missing = missing_packages();
    if missing.is_empty() {
        println!("system packages: all there");
    } else if shell::is_root() {
        let mut command = Command::new("sh");
        command.env("DEBIAN_FRONTEND", "noninteractive");
        command.args([
            "-c",
            "apt-get update -qq && apt-get install -y -qq --no-install-recommends \"$@\" >/dev/null",
            "--",
        ]);
        command.args(&missing);
        steps.run("install system packages", Duration::from_secs(600), command);
    } else {
        println!("missing system packages, and not root: {}", missing.join(" "));
    }
    let mut build = Command::new("sh");
    build.arg(shell::root().join("interop/build.sh"));
    build.arg(shell::peers());
    steps.run("build interop peers", Duration::from_secs(600), build);
}

/// Packages of the list that are not installed; none where there is no dpkg.
pub(crate) fn missing_packages() -> Vec<&'static str> {
    let has_dpkg = Command::new("dpkg-query")
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    let installed = |package: &str| {
        shell::output_of("dpkg-query", &["-W", "-f", "${Status}", package])
            .is_some_and(|status| status.ends_with(" installed"))
    };
    PACKAGES.into_iter().filter(|package| has_dpkg && !installed(package)).collect()
}
