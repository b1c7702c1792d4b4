//! What cannot be, and what a member or voter does about it.

use super::*;
use crate::atomic::view::{Decision, Ranks, Report, View};

fn view(world: &World, name: u8) -> View {
    world.nodes[&name].group.member().unwrap().view().unwrap().clone()
}

/// A member hears something that nobody has sent.
fn tell(world: &mut World, name: u8, message: Message<Written>) {
    world.nodes.get_mut(&name).unwrap().group.on_message(world.now, message);
    world.act(name);
}

/// Three members that have delivered two samples of the first one, which stops and hears how its epoch ends.
fn ended_with(cut: [u64; 3]) -> (World, View) {
    let mut world = three(false);
    for number in 1..=2 {
        world.write(1, number).unwrap();
        world.run(Duration::from_millis(10));
    }
    assert_eq!(world.samples(1), [(1, 1), (1, 2)]);
    let old = view(&world, 1);
    world.cut_off.insert(1);
    tell(&mut world, 1, Message::Wedge { instance: old.instance, epoch: 1 });
    let next = View { epoch: 2, base_position: cut.iter().sum(), base_clock: 100, ..old.clone() };
    let decision = Decision { base: 1, cut: cut.to_vec(), incumbents: Ranks::first(3), next };
    tell(&mut world, 1, Message::NewView(Arc::new(decision)));
    (world, old)
}

#[test]
fn who_has_delivered_what_is_not_within_the_cut_says_so_and_goes() {
    let rank = |view: &View| view.members.iter().position(|it| it.id.prefix.0[0] == 1).unwrap();
    let (world, old) = ended_with([2, 0, 0]);
    assert_eq!(rank(&old), 0);
    assert_eq!((world.phases()[0].0, world.phases()[0].1), (Phase::Active, 2));
    // Less than what it has delivered, and more than what it has.
    for cut in [[1, 0, 0], [2, 1, 0]] {
        let (mut world, _) = ended_with(cut);
        assert!(world.nodes[&1].statuses.contains(&Status::Diverged), "{cut:?}");
        assert_eq!(world.phases()[0].0, Phase::Gone, "{cut:?}");
        assert_eq!(world.write(1, 3), Err(Refused::Gone));
    }
}

#[test]
fn a_voter_proposes_nothing_that_nobody_could_read() {
    let mut world = World::new(false);
    (1..=2).for_each(|name| world.start(name));
    world.run(Duration::from_millis(400));
    let old = view(&world, 1);
    assert_eq!(old.voters, [old.members[0].id.voter()]);
    world.cut_off.insert(1);
    // The clock of the next epoch would be none that is read.
    let report = Report {
        id: old.members[1].id,
        successor: None,
        epoch: 1,
        holds: vec![0, 0],
        position: 0,
        is_partial: false,
        clock: u64::MAX - 1,
        caught_up: true,
        hears: Ranks::first(2),
        accuses: Ranks::default(),
        leaves: false,
    };
    assert_eq!(world.nodes[&1].group.undecodable(), 0);
    tell(&mut world, 1, Message::Report { instance: old.instance, report });
    world.run(Duration::from_millis(100));
    assert!(world.nodes[&1].group.undecodable() > 0);
    assert_eq!(world.phases()[0], (Phase::Frozen, 1, 2));
    // The end of the epoch is still open: without that report it can be agreed on.
    world.run(Duration::from_secs(1));
    assert_eq!(world.phases()[0], (Phase::Active, 2, 1));
}
