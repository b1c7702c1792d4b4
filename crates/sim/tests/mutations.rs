//! A checker that cannot fail proves nothing: each has at least two deliberate mistakes that it must notice,
//! and the list of them is in `MUTATIONS.md`. `cargo xtask sim --mutations`, which CI runs, makes them all.

use plainsong_sim::check::CHECKS;
use plainsong_sim::mutation::{self, Mutation};

/// Here, without optimization, only some that are noticed with the first seeds.
const SOON: [Mutation; 4] =
    [Mutation::FlipOctet, Mutation::DeliverTwice, Mutation::HideMismatch, Mutation::KeepGhosts];

#[test]
fn mistakes_are_noticed() {
    for (mutation, invariant, _) in Mutation::ALL.iter().filter(|(mutation, ..)| SOON.contains(mutation)) {
        let noticed = mutation::first_noticed(*mutation, invariant);
        assert!(noticed.is_some(), "{mutation:?} goes unnoticed by {invariant}");
    }
}

#[test]
fn every_checker_can_fail_in_two_ways() {
    for (invariant, _) in CHECKS {
        let provoke = Mutation::ALL.iter().filter(|(_, by, _)| *by == invariant).count();
        assert!(provoke >= 2, "{provoke} mutations provoke {invariant}");
    }
}

#[test]
fn the_list_of_mutations_is_complete() {
    let list = include_str!("../MUTATIONS.md");
    let rows: Vec<&str> = list.lines().filter(|line| line.starts_with("| `")).collect();
    let expected: Vec<String> = Mutation::ALL
        .iter()
        .map(|(mutation, invariant, what)| format!("| `{mutation:?}` | {what} | `{invariant}` |"))
        .collect();
    assert_eq!(rows, expected, "MUTATIONS.md has a row for each, in their order");
}
