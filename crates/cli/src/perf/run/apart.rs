//! How far apart the two cores are. Where a hypervisor moves them, repetitions can only be compared if they
//! were equally far apart.

use crate::perf::results::{CORES_APART, Run, Status};

/// More than so many times the nearest is apart.
const APART: f64 = 2.0;
/// Two threads of one core answer sooner: cores that share a cache are not apart for that.
const NEAR_NS: f64 = 50.0;

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

    pub(super) fn mark(&self, apart_ns: Option<f64>) -> Option<String> {
        apart_ns.zip(self.nearest_ns).and_then(|(apart_ns, nearest_ns)| mark(apart_ns, nearest_ns))
    }

    /// Marks what was measured while the cores were apart, by the nearest that is known by now, and notes
    /// that.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::results::{Cell, Repetition};

    const BEST_NS: f64 = 51.0;
    const FAR_NS: f64 = 302.4;

    /// One cell with such repetitions.
    fn run(times_ns: &[f64]) -> Run {
        let repetition =
            |ns: &f64| Repetition { status: Status::Ok, cores_apart_ns: Some(*ns), ..Repetition::default() };
        let repetitions = times_ns.iter().map(repetition).collect();
        Run { cells: vec![Cell { repetitions, ..Cell::default() }], ..Run::default() }
    }

    fn never() -> Option<f64> {
        None
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
        let mut run = run(&[FAR_NS, BEST_NS, FAR_NS, FAR_NS]);
        run.cells[0].repetitions[3].status = Status::Failed;
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
        assert!(cores.mark(Some(100.0)).is_none() && cores.mark(Some(101.0)).is_some());
    }

    #[test]
    fn nothing_is_marked_where_the_distance_is_not_known() {
        let mut run = run(&[BEST_NS]);
        run.cells[0].repetitions[0].cores_apart_ns = None;
        let cores = Cores::new(&never, &run);
        cores.mark_all(&mut run);
        assert!(run.marks().is_empty());
    }
}
