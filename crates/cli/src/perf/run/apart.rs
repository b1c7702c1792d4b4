//! How far apart the two cores are. Where a hypervisor moves them, repetitions can only be compared if they were equally far apart.

use std::cmp::Reverse;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::order::Turn;
use crate::perf::campaign::Planned;
use crate::perf::results::{CORES_APART, Cell, Repetition, Run, Status};

/// More than so many times the nearest is apart.
const APART: f64 = 2.0;
/// Two threads of one core answer sooner: cores that share a cache are not apart for that.
const NEAR_NS: f64 = 50.0;
/// Between two looks.
const STEP: Duration = Duration::from_millis(100);

/// Looks how far apart the cores are, and remembers the nearest.
pub(super) struct Cores<'a> {
    look: &'a dyn Fn() -> Option<f64>,
    nearest_ns: Option<f64>,
}

impl<'a> Cores<'a> {
    /// The nearest may be one of the run so far.
    pub(super) fn new(look: &'a dyn Fn() -> Option<f64>, run: &Run) -> Self {
        let repetitions = run.cells.iter().flat_map(|it| &it.repetitions);
        let known_ns = repetitions.filter_map(|it| it.cores_apart_ns).chain(run.cores_nearest_ns);
        Self { look, nearest_ns: known_ns.reduce(f64::min) }
    }

    /// None if that cannot be told here.
    pub(super) fn look(&mut self) -> Option<f64> {
        let apart_ns = (self.look)();
        self.nearest_ns = [self.nearest_ns, apart_ns].into_iter().flatten().reduce(f64::min);
        apart_ns
    }

    /// Looks until they are near, or for so long; how far apart they were when it looked last.
    pub(super) fn look_until_near(&mut self, patience: Duration, interrupted: &AtomicBool) -> Option<f64> {
        let end = Instant::now() + patience;
        loop {
            let apart_ns = self.look();
            if self.are_near(apart_ns) || interrupted.load(Ordering::Relaxed) || Instant::now() + STEP > end {
                return apart_ns;
            }
            std::thread::sleep(STEP);
        }
    }

    /// It is known, and not apart.
    pub(super) fn are_near(&self, apart_ns: Option<f64>) -> bool {
        apart_ns.is_some() && self.mark(apart_ns).is_none()
    }

    pub(super) fn mark(&self, apart_ns: Option<f64>) -> Option<String> {
        apart_ns.zip(self.nearest_ns).and_then(|(apart_ns, nearest_ns)| mark(apart_ns, nearest_ns))
    }

    /// Marks what was measured while the cores were apart, by the nearest that is known by now, and notes that.
    pub(super) fn mark_all(&self, run: &mut Run) {
        run.cores_nearest_ns = self.nearest_ns;
        let repetitions = run.cells.iter_mut().flat_map(|it| &mut it.repetitions);
        for repetition in repetitions.filter(|it| it.status == Status::Ok) {
            repetition.marks.retain(|it| !it.starts_with(CORES_APART));
            repetition.marks.extend(self.mark(repetition.cores_apart_ns));
        }
    }
}

/// What to say if they were too far apart.
fn mark(apart_ns: f64, nearest_ns: f64) -> Option<String> {
    let apart = apart_ns > APART * nearest_ns.max(NEAR_NS);
    apart.then(|| format!("{CORES_APART} {apart_ns:.0} ns from core to core, {nearest_ns:.0} at best"))
}

/// The larger of two looks, as far as they told anything.
pub(super) fn larger(before_ns: Option<f64>, after_ns: Option<f64>) -> Option<f64> {
    [before_ns, after_ns].into_iter().flatten().reduce(f64::max)
}

/// What is to be measured again: first of the cells of which the larger share was measured while the cores were apart, for there it
/// changes medians most; then in the order in which it was measured.
pub(super) fn due(run: &Run, planned: &[Planned]) -> Vec<Turn> {
    let mut due = Vec::new();
    for (place, it) in planned.iter().enumerate() {
        let Some(cell) = run.cells.iter().find(|cell| cell.id == it.cell.id) else { continue };
        let share = share_ppm(cell);
        let again = cell.repetitions.iter().filter(|it| it.was_apart() && !it.again);
        due.extend(again.map(|it| (Reverse(share), it.order, place, it.number)));
    }
    due.sort_unstable();
    due.into_iter().map(|(_, order, cell, repetition)| Turn { cell, repetition, order }).collect()
}

/// Of the repetitions of a cell that its medians come from, in millionths.
fn share_ppm(cell: &Cell) -> usize {
    let measured = cell.repetitions.iter().filter(|it| it.status == Status::Ok).count();
    let apart = cell.repetitions.iter().filter(|it| it.was_apart()).count();
    apart * 1_000_000 / measured.max(1)
}

/// Whether what was measured again takes the place of what was measured before.
pub(super) fn is_better(new: &Repetition) -> bool {
    new.status == Status::Ok && new.cores_apart_ns.is_some() && !new.was_apart()
}

/// What is left of the time allowed, after what is spent and what the next takes; `None` if that is too much already.
pub(super) fn room(allowed: Duration, spent: Duration, next: Duration) -> Option<Duration> {
    allowed.checked_sub(spent.checked_add(next)?)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell as Once;

    use super::*;
    use crate::perf::campaign::{Campaign, resolve};
    use crate::perf::run::begin;

    const BEST_NS: f64 = 51.0;
    const FAR_NS: f64 = 302.4;

    fn repetition(number: u32, order: u32, apart_ns: f64) -> Repetition {
        let cores_apart_ns = Some(apart_ns);
        Repetition { number, order, status: Status::Ok, cores_apart_ns, ..Repetition::default() }
    }

    /// Cells of 4, 16 and 64 octets, each with these times of its repetitions.
    fn run(times_ns: [&[f64]; 3]) -> (Run, Vec<Planned>) {
        let text = "schema = 1\nname = \"test\"\n[[scenario]]\nkind = \"pingpong\"\nadapters = [\"a\"]\nsizes = \"4..64*4\"";
        let campaign = Campaign::parse(text).unwrap();
        let planned = resolve(&campaign).unwrap();
        let mut run = begin(&campaign, &planned).unwrap();
        for (place, (cell, times_ns)) in run.cells.iter_mut().zip(times_ns).enumerate() {
            let order = |round: usize| u32::try_from(3 * round + place).unwrap();
            let each = times_ns.iter().enumerate();
            cell.repetitions = each
                .map(|(round, ns)| repetition(u32::try_from(round).unwrap(), order(round), *ns))
                .collect();
        }
        (run, planned)
    }

    fn never() -> Option<f64> {
        None
    }

    fn chosen(run: &Run, planned: &[Planned]) -> Vec<(usize, u32)> {
        due(run, planned).iter().map(|it| (it.cell, it.repetition)).collect()
    }

    #[test]
    fn more_than_twice_the_nearest_is_marked_in_words() {
        assert_eq!(mark(102.0, BEST_NS), None);
        assert_eq!(mark(99.0, 20.0), None, "two threads of one core, and two cores with one cache");
        let words = "cores apart: 302 ns from core to core, 51 at best";
        assert_eq!(mark(FAR_NS, BEST_NS).as_deref(), Some(words));
    }

    #[test]
    fn a_repetition_is_as_far_apart_as_the_worse_of_two_looks() {
        assert_eq!(larger(Some(BEST_NS), Some(FAR_NS)), Some(FAR_NS));
        assert_eq!(larger(None, Some(BEST_NS)), Some(BEST_NS));
        assert_eq!(larger(None, None), None);
    }

    #[test]
    fn the_nearest_of_the_whole_run_decides_whenever_it_was_seen() {
        let (mut run, _) = run([&[FAR_NS, BEST_NS], &[FAR_NS], &[]]);
        let mut failed = repetition(2, 9, FAR_NS);
        failed.status = Status::Failed;
        run.cells[0].repetitions.push(failed);
        let last = || Some(40.0);
        let mut cores = Cores::new(&last, &run);
        assert_eq!(cores.nearest_ns, Some(BEST_NS), "one of an earlier part of the run");
        cores.mark_all(&mut run);
        assert_eq!(run.marks()["cores apart"].0, 2, "nothing is said of what was not measured");
        assert_eq!(cores.look(), Some(40.0));
        cores.mark_all(&mut run);
        let (count, worst) = run.marks()["cores apart"];
        assert_eq!((count, worst), (2, "cores apart: 302 ns from core to core, 40 at best"));
        assert_eq!(Cores::new(&never, &run).nearest_ns, Some(40.0), "one that no repetition had");
        assert!(cores.are_near(Some(100.0)) && !cores.are_near(Some(101.0)) && !cores.are_near(None));
    }

    #[test]
    fn nothing_is_marked_where_the_distance_is_not_known() {
        let (mut run, planned) = run([&[BEST_NS], &[], &[]]);
        run.cells[0].repetitions[0].cores_apart_ns = None;
        let mut cores = Cores::new(&never, &run);
        assert_eq!(cores.look_until_near(Duration::ZERO, &AtomicBool::new(false)), None);
        cores.mark_all(&mut run);
        assert!(run.marks().is_empty() && due(&run, &planned).is_empty());
    }

    #[test]
    fn it_looks_until_the_cores_are_near_but_not_for_ever() {
        let (run, _) = run([&[BEST_NS], &[], &[]]);
        let looks = Once::new(0);
        let third = || {
            looks.set(looks.get() + 1);
            Some(if looks.get() < 3 { FAR_NS } else { BEST_NS })
        };
        let free = AtomicBool::new(false);
        assert_eq!(Cores::new(&third, &run).look_until_near(Duration::from_secs(9), &free), Some(BEST_NS));
        assert_eq!(looks.get(), 3);
        let far = || Some(FAR_NS);
        assert_eq!(Cores::new(&far, &run).look_until_near(2 * STEP, &free), Some(FAR_NS));
        let ended = AtomicBool::new(true);
        assert_eq!(Cores::new(&far, &run).look_until_near(Duration::from_secs(999), &ended), Some(FAR_NS));
    }

    #[test]
    fn cells_with_the_larger_share_come_first_then_what_was_measured_first() {
        let (mut run, planned) = run([
            &[FAR_NS, BEST_NS, FAR_NS, BEST_NS],
            &[FAR_NS, BEST_NS, FAR_NS],
            &[BEST_NS, FAR_NS, BEST_NS, FAR_NS],
        ]);
        Cores::new(&never, &run).mark_all(&mut run);
        assert_eq!(chosen(&run, &planned), [(1, 0), (1, 2), (0, 0), (2, 1), (0, 2), (2, 3)]);
        run.cells[1].repetitions[0].again = true;
        assert_eq!(chosen(&run, &planned)[0], (1, 2), "each is measured again once");
        assert_eq!(chosen(&run, &planned[2..]), [(0, 1), (0, 3)], "nothing but what is to be measured here");
        run.cells[1].repetitions[2].status = Status::Crashed;
        assert_eq!(chosen(&run, &planned)[0], (0, 0), "a failure stays one");
    }

    #[test]
    fn only_what_was_measured_with_near_cores_takes_the_place() {
        let new = repetition(0, 9, BEST_NS);
        assert!(is_better(&new));
        let apart = Repetition { marks: vec![mark(FAR_NS, BEST_NS).unwrap()], ..new.clone() };
        let failed = Repetition { status: Status::Hung, ..new.clone() };
        let unknown = Repetition { cores_apart_ns: None, ..new };
        assert!([apart, failed, unknown].iter().all(|it| !is_better(it)));
    }

    #[test]
    fn the_next_must_fit_into_the_time_that_is_left() {
        let seconds = Duration::from_secs;
        assert_eq!(room(seconds(10), seconds(3), seconds(2)), Some(seconds(5)));
        assert_eq!(room(seconds(10), seconds(8), seconds(2)), Some(seconds(0)));
        assert_eq!(room(seconds(10), seconds(9), seconds(2)), None);
        assert_eq!(room(seconds(10), Duration::MAX, seconds(2)), None);
    }
}
