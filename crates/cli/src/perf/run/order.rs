//! In which order cells are measured.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::perf::campaign::{Campaign, Order, Planned};

/// One repetition to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    /// Of the planned cells.
    pub(crate) cell: usize,
    pub(crate) repetition: u32,
    /// Position in the run.
    pub(crate) order: u32,
}

/// All repetitions of all cells. Each round takes every cell once, in an order of its own, and begins with
/// another adapter than the round before. Cells that are compared are neighbours: a machine that is slower
/// for some minutes is so for all of them.
pub(crate) fn turns(campaign: &Campaign, planned: &[Planned]) -> Vec<Turn> {
    let rounds = planned.iter().map(|it| it.repetitions).max().unwrap_or(0);
    let mut adapters: Vec<&str> = planned.iter().map(|it| it.cell.adapter.as_str()).collect();
    adapters.sort_unstable();
    adapters.dedup();
    let mut turns = Vec::new();
    for round in 0..rounds {
        let begins = adapters.get(round as usize % adapters.len().max(1)).copied();
        let cells: Vec<usize> = match campaign.order {
            Order::Interleaved => interleaved(campaign, planned, round, begins),
            Order::AsWritten => of_round(planned, round).collect(),
        };
        for cell in cells {
            let order = u32::try_from(turns.len()).unwrap_or(u32::MAX);
            turns.push(Turn { cell, repetition: round, order });
        }
    }
    turns
}

/// The cells that have such a repetition.
fn of_round(planned: &[Planned], round: u32) -> impl Iterator<Item = usize> {
    planned.iter().enumerate().filter(move |(_, it)| it.repetitions > round).map(|(place, _)| place)
}

/// Those cells, of which one of an adapter is the first.
fn interleaved(campaign: &Campaign, planned: &[Planned], round: u32, begins: Option<&str>) -> Vec<usize> {
    let mut random = Random::new(campaign.seed.wrapping_add(u64::from(round)));
    let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for place in of_round(planned, round) {
        let group = planned.get(place).map(|it| group(campaign, it)).unwrap_or_default();
        groups.entry(group).or_default().push(place);
    }
    let mut groups: Vec<Vec<usize>> = groups.into_values().collect();
    random.shuffle(&mut groups);
    groups.iter_mut().for_each(|cells| random.shuffle(cells));
    let is_first = |cell: &usize| planned.get(*cell).map(|it| it.cell.adapter.as_str()) == begins;
    if let Some(first) = groups.iter().position(|cells| cells.iter().any(is_first)) {
        groups.swap(0, first);
    }
    if let Some(cells) = groups.first_mut()
        && let Some(first) = cells.iter().position(is_first)
    {
        cells.swap(0, first);
    }
    groups.concat()
}

/// The same for cells of one scenario that differ in nothing but the adapter, its profile, and what ratios of
/// the scenario compare.
fn group(campaign: &Campaign, planned: &Planned) -> String {
    let ratios = campaign.scenarios.get(planned.scenario).map_or(&[][..], |it| it.ratios.as_slice());
    let varies = |name: &str| name == "profile" || ratios.iter().any(|it| it.varies(name));
    let fixed: BTreeMap<&String, &Value> =
        planned.cell.parameters.iter().filter(|(name, _)| !varies(name)).collect();
    format!("{} {fixed:?}", planned.scenario)
}

/// SplitMix64.
struct Random(u64);

impl Random {
    const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

    const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(Self::STEP))
    }

    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(Self::STEP);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Fisher and Yates.
    fn shuffle<T>(&mut self, all: &mut [T]) {
        for last in (1..all.len()).rev() {
            // The bias of the remainder is below 2^-32 for any campaign.
            let other = usize::try_from(self.next() % (last as u64 + 1)).unwrap_or(0);
            all.swap(last, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::perf::campaign::resolve;

    fn example() -> (Campaign, Vec<Planned>) {
        let text = "schema = 1\nname = \"test\"\nrepetitions = 6\nseed = 3\n[[scenario]]\nkind = \"pingpong\"\n\
                    adapters = [\"a\", \"b\", \"c\"]\nsizes = \"4..16KiB*2\"";
        let campaign = Campaign::parse(text).unwrap();
        let planned = resolve(&campaign).unwrap();
        (campaign, planned)
    }

    #[test]
    fn every_round_takes_every_cell_in_an_order_of_its_own() {
        let (campaign, planned) = example();
        let turns = turns(&campaign, &planned);
        let rounds: Vec<Vec<usize>> =
            turns.chunks(planned.len()).map(|round| round.iter().map(|it| it.cell).collect()).collect();
        assert_eq!(rounds.len(), 6);
        for round in &rounds {
            assert_eq!(round.iter().collect::<BTreeSet<_>>().len(), planned.len());
        }
        assert_eq!(rounds.iter().collect::<BTreeSet<_>>().len(), 6, "no order comes twice");
        assert!(turns.iter().enumerate().all(|(place, turn)| turn.order as usize == place));
    }

    #[test]
    fn rounds_begin_with_one_adapter_after_the_other() {
        let (campaign, planned) = example();
        let turns = turns(&campaign, &planned);
        let first: Vec<&str> =
            turns.chunks(planned.len()).map(|round| planned[round[0].cell].cell.adapter.as_str()).collect();
        assert_eq!(first, ["a", "b", "c", "a", "b", "c"]);
    }

    #[test]
    fn what_is_compared_is_measured_together() {
        let text = "schema = 1\nname = \"test\"\nseed = 3\n[[scenario]]\nkind = \"throughput\"\nadapters = [\"a\", \"b\"]\n\
                    profile = [\"default\", \"tuned\"]\nsizes = [4, 16, 64]\ninstances = [1, 10]\n\
                    ratios = [{ metric = \"sent_per_s\", of = { instances = 10 }, to = { instances = 1 }, min = 1 }]\n\
                    [[scenario]]\nkind = \"pingpong\"\nadapters = [\"a\", \"b\"]\nsizes = [4, 16]\n\
                    [[scenario]]\nname = \"other\"\nkind = \"pingpong\"\nadapters = [\"a\", \"b\"]\nsizes = [4, 16]";
        let campaign = Campaign::parse(text).unwrap();
        let planned = resolve(&campaign).unwrap();
        let turns = turns(&campaign, &planned);
        for round in turns.chunks(planned.len()) {
            let groups = round.iter().map(|turn| {
                let cell = &planned[turn.cell].cell;
                (cell.scenario.as_str(), cell.parameters["size"].as_u64())
            });
            let mut groups: Vec<_> = groups.collect();
            groups.dedup();
            assert_eq!(
                groups.len(),
                7,
                "three sizes of the first, two of each other, each in one piece: {groups:?}"
            );
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_order() {
        let (mut campaign, planned) = example();
        let once = turns(&campaign, &planned);
        assert_eq!(once, turns(&campaign, &planned));
        campaign.seed = 4;
        assert_ne!(once, turns(&campaign, &planned));
    }
}
