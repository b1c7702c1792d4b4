//! Messages and records survive being octets, and what is neither is refused.

use std::sync::Arc;

use omnipaxos::ballot_leader_election::Ballot;
use omnipaxos::messages::ballot_leader_election::{HeartbeatMsg, HeartbeatReply, HeartbeatRequest};
use omnipaxos::messages::sequence_paxos::{
    AcceptDecide, AcceptSync, Accepted, Decide, NotAccepted, PaxosMsg, Prepare, PrepareReq, Promise,
};
use omnipaxos::storage::SnapshotType;
use omnipaxos::util::{LogSync, SequenceNumber};
use proptest::prelude::*;

use super::cluster::{Cluster, identity};
use crate::atomic::decider::decided::{Decided, Entry, Summary};
use crate::atomic::decider::message::{self, Body, CONFIGURATION, Header, Position};
use crate::atomic::decider::{Electorate, open};
use crate::time::{Duration, Instant};

fn entries() -> impl Strategy<Value = Vec<Entry>> {
    let value = prop::collection::vec(any::<u8>(), 0..20);
    let entry = (0..1_u64 << 50, value).prop_map(|(base, value)| Entry { base, value: Arc::from(value) });
    prop::collection::vec(entry, 0..5)
}

fn ballot() -> impl Strategy<Value = Ballot> {
    let none = Just(Ballot::default());
    prop_oneof![none, (0..1_u32 << 30, 1..=7_u64).prop_map(|(n, pid)| Ballot::with(CONFIGURATION, n, 0, pid))]
}

fn index() -> impl Strategy<Value = usize> {
    0..1_usize << 40
}

fn sequence() -> impl Strategy<Value = SequenceNumber> {
    (0..1_u64 << 48, 0..1_u64 << 48).prop_map(|(session, counter)| SequenceNumber { session, counter })
}

fn decided() -> impl Strategy<Value = Decided> {
    (1..9_u64, prop::collection::vec(prop::collection::vec(any::<u8>(), 0..9), 0..70)).prop_map(
        |(first, values)| {
            let mut decided = Decided::new(first);
            for (base, value) in (first..).zip(values) {
                decided.apply(&Entry { base, value: Arc::from(value) });
            }
            decided
        },
    )
}

fn body(decided: Decided) -> impl Strategy<Value = Body> {
    let snapshot =
        move |is_there: bool| is_there.then(|| SnapshotType::Complete(Summary::Decided(decided.clone())));
    let sync = (entries(), index(), any::<bool>())
        .prop_map(move |(suffix, sync_idx, is_there)| LogSync {
            decided_snapshot: snapshot(is_there),
            suffix,
            sync_idx,
            stopsign: None,
        })
        .boxed();
    let some_sync = prop::option::of(sync.clone());
    let heartbeat = prop_oneof![
        any::<u32>().prop_map(|round| HeartbeatMsg::Request(HeartbeatRequest { round })),
        (any::<u32>(), ballot(), ballot(), any::<bool>()).prop_map(|(round, ballot, leader, happy)| {
            HeartbeatMsg::Reply(HeartbeatReply { round, ballot, leader, happy })
        }),
    ];
    let paxos = prop_oneof![
        ballot().prop_map(|n| PaxosMsg::PrepareReq(PrepareReq { n })),
        ballot().prop_map(|n| PaxosMsg::NotAccepted(NotAccepted { n })),
        (ballot(), ballot(), index(), index()).prop_map(|(n, n_accepted, decided_idx, accepted_idx)| {
            PaxosMsg::Prepare(Prepare { n, n_accepted, decided_idx, accepted_idx })
        }),
        (ballot(), ballot(), index(), index(), some_sync).prop_map(
            |(n, n_accepted, decided_idx, accepted_idx, log_sync)| {
                PaxosMsg::Promise(Promise { n, n_accepted, decided_idx, accepted_idx, log_sync })
            }
        ),
        (ballot(), sequence(), index(), sync).prop_map(|(n, seq_num, decided_idx, log_sync)| {
            PaxosMsg::AcceptSync(AcceptSync { n, seq_num, decided_idx, log_sync })
        }),
        (ballot(), sequence(), index(), entries()).prop_map(|(n, seq_num, decided_idx, entries)| {
            PaxosMsg::AcceptDecide(AcceptDecide { n, seq_num, decided_idx, entries })
        }),
        (ballot(), index()).prop_map(|(n, accepted_idx)| PaxosMsg::Accepted(Accepted { n, accepted_idx })),
        (ballot(), sequence(), index()).prop_map(|(n, seq_num, decided_idx)| PaxosMsg::Decide(Decide {
            n,
            seq_num,
            decided_idx
        })),
    ];
    let entry = entries().prop_filter_map("an entry", |mut entries| entries.pop());
    prop_oneof![
        Just(Body::Hello),
        entry.prop_map(Body::Propose),
        heartbeat.prop_map(Body::Heartbeat),
        paxos.prop_map(Body::Paxos),
    ]
}

fn header() -> impl Strategy<Value = Header> {
    (any::<u16>(), any::<u32>(), any::<u32>(), 0..1_u64 << 48, any::<u64>(), 0..1_u64 << 48).prop_map(
        |(active_ms, from, to, number, next, accepted)| Header {
            active_ms,
            from,
            to,
            number,
            position: Position { next, decided: accepted / 2, accepted },
        },
    )
}

proptest! {
    #[test]
    fn messages_survive_being_octets(
        (decided, body) in decided().prop_flat_map(|decided| (Just(decided.clone()), body(decided))),
        header in header(),
        known in 0..90_u64,
    ) {
        let octets = message::write(&header, &body, &decided, known).expect("a message of ours");
        // Somebody who has exactly what is left out, and somebody who has more.
        let mut first = Decided::new(decided.first_kept());
        for base in decided.first_kept()..known.min(decided.next()) {
            let value = decided.get(base).expect("it is kept").value;
            first.apply(&Entry { base, value });
        }
        for known in [&first, &decided] {
            let (read_header, read) = message::read(&octets, known).expect("it can be read");
            prop_assert_eq!(read_header, header);
            prop_assert_eq!(format!("{read:?}"), format!("{body:?}"));
        }
        // Up to three octets of padding at the end may be missing.
        for length in 0..octets.len() - 3 {
            prop_assert!(message::read(&octets[..length], &decided).is_err());
        }
        prop_assert!(message::read(&[&octets[..], &[0]].concat(), &decided).is_err());
    }

    #[test]
    fn octets_of_others_do_no_harm(octets in prop::collection::vec(any::<u8>(), 0..200), kind in 0..14_u8) {
        let mut octets = octets;
        if let Some(start) = octets.get_mut(..2) {
            start.copy_from_slice(&[1, kind]);
        }
        let _ = message::read(&octets, &Decided::new(1));
        let electorate = Electorate::new(identity(0), &[identity(0), identity(1)], 1).expect("two voters");
        let _ = open(Instant(0), &electorate, [octets.as_slice()]);
    }

    #[test]
    fn damaged_records_are_refused_or_are_a_state(at in any::<prop::sample::Index>(), octet in any::<u8>()) {
        let mut cluster = Cluster::new(3);
        cluster.propose(0, 1, "a");
        cluster.run(Duration::from_millis(200));
        let mut disk = cluster.disks[0].clone();
        let lengths: Vec<usize> = disk.iter().map(Vec::len).collect();
        let mut at = at.index(lengths.iter().sum());
        let record = lengths.iter().position(|length| {
            let is_here = at < *length;
            at -= if is_here { 0 } else { *length };
            is_here
        });
        disk[record.expect("within the disk")][at] = octet;
        let records = disk.iter().map(Vec::as_slice);
        if let Ok(mut voter) = open(cluster.now, &cluster.electorates[0], records) {
            voter.tick(cluster.now);
        }
    }
}
