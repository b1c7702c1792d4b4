//! Nodes of this process that reach each other as those of several do: by local sockets and memory.

use std::collections::VecDeque;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;

use plainsong_proto::guid::{EntityId, GuidPrefix};
use plainsong_proto::outbox::{DataHeader, Outbox};
use plainsong_proto::seq::SequenceNumber;
use plainsong_proto::wire::Heartbeat;

use super::handshake::{Hello, Message, VERSION};
use super::link::Half;
use super::local_socket::{Connection, Incoming, Listener};
use super::*;

const DOMAIN: u16 = 11;
const LONG: Duration = Duration::from_secs(30);

/// A node, whose local socket a thread serves.
struct Node {
    memory: Arc<Memory>,
    receiver: Receiver,
    changes: mpsc::Receiver<LinkChange>,
    thread: Option<JoinHandle<()>>,
    received: VecDeque<(Locator, i32)>,
}

fn config() -> Config {
    Config { memory_ring_bytes: 1 << 16, ..Config::default() }
}

impl Node {
    fn open() -> Self {
        Self::serve(Self::unserved(&config()))
    }

    fn unserved(config: &Config) -> Arc<Memory> {
        Arc::new(Memory::open(DOMAIN, config).unwrap())
    }

    fn serve(memory: Arc<Memory>) -> Self {
        let (tell, changes) = mpsc::channel();
        let served = Arc::clone(&memory);
        let thread = std::thread::spawn(move || {
            while !served.is_closed.load(Ordering::Acquire) {
                for change in served.serve() {
                    // Nobody may be interested any more.
                    let _ = tell.send(change);
                }
            }
            served.serve();
        });
        let receiver = memory.receiver();
        Self { memory, receiver, changes, thread: Some(thread), received: VecDeque::new() }
    }

    fn id(&self) -> NodeId {
        self.memory.node
    }

    fn change(&self) -> LinkChange {
        self.changes.recv_timeout(LONG).unwrap()
    }

    fn link(&self, other: &Self) {
        if self.memory.link(other.id()).is_none() {
            assert_eq!(self.change(), LinkChange { node: other.id(), result: Ok(()) });
        }
    }

    /// Sends a HEARTBEAT of that count.
    fn send(&self, to: NodeId, count: i32) -> bool {
        let mut out = Outbox::new();
        message(&mut out, to, count);
        let batch = Batch { out: &out, traffic_class: 0, recuts: false };
        let lost = self.memory.overflows();
        assert!(!self.memory.send(&batch).has_others);
        self.memory.overflows() == lost
    }

    /// What arrives next.
    fn receive(&mut self) -> (Locator, i32) {
        loop {
            if let Some(next) = self.received.pop_front() {
                return next;
            }
            self.look(true);
        }
    }

    fn look(&mut self, wait: bool) {
        let Self { memory, receiver, received, .. } = self;
        memory.receive(Traffic::User(0), receiver, wait, |it| {
            received.push_back((it.from, count_of(it.bytes)));
        });
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.memory.close();
        self.thread.take().unwrap().join().unwrap();
    }
}

fn message(out: &mut Outbox, to: NodeId, count: i32) {
    let heartbeat = Heartbeat {
        reader: EntityId::UNKNOWN,
        writer: EntityId::UNKNOWN,
        first: SequenceNumber(1),
        last: SequenceNumber(0),
        count,
        final_flag: true,
        liveliness: false,
        group: None,
    };
    let mut builder = out.message(GuidPrefix([1; 12]), &[Locator::memory(to)], 1_000);
    assert!(builder.heartbeat(&heartbeat));
    builder.finish();
}

/// The count of a HEARTBEAT without a group is what the message ends with.
fn count_of(bytes: &[u8]) -> i32 {
    i32::from_le_bytes(*bytes.last_chunk().unwrap())
}

#[test]
fn two_nodes_share_memory_and_what_one_sends_the_other_receives_in_order() {
    let (mut one, mut other) = (Node::open(), Node::open());
    one.link(&other);
    assert_eq!(other.change(), LinkChange { node: one.id(), result: Ok(()) });
    assert_eq!(other.memory.link(one.id()), Some(Ok(())));
    for count in 0..20_000 {
        // The ring has room for some 800.
        assert!(one.send(other.id(), count) && other.send(one.id(), -count));
        assert_eq!(other.receive(), (Locator::memory(one.id()), count));
        assert_eq!(one.receive(), (Locator::memory(other.id()), -count));
    }
}

#[test]
fn nodes_that_connect_to_each_other_at_once_have_one_link() {
    for _ in 0..50 {
        let (one, mut other) = (Node::open(), Node::open());
        assert_eq!(one.memory.link(other.id()), None);
        // It may be there by now.
        assert!(matches!(other.memory.link(one.id()), None | Some(Ok(()))));
        assert_eq!(one.change(), LinkChange { node: other.id(), result: Ok(()) });
        assert_eq!(other.change(), LinkChange { node: one.id(), result: Ok(()) });
        assert!(one.send(other.id(), 7));
        assert_eq!(other.receive().1, 7);
        assert_eq!(one.memory.links.load().len(), 1);
        let nothing = one.changes.recv_timeout(Duration::from_millis(2));
        assert_eq!(nothing, Err(RecvTimeoutError::Timeout), "the link stays");
    }
}

#[test]
fn a_receiver_that_sleeps_is_woken_by_a_peer_and_by_its_own_process() {
    let (one, mut other) = (Node::open(), Node::open());
    one.link(&other);
    let (own, id) = (Arc::clone(&other.memory), other.id());
    let taken = Arc::new(AtomicU32::new(0));
    let count_taken = Arc::clone(&taken);
    let receiving = std::thread::spawn(move || {
        let receive = |_| {
            let count = other.receive().1;
            count_taken.fetch_add(1, Ordering::SeqCst);
            count
        };
        let counts: Vec<i32> = (0..200).map(receive).collect();
        (counts, other)
    });
    for count in 0..200 {
        // Until it has all, and sleeps.
        while taken.load(Ordering::SeqCst) < count as u32 || !own.own.sleeps() {
            std::thread::yield_now();
        }
        if count % 2 == 0 {
            assert!(one.send(id, count));
        } else {
            let mut out = Outbox::new();
            message(&mut out, id, count);
            own.send(&Batch { out: &out, traffic_class: 0, recuts: false });
        }
    }
    let (counts, _other) = receiving.join().unwrap();
    let in_order: Vec<i32> = (0..200).collect();
    assert_eq!(counts, in_order);
}

/// As a thread does that writes: whether it is to receive that.
fn send_to_itself(memory: &Memory, count: i32) -> bool {
    let mut out = Outbox::new();
    message(&mut out, memory.node, count);
    let batch = Batch { out: &out, traffic_class: 0, recuts: false };
    let awaiting = own_traffic::Awaiting::begin(memory.node);
    memory.send(&batch);
    awaiting.end()
}

#[test]
fn a_sender_receives_while_the_receiver_sleeps_and_leaves_it_what_it_does_not_receive() {
    let mut node = Node::open();
    let memory = Arc::clone(&node.memory);
    let sends = |count| assert!(send_to_itself(&memory, count));
    let mut received = Vec::new();
    sends(1);
    memory.receive_own(|_| panic!("the receiver is awake"));
    assert_eq!(node.receive().1, 1);

    assert!(memory.begin_sleep());
    (2..4).for_each(sends);
    memory.receive_own(|it| {
        received.push(count_of(it.bytes));
        if received.len() == 1 {
            sends(4);
            memory.receive_own(|_| panic!("nothing is received within another"));
        }
        true
    });
    assert_eq!(received, [2, 3, 4]);
    assert!(memory.own.sleeps(), "and was not woken");

    (5..7).for_each(sends);
    memory.receive_own(|it| {
        received.push(count_of(it.bytes));
        false
    });
    assert!(received.ends_with(&[4, 5]) && !memory.own.sleeps());
    assert_eq!(node.receive().1, 6);

    assert!(memory.begin_sleep());
    (7..9).for_each(sends);
    let panics = || memory.receive_own(|_| panic!("meant"));
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).is_err());
    assert_eq!(node.receive().1, 8, "whoever panics does not keep the right to receive");

    assert!(memory.begin_sleep());
    (0..OWN_RECORDS_MAX as i32 + 2).for_each(sends);
    let mut many = 0;
    memory.receive_own(|_| {
        many += 1;
        true
    });
    assert_eq!(many, OWN_RECORDS_MAX);
    assert_eq!(node.receive().1, many as i32, "the receiver goes on");
}

#[test]
fn data_is_received_nowhere_but_where_the_user_said() {
    for (config, may_send) in [
        (config(), true),
        (Config { receive_cpus: vec![0], ..config() }, false),
        (Config { receive_priority: 1, ..config() }, false),
    ] {
        let memory = Node::unserved(&config);
        assert_eq!(memory.own_queue(), may_send.then_some(memory.node));
    }
}

#[test]
fn who_slept_before_there_was_a_link_is_woken_by_it() {
    let (one, mut other) = (Node::open(), Node::open());
    let (own, id) = (Arc::clone(&other.memory), other.id());
    let receiving = std::thread::spawn(move || (other.receive().1, other));
    while !own.own.sleeps() {
        std::thread::yield_now();
    }
    assert_eq!(one.memory.link(id), None);
    assert!(one.change().result.is_ok() && one.send(id, 7));
    assert_eq!(receiving.join().unwrap().0, 7);
}

#[test]
fn when_a_node_goes_what_it_sent_is_received_and_the_other_hears_of_it() {
    let (one, mut other) = (Node::open(), Node::open());
    one.link(&other);
    assert!(other.change().result.is_ok());
    for count in 0..10 {
        assert!(one.send(other.id(), count));
    }
    let gone = one.id();
    drop(one);
    assert_eq!(other.change(), LinkChange { node: gone, result: Err(MemoryRefusal::Ended) });
    for count in 0..10 {
        assert_eq!(other.receive().1, count);
    }
    other.look(false);
    assert!(other.memory.incoming.load().is_empty(), "the memory is given back");
    assert!(!other.send(gone, 1), "lost, and counted");
    assert_eq!(other.memory.link(gone), None);
    assert_eq!(other.change(), LinkChange { node: gone, result: Err(MemoryRefusal::NoSocket) });
    assert_eq!(other.memory.descriptors.load().len(), other.memory_descriptors_of_a_new_one());
}

impl Node {
    fn memory_descriptors_of_a_new_one(&self) -> usize {
        Self::unserved(&config()).descriptors.load().len()
    }
}

#[test]
fn a_node_that_does_not_answer_is_given_up_and_may_be_asked_again() {
    let (one, silent) = (Node::open(), Node::unserved(&config()));
    assert_eq!(one.memory.link(silent.node), None);
    assert_eq!(one.change(), LinkChange { node: silent.node, result: Err(MemoryRefusal::TimedOut) });
    let answers = Node::serve(silent);
    one.link(&answers);
}

#[test]
fn what_the_ring_has_no_room_for_is_lost_and_counted() {
    let (one, mut other) = (Node::open(), Node::open());
    one.link(&other);
    let sent = (0..).take_while(|count| one.send(other.id(), *count)).count();
    assert!(sent > 500, "{sent}");
    assert_eq!(one.memory.overflows(), 1);
    for count in 0..sent {
        assert_eq!(other.receive().1, i32::try_from(count).unwrap());
    }
    assert!(one.send(other.id(), -1));
    assert_eq!(other.receive().1, -1);
}

#[test]
fn a_waiter_and_its_waker_end_a_wait() {
    let (one, mut other) = (Node::open(), Node::open());
    one.link(&other);
    let waker = ThreadWaker::new().unwrap();
    let wait = |timeout| other.memory.wait(Traffic::User(0), Some(&waker), Some(timeout)).unwrap();
    // The link.
    assert!(wait(LONG).datagram);
    let woken = wait(Duration::from_millis(1));
    assert!(!woken.datagram && !woken.waker);
    waker.wake();
    assert!(wait(LONG).waker);
    waker.reset();
    one.send(other.id(), 1);
    assert!(wait(LONG).datagram);
    assert_eq!(other.receive().1, 1);
    // The ring was seen, and is not seen again.
    assert!(
        !other.memory.wait(Traffic::User(0), Some(&waker), Some(Duration::from_millis(1))).unwrap().datagram
    );
}

/// Says things that no node says.
struct Stranger(Connection);

impl Stranger {
    fn connect(to: &Node) -> Self {
        Self(Connection::open(DOMAIN, to.id()).unwrap())
    }

    fn say(&self, octets: &[u8], half: Option<&Half>) {
        let descriptors = half.map(Half::descriptors);
        // It may be hung up already.
        let _ = self.0.send(octets, descriptors.as_ref().map_or(&[], |it| &it[..]));
    }

    fn await_hang_up(&self) {
        let mut octets = [0; 256];
        let until = std::time::Instant::now() + LONG;
        while !matches!(self.0.receive(&mut octets).unwrap(), Incoming::HungUp) {
            assert!(std::time::Instant::now() < until);
            std::thread::yield_now();
        }
    }
}

#[test]
fn who_does_not_keep_to_the_handshake_is_hung_up_on_and_harms_nobody() {
    let (one, mut other) = (Node::open(), Node::open());
    let half = Half::new(1 << 16, 5).unwrap();
    let hello = Hello { version: VERSION, node: [9; 16], nonce: 5 };
    let say = |message: Message| message.to_octets();
    let strangers: [&[(Vec<u8>, bool)]; 8] = [
        &[(b"nonsense".to_vec(), false)],
        &[(say(Message::Proved), false)],
        &[(say(Message::SlabGone { id: 1 }), false)],
        &[(say(Message::Hello(hello)), false)],
        &[(say(Message::Hello(Hello { version: VERSION + 1, ..hello })), true)],
        &[(say(Message::Hello(Hello { nonce: 6, ..hello })), true)],
        &[(say(Message::Hello(Hello { node: other.id(), ..hello })), true)],
        // It has not seen our memory.
        &[(say(Message::Hello(hello)), true), (say(Message::Proved), false)],
    ];
    for (number, said) in strangers.into_iter().enumerate() {
        let stranger = Stranger::connect(&other);
        for (octets, with_half) in said {
            stranger.say(octets, with_half.then_some(&half));
        }
        stranger.await_hang_up();
        assert!(other.memory.links.load().is_empty(), "{number}");
    }
    one.link(&other);
    assert!(one.send(other.id(), 3));
    assert_eq!(other.receive().1, 3);
}

#[test]
fn a_peer_that_spoils_its_ring_loses_its_link_alone() {
    let (mut one, mut other) = (Node::open(), Node::open());
    one.link(&other);
    let half = Half::new(1 << 16, 5).unwrap();
    let stranger = Stranger::connect(&other);
    let hello = Hello { version: VERSION, node: [9; 16], nonce: 5 };
    stranger.say(&Message::Hello(hello).to_octets(), Some(&half));
    let mut octets = [0; 256];
    let until = std::time::Instant::now() + LONG;
    while other.memory.incoming.load().len() < 2 {
        assert!(std::time::Instant::now() < until);
        let _ = stranger.0.receive(&mut octets).unwrap();
    }
    half.spoil();
    other.look(false);
    stranger.await_hang_up();
    assert!(one.send(other.id(), 4) && other.send(one.id(), 5));
    assert_eq!((other.receive().1, one.receive().1), (4, 5));
    let until = std::time::Instant::now() + LONG;
    while other.memory.incoming.load().len() > 1 {
        assert!(std::time::Instant::now() < until);
        other.look(false);
    }
}

#[test]
fn a_node_is_gone_when_it_hung_up_and_nobody_listens_at_its_socket_any_more() {
    let one = Node::open();
    let node = [9; 16];
    let listener = Listener::bind(DOMAIN, node).unwrap();
    assert_eq!(one.memory.link(node), None);
    // As when its process is killed.
    let until = std::time::Instant::now() + LONG;
    let connection = loop {
        if let Some(connection) = listener.accept().unwrap() {
            break connection;
        }
        assert!(std::time::Instant::now() < until);
        std::thread::yield_now();
    };
    drop(listener);
    drop(connection);
    assert_eq!(one.change(), LinkChange { node, result: Err(MemoryRefusal::ProcessGone) });
}

#[test]
fn a_node_is_gone_also_when_nothing_was_sent_by_its_link_any_more() {
    let (one, mut other) = (Node::open(), Node::open());
    one.link(&other);
    assert_eq!(other.change(), LinkChange { node: one.id(), result: Ok(()) });
    // As when long samples find no chunk.
    let link = Arc::clone(&one.memory.links.load()[0]);
    link.close();
    assert_eq!(other.change(), LinkChange { node: one.id(), result: Err(MemoryRefusal::Ended) });
    other.look(false);
    let gone = one.id();
    // What came last is received first.
    drop((link, one));
    assert_eq!(other.change(), LinkChange { node: gone, result: Err(MemoryRefusal::ProcessGone) });
}

#[test]
fn a_node_that_hung_up_and_still_listens_is_not_gone() {
    let (one, other) = (Node::open(), Node::open());
    one.link(&other);
    assert_eq!(other.change(), LinkChange { node: one.id(), result: Ok(()) });
    one.memory.links.load().iter().for_each(|link| link.give_up());
    assert_eq!(other.change(), LinkChange { node: one.id(), result: Err(MemoryRefusal::Ended) });
    // Whoever asks again is answered.
    assert_eq!(other.memory.link(one.id()), None);
    assert_eq!(other.change(), LinkChange { node: one.id(), result: Ok(()) });
}

impl Node {
    /// Sends a DATA whose payload is long.
    fn send_long(&self, to: &[NodeId], payload: &Payload) {
        let data = DataHeader {
            reader: EntityId::UNKNOWN,
            writer: EntityId::UNKNOWN,
            sequence_number: SequenceNumber(1),
            inline_qos: &[],
            key_only: false,
        };
        let mut out = Outbox::new();
        let to: Vec<Locator> = to.iter().copied().map(Locator::memory).collect();
        let mut builder = out.message(GuidPrefix([1; 12]), &to, 1 << 30);
        assert!(builder.attached(&data, payload));
        builder.finish();
        self.memory.send(&Batch { out: &out, traffic_class: 0, recuts: false });
    }

    fn receive_long(&mut self) -> Payload {
        let mut payload = None;
        let until = std::time::Instant::now() + LONG;
        while payload.is_none() {
            assert!(std::time::Instant::now() < until);
            std::thread::yield_now();
            self.receiver.expects_one = true;
            self.memory.receive(Traffic::User(0), &mut self.receiver, false, |it| {
                payload = Some(it.attachment.map_or_else(
                    || {
                        let begin = it.bytes.len()
                            - usize::try_from(count_of(&it.bytes[it.bytes.len() - 4..])).unwrap();
                        Payload::from_vec(it.bytes[begin..].to_vec())
                    },
                    Payload::clone,
                ));
            });
        }
        payload.unwrap()
    }

    fn lent(&self) -> usize {
        let links = self.memory.links.load();
        links.iter().map(|link| link.lent(&self.memory.pool)).sum()
    }
}

/// So many octets, the last four of which tell how many.
fn long(bytes: usize) -> Payload {
    let mut octets: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
    octets[bytes - 4..].copy_from_slice(&(bytes as u32).to_le_bytes());
    Payload::from_vec(octets)
}

#[test]
fn a_long_payload_is_one_chunk_for_all_peers_and_stays_where_it_is() {
    let (one, mut peers) = (Node::open(), [Node::open(), Node::open(), Node::open()]);
    peers.iter().for_each(|peer| one.link(peer));
    let payload = long(1 << 20);
    let to: Vec<NodeId> = peers.iter().map(Node::id).collect();
    for _ in 0..100 {
        one.send_long(&to, &payload);
        for peer in &mut peers {
            let received = peer.receive_long();
            assert!(received.region().is_some() && received.as_slice() == payload.as_slice());
            // So that what follows it is aligned for any primitive type.
            assert_eq!(received.as_slice().as_ptr().addr() % 8, 4);
        }
        assert_eq!(one.lent(), 0, "all are back");
    }
    assert!(one.memory.pool.bytes() < 4 << 20, "{}", one.memory.pool.bytes());
    let later = |seconds| clock::mono().after(plainsong_proto::time::Duration::from_secs(seconds)).unwrap();
    one.memory.trim(later(0));
    one.memory.trim(later(10));
    assert_eq!(one.memory.pool.bytes(), 0);
    one.send_long(&to, &payload);
    peers.iter_mut().for_each(|peer| assert_eq!(peer.receive_long().len(), payload.len()));
}

#[test]
fn what_is_borrowed_outlives_who_lent_it_and_is_back_when_the_borrower_goes() {
    let (one, mut other) = (Node::open(), Node::open());
    one.link(&other);
    let payload = long(100_000);
    one.send_long(&[other.id()], &payload);
    let kept = other.receive_long();
    assert_eq!(one.lent(), 1);
    let id = other.id();
    drop(other);
    assert_eq!(one.change(), LinkChange { node: id, result: Err(MemoryRefusal::Ended) });
    assert_eq!(one.lent(), 0);
    drop(one);
    assert_eq!(kept.as_slice(), payload.as_slice());
}

#[test]
fn nothing_is_written_over_while_somebody_reads_it_though_the_link_has_ended() {
    let (one, mut other, mut third) = (Node::open(), Node::open(), Node::open());
    one.link(&other);
    one.link(&third);
    let payload = long(100_000);
    one.send_long(&[other.id()], &payload);
    let (kept, id) = (other.receive_long(), other.id());
    assert!(kept.region().is_some());
    drop(other);
    assert_eq!(one.change(), LinkChange { node: id, result: Err(MemoryRefusal::Ended) });
    // Each chunk that is free is used.
    for octet in 0..30 {
        let mut octets = vec![octet; 100_000];
        octets[99_996..].copy_from_slice(&100_000_u32.to_le_bytes());
        one.send_long(&[third.id()], &Payload::from_vec(octets));
        drop(third.receive_long());
    }
    assert!(kept.as_slice() == payload.as_slice());
    let is_idle = || {
        let later = clock::mono().after(plainsong_proto::time::Duration::from_secs(60)).unwrap();
        one.memory.trim(clock::mono());
        one.memory.trim(later);
        one.memory.pool.bytes() == 0
    };
    assert!(!is_idle());
    drop(kept);
    let until = std::time::Instant::now() + LONG;
    while !is_idle() {
        assert!(std::time::Instant::now() < until, "it is back");
        std::thread::yield_now();
    }
}

#[test]
fn a_peer_that_keeps_much_is_given_copies_and_the_pool_is_not_exhausted() {
    let config = Config { memory_pool_bytes_max: 1 << 20, ..config() };
    let (one, mut other) = (Node::serve(Node::unserved(&config)), Node::open());
    one.link(&other);
    let payload = long(50_000);
    let kept: Vec<Payload> = (0..100)
        .map(|_| {
            one.send_long(&[other.id()], &payload);
            other.receive_long()
        })
        .collect();
    assert!(kept.iter().all(|it| it.as_slice() == payload.as_slice()));
    let in_place = kept.iter().filter(|it| it.region().is_some()).count();
    assert!((1..10).contains(&in_place), "{in_place}");
    let copied = one.memory.copied() + other.memory.copied();
    assert_eq!(copied, 100 - in_place as u64, "each is counted where it was copied");
}

#[test]
fn where_there_is_no_chunk_a_payload_goes_behind_its_message_if_the_ring_takes_it() {
    let config = Config { memory_pool_bytes_max: 0, ..config() };
    let (one, mut other) = (Node::serve(Node::unserved(&config)), Node::open());
    one.link(&other);
    let payload = long(20_000);
    one.send_long(&[other.id()], &payload);
    let received = other.receive_long();
    assert!(received.region().is_none() && received.as_slice() == payload.as_slice());
    one.send_long(&[other.id()], &long(1 << 20));
    assert_eq!((one.memory.unsent(), one.memory.overflows()), (1, 0), "the pool is named, not the ring");
    assert!(one.memory.finds_no_chunk());
}

#[test]
fn a_long_payload_that_finds_no_chunk_is_not_forgotten_for_shorter_ones_that_do() {
    let config = Config { memory_pool_bytes_max: 1 << 20, ..config() };
    let (one, mut other) = (Node::serve(Node::unserved(&config)), Node::open());
    one.link(&other);
    assert!(other.change().result.is_ok());
    one.send_long(&[other.id()], &long(2 << 20));
    assert!(one.memory.finds_no_chunk());
    one.send_long(&[other.id()], &long(20_000));
    assert!(other.receive_long().region().is_some(), "it found one");
    assert!(one.memory.finds_no_chunk());
    assert_eq!(one.change(), LinkChange { node: other.id(), result: Err(MemoryRefusal::PoolUsedUp) });
}

fn with_pool(bytes_max: u64) -> Node {
    Node::serve(Node::unserved(&Config { memory_pool_bytes_max: bytes_max, ..config() }))
}

#[test]
fn few_octets_of_a_long_chunk_count_as_much_as_they_pin() {
    let (one, mut other) = (with_pool(16 << 20), Node::open());
    one.link(&other);
    let mut kept = Vec::new();
    for number in 0..100 {
        let mut loan = one.memory.loan(1 << 20).unwrap_or_else(|error| panic!("{number} are kept: {error}"));
        loan.truncate(5_000);
        loan.bytes_mut().copy_from_slice(long(5_000).as_slice());
        one.send_long(&[other.id()], &loan.payload());
        drop(loan);
        kept.push(other.receive_long());
        // It has taken back what was let go of before it lends more.
        one.lent();
    }
    let in_place = kept.iter().filter(|it| it.region().is_some()).count();
    assert!((1..=2).contains(&in_place), "{in_place} of 1 MiB, for few octets");
    assert!(kept.iter().all(|it| it.as_slice() == long(5_000).as_slice()));
}

#[test]
fn receivers_that_keep_what_they_get_leave_some_for_the_next() {
    let one = with_pool(16 << 20);
    let payload = long(200_000);
    let mut kept = Vec::new();
    for number in 0..12 {
        let mut peer = Node::open();
        one.link(&peer);
        let mut all = Vec::new();
        for _ in 0..20 {
            one.send_long(&[peer.id()], &payload);
            all.push(peer.receive_long());
        }
        assert!(all.iter().all(|it| it.as_slice() == payload.as_slice()));
        let in_place = all.iter().filter(|it| it.region().is_some()).count();
        assert!((1..20).contains(&in_place) || number > 5, "{in_place} of receiver {number}");
        kept.push((peer, all));
    }
    assert_eq!((one.memory.unsent(), one.memory.overflows()), (0, 0));
    assert!(one.memory.loan(4 << 20).is_ok());
}

#[test]
fn receivers_that_are_stopped_leave_some_for_the_next() {
    let one = with_pool(16 << 20);
    let (stopped, mut other) = ([(); 4].map(|()| Node::open()), Node::open());
    stopped.iter().for_each(|peer| one.link(peer));
    one.link(&other);
    let payload = long(200_000);
    for peer in &stopped {
        for _ in 0..40 {
            one.send_long(&[peer.id()], &payload);
        }
    }
    for _ in 0..40 {
        one.send_long(&[other.id()], &payload);
        assert_eq!(other.receive_long().as_slice(), payload.as_slice());
    }
    assert!(one.memory.loan(4 << 20).is_ok());
}

#[test]
fn what_is_kept_is_in_a_chunk_that_fits_it() {
    let memory = Node::unserved(&config());
    let truncated = |bytes| {
        let mut loan = memory.loan(1 << 20).unwrap();
        loan.truncate(bytes);
        loan.bytes_mut().copy_from_slice(long(bytes).as_slice());
        loan.payload()
    };
    for (bytes, expected) in
        [(1 << 20, Some(1_280 << 10)), (700_000, Some(1_280 << 10)), (5_000, Some(8_192)), (2_000, None)]
    {
        let payload = truncated(bytes);
        let place = payload.as_slice().as_ptr();
        let fitting = memory.fitting(payload);
        assert_eq!(fitting.as_slice(), long(bytes).as_slice());
        let (region, range) = fitting.region().unwrap();
        assert_eq!(chunk_of(&**region, &range).map(|(chunk, _)| chunk.capacity()), expected);
        let is_same = fitting.as_slice().as_ptr() == place;
        assert_eq!(is_same, expected == Some(1_280 << 10), "copied where that is worth it: {bytes}");
    }
    assert_eq!(memory.fitting(long(5_000)).as_slice(), long(5_000).as_slice());
}
