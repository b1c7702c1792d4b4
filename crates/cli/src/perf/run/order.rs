//! In which order cells are measured.

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

/// All repetitions of all cells. Each round takes every cell once, in an order of its own, and begins with another adapter
/// than the round before.
pub(crate) fn turns(campaign: &Campaign, planned: &[Planned]) -> Vec<Turn> {
    let rounds = planned.iter().map(|it| it.repetitions).max().unwrap_or(0);
    let mut adapters: Vec<&str> = planned.iter().map(|it| it.cell.adapter.as_str()).collect();
    adapters.sort_unstable();
    adapters.dedup();
    let mut turns = Vec::new();
    for round in 0..rounds {
        let mut cells: Vec<usize> = planned
            .iter()
            .enumerate()
            .filter(|(_, it)| it.repetitions > round)
            .map(|(place, _)| place)
            .collect();
        if campaign.order == Order::Interleaved {
            shuffle(&mut cells, campaign.seed.wrapping_add(u64::from(round)));
            let begins = adapters.get(round as usize % adapters.len().max(1));
            let adapter_of = |cell: &usize| planned.get(*cell).map(|it| it.cell.adapter.as_str());
            if let Some(place) = cells.iter().position(|cell| adapter_of(cell) == begins.copied()) {
                cells.swap(0, place);
            }
        }
        for cell in cells {
            let order = u32::try_from(turns.len()).unwrap_or(u32::MAX);
            turns.push(Turn { cell, repetition: round, order });
        }
    }
    turns
}

/// Fisher and Yates, with numbers from SplitMix64.
fn shuffle(cells: &mut [usize], seed: u64) {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut random = move || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    };
    for last in (1..cells.len()).rev() {
        // The bias of the remainder is below 2^-32 for any campaign.
        let other = usize::try_from(random() % (last as u64 + 1)).unwrap_or(0);
        cells.swap(last, other);
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
    fn the_same_seed_gives_the_same_order() {
        let (mut campaign, planned) = example();
        let once = turns(&campaign, &planned);
        assert_eq!(once, turns(&campaign, &planned));
        campaign.seed = 4;
        assert_ne!(once, turns(&campaign, &planned));
    }
}
