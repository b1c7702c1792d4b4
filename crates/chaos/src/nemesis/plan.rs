//! What a run consists of: cells, each some processes, a durability and a nemesis for some seconds.

use std::fmt;
use std::str::FromStr;

use clap::ValueEnum;

use crate::random::Random;

/// What the topic promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Consistency {
    /// Each reader gets what each writer wrote, in its order.
    Eventual,
    /// All readers get the same in the same order.
    Atomic,
}

/// What a process does with the topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Role {
    pub(crate) writes: bool,
    pub(crate) reads: bool,
}

const WRITER: Role = Role { writes: true, reads: false };
const READER: Role = Role { writes: false, reads: true };
const BOTH: Role = Role { writes: true, reads: true };
const WITNESS: Role = Role { writes: false, reads: false };

/// Who takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Topology {
    /// A writer, a reader and a process that has no part in the topic.
    Pair,
    /// Three that write and read.
    Triple,
    /// Two writers and five readers.
    Seven,
}

impl Topology {
    pub(crate) const fn roles(self) -> &'static [Role] {
        match self {
            Self::Pair => &[WRITER, READER, WITNESS],
            Self::Triple => &[BOTH; 3],
            Self::Seven => &[WRITER, WRITER, READER, READER, READER, READER, READER],
        }
    }
}

/// What late joiners get.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Durability {
    Volatile,
    TransientLocal,
    /// Each process has a disk, which outlives it.
    Persistent,
}

/// What is done to the processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Nemesis {
    /// Nothing.
    Calm,
    /// They are killed, and start again some time later.
    Kill,
    /// They leave in order, and start again.
    Leave,
    /// They are stopped for 0.05 to 10 seconds.
    Freeze,
    /// They get a tenth of a processor.
    Squeeze,
    /// One of them is cut off from all others.
    Isolate,
    /// They fall into two parts.
    Split,
    /// Two parts with one process between them that reaches both.
    Bridge,
    /// What one of them sends, or is sent, is lost.
    OneWay,
    /// Two of them do not reach each other.
    Apart,
    /// 1, 5 or 20 % are lost.
    Loss,
    /// 5 % come twice, 25 % are overtaken.
    Reorder,
    /// Up to 50 ms late.
    Delay,
    /// Most of them, or all, are killed at once.
    Outage,
    /// The disk of one is full.
    Full,
    /// The wall clock jumps by up to an hour, back or forth.
    Clock,
    /// All of these at random.
    Mix,
}

impl Nemesis {
    /// Those that a mix is made of.
    pub(crate) const SINGLE: [Self; 13] = [
        Self::Kill,
        Self::Leave,
        Self::Freeze,
        Self::Squeeze,
        Self::Isolate,
        Self::Split,
        Self::Bridge,
        Self::OneWay,
        Self::Apart,
        Self::Loss,
        Self::Reorder,
        Self::Delay,
        Self::Clock,
    ];
    /// And these, where processes have disks.
    pub(crate) const OF_DISKS: [Self; 2] = [Self::Outage, Self::Full];

    fn needs_disk(self) -> bool {
        Self::OF_DISKS.contains(&self)
    }
}

impl Durability {
    /// Those that a topic may have.
    const fn of(consistency: Consistency) -> &'static [Self] {
        match consistency {
            Consistency::Eventual => &[Self::Volatile, Self::TransientLocal],
            Consistency::Atomic => &[Self::Volatile, Self::TransientLocal, Self::Persistent],
        }
    }
}

/// A part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) topology: Topology,
    pub(crate) durability: Durability,
    pub(crate) nemesis: Nemesis,
}

impl Cell {
    /// Why it cannot be had, if it cannot.
    pub(crate) fn lacks(&self, consistency: Consistency, has_clock: bool) -> Option<&'static str> {
        let ends_process = matches!(self.nemesis, Nemesis::Kill | Nemesis::Leave | Nemesis::Mix);
        if self.nemesis == Nemesis::Clock && !has_clock {
            return Some("no libfaketime (Debian: faketime)");
        }
        let has_disks = self.durability == Durability::Persistent;
        if has_disks && consistency == Consistency::Eventual {
            return Some("only ATOMIC topics are kept on disks");
        }
        if self.nemesis.needs_disk() && !has_disks {
            return Some("without PERSISTENT there are no disks");
        }
        let is_pair = consistency == Consistency::Atomic && self.topology == Topology::Pair;
        (is_pair && ends_process && !has_disks).then_some("of two members the first alone votes")
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { topology, durability, nemesis } = self;
        write!(f, "{}/{}/{}", name(topology), name(durability), name(nemesis))
    }
}

/// As it is written on a command line.
pub(crate) fn name<T: ValueEnum>(value: &T) -> String {
    value.to_possible_value().map_or_else(String::new, |it| it.get_name().to_owned())
}

impl FromStr for Cell {
    type Err = String;

    /// As it is printed: `triple/volatile/kill`.
    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split('/').collect();
        let &[topology, durability, nemesis] = parts.as_slice() else {
            return Err(
                "a cell is written TOPOLOGY/DURABILITY/NEMESIS, such as triple/volatile/kill".to_owned()
            );
        };
        Ok(Self {
            topology: Topology::from_str(topology, true)?,
            durability: Durability::from_str(durability, true)?,
            nemesis: Nemesis::from_str(nemesis, true)?,
        })
    }
}

/// Cells without end: first every topology under every nemesis, in random order and with any durability, then
/// mixes.
pub(crate) fn cells(random: &mut Random, consistency: Consistency) -> impl Iterator<Item = Cell> + use<> {
    let durabilities = Durability::of(consistency);
    let has_disks = durabilities.contains(&Durability::Persistent);
    let mut matrix = Vec::new();
    for topology in Topology::value_variants() {
        for nemesis in Nemesis::value_variants().iter().filter(|it| has_disks || !it.needs_disk()) {
            let needs_disk = nemesis.needs_disk();
            let durability = if needs_disk { Durability::Persistent } else { any(random, durabilities) };
            matrix.push(Cell { topology: *topology, durability, nemesis: *nemesis });
        }
    }
    for index in (1..matrix.len()).rev() {
        matrix.swap(index, random.below(index as u64 + 1) as usize);
    }
    let mut more = Random::new(random.next());
    let mix = move || Cell {
        topology: any(&mut more, Topology::value_variants()),
        durability: any(&mut more, durabilities),
        nemesis: Nemesis::Mix,
    };
    matrix.into_iter().chain(std::iter::repeat_with(mix))
}

/// One of some.
pub(crate) fn any<T: Copy>(random: &mut Random, of: &[T]) -> T {
    of[random.below(of.len() as u64) as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_has_every_topology_under_every_nemesis_before_mixes() {
        let count = Topology::value_variants().len() * Nemesis::value_variants().len();
        let some = |consistency| cells(&mut Random::new(1), consistency);
        let all: Vec<Cell> = some(Consistency::Atomic).take(count + 20).collect();
        for topology in Topology::value_variants() {
            for nemesis in Nemesis::value_variants() {
                let is_it = |it: &Cell| it.topology == *topology && it.nemesis == *nemesis;
                assert_eq!(all[..count].iter().filter(|it| is_it(it)).count(), 1);
            }
        }
        assert!(all[count..].iter().all(|it| it.nemesis == Nemesis::Mix));
        assert_eq!(all, some(Consistency::Atomic).take(count + 20).collect::<Vec<_>>());
        assert!(all.iter().any(|it| it.durability == Durability::Persistent));
        let without = |it: &Cell| it.lacks(Consistency::Eventual, true).is_none();
        assert!(some(Consistency::Eventual).take(count + 20).all(|it| without(&it)));
    }

    #[test]
    fn what_needs_disks_is_done_to_processes_that_have_some() {
        let lacks = |cell: &str, consistency| cell.parse::<Cell>().unwrap().lacks(consistency, true);
        assert_eq!(lacks("triple/persistent/outage", Consistency::Atomic), None);
        assert_eq!(lacks("pair/persistent/kill", Consistency::Atomic), None, "its votes are on its disk");
        assert!(lacks("pair/volatile/kill", Consistency::Atomic).is_some());
        assert!(lacks("triple/volatile/full", Consistency::Atomic).is_some());
        assert!(lacks("triple/persistent/calm", Consistency::Eventual).is_some());
    }

    #[test]
    fn cells_are_read_as_they_are_printed() {
        for cell in cells(&mut Random::new(2), Consistency::Atomic).take(60) {
            assert_eq!(cell.to_string().parse(), Ok(cell));
        }
        assert!("triple/volatile".parse::<Cell>().is_err());
        assert!("triple/volatile/peace".parse::<Cell>().is_err());
    }
}
