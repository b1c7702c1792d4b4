//! What is written: four topics, and samples whose length and octets follow from who wrote them and their
//! number.

use std::time::Duration;

use plainsong::prelude::*;

use crate::random::Random;

/// Processes with a number below this are never killed.
pub(crate) const SURVIVORS: u64 = 16;

/// A sample.
#[derive(Clone, Debug, Default, DdsType)]
#[dds(name = "Load", final)]
pub(crate) struct Load<'a> {
    /// See [`writer_id`].
    pub(crate) writer: u64,
    pub(crate) number: u64,
    pub(crate) octets: OctetSeq<'a>,
}

/// A topic, its QoS, and how it is written.
pub(crate) struct Flow {
    pub(crate) topic: &'static str,
    pub(crate) reliable: bool,
    /// No sample between two may be missing.
    pub(crate) keeps_all: bool,
    pub(crate) latched: bool,
    /// Shortest and longest payload, in octets; the short are as frequent as the long.
    bytes: [u64; 2],
    pub(crate) pause: Duration,
}

pub(crate) const FLOWS: [Flow; 4] = [
    Flow {
        topic: "Short",
        reliable: true,
        keeps_all: true,
        latched: false,
        bytes: [16, 1_024],
        pause: Duration::from_millis(3),
    },
    Flow {
        topic: "Any",
        reliable: true,
        keeps_all: true,
        latched: false,
        bytes: [16, 1 << 20],
        pause: Duration::from_millis(12),
    },
    Flow {
        topic: "Latched",
        reliable: true,
        keeps_all: false,
        latched: true,
        bytes: [16, 64 << 10],
        pause: Duration::from_millis(8),
    },
    Flow {
        topic: "BestEffort",
        reliable: false,
        keeps_all: false,
        latched: false,
        bytes: [16, 256 << 10],
        pause: Duration::from_millis(8),
    },
];

/// Samples of a latched writer that late joiners get.
const LATCHED_DEPTH: i32 = 8;
/// Longer than any process is stopped for.
const BLOCKING: Duration = Duration::from_secs(10);

impl Flow {
    pub(crate) fn offered(&self) -> QosSet {
        let qos = QosSet::writer();
        let qos = if self.reliable { qos.max_blocking_time(BLOCKING) } else { qos.best_effort() };
        let qos = if self.latched { qos.durability(Durability::TransientLocal) } else { qos };
        if self.keeps_all { qos.keep_all() } else { qos.keep_last(LATCHED_DEPTH) }
    }

    pub(crate) fn requested(&self) -> QosSet {
        let qos = QosSet::reader();
        let qos = if self.reliable { qos.reliable() } else { qos.best_effort() };
        let qos = if self.latched { qos.durability(Durability::TransientLocal) } else { qos };
        qos.keep_all()
    }

    /// How long the payload of a sample is.
    pub(crate) fn length(&self, writer: u64, number: u64) -> usize {
        let [low, high] = self.bytes;
        Random::new(writer.rotate_left(32) ^ number).between(low, high) as usize
    }
}

/// Whose samples they are: the number of the process and of the flow.
pub(crate) const fn writer_id(process: u64, flow: usize) -> u64 {
    process << 8 | flow as u64
}

pub(crate) const fn process_of(writer: u64) -> u64 {
    writer >> 8
}

/// The flow of a writer, if there is such a one.
pub(crate) const fn flow_of(writer: u64) -> usize {
    (writer & 0xff) as usize
}

/// The octets of a sample, in eights.
fn words(writer: u64, number: u64) -> impl Iterator<Item = [u8; 8]> {
    let mut random = Random::new(writer ^ number.rotate_left(40));
    std::iter::repeat_with(move || random.next().to_le_bytes())
}

/// Makes `octets` those of a sample.
pub(crate) fn fill(octets: &mut Vec<u8>, length: usize, writer: u64, number: u64) {
    octets.resize(length, 0);
    for (eight, word) in octets.chunks_mut(8).zip(words(writer, number)) {
        eight.copy_from_slice(&word[..eight.len()]);
    }
}

/// Whether they are those of that sample.
pub(crate) fn is_whole(octets: &[u8], writer: u64, number: u64) -> bool {
    let Some(flow) = FLOWS.get(flow_of(writer)) else { return false };
    octets.len() == flow.length(writer, number)
        && octets.chunks(8).zip(words(writer, number)).all(|(eight, word)| *eight == word[..eight.len()])
}

/// What is wrong with the octets of a sample.
pub(crate) fn difference(octets: &[u8], writer: u64, number: u64) -> String {
    let Some(flow) = FLOWS.get(flow_of(writer)) else { return format!("writer {writer:#x}") };
    let mut right = Vec::new();
    fill(&mut right, flow.length(writer, number), writer, number);
    let mut wrong =
        octets.iter().zip(&right).enumerate().filter(|(_, (is, must))| is != must).map(|(at, _)| at);
    let (first, last) = (wrong.next(), wrong.next_back());
    format!("{} octets instead of {}, others from {first:?} to {last:?}", octets.len(), right.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_are_those_of_one_sample_alone() {
        let writer = writer_id(300, 1);
        assert_eq!((process_of(writer), flow_of(writer)), (300, 1));
        let mut octets = Vec::new();
        for number in 0..50 {
            fill(&mut octets, FLOWS[1].length(writer, number), writer, number);
            assert!(is_whole(&octets, writer, number));
            assert!(!is_whole(&octets, writer, number + 1));
            assert!(!is_whole(&octets, writer + 256, number));
            assert!(!is_whole(&octets[1..], writer, number));
            let last = octets.len() - 1;
            octets[last] ^= 1;
            assert!(!is_whole(&octets, writer, number));
        }
    }

    #[test]
    fn short_payloads_are_as_frequent_as_long_ones() {
        let lengths: Vec<usize> = (0..2_000).map(|number| FLOWS[1].length(7, number)).collect();
        assert!(lengths.iter().all(|length| (16..=1 << 20).contains(length)));
        let short = lengths.iter().filter(|length| **length < 4_096).count();
        assert!((800..1_200).contains(&short), "{short}");
    }
}
