//! What is done to processes and links, and undone.

use std::time::Duration;

use crate::nemesis::network::link::Conditions;
use crate::nemesis::plan::{Nemesis, any};
use crate::random::Random;

/// What is left on a disk that is nearly full, at most.
const ROOM_BYTES_MAX: u64 = 512 << 10;

/// What a nemesis does at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Kill(usize),
    Leave(usize),
    Freeze(usize),
    Squeeze(usize),
    /// These are killed at once.
    Outage(Vec<usize>),
    /// The disk of one has room for so many octets.
    Full(usize, u64),
    /// The wall clock of one is so many seconds ahead, or behind.
    Clock(usize, i64),
    /// Nothing passes from one to another.
    Cut(Vec<(usize, usize)>),
    /// All links.
    Links(Conditions),
}

impl Fault {
    pub(crate) const fn ends_process(&self) -> bool {
        matches!(self, Self::Kill(_) | Self::Leave(_) | Self::Outage(_))
    }

    /// Whether it is done to that process.
    pub(crate) fn strikes(&self, process: usize) -> bool {
        match self {
            Self::Kill(of) | Self::Leave(of) | Self::Freeze(of) | Self::Squeeze(of) => *of == process,
            Self::Full(of, _) | Self::Clock(of, _) => *of == process,
            Self::Outage(all) => all.contains(&process),
            Self::Cut(_) | Self::Links(_) => false,
        }
    }

    /// Whether processes do not hear one another.
    pub(crate) const fn separates(&self) -> bool {
        matches!(self, Self::Freeze(_) | Self::Cut(_))
    }

    /// What a nemesis does to so many processes, which have disks or not, and for how long; nothing if it is
    /// calm.
    pub(crate) fn draw(
        nemesis: Nemesis,
        count: usize,
        has_disks: bool,
        random: &mut Random,
    ) -> Option<(Self, Duration)> {
        let one = random.below(count as u64) as usize;
        let links = |conditions| Some(Self::Links(conditions));
        let base = Conditions::default();
        let fault = match nemesis {
            Nemesis::Calm => None,
            Nemesis::Mix => {
                let of_disks = if has_disks { &Nemesis::OF_DISKS[..] } else { &[] };
                let single = any(random, &[&Nemesis::SINGLE[..], of_disks].concat());
                return Self::draw(single, count, has_disks, random);
            }
            Nemesis::Kill => Some(Self::Kill(one)),
            Nemesis::Leave => Some(Self::Leave(one)),
            Nemesis::Freeze => Some(Self::Freeze(one)),
            Nemesis::Squeeze => Some(Self::Squeeze(one)),
            Nemesis::Outage => {
                let spared = random.below(count.div_ceil(2) as u64) as usize;
                Some(Self::Outage(shuffled(count, random).split_off(spared)))
            }
            Nemesis::Full => Some(Self::Full(one, random.below(ROOM_BYTES_MAX))),
            Nemesis::Clock => {
                let seconds = random.below(7_200) as i64 - 3_600;
                Some(Self::Clock(one, seconds))
            }
            Nemesis::Loss => links(Conditions { loss_permille: any(random, &[10, 50, 200]), ..base }),
            Nemesis::Reorder => links(Conditions { duplicate_permille: 50, reorder_permille: 250, ..base }),
            Nemesis::Delay => {
                let [delay, jitter] = [0, 1].map(|_| Duration::from_millis(random.below(26)));
                links(Conditions { delay, jitter, ..base })
            }
            Nemesis::Isolate | Nemesis::Split | Nemesis::Bridge | Nemesis::OneWay | Nemesis::Apart => {
                Some(Self::Cut(cut(nemesis, count, random)))
            }
        };
        let [low, high] = match nemesis {
            Nemesis::Freeze => [50, 10_000],
            Nemesis::Kill | Nemesis::Leave | Nemesis::Outage => [50, 3_000],
            _ => [200, 4_000],
        };
        let lasts = Duration::from_millis(random.between(low, high));
        fault.map(|fault| (fault, lasts))
    }
}

/// All processes in random order.
fn shuffled(count: usize, random: &mut Random) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    for index in (1..count).rev() {
        order.swap(index, random.below(index as u64 + 1) as usize);
    }
    order
}

/// The links that are cut so that the processes fall apart in that way.
fn cut(nemesis: Nemesis, count: usize, random: &mut Random) -> Vec<(usize, usize)> {
    let order = shuffled(count, random);
    let (one, other) = (order[0], order[1]);
    let sends = random.percent(50);
    let (left, right) = order.split_at(count / 2);
    let is_bridge = |it: usize| nemesis == Nemesis::Bridge && it == right[0];
    let is_cut = |&(from, to): &(usize, usize)| match nemesis {
        Nemesis::Isolate => from == one || to == one,
        Nemesis::OneWay => (if sends { from } else { to }) == one,
        Nemesis::Apart => (from, to) == (one, other) || (from, to) == (other, one),
        _ => left.contains(&from) != left.contains(&to) && !is_bridge(from) && !is_bridge(to),
    };
    let links = (0..count).flat_map(|from| (0..count).map(move |to| (from, to)));
    links.filter(|(from, to)| from != to).filter(is_cut).collect()
}

/// What the link from one to another does under all faults at once.
pub(crate) fn conditions<'a>(faults: impl Iterator<Item = &'a Fault>, from: usize, to: usize) -> Conditions {
    let mut all = Conditions::default();
    for fault in faults {
        match fault {
            Fault::Cut(links) => all.cut |= links.contains(&(from, to)),
            Fault::Links(more) => {
                all.loss_permille = all.loss_permille.max(more.loss_permille);
                all.duplicate_permille = all.duplicate_permille.max(more.duplicate_permille);
                all.reorder_permille = all.reorder_permille.max(more.reorder_permille);
                all.delay = all.delay.max(more.delay);
                all.jitter = all.jitter.max(more.jitter);
            }
            _ => {}
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whom each reaches.
    fn reached(nemesis: Nemesis, count: usize, seed: u64) -> Vec<Vec<usize>> {
        let links = cut(nemesis, count, &mut Random::new(seed));
        let reaches = |from, to| from != to && !links.contains(&(from, to));
        (0..count).map(|from| (0..count).filter(|to| reaches(from, *to)).collect()).collect()
    }

    fn reach(nemesis: Nemesis, count: usize, seed: u64) -> Vec<usize> {
        let mut counts: Vec<usize> = reached(nemesis, count, seed).iter().map(Vec::len).collect();
        counts.sort_unstable();
        counts
    }

    #[test]
    fn partitions_have_the_shape_of_their_name() {
        for seed in 0..50 {
            assert_eq!(reach(Nemesis::Isolate, 3, seed), [0, 1, 1]);
            assert_eq!(reach(Nemesis::Isolate, 7, seed), [0, 5, 5, 5, 5, 5, 5]);
            assert_eq!(reach(Nemesis::Split, 7, seed), [2, 2, 2, 3, 3, 3, 3]);
            assert_eq!(reach(Nemesis::Bridge, 7, seed), [3, 3, 3, 3, 3, 3, 6]);
            assert_eq!(reach(Nemesis::Bridge, 3, seed), [1, 1, 2]);
            assert_eq!(reach(Nemesis::Apart, 3, seed), [1, 1, 2]);
            let one_way = reach(Nemesis::OneWay, 3, seed);
            assert!(one_way == [0, 2, 2] || one_way == [1, 1, 2], "{one_way:?}");
        }
        let links = cut(Nemesis::Split, 4, &mut Random::new(1));
        assert!(links.iter().all(|(from, to)| links.contains(&(*to, *from))), "both ways");
    }

    #[test]
    fn most_or_all_fail_at_once_and_disks_only_where_there_are_some() {
        let mut random = Random::new(3);
        let mut counts = [0; 4];
        for _ in 0..100 {
            let (fault, _) = Fault::draw(Nemesis::Outage, 3, true, &mut random).unwrap();
            let struck = (0..3).filter(|process| fault.strikes(*process)).count();
            counts[struck] += 1;
            let (fault, _) = Fault::draw(Nemesis::Mix, 3, false, &mut random).unwrap();
            assert!(!matches!(fault, Fault::Outage(_) | Fault::Full(..)), "{fault:?}");
        }
        assert!(counts[..2] == [0, 0] && counts[2..].iter().all(|count| *count > 20), "{counts:?}");
    }

    #[test]
    fn what_faults_do_to_a_link_adds_up() {
        let base = Conditions::default();
        let faults = [
            Fault::Cut(vec![(0, 1)]),
            Fault::Links(Conditions { loss_permille: 50, ..base }),
            Fault::Links(Conditions { delay: Duration::from_millis(3), loss_permille: 10, ..base }),
            Fault::Freeze(1),
        ];
        let both = Conditions { delay: Duration::from_millis(3), loss_permille: 50, ..base };
        assert_eq!(conditions(faults.iter(), 1, 0), both);
        assert_eq!(conditions(faults.iter(), 0, 1), Conditions { cut: true, ..both });
        assert_eq!(conditions([].iter(), 0, 1), base);
    }

    #[test]
    fn every_nemesis_but_calm_does_something_for_at_most_ten_seconds() {
        let mut random = Random::new(1);
        assert_eq!(Fault::draw(Nemesis::Calm, 3, true, &mut random), None);
        for nemesis in Nemesis::SINGLE.into_iter().chain(Nemesis::OF_DISKS).chain([Nemesis::Mix]) {
            for _ in 0..100 {
                let (_, lasts) = Fault::draw(nemesis, 3, true, &mut random).unwrap();
                assert!((Duration::from_millis(49)..=Duration::from_secs(10)).contains(&lasts), "{lasts:?}");
            }
        }
    }
}
