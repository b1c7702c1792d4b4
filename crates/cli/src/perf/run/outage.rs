//! A time in which nothing gets through, in the middle of a repetition.

use std::time::Instant;

use super::network::Inside;
use super::parties::Outage;
use crate::perf::agent::clock;
use crate::perf::results::{Cell, Repetition, Status};

const SCRIPT: &str = "nft -f -";
const CUT: &str = "table inet plainsong_outage {\n chain arriving {\n  type filter hook input priority 0;\n  \
                   meta l4proto { tcp, udp } drop;\n }\n}\n";
const JOIN: &str = "delete table inet plainsong_outage\n";

/// An outage that is planned, under way or over. Its programs are started before anything is measured, and
/// wait.
pub(super) struct Cutter {
    planned: Outage,
    cutting: Vec<Inside>,
    joining: Vec<Inside>,
    cut: bool,
    /// When the first network was to be joined again.
    pub(super) ended_ns: Option<u64>,
}

impl Cutter {
    /// For the network namespaces of these processes.
    ///
    /// # Errors
    /// A program is missing.
    pub(super) fn new(planned: Outage, pids: &[u32]) -> Result<Self, String> {
        let start = || pids.iter().map(|pid| Inside::start(*pid, SCRIPT)).collect::<Result<Vec<_>, String>>();
        Ok(Self { planned, cutting: start()?, joining: start()?, cut: false, ended_ns: None })
    }

    /// When there is something to do next, if the work began then.
    pub(super) fn next(&self, begin: Instant) -> Option<Instant> {
        match (self.cut, self.ended_ns) {
            (false, _) => Some(begin + self.planned.begin),
            (true, None) => Some(begin + self.planned.end),
            (true, Some(_)) => None,
        }
    }

    /// Does what is due.
    ///
    /// # Errors
    /// The host's packet filter does not do it.
    pub(super) fn act(&mut self, begin: Instant) -> Result<(), String> {
        while self.next(begin).is_some_and(|at| at <= Instant::now()) {
            if self.cut {
                self.join()?;
            } else {
                self.cut = true;
                finish(&mut self.cutting, CUT)?;
            }
        }
        Ok(())
    }

    /// The time is taken before, so that what the filter takes is on the product's account and never in its
    /// favour.
    fn join(&mut self) -> Result<(), String> {
        self.ended_ns = Some(clock::now_ns());
        finish(&mut self.joining, JOIN)
    }
}

impl Drop for Cutter {
    fn drop(&mut self) {
        if self.cut && self.ended_ns.is_none() {
            // What comes next fails for itself.
            let _ = self.join();
        }
        for waiting in self.cutting.drain(..).chain(self.joining.drain(..)) {
            let _ = waiting.finish("");
        }
    }
}

fn finish(programs: &mut Vec<Inside>, input: &str) -> Result<(), String> {
    programs.drain(..).try_for_each(|program| {
        program.finish(input).map_err(|error| {
            format!("an outage: {error}; the program nft (nftables) and a network of its own are needed")
        })
    })
}

/// The stall that an outage made at a reader, and what it tells.
pub(super) fn check(cell: &Cell, repetition: &mut Repetition) {
    if cell.kind != "outage" || repetition.status != Status::Ok {
        return;
    }
    let Some(ended_ns) = repetition.outage_end_ns else { return };
    for worker in &repetition.workers {
        let Some(report) = worker.report.as_ref().filter(|_| worker.name.starts_with("sub")) else {
            continue;
        };
        match report.stall_at(ended_ns) {
            Some(stall) if stall.end_ns.is_none() => {
                repetition.status = Status::Failed;
                let lost = report.totals.lost;
                repetition.reason = format!(
                    "{} was never up to date again after the outage, {lost} samples missing",
                    worker.name
                );
            }
            Some(_) => {}
            None => repetition.marks.push(format!("outage: {} noticed nothing of it", worker.name)),
        }
    }
}
