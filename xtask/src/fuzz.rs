//! Fuzzing: seeded mutation tests on stable Rust, or libFuzzer on nightly.

use std::process::Command;
use std::{env, fs};

use crate::shell;

/// Read by the seeded tests: how long each may run.
const SECONDS_VARIABLE: &str = "PLAINSONG_FUZZ_SECONDS";

/// `cargo xtask fuzz [TARGET] [--seconds N] [--engine seeded|libfuzzer]`.
pub(crate) fn run(arguments: &[String]) -> Result<bool, String> {
    let options = Options::parse(arguments)?;
    let mut command = match options.engine {
        Engine::Seeded => seeded(&options.target, options.seconds),
        Engine::Libfuzzer => libfuzzer(&options.target, options.seconds)?,
    };
    let status = command.status().map_err(|error| format!("cannot start cargo: {error}"))?;
    Ok(status.success())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Engine {
    Seeded,
    Libfuzzer,
}

#[derive(Debug, PartialEq, Eq)]
struct Options {
    /// Empty: every target.
    target: String,
    seconds: u32,
    engine: Engine,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut options = Self { target: String::new(), seconds: 10, engine: Engine::Seeded };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--seconds" => {
                    options.seconds = arguments
                        .next()
                        .and_then(|text| text.parse().ok())
                        .ok_or("--seconds wants a number")?;
                }
                "--engine" => {
                    options.engine = match arguments.next().map(String::as_str) {
                        Some("seeded") => Engine::Seeded,
                        Some("libfuzzer") => Engine::Libfuzzer,
                        _ => return Err("--engine is seeded or libfuzzer".to_owned()),
                    }
                }
                target if !target.starts_with('-') => options.target = target.to_owned(),
                other => return Err(format!("fuzz: no option `{other}`")),
            }
        }
        Ok(options)
    }
}

/// The tests named `fuzz_*`, in release, each for `seconds`.
fn seeded(target: &str, seconds: u32) -> Command {
    // By name, for all other tests would be built in release too.
    let packages = ["plainsong-proto", "plainsong", "plainsong-idl", "plainsong-recording"];
    let mut command = shell::cargo(&["test", "--release"]);
    // What is JSON is fuzzed too, and IDL of types that peers tell.
    let features = ["--features", "plainsong-proto/serde,plainsong-idl/described"];
    command
        .args(packages.iter().flat_map(|package| ["--package", package]))
        .args(features)
        .args(["--lib", "--test", "fuzz_*"]);
    command.arg(format!("fuzz_{target}"));
    command.env(SECONDS_VARIABLE, seconds.to_string());
    command
}

/// The same tests as `cargo test --workspace` has built them: fewer inputs a second than in release, but
/// nothing to build, and arithmetic that overflows is found too.
pub(crate) fn smoke(seconds: u32) -> Command {
    let mut command = shell::cargo(&["test", "--workspace", "--lib", "--test", "fuzz_*", "fuzz_"]);
    command.env(SECONDS_VARIABLE, seconds.to_string());
    command
}

/// What libFuzzer needs to know of the code: where it went, and with what it compared; memory is watched, and
/// so is arithmetic.
const FLAGS: [&str; 8] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cdebug-assertions",
    "-Zsanitizer=address",
    "--cfg=fuzzing",
];

/// Builds a target and runs it; what it found useful stays in `fuzz/corpus`, what it found wrong in
/// `fuzz/artifacts`.
fn libfuzzer(target: &str, seconds: u32) -> Result<Command, String> {
    if target.is_empty() {
        return Err("libfuzzer wants a target: see fuzz/fuzz_targets".to_owned());
    }
    let directory = shell::root().join("fuzz");
    // Told, so that build scripts are not watched.
    let triple = format!("{}-unknown-linux-gnu", env::consts::ARCH);
    let built = shell::target().join("fuzz");
    let mut command = Command::new("cargo");
    command.current_dir(&directory).env("RUSTFLAGS", FLAGS.join(" ")).env("CARGO_TARGET_DIR", &built);
    command.args(["+nightly", "build", "--release", "--target", &triple, "--bin", target]);
    // Set by the stable toolchain that runs this program; it would win over `+nightly`.
    command.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO");
    let status = command.status().map_err(|error| format!("cannot start cargo: {error}"))?;
    if !status.success() {
        return Err(format!("the target `{target}` does not compile; it needs a nightly toolchain"));
    }
    let (corpus, artifacts) =
        (directory.join("corpus").join(target), directory.join("artifacts").join(target));
    for path in [&corpus, &artifacts] {
        fs::create_dir_all(path).map_err(|error| format!("cannot make {}: {error}", path.display()))?;
    }
    let mut command = Command::new(built.join(&triple).join("release").join(target));
    command.arg(corpus).arg(format!("-artifact_prefix={}/", artifacts.display()));
    command.args([&format!("-max_total_time={seconds}"), "-rss_limit_mb=3000", "-timeout=25"]);
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_come_in_any_order() {
        let words = ["--seconds", "3", "datagram", "--engine", "libfuzzer"];
        let options = Options::parse(&words.map(str::to_owned));
        let expected = Options { target: "datagram".to_owned(), seconds: 3, engine: Engine::Libfuzzer };
        assert_eq!(options, Ok(expected));
        assert!(Options::parse(&["--second".to_owned()]).is_err());
    }
}
