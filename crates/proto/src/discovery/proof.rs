//! Proof of address (R1): something went to an address, and nowhere else, and came back.
//!
//! A challenge is a HEARTBEAT of a built-in writer of SEDP that is not final and names an empty history at a number
//! nobody can guess: `firstSN` is that number, `lastSN` the one before. A reliable reader answers with an ACKNACK whose base is the
//! next number that it expects (RTPS 2.5 §8.4.12), which is the guessed-at number then. The changes of that writer are numbered above
//! all challenges ([`NUMBERS_AFTER`]), so a challenge makes nobody skip anything, and needs no INFO_DST, which is optional.
//!
//! A reader that expects more than that already cannot echo the number: we forgot its participant, which did not forget us, or
//! it moved. Plainsong answers such HEARTBEATs apart from what its reader expects.

use core::net::IpAddr;

use md5::{Digest, Md5};

use super::path::Host;
use crate::guid::{EntityId, GuidPrefix};
use crate::locator::Locator;
use crate::seq::{SequenceNumber, SequenceSet};
use crate::time::{Duration, Instant};
use crate::wire::{AckNack, Heartbeat};

/// Above the numbers of all challenges: the changes of built-in writers come after it. It is small, because Fast DDS looks at each
/// number that it skips (10^9 of them stop it for 10 s).
pub(super) const NUMBERS_AFTER: SequenceNumber = SequenceNumber(1 << 16);
/// Below all of them: numbers that readers come to by themselves.
const NUMBER_MIN: i64 = 1 << 8;
/// The next number is one of so many above the last: readers never go back.
const DRAWN_FROM: i64 = 1 << 13;
/// Challenges of one participant that wait to be answered: one for each address that it has.
const CHALLENGES_MAX: usize = 8;
/// Answers after this are not believed.
const LIFE: Duration = Duration::from_secs(60);
/// Wrong numbers after which a challenge is void. Who forges an address needs thousands of challenges, and sends more than it can draw.
const WRONG_MAX: u32 = 4;
/// Addresses one participant can prove, and from which it can answer; a host with more interfaces proves the latest.
const PROVEN_MAX: usize = 8;

/// Draws numbers that nobody outside can predict.
#[derive(Debug)]
pub(super) struct Numbers {
    secret: [u8; 16],
    drawn: u64,
}

/// What waits to be answered.
#[derive(Debug)]
struct Challenge {
    to: Locator,
    number: SequenceNumber,
    ends: Instant,
    wrong: u32,
}

/// Where a participant has proven to be.
#[derive(Debug, Default)]
pub(super) struct Proof {
    /// Challenges went there and were answered.
    addresses: Vec<IpAddr>,
    /// One went to this host.
    here: bool,
    /// Answers came from there: what it sends may have another address than what is sent to it (NAT, several interfaces).
    sources: Vec<(IpAddr, u16)>,
    challenges: Vec<Challenge>,
    /// The highest number it was told.
    highest: i64,
}

impl Numbers {
    pub(super) const fn new(secret: [u8; 16]) -> Self {
        Self { secret, drawn: 0 }
    }

    fn draw(&mut self, prefix: GuidPrefix, to: &Locator) -> i64 {
        self.drawn = self.drawn.wrapping_add(1);
        let digest = Md5::new()
            .chain_update(self.secret)
            .chain_update(self.drawn.to_le_bytes())
            .chain_update(prefix.0)
            .chain_update(to.address)
            .chain_update(to.port.to_le_bytes());
        let [one, two, three, four, ..] = <[u8; 16]>::from(digest.finalize());
        i64::from(u32::from_le_bytes([one, two, three, four]))
    }
}

/// Whether a HEARTBEAT is a challenge: no history of a Plainsong writer is there.
pub(super) fn is_challenge(heartbeat: &Heartbeat) -> bool {
    challenges(heartbeat.writer) && is_number(heartbeat.first) && heartbeat.last == heartbeat.first.previous()
}

/// The answer to a challenge, whatever the reader expects.
pub(super) const fn answer_to(heartbeat: &Heartbeat) -> AckNack {
    AckNack {
        reader: heartbeat.reader,
        writer: heartbeat.writer,
        missing: SequenceSet::empty(heartbeat.first),
        count: heartbeat.count,
        final_flag: true,
        heartbeat: None,
    }
}

/// Whether an ACKNACK answers a challenge, or repeats such an answer.
pub(super) fn is_answer(acknack: &AckNack) -> bool {
    challenges(acknack.writer) && is_number(acknack.missing.base())
}

/// Whether that writer's HEARTBEATs are challenges at times.
fn challenges(writer: EntityId) -> bool {
    writer == EntityId::SEDP_PUBLICATIONS_WRITER || writer == EntityId::SEDP_SUBSCRIPTIONS_WRITER
}

fn is_number(number: SequenceNumber) -> bool {
    (NUMBER_MIN..NUMBERS_AFTER.0).contains(&number.0)
}

impl Proof {
    /// The number to challenge `to` with: the same until it is answered, void or old. None when all are used up: the next are for who
    /// forgot what it was told, or answers whatever it expects.
    pub(super) fn challenge(
        &mut self,
        now: Instant,
        prefix: GuidPrefix,
        to: &Locator,
        numbers: &mut Numbers,
    ) -> Option<SequenceNumber> {
        self.challenges.retain(|challenge| challenge.ends > now && challenge.wrong < WRONG_MAX);
        if let Some(known) = self.challenges.iter().find(|challenge| challenge.to == *to) {
            return Some(known.number);
        }
        let number = self.highest.max(NUMBER_MIN) + 1 + numbers.draw(prefix, to) % DRAWN_FROM;
        if number >= NUMBERS_AFTER.0 {
            (self.highest, self.challenges) = (0, Vec::new());
            return None;
        }
        self.highest = number;
        if self.challenges.len() >= CHALLENGES_MAX {
            self.challenges.remove(0);
        }
        let ends = now.after(LIFE).unwrap_or(now);
        let number = SequenceNumber(number);
        self.challenges.push(Challenge { to: *to, number, ends, wrong: 0 });
        Some(number)
    }

    /// A number came back from `from`; whether it is that of a challenge. Its address is proven then.
    pub(super) fn answered(
        &mut self,
        now: Instant,
        number: SequenceNumber,
        from: &Locator,
        host: &Host,
    ) -> bool {
        self.challenges.retain(|challenge| challenge.ends > now && challenge.wrong < WRONG_MAX);
        let Some(right) = self.challenges.iter().find(|challenge| challenge.number == number) else {
            self.challenges.iter_mut().for_each(|challenge| challenge.wrong += 1);
            return false;
        };
        let to = right.to;
        self.add(&to, from, host);
        true
    }

    fn add(&mut self, to: &Locator, from: &Locator, host: &Host) {
        let (Some(address), Some(source), Some(port)) = (to.ip(), from.ip(), from.udp_port()) else { return };
        if host.is_own(address) {
            self.here = true;
        } else {
            remember(&mut self.addresses, address);
        }
        remember(&mut self.sources, (source, port));
    }

    /// Whether it answered at `ip`, or anywhere when the operator named `ip` as a peer.
    pub(super) fn proves(&self, ip: IpAddr, host: &Host) -> bool {
        if host.is_own(ip) {
            return self.here;
        }
        let answered = self.here || !self.addresses.is_empty();
        self.addresses.contains(&ip) || (answered && host.is_peer(ip))
    }

    /// Whether it has answered from there. On this host that is a socket: its addresses are everyone's.
    pub(super) fn is_source(&self, from: &Locator, host: &Host) -> bool {
        let (Some(ip), port) = (from.ip(), from.udp_port()) else { return false };
        if host.is_own(ip) {
            return self.sources.iter().any(|(known, at)| host.is_own(*known) && Some(*at) == port);
        }
        self.addresses.contains(&ip) || self.sources.iter().any(|(known, _)| *known == ip)
    }

    /// What it is told from now on is above what it was told in the course of `other`: readers never go back.
    pub(super) fn follow(&mut self, other: &Self) {
        self.highest = self.highest.max(other.highest);
    }
}

/// The latest are kept.
fn remember<T: PartialEq>(known: &mut Vec<T>, new: T) {
    if !known.contains(&new) {
        if known.len() >= PROVEN_MAX {
            known.remove(0);
        }
        known.push(new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn udp(ip: &str, port: u16) -> Locator {
        Locator::udp(ip.parse().unwrap(), port)
    }

    fn host() -> Host {
        Host::new(&["10.0.0.1".parse().unwrap()], &[])
    }

    const PEER: GuidPrefix = GuidPrefix([9; 12]);

    #[test]
    fn r1_the_number_differs_by_address_participant_and_secret() {
        let mut numbers = Numbers::new([1; 16]);
        let mut draw =
            |prefix, to: &Locator| Proof::default().challenge(Instant(0), prefix, to, &mut numbers).unwrap();
        let (here, there) = (udp("10.0.0.9", 7410), udp("10.0.0.8", 7410));
        let drawn =
            [draw(PEER, &here), draw(PEER, &here), draw(PEER, &there), draw(GuidPrefix([8; 12]), &here)];
        for (index, number) in drawn.iter().enumerate() {
            assert!(is_number(*number) && !drawn[..index].contains(number), "{drawn:?}");
        }
        let other = Proof::default().challenge(Instant(0), PEER, &here, &mut Numbers::new([2; 16]));
        assert_ne!(other, Some(drawn[0]));
    }

    #[test]
    fn r1_only_the_number_proves_and_only_where_it_went() {
        let mut proof = Proof::default();
        let to = udp("10.0.0.9", 7410);
        let number = proof.challenge(Instant(0), PEER, &to, &mut Numbers::new([1; 16]));
        let from = udp("192.0.2.7", 5_000);
        assert!(!proof.answered(Instant(1), number.next(), &from, &host()));
        assert!(!proof.proves("10.0.0.9".parse().unwrap(), &host()));
        assert!(proof.answered(Instant(1), number, &from, &host()));
        assert!(proof.proves("10.0.0.9".parse().unwrap(), &host()));
        assert!(!proof.proves("192.0.2.7".parse().unwrap(), &host()), "nothing was sent there");
        assert!(proof.is_source(&udp("192.0.2.7", 6_000), &host()) && proof.is_source(&to, &host()));
        assert!(!proof.is_source(&udp("192.0.2.8", 5_000), &host()));
    }

    #[test]
    fn r8_on_this_host_a_source_is_a_socket() {
        let mut proof = Proof::default();
        let to = udp("127.0.0.1", 7410);
        let number = proof.challenge(Instant(0), PEER, &to, &mut Numbers::new([1; 16])).unwrap();
        assert!(proof.answered(Instant(1), number, &udp("127.0.0.1", 40_000), &host()));
        assert!(proof.is_source(&udp("10.0.0.1", 40_000), &host()));
        assert!(!proof.is_source(&udp("127.0.0.1", 40_001), &host()));
    }

    #[test]
    fn r1_a_challenge_ends_and_guessing_voids_it() {
        let (mut proof, mut numbers) = (Proof::default(), Numbers::new([1; 16]));
        let to = udp("10.0.0.9", 7410);
        let number = proof.challenge(Instant(0), PEER, &to, &mut numbers).unwrap();
        let again = proof.challenge(Instant(1), PEER, &to, &mut numbers);
        assert_eq!(again, Some(number), "the same while it lasts");
        let late = Instant(0).after(LIFE).unwrap();
        assert!(!proof.answered(late, number, &to, &host()));
        let second = proof.challenge(late, PEER, &to, &mut numbers).unwrap();
        assert!(second > number, "readers never go back");
        for wrong in 0..i64::from(WRONG_MAX) {
            assert!(!proof.answered(late, SequenceNumber(NUMBER_MIN + wrong), &to, &host()));
        }
        assert!(!proof.answered(late, second, &to, &host()));
        assert!(proof.challenge(late, PEER, &to, &mut numbers) > Some(second));
    }

    #[test]
    fn numbers_stay_below_all_changes_and_begin_again_when_used_up() {
        let (mut proof, mut numbers) = (Proof::default(), Numbers::new([1; 16]));
        let (to, mut now, mut before, mut rounds) = (udp("10.0.0.9", 7410), Instant(0), 0, 0);
        for _ in 0..10_000 {
            match proof.challenge(now, PEER, &to, &mut numbers) {
                Some(number) => {
                    assert!(is_number(number) && number.0 > before);
                    before = number.0;
                }
                None => (before, rounds) = (0, rounds + 1),
            }
            now = now.after(LIFE).unwrap();
        }
        assert!((500..1_300).contains(&rounds), "{rounds} rounds: about 16 numbers in each");
    }
}
