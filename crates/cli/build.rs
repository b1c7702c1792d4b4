//! What this program is built with, for those who ask what exactly was measured.

use std::process::Command;

fn main() {
    // A file that changes anywhere in the workspace changes what is said of the commit.
    for path in ["..", "build.rs"] {
        println!("cargo::rerun-if-changed={path}");
    }
    if let Some(head) = said("git", &["rev-parse", "--git-path", "logs/HEAD"])
        && std::path::Path::new(&head).exists()
    {
        println!("cargo::rerun-if-changed={head}");
    }
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let compiler = said(&variable("RUSTC"), &["--version"]).unwrap_or_else(|| "an unknown rustc".to_owned());
    let commit = said("git", &["rev-parse", "HEAD"]).unwrap_or_else(|| "unknown".to_owned());
    let changed = said("git", &["status", "--porcelain", "--untracked-files=no"]);
    let changed = if changed.is_some_and(|it| !it.is_empty()) { " with changes" } else { "" };
    let flags = variable("CARGO_ENCODED_RUSTFLAGS").replace('\u{1f}', " ");
    let flags = if flags.is_empty() { String::new() } else { format!(", RUSTFLAGS {flags}") };
    println!(
        "cargo::rustc-env=PLAINSONG_BUILD={} profile, opt-level {}, {compiler}, {}{flags}, commit {commit}{changed}",
        variable("PROFILE"),
        variable("OPT_LEVEL"),
        variable("TARGET"),
    );
}

/// The output of a program, if there is one and it succeeds.
fn said(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
