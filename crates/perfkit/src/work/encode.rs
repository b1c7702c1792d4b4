//! Encodes and decodes.

use super::{Context, Work};
use crate::adapter::{Adapter, EncodeCost, Failure};
use crate::clock::{ms, now_ns};
use crate::event::Report;
use crate::spec::Role;

/// Rounds to find out how long one takes.
const PROBE_ROUNDS: u64 = 100;
/// The result is the median of so many runs.
const RUNS: u64 = 5;
/// Rounds of one run at most.
const ROUNDS_MAX: u64 = 100_000_000;

pub(super) struct Encode {
    context: Context,
}

impl Encode {
    pub(super) fn new(context: Context) -> Self {
        Self { context }
    }
}

impl Work for Encode {
    fn matched(&mut self) -> Result<(), String> {
        Ok(())
    }

    fn run(&mut self, adapter: &mut dyn Adapter, start_ns: u64) -> Result<Report, Failure> {
        let Role::Encode { type_name } = self.context.spec.role.clone() else {
            return Err(Failure::Failed("the role is another".to_owned()));
        };
        self.context.control.wait_until(start_ns);
        adapter.encode_cost(&type_name, PROBE_ROUNDS)?;
        let probe_ns = now_ns();
        adapter.encode_cost(&type_name, PROBE_ROUNDS)?;
        let round_ns = (now_ns().saturating_sub(probe_ns) / PROBE_ROUNDS).max(1);
        let run_ns = ms(self.context.spec.duration_ms) / RUNS;
        let rounds = (run_ns / round_ns).clamp(PROBE_ROUNDS, ROUNDS_MAX);
        let begin_ns = now_ns();
        let mut costs = Vec::new();
        for _ in 0..RUNS {
            if !costs.is_empty() && self.context.control.is_stopped() {
                break;
            }
            costs.push(adapter.encode_cost(&type_name, rounds)?);
        }
        Ok(Report {
            start_ns: begin_ns,
            length_ns: now_ns().saturating_sub(begin_ns),
            encode: Some(EncodeCost {
                encode_ns: median(costs.iter().map(|cost| cost.encode_ns)),
                decode_ns: median(costs.iter().map(|cost| cost.decode_ns)),
                encoded_octets: costs.first().map_or(0, |cost| cost.encoded_octets),
            }),
            ..Report::default()
        })
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}
