//! Who else used the CPU while a repetition was measured.

use std::time::Duration;

use super::link::Link;
use crate::perf::agent::own_cpu_time;
use crate::perf::agent::protocol::MachineUse;

/// The kernel tells the time of each process in steps of this.
const STEP: Duration = Duration::from_millis(10);

/// CPU time of this process, which is none of the others, from here on.
pub(super) struct Controller {
    before_ns: u64,
}

impl Controller {
    pub(super) fn watch() -> Self {
        Self { before_ns: own_cpu_time() }
    }

    pub(super) fn used_ns(&self) -> u64 {
        own_cpu_time().saturating_sub(self.before_ns)
    }
}

/// What others used on the machine where it was most, in percent of one core.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Others {
    pub(super) percent: f64,
    /// So much may be but the coarseness of the kernel's count.
    doubt_percent: f64,
}

impl Others {
    /// From what each agent has found; agents with the controller's clock are on its machine.
    pub(super) fn of(links: &[Link], found: &[(usize, MachineUse)], controller_ns: u64) -> Option<Self> {
        let is_here =
            |number: usize| links.iter().find(|it| it.number == number).is_some_and(|it| it.same_clock);
        let (here, there): (Vec<_>, Vec<_>) = found.iter().partition(|(number, _)| is_here(*number));
        let here: Vec<MachineUse> = here.into_iter().map(|(_, it)| it).collect();
        let there = there.into_iter().map(|(_, it)| Self::on_machine(&[it], 0));
        let all = there.chain([Self::on_machine(&here, controller_ns)]).flatten();
        all.max_by(|one, other| one.percent.total_cmp(&other.percent))
    }

    /// All agents of a machine see the same processors, each knows its own workers.
    fn on_machine(agents: &[MachineUse], controller_ns: u64) -> Option<Self> {
        let wall_ns = agents.iter().map(|it| it.wall_ns).max().filter(|it| *it > 0)?;
        let busy_ns = agents.iter().map(|it| it.busy_ns).max()?;
        let own_ns = agents.iter().map(|it| it.own_ns).sum::<u64>() + controller_ns;
        let processes: u32 = agents.iter().map(|it| it.processes).sum();
        let percent = |ns: f64| ns * 100.0 / wall_ns as f64;
        // Errors of many processes cancel out for the most part.
        let doubt = STEP.as_nanos() as f64 * (2.0 + f64::from(processes).sqrt());
        Some(Self { percent: percent(busy_ns.saturating_sub(own_ns) as f64), doubt_percent: percent(doubt) })
    }

    /// What to say if it was too much.
    pub(super) fn mark(self, limit_percent: f64) -> Option<String> {
        let too_much = self.percent > limit_percent + self.doubt_percent;
        too_much.then(|| format!("busy: {:.2} cores by others", self.percent / 100.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn agent(own_ms: u64) -> MachineUse {
        MachineUse { wall_ns: 1000 * MS, busy_ns: 1500 * MS, own_ns: own_ms * MS, processes: 2 }
    }

    #[test]
    fn what_agents_of_one_machine_use_is_none_of_the_others() {
        let others = Others::on_machine(&[agent(600), agent(580)], 10 * MS).unwrap();
        assert!((others.percent - 31.0).abs() < 0.01, "{others:?}");
        assert_eq!(others.mark(10.0).as_deref(), Some("busy: 0.31 cores by others"));
        assert_eq!(others.mark(40.0), None);
    }

    #[test]
    fn a_count_in_coarse_steps_is_no_proof() {
        let others = Others::on_machine(&[agent(1390)], 0).unwrap();
        assert!((others.percent - 11.0).abs() < 0.01, "{others:?}");
        assert_eq!(others.mark(10.0), None);
        assert_eq!(Others::on_machine(&[], 0), None);
        assert_eq!(Others::on_machine(&[MachineUse::default()], 0), None);
    }
}
