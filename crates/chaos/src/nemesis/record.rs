//! What one process told, as a history.

use std::collections::BTreeMap;

use crate::clock::now_ns;
use crate::nemesis::history::order::{Entry, Id, Unknown, Write};
use crate::nemesis::history::{append, register};
use crate::nemesis::told::{Kind, Told, value};

#[derive(Default)]
pub(crate) struct Record {
    /// When it had found all others.
    pub(crate) ready_ns: Option<u64>,
    /// How often it has come to rest.
    pub(crate) rests: u64,
    /// Of each writer what it wrote, by number.
    pub(crate) writes: BTreeMap<u64, Vec<(Write, Kind)>>,
    /// So many of them may be in the order or not: nobody could tell it.
    pub(crate) unknown: u64,
    /// What it read.
    pub(crate) log: Vec<Entry>,
    /// So often it missed something and knew.
    pub(crate) missed: u64,
    registers: Vec<register::Operation>,
    lists: Vec<append::Operation>,
    /// Why it left its group, if its disk was the reason.
    pub(crate) disk_failed: Option<String>,
    /// What it last knew of its group.
    pub(crate) state: String,
    pub(crate) violations: Vec<String>,
}

impl Record {
    pub(crate) fn hear(&mut self, told: Told) {
        match told {
            Told::Ready => self.ready_ns = Some(now_ns()),
            Told::Rests => self.rests += 1,
            Told::Begins { id, kind, hash, at_ns } => {
                let write = Write { id, hash, began_ns: at_ns, resolved_ns: None, unknown: None };
                self.writes.entry(id.writer).or_default().push((write, kind));
            }
            Told::Resolved { id, at_ns } => {
                self.pending(id).for_each(|write| write.resolved_ns = Some(at_ns));
            }
            Told::Unknown { id, count } => {
                let unknown = Some(Unknown { through: id.number, count });
                self.pending(id).for_each(|write| write.unknown = unknown);
                self.unknown += count;
            }
            Told::Got(entry) => self.log.push(entry),
            Told::Missed => self.missed += 1,
            Told::Register { key, value, began_ns, ended_ns } => {
                let action = register::Action::Read(value);
                let ended_ns = Some(ended_ns);
                self.registers.push(register::Operation { key, action, began_ns, ended_ns });
            }
            Told::Lists { lists, began_ns, ended_ns } => {
                let action = append::Action::Read(lists);
                self.lists.push(append::Operation { action, began_ns, ended_ns: Some(ended_ns) });
            }
            Told::DiskFailed(what) => self.disk_failed = Some(what),
            Told::State(what) => self.state = what,
            Told::Violation(what) => self.violations.push(what),
        }
    }

    /// The writes of a writer up to a number of which nothing was told yet.
    fn pending(&mut self, id: Id) -> impl Iterator<Item = &mut Write> {
        let writes = self.writes.entry(id.writer).or_default().iter_mut().rev().map(|(write, _)| write);
        let up_to = writes.skip_while(move |write| write.id.number > id.number);
        up_to.take_while(|write| write.resolved_ns.is_none() && write.unknown.is_none())
    }

    pub(crate) fn all_writes(&self) -> impl Iterator<Item = &(Write, Kind)> {
        self.writes.values().flatten()
    }

    pub(crate) fn register_operations(&self) -> impl Iterator<Item = register::Operation> {
        let written = self.all_writes().filter_map(|(write, kind)| {
            let Kind::Register(key) = *kind else { return None };
            let action = register::Action::Write(value(write.id));
            Some(register::Operation { key, action, began_ns: write.began_ns, ended_ns: write.resolved_ns })
        });
        written.chain(self.registers.iter().copied())
    }

    pub(crate) fn list_operations(&self) -> impl Iterator<Item = append::Operation> {
        let appended = self.all_writes().filter_map(|(write, kind)| {
            let Kind::Append(key) = *kind else { return None };
            let action = append::Action::Append { key, element: value(write.id) };
            Some(append::Operation { action, began_ns: write.began_ns, ended_ns: write.resolved_ns })
        });
        appended.chain(self.lists.iter().cloned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_resolved_is_each_write_of_its_writer_up_to_a_number() {
        let mut record = Record::default();
        for number in 0..5 {
            for writer in [1, 2] {
                let id = Id { writer, number };
                record.hear(Told::Begins { id, kind: Kind::Register(3), hash: 0, at_ns: 10 + number });
            }
        }
        record.hear(Told::Resolved { id: Id { writer: 1, number: 1 }, at_ns: 20 });
        record.hear(Told::Resolved { id: Id { writer: 1, number: 3 }, at_ns: 30 });
        let resolved: Vec<_> = record.all_writes().map(|(write, _)| write.resolved_ns).collect();
        let one = [Some(20), Some(20), Some(30), Some(30), None];
        assert_eq!(resolved, [one, [None; 5]].concat());
        assert_eq!(record.register_operations().filter(|it| it.ended_ns == Some(30)).count(), 2);
        assert_eq!(record.list_operations().count(), 0);
    }

    #[test]
    fn what_is_told_to_be_unknown_is_not_resolved_by_what_is_told_later() {
        let mut record = Record::default();
        let id = |number| Id { writer: 1, number };
        for number in 0..5 {
            record.hear(Told::Begins { id: id(number), kind: Kind::Append(3), hash: 0, at_ns: 10 });
        }
        record.hear(Told::Resolved { id: id(0), at_ns: 20 });
        record.hear(Told::Unknown { id: id(2), count: 1 });
        record.hear(Told::Resolved { id: id(3), at_ns: 30 });
        let resolved: Vec<_> = record.all_writes().map(|(write, _)| write.resolved_ns).collect();
        assert_eq!(resolved, [Some(20), None, None, Some(30), None]);
        let unknown: Vec<_> = record.all_writes().map(|(write, _)| write.unknown).collect();
        let told = Some(Unknown { through: 2, count: 1 });
        assert_eq!(unknown, [None, told, told, None, None]);
        assert_eq!(record.unknown, 1);
        assert_eq!(record.list_operations().filter(|it| it.ended_ns.is_none()).count(), 3);
    }
}
