//! What a run has seen, what of it must not be, and telling both.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use crate::check::Fault;
use crate::clock::now_ns;
use crate::load::FLOWS;
use crate::measure::Holds;
use crate::member::Role;
use crate::told::{Count, Told};

/// So much later than what held a flow up ends a pause of it may still begin.
const GRACE_NS: u64 = 100_000_000;
/// What a process may hold more in the end than before, in octets: buffers keep the size that they once
/// needed, and allocators some of what was freed.
const MEMORY_BYTES: u64 = 12 << 20;
/// Descriptors that it may hold more: threads that wait make one with their first wait, and keep it.
const DESCRIPTORS: u64 = 4;
/// Mappings of shared memory that it may hold more: the pool of each survivor may have grown by a slab that
/// is in use.
const SHARED_MAPPINGS: u64 = 3;
/// How violations end that say how long something took.
const STALL: &str = " (stall)";
/// Violations that are printed.
const SHOWN_MAX: usize = 20;

/// Something that took long.
#[derive(Clone, Copy, Debug)]
struct Stall {
    process: u64,
    flow: usize,
    from_ns: u64,
    to_ns: u64,
    writing: bool,
}

/// A time in which a process was stopped.
#[derive(Clone, Copy, Debug)]
struct Stopped {
    process: u64,
    role: Role,
    from_ns: u64,
    to_ns: u64,
}

/// All that was seen.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    violations: Vec<String>,
    stalls: Vec<Stall>,
    /// What writers said while a write lasted long: of which process, since when, and what.
    waits: Vec<(u64, u64, String)>,
    stopped: Vec<Stopped>,
    counts: HashMap<u64, Count>,
    kills: HashMap<&'static str, u64>,
    killed_stopped: u64,
    /// Times in which threads of those who live on were to run and did not.
    pauses: Vec<(u64, u64)>,
    /// What each survivor held before and after.
    holds: Vec<(u64, Holds, Holds)>,
}

impl Verdict {
    pub(crate) fn violation(&mut self, what: String) {
        self.violations.push(what);
    }

    /// Takes what a process said that is not an answer.
    pub(crate) fn hear(&mut self, process: u64, told: &Told) {
        match *told {
            Told::Violation(ref what) => self.violations.push(what.clone()),
            Told::Stall { flow, from_ns, to_ns, writing } => {
                self.stalls.push(Stall { process, flow, from_ns, to_ns, writing });
            }
            Told::Waits { from_ns, ref state, .. } => self.waits.push((process, from_ns, state.clone())),
            Told::Paused { from_ns, to_ns } => self.pauses.push((from_ns, to_ns)),
            Told::Count(count) => {
                self.counts.insert(process, count);
            }
            _ => {}
        }
    }

    pub(crate) fn killed(&mut self, role: Role, while_stopped: bool) {
        *self.kills.entry(role.name()).or_default() += 1;
        self.killed_stopped += u64::from(while_stopped);
    }

    pub(crate) fn kills(&self) -> u64 {
        self.kills.values().sum()
    }

    pub(crate) fn stop_begins(&mut self, process: u64, role: Role) {
        self.stopped.push(Stopped { process, role, from_ns: now_ns(), to_ns: u64::MAX });
    }

    /// It goes on, or is dead.
    pub(crate) fn stop_ends(&mut self, process: u64) {
        let open = self.stopped.iter_mut().rev().find(|it| it.process == process && it.to_ns == u64::MAX);
        if let Some(stopped) = open {
            stopped.to_ns = now_ns();
        }
    }

    pub(crate) fn held(&mut self, process: u64, before: Holds, after: Holds) {
        if let Some(more) = more(&before, &after) {
            self.violations.push(format!("process {process} holds more than before: {more}"));
        }
        self.holds.push((process, before, after));
    }

    /// Tells everything, and whether all was well.
    pub(crate) fn tell(&mut self, took: Duration) -> bool {
        let (stalls, excused) = self.judge_stalls();
        for stall in &stalls {
            let said = self.waits.iter().find(|it| (it.0, it.1) == (stall.process, stall.from_ns));
            let said = said.map_or(String::new(), |it| format!("{}: ", it.2));
            self.violations.push(format!("{said}{stall}"));
        }
        let mut kills: Vec<String> =
            self.kills.iter().map(|(role, count)| format!("{role} {count}")).collect();
        kills.sort();
        println!(
            "killed {} in {:.0} s ({}; {} while stopped), stopped {}",
            self.kills(),
            took.as_secs_f64(),
            kills.join(", "),
            self.killed_stopped,
            self.stopped.len()
        );
        let sum = |of: fn(&Count) -> u64| self.counts.values().map(of).sum::<u64>();
        let most_ms = |of: fn(&Count) -> u64| self.counts.values().map(of).max().unwrap_or(0) as f64 / 1e6;
        println!(
            "written {}, received {} samples with {:.1} GB; longest pause {:.0} ms, longest write {:.0} ms",
            sum(|it| it.written),
            sum(|it| it.received),
            sum(|it| it.octets) as f64 / 1e9,
            most_ms(|it| it.pause_ns),
            most_ms(|it| it.write_ns)
        );
        let [by_stop, by_host] = excused;
        let faults = [Fault::Corrupted, Fault::Duplicated, Fault::Reordered, Fault::Lost].map(|fault| {
            let count = self.violations.iter().filter(|what| what.ends_with(&fault.to_string())).count();
            format!("{fault} {count}")
        });
        println!(
            "{}, stalls {}; besides {by_stop} while a reader was stopped, {by_host} while this host was busy; \
             heard too early {}",
            faults.join(", "),
            stalls.len(),
            sum(|it| it.late)
        );
        for (process, before, after) in &self.holds {
            println!(
                "process {process}: memory {:.1} -> {:.1} MiB (share {:.1} -> {:.1}), descriptors {} -> {}, \
                 threads {} -> {}, shared mappings {} -> {}",
                mib(before.rss_bytes),
                mib(after.rss_bytes),
                mib(before.pss_bytes),
                mib(after.pss_bytes),
                before.descriptors,
                after.descriptors,
                before.threads,
                after.threads,
                before.shared_mappings,
                after.shared_mappings
            );
        }
        // What is told of samples first.
        self.violations.sort_by_key(|what| what.ends_with(STALL));
        self.violations.iter().take(SHOWN_MAX).for_each(|what| println!("VIOLATION {what}"));
        println!("violations: {}", self.violations.len());
        self.violations.is_empty()
    }

    /// Those that nothing excuses; how many a stopped reader and this host excuse.
    fn judge_stalls(&self) -> (Vec<Stall>, [usize; 2]) {
        let overlaps = |stall: &Stall, from_ns: u64, to_ns: u64| {
            from_ns < stall.to_ns && stall.from_ns < to_ns.saturating_add(GRACE_NS)
        };
        let (mut stalls, mut excused) = (Vec::new(), [0; 2]);
        for stall in &self.stalls {
            let holds_up =
                |it: &&Stopped| it.role.holds_up(stall.flow) && overlaps(stall, it.from_ns, it.to_ns);
            if self.stopped.iter().any(|it| holds_up(&it)) {
                excused[0] += 1;
            } else if self.pauses.iter().any(|&(from_ns, to_ns)| overlaps(stall, from_ns, to_ns)) {
                excused[1] += 1;
            } else {
                stalls.push(*stall);
            }
        }
        (stalls, excused)
    }
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let took_ms = (self.to_ns - self.from_ns) / 1_000_000;
        let what = if self.writing { "a write took" } else { "no sample came for" };
        let topic = FLOWS.get(self.flow).map_or("?", |flow| flow.topic);
        write!(f, "process {}, {topic}: {what} {took_ms} ms (stall)", self.process)
    }
}

fn mib(octets: u64) -> f64 {
    octets as f64 / f64::from(1 << 20)
}

/// What a process holds more of than it may.
pub(crate) fn more(before: &Holds, after: &Holds) -> Option<String> {
    if after.pss_bytes > before.pss_bytes + MEMORY_BYTES {
        let [before, after] = [before, after].map(|it| mib(it.pss_bytes));
        return Some(format!("memory, {after:.1} MiB instead of {before:.1}"));
    }
    let counts = [
        ("descriptors", before.descriptors + DESCRIPTORS, after.descriptors),
        ("threads", before.threads, after.threads),
        ("shared mappings", before.shared_mappings + SHARED_MAPPINGS, after.shared_mappings),
    ];
    let (what, most, after) = counts.into_iter().find(|(_, most, after)| after > most)?;
    Some(format!("{what}, {after} instead of {most} at most"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn stall(flow: usize, from_ms: u64, to_ms: u64) -> Told {
        Told::Stall { flow, from_ns: from_ms * MS, to_ns: to_ms * MS, writing: false }
    }

    #[test]
    fn a_stopped_reader_excuses_what_waits_for_it_alone() {
        let mut verdict = Verdict::default();
        let role = Role { writes: 0b1111, reads: 0b1001 };
        verdict.stopped.push(Stopped { process: 20, role, from_ns: 1_000 * MS, to_ns: 1_300 * MS });
        // Of a topic that it reads: while it is stopped, soon after, and before.
        for told in [stall(0, 1_100, 1_250), stall(0, 1_350, 1_500), stall(0, 500, 900)] {
            verdict.hear(1, &told);
        }
        // Of one that it only writes, and of one that nobody waits for.
        verdict.hear(1, &stall(1, 1_100, 1_250));
        verdict.hear(1, &stall(3, 1_100, 1_250));
        let (stalls, excused) = verdict.judge_stalls();
        assert_eq!(stalls.iter().map(|it| it.flow).collect::<Vec<_>>(), [0, 1, 3]);
        assert_eq!(excused, [2, 0]);
    }

    #[test]
    fn a_host_that_stands_still_excuses_all() {
        let mut verdict = Verdict::default();
        verdict.hear(2, &Told::Paused { from_ns: 1_000 * MS, to_ns: 1_200 * MS });
        verdict.hear(1, &stall(3, 1_050, 1_250));
        verdict.hear(1, &stall(3, 1_400, 1_600));
        let (stalls, excused) = verdict.judge_stalls();
        assert_eq!((stalls.len(), excused), (1, [0, 1]));
    }

    #[test]
    fn what_a_process_may_hold_has_a_limit() {
        let before = Holds { pss_bytes: 10 << 20, descriptors: 7, ..Holds::default() };
        assert_eq!(more(&before, &before), None);
        assert_eq!(more(&before, &Holds { pss_bytes: 21 << 20, ..before }), None);
        assert!(more(&before, &Holds { pss_bytes: 23 << 20, ..before }).unwrap().contains("memory"));
        let opened = Holds { descriptors: 12, ..before };
        assert_eq!(more(&before, &opened).unwrap(), "descriptors, 12 instead of 11 at most");
        assert_eq!(more(&opened, &before), None);
        assert_eq!(more(&before, &Holds { shared_mappings: 3, ..before }), None);
        assert!(more(&before, &Holds { shared_mappings: 4, ..before }).is_some());
    }
}
