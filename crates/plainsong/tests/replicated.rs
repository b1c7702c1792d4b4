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

#[derive(Clone, Debug, Default, DdsType)]
struct Numbers {
    numbers: Vec<u32>,
}

impl StateMachine for List {
    type Command = Append;
    /// How long the list is with it.
    type Response = usize;
    type Snapshot = Numbers;

    fn apply(&mut self, command: Append) -> usize {
        self.0.push((command.by, command.number));
        self.0.len()
    }

    fn snapshot(&self) -> Numbers {
        Numbers { numbers: self.0.iter().flat_map(|(by, number)| [*by, *number]).collect() }
    }

    fn restore(snapshot: Numbers) -> Self {
        Self(snapshot.numbers.as_chunks().0.iter().map(|[by, number]| (*by, *number)).collect())
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

/// What depends on all commands, and is as long as is asked for.
#[derive(Clone, Debug, Default, PartialEq, DdsType)]
struct Sum {
    count: u64,
    digest: u64,
    octets: Vec<u8>,
}

#[derive(Clone, Debug, Default, DdsType)]
struct Add {
    number: u64,
    /// So many octets the state has from now on, if any.
    octets: u32,
}

impl StateMachine for Sum {
    type Command = Add;
    type Response = u64;
    type Snapshot = Self;

    fn apply(&mut self, command: Add) -> u64 {
        self.count += 1;
        self.digest = (self.digest ^ command.number).wrapping_mul(0x0000_0100_0000_01b3);
        if command.octets > 0 {
            self.octets = (0..command.octets).map(|it| (it ^ it >> 9) as u8).collect();
        }
        self.count
    }

    fn snapshot(&self) -> Self {
        self.clone()
    }

    fn restore(snapshot: Self) -> Self {
        snapshot
    }
}

fn sum(copy: &Replicated<Sum>) -> Sum {
    copy.sync(PATIENCE).unwrap();
    copy.read(Sum::clone)
}

#[test]
fn of_100_000_commands_few_are_kept_and_who_opens_it_later_has_the_same_state() {
    let domain = fresh_domain();
    let first = participant(domain);
    let early = Replicated::<Sum>::open(&first, "Sum").unwrap();
    let mut longest = 0;
    for number in 1..=100_000_u64 {
        let octets = if number == 500 { 200_000 } else { 0 };
        assert_eq!(early.propose(&Add { number, octets }, PATIENCE).unwrap(), number);
        if number % 1_000 == 0 {
            longest = longest.max(first.atomic_groups()[0].history);
        }
    }
    assert!(longest <= 2_048, "{longest} are kept");
    let group = first.atomic_groups().pop().unwrap();
    assert!((200_000..210_000).contains(&group.history_state_bytes), "{}", group.history_state_bytes);
    let second = participant(domain);
    let late = Replicated::<Sum>::open(&second, "Sum").unwrap();
    assert_eq!(sum(&late), sum(&early));
    // It goes on from there, gives others what it has, and answers.
    assert_eq!(late.propose(&Add { number: 7, octets: 0 }, PATIENCE).unwrap(), 100_001);
    let third = Replicated::<Sum>::open(&second, "Sum").unwrap();
    assert_eq!(sum(&third), sum(&early));
    assert_eq!(sum(&third).count, 100_001);
}

#[test]
fn a_state_of_many_parts_is_given_whole_to_who_comes_later() {
    let domain = fresh_domain();
    let first = participant(domain);
    let early = Replicated::<Sum>::open(&first, "Sum").unwrap();
    for number in 1..=1_100_u64 {
        let octets = if number == 1 { 20 << 20 } else { 0 };
        early.propose(&Add { number, octets }, PATIENCE).unwrap();
    }
    assert!(first.atomic_groups()[0].history_state_bytes > 20 << 20);
    let second = participant(domain);
    let late = Replicated::<Sum>::open(&second, "Sum").unwrap();
    assert_eq!(sum(&late), sum(&early));
}

#[test]
fn a_state_that_is_too_long_to_be_given_to_others_is_told() {
    let participant = participant(fresh_domain());
    let long = Replicated::<Sum>::open(&participant, "Sum").unwrap();
    let propose = |number, octets| long.propose(&Add { number, octets }, PATIENCE);
    propose(1, 65 << 20).unwrap();
    for number in 2..=1_024 {
        propose(number, 0).unwrap();
    }
    let refused = propose(1_025, 0).unwrap_err();
    assert!(refused.to_string().contains("67108864 is the most"), "{refused}");
    assert_eq!(sum(&long).count, 1_024, "what it has can be read");
}
