//! How fast losses are made good, in virtual time: no timer longer than the road is waited for.

use plainsong_proto::qos::QosSet;
use plainsong_proto::time::{Duration, Instant};
use plainsong_sim::ledger::Taking;
use plainsong_sim::network::{Host, Link};
use plainsong_sim::node::NodeOptions;
use plainsong_sim::trace::Detail;
use plainsong_sim::world::{Topic, World, Write};

const SECOND: Duration = Duration::from_secs(1);

/// A writer and a reader on two hosts, matched, and from then on a road with this loss and round trip.
fn pair(seed: u64, loss_percent: u64, round_trip: Duration) -> (World, usize, usize) {
    let mut world = World::new(seed, Detail::Tail(40));
    let qos = QosSet::default().reliable().keep_all();
    let topic = Topic::keyless("road");
    // No lost announcement ends a match.
    let on = |host| NodeOptions { lease_duration: Duration::from_secs(1_000), ..NodeOptions::on(host) };
    let (one, other) = (world.start(on(0)), world.start(on(1)));
    let writer = world.add_writer(one, 0, &topic, &qos);
    let reader = world.add_reader(other, 0, &topic, &qos, Taking::Promptly);
    assert!(world.run_until(Duration::from_secs(10), |world| world.matches(writer, reader) == (1, 1)));
    world.run_for(SECOND);
    let half = round_trip.0 as u64 / 2;
    let (delay_nanos_min, delay_nanos_max) = (half - half / 5, half + half / 5);
    world.network.link = Link { loss_percent, delay_nanos_min, delay_nanos_max, ..Link::QUIET };
    (world, writer, reader)
}

/// How long each sample took from its writing to its delivery, in ms, ascending.
fn latencies(world: &World, writer: usize, reader: usize) -> Vec<f64> {
    let changes = &world.ledger.writers[writer].changes;
    let deliveries = &world.ledger.readers[reader].deliveries;
    assert_eq!(changes.len(), deliveries.len(), "everything arrives once");
    let took = changes.iter().zip(deliveries).map(|(it, delivery)| ms(delivery.at.since(it.at)));
    let mut took: Vec<f64> = took.collect();
    took.sort_by(f64::total_cmp);
    took
}

fn ms(span: Duration) -> f64 {
    span.0 as f64 / 1e6
}

fn quantile(sorted: &[f64], at: f64) -> f64 {
    let place = (sorted.len() as f64 * at).ceil() as usize;
    sorted[place.clamp(1, sorted.len()) - 1]
}

fn all_arrived(world: &World, writer: usize, reader: usize) -> bool {
    world.ledger.writers[writer].changes.len() == world.ledger.readers[reader].deliveries.len()
}

/// Samples of so many octets, one in each pause.
fn steady(seed: u64, loss: u64, trip: Duration, (samples, bytes, pause): (u32, usize, Duration)) -> Vec<f64> {
    let (mut world, writer, reader) = pair(seed, loss, trip);
    for _ in 0..samples {
        assert!(world.write(writer, Write::data(0, bytes)));
        world.run_for(pause);
    }
    assert!(world.run_until(Duration::from_secs(10), |world| all_arrived(world, writer, reader)));
    latencies(&world, writer, reader)
}

/// Samples of so many octets, each as soon as there is room for it; octets per second of virtual time.
fn bulk(seed: u64, loss: u64, trip: Duration, (samples, bytes): (u32, usize)) -> (f64, Vec<f64>) {
    let (mut world, writer, reader) = pair(seed, loss, trip);
    let start = world.at;
    let mut written = 0;
    let end = start.after(Duration::from_secs(60)).unwrap_or(start);
    while written < samples && world.at < end {
        if world.can_write(writer) {
            world.write(writer, Write::data(0, bytes));
            written += 1;
        } else {
            world.run_for(Duration::from_micros(50));
        }
    }
    while !all_arrived(&world, writer, reader) && world.at < end {
        world.run_for(Duration::from_micros(100));
    }
    assert_eq!(written, samples);
    let took = world.at.since(start);
    (f64::from(samples) * bytes as f64 / (took.0 as f64 / 1e9), latencies(&world, writer, reader))
}

/// The road is cut for a second while samples are written, or just after one was; how long all of it takes to arrive
/// once it is whole again, in ms.
fn outage(seed: u64, trip: Duration, writes: u32) -> f64 {
    let (mut world, writer, reader) = pair(seed, 0, trip);
    world.write(writer, Write::data(0, 100));
    world.run_for(Duration::from_millis(50));
    world.network.block(Host(0), Host(1));
    world.network.block(Host(1), Host(0));
    for _ in 0..writes {
        assert!(world.write(writer, Write::data(0, 100)));
        world.run_for(Duration(SECOND.0 / i64::from(writes)));
    }
    // The end of the outage is anywhere between two heartbeats.
    world.run_for(Duration::from_millis((seed * 37 % 211) as i64));
    if writes == 1 {
        world.run_for(SECOND);
    }
    world.network.unblock_all();
    let healed: Instant = world.at;
    while !all_arrived(&world, writer, reader) {
        world.run_for(Duration::from_micros(100));
        assert!(world.at.since(healed) < Duration::from_secs(10));
    }
    ms(world.at.since(healed))
}

#[test]
fn table() {
    for trip in [100, 1_000] {
        let trip = Duration::from_micros(trip);
        for loss in [0, 1, 5, 10] {
            let many = |f: &dyn Fn(u64) -> Vec<f64>, runs: u64| {
                let mut all: Vec<f64> = (1..=runs).flat_map(f).collect();
                all.sort_by(f64::total_cmp);
                format!("p50 {:.2} p99 {:.2} p99.9 {:.2} max {:.2}", quantile(&all, 0.5), quantile(&all, 0.99), quantile(&all, 0.999), all[all.len() - 1])
            };
            println!("rtt {:.1} loss {loss}", ms(trip));
            println!("  each 20 ms  100 B {}", many(&|seed| steady(seed, loss, trip, (400, 100, Duration::from_millis(20))), 10));
            println!("  each 1 ms   100 B {}", many(&|seed| steady(seed, loss, trip, (2000, 100, Duration::from_millis(1))), 4));
            println!("  each 30 ms 100 kB {}", many(&|seed| steady(seed, loss, trip, (100, 100_000, Duration::from_millis(30))), 10));
            println!("  5 MB              {}", many(&|seed| bulk(seed, loss, trip, (1, 5_000_000)).1, 20));
            let rates: Vec<f64> = (1..=3).map(|seed| bulk(seed, loss, trip, (1500, 8_000)).0 / 1e6).collect();
            println!("  bulk 8 kB MB/s    {rates:.1?}");
            let rates: Vec<f64> = (1..=3).map(|seed| bulk(seed, loss, trip, (6, 2_000_000)).0 / 1e6).collect();
            println!("  bulk 2 MB MB/s    {rates:.1?}");
        }
        for writes in [1, 5, 1000] {
            let mut all: Vec<f64> = (1..=20).map(|seed| outage(seed, trip, writes)).collect();
            all.sort_by(f64::total_cmp);
            println!("rtt {:.1} outage, {writes} writes: p50 {:.1} max {:.1}", ms(trip), quantile(&all, 0.5), all[19]);
        }
    }
}
