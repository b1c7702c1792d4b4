//! Proof of address (R1): something went to an address, and nowhere else, and came back.
//!
//! A challenge is a HEARTBEAT of each built-in writer of SEDP that is not final and names an empty history at
//! a number that nobody can know: `firstSN` is that number, `lastSN` the one before. A reliable reader
//! answers with an ACKNACK whose base is the next number that it expects (RTPS 2.5 §8.4.12), which is that
//! number then. The changes of those writers are numbered above all challenges ([`NUMBERS_AFTER`]), so a
//! challenge makes nobody skip anything, and needs no INFO_DST, which is optional.
//!
//! The numbers are small, because Fast DDS looks at each number that it skips, for about 140 ns: 2^30 of them
//! stop it for seconds. So two answers make a proof, one of each SEDP reader, or two in a row of the only
//! one.
//!
//! A reader that expects more than that already cannot echo the number: we forgot its participant, which did
//! not forget us, or it moved. Plainsong answers such HEARTBEATs apart from what its reader expects. Others
//! that are in step are asked by numbers above the last change ([`Range::Above`]), and the next change is
//! numbered above those.
//!
//! Two participants of ours know each other's endpoints after five datagrams: a challenge with the
//! announcement, its answer with the other challenge, and the endpoints of each behind its last answer, since
//! before that the other would not listen. Who answers nothing is told to the application once.

use core::net::IpAddr;

use md5::{Digest, Md5};

use super::path::Host;
use crate::guid::{EntityId, GuidPrefix};
use crate::locator::Locator;
use crate::seq::{SequenceNumber, SequenceSet};
use crate::time::Instant;
use crate::tuning::discovery::{
    CHALLENGE_LIFETIME, CHALLENGE_NUMBER_MAX, CHALLENGE_NUMBER_MIN, CHALLENGE_NUMBERS_DRAWN,
    CHALLENGES_PENDING_MAX, PROOF_ANSWERS, PROVEN_ADDRESSES_MAX, WRONG_ANSWERS_MAX,
};
use crate::wire::{AckNack, Heartbeat};

/// Above the numbers of all challenges: the changes of built-in writers come after it.
pub(super) const NUMBERS_AFTER: SequenceNumber = SequenceNumber(CHALLENGE_NUMBER_MAX);

/// Draws numbers that nobody outside can predict.
#[derive(Debug)]
pub(super) struct Numbers {
    secret: [u8; 16],
    drawn: u64,
}

/// From which numbers those of a challenge are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Range {
    /// Below all changes: for who knows none.
    Below,
    /// Above the last changes of the writers: for who has them all. As many as there are below the first.
    Above([SequenceNumber; 2]),
}

/// Numbers to name, by the index of their writer in [`WRITERS`].
pub(super) type Challenged = [Option<SequenceNumber>; 2];

/// The writers that challenge.
const WRITERS: [EntityId; 2] = [EntityId::SEDP_PUBLICATIONS_WRITER, EntityId::SEDP_SUBSCRIPTIONS_WRITER];

/// The writer whose challenge is the last of a message.
pub(super) fn last_writer() -> Option<EntityId> {
    WRITERS.last().copied()
}

/// What waits to be answered.
#[derive(Debug)]
struct Challenge {
    to: Locator,
    is_above: bool,
    numbers: Challenged,
    is_answered: [bool; 2],
    answers: u32,
    ends: Instant,
    wrong: u32,
}

/// What an answer is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Wrong,
    /// Nothing more.
    Again,
    /// Nothing yet.
    Half,
    Proof,
}

/// Where a participant has proven to be.
#[derive(Debug, Default)]
pub(super) struct Proof {
    /// Challenges went there and were answered.
    addresses: Vec<IpAddr>,
    /// One went to this host.
    here: bool,
    /// Answers came from there: what it sends may have another address than what is sent to it (NAT, several
    /// interfaces).
    sources: Vec<(IpAddr, u16)>,
    challenges: Vec<Challenge>,
    /// The highest number below all changes that it was told by each writer, and the highest above them.
    highest: [i64; 2],
    highest_above: [i64; 2],
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
    WRITERS.contains(&writer)
}

fn is_number(number: SequenceNumber) -> bool {
    (CHALLENGE_NUMBER_MIN..NUMBERS_AFTER.0).contains(&number.0)
}

impl Range {
    /// The numbers of a writer are between these.
    const fn of(&self, index: usize) -> (i64, i64) {
        match self {
            Self::Below => (CHALLENGE_NUMBER_MIN, NUMBERS_AFTER.0),
            // The one after the last is what everybody in step expects.
            Self::Above(last) => (last[index].0 + 1, after_challenges(last[index]).0),
        }
    }
}

/// The change that follows `last` comes after this number when challenges named numbers between.
pub(super) const fn after_challenges(last: SequenceNumber) -> SequenceNumber {
    SequenceNumber(last.0.saturating_add(NUMBERS_AFTER.0))
}

impl Challenge {
    const fn new(to: Locator, is_above: bool, ends: Instant) -> Self {
        Self { to, is_above, numbers: [None; 2], is_answered: [false; 2], answers: 0, ends, wrong: 0 }
    }

    fn is_open(&self, now: Instant) -> bool {
        self.ends > now && self.wrong < WRONG_ANSWERS_MAX
    }
}

impl Proof {
    /// What to challenge `to` with, on the channels that `answer`: the same numbers until they are answered,
    /// void or old. None when all are used up: the next are for who forgot what it was told, or answers
    /// whatever it expects.
    pub(super) fn challenge(
        &mut self,
        now: Instant,
        prefix: GuidPrefix,
        to: &Locator,
        (range, answer): (Range, [bool; 2]),
        numbers: &mut Numbers,
    ) -> Option<Challenged> {
        let is_above = range != Range::Below;
        // Numbers that proved something prove nothing more: somebody else may repeat them.
        self.challenges.retain(|challenge| challenge.is_open(now) && challenge.answers < PROOF_ANSWERS);
        let is_known = |challenge: &Challenge| challenge.to == *to && challenge.is_above == is_above;
        let mut challenge = match self.challenges.iter().position(is_known) {
            Some(index) => self.challenges.remove(index),
            None => Challenge::new(*to, is_above, now.after(CHALLENGE_LIFETIME).unwrap_or(now)),
        };
        let is_alone = answer.iter().filter(|answers| **answers).count() == 1;
        for index in (0..WRITERS.len()).filter(|index| answer[*index]) {
            let is_next = is_alone && challenge.is_answered[index];
            let (from, end) = range.of(index);
            // A change came after the number: nobody answers with it any more.
            let is_past = challenge.numbers[index].is_some_and(|number| number.0 <= from);
            if challenge.numbers[index].is_none() || is_next || is_past {
                let highest = if is_above { &mut self.highest_above } else { &mut self.highest };
                let number =
                    highest[index].max(from) + 1 + numbers.draw(prefix, to) % CHALLENGE_NUMBERS_DRAWN;
                if number >= end {
                    if !is_above {
                        (self.highest, self.challenges) = ([0; 2], Vec::new());
                    }
                    return None;
                }
                highest[index] = number;
                (challenge.numbers[index], challenge.is_answered[index]) =
                    (Some(SequenceNumber(number)), false);
            }
        }
        let mut challenged = challenge.numbers;
        for (number, is_answered) in challenged.iter_mut().zip(challenge.is_answered) {
            *number = number.filter(|_| !is_answered);
        }
        if self.challenges.len() >= CHALLENGES_PENDING_MAX {
            self.challenges.remove(0);
        }
        self.challenges.push(challenge);
        Some(challenged)
    }

    /// A number of `writer` came back from `from`. With the last that was needed, the address that it went to
    /// is proven.
    pub(super) fn answered(
        &mut self,
        now: Instant,
        (writer, number): (EntityId, SequenceNumber),
        from: &Locator,
        host: &Host,
    ) -> Answer {
        self.challenges.retain(|challenge| challenge.is_open(now));
        let Some(index) = WRITERS.iter().position(|known| *known == writer) else { return Answer::Wrong };
        let mut challenges = self.challenges.iter_mut();
        let Some(right) = challenges.find(|challenge| challenge.numbers[index] == Some(number)) else {
            self.challenges.iter_mut().for_each(|challenge| challenge.wrong += 1);
            return Answer::Wrong;
        };
        if std::mem::replace(&mut right.is_answered[index], true) {
            return Answer::Again;
        }
        right.answers += 1;
        if right.answers < PROOF_ANSWERS {
            return Answer::Half;
        }
        let to = right.to;
        self.add(&to, from, host);
        Answer::Proof
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

    /// Whether it answered on this host.
    pub(super) const fn is_here(&self) -> bool {
        self.here
    }

    /// Addresses at which and from which it answered.
    pub(super) fn heard_from(&self) -> impl Iterator<Item = Locator> + '_ {
        let answered = self.addresses.iter().chain(self.sources.iter().map(|(ip, _)| ip));
        answered.map(|ip| Locator::udp(*ip, 0))
    }

    /// What is proven, for others of whom it is true as well.
    pub(super) fn copy(&self) -> Self {
        let Self { addresses, here, sources, .. } = self;
        Self { addresses: addresses.clone(), here: *here, sources: sources.clone(), ..Self::default() }
    }

    /// What it is told from now on is above what it was told in the course of `other`: readers never go back.
    pub(super) fn follow(&mut self, other: &Self) {
        let sent = self.highest.iter_mut().chain(&mut self.highest_above);
        for (highest, other) in sent.zip(other.highest.into_iter().chain(other.highest_above)) {
            *highest = other.max(*highest);
        }
    }
}

/// The latest are kept.
fn remember<T: PartialEq>(known: &mut Vec<T>, new: T) {
    if !known.contains(&new) {
        if known.len() >= PROVEN_ADDRESSES_MAX {
            known.remove(0);
        }
        known.push(new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discovery::LocalLocators;

    fn udp(ip: &str, port: u16) -> Locator {
        Locator::udp(ip.parse().unwrap(), port)
    }

    fn host() -> Host {
        let own_addresses = vec!["10.0.0.1".parse().unwrap()];
        Host::of(&LocalLocators { own_addresses, ..LocalLocators::default() })
    }

    const PEER: GuidPrefix = GuidPrefix([9; 12]);
    const BOTH: [bool; 2] = [true; 2];

    fn challenge_once(
        proof: &mut Proof,
        at: Instant,
        to: &Locator,
        numbers: &mut Numbers,
    ) -> [SequenceNumber; 2] {
        proof.challenge(at, PEER, to, (Range::Below, BOTH), numbers).unwrap().map(Option::unwrap)
    }

    fn answer(
        proof: &mut Proof,
        at: Instant,
        index: usize,
        number: SequenceNumber,
        from: &Locator,
    ) -> Answer {
        proof.answered(at, (WRITERS[index], number), from, &host())
    }

    #[test]
    fn r1_the_numbers_differ_by_writer_address_participant_and_secret() {
        let mut numbers = Numbers::new([1; 16]);
        let mut draw = |prefix, to: &Locator| {
            Proof::default()
                .challenge(Instant(0), prefix, to, (Range::Below, BOTH), &mut numbers)
                .unwrap()
                .map(Option::unwrap)
        };
        let (here, there) = (udp("10.0.0.9", 7410), udp("10.0.0.8", 7410));
        let drawn =
            [draw(PEER, &here), draw(PEER, &here), draw(PEER, &there), draw(GuidPrefix([8; 12]), &here)];
        for (index, [one, other]) in drawn.iter().enumerate() {
            assert!(is_number(*one) && is_number(*other) && one != other, "{drawn:?}");
            assert!(!drawn[..index].contains(&[*one, *other]), "{drawn:?}");
        }
        assert_ne!(
            challenge_once(&mut Proof::default(), Instant(0), &here, &mut Numbers::new([2; 16])),
            drawn[0]
        );
    }

    #[test]
    fn r1_only_both_numbers_prove_and_only_where_they_went() {
        let mut proof = Proof::default();
        let to = udp("10.0.0.9", 7410);
        let [one, other] = challenge_once(&mut proof, Instant(0), &to, &mut Numbers::new([1; 16]));
        let from = udp("192.0.2.7", 5_000);
        assert_eq!(answer(&mut proof, Instant(1), 0, one.next(), &from), Answer::Wrong);
        assert_eq!(
            answer(&mut proof, Instant(1), 0, other, &from),
            Answer::Wrong,
            "that of the other writer"
        );
        assert_eq!(answer(&mut proof, Instant(1), 0, one, &from), Answer::Half);
        assert_eq!(
            answer(&mut proof, Instant(1), 0, one, &from),
            Answer::Again,
            "a repetition proves nothing"
        );
        assert!(!proof.proves("10.0.0.9".parse().unwrap(), &host()));
        assert_eq!(answer(&mut proof, Instant(1), 1, other, &from), Answer::Proof);
        assert!(proof.proves("10.0.0.9".parse().unwrap(), &host()));
        assert!(!proof.proves("192.0.2.7".parse().unwrap(), &host()), "nothing was sent there");
        assert!(proof.is_source(&udp("192.0.2.7", 6_000), &host()) && proof.is_source(&to, &host()));
        let elsewhere = udp("192.0.2.8", 5_000);
        assert_eq!(
            answer(&mut proof, Instant(2), 1, other, &elsewhere),
            Answer::Again,
            "repeated by another"
        );
        assert!(!proof.is_source(&elsewhere, &host()));
        assert_ne!(
            challenge_once(&mut proof, Instant(2), &to, &mut Numbers::new([1; 16])),
            [one, other],
            "asked anew"
        );
    }

    #[test]
    fn r1_who_has_one_sedp_reader_answers_twice() {
        let (mut proof, mut numbers) = (Proof::default(), Numbers::new([1; 16]));
        let to = udp("10.0.0.9", 7410);
        let mut challenge_once = |proof: &mut Proof| {
            let challenged =
                proof.challenge(Instant(0), PEER, &to, (Range::Below, [false, true]), &mut numbers).unwrap();
            assert_eq!(challenged[0], None);
            challenged[1].unwrap()
        };
        let first = challenge_once(&mut proof);
        assert_eq!(challenge_once(&mut proof), first, "the same until it is answered");
        assert_eq!(answer(&mut proof, Instant(0), 1, first, &to), Answer::Half);
        let second = challenge_once(&mut proof);
        assert!(second > first, "readers never go back");
        assert_eq!(answer(&mut proof, Instant(0), 1, first, &to), Answer::Wrong);
        assert_eq!(answer(&mut proof, Instant(0), 1, second, &to), Answer::Proof);
        assert!(challenge_once(&mut proof) > second, "asked again, it is asked anew");
    }

    #[test]
    fn r8_on_this_host_a_source_is_a_socket() {
        let mut proof = Proof::default();
        let to = udp("127.0.0.1", 7410);
        let [one, other] = challenge_once(&mut proof, Instant(0), &to, &mut Numbers::new([1; 16]));
        let from = udp("127.0.0.1", 40_000);
        assert_eq!(answer(&mut proof, Instant(1), 0, one, &from), Answer::Half);
        assert_eq!(answer(&mut proof, Instant(1), 1, other, &from), Answer::Proof);
        assert!(proof.is_source(&udp("10.0.0.1", 40_000), &host()));
        assert!(!proof.is_source(&udp("127.0.0.1", 40_001), &host()));
    }

    #[test]
    fn r1_a_challenge_ends_and_guessing_voids_it() {
        let (mut proof, mut numbers) = (Proof::default(), Numbers::new([1; 16]));
        let to = udp("10.0.0.9", 7410);
        let first = challenge_once(&mut proof, Instant(0), &to, &mut numbers);
        assert_eq!(
            challenge_once(&mut proof, Instant(1), &to, &mut numbers),
            first,
            "the same while it lasts"
        );
        let late = Instant(0).after(CHALLENGE_LIFETIME).unwrap();
        assert_eq!(answer(&mut proof, late, 0, first[0], &to), Answer::Wrong);
        let second = challenge_once(&mut proof, late, &to, &mut numbers);
        assert!(second[0] > first[0] && second[1] > first[1], "readers never go back");
        for wrong in 0..i64::from(WRONG_ANSWERS_MAX) {
            let number = SequenceNumber(CHALLENGE_NUMBER_MIN + wrong);
            assert_eq!(answer(&mut proof, late, 1, number, &to), Answer::Wrong);
        }
        assert_eq!(answer(&mut proof, late, 0, second[0], &to), Answer::Wrong);
        assert!(challenge_once(&mut proof, late, &to, &mut numbers)[0] > second[0]);
    }

    #[test]
    fn numbers_stay_below_all_changes_and_begin_again_when_used_up() {
        let (mut proof, mut numbers) = (Proof::default(), Numbers::new([1; 16]));
        let (to, mut now, mut before, mut rounds) = (udp("10.0.0.9", 7410), Instant(0), 0, 0);
        for _ in 0..10_000 {
            match proof.challenge(now, PEER, &to, (Range::Below, BOTH), &mut numbers) {
                Some([Some(number), Some(_)]) => {
                    assert!(is_number(number) && number.0 > before);
                    before = number.0;
                }
                challenged => {
                    assert_eq!(challenged, None);
                    (before, rounds) = (0, rounds + 1);
                }
            }
            now = now.after(CHALLENGE_LIFETIME).unwrap();
        }
        assert!((500..1_300).contains(&rounds), "{rounds} rounds: about 14 challenges in each");
    }

    #[test]
    fn who_is_in_step_is_asked_by_numbers_above_the_last_change() {
        let (mut proof, mut numbers) = (Proof::default(), Numbers::new([1; 16]));
        let to = udp("10.0.0.9", 7410);
        let below = challenge_once(&mut proof, Instant(0), &to, &mut numbers);
        let last = [SequenceNumber(5_000), NUMBERS_AFTER];
        let mut challenge_above = |proof: &mut Proof, last| {
            proof.challenge(Instant(0), PEER, &to, (Range::Above(last), BOTH), &mut numbers)
        };
        let challenged = challenge_above(&mut proof, last).unwrap().map(Option::unwrap);
        for (number, last) in challenged.into_iter().zip(last) {
            assert!(number > last.next() && number < after_challenges(last), "{number:?} after {last:?}");
        }
        assert_eq!(
            challenge_above(&mut proof, last).unwrap().map(Option::unwrap),
            challenged,
            "the same while it lasts"
        );
        // A change was written meanwhile.
        let later = [SequenceNumber(9_097), NUMBERS_AFTER];
        let [one, other] = challenge_above(&mut proof, later).unwrap().map(Option::unwrap);
        assert!(one > later[0].next() && other == challenged[1]);
        assert_eq!(answer(&mut proof, Instant(1), 0, one, &to), Answer::Half);
        assert_eq!(answer(&mut proof, Instant(1), 1, other, &to), Answer::Proof);
        assert!(below.into_iter().all(is_number));
        // Readers never go back, and so all numbers are used up in the end, until there is another change.
        let mut fresh = |proof: &mut Proof| {
            proof.challenges.clear();
            challenge_above(proof, later)
        };
        let times = (0..100).take_while(|_| fresh(&mut proof).is_some()).count();
        assert!((7..32).contains(&times), "{times}");
        assert!(challenge_above(&mut proof, [SequenceNumber(20_000); 2]).is_some());
    }
}
