//! Records: the state of a voter and its changes, as octets for its disk.
//!
//! A whole record has the voter, all voters, which incarnation of the voter it begins, and its state.
//! Others have changes of it. Each has its number, so that a missing one is noticed.

use std::collections::VecDeque;

use crate::atomic::decider::decided::{Decided, Entry};
use crate::atomic::decider::message::{
    read_ballot, read_entries, read_index, write_ballot, write_entries, write_index,
};
use crate::atomic::decider::store::{Change, Store};
use crate::atomic::decider::{Electorate, Record, RestoreError, VOTERS_MAX, VoterId};
use crate::malformed::Malformed;
use crate::tuning::decider::RECORDED_BYTES_MAX;
use crate::wire::octets::{Reader, Sink};

const VERSION: u8 = 1;
const CHANGES: u8 = 0;
const WHOLE: u8 = 1;
/// The ends of the numbers that incarnations and records have.
const INCARNATIONS_MAX: u32 = u32::MAX - 1;
const NUMBER_MAX: u64 = 1 << 60;

/// Makes the records of one incarnation of a voter.
#[derive(Clone, Debug)]
pub(super) struct Journal {
    /// Which incarnation this is, from 1.
    pub(super) incarnation: u32,
    /// The number of the last record.
    pub(super) taken: u64,
    /// Records up to this number are durable.
    pub(super) durable: u64,
    /// Octets since the last whole record; `None` when that is to come.
    changed_octets: Option<usize>,
}

impl Journal {
    pub(super) const fn new() -> Self {
        Self { incarnation: 1, taken: 0, durable: 0, changed_octets: None }
    }

    /// The number of the record that will have everything that has happened so far.
    pub(super) fn needed(&self, store: &Store) -> u64 {
        self.taken + u64::from(self.changed_octets.is_none() || !store.changes.is_empty())
    }

    pub(super) fn take(&mut self, electorate: &Electorate, store: &mut Store) -> Option<Record> {
        if self.needed(store) == self.taken {
            return None;
        }
        let changes = std::mem::take(&mut store.changes);
        self.taken += 1;
        let mut octets = Vec::new();
        let mut sink = Sink::new(&mut octets, true);
        let whole = self.changed_octets.is_none_or(|octets| octets > RECORDED_BYTES_MAX);
        sink.octets(&[VERSION, if whole { WHOLE } else { CHANGES }, 0, 0]);
        sink.octets(&self.taken.to_le_bytes());
        if whole {
            write_whole(&mut sink, electorate, self.incarnation, store);
            self.changed_octets = Some(0);
        } else {
            changes.iter().for_each(|change| write_change(&mut sink, change));
            self.changed_octets = self.changed_octets.map(|before| before + octets.len());
        }
        Some(Record { number: self.taken, whole, octets })
    }

    pub(super) fn persisted(&mut self, number: u64) {
        self.durable = self.durable.max(number.min(self.taken));
    }

    /// State and journal of the next incarnation of a voter, from the records of those before: none
    /// when it is new.
    pub(super) fn restore<'a>(
        electorate: &Electorate,
        records: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<(Self, Store), RestoreError> {
        let mut restored: Option<(Self, Store)> = None;
        for (index, octets) in records.into_iter().enumerate() {
            let damaged = |malformed| RestoreError::Damaged(index, malformed);
            let mut reader = Reader::new(octets, true);
            let [version, kind, _, _] = reader.array().map_err(damaged)?;
            let number = reader.array().map(u64::from_le_bytes).map_err(damaged)?;
            if version != VERSION || number > NUMBER_MAX {
                return Err(damaged(Malformed::NotUnderstood));
            }
            if let Some((journal, _)) = &restored
                && journal.taken + 1 != number
            {
                return Err(RestoreError::Gap(index));
            }
            match (kind, &mut restored) {
                (WHOLE, _) => {
                    let (voters, incarnation, store) = read_whole(&mut reader).map_err(damaged)?;
                    if voters != (electorate.own, electorate.voters.clone()) {
                        return Err(RestoreError::OtherVoters);
                    }
                    restored = Some((Self { incarnation, ..Self::new() }, store));
                }
                (CHANGES, Some((_, store))) => {
                    while !reader.is_empty() {
                        store.apply(&read_change(&mut reader).map_err(damaged)?);
                    }
                }
                (CHANGES, None) => return Err(RestoreError::NoBeginning),
                _ => return Err(damaged(Malformed::InvalidEnum)),
            }
            if let Some((journal, store)) = &mut restored {
                (journal.taken, journal.durable) = (number, number);
                if store.has_failed || store.decided_index > store.log_end() {
                    return Err(RestoreError::Gap(index));
                }
            }
        }
        let first = || (Self { incarnation: 0, ..Self::new() }, Store::new(electorate.first_base));
        let (mut journal, mut store) = restored.unwrap_or_else(first);
        store.compact(store.decided_index);
        journal.incarnation = journal.incarnation.saturating_add(1).min(INCARNATIONS_MAX);
        Ok((journal, store))
    }
}

fn write_whole(sink: &mut Sink<'_>, electorate: &Electorate, incarnation: u32, store: &Store) {
    sink.octets(&electorate.own.0);
    sink.u32(electorate.voters.len() as u32);
    electorate.voters.iter().for_each(|voter| sink.octets(&voter.0));
    sink.u32(incarnation);
    write_ballot(sink, store.promise);
    write_ballot(sink, store.accepted);
    write_index(sink, store.decided_index);
    write_index(sink, store.log_start);
    let log: Vec<Entry> = store.log.iter().cloned().collect();
    write_entries(sink, &log);
    store.decided.write_from(0, sink);
}

type Voters = (VoterId, Vec<VoterId>);

fn read_whole(reader: &mut Reader<'_>) -> Result<(Voters, u32, Store), Malformed> {
    let own = reader.array().map(VoterId)?;
    let count = reader.count(VOTERS_MAX, 16)?;
    let voters = (0..count).map(|_| reader.array().map(VoterId)).collect::<Result<_, _>>()?;
    let incarnation = reader.u32()?;
    let promise = read_ballot(reader)?;
    let accepted = read_ballot(reader)?;
    let decided_index = read_index(reader)?;
    let log_start = read_index(reader)?;
    let log = VecDeque::from(read_entries(reader, usize::MAX)?);
    let decided = Decided::read(reader)?;
    if !reader.is_empty() {
        return Err(Malformed::LengthOutOfRange);
    }
    let store = Store { promise, accepted, decided_index, log_start, log, decided, ..Store::new(0) };
    Ok(((own, voters), incarnation, store))
}

const PROMISE: u8 = 1;
const ACCEPTED: u8 = 2;
const DECIDED: u8 = 3;
const APPEND: u8 = 4;
const INSTALL: u8 = 5;

fn write_change(sink: &mut Sink<'_>, change: &Change) {
    match change {
        Change::Promise(ballot) => {
            sink.octets(&[PROMISE]);
            write_ballot(sink, *ballot);
        }
        Change::Accepted(ballot) => {
            sink.octets(&[ACCEPTED]);
            write_ballot(sink, *ballot);
        }
        Change::Decided(index) => {
            sink.octets(&[DECIDED]);
            write_index(sink, *index);
        }
        Change::Append(from, entries) => {
            sink.octets(&[APPEND]);
            write_index(sink, *from);
            write_entries(sink, entries);
        }
        Change::Install(index, decided) => {
            sink.octets(&[INSTALL]);
            write_index(sink, *index);
            decided.write_from(0, sink);
        }
    }
}

fn read_change(reader: &mut Reader<'_>) -> Result<Change, Malformed> {
    let [kind] = reader.array()?;
    Ok(match kind {
        PROMISE => Change::Promise(read_ballot(reader)?),
        ACCEPTED => Change::Accepted(read_ballot(reader)?),
        DECIDED => Change::Decided(read_index(reader)?),
        APPEND => Change::Append(read_index(reader)?, read_entries(reader, usize::MAX)?),
        INSTALL => Change::Install(read_index(reader)?, Decided::read(reader)?),
        _ => return Err(Malformed::InvalidEnum),
    })
}
