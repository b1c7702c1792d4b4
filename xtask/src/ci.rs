//! `cargo xtask ci`: the whole gate, here and on the build machines.

use std::time::Duration;

use crate::step::Steps;
use crate::{deny, miri, shell, systems, test, tidy};

const LIMIT: Duration = Duration::from_secs(20 * 60);

/// Those of the library that are off by default.
const FEATURES: &str = "plainsong/serde,plainsong/tracing";

/// `cargo xtask ci`.
pub(crate) fn run(_arguments: &[String]) -> Result<bool, String> {
    let mut steps = Steps::default();
    let format = shell::cargo(&["fmt", "--all", "--check"]);
    steps.run("formatting", LIMIT, format);
    steps.call("tidy", || tidy::run(&[]));
    let mut lints = shell::cargo(&["clippy", "--workspace", "--all-targets", "--"]);
    lints.args(["-D", "warnings"]);
    steps.run("lints", LIMIT, lints);
    let mut documentation = shell::cargo(&["doc", "--workspace", "--no-deps"]);
    documentation.env("RUSTDOCFLAGS", "-D warnings");
    steps.run("documentation", LIMIT, documentation);
    let mut documentation = shell::cargo(&["doc", "--no-deps", "-p", "plainsong", "-p", "plainsong-proto"]);
    documentation.args(["--features", FEATURES]).env("RUSTDOCFLAGS", "-D warnings");
    steps.run("documentation with features", LIMIT, documentation);
    deny::add_steps(&mut steps);
    miri::add_steps(&mut steps);
    systems::add_steps(&mut steps);
    test::add_steps(&mut steps);
    Ok(steps.report())
}
