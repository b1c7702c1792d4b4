//! Datagrams of real sockets in networks of their own.

use std::net::UdpSocket;
use std::time::Instant;

use super::link::Conditions;
use super::*;

const PORT: u16 = 7_400;
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 0, 1);
/// How long a busy machine may take for what takes a moment.
const PATIENCE: Duration = Duration::from_secs(20);
/// Datagrams that are sent before what has arrived is taken: no buffer overflows.
const BURST: u64 = 50;
/// Set in the number of a datagram that only tells the end of a burst.
const MARK: u64 = 1 << 63;

/// A socket of each network, which hears the group.
fn sockets(network: &Network, count: usize) -> Vec<UdpSocket> {
    let socket = |port| {
        network.within(port, || {
            let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT))?;
            socket.join_multicast_v4(&GROUP, &address(port))?;
            socket.set_multicast_loop_v4(false)?;
            socket.set_read_timeout(Some(Duration::from_millis(1)))?;
            Ok(socket)
        })
    };
    (0..count).map(|port| socket(port).unwrap()).collect()
}

fn pair(seed: u64, conditions: Conditions) -> (Network, Vec<UdpSocket>) {
    let network = Network::new(2, seed).unwrap();
    let sockets = sockets(&network, 2);
    network.switch().change(|_, _| Some(conditions));
    (network, sockets)
}

fn send(socket: &UdpSocket, to: Ipv4Addr, number: u64, bytes: usize) {
    let mut octets = number.to_le_bytes().to_vec();
    octets.resize(bytes, 0);
    socket.send_to(&octets, (to, PORT)).unwrap();
}

fn receive(socket: &UdpSocket) -> Option<u64> {
    let mut octets = [0; 2_000];
    let count = socket.recv(&mut octets).ok()?;
    Some(u64::from_le_bytes(octets[..count][..8].try_into().unwrap()))
}

/// Sends so many to where all the others hear them, or one does; the numbers that each received.
fn exchange(from: &UdpSocket, others: &[UdpSocket], to: Ipv4Addr, count: u64) -> Vec<Vec<u64>> {
    let mut received = vec![Vec::new(); others.len()];
    let end = Instant::now() + PATIENCE;
    for burst in 0..count / BURST {
        (burst * BURST..(burst + 1) * BURST).for_each(|number| send(from, to, number, 64));
        for (socket, received) in others.iter().zip(&mut received) {
            // Marks are lost, too, and come twice.
            loop {
                assert!(Instant::now() < end, "the end of burst {burst} does not arrive");
                match receive(socket) {
                    Some(mark) if mark == MARK | burst => break,
                    Some(number) if number & MARK == 0 => received.push(number),
                    Some(_) => {}
                    None => send(from, to, MARK | burst, 64),
                }
            }
        }
    }
    received
}

/// Waits for what happens soon.
fn until(what: &str, mut happens: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !happens() {
        assert!(Instant::now() < end, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn without_conditions_every_datagram_arrives_in_order() {
    let (_network, sockets) = pair(1, Conditions::default());
    let received = exchange(&sockets[0], &sockets[1..], address(1), 2_000);
    assert_eq!(received, [(0..2_000).collect::<Vec<u64>>()]);
}

#[test]
fn of_ten_thousand_datagrams_as_many_are_lost_as_asked_for() {
    let (network, sockets) = pair(2, Conditions { loss_permille: 200, ..Conditions::default() });
    let received = exchange(&sockets[0], &sockets[1..], address(1), 10_000);
    assert!(received[0].is_sorted_by(|a, b| a < b), "in order, none twice");
    assert!(received[0].len().abs_diff(8_000) < 200, "{}", received[0].len());
    assert!(network.switch().counts(0, 1).lost >= 10_000 - received[0].len() as u64);
}

#[test]
fn datagrams_come_twice_as_often_as_asked_for() {
    let (_network, sockets) = pair(3, Conditions { duplicate_permille: 50, ..Conditions::default() });
    let mut received = exchange(&sockets[0], &sockets[1..], address(1), 5_000).remove(0);
    assert!(received.len().abs_diff(5_250) < 100, "{}", received.len());
    received.dedup();
    assert_eq!(received, (0..5_000).collect::<Vec<u64>>());
}

#[test]
fn datagrams_overtake_one_another_and_all_arrive() {
    let (_network, sockets) = pair(4, Conditions { reorder_permille: 250, ..Conditions::default() });
    (0..BURST).for_each(|number| send(&sockets[0], address(1), number, 64));
    let mut received = Vec::new();
    until("all arrive", || {
        received.extend(receive(&sockets[1]));
        received.len() as u64 == BURST
    });
    assert!(!received.is_sorted(), "{received:?}");
    received.sort_unstable();
    assert_eq!(received, (0..BURST).collect::<Vec<u64>>());
}

#[test]
fn a_cut_in_one_direction_lets_nothing_pass_there_and_all_in_the_other() {
    let (network, sockets) = pair(5, Conditions::default());
    network.switch().change(|from, _| Some(Conditions { cut: from == 0, ..Conditions::default() }));
    (0..100).for_each(|number| send(&sockets[0], address(1), number, 64));
    until("all is cut", || network.switch().counts(0, 1).cut >= 100);
    let received = exchange(&sockets[1], &sockets[..1], address(0), 200);
    assert_eq!(received, [(0..200).collect::<Vec<u64>>()]);
    assert_eq!((receive(&sockets[1]), network.switch().counts(0, 1).passed), (None, 0));
    network.switch().change(|_, _| Some(Conditions::default()));
    send(&sockets[0], address(1), 100, 64);
    until("it arrives after healing", || receive(&sockets[1]) == Some(100));
}

#[test]
fn multicast_reaches_everybody_unless_a_link_drops_it() {
    let network = Network::new(3, 6).unwrap();
    let sockets = sockets(&network, 3);
    let received = exchange(&sockets[0], &sockets[1..], GROUP, 500);
    assert_eq!(received, vec![(0..500).collect::<Vec<u64>>(); 2]);
    let drops = Conditions { drops_multicast: true, ..Conditions::default() };
    network.switch().change(|from, to| ((from, to) == (0, 2)).then_some(drops));
    let received = exchange(&sockets[0], &sockets[1..2], GROUP, 500);
    assert_eq!(received, [(0..500).collect::<Vec<u64>>()]);
    assert!(network.switch().counts(0, 2).multicast >= 500);
    // What is for it alone arrives.
    send(&sockets[0], address(2), 7, 64);
    until("unicast arrives", || receive(&sockets[2]) == Some(7));
}

#[test]
fn delayed_datagrams_do_not_arrive_before_their_time() {
    let delay = Duration::from_millis(30);
    let (_network, sockets) = pair(7, Conditions { delay, ..Conditions::default() });
    for number in 0..5 {
        let begin = Instant::now();
        send(&sockets[0], address(1), number, 64);
        until("it arrives", || receive(&sockets[1]) == Some(number));
        assert!(begin.elapsed() >= delay, "{:?}", begin.elapsed());
    }
}

#[test]
fn packets_longer_than_a_link_carries_are_dropped() {
    let (network, sockets) = pair(8, Conditions { mtu_bytes: Some(1_000), ..Conditions::default() });
    send(&sockets[0], address(1), 1, 1_200);
    send(&sockets[0], address(1), 2, 900);
    let mut received = None;
    until("the short one arrives", || {
        received = receive(&sockets[1]);
        received.is_some()
    });
    assert_eq!((received, network.switch().counts(0, 1).too_long), (Some(2), 1));
}
