//! What was measured while the cores were apart is measured again when they are near.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::Conductor;
use crate::perf::results::Repetition;
use crate::perf::run::apart::{due, is_better, room};
use crate::perf::run::directory::replace_repetition;
use crate::perf::run::order::Turn;
use crate::perf::run::progress::words;

/// How long one waits for the cores to be near before the next has its turn.
const PATIENCE: Duration = Duration::from_secs(2);

impl Conductor<'_> {
    /// Each once, for as long as the campaign allows it and the cores come near; `order` is that of the first.
    pub(super) fn again(&mut self, mut order: u32) -> Result<(), String> {
        let allowed = self.job.campaign.again.0;
        let mut queue = VecDeque::from(due(&self.run, &self.job.planned));
        if allowed.is_zero() || queue.is_empty() || self.interrupted.load(Ordering::Relaxed) {
            return Ok(());
        }
        let (begin, before) = (Instant::now(), Duration::from_millis(self.run.again_ms));
        let left = words(allowed.saturating_sub(before));
        self.progress
            .again(&format!("{} repetitions, for the cores were apart; {left} at most", queue.len()));
        // Those in a row that have found the cores apart: when all have, that is the end.
        let mut in_vain = 0;
        while in_vain < queue.len() && !self.interrupted.load(Ordering::Relaxed) {
            let Some(turn) = queue.pop_front() else { break };
            let spent = before + begin.elapsed();
            let Some(room) = room(allowed, spent, self.job.time(&turn)) else { break };
            if self.measure_again(Turn { order, ..turn }, room.min(PATIENCE))? {
                order += 1;
                in_vain = 0;
            } else {
                queue.push_back(turn);
                in_vain += 1;
            }
            self.run.again_ms = u64::try_from((before + begin.elapsed()).as_millis()).unwrap_or(u64::MAX);
            self.write(false)?;
        }
        Ok(())
    }

    /// False if nothing was measured: the cores did not come near, or the user wants to end.
    fn measure_again(&mut self, turn: Turn, patience: Duration) -> Result<bool, String> {
        let job = self.job;
        let Some(planned) = job.planned.get(turn.cell) else { return Ok(true) };
        let id = &planned.cell.id;
        self.progress.begins(&format!("again: {id}"), turn.repetition);
        let Some(mut finished) = self.measure(planned, turn, Some(patience)) else { return Ok(false) };
        finished.repetition.again = true;
        let better = is_better(&finished.repetition);
        self.progress.again(&format!("{id} #{}: {}", turn.repetition, outcome(&finished.repetition, better)));
        if better && let Some(directory) = &job.directory {
            replace_repetition(directory, id, &finished)?;
        }
        let new = self.note_programs(finished);
        let cell = self.run.cells.iter_mut().find(|it| it.id == *id);
        let old = cell.and_then(|it| it.repetitions.iter_mut().find(|it| it.number == turn.repetition));
        match old {
            Some(old) if better => *old = new,
            Some(old) => old.again = true,
            None => {}
        }
        self.cores.mark_all(&mut self.run);
        // The files are those of the new one.
        self.write(better)?;
        Ok(true)
    }
}

/// What came of it.
fn outcome(new: &Repetition, better: bool) -> String {
    let marks = new.marks.join("; ");
    match (better, marks.is_empty(), new.reason.is_empty()) {
        (true, true, _) => "ok".to_owned(),
        (true, false, _) => marks,
        (false, _, true) => format!("the first stays; {marks}"),
        (false, ..) => format!("the first stays; {}: {}", new.status.label(), new.reason),
    }
}
