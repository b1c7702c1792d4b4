//! The examples do what they say: each is built and run, its processes against one another on loopback.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use common::fresh_domain;

/// A passing test never waits for it.
const PATIENCE: Duration = Duration::from_secs(120);

/// Where the examples are, built with the profile of this test.
fn examples() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let this = std::env::current_exe().unwrap();
        // TARGET/PROFILE/deps/THIS
        let profile = this.ancestors().nth(2).unwrap();
        let name = match profile.file_name().unwrap().to_str().unwrap() {
            "debug" => "dev",
            name => name,
        };
        let built = Command::new(std::env::var_os("CARGO").unwrap())
            .args([
                "build",
                "--quiet",
                "--offline",
                "--examples",
                "--package",
                "plainsong",
                "--profile",
                name,
            ])
            // What was built for this test is what is built here.
            .args(cfg!(feature = "serde").then_some(["--features", "serde"]).into_iter().flatten())
            .args(cfg!(feature = "tracing").then_some(["--features", "tracing"]).into_iter().flatten())
            .arg("--target-dir")
            .arg(profile.parent().unwrap())
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status();
        assert!(built.unwrap().success(), "the examples do not build");
        profile.join("examples")
    })
}

/// One process of an example; it ends with its owner.
struct Running(Child);

impl Running {
    fn start(example: &str, arguments: &[&str], domain: u16) -> Self {
        let child = Command::new(examples().join(example))
            .args(arguments)
            .env("DOMAIN_ID", domain.to_string())
            .env("PLAINSONG_INTERFACES", "lo")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        Self(child.unwrap())
    }

    /// What it said, when it has ended well.
    fn output(mut self) -> String {
        let end = Instant::now() + PATIENCE;
        while self.0.try_wait().unwrap().is_none() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.0.kill();
        let mut pipes = (String::new(), String::new());
        std::io::Read::read_to_string(&mut self.0.stdout.take().unwrap(), &mut pipes.0).unwrap();
        std::io::Read::read_to_string(&mut self.0.stderr.take().unwrap(), &mut pipes.1).unwrap();
        let status = self.0.wait().unwrap();
        assert!(status.success() && pipes.1.is_empty(), "{status}: {} {}", pipes.0, pipes.1);
        pipes.0
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What publisher and subscriber of an example said.
fn both(example: &str) -> [String; 2] {
    let domain = fresh_domain();
    let [subscriber, publisher] =
        ["subscribe", "publish"].map(|role| Running::start(example, &[role], domain));
    let publisher = publisher.output();
    [publisher, subscriber.output()]
}

#[test]
fn hello() {
    let [publisher, subscriber] = both("hello");
    assert_eq!(publisher, "a reader is there\n");
    assert_eq!(subscriber, "1: Hello, world\n2: Hello, world\n3: Hello, world\n");
}

#[test]
fn sensors_miss_deadlines_and_their_writer_its_liveliness() {
    let [_, subscriber] = both("sensors");
    for line in [
        "writers alive: 1",
        "sensor 1: 20",
        "sensor 2: 5",
        "sensor 1: 39",
        "sensor 2 missed its deadline",
        "sensor 1 missed its deadline",
        "writers alive: 0",
        "sensor 1 is NotAliveNoWriters",
        "sensor 1 is NotAliveDisposed",
    ] {
        assert!(subscriber.lines().any(|said| said == line), "no {line:?} in {subscriber}");
    }
}

#[test]
fn each_client_gets_the_replies_to_its_requests() {
    let domain = fresh_domain();
    let _server = Running::start("request_reply", &["serve"], domain);
    let clients = [7, 40]
        .map(|value: i64| (value, Running::start("request_reply", &["ask", &value.to_string()], domain)));
    for (value, client) in clients {
        let expected: String =
            (value..value + 3).map(|value| format!("{value} squared is {}\n", value * value)).collect();
        assert_eq!(client.output(), expected);
    }
}

#[test]
fn images_arrive_complete() {
    let [publisher, subscriber] = both("camera");
    assert!(publisher.starts_with("90 images of 3993600 octets: a write took "), "{publisher}");
    assert!(publisher.contains("\non their way: "), "{publisher}");
    let told: Vec<&str> = subscriber.lines().collect();
    let [seconds @ .., all] = told.as_slice() else { panic!("it said nothing") };
    assert_eq!(*all, "90 images, 0 of them not whole or not in their place");
    let is_second = |line: &&str| line.starts_with("1280 x 1040: ") && line.ends_with(" of them copied");
    assert!(seconds.len() == 3 && seconds.iter().all(is_second), "{subscriber}");
}

#[test]
fn a_plan_is_edited_by_several_in_one_order() {
    let domain = fresh_domain();
    let editors =
        ["ann", "bob", "cid"].map(|name| (name, Running::start("replicated_plan", &[name, "3"], domain)));
    let mut steps = Vec::new();
    for (name, editor) in editors {
        let said = editor.output();
        let mut lines = said.lines();
        let first = lines.next().unwrap();
        assert!(first.starts_with(&format!("{name} has the plan, with ")), "{said}");
        for line in lines {
            let step =
                line.strip_prefix("step ").and_then(|it| it.strip_suffix(" is in the plan of everybody"));
            steps.push(step.unwrap_or_else(|| panic!("{said}")).parse::<u32>().unwrap());
        }
    }
    steps.sort_unstable();
    assert_eq!(steps, (1..=9).collect::<Vec<_>>());
}

#[test]
fn asynchronous_reading_and_writing() {
    let [_, subscriber] = both("asynchronous");
    assert_eq!(subscriber, "the sum up to 100 is 5050\n");
}

#[test]
fn a_filtered_reader_gets_what_it_wants() {
    let [_, subscriber] = both("content_filter");
    assert_eq!(subscriber, "kitchen: 22\nkitchen: 23\nkitchen: 24\nkitchen: 25\n");
}

#[test]
fn a_profile_decides_the_qos() {
    let [publisher, subscriber] = both("qos_profile");
    assert_eq!(publisher, "the writer has TransientLocal and KeepAll\n");
    assert_eq!(subscriber, "1: valve opened\n2: pump started\n3: tank full\n");
}

#[test]
fn every_example_is_run_here_and_linked_from_the_readme() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let readme = fs::read_to_string(folder.join("../../../README.md")).unwrap();
    let here = include_str!("examples.rs");
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let sources: Vec<_> = names.filter(|path| path.extension().is_some_and(|it| it == "rs")).collect();
    assert_eq!(sources.len(), 8);
    for path in sources {
        let name = path.file_stem().unwrap().to_str().unwrap();
        assert!(here.contains(&format!("(\"{name}\"")), "{name} is not run");
        assert!(readme.contains(&format!("(crates/plainsong/examples/{name}.rs)")), "{name} is not linked");
    }
}
