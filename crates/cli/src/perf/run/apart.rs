//! How far apart the two cores are. Where a hypervisor moves them, repetitions can only be compared if they were equally far apart.

use crate::perf::results::{CORES_APART, Run, Status};

/// More than so many times the nearest is apart.
const APART: f64 = 2.0;

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
    let apart = apart_ns > APART * nearest_ns;
    apart.then(|| format!("{CORES_APART} {apart_ns:.0} ns from core to core, {nearest_ns:.0} at best"))
}

/// The larger of two looks, as far as they told anything.
pub(super) fn larger(before_ns: Option<f64>, after_ns: Option<f64>) -> Option<f64> {
    [before_ns, after_ns].into_iter().flatten().reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::campaign::{Campaign, Planned, resolve};
    use crate::perf::results::Repetition;
    use crate::perf::run::begin;

    const NEAR_NS: f64 = 51.0;
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

    #[test]
    fn more_than_twice_the_nearest_is_marked_in_words() {
        assert_eq!(mark(102.0, NEAR_NS), None);
        let words = "cores apart: 302 ns from core to core, 51 at best";
        assert_eq!(mark(FAR_NS, NEAR_NS).as_deref(), Some(words));
    }

    #[test]
    fn a_repetition_is_as_far_apart_as_the_worse_of_two_looks() {
        assert_eq!(larger(Some(NEAR_NS), Some(FAR_NS)), Some(FAR_NS));
        assert_eq!(larger(None, Some(NEAR_NS)), Some(NEAR_NS));
        assert_eq!(larger(None, None), None);
    }

    #[test]
    fn the_nearest_of_the_whole_run_decides_whenever_it_was_seen() {
        let (mut run, _) = run([&[FAR_NS, NEAR_NS], &[FAR_NS], &[]]);
        let mut failed = repetition(2, 9, FAR_NS);
        failed.status = Status::Failed;
        run.cells[0].repetitions.push(failed);
        let last = || Some(40.0);
        let mut cores = Cores::new(&last, &run);
        assert_eq!(cores.nearest_ns, Some(NEAR_NS), "one of an earlier part of the run");
        cores.mark_all(&mut run);
        assert_eq!(run.marks()["cores apart"].0, 2, "nothing is said of what was not measured");
        assert_eq!(cores.look(), Some(40.0));
        cores.mark_all(&mut run);
        let (count, worst) = run.marks()["cores apart"];
        assert_eq!((count, worst), (2, "cores apart: 302 ns from core to core, 40 at best"));
        assert_eq!(Cores::new(&never, &run).nearest_ns, Some(40.0), "one that no repetition had");
    }

    #[test]
    fn nothing_is_marked_where_the_distance_is_not_known() {
        let (mut run, _) = run([&[NEAR_NS], &[], &[]]);
        run.cells[0].repetitions[0].cores_apart_ns = None;
        let mut cores = Cores::new(&never, &run);
        assert_eq!(cores.look(), None);
        cores.mark_all(&mut run);
        assert!(run.marks().is_empty());
    }
}
