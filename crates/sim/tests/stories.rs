//! Stories: small systems in which one thing goes wrong, told in virtual time.

use plainsong_proto::qos::{Durability, QosSet};
use plainsong_proto::sample_info::InstanceState;
use plainsong_proto::time::Duration;
use plainsong_sim::check::Violation;
use plainsong_sim::ledger::Taking;
use plainsong_sim::network::Host;
use plainsong_sim::node::NodeOptions;
use plainsong_sim::trace::Detail;
use plainsong_sim::world::{Topic, World, Write};

const SECOND: Duration = Duration::from_secs(1);

fn reliable() -> QosSet {
    QosSet::default().reliable().keep_all()
}

fn durable() -> QosSet {
    reliable().durability(Durability::TransientLocal)
}

fn world() -> World {
    World::new(1, if std::env::var_os("SIM_TRACE").is_some() { Detail::All } else { Detail::Tail(40) })
}

/// Two processes on two hosts, with a writer on the first and a reader on the second, not yet matched.
fn pair(world: &mut World, topic: &Topic, qos: &QosSet) -> (usize, usize) {
    let (one, other) = (world.start(NodeOptions::on(0)), world.start(NodeOptions::on(1)));
    let writer = world.add_writer(one, 0, topic, qos);
    let reader = world.add_reader(other, 0, topic, qos, Taking::Promptly);
    (writer, reader)
}

fn matched(world: &mut World, writer: usize, reader: usize) {
    let found = world.run_until(Duration::from_secs(10), |world| world.matches(writer, reader) == (1, 1));
    assert!(found, "writer and reader find each other within ten seconds");
}

/// Faults end, promises come true, all checkers are content.
fn all_is_well(world: &mut World) {
    let violations: Vec<Violation> = world.finish(Duration::from_secs(20), Duration::from_secs(5));
    let tail: Vec<&str> = world.trace.tail().collect();
    assert!(violations.is_empty(), "{violations:#?}\n{}", tail.join("\n"));
}

#[test]
fn two_nodes_exchange_reliably_while_three_of_ten_datagrams_are_lost() {
    let mut world = world();
    let topic = Topic::keyed("chatter");
    let (writer, reader) = pair(&mut world, &topic, &reliable());
    world.network.link.loss_percent = 30;
    matched(&mut world, writer, reader);
    for count in 0..200 {
        world.write(writer, Write::data(1 + count % 5, 100));
        world.run_for(Duration::from_millis(5));
    }
    assert!(
        world.run_until(SECOND, |world| world.received(reader).len() == 200),
        "everything arrives within a second of the last write, in spite of the loss"
    );
    all_is_well(&mut world);
}

#[test]
fn a_late_joiner_gets_the_history_in_order_before_what_is_written_next() {
    let mut world = world();
    let topic = Topic::keyless("log");
    let node = world.start(NodeOptions::on(0));
    let writer = world.add_writer(node, 0, &topic, &durable());
    (0..50).for_each(|_| assert!(world.write(writer, Write::data(0, 60))));
    world.run_for(SECOND);
    let late = world.start(NodeOptions::on(1));
    let reader = world.add_reader(late, 0, &topic, &durable(), Taking::Promptly);
    matched(&mut world, writer, reader);
    (0..50).for_each(|_| assert!(world.write(writer, Write::data(0, 60))));
    world.run_for(SECOND);
    assert_eq!(world.received(reader), (0..100).collect::<Vec<_>>());
    all_is_well(&mut world);
}

#[test]
fn a_volatile_late_joiner_gets_nothing_from_before_its_time() {
    let mut world = world();
    let topic = Topic::keyless("log");
    let node = world.start(NodeOptions::on(0));
    let writer = world.add_writer(node, 0, &topic, &durable());
    (0..50).for_each(|_| assert!(world.write(writer, Write::data(0, 60))));
    world.run_for(SECOND);
    let late = world.start(NodeOptions::on(1));
    let reader = world.add_reader(late, 0, &topic, &reliable(), Taking::Promptly);
    matched(&mut world, writer, reader);
    world.write(writer, Write::data(0, 60));
    world.run_for(SECOND);
    assert_eq!(world.received(reader), [50]);
    all_is_well(&mut world);
}

#[test]
fn when_a_writer_crashes_its_instances_have_no_writers_once_the_lease_is_over() {
    let mut world = world();
    let topic = Topic::keyed("position");
    let (writer, reader) = pair(&mut world, &topic, &reliable());
    matched(&mut world, writer, reader);
    world.write(writer, Write::data(7, 40));
    world.run_for(SECOND);
    world.crash(0);
    let last = |world: &World| world.ledger.readers[reader].deliveries.last().map(|last| last.state);
    world.run_for(SECOND);
    assert_eq!(last(&world), Some(InstanceState::Alive), "the lease of three seconds still runs");
    world.run_for(Duration::from_secs(4));
    assert_eq!(last(&world), Some(InstanceState::NotAliveNoWriters));
    assert_eq!(world.matches(writer, reader).1, 0);
    all_is_well(&mut world);
}

#[test]
fn a_partition_longer_than_the_lease_heals() {
    let mut world = world();
    let topic = Topic::keyed("state");
    let (writer, reader) = pair(&mut world, &topic, &durable());
    matched(&mut world, writer, reader);
    world.network.block(Host(0), Host(1));
    world.network.block(Host(1), Host(0));
    (0..20).for_each(|_| assert!(world.write(writer, Write::data(1, 60))));
    world.run_for(Duration::from_secs(8));
    assert_eq!(world.matches(writer, reader), (0, 0), "both sides gave the other up");
    world.network.unblock_all();
    matched(&mut world, writer, reader);
    world.run_for(SECOND);
    assert_eq!(world.received(reader).len(), 20);
    all_is_well(&mut world);
}

#[test]
fn a_one_way_partition_heals() {
    let mut world = world();
    let topic = Topic::keyed("state");
    let (writer, reader) = pair(&mut world, &topic, &durable());
    matched(&mut world, writer, reader);
    world.network.block(Host(1), Host(0));
    (0..20).for_each(|_| assert!(world.write(writer, Write::data(1, 60))));
    world.run_for(Duration::from_secs(8));
    assert_eq!(world.matches(writer, reader).0, 0, "the writer no longer hears its reader");
    world.network.unblock_all();
    matched(&mut world, writer, reader);
    all_is_well(&mut world);
}

#[test]
fn a_full_keep_all_writer_waits_and_goes_on_when_its_reader_is_back() {
    let mut world = world();
    let topic = Topic::keyless("orders");
    let mut qos = reliable();
    qos.resource_limits.max_samples = 10;
    let (writer, reader) = pair(&mut world, &topic, &qos);
    matched(&mut world, writer, reader);
    world.pause(1, Duration::from_secs(2));
    while world.write(writer, Write::data(0, 60)) {}
    assert_eq!(world.ledger.writers[writer].changes.len(), 10);
    world.run_for(SECOND);
    assert!(!world.can_write(writer), "nobody acknowledges while the reader's process stands still");
    world.run_for(Duration::from_secs(2));
    assert!(world.can_write(writer));
    assert_eq!(world.received(reader), (0..11).collect::<Vec<_>>());
    all_is_well(&mut world);
}

#[test]
fn a_reader_that_does_not_take_makes_a_keep_all_writer_wait() {
    let mut world = world();
    let topic = Topic::keyless("orders");
    let mut qos = reliable();
    qos.resource_limits.max_samples = 10;
    let (one, other) = (world.start(NodeOptions::on(0)), world.start(NodeOptions::on(1)));
    let writer = world.add_writer(one, 0, &topic, &qos);
    let reader = world.add_reader(other, 0, &topic, &qos, Taking::Every(Duration::from_secs(3)));
    matched(&mut world, writer, reader);
    let mut written = 0;
    for _ in 0..100 {
        while world.can_write(writer) && written < 60 {
            world.write(writer, Write::data(0, 60));
            written += 1;
        }
        world.run_for(Duration::from_millis(100));
    }
    assert!(world.ledger.writers[writer].unblocked > 0);
    all_is_well(&mut world);
    assert_eq!(world.received(reader), (0..world.received(reader).len() as u32).collect::<Vec<_>>());
}

#[test]
fn a_sample_of_five_megabytes_survives_ten_percent_loss() {
    let mut world = world();
    let topic = Topic::keyless("image");
    let (writer, reader) = pair(&mut world, &topic, &reliable());
    matched(&mut world, writer, reader);
    world.network.link.loss_percent = 10;
    world.write(writer, Write::data(0, 5_000_000));
    assert!(
        world.run_until(Duration::from_secs(10), |world| world.received(reader) == [0]),
        "3,500 fragments and their repetitions take seconds, not minutes"
    );
    all_is_well(&mut world);
}

#[test]
fn sixty_participants_find_each_other() {
    let mut world = world();
    let topic = Topic::keyed("status");
    for node in 0..60 {
        let options = NodeOptions { lease_duration: Duration::from_secs(9), ..NodeOptions::on(node % 20) };
        let node = world.start(options);
        world.add_writer(node, 0, &topic, &durable());
        world.add_reader(node, 0, &topic, &durable(), Taking::Promptly);
        world.run_for(Duration::from_millis(20));
    }
    let converged = |world: &World| {
        let all = |matched: usize| matched == 60;
        world.ledger.writers.iter().all(|writer| all(writer.endpoint.matched().count()))
            && world.ledger.readers.iter().all(|reader| all(reader.endpoint.matched().count()))
    };
    assert!(world.run_until(Duration::from_secs(10), converged), "60 × 60 pairs match within ten seconds");
    all_is_well(&mut world);
}

#[test]
fn a_restarted_process_is_a_new_participant_and_the_old_one_is_forgotten() {
    let mut world = world();
    let topic = Topic::keyed("state");
    let (writer, reader) = pair(&mut world, &topic, &durable());
    matched(&mut world, writer, reader);
    world.crash(0);
    let again = world.start(NodeOptions::on(0));
    let writer = world.add_writer(again, 0, &topic, &durable());
    world.write(writer, Write::data(1, 60));
    assert!(world.run_until(Duration::from_secs(2), |world| world.received(reader) == [0]));
    world.run_for(Duration::from_secs(5));
    assert_eq!(world.matches(writer, reader), (1, 1), "the crashed writer's lease is over");
    all_is_well(&mut world);
}
