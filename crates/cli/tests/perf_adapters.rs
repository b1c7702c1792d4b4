//! `plainsong perf adapters --install` where something is missing: with a PATH of programs that are shell
//! scripts, and no network.
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "perf_common/mod.rs"]
mod common;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use common::Bench;

const CHECKOUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const WELL: &str = "exit 0";

/// Programs that are there, variables that are set, what is to be installed, and what is said then.
type Case<'a> = (&'a [(&'a str, &'a str)], &'a [(&'a str, &'a str)], &'a str, &'a str);

/// These programs and no others are in the PATH.
fn put_programs(bench: &Bench, programs: &[(&str, &str)]) {
    let folder = bench.path.join("bin");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    for (name, script) in programs {
        let path = folder.join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
}

fn install(bench: &Bench, program: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(program);
    command.args(["perf", "adapters", "--dir"]).arg(bench.adapters()).args(arguments);
    command.current_dir(&bench.path).env("PATH", bench.path.join("bin"));
    command.env_remove("NDDSHOME").env_remove("CONNEXTDDS_ARCH").envs(environment.iter().copied());
    command.output().unwrap()
}

fn plainsong() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_plainsong"))
}

fn told(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it)).concat()
}

#[test]
fn what_is_missing_is_named_with_what_to_do() {
    let cases: [Case<'_>; 12] = [
        (
            &[],
            &[],
            "cyclone",
            "idlc is not there: install the IDL compiler of Cyclone DDS (Debian: cyclonedds-tools)",
        ),
        (&[("idlc", WELL)], &[], "cyclone", "cargo is not there: install Rust (see rustup.rs)"),
        (
            &[("idlc", WELL), ("cargo", WELL)],
            &[],
            "cyclone",
            "cc is not there: install a compiler of C (Debian: gcc)",
        ),
        (
            &[
                ("idlc", WELL),
                ("cargo", WELL),
                ("cc", "echo 'a.c:1:2: fatal error: dds/dds.h: no'; echo stop; exit 1"),
            ],
            &[],
            "cyclone",
            "cc failed: a.c:1:2: fatal error: dds/dds.h: no (all of it: ",
        ),
        (&[("cargo", WELL)], &[], "fastdds", "c++ is not there: install a compiler of C++ (Debian: g++)"),
        (&[("cargo", WELL)], &[], "fastdds3", "python3 is not there: install Python 3 with its module venv"),
        (&[], &[], "zenoh", "cargo is not there: install Rust (see rustup.rs)"),
        (
            &[("cargo", "echo 'error: no registry'; exit 101")],
            &[],
            "rustdds",
            "cargo failed: error: no registry (all",
        ),
        // As root they are installed, which fails here; as anybody else one is told how.
        (&[("dpkg-query", WELL), ("apt-get", "echo 'E: no gcc'; exit 100")], &[], "cyclone", "apt-get"),
        (
            &[],
            &[],
            "connext",
            "left out: missing: RTI Connext DDS, which has its own licence; install it and set NDDSHOME and",
        ),
        (
            &[],
            &[("NDDSHOME", "/nowhere")],
            "connext",
            "CONNEXTDDS_ARCH is not set: it is the name of a folder in $NDDSHOME/lib",
        ),
        (
            &[],
            &[("NDDSHOME", "/nowhere"), ("CONNEXTDDS_ARCH", "x64")],
            "connext",
            "/nowhere/bin/rtiddsgen is not there: NDDSHOME is to be the folder where RTI Connext DDS is installed",
        ),
    ];
    let bench = Bench::new();
    for (programs, environment, name, expected) in cases {
        put_programs(&bench, programs);
        let output = install(&bench, plainsong(), &["--source", CHECKOUT, "--install", name], environment);
        assert_eq!(output.status.code(), Some(1), "{name}: {}", told(&output));
        assert!(told(&output).contains(expected), "{name}: {expected}\n{}", told(&output));
    }
}

#[test]
fn what_is_built_is_not_built_again() {
    let bench = Bench::new();
    // The target directory is the last argument.
    let cargo = "for it; do :; done; /bin/mkdir -p $it/release; echo 1 >$it/release/perf-adapter-rustdds";
    for (cargo, expected) in [(cargo, "rustdds    built\n"), ("exit 1", "rustdds    already built\n")] {
        put_programs(&bench, &[("cargo", cargo)]);
        let output = install(&bench, plainsong(), &["--source", CHECKOUT, "--install", "rustdds"], &[]);
        assert!(output.status.success() && told(&output).contains(expected), "{}", told(&output));
    }
}

#[test]
fn a_checkout_is_asked_for_where_there_is_none() {
    let bench = Bench::new();
    put_programs(&bench, &[]);
    // An installed program is in no checkout.
    let installed = bench.path.join("plainsong");
    if std::fs::hard_link(plainsong(), &installed).is_err() {
        std::fs::copy(plainsong(), &installed).unwrap();
    }
    let output = install(&bench, &installed, &["--install", "zenoh"], &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(told(&output).contains("give it with --source DIR"), "{}", told(&output));
    let output = install(&bench, &installed, &["--source", "/", "--install", "zenoh"], &[]);
    assert!(told(&output).contains("/ is no checkout of Plainsong"), "{}", told(&output));
    let output = install(&bench, &installed, &["--install", "opensplice"], &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(told(&output).contains("there is no adapter opensplice to build; there are: cyclone"));
}
