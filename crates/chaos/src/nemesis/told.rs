//! What a process tells on its standard output, a line each.

use std::fmt::{self, Write as _};

use crate::nemesis::history::order::{Entry, Id};

/// The last word of each line: the process may be killed within one.
const END: &str = ".";

/// What a sample does to the state that all readers keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nothing.
    Load,
    /// The register with this key gets a new value.
    Register(u64),
    /// To the list with this key an element is appended.
    Append(u64),
}

impl Kind {
    pub(crate) const fn code(self) -> (u64, u64) {
        match self {
            Self::Load => (0, 0),
            Self::Register(key) => (1, key),
            Self::Append(key) => (2, key),
        }
    }

    pub(crate) const fn of_code(code: u64, key: u64) -> Self {
        match code {
            1 => Self::Register(key),
            2 => Self::Append(key),
            _ => Self::Load,
        }
    }
}

/// The value that a register gets by a sample, and the element that a list gets.
pub(crate) const fn value(id: Id) -> u64 {
    id.writer << 32 | id.number
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// It has all the matches that it expects.
    Ready,
    /// A write begins.
    Begins { id: Id, kind: Kind, hash: u64, at_ns: u64 },
    /// All writes of that writer up to this number are known to be where they belong.
    Resolved { id: Id, at_ns: u64 },
    /// Of the writes of that writer up to this number of which nothing was told yet, so many may be in the
    /// order or not, and the others are.
    Unknown { id: Id, count: u64 },
    /// A sample was read.
    Got(Entry),
    /// It missed something, and knows.
    Missed,
    /// The register with this key was read.
    Register { key: u64, value: Option<u64>, began_ns: u64, ended_ns: u64 },
    /// Some lists were read at once.
    Lists { lists: Vec<(u64, Vec<u64>)>, began_ns: u64, ended_ns: u64 },
    /// It has done what it was told to, and all that it wrote is resolved.
    Rests,
    /// It has left its group since it cannot write to its disk.
    DiskFailed(String),
    /// What it knows of its group.
    State(String),
    /// Something is wrong.
    Violation(String),
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready => write!(f, "ready")?,
            Self::Begins { id, kind, hash, at_ns } => {
                let (code, key) = kind.code();
                write!(f, "begins {} {} {code} {key} {hash} {at_ns}", id.writer, id.number)?;
            }
            Self::Resolved { id, at_ns } => write!(f, "resolved {} {} {at_ns}", id.writer, id.number)?,
            Self::Unknown { id, count } => write!(f, "unknown {} {} {count}", id.writer, id.number)?,
            Self::Got(Entry { position, epoch, id, hash, at_ns }) => {
                write!(f, "got {position} {epoch} {} {} {hash} {at_ns}", id.writer, id.number)?;
            }
            Self::Missed => write!(f, "missed")?,
            Self::Register { key, value, began_ns, ended_ns } => {
                write!(f, "register {key} {began_ns} {ended_ns}")?;
                value.iter().try_for_each(|value| write!(f, " {value}"))?;
            }
            Self::Lists { lists, began_ns, ended_ns } => {
                write!(f, "lists {began_ns} {ended_ns}")?;
                for (key, elements) in lists {
                    write!(f, " {} {key}", elements.len())?;
                    elements.iter().try_for_each(|element| write!(f, " {element}"))?;
                }
            }
            Self::Rests => write!(f, "rests")?,
            Self::DiskFailed(what) => write!(f, "disk {what}")?,
            Self::State(what) => write!(f, "state {what}")?,
            Self::Violation(what) => write!(f, "violation {what}")?,
        }
        f.write_char(' ')?;
        f.write_str(END)
    }
}

impl Told {
    /// What a line tells, if it is a whole one of those above.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let line = line.strip_suffix(END)?.strip_suffix(' ')?;
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "state" => return Some(Self::State(rest.to_owned())),
            "disk" => return Some(Self::DiskFailed(rest.to_owned())),
            "violation" => return Some(Self::Violation(rest.to_owned())),
            _ => {}
        }
        let numbers: Option<Vec<u64>> = rest.split_whitespace().map(|it| it.parse().ok()).collect();
        Some(match (word, numbers?.as_slice()) {
            ("ready", []) => Self::Ready,
            ("begins", &[writer, number, code, key, hash, at_ns]) => {
                Self::Begins { id: Id { writer, number }, kind: Kind::of_code(code, key), hash, at_ns }
            }
            ("resolved", &[writer, number, at_ns]) => Self::Resolved { id: Id { writer, number }, at_ns },
            ("unknown", &[writer, number, count]) => Self::Unknown { id: Id { writer, number }, count },
            ("got", &[position, epoch, writer, number, hash, at_ns]) => {
                Self::Got(Entry { position, epoch, id: Id { writer, number }, hash, at_ns })
            }
            ("missed", []) => Self::Missed,
            ("register", &[key, began_ns, ended_ns]) => {
                Self::Register { key, value: None, began_ns, ended_ns }
            }
            ("register", &[key, began_ns, ended_ns, value]) => {
                Self::Register { key, value: Some(value), began_ns, ended_ns }
            }
            ("lists", &[began_ns, ended_ns, ref lists @ ..]) => {
                Self::Lists { lists: lists_of(lists)?, began_ns, ended_ns }
            }
            ("rests", []) => Self::Rests,
            _ => return None,
        })
    }
}

/// Each list is told as its length, its key, and its elements.
fn lists_of(mut numbers: &[u64]) -> Option<Vec<(u64, Vec<u64>)>> {
    let mut lists = Vec::new();
    while let Some((&count, rest)) = numbers.split_first() {
        let (&key, rest) = rest.split_first()?;
        let (elements, rest) = rest.split_at_checked(usize::try_from(count).ok()?)?;
        lists.push((key, elements.to_vec()));
        numbers = rest;
    }
    Some(lists)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_they_were_told_and_halves_of_lines_are_not() {
        let id = Id { writer: 33, number: 4 };
        for told in [
            Told::Ready,
            Told::Begins { id, kind: Kind::Append(7), hash: 8, at_ns: 9 },
            Told::Begins { id, kind: Kind::Register(7), hash: 8, at_ns: 9 },
            Told::Begins { id, kind: Kind::Load, hash: 8, at_ns: 9 },
            Told::Resolved { id, at_ns: 12 },
            Told::Unknown { id, count: 3 },
            Told::Got(Entry { position: 1, epoch: 2, id, hash: 5, at_ns: 6 }),
            Told::Missed,
            Told::Register { key: 3, value: None, began_ns: 4, ended_ns: 5 },
            Told::Register { key: 3, value: Some(6), began_ns: 4, ended_ns: 5 },
            Told::Lists { lists: vec![(1, vec![5, 6, 7]), (2, vec![])], began_ns: 4, ended_ns: 5 },
            Told::Rests,
            Told::DiskFailed("full".to_owned()),
            Told::State("position 3 of 4".to_owned()),
            Told::Violation("a write: no".to_owned()),
        ] {
            let line = told.to_string();
            assert_eq!(Told::parse(&line), Some(told));
            (0..line.len()).for_each(|end| assert_eq!(Told::parse(&line[..end]), None, "{line} {end}"));
        }
    }
}
