//! What is decided, how soon, and what it costs.

use super::cluster::{Cluster, identity};
use crate::atomic::decider::{
    Electorate, ElectorateError, OmniPaxos, ProposeError, RestoreError, VALUE_BYTES_MAX, VoterId, open,
};
use crate::time::{Duration, Instant};

fn millis(millis: i64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn the_first_proposal_for_a_base_wins_at_all_voters() {
    for count in 2..=7 {
        let mut cluster = Cluster::new(count);
        cluster.propose(0, 1, "a");
        cluster.propose(count - 1, 1, "z");
        cluster.run(millis(300));
        let winner = cluster.decided[0][&1].clone();
        let winner = str::from_utf8(&winner).unwrap();
        assert!(winner == "a" || winner == "z");
        cluster.assert_decided(&[winner]);
        cluster.propose(count / 2, 2, "next");
        cluster.run(millis(100));
        cluster.assert_decided(&[winner, "next"]);
        let voter = cluster.voters[0].as_mut().unwrap();
        assert_eq!(voter.propose(cluster.now, 2, b"late"), Err(ProposeError::Decided(2)));
    }
}

#[test]
fn voters_at_rest_have_no_deadline_and_send_nothing() {
    let mut cluster = Cluster::new(3);
    assert!(cluster.voters.iter().flatten().all(|voter| voter.next_deadline().is_none()));
    cluster.propose(1, 1, "a");
    cluster.run(Duration::from_secs(10));
    cluster.assert_decided(&["a"]);
    assert!(cluster.voters.iter().flatten().all(|voter| voter.next_deadline().is_none()));
    let sent = cluster.sent;
    cluster.run(Duration::from_secs(3_600));
    assert_eq!(cluster.sent, sent);
}

#[test]
fn at_rest_with_a_leader_a_decision_takes_two_round_trips() {
    let mut cluster = Cluster::new(3);
    cluster.propose(0, 1, "a");
    cluster.run(Duration::from_secs(10));
    let leader = cluster.voters[0].as_ref().unwrap().leader().unwrap();
    let follower = (0..3).find(|index| identity(*index) != leader).unwrap();
    cluster.propose(follower, 2, "b");
    cluster.run(millis(5));
    cluster.assert_decided(&["a", "b"]);
}

#[test]
fn a_dead_leader_is_replaced_in_a_tenth_of_a_second() {
    let mut cluster = Cluster::new(3);
    cluster.propose(0, 1, "a");
    cluster.run(Duration::from_secs(10));
    let leader = cluster.voters[0].as_ref().unwrap().leader().unwrap();
    let dead = (0..3).find(|index| identity(*index) == leader).unwrap();
    cluster.voters[dead] = None;
    cluster.propose((dead + 1) % 3, 2, "b");
    cluster.run(millis(100));
    cluster.assert_decided(&["a", "b"]);
    // It learns when it comes back.
    cluster.start(dead);
    cluster.run(millis(100));
    cluster.assert_decided(&["a", "b"]);
}

#[test]
fn one_of_two_decides_nothing() {
    let mut cluster = Cluster::new(2);
    cluster.voters[1] = None;
    cluster.propose(0, 1, "a");
    cluster.run(Duration::from_secs(20));
    cluster.assert_decided(&[]);
    let sent = cluster.sent;
    cluster.run(Duration::from_secs(10));
    assert!(cluster.sent - sent <= 200, "{} messages in vain", cluster.sent - sent);
    cluster.start(1);
    cluster.run(millis(500));
    cluster.assert_decided(&["a"]);
}

#[test]
fn who_was_away_for_long_gets_what_is_kept() {
    let mut cluster = Cluster::new(3);
    cluster.propose(0, 1, "1");
    cluster.run(millis(500));
    cluster.voters[2] = None;
    for base in 2..=200 {
        cluster.propose((base % 2) as usize, base, &base.to_string());
        cluster.run(millis(200));
    }
    assert_eq!(cluster.decided[0].len(), 200);
    cluster.start(2);
    cluster.run(millis(500));
    let kept: Vec<u64> = cluster.decided[2].keys().copied().collect();
    assert_eq!(kept, std::iter::once(1).chain(137..=200).collect::<Vec<_>>());
    assert!(cluster.disks.iter().all(|disk| disk.iter().map(Vec::len).sum::<usize>() < 300 << 10));
}

#[test]
fn values_have_a_limit_and_logs_do_not_grow() {
    let mut cluster = Cluster::new(3);
    let long = "x".repeat(VALUE_BYTES_MAX);
    for base in 1..=40 {
        cluster.propose(0, base, &long);
        cluster.run(millis(300));
    }
    assert_eq!(cluster.decided[1].len(), 40);
    let now = cluster.now;
    let voter = cluster.voters[0].as_mut().unwrap();
    let too_long = vec![0; VALUE_BYTES_MAX + 1];
    assert_eq!(voter.propose(now, 41, &too_long), Err(ProposeError::TooLong(VALUE_BYTES_MAX + 1)));
    for disk in &cluster.disks {
        let octets: usize = disk.iter().map(Vec::len).sum();
        assert!(octets < 2 << 20, "{octets} octets on a disk");
    }
    cluster.voters[2] = None;
    cluster.start(2);
    cluster.run(millis(300));
    assert_eq!(cluster.voters[2].as_ref().unwrap().base(), 41);
}

#[test]
fn records_are_of_one_voter_among_its_own() {
    let mut cluster = Cluster::new(3);
    cluster.propose(0, 1, "a");
    cluster.run(millis(500));
    let own = &cluster.electorates[0];
    let records = || cluster.disks[0].iter().map(Vec::as_slice);
    let reopened = |electorate: &Electorate| open(cluster.now, electorate, records()).map(|_| ());
    assert_eq!(reopened(own), Ok(()));
    assert_eq!(reopened(&cluster.electorates[1]), Err(RestoreError::OtherVoters));
    let fewer = Electorate::new(own.own(), &own.voters()[..2], 1);
    if let Ok(fewer) = fewer {
        assert_eq!(reopened(&fewer), Err(RestoreError::OtherVoters));
    }
    let without_first = open(cluster.now, own, records().skip(1)).map(|_| ());
    assert_eq!(without_first, Err(RestoreError::NoBeginning));
    let without_second = records().take(1).chain(records().skip(2));
    assert_eq!(open(cluster.now, own, without_second).map(|_| ()), Err(RestoreError::Gap(1)));
}

#[test]
fn an_electorate_is_of_one_to_seven_with_this_one() {
    let all: Vec<VoterId> = (0..8).map(identity).collect();
    assert_eq!(Electorate::new(all[0], &[], 0), Err(ElectorateError::Count(0)));
    assert_eq!(Electorate::new(all[0], &all, 0), Err(ElectorateError::Count(8)));
    assert_eq!(Electorate::new(all[0], &all[1..3], 0), Err(ElectorateError::Stranger(all[0])));
    assert_eq!(Electorate::new(all[0], &[all[0], all[0]], 0), Err(ElectorateError::Twice));
}

#[test]
fn who_votes_alone_decides_at_once_and_remembers() {
    let mut cluster = Cluster::new(1);
    cluster.propose(0, 1, "a");
    cluster.propose(0, 2, "b");
    cluster.assert_decided(&["a", "b"]);
    cluster.start(0);
    let voter = cluster.voters[0].as_mut().unwrap();
    assert_eq!(voter.propose(cluster.now, 2, b"late"), Err(ProposeError::Decided(2)));
    // Nothing is decided before it is durable.
    voter.propose(cluster.now, 3, b"c").unwrap();
    let record = voter.take_record().unwrap();
    assert_eq!(voter.poll_decided(), None);
    voter.persisted(record.number);
    assert_eq!(voter.poll_decided().map(|decision| decision.base), Some(3));
}

#[test]
fn several_voters_are_not_for_one() {
    let alone = Electorate::new(identity(0), &[identity(0)], 0).unwrap();
    assert!(OmniPaxos::open(Instant(0), &alone, []).is_err());
}
