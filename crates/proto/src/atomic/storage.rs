//! What a member keeps on its disk: changes to it, their form as keys and values, and what is read back.
//!
//! A member asks for [`Change`]s by [`Action::Store`](crate::atomic::Action::Store). The driver makes them
//! durable in their order, several at once as a whole or not at all, and says how far it is. What a member
//! vouches for, and that it has caught up, it says only when that is durable, so that a member that starts
//! again speaks for what it was (`member/durable`). The disk is an ordered map of octets: [`Change::stage`]
//! adds a change to a [`Batch`], and [`Image::read`] reads all that there is.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::atomic::codec::{self, BodyCodec};
use crate::atomic::view::{Decision, View};
use crate::atomic::{Delivered, MEMBERS_MAX, MemberId};
use crate::malformed::Malformed;
use crate::wire::octets::Reader;

/// What a commit writes, or removes where it is `None`.
pub type Batch = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// Which term of voters a record belongs to: of which instance, and since which epoch; 0 of fixed ones.
pub type Term = (u64, u64);

/// An entry of a lane in an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot {
    /// The epoch.
    pub epoch: u64,
    /// Whose lane.
    pub rank: usize,
    /// Its number on the lane.
    pub index: u64,
}

/// One change of what is kept.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Change<B> {
    /// What follows belongs to this group. What was kept of another is void (`discards`), and is put aside,
    /// but for the claims ([`is_claim`]).
    Begin {
        /// Which group.
        instance: u64,
        /// Something of another group is there.
        discards: bool,
    },
    /// The history of the group begins again: what was kept of it before is void.
    Void {
        /// Which group.
        instance: u64,
        /// The lineage in which it is now.
        lineage: u64,
        /// The entries of the history, and where they are held.
        entries: Vec<(u64, Option<Slot>)>,
    },
    /// The group goes on in this lineage with what it has.
    Lineage {
        /// Which group.
        instance: u64,
        /// The lineage.
        lineage: u64,
    },
    /// It may have spoken as any of these since its view began, beside the one in the view.
    Claims(Vec<MemberId>),
    /// It is in this view, with this rank; entries of the epoch follow.
    View(Box<View>, usize),
    /// It is in no view any more.
    Left,
    /// How an epoch ended; the one of this base is needed no more.
    Decision(Arc<Decision>, Option<u64>),
    /// It holds an entry.
    Held(Slot, u64, B),
    /// An entry is delivered at a position, and kept or not.
    Delivered {
        /// Where in the order.
        position: u64,
        /// Which.
        slot: Slot,
        /// From whom.
        from: MemberId,
        /// It is part of the history.
        is_kept: bool,
    },
    /// An entry is passed over: the history has it already.
    Passed(Slot),
    /// An entry is not part of the order.
    Dropped(Slot),
    /// An entry of the history that came from another member.
    Agreed(Delivered<B>),
    /// Everything up to this position is there.
    Through(u64),
    /// An entry is no part of the history any more; where it is held, if it came on a lane.
    Forgotten(u64, Option<Slot>),
    /// State in place of everything up to a position.
    State(u64, Arc<[u8]>),
    /// What the voter of a term must have; it stands for those of its records from `replaces` on.
    Record {
        /// Which term.
        term: Term,
        /// Its number among the records of the term.
        number: u64,
        /// The first that is needed no more, if any is.
        replaces: Option<u64>,
        /// What it says.
        octets: Vec<u8>,
    },
    /// A term is over: these of its records are needed no more.
    EndOfTerm(Term, std::ops::Range<u64>),
}

/// An epoch in which a member was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EpochImage<B> {
    /// Its view.
    pub view: View,
    /// Its rank.
    pub rank: usize,
    /// Entries of each lane that were delivered.
    pub delivered: Vec<u64>,
    /// Those after, with their stamps.
    pub held: Vec<Vec<(u64, B)>>,
}

/// Everything that a member has on its disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image<B> {
    /// Of which group; 0 if it was never in one.
    pub instance: u64,
    /// And in which lineage of it.
    pub lineage: u64,
    /// It was in a view; so that it makes no other group.
    pub was_member: bool,
    /// As whom it may have spoken since its view began.
    pub claims: Vec<MemberId>,
    /// The epoch in which it was.
    pub epoch: Option<EpochImage<B>>,
    /// Everything up to this position is there.
    pub have: u64,
    /// The agreed history, and where its entries are held.
    pub history: Vec<(Delivered<B>, Option<Slot>)>,
    /// What stands for everything before.
    pub state: Option<(u64, Arc<[u8]>)>,
    /// How the last epochs ended.
    pub decisions: Vec<Decision>,
    /// What its voters wrote, by terms and numbers.
    pub votes: BTreeMap<Term, BTreeMap<u64, Vec<u8>>>,
}

/// What keys begin with.
#[derive(Clone, Copy)]
enum Table {
    Instance = 1,
    Claims,
    View,
    Decision,
    Held,
    /// How many of each lane are delivered, by rank.
    Count,
    Have,
    /// By position: where the entry is held.
    Placed,
    /// By position: an entry.
    Agreed,
    State,
    Vote,
}

/// Whether a key is one of what voters wrote.
#[must_use]
pub fn is_vote(key: &[u8]) -> bool {
    key.first() == Some(&(Table::Vote as u8))
}

/// Whether a key says as whom a member may have spoken: that outlives its group, since others may name it.
#[must_use]
pub fn is_claim(key: &[u8]) -> bool {
    key.first() == Some(&(Table::Claims as u8))
}

fn key(table: Table, words: &[u64]) -> Vec<u8> {
    let words = words.iter().flat_map(|word| word.to_be_bytes());
    std::iter::once(table as u8).chain(words).collect()
}

impl Slot {
    fn words(self) -> [u64; 3] {
        [self.epoch, self.rank as u64, self.index]
    }

    fn key(self) -> Vec<u8> {
        key(Table::Held, &self.words())
    }
}

impl<B: BodyCodec> Change<B> {
    /// Adds it to what is committed next. What [`Self::Begin`] discards is for the driver to put aside.
    pub fn stage(&self, batch: &mut Batch) {
        let mut put = |key: Vec<u8>, value: Option<Vec<u8>>| {
            batch.insert(key, value);
        };
        let word = |word: u64| Some(word.to_le_bytes().to_vec());
        match self {
            Self::Held(slot, stamp, body) => {
                let mut octets = stamp.to_le_bytes().to_vec();
                body.encode(&mut octets);
                put(slot.key(), Some(octets));
            }
            Self::Delivered { position, slot, from, is_kept } => {
                put(key(Table::Count, &[slot.rank as u64]), word(slot.index));
                put(key(Table::Have, &[]), word(*position));
                if *is_kept {
                    put(key(Table::Placed, &[*position]), Some(placed_octets(*slot, *from)));
                } else {
                    put(slot.key(), None);
                }
            }
            Self::Passed(slot) => {
                put(key(Table::Count, &[slot.rank as u64]), word(slot.index));
                put(slot.key(), None);
            }
            Self::Dropped(slot) => put(slot.key(), None),
            Self::Agreed(entry) => {
                let mut octets = Vec::new();
                codec::put_delivered(entry, &mut octets);
                put(key(Table::Agreed, &[entry.position]), Some(octets));
            }
            Self::Through(position) => put(key(Table::Have, &[]), word(*position)),
            Self::Forgotten(position, slot) => forget(*position, *slot, &mut put),
            Self::State(through, state) => {
                let octets = [&through.to_le_bytes()[..], state].concat();
                put(key(Table::State, &[]), Some(octets));
            }
            of_group => of_group.stage_of_group(&mut put),
        }
    }

    /// Of changes that are no entries.
    fn stage_of_group(&self, put: &mut impl FnMut(Vec<u8>, Option<Vec<u8>>)) {
        let words = |one: u64, other: u64| Some([one.to_le_bytes(), other.to_le_bytes()].concat());
        match self {
            Self::Begin { instance, .. } => put(key(Table::Instance, &[]), words(*instance, 0)),
            Self::Lineage { instance, lineage } => put(key(Table::Instance, &[]), words(*instance, *lineage)),
            Self::Void { instance, lineage, entries } => {
                put(key(Table::Instance, &[]), words(*instance, *lineage));
                put(key(Table::Have, &[]), None);
                put(key(Table::State, &[]), None);
                for (position, slot) in entries {
                    forget(*position, *slot, put);
                }
            }
            Self::Claims(ids) => {
                let mut octets = Vec::new();
                ids.iter().for_each(|id| codec::put_member(*id, &mut octets));
                put(key(Table::Claims, &[]), Some(octets));
            }
            Self::View(view, rank) => {
                let mut octets = (*rank as u64).to_le_bytes().to_vec();
                codec::put_view(view, &mut octets);
                put(key(Table::View, &[]), Some(octets));
                (0..MEMBERS_MAX as u64).for_each(|rank| put(key(Table::Count, &[rank]), None));
            }
            Self::Left => put(key(Table::View, &[]), Some(Vec::new())),
            Self::Decision(decision, old) => {
                if let Some(base) = old {
                    put(key(Table::Decision, &[*base]), None);
                }
                let mut octets = Vec::new();
                codec::encode_decision(decision, &mut octets);
                put(key(Table::Decision, &[decision.base]), Some(octets));
            }
            Self::Record { term, number, replaces, octets } => {
                let gone = replaces.unwrap_or(*number)..*number;
                gone.for_each(|number| put(record(*term, number), None));
                put(record(*term, *number), Some(octets.clone()));
            }
            Self::EndOfTerm(term, numbers) => {
                numbers.clone().for_each(|number| put(record(*term, number), None));
            }
            _ => {}
        }
    }

    /// About how much it takes, in octets.
    #[must_use]
    pub fn octets(&self) -> usize {
        const OF_A_KEY: usize = 32;
        OF_A_KEY
            + match self {
                Self::Held(_, _, body) => body.octets(),
                Self::Agreed(entry) => entry.body.octets(),
                Self::State(_, state) => state.len(),
                Self::Record { octets, .. } => octets.len(),
                Self::View(..) | Self::Decision(..) => 1 << 10,
                _ => 0,
            }
    }
}

fn record(term: Term, number: u64) -> Vec<u8> {
    key(Table::Vote, &[term.0, term.1, number])
}

/// Keys and values of one table, by the words of their keys.
type Rows = BTreeMap<Vec<u64>, Vec<u8>>;

impl<B: BodyCodec> Image<B> {
    /// Reads everything that was committed.
    ///
    /// # Errors
    /// It is not what a member writes.
    pub fn read(pairs: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>) -> Result<Self, Malformed> {
        let mut tables: BTreeMap<u8, Rows> = BTreeMap::new();
        for (key, value) in pairs {
            let (&table, words) = key.split_first().ok_or(Malformed::Truncated)?;
            let (words, rest) = words.as_chunks();
            if table == 0 || table > Table::Vote as u8 || !rest.is_empty() {
                return Err(Malformed::InvalidEnum);
            }
            let words = words.iter().map(|word| u64::from_be_bytes(*word)).collect();
            tables.entry(table).or_default().insert(words, value);
        }
        let mut rows = |table: Table| tables.remove(&(table as u8)).unwrap_or_default();
        let mut held = rows(Table::Held);
        let mut history: Vec<(Delivered<B>, Option<Slot>)> = Vec::new();
        for (words, value) in rows(Table::Placed) {
            history.push(placed(&words, &value, &mut held)?);
        }
        for (_, value) in rows(Table::Agreed) {
            let entry = all(&value, |from| codec::delivered(from))?;
            history.push((entry, None));
        }
        history.sort_by_key(|(entry, _)| entry.position);
        let counts = rows(Table::Count);
        let view = rows(Table::View).pop_first();
        let was_member = view.is_some();
        let of_group = rows(Table::Instance).pop_first();
        let pair =
            |(_, value): (_, Vec<u8>)| all(&value, |from| Ok((codec::word(from)?, codec::number(from)?)));
        let (instance, lineage) = of_group.map(pair).transpose()?.unwrap_or_default();
        let view = view.filter(|(_, value)| !value.is_empty());
        let state = rows(Table::State).pop_first().map(|(_, value)| state(&value)).transpose()?;
        // Of a transfer a part may be there, and all before it.
        let last = history.last().map_or(0, |(entry, _)| entry.position);
        let through = state.as_ref().map_or(0, |(through, _)| *through);
        let have = only_word(rows(Table::Have))?.max(last).max(through);
        Ok(Self {
            was_member,
            instance,
            lineage,
            claims: claims(rows(Table::Claims))?,
            epoch: view.map(|(_, value)| epoch(&value, &counts, held)).transpose()?,
            have,
            history,
            state,
            decisions: rows(Table::Decision)
                .values()
                .map(|value| codec::decode_decision(value))
                .collect::<Result<_, _>>()?,
            votes: votes(rows(Table::Vote))?,
        })
    }
}

fn all<T>(octets: &[u8], read: impl FnOnce(&mut Reader<'_>) -> Result<T, Malformed>) -> Result<T, Malformed> {
    let mut from = Reader::new(octets, true);
    let value = read(&mut from)?;
    if from.is_empty() { Ok(value) } else { Err(Malformed::LengthOutOfRange) }
}

fn only_word(mut rows: Rows) -> Result<u64, Malformed> {
    rows.pop_first().map_or(Ok(0), |(_, value)| all(&value, codec::number))
}

fn claims(mut rows: Rows) -> Result<Vec<MemberId>, Malformed> {
    let Some((_, value)) = rows.pop_first() else { return Ok(Vec::new()) };
    let mut from = Reader::new(&value, true);
    let mut ids = Vec::new();
    while !from.is_empty() {
        ids.push(codec::member(&mut from)?);
    }
    Ok(ids)
}

fn forget(position: u64, slot: Option<Slot>, put: &mut impl FnMut(Vec<u8>, Option<Vec<u8>>)) {
    match slot {
        Some(slot) => {
            put(key(Table::Placed, &[position]), None);
            put(slot.key(), None);
        }
        None => put(key(Table::Agreed, &[position]), None),
    }
}

fn placed_octets(slot: Slot, from: MemberId) -> Vec<u8> {
    let mut octets: Vec<u8> = slot.words().into_iter().flat_map(u64::to_le_bytes).collect();
    codec::put_member(from, &mut octets);
    octets
}

/// An entry of the history, which is held where it came on its lane.
fn placed<B: BodyCodec>(
    words: &[u64],
    value: &[u8],
    held: &mut Rows,
) -> Result<(Delivered<B>, Option<Slot>), Malformed> {
    let &[position] = words else { return Err(Malformed::LengthOutOfRange) };
    let (slot, from) = all(value, |from| {
        let (epoch, rank) = (codec::number(from)?, rank(codec::word(from)?)?);
        Ok((Slot { epoch, rank, index: codec::number(from)? }, codec::member(from)?))
    })?;
    let position = codec::checked(position)?;
    let value = held.remove(&slot.words()[..]).ok_or(Malformed::Truncated)?;
    let (_, body) = stamped(&value)?;
    Ok((Delivered { position, epoch: slot.epoch, from, body }, Some(slot)))
}

fn rank(word: u64) -> Result<usize, Malformed> {
    usize::try_from(word).ok().filter(|rank| *rank < MEMBERS_MAX).ok_or(Malformed::LengthOutOfRange)
}

fn stamped<B: BodyCodec>(octets: &[u8]) -> Result<(u64, B), Malformed> {
    let (stamp, mut rest) = octets.split_first_chunk().ok_or(Malformed::Truncated)?;
    let body = B::decode(&mut rest)?;
    if rest.is_empty() { Ok((u64::from_le_bytes(*stamp), body)) } else { Err(Malformed::LengthOutOfRange) }
}

/// The epoch, with what is held of it and not delivered.
fn epoch<B: BodyCodec>(octets: &[u8], counts: &Rows, held: Rows) -> Result<EpochImage<B>, Malformed> {
    let (own, view) = all(octets, |from| Ok((rank(codec::word(from)?)?, codec::view(from)?)))?;
    let lanes = view.members.len();
    if own >= lanes {
        return Err(Malformed::LengthOutOfRange);
    }
    let mut image = EpochImage { rank: own, delivered: vec![0; lanes], held: vec![Vec::new(); lanes], view };
    for (words, value) in counts {
        let &[at] = words.as_slice() else { return Err(Malformed::LengthOutOfRange) };
        let count = image.delivered.get_mut(rank(at)?).ok_or(Malformed::LengthOutOfRange)?;
        *count = all(value, codec::number)?;
    }
    for (words, value) in held {
        let &[epoch, at, index] = words.as_slice() else { return Err(Malformed::LengthOutOfRange) };
        if epoch != image.view.epoch {
            continue;
        }
        let lane = image.held.get_mut(rank(at)?).ok_or(Malformed::LengthOutOfRange)?;
        let next = image.delivered[rank(at)?] + lane.len() as u64 + 1;
        if index != next {
            return Err(Malformed::LengthOutOfRange);
        }
        lane.push(stamped(&value)?);
    }
    Ok(image)
}

fn state(octets: &[u8]) -> Result<(u64, Arc<[u8]>), Malformed> {
    let (through, rest) = octets.split_first_chunk().ok_or(Malformed::Truncated)?;
    Ok((codec::checked(u64::from_le_bytes(*through))?, Arc::from(rest)))
}

fn votes(rows: Rows) -> Result<BTreeMap<Term, BTreeMap<u64, Vec<u8>>>, Malformed> {
    let mut votes: BTreeMap<Term, BTreeMap<u64, Vec<u8>>> = BTreeMap::new();
    for (words, value) in rows {
        let &[instance, since, number] = words.as_slice() else { return Err(Malformed::LengthOutOfRange) };
        let of_term = votes.entry((instance, since)).or_default();
        // Each follows the one before: what is over is removed from the first to the last.
        if of_term.last_key_value().is_some_and(|(last, _)| last + 1 != number) {
            return Err(Malformed::LengthOutOfRange);
        }
        of_term.insert(codec::checked(number)?, value);
    }
    Ok(votes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atomic::HistoryKey;
    use crate::atomic::view::{Place, Ranks, Storage};
    use crate::guid::GuidPrefix;

    #[derive(Clone, Debug, PartialEq, Eq)]
    struct Word(u64);

    impl crate::atomic::Body for Word {
        fn octets(&self) -> usize {
            8
        }
        fn digest(&self) -> u64 {
            self.0
        }
        fn history_key(&self) -> Option<HistoryKey> {
            None
        }
        fn history_depth(&self) -> u32 {
            0
        }
    }

    impl BodyCodec for Word {
        fn encode(&self, out: &mut Vec<u8>) {
            out.extend(self.0.to_le_bytes());
        }
        fn decode(octets: &mut &[u8]) -> Result<Self, Malformed> {
            let (taken, rest) = octets.split_first_chunk().ok_or(Malformed::Truncated)?;
            *octets = rest;
            Ok(Self(u64::from_le_bytes(*taken)))
        }
    }

    const fn id(number: u8) -> MemberId {
        MemberId { prefix: GuidPrefix([number; 12]), nonce: number as u64 }
    }

    fn view(epoch: u64, base_position: u64) -> View {
        let place = |number| Place { id: id(number), caught_up: true, storage: Storage::Durable };
        View {
            instance: 9,
            lineage: 0,
            epoch,
            members: vec![place(1), place(2)],
            voters: vec![id(1).voter()],
            voters_since: 1,
            base_position,
            base_clock: 3,
        }
    }

    const fn slot(rank: usize, index: u64) -> Slot {
        Slot { epoch: 4, rank, index }
    }

    fn changes() -> Vec<Change<Word>> {
        let decision = |base| Decision { base, cut: vec![1], incumbents: Ranks(1), next: view(base + 1, 20) };
        let delivered = |position, slot, is_kept| Change::Delivered { position, slot, from: id(2), is_kept };
        let record =
            |number, replaces| Change::Record { term: (9, 1), number, replaces, octets: vec![number as u8] };
        let agreed = |position| Delivered { position, epoch: 2, from: id(1), body: Word(position) };
        vec![
            Change::Begin { instance: 9, discards: false },
            Change::Agreed(agreed(7)),
            Change::Agreed(agreed(8)),
            Change::Through(20),
            Change::Forgotten(7, None),
            Change::Decision(Arc::new(decision(2)), None),
            Change::Decision(Arc::new(decision(3)), Some(2)),
            Change::View(Box::new(view(4, 20)), 1),
            Change::Held(slot(0, 1), 10, Word(100)),
            Change::Held(slot(1, 1), 11, Word(101)),
            Change::Held(slot(1, 2), 12, Word(102)),
            Change::Held(slot(0, 2), 13, Word(103)),
            Change::Held(slot(1, 3), 14, Word(104)),
            delivered(21, slot(0, 1), true),
            delivered(22, slot(1, 1), false),
            delivered(23, slot(1, 2), true),
            Change::Forgotten(21, Some(slot(0, 1))),
            Change::Claims(vec![id(2), id(3)]),
            record(1, None),
            record(2, None),
            record(3, Some(1)),
            record(4, None),
            Change::State(6, Arc::from(*b"state")),
        ]
    }

    fn commit(disk: &mut BTreeMap<Vec<u8>, Vec<u8>>, changes: &[Change<Word>]) {
        let mut batch = Batch::new();
        changes.iter().for_each(|change| change.stage(&mut batch));
        for (key, value) in batch {
            match value {
                Some(value) => disk.insert(key, value),
                None => disk.remove(&key),
            };
        }
    }

    fn read(disk: &BTreeMap<Vec<u8>, Vec<u8>>) -> Result<Image<Word>, Malformed> {
        Image::read(disk.clone())
    }

    #[test]
    fn what_is_committed_is_read_however_it_is_divided() {
        for step in 1..=changes().len() {
            let mut disk = BTreeMap::new();
            changes().chunks(step).for_each(|changes| commit(&mut disk, changes));
            let image = read(&disk).unwrap();
            assert_eq!((image.instance, image.have), (9, 23));
            assert_eq!(image.claims, [id(2), id(3)]);
            let kept: Vec<(u64, u64, Option<Slot>)> =
                image.history.iter().map(|(it, slot)| (it.position, it.body.0, *slot)).collect();
            assert_eq!(kept, [(8, 8, None), (23, 102, Some(slot(1, 2)))]);
            let epoch = image.epoch.unwrap();
            assert_eq!((epoch.view.epoch, epoch.rank), (4, 1));
            assert_eq!(epoch.delivered, [1, 2]);
            assert_eq!(epoch.held, [vec![(13, Word(103))], vec![(14, Word(104))]]);
            assert_eq!(image.decisions.iter().map(|it| it.base).collect::<Vec<_>>(), [3]);
            assert_eq!(image.votes[&(9, 1)], BTreeMap::from([(3, vec![3]), (4, vec![4])]));
            assert_eq!(image.state, Some((6, Arc::from(*b"state"))));
        }
    }

    #[test]
    fn what_is_over_leaves_nothing_behind() {
        let mut disk = BTreeMap::new();
        commit(&mut disk, &changes());
        let over = [
            Change::Left,
            Change::Dropped(slot(0, 2)),
            Change::Dropped(slot(1, 3)),
            Change::Forgotten(8, None),
            Change::Forgotten(23, Some(slot(1, 2))),
            Change::EndOfTerm((9, 1), 3..5),
        ];
        commit(&mut disk, &over);
        let image = read(&disk).unwrap();
        assert_eq!((image.epoch, image.history.len(), image.votes.len()), (None, 0, 0));
        assert!(!disk.keys().any(|key| key[0] == Table::Held as u8));
        commit(&mut disk, &[Change::View(Box::new(view(5, 23)), 0)]);
        assert_eq!(read(&disk).unwrap().epoch.unwrap().delivered, [0, 0]);
    }

    #[test]
    fn an_entry_that_is_missing_is_noticed() {
        let mut disk = BTreeMap::new();
        commit(&mut disk, &changes());
        for lost in [slot(1, 2), slot(1, 3)] {
            let mut disk = disk.clone();
            // The last of a lane may be missing: it was never said to be there.
            commit(&mut disk, &[Change::Held(slot(1, 4), 15, Word(105)), Change::Dropped(lost)]);
            assert!(read(&disk).is_err(), "{lost:?}");
        }
    }

    #[test]
    fn numbers_that_cannot_be_are_refused() {
        let mut disk = BTreeMap::new();
        commit(&mut disk, &changes());
        let max = u64::MAX.to_le_bytes().to_vec();
        let of_count = [(key(Table::Count, &[0]), max.clone()), (key(Table::Have, &[]), max.clone())];
        let of_state = [(key(Table::State, &[]), max)];
        let of_vote = [9, u64::MAX].map(|number| (record((9, 1), number), vec![1]));
        for (key, value) in of_count.into_iter().chain(of_state).chain(of_vote) {
            let mut disk = disk.clone();
            disk.insert(key.clone(), value);
            assert!(read(&disk).is_err(), "{key:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_octets_are_read_or_refused(
            at in 0_usize..40,
            value in proptest::collection::vec(proptest::num::u8::ANY, 0..60),
            key in proptest::collection::vec(proptest::num::u8::ANY, 0..26),
        ) {
            let mut disk = BTreeMap::new();
            commit(&mut disk, &changes());
            let of_disk = disk.keys().nth(at).cloned();
            disk.insert(of_disk.unwrap_or(key), value);
            let _ = read(&disk);
        }
    }
}
