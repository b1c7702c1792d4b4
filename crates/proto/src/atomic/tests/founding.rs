//! Members that are killed when their group has hardly begun.

use super::*;

/// Members with disks that know of one another, and make a group in a moment; what these write of it is lost.
fn about_to_begin(count: u8, forgetful: &[u8]) -> World {
    let mut world = World { storage: Storage::Durable, ..World::new(true) };
    (1..=count).for_each(|name| world.start(name));
    for name in forgetful {
        world.nodes.get_mut(name).unwrap().stops_at_view = true;
    }
    world.run(Duration::from_millis(190));
    assert!(world.phases().iter().all(|(phase, ..)| *phase == Phase::Joining));
    world
}

/// A process is killed, and another goes on with its directory.
fn start_again(world: &mut World, before: u8, name: u8) {
    let disk = world.nodes.remove(&before).unwrap().disk;
    world.start_with(name, disk);
}

fn instance(world: &World, name: u8) -> u64 {
    world.nodes[&name].group.member().unwrap().view().unwrap().instance
}

fn all_take_part_in_one_group(world: &World) {
    let instances: BTreeSet<u64> = world.nodes.keys().map(|name| instance(world, *name)).collect();
    assert_eq!(instances.len(), 1);
    let count = world.nodes.len();
    assert!(world.phases().iter().all(|(phase, _, members)| (*phase, *members) == (Phase::Active, count)));
}

#[test]
fn nobody_hears_of_a_group_before_its_founder_has_it_on_its_disk() {
    let mut world = about_to_begin(2, &[1]);
    world.run(Duration::from_millis(100));
    assert!(world.nodes[&1].is_stopped);
    assert_eq!(world.phases()[1].0, Phase::Joining);
    // What is agreed in the group that it makes when it starts again is not lost for one that never was.
    let disk = world.nodes.remove(&2).unwrap().disk;
    start_again(&mut world, 1, 3);
    world.run(Duration::from_secs(1));
    world.write(3, 7).unwrap();
    world.run(Duration::from_millis(10));
    assert_eq!(world.samples(3), [(3, 7)]);
    world.start_with(4, disk);
    world.run(Duration::from_secs(4));
    all_take_part_in_one_group(&world);
    assert_eq!((world.samples(3), world.samples(4)), (vec![(3, 7)], vec![(3, 7)]));
    assert!(!world.nodes[&3].statuses.contains(&Status::DataLoss));
}

#[test]
fn voters_that_were_killed_before_they_had_the_view_vote_when_they_hear_of_it() {
    let mut world = about_to_begin(3, &[2, 3]);
    world.run(Duration::from_millis(20));
    assert_eq!(world.phases(), [(Phase::Active, 1, 3); 3]);
    let begun = instance(&world, 1);
    (1..=3).for_each(|name| start_again(&mut world, name, name + 3));
    world.run(Duration::from_secs(2));
    all_take_part_in_one_group(&world);
    assert_eq!(instance(&world, 4), begun);
}

#[test]
fn who_made_a_group_and_vouched_for_something_is_not_left_alone_by_those_who_forgot_it() {
    let mut world = about_to_begin(3, &[2, 3]);
    world.run(Duration::from_millis(20));
    world.write(1, 1).unwrap();
    let begun = instance(&world, 1);
    // The others come back first, and make a group of their own.
    let disk = world.nodes.remove(&1).unwrap().disk;
    start_again(&mut world, 2, 5);
    start_again(&mut world, 3, 6);
    world.run(Duration::from_secs(1));
    assert_eq!(world.phases(), [(Phase::Active, 1, 2); 2]);
    world.start_with(4, disk);
    world.run(Duration::from_secs(4));
    all_take_part_in_one_group(&world);
    assert_eq!(instance(&world, 4), begun);
}

#[test]
fn a_group_in_which_nothing_was_agreed_and_nothing_can_be_gives_way_to_another() {
    for storage in [Storage::Durable, Storage::None] {
        let mut world = World { storage, ..World::new(true) };
        (1..=3).for_each(|name| world.start(name));
        world.run(Duration::from_millis(190));
        world.cut_off.insert(1);
        world.run(Duration::from_secs(3));
        // Of three voters one, and the other two.
        assert_eq!(
            world.phases().iter().map(|it| (it.0, it.2)).collect::<Vec<_>>(),
            [(Phase::Frozen, 3), (Phase::Active, 2), (Phase::Active, 2)]
        );
        world.cut_off.clear();
        world.run(Duration::from_secs(3));
        all_take_part_in_one_group(&world);
    }
}

#[test]
fn who_has_something_of_a_group_on_its_disk_makes_no_other_though_it_was_no_member() {
    let mut world = World { storage: Storage::Durable, ..World::new(true) };
    world.start(1);
    world.run(Duration::from_secs(1));
    world.write(1, 7).unwrap();
    world.run(Duration::from_millis(10));
    let begun = instance(&world, 1);
    world.start(2);
    while world.samples(2).is_empty() {
        world.run(Duration::from_micros(100));
    }
    assert_eq!(world.phases()[1].0, Phase::Joining);
    let disk = world.nodes.remove(&1).unwrap().disk;
    world.run(Duration::from_secs(2));
    start_again(&mut world, 2, 3);
    world.run(Duration::from_secs(3));
    assert_eq!(world.phases()[0].0, Phase::Joining);
    assert!(world.nodes[&3].statuses.contains(&Status::Suspended));
    world.start_with(4, disk);
    world.run(Duration::from_secs(3));
    all_take_part_in_one_group(&world);
    assert_eq!((instance(&world, 3), world.samples(3)), (begun, vec![(1, 7)]));
}

#[test]
fn voters_that_hear_of_a_view_when_they_have_started_again_say_that_they_are_suspended_and_give_way() {
    let mut world = about_to_begin(5, &[2, 3, 4, 5]);
    world.run(Duration::from_millis(20));
    let begun = instance(&world, 1);
    let disks = [3, 4, 5].map(|name| world.nodes.remove(&name).unwrap().disk);
    start_again(&mut world, 1, 6);
    start_again(&mut world, 2, 7);
    world.run(Duration::from_secs(3));
    // Two of five voters.
    assert_eq!((instance(&world, 6), instance(&world, 7)), (begun, begun));
    for name in [6, 7] {
        assert!(world.nodes[&name].statuses.contains(&Status::Suspended), "{name}");
    }
    // The others make a group in which something is agreed before they hear of this one.
    world.cut_off.extend([6, 7]);
    for (name, disk) in (8..).zip(disks) {
        world.start_with(name, disk);
    }
    world.run(Duration::from_secs(1));
    world.write(8, 8).unwrap();
    world.run(Duration::from_millis(50));
    assert_eq!(world.samples(9), [(8, 8)]);
    world.cut_off.clear();
    world.run(Duration::from_secs(5));
    all_take_part_in_one_group(&world);
    assert_eq!((world.samples(6), world.samples(7)), (vec![(8, 8)], vec![(8, 8)]));
}

#[test]
fn who_starts_again_before_its_group_is_made_is_one_member_of_it() {
    let mut world = about_to_begin(3, &[]);
    // The others have heard that it would join.
    start_again(&mut world, 2, 4);
    while world.phases()[0].0 == Phase::Joining {
        world.run(Duration::from_millis(1));
    }
    assert_eq!(world.nodes[&1].group.member().unwrap().view().unwrap().members.len(), 3);
    world.run(Duration::from_secs(1));
    all_take_part_in_one_group(&world);
}
