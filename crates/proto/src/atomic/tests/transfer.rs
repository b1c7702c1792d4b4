//! State and history that who joins is given.

use super::*;

const BYTES: usize = 1 << 20;

fn state(salt: u32) -> Arc<[u8]> {
    (0..BYTES as u32).map(|it| (it ^ it >> 8 ^ salt) as u8).collect()
}

/// Three members, whose first ten samples are in a state of 32 parts.
fn with_state() -> World {
    let mut world = three(true);
    for number in 1..=12 {
        world.write(1, number).unwrap();
        world.run(Duration::from_millis(5));
    }
    for node in world.nodes.values_mut() {
        node.group.replace_history(10, state(1));
    }
    world
}

/// Runs until so many parts were sent to who joins: by whom.
fn begin(world: &mut World, parts: u64) -> u8 {
    world.start(4);
    while world.parts.values().sum::<u64>() < parts {
        world.run(Duration::from_micros(100));
    }
    *world.parts.first_key_value().unwrap().0
}

#[test]
fn state_comes_in_parts_and_what_is_after_it_follows() {
    let mut world = with_state();
    begin(&mut world, 1);
    world.run(Duration::from_secs(1));
    let joiner = &world.nodes[&4];
    assert!(joiner.states == [(10, state(1))]);
    assert_eq!(world.samples(4), [(1, 11), (1, 12)]);
    assert_eq!(world.phases()[3].0, Phase::Active);
    assert!(world.parts.len() == 1 && world.parts.values().all(|parts| (33..50).contains(parts)));
    assert_eq!(joiner.missed, 0);
}

#[test]
fn parts_that_are_lost_are_asked_for_again_and_no_others() {
    let mut world = World { lost_of: 4, ..with_state() };
    begin(&mut world, 1);
    world.run(Duration::from_secs(20));
    assert!(world.nodes[&4].states == [(10, state(1))]);
    assert_eq!(world.phases()[3].0, Phase::Active);
    // A part that is lost makes the next ones smaller.
    assert!(world.parts.values().sum::<u64>() < 200, "{:?}", world.parts);
}

#[test]
fn who_loses_its_donor_begins_again_with_another() {
    let mut world = with_state();
    let donor = begin(&mut world, 10);
    world.nodes.remove(&donor);
    world.run(Duration::from_secs(5));
    assert!(world.nodes[&4].states == [(10, state(1))]);
    assert_eq!(world.samples(4), [(1, 11), (1, 12)]);
    let others = world.parts.iter().filter(|(name, _)| **name != donor);
    assert!(others.map(|(_, parts)| *parts).max() >= Some(32), "{:?}", world.parts);
    assert!(world.phases().iter().all(|it| it.0 == Phase::Active));
}

#[test]
fn while_somebody_fetches_state_no_other_takes_its_place() {
    let mut world = with_state();
    begin(&mut world, 10);
    for salt in 2..=5 {
        world.nodes.values_mut().for_each(|node| node.group.replace_history(12, state(salt)));
        world.run(Duration::from_micros(500));
    }
    world.run(Duration::from_secs(1));
    assert!(world.nodes[&4].states == [(10, state(1))]);
    world.run(Duration::from_secs(2));
    for name in 1..=3 {
        let kept = world.nodes[&name].group.member().unwrap().history_state();
        // Who fetched from nobody took the first of them at once.
        assert!(kept.is_some_and(|(through, _)| *through == 12), "{name}");
        assert_eq!(world.nodes[&name].group.member().unwrap().history().count(), 0);
    }
}

#[test]
fn what_is_not_kept_is_missed_by_who_was_away_once_and_by_nobody_else() {
    let mut world = three(true);
    let mut missed = 0;
    for round in 0..3_u64 {
        world.write(1, round * 100).unwrap();
        world.write(1, NOT_KEPT + round * 100).unwrap();
        world.run(Duration::from_millis(10));
        world.cut_off.insert(3);
        for number in 1..=29 {
            world.write(1, round * 100 + number).unwrap();
            world.write(2, NOT_KEPT + round * 100 + number).unwrap();
            world.run(Duration::from_millis(1));
        }
        world.run(Duration::from_secs(2));
        missed += 29;
        world.cut_off.clear();
        world.run(Duration::from_secs(2));
        assert_eq!(world.phases()[2].0, Phase::Active);
        assert_eq!(world.nodes[&3].missed, missed, "{round}");
    }
    let is_kept = |it: &Sample| it.1 < NOT_KEPT;
    let kept = |name| world.samples(name).into_iter().filter(is_kept).collect::<Vec<_>>();
    assert_eq!(kept(3), kept(1));
    assert_eq!(kept(3).len(), 90);
    world.start(4);
    world.run(Duration::from_secs(1));
    assert_eq!(world.samples(4).len(), 90);
    assert!([1, 2, 4].iter().all(|name| world.nodes[name].missed == 0));
}
