//! What a process under load tells whoever started it, a line each.

use std::fmt;

/// A line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// All that it was to make is there.
    Ready,
    /// What must never be.
    Violation(String),
    /// No sample of a writer that is never killed came for so long, or a write of one took so long.
    Stall { flow: usize, from_ns: u64, to_ns: u64, writing: bool },
    /// What the writer of a flow says while a write lasts long.
    Waits { flow: usize, from_ns: u64, state: String },
    /// Threads of the process that were to run did not for so long.
    Paused { from_ns: u64, to_ns: u64 },
    /// Since the beginning.
    Count(Count),
    /// The last sample that a writer that is never killed wrote.
    Written { writer: u64, number: u64 },
    /// The last sample of it that came.
    Seen { writer: u64, number: u64 },
    /// The end of an answer: endpoints matched with its own, and whether nothing is being written.
    Rests { matched: u64, resting: bool },
}

/// What went through a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) written: u64,
    pub(crate) received: u64,
    /// Of payloads received.
    pub(crate) octets: u64,
    /// Readers that heard of a writer before they were matched.
    pub(crate) late: u64,
    /// The longest pause between two samples of a writer that is never killed.
    pub(crate) pause_ns: u64,
    /// The longest write.
    pub(crate) write_ns: u64,
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready => f.write_str("ready"),
            Self::Violation(what) => write!(f, "violation {what}"),
            Self::Stall { flow, from_ns, to_ns, writing } => {
                write!(f, "stall {flow} {from_ns} {to_ns} {}", u8::from(*writing))
            }
            Self::Waits { flow, from_ns, state } => write!(f, "waits {flow} {from_ns} {state}"),
            Self::Paused { from_ns, to_ns } => write!(f, "paused {from_ns} {to_ns}"),
            Self::Count(it) => {
                let Count { written, received, octets, late, pause_ns, write_ns } = it;
                write!(f, "count {written} {received} {octets} {late} {pause_ns} {write_ns}")
            }
            Self::Written { writer, number } => write!(f, "written {writer} {number}"),
            Self::Seen { writer, number } => write!(f, "seen {writer} {number}"),
            Self::Rests { matched, resting } => write!(f, "rests {matched} {}", u8::from(*resting)),
        }
    }
}

impl Told {
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        if word == "violation" {
            return Some(Self::Violation(rest.to_owned()));
        }
        if word == "waits" {
            let mut words = rest.splitn(3, ' ');
            let (flow, from_ns, state) = (words.next()?, words.next()?, words.next()?);
            let (flow, from_ns) = (flow.parse().ok()?, from_ns.parse().ok()?);
            return Some(Self::Waits { flow, from_ns, state: state.to_owned() });
        }
        let numbers: Option<Vec<u64>> = rest.split_whitespace().map(|it| it.parse().ok()).collect();
        Some(match (word, numbers?.as_slice()) {
            ("ready", []) => Self::Ready,
            ("stall", &[flow, from_ns, to_ns, writing]) => {
                Self::Stall { flow: flow as usize, from_ns, to_ns, writing: writing != 0 }
            }
            ("paused", &[from_ns, to_ns]) => Self::Paused { from_ns, to_ns },
            ("count", &[written, received, octets, late, pause_ns, write_ns]) => {
                Self::Count(Count { written, received, octets, late, pause_ns, write_ns })
            }
            ("written", &[writer, number]) => Self::Written { writer, number },
            ("seen", &[writer, number]) => Self::Seen { writer, number },
            ("rests", &[matched, resting]) => Self::Rests { matched, resting: resting != 0 },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_they_were_told() {
        let count = Count { written: 1, received: 2, octets: 3, late: 4, pause_ns: 5, write_ns: 6 };
        for told in [
            Told::Ready,
            Told::Violation("a sample of 3: corrupted".to_owned()),
            Told::Stall { flow: 1, from_ns: 2, to_ns: 3, writing: true },
            Told::Waits { flow: 1, from_ns: 2, state: "for 3 readers".to_owned() },
            Told::Paused { from_ns: 5, to_ns: 6 },
            Told::Count(count),
            Told::Written { writer: 1, number: 2 },
            Told::Seen { writer: 1, number: 2 },
            Told::Rests { matched: 7, resting: false },
        ] {
            assert_eq!(Told::parse(&told.to_string()), Some(told));
        }
        assert_eq!(Told::parse("count 1 2 x 4 5"), None);
        assert_eq!(Told::parse("thread 'main' panicked"), None);
    }
}
