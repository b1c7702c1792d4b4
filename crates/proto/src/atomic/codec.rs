//! Messages of groups as octets, little-endian. What comes from outside is checked before memory is taken.

use std::sync::Arc;

use crate::atomic::message::{Fetch, Join, Message, Row, StatePart, Transfer};
use crate::atomic::view::Storage;
use crate::atomic::view::{Decision, Place, Ranks, Report, View};
use crate::atomic::{Body, Delivered, MEMBERS_MAX, MemberId, VoterId};
use crate::malformed::Malformed;
use crate::tuning::atomic::{CLAIMS_TOLD, STATE_BYTES_MAX, TRANSFER_BYTES_MAX};
use crate::wire::octets::Reader;

/// Voters of a group at most.
pub const VOTERS_MAX: usize = 7;
/// A message of a decider has at most so many octets: a log of decisions, for who has missed them.
const DECIDER_BYTES_MAX: usize = 16 << 20;
/// Entries in one part of a history at most.
const PART_ENTRIES_MAX: usize = 1 << 16;
/// Epochs, positions, clocks and counts of entries are no larger: sums of one for each member are words, too.
const NUMBER_MAX: u64 = 1 << 56;

/// What is ordered, as octets.
pub trait BodyCodec: Body {
    /// Appends it.
    fn encode(&self, out: &mut Vec<u8>);
    /// Takes it off the front of `octets`.
    ///
    /// # Errors
    /// It is none.
    fn decode(octets: &mut &[u8]) -> Result<Self, Malformed>;
}

#[derive(Clone, Copy)]
enum Kind {
    Row = 1,
    Wedge,
    Report,
    NewView,
    AskView,
    Current,
    Join,
    Fetch,
    Transfer,
    Decider,
}

/// Appends a message.
pub fn encode<B: BodyCodec>(message: &Message<B>, out: &mut Vec<u8>) {
    match message {
        Message::Row(row) => {
            out.push(Kind::Row as u8);
            put_row(row, out);
        }
        Message::Wedge { instance, epoch } => {
            out.push(Kind::Wedge as u8);
            put(*instance, out);
            put(*epoch, out);
        }
        Message::Report { instance, report } => {
            out.push(Kind::Report as u8);
            put(*instance, out);
            put_report(report, out);
        }
        Message::NewView(decision) => {
            out.push(Kind::NewView as u8);
            encode_decision(decision, out);
        }
        Message::AskView { from, epoch } => {
            out.push(Kind::AskView as u8);
            put_member(*from, out);
            put(*epoch, out);
        }
        Message::Current(view) => {
            out.push(Kind::Current as u8);
            put_view(view, out);
        }
        Message::Join(join) => {
            out.push(Kind::Join as u8);
            put_member(join.from, out);
            out.push(u8::from(join.ready));
            out.push(u8::from(join.caught_up));
            out.push(u8::from(join.founds));
            out.push(join.storage as u8);
            put(join.config, out);
            for ids in [&join.hears, &join.before] {
                put_count(ids.len(), out);
                ids.iter().for_each(|id| put_member(*id, out));
            }
        }
        Message::Fetch(fetch) => {
            out.push(Kind::Fetch as u8);
            put_member(fetch.from, out);
            for word in [fetch.after, fetch.until, fetch.state, fetch.offset] {
                put(word, out);
            }
            put_count(fetch.octets_max as usize, out);
        }
        Message::Transfer(part) => {
            out.push(Kind::Transfer as u8);
            put_transfer(part, out);
        }
        Message::Decider { instance, since, from, octets } => {
            out.push(Kind::Decider as u8);
            put(*instance, out);
            put(*since, out);
            out.extend(from.0);
            put_count(octets.len(), out);
            out.extend(octets);
        }
    }
}

/// Reads a message, which takes all octets.
///
/// # Errors
/// It is none.
pub fn decode<B: BodyCodec>(octets: &[u8]) -> Result<Message<B>, Malformed> {
    let (&kind, rest) = octets.split_first().ok_or(Malformed::Truncated)?;
    let mut from = Reader::new(rest, true);
    let message = match kind {
        it if it == Kind::Row as u8 => Message::Row(row(&mut from)?),
        it if it == Kind::Wedge as u8 => {
            Message::Wedge { instance: word(&mut from)?, epoch: number(&mut from)? }
        }
        it if it == Kind::Report as u8 => {
            Message::Report { instance: word(&mut from)?, report: report(&mut from)? }
        }
        it if it == Kind::NewView as u8 => Message::NewView(Arc::new(decision(&mut from)?)),
        it if it == Kind::AskView as u8 => {
            Message::AskView { from: member(&mut from)?, epoch: number(&mut from)? }
        }
        it if it == Kind::Current as u8 => Message::Current(Arc::new(view(&mut from)?)),
        it if it == Kind::Join as u8 => Message::Join(join(&mut from)?),
        it if it == Kind::Fetch as u8 => Message::Fetch(fetch(&mut from)?),
        it if it == Kind::Transfer as u8 => Message::Transfer(transfer(&mut from)?),
        it if it == Kind::Decider as u8 => {
            let (instance, since, sender) = (word(&mut from)?, word(&mut from)?, VoterId(from.array()?));
            let length = from.count(DECIDER_BYTES_MAX, 1)?;
            Message::Decider { instance, since, from: sender, octets: from.octets(length)?.to_vec() }
        }
        _ => return Err(Malformed::InvalidEnum),
    };
    if from.is_empty() { Ok(message) } else { Err(Malformed::LengthOutOfRange) }
}

/// Appends a decision: what voters agree on.
pub fn encode_decision(decision: &Decision, out: &mut Vec<u8>) {
    put(decision.base, out);
    put_words(&decision.cut, out);
    out.extend(decision.incumbents.0.to_le_bytes());
    put_view(&decision.next, out);
}

/// Reads a decision, which takes all octets.
///
/// # Errors
/// It is none.
pub fn decode_decision(octets: &[u8]) -> Result<Decision, Malformed> {
    let mut from = Reader::new(octets, true);
    let decision = decision(&mut from)?;
    if from.is_empty() { Ok(decision) } else { Err(Malformed::LengthOutOfRange) }
}

fn put(word: u64, out: &mut Vec<u8>) {
    out.extend(word.to_le_bytes());
}

fn put_count(count: usize, out: &mut Vec<u8>) {
    out.extend((count as u32).to_le_bytes());
}

fn put_words(words: &[u64], out: &mut Vec<u8>) {
    put_count(words.len(), out);
    words.iter().for_each(|word| put(*word, out));
}

pub(super) fn put_member(id: MemberId, out: &mut Vec<u8>) {
    out.extend(id.prefix.0);
    put(id.nonce, out);
}

fn put_row(row: &Row, out: &mut Vec<u8>) {
    put_member(row.from, out);
    for word in [row.instance, row.epoch, row.clock, row.sent, row.position, row.digest, row.closing] {
        put(word, out);
    }
    out.extend(row.hears.0.to_le_bytes());
    out.push(u8::from(row.caught_up));
    out.push(u8::from(row.is_held));
    put_words(&row.acked, out);
}

fn put_report(report: &Report, out: &mut Vec<u8>) {
    put_member(report.id, out);
    out.push(u8::from(report.successor.is_some()));
    report.successor.iter().for_each(|id| put_member(*id, out));
    put(report.epoch, out);
    put(report.clock, out);
    put(report.position, out);
    out.push(u8::from(report.is_partial));
    out.push(u8::from(report.caught_up));
    out.push(u8::from(report.leaves));
    out.extend(report.hears.0.to_le_bytes());
    out.extend(report.accuses.0.to_le_bytes());
    put_words(&report.holds, out);
}

pub(super) fn put_view(view: &View, out: &mut Vec<u8>) {
    let View { instance, lineage, epoch, voters_since, base_position, base_clock, .. } = *view;
    for word in [instance, lineage, epoch, voters_since, base_position, base_clock] {
        put(word, out);
    }
    put_count(view.members.len(), out);
    for place in &view.members {
        put_member(place.id, out);
        out.push(u8::from(place.caught_up));
        out.push(place.storage as u8);
    }
    put_count(view.voters.len(), out);
    view.voters.iter().for_each(|voter| out.extend(voter.0));
}

fn put_transfer<B: BodyCodec>(part: &Transfer<B>, out: &mut Vec<u8>) {
    put_member(part.from, out);
    for word in [part.instance, part.after, part.through, part.position, part.lost] {
        put(word, out);
    }
    out.push(u8::from(part.state.is_some()));
    if let Some(state) = &part.state {
        for word in [state.through, state.total, state.offset] {
            put(word, out);
        }
        put_count(state.octets.len(), out);
        out.extend(&state.octets[..]);
    }
    put_count(part.entries.len(), out);
    part.entries.iter().for_each(|entry| put_delivered(entry, out));
}

pub(super) fn put_delivered<B: BodyCodec>(entry: &Delivered<B>, out: &mut Vec<u8>) {
    put(entry.position, out);
    put(entry.epoch, out);
    put_member(entry.from, out);
    entry.body.encode(out);
}

pub(super) fn word(from: &mut Reader<'_>) -> Result<u64, Malformed> {
    from.array().map(u64::from_le_bytes)
}

/// A word that counts something.
pub(super) fn number(from: &mut Reader<'_>) -> Result<u64, Malformed> {
    word(from).and_then(checked)
}

/// What counts something, if it can be.
pub(super) fn checked(number: u64) -> Result<u64, Malformed> {
    if number <= NUMBER_MAX { Ok(number) } else { Err(Malformed::LengthOutOfRange) }
}

fn numbers(from: &mut Reader<'_>) -> Result<Vec<u64>, Malformed> {
    let count = from.count(MEMBERS_MAX, 8)?;
    (0..count).map(|_| number(from)).collect()
}

fn ranks(from: &mut Reader<'_>) -> Result<Ranks, Malformed> {
    from.u32().map(Ranks)
}

pub(super) fn member(from: &mut Reader<'_>) -> Result<MemberId, Malformed> {
    Ok(MemberId { prefix: from.prefix()?, nonce: word(from)? })
}

fn storage(from: &mut Reader<'_>) -> Result<Storage, Malformed> {
    let [octet] = from.array()?;
    let all = [Storage::None, Storage::Stable, Storage::Durable];
    all.into_iter().find(|it| *it as u8 == octet).ok_or(Malformed::InvalidEnum)
}

fn row(from: &mut Reader<'_>) -> Result<Row, Malformed> {
    Ok(Row {
        from: member(from)?,
        instance: word(from)?,
        epoch: number(from)?,
        clock: number(from)?,
        sent: number(from)?,
        position: number(from)?,
        digest: word(from)?,
        closing: word(from)?,
        hears: ranks(from)?,
        caught_up: from.boolean()?,
        is_held: from.boolean()?,
        acked: numbers(from)?,
    })
}

fn report(from: &mut Reader<'_>) -> Result<Report, Malformed> {
    Ok(Report {
        id: member(from)?,
        successor: if from.boolean()? { Some(member(from)?) } else { None },
        epoch: number(from)?,
        clock: number(from)?,
        position: number(from)?,
        is_partial: from.boolean()?,
        caught_up: from.boolean()?,
        leaves: from.boolean()?,
        hears: ranks(from)?,
        accuses: ranks(from)?,
        holds: numbers(from)?,
    })
}

pub(super) fn view(from: &mut Reader<'_>) -> Result<View, Malformed> {
    let (instance, lineage) = (word(from)?, number(from)?);
    let (epoch, voters_since) = (number(from)?, number(from)?);
    let (base_position, base_clock) = (number(from)?, number(from)?);
    let places = from.count(MEMBERS_MAX, 22)?;
    let mut members: Vec<Place> = Vec::with_capacity(places);
    for _ in 0..places {
        let place = Place { id: member(from)?, caught_up: from.boolean()?, storage: storage(from)? };
        if members.iter().any(|it| it.id.prefix == place.id.prefix) {
            return Err(Malformed::LengthOutOfRange);
        }
        members.push(place);
    }
    let count = from.count(VOTERS_MAX, 16)?;
    let voters = (0..count).map(|_| from.array().map(VoterId)).collect::<Result<_, _>>()?;
    if epoch == 0 || members.is_empty() {
        return Err(Malformed::LengthOutOfRange);
    }
    Ok(View { instance, lineage, epoch, members, voters, voters_since, base_position, base_clock })
}

fn decision(from: &mut Reader<'_>) -> Result<Decision, Malformed> {
    let base = number(from)?;
    let cut = numbers(from)?;
    let incumbents = ranks(from)?;
    let next = view(from)?;
    let follows = next.epoch.checked_sub(1) == Some(base);
    if !follows || !incumbents.without(Ranks::first(cut.len())).is_empty() {
        return Err(Malformed::LengthOutOfRange);
    }
    Ok(Decision { base, cut, incumbents, next })
}

fn join(from: &mut Reader<'_>) -> Result<Join, Malformed> {
    let (id, ready, caught_up, founds) = (member(from)?, from.boolean()?, from.boolean()?, from.boolean()?);
    let (storage, config) = (storage(from)?, word(from)?);
    let mut members = |most| {
        let count = from.count(most, 20)?;
        (0..count).map(|_| member(from)).collect::<Result<_, _>>()
    };
    let (hears, before) = (members(2 * MEMBERS_MAX)?, members(CLAIMS_TOLD)?);
    Ok(Join { from: id, ready, caught_up, founds, storage, hears, before, config })
}

fn fetch(from: &mut Reader<'_>) -> Result<Fetch, Malformed> {
    Ok(Fetch {
        from: member(from)?,
        after: number(from)?,
        until: word(from)?,
        state: word(from)?,
        offset: word(from)?,
        octets_max: from.u32()?,
    })
}

fn state_part(from: &mut Reader<'_>) -> Result<StatePart, Malformed> {
    let (through, total, offset) = (number(from)?, word(from)?, word(from)?);
    let length = from.count(TRANSFER_BYTES_MAX, 1)?;
    let octets = Arc::from(from.octets(length)?);
    let is_within = offset.checked_add(length as u64).is_some_and(|end| end <= total);
    if !is_within || total > STATE_BYTES_MAX as u64 {
        return Err(Malformed::LengthOutOfRange);
    }
    Ok(StatePart { through, total, offset, octets })
}

fn transfer<B: BodyCodec>(from: &mut Reader<'_>) -> Result<Transfer<B>, Malformed> {
    let (id, instance) = (member(from)?, word(from)?);
    let (after, through, position, lost) = (number(from)?, number(from)?, number(from)?, number(from)?);
    let state = if from.boolean()? { Some(state_part(from)?) } else { None };
    let count = from.count(PART_ENTRIES_MAX, 36)?;
    let mut entries = Vec::new();
    for _ in 0..count {
        entries.push(delivered(from)?);
    }
    Ok(Transfer { from: id, instance, after, state, entries, through, position, lost })
}

pub(super) fn delivered<B: BodyCodec>(from: &mut Reader<'_>) -> Result<Delivered<B>, Malformed> {
    let (position, epoch, sender) = (number(from)?, number(from)?, member(from)?);
    let mut rest = from.rest();
    let body = B::decode(&mut rest)?;
    *from = Reader::new(rest, true);
    Ok(Delivered { position, epoch, from: sender, body })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guid::GuidPrefix;

    #[derive(Clone, Debug, PartialEq, Eq)]
    struct Word(u64);

    impl Body for Word {
        fn octets(&self) -> usize {
            8
        }
        fn digest(&self) -> u64 {
            self.0
        }
        fn history_key(&self) -> Option<crate::atomic::HistoryKey> {
            None
        }
        fn history_depth(&self) -> u32 {
            0
        }
    }

    impl BodyCodec for Word {
        fn encode(&self, out: &mut Vec<u8>) {
            put(self.0, out);
        }
        fn decode(octets: &mut &[u8]) -> Result<Self, Malformed> {
            let (taken, rest) = octets.split_first_chunk().ok_or(Malformed::Truncated)?;
            *octets = rest;
            Ok(Self(u64::from_le_bytes(*taken)))
        }
    }

    fn id(number: u8) -> MemberId {
        MemberId { prefix: GuidPrefix([number; 12]), nonce: u64::from(number) << 40 }
    }

    fn view() -> View {
        View {
            instance: 7,
            lineage: 2,
            epoch: 4,
            members: vec![
                Place { id: id(1), caught_up: true, storage: Storage::Durable },
                Place { id: id(2), caught_up: false, storage: Storage::None },
            ],
            voters: vec![id(1).voter()],
            voters_since: 3,
            base_position: 90,
            base_clock: 400,
        }
    }

    fn messages() -> Vec<Message<Word>> {
        let decision = Decision { base: 3, cut: vec![4, 0, 9], incumbents: Ranks(0b101), next: view() };
        let report = Report {
            id: id(3),
            successor: Some(id(4)),
            epoch: 3,
            position: 77,
            is_partial: true,
            holds: vec![5, 0, 9],
            clock: 399,
            caught_up: true,
            hears: Ranks(0b111),
            accuses: Ranks(0b10),
            leaves: false,
        };
        let row = Row {
            from: id(1),
            instance: 7,
            epoch: 4,
            clock: 500,
            sent: 3,
            acked: vec![3, 1],
            position: 93,
            digest: 0x1234,
            closing: 0x99,
            hears: Ranks(3),
            caught_up: true,
            is_held: true,
        };
        let entry = Delivered { position: 91, epoch: 4, from: id(2), body: Word(55) };
        let transfer = Transfer {
            from: id(1),
            instance: 7,
            after: 80,
            state: Some(StatePart { through: 90, total: 9, offset: 6, octets: Arc::from([1, 2, 3]) }),
            entries: vec![entry],
            through: 91,
            position: 93,
            lost: 1,
        };
        let join = Join {
            from: id(9),
            ready: true,
            caught_up: false,
            founds: true,
            storage: Storage::Stable,
            hears: vec![id(1), id(2)],
            before: vec![id(8)],
            config: 77,
        };
        vec![
            Message::Row(row),
            Message::Wedge { instance: 7, epoch: 4 },
            Message::Report { instance: 7, report },
            Message::NewView(Arc::new(decision)),
            Message::AskView { from: id(1), epoch: 2 },
            Message::Current(Arc::new(view())),
            Message::Join(join),
            Message::Fetch(Fetch { from: id(2), after: 12, until: 90, state: 10, offset: 6, octets_max: 3 }),
            Message::Transfer(transfer),
            Message::Decider { instance: 7, since: 2, from: id(3).voter(), octets: vec![9, 8] },
        ]
    }

    #[test]
    fn what_is_written_is_read() {
        for message in messages() {
            let mut octets = Vec::new();
            encode(&message, &mut octets);
            assert_eq!(decode(&octets).as_ref(), Ok(&message));
            octets.push(0);
            assert_eq!(decode::<Word>(&octets), Err(Malformed::LengthOutOfRange));
        }
    }

    #[test]
    fn a_part_of_a_state_is_within_it_and_that_within_the_limit() {
        let read = |total: usize, offset: usize| {
            let Some(Message::Transfer(part)) =
                messages().into_iter().find(|it| matches!(it, Message::Transfer(_)))
            else {
                panic!("there is one")
            };
            let octets = Arc::from([1, 2, 3]);
            let state = StatePart { through: 90, total: total as u64, offset: offset as u64, octets };
            let mut octets = Vec::new();
            encode(&Message::Transfer(Transfer { state: Some(state), ..part }), &mut octets);
            decode::<Word>(&octets).map(|_| ())
        };
        assert_eq!(read(STATE_BYTES_MAX, STATE_BYTES_MAX - 3), Ok(()));
        assert_eq!(read(STATE_BYTES_MAX + 1, 0), Err(Malformed::LengthOutOfRange));
        assert_eq!(read(9, 7), Err(Malformed::LengthOutOfRange));
        assert_eq!(read(9, usize::MAX), Err(Malformed::LengthOutOfRange));
    }

    #[test]
    fn no_part_of_a_message_is_one() {
        for message in messages() {
            let mut octets = Vec::new();
            encode(&message, &mut octets);
            for length in 0..octets.len() {
                assert!(decode::<Word>(&octets[..length]).is_err(), "{message:?} {length}");
            }
        }
    }

    #[test]
    fn no_number_is_so_large_that_sums_overflow() {
        let refused = |message: Message<Word>| {
            let mut octets = Vec::new();
            encode(&message, &mut octets);
            assert_eq!(decode::<Word>(&octets), Err(Malformed::LengthOutOfRange), "{message:?}");
        };
        for message in messages() {
            match message {
                Message::Row(row) => {
                    refused(Message::Row(Row { clock: u64::MAX, ..row.clone() }));
                    refused(Message::Row(Row { acked: vec![3, u64::MAX], ..row }));
                }
                Message::Report { instance, report } => {
                    for report in [
                        Report { clock: u64::MAX, ..report.clone() },
                        Report { position: u64::MAX, ..report.clone() },
                        Report { holds: vec![1, u64::MAX, 2], ..report },
                    ] {
                        refused(Message::Report { instance, report });
                    }
                }
                Message::Current(view) => {
                    let view = View::clone(&view);
                    for view in [
                        View { epoch: u64::MAX, ..view.clone() },
                        View { lineage: u64::MAX, ..view.clone() },
                        View { base_clock: u64::MAX, ..view.clone() },
                        View { base_position: u64::MAX, ..view },
                    ] {
                        refused(Message::Current(Arc::new(view)));
                    }
                }
                Message::NewView(decision) => {
                    let decision = Decision { cut: vec![u64::MAX; 3], ..Decision::clone(&decision) };
                    refused(Message::NewView(Arc::new(decision)));
                }
                Message::Transfer(mut part) => {
                    part.entries[0].position = u64::MAX;
                    refused(Message::Transfer(part));
                }
                _ => {}
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn any_octets_are_read_or_refused(octets in proptest::collection::vec(proptest::num::u8::ANY, 0..200), kind in 0_u8..12) {
            let mut octets = octets;
            octets.insert(0, kind);
            if let Ok(message) = decode::<Word>(&octets) {
                let mut again = Vec::new();
                encode(&message, &mut again);
                proptest::prop_assert_eq!(again, octets);
            }
        }
    }
}
