//! What arrives late, twice, or from an earlier incarnation. Without this the engine breaks its promises: an
//! old synchronization of the log takes back what was accepted after it (`sim decider` finds that in one seed
//! of 30,000).

use crate::atomic::decider::links::{Arrival, Link};
use crate::atomic::decider::message::{Header, Position};
use crate::time::{Duration, Instant};

const OWN_INCARNATION: u32 = 7;

fn header(from: u32, to: u32, number: u64) -> Header {
    let position = Position { next: number, decided: number, accepted: number };
    Header { active_ms: 0, from, to, number, position }
}

#[test]
fn messages_whose_order_matters_come_in_order_and_once() {
    let mut link = Link::default();
    let now = Instant(0);
    let mut receive = |number, order_matters| {
        let arrival = link.receive(now, &header(1, OWN_INCARNATION, number), order_matters, OWN_INCARNATION);
        (arrival.map(|arrival| arrival.is_newest), link.position.next)
    };
    assert_eq!(receive(5, true), (Some(true), 5));
    assert_eq!(receive(5, true), (None, 5));
    assert_eq!(receive(4, true), (None, 5));
    // Others may overtake: they neither hold up nor are held up, but the newest says how far the sender is.
    assert_eq!(receive(9, false), (Some(true), 9));
    assert_eq!(receive(3, false), (Some(false), 9));
    assert_eq!(receive(6, true), (Some(false), 9));
    assert_eq!(receive(6, true), (None, 9));
}

#[test]
fn a_life_ends_the_one_before() {
    let mut link = Link::default();
    let mut receive = |at, header: Header| {
        let now = Instant(0).after(Duration::from_millis(at)).unwrap();
        link.receive(now, &header, true, OWN_INCARNATION)
    };
    let arrival = |is_connected, is_news| Some(Arrival { is_connected, is_newest: true, is_news });
    assert_eq!(receive(0, header(2, OWN_INCARNATION, 50)), arrival(true, true));
    assert_eq!(receive(1, header(2, OWN_INCARNATION, 51)), arrival(true, false));
    assert_eq!(receive(2, header(1, OWN_INCARNATION, 99)), None, "of an earlier incarnation");
    assert_eq!(
        receive(3, header(3, 0, 1)),
        arrival(false, true),
        "the sender knows no incarnation of this voter"
    );
    assert_eq!(
        receive(4, header(3, OWN_INCARNATION - 1, 2)),
        arrival(false, false),
        "it knows an earlier one"
    );
    assert_eq!(receive(5, header(2, OWN_INCARNATION, 100)), None);
    assert_eq!(receive(5_000, header(3, OWN_INCARNATION, 3)), arrival(true, true), "it was silent");
    assert_eq!(link.send(OWN_INCARNATION, 0, Position::default()).to, 3);
}
