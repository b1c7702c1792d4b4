//! A run: who lives, who is killed when, and what is asked of those who live on.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use crate::clock::{now_ns, ns};
use crate::load::{FLOWS, flow_of};
use crate::measure::{Holds, Names};
use crate::member::{Common, Member, Role};
use crate::mistake::Mistake;
use crate::random::Random;
use crate::told::Told;
use crate::verdict::{Verdict, more};

/// What is to be done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) kills: u64,
    pub(crate) seed: u64,
    pub(crate) stall_ms: u64,
    pub(crate) mistake: Option<Mistake>,
}

const ALL: u64 = (1 << FLOWS.len()) - 1;
/// Those who live on, by their numbers from 1.
const SURVIVING: [Role; 3] =
    [Role { writes: ALL, reads: 0 }, Role { writes: 0, reads: ALL }, Role { writes: ALL, reads: ALL }];
/// Processes beside them at a time.
const VICTIMS: usize = 6;
/// So long a killed process is remembered if nothing tells of its death.
const LEASE_MS: u64 = 4_000;
/// What shared memory is not used for so long is given back, and a moment.
const GIVEN_BACK: Duration = Duration::from_millis(3_500);
/// How long a busy machine may take for what takes a moment.
const PATIENCE: Duration = Duration::from_secs(20);
/// Pause between two questions.
const ASK_PAUSE: Duration = Duration::from_millis(50);
/// So many are killed before it is looked what is held: as many as let buffers and threads grow as they do.
const WARM_UP_KILLS: u64 = 200;

/// What happens to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Action {
    Stop,
    GoOn,
    Kill,
}

struct Run {
    random: Random,
    common: Common,
    survivors: Vec<Member>,
    victims: Vec<Member>,
    sender: Sender<(u64, Told)>,
    lines: Receiver<(u64, Told)>,
    actions: BinaryHeap<Reverse<(u64, u64, Action)>>,
    next_process: u64,
    verdict: Verdict,
}

/// Carries it out; whether all was well.
///
/// # Errors
/// It cannot be carried out.
pub(crate) fn run(plan: &Plan) -> Result<bool, String> {
    println!(
        "seed {}: {} kills, {VICTIMS} processes at a time beside {}",
        plan.seed,
        plan.kills,
        SURVIVING.len()
    );
    let names = Names::look();
    let mut run = Run::new(plan)?;
    let warm_up = WARM_UP_KILLS.min(plan.kills);
    run.kill_some(warm_up)?;
    let before = run.settle_down();
    let begin = Instant::now();
    run.survivors.iter_mut().for_each(|member| member.tell("go"));
    let killed = run.verdict.kills();
    run.kill_some(plan.kills)?;
    let (killed, took) = (run.verdict.kills() - killed, begin.elapsed());
    let after = run.settle_as(&before);
    for (index, (before, after)) in before.iter().zip(&after).enumerate() {
        run.verdict.held(index as u64 + 1, *before, *after);
    }
    run.survivors.iter_mut().for_each(Member::leave);
    let left = Names::look().new_since(&names);
    println!("left behind in /dev/shm, /tmp and among abstract sockets: {}", left.len());
    if !left.is_empty() {
        run.verdict.violation(format!("left behind: {}", left.join(" ")));
    }
    println!("killed {killed} after the first {warm_up}");
    Ok(run.verdict.tell(took))
}

impl Run {
    fn new(plan: &Plan) -> Result<Self, String> {
        let common = Common { stall_ms: plan.stall_ms, lease_ms: LEASE_MS };
        let (sender, lines) = channel();
        let mut run = Self {
            random: Random::new(plan.seed),
            common,
            survivors: Vec::new(),
            victims: Vec::new(),
            sender,
            lines,
            actions: BinaryHeap::new(),
            next_process: crate::load::SURVIVORS,
            verdict: Verdict::default(),
        };
        for (number, role) in (1..).zip(SURVIVING) {
            let mistake = plan.mistake.filter(|_| number == 1);
            let seed = run.random.next();
            run.survivors.push(Member::start(number, role, seed, mistake, common, &run.sender)?);
        }
        let mut ready = 0;
        while ready < SURVIVING.len() {
            let line = run.lines.recv_timeout(PATIENCE);
            let (process, told) = line.map_err(|_| "a process does not begin".to_owned())?;
            ready += usize::from(told == Told::Ready);
            run.verdict.hear(process, &told);
        }
        Ok(run)
    }

    /// Starts a process that will be killed.
    fn begin_one(&mut self) -> Result<(), String> {
        let random = &mut self.random;
        let mut flows = || 1 + random.below(ALL);
        let (writes, reads) = (flows(), flows());
        let role = match random.below(5) {
            0 | 1 => Role { writes, reads: 0 },
            2 | 3 => Role { writes: 0, reads },
            _ => Role { writes, reads },
        };
        // Some do not get as far as to be known.
        let life_ms = if random.percent(15) { random.below(40) } else { random.between(40, 1_500) };
        let life_ns = ns(Duration::from_millis(life_ms)) + random.below(1_000_000);
        let stop = random.percent(6).then(|| (random.below(life_ns), random.between(10, 400) * 1_000_000));
        let seed = random.next();
        let process = self.next_process;
        self.next_process += 1;
        self.victims.push(Member::start(process, role, seed, None, self.common, &self.sender)?);
        let now_ns = now_ns();
        self.actions.push(Reverse((now_ns + life_ns, process, Action::Kill)));
        if let Some((from_ns, for_ns)) = stop {
            self.actions.push(Reverse((now_ns + from_ns, process, Action::Stop)));
            self.actions.push(Reverse((now_ns + from_ns + for_ns, process, Action::GoOn)));
        }
        Ok(())
    }

    /// Kills so many, at random moments.
    fn kill_some(&mut self, count: u64) -> Result<(), String> {
        let goal = self.verdict.kills() + count;
        while self.verdict.kills() < goal && !self.survivors_ended() {
            let left = goal - self.verdict.kills();
            while self.victims.len() < VICTIMS.min(left as usize) {
                self.begin_one()?;
            }
            let due_ns = self.actions.peek().map_or(0, |Reverse((at_ns, ..))| *at_ns);
            let wait = Duration::from_nanos(due_ns.saturating_sub(now_ns()));
            if let Ok((process, told)) = self.lines.recv_timeout(wait) {
                self.verdict.hear(process, &told);
            }
            while let Some(&Reverse((at_ns, process, action))) = self.actions.peek()
                && at_ns <= now_ns()
            {
                self.actions.pop();
                self.act(process, action);
            }
        }
        self.actions.clear();
        while let Some(process) = self.victims.first().map(|it| it.process) {
            self.act(process, Action::Kill);
        }
        Ok(())
    }

    fn act(&mut self, process: u64, action: Action) {
        let Some(index) = self.victims.iter().position(|it| it.process == process) else { return };
        let member = &mut self.victims[index];
        if let Some(status) = member.ended() {
            self.verdict.violation(format!("process {process} ended by itself: {status}"));
            self.verdict.stop_ends(process);
            self.victims.swap_remove(index);
            return;
        }
        match action {
            Action::Stop => {
                member.stop();
                self.verdict.stop_begins(process, member.role);
            }
            Action::GoOn => {
                member.go_on();
                self.verdict.stop_ends(process);
            }
            Action::Kill => {
                member.kill();
                self.verdict.killed(member.role, member.is_stopped);
                self.verdict.stop_ends(process);
                self.victims.swap_remove(index);
            }
        }
    }

    /// Whether one that is never killed is gone.
    fn survivors_ended(&mut self) -> bool {
        let ended = self.survivors.iter_mut().find_map(|it| it.ended().map(|status| (it.process, status)));
        if let Some((process, status)) = &ended {
            self.verdict.violation(format!("process {process} ended by itself: {status}"));
        }
        ended.is_some()
    }

    /// Lets those who live on rest, until they have all that was written to them and know nobody else; what
    /// they hold then.
    fn settle(&mut self) -> Vec<Holds> {
        let end = Instant::now() + PATIENCE;
        loop {
            self.survivors.iter_mut().for_each(|member| {
                member.tell("rest");
                member.tell("report");
            });
            let missing = self.hear_answers(end);
            match missing {
                None => break,
                Some(what) if Instant::now() > end => {
                    self.verdict.violation(format!("not at rest: {what}"));
                    break;
                }
                Some(_) => std::thread::sleep(ASK_PAUSE),
            }
        }
        self.survivors.iter().map(Member::holds).collect()
    }

    /// The same, until memory that is given back in time is given back.
    fn settle_down(&mut self) -> Vec<Holds> {
        let end = Instant::now() + PATIENCE / 2;
        let (mut held, mut since) = (self.settle(), Instant::now());
        while since.elapsed() < GIVEN_BACK && Instant::now() < end {
            std::thread::sleep(ASK_PAUSE * 4);
            let now = self.settle();
            let gives = |(before, now): (&Holds, &Holds)| {
                now.descriptors < before.descriptors || now.shared_mappings < before.shared_mappings
            };
            if held.iter().zip(&now).any(gives) {
                since = Instant::now();
            }
            held = now;
        }
        held
    }

    /// The same again, until they hold what they held before: memory is given back in time.
    fn settle_as(&mut self, before: &[Holds]) -> Vec<Holds> {
        let end = Instant::now() + PATIENCE / 2;
        loop {
            let after = self.settle();
            let is_more = before.iter().zip(&after).any(|(before, after)| more(before, after).is_some());
            if !is_more || Instant::now() > end {
                return after;
            }
            std::thread::sleep(ASK_PAUSE * 4);
        }
    }

    /// Whatever of rest is missing by the answers to one question.
    fn hear_answers(&mut self, end: Instant) -> Option<String> {
        let (mut written, mut seen, mut rests) = (HashMap::new(), HashMap::new(), HashMap::new());
        while rests.len() < self.survivors.len() {
            let left = end.saturating_duration_since(Instant::now()).max(ASK_PAUSE);
            let Ok((process, told)) = self.lines.recv_timeout(left) else {
                return Some(format!("of {} processes only {} answer", self.survivors.len(), rests.len()));
            };
            self.verdict.hear(process, &told);
            match told {
                Told::Written { writer, number } => drop(written.insert(writer, number)),
                Told::Seen { writer, number } => drop(seen.insert((process, writer), number)),
                Told::Rests { matched, resting } => drop(rests.insert(process, (matched, resting))),
                _ => {}
            }
        }
        for (member, &(matched, resting)) in
            self.survivors.iter().filter_map(|it| Some((it, rests.get(&it.process)?)))
        {
            let (process, expected) = (member.process, expected_matches(member.role));
            if !resting {
                return Some(format!("process {process} writes, or waits in a write"));
            }
            if matched != expected {
                return Some(format!("process {process} has {matched} matches instead of {expected}"));
            }
            for (writer, number) in
                written.iter().filter(|(writer, _)| member.role.holds_up(flow_of(**writer)))
            {
                let last = seen.get(&(process, *writer));
                if last != Some(number) {
                    let topic = FLOWS[flow_of(*writer)].topic;
                    return Some(format!(
                        "process {process} has not sample {number} of {topic}, but {last:?}"
                    ));
                }
            }
        }
        None
    }
}

/// Matches with endpoints of those who live on.
fn expected_matches(role: Role) -> u64 {
    let count = |is_of: fn(&Role) -> u64, own: u64| {
        SURVIVING.iter().map(|other| u64::from((is_of(other) & own).count_ones())).sum::<u64>()
    };
    count(|it| it.reads, role.writes) + count(|it| it.writes, role.reads)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_are_those_of_all_flows() {
        assert_eq!(SURVIVING.map(expected_matches), [8, 8, 16]);
    }
}
