//! Participants of one host whose processes share memory, or do not.

use proptest::prelude::*;

use super::neighbours::{is_unmatch, member};
use super::network::{Network, config, group, prefix, udp};
use super::peer::{announcement, dissect};
use crate::discovery::builtin::ParticipantData;
use crate::discovery::{
    Command, LocalLocators, MatchedReader, MemoryRefusal, ParticipantConfig, UsedTransport,
};
use crate::guid::{EntityId, GuidPrefix};
use crate::locator::{Locator, NodeId};
use crate::qos::{Durability, QosSet};
use crate::stats::DropReason;
use crate::time::Duration;
use crate::tuning::discovery::{LINK_PAUSE_FIRST, LINK_PAUSE_MAX, LINK_WAIT_MAX, LINKS_MAX};

fn node_of(process: usize) -> NodeId {
    let [high, low] = (process as u16).to_be_bytes();
    let mut node = [9; 16];
    node[14..].copy_from_slice(&[high, low]);
    node
}

/// A participant of a process that shares memory.
fn sharing(index: usize, process: usize) -> ParticipantConfig {
    let mut config = member(index, process);
    config.locators.node_id = Some(node_of(process));
    config
}

fn add(network: &mut Network, process: usize, config: ParticipantConfig) -> usize {
    let index = network.add_to(process, config);
    network.add_writer(index, QosSet::writer());
    network.add_reader(index, QosSet::reader());
    network.start(index);
    index
}

/// Two processes of one host with a participant each, that know each other and wait for a link.
fn waiting() -> Network {
    let mut network = Network::new();
    for index in 0..2 {
        add(&mut network, index, sharing(index, index));
    }
    network.run_for(Duration::from_millis(10));
    network
}

fn answer(network: &mut Network, index: usize, node: NodeId, answer: Result<(), MemoryRefusal>) {
    network.call(index, |participant, now, out| participant.memory_link(now, node, answer, out));
}

const fn is_link(command: &Command) -> bool {
    matches!(command, Command::Link { .. })
}

/// When a participant asked for a link with a node.
fn asked(network: &Network, index: usize, node: NodeId) -> Vec<u64> {
    let asks = network.nodes[index].commands.iter().filter(|(_, it)| *it == Command::Link { node });
    asks.map(|(at, _)| *at).collect()
}

/// What the writer of a participant was told of the reader of another one, and when.
fn told(network: &Network, index: usize, of: usize) -> Vec<(u64, &MatchedReader)> {
    let commands = network.nodes[index].commands.iter();
    let told = commands.filter_map(|(at, command)| match command {
        Command::MatchReader { reader, .. } if reader.guid.prefix == prefix(of) => Some((*at, &**reader)),
        _ => None,
    });
    told.collect()
}

fn last_path(network: &Network, index: usize, of: usize) -> Option<Locator> {
    told(network, index, of).last().map(|(_, reader)| reader.locators[0])
}

fn transport(network: &Network, index: usize, of: usize) -> UsedTransport {
    network.nodes[index].participant.transport_of(prefix(of)).unwrap()
}

const REFUSED: UsedTransport = UsedTransport::Udp(MemoryRefusal::Refused);

#[test]
fn a_process_that_could_open_no_memory_says_so_and_not_that_it_was_told_to() {
    for (refusal, told) in
        [(None, MemoryRefusal::Off), (Some(MemoryRefusal::NoMemory), MemoryRefusal::NoMemory)]
    {
        let mut network = Network::new();
        for index in 0..2 {
            let mut config = sharing(index, index);
            if index == 0 {
                (config.locators.node_id, config.locators.memory_refusal) = (None, refusal);
            }
            add(&mut network, index, config);
        }
        network.run_for(Duration::from_millis(300));
        assert_eq!(transport(&network, 0, 0), UsedTransport::Udp(told));
        assert_eq!(transport(&network, 0, 1), UsedTransport::Udp(told));
        assert_eq!(transport(&network, 1, 0), UsedTransport::Udp(MemoryRefusal::PeerOff));
    }
}

#[test]
fn endpoints_are_matched_when_memory_is_shared_and_then_by_memory_alone() {
    let mut network = waiting();
    assert_eq!(asked(&network, 0, node_of(1)).len(), 1);
    assert_eq!(told(&network, 0, 1), [], "held");
    assert_eq!(transport(&network, 0, 1), UsedTransport::Udp(MemoryRefusal::Awaited));
    answer(&mut network, 0, node_of(1), Ok(()));
    let [(at, reader)] = told(&network, 0, 1)[..] else { panic!("once") };
    assert_eq!(at, network.now);
    assert_eq!(reader.locators, [Locator::memory(node_of(1))]);
    assert!(reader.same_host && reader.urgent.is_none());
    assert!(reader.sources.admit(&Locator::memory(node_of(1))));
    assert!(reader.sources.admit(&udp("10.0.0.1", 40_000)), "what was on its way by UDP");
    assert!(!reader.sources.admit(&Locator::memory(node_of(2))), "another link");
    assert_eq!(transport(&network, 0, 1), UsedTransport::Memory);
    let writer = network.nodes[0].commands.iter().find_map(|(_, command)| match command {
        Command::MatchWriter { writer, .. } if writer.guid.prefix == prefix(1) => Some(writer),
        _ => None,
    });
    let writer = writer.unwrap();
    assert_eq!(writer.locators, [Locator::memory(node_of(1))]);
    assert!(writer.sources.admit(&Locator::memory(node_of(1))));
    // It stays so, and nobody is asked again.
    network.run_for(Duration::from_secs(120));
    assert_eq!((told(&network, 0, 1).len(), asked(&network, 0, node_of(1)).len()), (1, 1));
}

#[test]
fn who_gets_no_answer_is_matched_by_udp_in_time_and_by_memory_when_it_comes() {
    let mut network = waiting();
    network.run_for(Duration::from_millis(100));
    let [asked_at] = asked(&network, 0, node_of(1))[..] else { panic!("once") };
    let [(at, reader)] = told(&network, 0, 1)[..] else { panic!("once") };
    assert_eq!(at, asked_at + LINK_WAIT_MAX.0 as u64);
    assert_eq!(reader.locators, [udp("10.0.0.1", 7_413)]);
    assert_eq!(transport(&network, 0, 1), UsedTransport::Udp(MemoryRefusal::TimedOut));
    // What the other side knew first is heard.
    assert!(reader.sources.admit(&Locator::memory(node_of(1))));
    answer(&mut network, 0, node_of(1), Ok(()));
    assert_eq!(last_path(&network, 0, 1), Some(Locator::memory(node_of(1))));
    assert_eq!(network.count(0, is_unmatch), 0);
}

#[test]
fn a_refusal_lets_endpoints_match_by_udp_at_once() {
    let mut network = waiting();
    let now = network.now;
    answer(&mut network, 0, node_of(1), Err(MemoryRefusal::OtherUser(7)));
    assert_eq!(told(&network, 0, 1).iter().map(|(at, _)| *at).collect::<Vec<_>>(), [now]);
    assert_eq!(last_path(&network, 0, 1), Some(udp("10.0.0.1", 7_413)));
    assert_eq!(transport(&network, 0, 1).to_string(), "UDP: the other process is of user 7");
    network.run_for(Duration::from_secs(300));
    assert_eq!(asked(&network, 0, node_of(1)).len(), 1, "that does not pass by itself");
    let qos = QosSet { user_data: vec![1], ..QosSet::default() };
    network.call(1, |participant, now, out| participant.set_qos(now, qos, out));
    network.run_for(Duration::from_millis(10));
    assert_eq!(asked(&network, 0, node_of(1)).len(), 2, "it is somebody else now");
}

#[test]
fn a_link_that_is_there_before_the_endpoints_are_known_holds_nothing_up() {
    let mut network = Network::new();
    network.loses = Some(|bytes| dissect(bytes).data.iter().any(|it| it.writer != EntityId::SPDP_WRITER));
    for index in 0..2 {
        add(&mut network, index, sharing(index, index));
    }
    network.run_for(Duration::from_millis(10));
    answer(&mut network, 0, node_of(1), Ok(()));
    assert_eq!(told(&network, 0, 1), []);
    network.loses = None;
    network.run_for(Duration::from_secs(2));
    let paths: Vec<_> = told(&network, 0, 1).iter().map(|(_, it)| it.locators[0]).collect();
    assert_eq!(paths, [Locator::memory(node_of(1))]);
}

#[test]
fn what_does_not_match_is_told_without_waiting() {
    let mut network = Network::new();
    for index in 0..2 {
        network.add_to(index, sharing(index, index));
    }
    network.add_writer(0, QosSet::writer());
    network.add_reader(1, QosSet::reader().durability(Durability::TransientLocal));
    (0..2).for_each(|index| network.start(index));
    network.run_for(Duration::from_millis(10));
    assert_eq!(network.count(0, |it| matches!(it, Command::IncompatibleReader { .. })), 1);
}

#[test]
fn a_link_that_ends_gives_way_to_udp_and_is_made_again() {
    let mut network = waiting();
    answer(&mut network, 0, node_of(1), Ok(()));
    network.run_for(Duration::from_millis(500));
    let ended = network.now;
    answer(&mut network, 0, node_of(1), Err(MemoryRefusal::Ended));
    assert_eq!(last_path(&network, 0, 1), Some(udp("10.0.0.1", 7_413)), "at once");
    let again = ended + LINK_PAUSE_FIRST.0 as u64;
    network.run_until(again - 1);
    assert_eq!(asked(&network, 0, node_of(1)).len(), 1);
    network.run_until(again);
    assert_eq!(asked(&network, 0, node_of(1)).len(), 2);
    answer(&mut network, 0, node_of(1), Ok(()));
    assert_eq!(last_path(&network, 0, 1), Some(Locator::memory(node_of(1))));
    assert_eq!(network.count(0, is_unmatch), 0);
}

#[test]
fn who_does_not_answer_when_its_link_has_ended_is_gone_long_before_its_lease_ends() {
    let mut network = waiting();
    let follower = add(&mut network, 0, sharing(2, 0));
    for index in [0, follower] {
        answer(&mut network, index, node_of(1), Ok(()));
    }
    network.run_for(Duration::from_millis(500));
    network.nodes[1].up = false;
    for index in [0, follower] {
        answer(&mut network, index, node_of(1), Err(MemoryRefusal::Ended));
    }
    network.run_for(Duration::from_millis(1_100));
    for index in [0, follower] {
        assert_eq!(network.nodes[index].participant.transport_of(prefix(1)), None);
        assert_eq!(network.count(index, is_unmatch), 2, "its writer and its reader");
    }
}

#[test]
fn participants_of_a_process_that_the_kernel_says_has_ended_are_gone_at_once_linked_or_not() {
    for answers in [&[Ok(())][..], &[Ok(()), Err(MemoryRefusal::Ended)], &[]] {
        let mut network = waiting();
        answers.iter().for_each(|it| answer(&mut network, 0, node_of(1), *it));
        network.nodes[1].up = false;
        answer(&mut network, 0, node_of(1), Err(MemoryRefusal::ProcessGone));
        assert_eq!(network.nodes[0].participant.transport_of(prefix(1)), None);
        let matched = if answers.is_empty() { 0 } else { 2 };
        assert_eq!(network.count(0, is_unmatch), matched, "its writer and its reader");
    }
}

#[test]
fn pauses_between_attempts_double() {
    let mut network = waiting();
    for _ in 0..400 {
        network.run_for(Duration::from_secs(1));
        answer(&mut network, 0, node_of(1), Err(MemoryRefusal::Refused));
    }
    let at = asked(&network, 0, node_of(1));
    let pauses: Vec<_> = at.windows(2).map(|pair| (pair[1] - pair[0]) / 1_000_000_000).collect();
    assert_eq!(pauses[..6], [1, 2, 4, 8, 16, 32], "{pauses:?}");
    let longest = LINK_PAUSE_MAX.0 as u64 / 1_000_000_000;
    assert!(pauses[6..].iter().all(|pause| *pause == longest), "{pauses:?}");
    assert_eq!(told(&network, 0, 1).len(), 1, "what is the same is not told again");
    assert_eq!(transport(&network, 0, 1), REFUSED);
}

#[test]
fn a_node_is_asked_once_for_all_of_its_participants() {
    let mut network = waiting();
    answer(&mut network, 0, node_of(1), Ok(()));
    let second = add(&mut network, 1, sharing(2, 1));
    network.run_for(Duration::from_millis(200));
    assert_eq!(asked(&network, 0, node_of(1)).len(), 1);
    let [(_, reader)] = told(&network, 0, second)[..] else { panic!("once") };
    assert_eq!(reader.locators, [Locator::memory(node_of(1))]);
    // The last of them takes what is known of the node along.
    for index in [1, second] {
        network.call(index, |participant, now, out| participant.shutdown(now, out));
        network.nodes[index].up = false;
        network.run_for(Duration::from_millis(10));
    }
    add(&mut network, 1, sharing(3, 1));
    network.run_for(Duration::from_millis(200));
    assert_eq!(asked(&network, 0, node_of(1)).len(), 2);
}

#[test]
fn those_who_follow_a_lead_hold_and_match_as_it_does() {
    let mut network = waiting();
    let follower = add(&mut network, 0, sharing(2, 0));
    assert_eq!(asked(&network, follower, node_of(1)).len(), 1);
    assert_eq!(told(&network, follower, 1), []);
    answer(&mut network, follower, node_of(1), Ok(()));
    network.run_for(Duration::from_millis(500));
    let paths: Vec<_> = told(&network, follower, 1).iter().map(|(_, it)| it.locators[0]).collect();
    assert_eq!(paths, [Locator::memory(node_of(1))]);
    assert_eq!(told(&network, follower, 0)[0].1.locators, [Locator::memory(node_of(0))], "its own process");
}

#[test]
fn endpoints_of_one_process_reach_each_other_by_its_own_memory() {
    let mut network = Network::new();
    for index in 0..2 {
        add(&mut network, 0, sharing(index, 0));
    }
    for (index, of) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let [(_, reader)] = told(&network, index, of)[..] else { panic!("once") };
        assert_eq!(reader.locators, [Locator::memory(node_of(0))]);
        assert!(reader.is_of_own_process && reader.urgent.is_none());
        assert!(reader.sources.admit(&Locator::memory(node_of(0))));
        assert!(!reader.sources.admit(&Locator::memory(node_of(1))));
        assert_eq!(transport(&network, index, of), UsedTransport::Memory);
    }
    assert_eq!(network.count(0, is_link), 0);
}

#[test]
fn who_shares_no_memory_is_matched_by_udp_at_once() {
    let mut network = Network::new();
    let (off, on) = (add(&mut network, 0, member(0, 0)), add(&mut network, 1, sharing(1, 1)));
    network.run_for(Duration::from_millis(10));
    for (index, of, why) in [(on, off, MemoryRefusal::PeerOff), (off, on, MemoryRefusal::Off)] {
        assert_eq!(told(&network, index, of).len(), 1);
        assert_eq!(transport(&network, index, of), UsedTransport::Udp(why));
        assert_eq!(network.count(index, is_link), 0);
    }
    // Another host does not even ask.
    let mut elsewhere = config(2);
    elsewhere.locators.node_id = Some(node_of(2));
    let far = add(&mut network, 2, elsewhere);
    network.run_for(Duration::from_millis(300));
    assert_eq!(told(&network, on, far).len(), 1);
    assert_eq!(transport(&network, on, far), UsedTransport::Udp(MemoryRefusal::OtherHost));
    assert_eq!(network.count(on, is_link), 0);
}

#[test]
fn r8_who_claims_to_be_of_our_own_node_or_of_another_gains_nothing() {
    let mut network = Network::new();
    let victim = add(&mut network, 0, sharing(0, 0));
    let mut liar = member(1, 1);
    liar.locators.node_id = Some(node_of(0));
    let liar = add(&mut network, 1, liar);
    let mut far = config(2);
    far.locators.node_id = Some(node_of(0));
    let far = add(&mut network, 2, far);
    network.run_for(Duration::from_millis(300));
    assert_eq!(network.count(victim, is_link), 0);
    assert_eq!(transport(&network, victim, liar), UsedTransport::Udp(MemoryRefusal::ForeignNode));
    assert_eq!(last_path(&network, victim, liar), Some(udp("10.0.0.1", 7_413)));
    assert_eq!(transport(&network, victim, far), UsedTransport::Udp(MemoryRefusal::OtherHost));
    assert!(network.drops(victim, DropReason::SpoofSuspected) > 0);

    // What comes from a node is of the participants that announced it.
    let honest = add(&mut network, 3, sharing(3, 3));
    network.run_for(Duration::from_millis(300));
    let sources = |of| told(&network, victim, of).last().unwrap().1.sources.clone();
    assert!(sources(honest).admit(&Locator::memory(node_of(3))));
    assert!(!sources(liar).admit(&Locator::memory(node_of(3))));
    assert!(!sources(victim).admit(&Locator::memory(node_of(3))), "our own neither");
}

#[test]
fn r8_discovery_traffic_does_not_come_by_memory() {
    let mut network = waiting();
    answer(&mut network, 0, node_of(1), Ok(()));
    let mut data = ParticipantData::new(GuidPrefix([7; 12]).participant());
    data.meta_unicast = vec![udp("10.0.0.9", 7_410)];
    let known = network.nodes[0].participant.remote_participants().count();
    let before = network.drops(0, DropReason::SpoofSuspected);
    network.inject(Locator::memory(node_of(1)), group(), &announcement(&data, GuidPrefix::UNKNOWN));
    network.run_for(Duration::from_millis(10));
    assert_eq!(network.nodes[0].participant.remote_participants().count(), known);
    assert_eq!(network.drops(0, DropReason::SpoofSuspected), before + 1);
}

#[test]
fn r1_so_many_nodes_are_asked_and_the_others_counted() {
    let mut network = Network::new();
    let us = add(&mut network, 0, sharing(0, 0));
    for index in 1..=LINKS_MAX + 2 {
        let locators = LocalLocators { node_id: Some(node_of(index)), ..sharing(1, 1).locators };
        let liar = ParticipantConfig { locators, ..ParticipantConfig::new(prefix(index), 0) };
        network.add_to(1, liar);
        network.start(index);
    }
    let mut answered = 0;
    for _ in 0..60 {
        network.run_for(Duration::from_millis(10));
        let asks = network.nodes[us].commands.iter().filter_map(|(_, command)| match command {
            Command::Link { node } => Some(*node),
            _ => None,
        });
        let fresh: Vec<_> = asks.skip(answered).collect();
        answered += fresh.len();
        fresh.into_iter().for_each(|node| answer(&mut network, us, node, Ok(())));
    }
    assert_eq!(answered, LINKS_MAX);
    let left_out = UsedTransport::Udp(MemoryRefusal::TooManyLinks);
    let is_left_out = |network: &Network, index| transport(network, us, index) == left_out;
    let [one, other] = (1..=LINKS_MAX + 2).filter(|it| is_left_out(&network, *it)).collect::<Vec<_>>()[..]
    else {
        panic!("two too many");
    };
    assert!(network.drops(us, DropReason::DiscoveryLimit) >= 2);
    // Who shares no memory gives way to who may.
    let refused = (1..).find(|index| ![one, other].contains(index)).unwrap();
    answer(&mut network, us, node_of(refused), Err(MemoryRefusal::Version));
    let qos = QosSet { user_data: vec![1], ..QosSet::default() };
    network.call(one, |participant, now, out| participant.set_qos(now, qos, out));
    network.run_for(Duration::from_millis(10));
    assert_eq!(asked(&network, us, node_of(one)).len(), 1);
    assert!(is_left_out(&network, refused) && is_left_out(&network, other));
}

#[test]
fn a_node_is_announced_to_those_who_read_it_and_may_be_malformed() {
    let mut data = ParticipantData::new(prefix(1).participant());
    let without = data.encode();
    data.node_id = Some(node_of(3));
    let with = data.encode();
    assert_eq!(with.len(), without.len() + 20);
    let at = with.windows(4).position(|it| *it == [0x04, 0x8f, 16, 0]).unwrap();
    assert_eq!(with[at + 4..at + 20], node_of(3));
    assert_eq!(ParticipantData::decode(&with).unwrap(), data);
    // Of another product it means something else.
    let foreign = ParticipantData { vendor: [1, 0x10], ..data.clone() };
    assert_eq!(ParticipantData::decode(&foreign.encode()).unwrap().node_id, None);
    let mut short = with[..at].to_vec();
    short.extend([0x04, 0x8f, 4, 0, 1, 2, 3, 4]);
    short.extend(&with[at + 20..]);
    let read = ParticipantData::decode(&short).unwrap();
    assert_eq!((read.node_id, read.malformed), (None, 1));
}

/// What may happen to a link, and when.
#[derive(Clone, Copy, Debug)]
enum Step {
    Answer(Result<(), MemoryRefusal>),
    Wait(u16),
    /// The peer announces that it is of another node, or of none.
    Move(Option<u8>),
    AddWriter,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let refusal = prop_oneof![
        Just(MemoryRefusal::Ended),
        Just(MemoryRefusal::TimedOut),
        Just(MemoryRefusal::Version),
        Just(MemoryRefusal::NoSocket)
    ];
    let step = prop_oneof![
        3 => Just(Step::Answer(Ok(()))),
        3 => refusal.prop_map(|reason| Step::Answer(Err(reason))),
        4 => (0..200_u16).prop_map(Step::Wait),
        1 => (5_000..40_000_u16).prop_map(Step::Wait),
        1 => proptest::option::of(1..4_u8).prop_map(Step::Move),
        1 => Just(Step::AddWriter),
    ];
    proptest::collection::vec(step, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever the driver answers and when: 60 ms later everything is matched, by memory exactly if the last
    /// answer for the peer's node was that there is a link.
    #[test]
    fn endpoints_are_reached_as_the_last_answer_says(steps in steps()) {
        let mut network = waiting();
        let (mut node, mut linked, mut writers) = (Some(node_of(1)), false, 1);
        for step in steps {
            match step {
                Step::Answer(result) => {
                    if let Some(node) = node {
                        answer(&mut network, 0, node, result);
                        linked = result.is_ok();
                    }
                }
                Step::Wait(millis) => network.run_for(Duration::from_millis(millis.into())),
                Step::Move(to) => {
                    let to = to.map(|it| node_of(it.into()));
                    let locators = LocalLocators { node_id: to, ..sharing(1, 1).locators };
                    network.call(1, |participant, now, out| participant.set_locators(now, locators, out));
                    network.run_for(Duration::from_millis(5));
                    linked &= to == node;
                    node = to;
                }
                Step::AddWriter => {
                    writers += 1;
                    let entity = EntityId::user_writer(writers, true);
                    network.add_endpoint(1, entity, "Square", QosSet::writer());
                    network.run_for(Duration::from_millis(5));
                }
            }
        }
        network.run_for(Duration::from_millis(60));
        let expected = node.filter(|_| linked).map_or_else(|| udp("10.0.0.1", 7_413), Locator::memory);
        prop_assert_eq!(last_path(&network, 0, 1), Some(expected));
        let of_peer = network.matches(0).iter().filter(|(_, it)| it.prefix == prefix(1)).count();
        prop_assert_eq!(of_peer, 1 + writers as usize);
        prop_assert_eq!(transport(&network, 0, 1) == UsedTransport::Memory, linked);
        prop_assert_eq!(network.count(0, is_unmatch), 0);
    }
}
