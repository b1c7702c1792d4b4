//! What a reader of a topic may receive: from each writer whole samples, in order, each once, and of a
//! history that keeps all every one after the first.

use std::collections::HashMap;
use std::fmt;

use crate::load::{Flow, SURVIVORS, flow_of, is_whole, process_of};

/// So long after its last sample a writer that was killed is forgotten.
const FORGET_NS: u64 = 30_000_000_000;
/// So long after the first sample of a writer one gap is none: what was sent to a process that was killed
/// may reach the one that has its UDP port now, before that one is matched and its samples begin.
const JOINS_NS: u64 = 500_000_000;
/// Samples between two looks for such writers.
const LOOK_EVERY: u64 = 4_096;

/// What a sample must not be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Corrupted,
    Duplicated,
    Reordered,
    /// Those before it are missing.
    Lost,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Corrupted => "corrupted",
            Self::Duplicated => "duplicated",
            Self::Reordered => "reordered",
            Self::Lost => "lost",
        })
    }
}

/// The last sample of a writer.
#[derive(Clone, Copy, Debug)]
struct Last {
    number: u64,
    /// Those before it that came.
    count: u64,
    at_ns: u64,
    /// When the first came, if no gap followed.
    begin_ns: Option<u64>,
}

/// What one reader has received of each writer.
pub(crate) struct Streams {
    flow: usize,
    keeps_all: bool,
    last: HashMap<u64, Last>,
    received: u64,
}

/// What one sample told.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) fault: Option<Fault>,
    /// When the sample before it of a writer that is never killed came.
    pub(crate) since_ns: Option<u64>,
    /// Samples of the same writer that came before.
    pub(crate) count: u64,
    /// It had begun to come too early.
    pub(crate) joined_late: bool,
}

impl Streams {
    pub(crate) fn new(index: usize, flow: &Flow) -> Self {
        Self { flow: index, keeps_all: flow.keeps_all, last: HashMap::new(), received: 0 }
    }

    pub(crate) fn check(&mut self, at_ns: u64, writer: u64, number: u64, octets: &[u8]) -> Found {
        self.received += 1;
        if self.received.is_multiple_of(LOOK_EVERY) {
            self.last.retain(|_, last| at_ns.saturating_sub(last.at_ns) < FORGET_NS);
        }
        if flow_of(writer) != self.flow || !is_whole(octets, writer, number) {
            return Found { fault: Some(Fault::Corrupted), ..Found::default() };
        }
        let before = self.last.get(&writer).copied();
        let Some(last) = before else {
            self.last.insert(writer, Last { number, count: 0, at_ns, begin_ns: Some(at_ns) });
            return Found::default();
        };
        let mut begin_ns = last.begin_ns;
        let mut joined_late = false;
        let fault = match number {
            _ if number == last.number => Some(Fault::Duplicated),
            _ if number < last.number => Some(Fault::Reordered),
            _ if self.keeps_all && number > last.number + 1 => {
                joined_late = begin_ns.take().is_some_and(|it| at_ns.saturating_sub(it) < JOINS_NS);
                (!joined_late).then_some(Fault::Lost)
            }
            _ => None,
        };
        let number = number.max(last.number);
        let count = last.count + 1;
        self.last.insert(writer, Last { number, count, at_ns, begin_ns });
        Found { fault, count, joined_late, since_ns: (process_of(writer) < SURVIVORS).then_some(last.at_ns) }
    }

    /// The last samples of writers that are never killed.
    pub(crate) fn of_survivors(&self) -> impl Iterator<Item = (u64, u64)> {
        let survive = |(writer, _): &(&u64, &Last)| process_of(**writer) < SURVIVORS;
        self.last.iter().filter(survive).map(|(writer, last)| (*writer, last.number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{FLOWS, fill, writer_id};

    fn faults(flow: usize, numbers: &[u64]) -> Vec<Option<Fault>> {
        faults_at(flow, numbers.iter().map(|number| (number * JOINS_NS, *number)))
    }

    fn faults_at(flow: usize, numbers: impl Iterator<Item = (u64, u64)>) -> Vec<Option<Fault>> {
        let mut streams = Streams::new(flow, &FLOWS[flow]);
        let writer = writer_id(20, flow);
        let mut octets = Vec::new();
        let mut check = |at_ns, number: u64| {
            fill(&mut octets, FLOWS[flow].length(writer, number), writer, number);
            streams.check(at_ns, writer, number, &octets).fault
        };
        numbers.map(|(at_ns, number)| check(at_ns, number)).collect()
    }

    #[test]
    fn one_gap_may_be_soon_after_the_beginning() {
        let lost = Some(Fault::Lost);
        assert_eq!(faults_at(0, [(0, 5), (1, 7), (2, 8), (3, 10)].into_iter()), [None, None, None, lost]);
        assert_eq!(faults_at(0, [(0, 5), (JOINS_NS, 7)].into_iter()), [None, lost]);
    }

    #[test]
    fn each_fault_is_called_by_its_name() {
        let lost = [None, None, Some(Fault::Lost), None];
        assert_eq!(faults(0, &[5, 6, 8, 9]), lost);
        assert_eq!(faults(3, &[5, 6, 8, 9]), [None; 4], "who keeps the last may miss some");
        assert_eq!(faults(3, &[5, 5, 6]), [None, Some(Fault::Duplicated), None]);
        assert_eq!(faults(2, &[5, 7, 6, 8]), [None, None, Some(Fault::Reordered), None]);
    }

    #[test]
    fn octets_of_another_topic_are_corrupted() {
        let mut streams = Streams::new(0, &FLOWS[0]);
        let mut octets = Vec::new();
        let writer = writer_id(1, 1);
        fill(&mut octets, FLOWS[1].length(writer, 3), writer, 3);
        assert_eq!(streams.check(0, writer, 3, &octets).fault, Some(Fault::Corrupted));
    }

    #[test]
    fn pauses_are_those_of_writers_that_are_never_killed() {
        let mut streams = Streams::new(0, &FLOWS[0]);
        let mut since = |process, at_ns, number| {
            let writer = writer_id(process, 0);
            let mut octets = Vec::new();
            fill(&mut octets, FLOWS[0].length(writer, number), writer, number);
            streams.check(at_ns, writer, number, &octets).since_ns
        };
        assert_eq!([since(1, 10, 0), since(1, 30, 1), since(1, 40, 2)], [None, Some(10), Some(30)]);
        assert_eq!([since(SURVIVORS, 10, 0), since(SURVIVORS, 30, 1)], [None, None]);
        assert_eq!(streams.of_survivors().collect::<Vec<_>>(), [(writer_id(1, 0), 2)]);
    }
}
