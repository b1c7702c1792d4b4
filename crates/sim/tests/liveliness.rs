//! LIVELINESS (DCPS 1.4 §2.2.3.11) of all three kinds, across two hosts and with loss, in virtual time.

use plainsong_proto::qos::{Liveliness, LivelinessKind, QosSet};
use plainsong_proto::time::Duration;
use plainsong_sim::ledger::Taking;
use plainsong_sim::node::NodeOptions;
use plainsong_sim::trace::Detail;
use plainsong_sim::world::{Topic, World, Write};

const LEASE: Duration = Duration::from_secs(1);

fn leased(kind: LivelinessKind) -> QosSet {
    let liveliness = Liveliness { kind, lease_duration: LEASE };
    QosSet { liveliness, ..QosSet::default().reliable().keep_all() }
}

/// One process writes two topics, another reads them.
struct Story {
    world: World,
    writers: [usize; 2],
    readers: [usize; 2],
}

impl Story {
    fn new(kinds: [LivelinessKind; 2]) -> Self {
        let mut world = World::new(1, Detail::Tail(40));
        let (one, other) = (world.start(NodeOptions::on(0)), world.start(NodeOptions::on(1)));
        let topics = ["left", "right"].map(Topic::keyed);
        let writers = [0, 1].map(|at| world.add_writer(one, 0, &topics[at], &leased(kinds[at])));
        let readers =
            [0, 1].map(|at| world.add_reader(other, 0, &topics[at], &leased(kinds[at]), Taking::Promptly));
        let found = world.run_until(Duration::from_secs(10), |world| {
            [0, 1].iter().all(|at| world.matches(writers[*at], readers[*at]) == (1, 1))
        });
        assert!(found, "writers and readers find each other");
        Self { world, writers, readers }
    }

    /// Lets some leases pass while the application does something three times in each.
    fn busy(&mut self, mut act: impl FnMut(&mut World, [usize; 2])) {
        for _ in 0..15 {
            self.world.run_for(Duration::from_millis(300));
            act(&mut self.world, self.writers);
        }
        // One lease after a change at the latest the reader is told.
        self.world.run_for(Duration::from_millis(500));
    }

    /// Whether the readers take the writers for alive.
    fn alive(&mut self) -> [bool; 2] {
        self.readers.map(|reader| self.world.liveliness(reader).alive_count == 1)
    }
}

#[test]
fn automatic_writers_live_as_long_as_their_process_does() {
    let mut story = Story::new([LivelinessKind::Automatic; 2]);
    story.busy(|_, _| {});
    assert_eq!(story.alive(), [true, true], "nobody has to write or assert");
    story.world.pause(0, Duration::from_millis(2_500));
    story.world.run_for(Duration::from_millis(1_500));
    assert_eq!(story.alive(), [false, false]);
    story.world.run_for(Duration::from_secs(2));
    assert_eq!(story.alive(), [true, true]);
}

#[test]
fn one_writer_that_writes_keeps_all_manual_by_participant_writers_of_its_participant_alive() {
    let mut story = Story::new([LivelinessKind::ManualByParticipant; 2]);
    story.busy(|world, [first, _]| {
        world.write(first, Write::data(1, 40));
    });
    assert_eq!(story.alive(), [true, true]);
    assert_eq!(story.world.liveliness_lost(story.writers[1]), 0, "the writer itself knows it as well");
    story.busy(|_, _| {});
    assert_eq!(story.alive(), [false, false], "the process runs, but the application asserts nothing");
    assert_eq!(story.world.liveliness_lost(story.writers[1]), 1);
    story.busy(|world, [_, second]| world.assert_liveliness(second));
    assert_eq!(story.alive(), [true, true]);
}

#[test]
fn a_write_of_a_writer_of_another_kind_asserts_its_participant_too() {
    let kinds = [LivelinessKind::ManualByTopic, LivelinessKind::ManualByParticipant];
    let mut story = Story::new(kinds);
    story.busy(|world, [first, _]| {
        world.write(first, Write::data(1, 40));
    });
    assert_eq!(story.alive(), [true, true]);
}

#[test]
fn manual_by_topic_writers_live_each_for_itself() {
    let mut story = Story::new([LivelinessKind::ManualByTopic; 2]);
    story.busy(|world, [first, _]| {
        world.write(first, Write::data(1, 40));
    });
    assert_eq!(story.alive(), [true, false]);
    story.busy(|world, [_, second]| world.assert_liveliness(second));
    assert_eq!(story.alive(), [false, true]);
}

#[test]
fn repetitions_after_the_last_write_keep_no_manual_writer_alive() {
    let mut story = Story::new([LivelinessKind::ManualByTopic; 2]);
    story.world.network.link.loss_percent = 60;
    for _ in 0..40 {
        story.world.write(story.writers[0], Write::data(1, 400));
    }
    story.world.run_for(Duration::from_millis(2_100));
    assert_eq!(story.alive(), [false, false], "the last write was two leases ago");
}
