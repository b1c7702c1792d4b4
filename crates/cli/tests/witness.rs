//! `plainsong witness` as its users run it: two members go on when one of them is killed.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::path::{Path, PathBuf};
use std::time::Instant;

use common::{PATIENCE, Program, domain, plainsong};

fn name(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn two_members_go_on_with_a_witness_when_one_is_killed() {
    let domain = domain(0);
    let states = std::env::temp_dir().join(format!("plainsong-witness-{}", std::process::id()));
    let of_witness = states.join("c");
    let witness_options =
        ["witness", "--name", "c", "--voters", "a,b,c", "--state", name(&of_witness), "--domain", &domain];
    let witness = Program::start(&witness_options);
    let begins = witness.line_with("votes as c of a,b,c in domain");
    assert!(begins.ends_with(&format!("state in {}", of_witness.display())), "{begins}");
    let member = |role: &str, voter: &str| {
        let state = states.join(voter);
        let variables = [
            ("PLAINSONG_VOTERS", "a,b,c"),
            ("PLAINSONG_VOTER", voter),
            ("PLAINSONG_STATE_DIRECTORY", name(&state)),
        ];
        let options = [
            "shapes",
            role,
            "-d",
            &domain,
            "-k",
            "0",
            "--consistency",
            "atomic",
            "-w",
            "--write-period",
            "1",
        ];
        Program::run(plainsong(&options).envs(variables))
    };
    let publisher = member("-P", "a");
    let subscriber = member("-S", "b");
    assert_eq!(witness.line_with("votes on"), "votes on Square");
    subscriber.line_with("Square");
    subscriber.line_with("BLUE");
    let end = Instant::now() + PATIENCE;
    loop {
        let status = plainsong(&["atomic", "status", "Square", "-d", &domain]).output().unwrap();
        let shown = String::from_utf8(status.stdout).unwrap();
        if status.status.success() && shown.contains("voter c, which is no member, is heard") {
            assert!(shown.contains(" voter a active") && shown.contains(" voter b active"), "{shown}");
            break;
        }
        assert!(Instant::now() < end, "{shown}");
    }
    drop(subscriber);
    // Its window is full before it has written so much, unless it goes on alone.
    while publisher.lines.try_recv().is_ok() {}
    (0..3_000).for_each(|_| drop(publisher.line_with("BLUE")));
    // A second one under the same name is told who has its votes.
    let second = Program::start(&witness_options);
    let told = second.line_with("cannot vote");
    assert!(told.contains(&format!("of process {}", witness.process.id())), "{told}");
    // Restarted, the witness has its votes, and another member joins.
    drop(witness);
    let witness = Program::start(&witness_options);
    assert_eq!(witness.line_with("votes on"), "votes on Square");
    let subscriber = member("-S", "b");
    subscriber.line_with("BLUE");
    drop((subscriber, publisher, witness));
    std::fs::remove_dir_all(states).unwrap();
}

/// Directories of a test, which go with this.
struct States(PathBuf);

impl States {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("plainsong-witness-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for States {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_relative_directory_is_shown_as_it_is_used() {
    let states = States::new("relative");
    let words = ["witness", "--name", "c", "--voters", "a,b,c", "--state", "votes", "--domain", &domain(1)];
    let witness = Program::run(plainsong(&words).current_dir(&states.0));
    let begins = witness.line_with("votes as c");
    // The directory of temporary files may be a link.
    let place = states.0.canonicalize().unwrap().join("votes");
    assert!(begins.ends_with(&format!("state in {}", place.display())), "{begins}");
    assert!(place.is_dir());
}

#[test]
fn who_cannot_vote_is_told_what_to_do() {
    let states = States::new("errors");
    let domain = domain(2);
    let refusal = |words: &[&str]| {
        let all = [&["witness", "--domain", &domain], words].concat();
        let output = plainsong(&all).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let state = name(&states.0);
    let told = refusal(&["--name", "d", "--voters", "a,b,c", "--state", state]);
    assert!(told.contains("'d' is none of the voters a,b,c: "), "{told}");
    assert!(told.contains("--voters") && told.contains("PLAINSONG_VOTERS"), "{told}");
    let told = refusal(&["--name", "a", "--state", state]);
    assert!(told.contains("no voters are given: ") && told.contains("--voters"), "{told}");
    let told = refusal(&["--voters", "a,b,c", "--state", state]);
    assert!(told.contains("no name is given: ") && told.contains("--name"), "{told}");
    let told = refusal(&["--name", "a", "--voters", "a,b,c"]);
    assert!(told.contains("no directory is given: ") && told.contains("--state"), "{told}");
    // A file where the directory should be: nobody may make one there, whoever it is.
    let file = states.0.join("file");
    std::fs::write(&file, "").unwrap();
    let told = refusal(&["--name", "a", "--voters", "a,b,c", "--state", name(&file)]);
    assert!(told.contains(name(&file)), "{told}");
    assert!(told.contains("this process must be able to create, read and write it"), "{told}");
}

#[test]
fn a_witness_with_damaged_votes_says_what_to_do() {
    let (states, domain) = (States::new("damaged"), domain(3));
    let state = states.0.join("c");
    let words = ["witness", "--name", "c", "--voters", "c", "--state", name(&state), "--domain", &domain];
    let member = plainsong(&["shapes", "-S", "-d", &domain, "--consistency", "atomic"])
        .env("PLAINSONG_VOTERS", "c")
        .stdout(std::process::Stdio::null())
        .spawn();
    let mut member = member.unwrap();
    let witness = Program::start(&words);
    witness.line_with("votes on ");
    drop(witness);
    let folder = state.join(format!("domain-{domain}"));
    let is_store = |path: &PathBuf| path.extension().is_some_and(|it| it == "redb");
    let files = std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().path());
    let file = files.into_iter().find(is_store).unwrap();
    let sound = std::fs::read(&file).unwrap();
    std::fs::write(&file, &sound[..sound.len() / 2]).unwrap();
    let witness = Program::start(&words);
    let told = witness.line_with("does not vote on ");
    assert!(told.contains(name(&file)) && told.contains("is damaged"), "{told}");
    assert!(told.contains("move it aside") && told.contains("without PLAINSONG_VOTER"), "{told}");
    member.kill().unwrap();
    member.wait().unwrap();
}
