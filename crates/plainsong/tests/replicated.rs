//! A state that several participants hold and change together.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod common;

use common::{PATIENCE, fresh_domain, participant};
use plainsong::prelude::*;
use plainsong::replicated::{Replicated, StateMachine};

#[derive(Clone, Debug, Default, DdsType)]
struct Append {
    by: u32,
    number: u32,
}

/// All that was ever appended: it shows the order itself.
#[derive(Default)]
struct List(Vec<(u32, u32)>);

impl StateMachine for List {
    type Command = Append;
    /// How long the list is with it.
    type Response = usize;

    fn apply(&mut self, command: Append) -> usize {
        self.0.push((command.by, command.number));
        self.0.len()
    }
}

fn list(list: &Replicated<List>) -> Vec<(u32, u32)> {
    list.sync(PATIENCE).unwrap();
    list.read(|list| list.0.clone())
}

#[test]
fn all_copies_are_equal_and_each_command_is_answered_by_its_place() {
    let domain = fresh_domain();
    let participants = [(); 3].map(|()| participant(domain));
    let lists = participants.each_ref().map(|it| Replicated::<List>::open(it, "List").unwrap());
    lists.iter().for_each(|it| it.sync(PATIENCE).unwrap());
    let places = std::thread::scope(|scope| {
        let run = |by: usize| {
            let list = &lists[by];
            move || -> Vec<(usize, (u32, u32))> {
                let append = |number| {
                    let by = by as u32;
                    (list.propose(&Append { by, number }, PATIENCE).unwrap(), (by, number))
                };
                (1..=50).map(append).collect()
            }
        };
        let threads = [0, 1, 2].map(|by| scope.spawn(run(by)));
        threads.map(|it| it.join().unwrap())
    });
    let all = list(&lists[0]);
    assert_eq!(all.len(), 150);
    assert_eq!(list(&lists[1]), all);
    assert_eq!(list(&lists[2]), all);
    for (place, command) in places.into_iter().flatten() {
        assert_eq!(all[place - 1], command);
    }
}

#[test]
fn who_opens_it_later_has_it_after_sync() {
    let domain = fresh_domain();
    let first = participant(domain);
    let early = Replicated::<List>::open(&first, "List").unwrap();
    for number in 1..=200 {
        assert_eq!(early.propose(&Append { by: 1, number }, PATIENCE).unwrap(), number as usize);
    }
    let second = participant(domain);
    let late = Replicated::<List>::open(&second, "List").unwrap();
    assert_eq!(list(&late).len(), 200);
    assert_eq!(late.propose(&Append { by: 2, number: 1 }, PATIENCE).unwrap(), 201);
    assert_eq!(list(&early), list(&late));
}

#[test]
fn threads_that_share_a_copy_get_their_own_answers() {
    let participant = participant(fresh_domain());
    let shared = Replicated::<List>::open(&participant, "List").unwrap();
    let mut places = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|by| {
                let shared = &shared;
                scope.spawn(move || {
                    let append = |number| shared.propose(&Append { by, number }, PATIENCE).unwrap();
                    (1..=25).map(append).collect::<Vec<usize>>()
                })
            })
            .collect();
        threads.into_iter().flat_map(|it| it.join().unwrap()).collect::<Vec<_>>()
    });
    places.sort_unstable();
    assert!(places.into_iter().eq(1..=100));
}
