//! The attacks, what each may do, and how it is judged.

mod control;
mod flood;
mod forged;
mod noise;

use std::fmt;
use std::time::{Duration, Instant};

use crate::attacker::{Attacker, Peer};
use crate::lab::{Lab, octets_of_attacker};
use crate::pair::{Memory, Pair};
use crate::random::Random;
use crate::report::Outcome;

/// No attack takes less time.
pub(crate) const DURATION_MIN: Duration = Duration::from_millis(1_500);
/// How long the reader may take for what is still missing when an attack is over.
const SETTLING_MAX: Duration = Duration::from_secs(8);
/// How long memory may take to come back, asked now and then: less where the whole run is short.
const SHRINKING_MAX: Duration = Duration::from_secs(60);
/// Resident memory that is no matter of an attack.
const SLACK_BYTES: u64 = 12 << 20;
/// The heap gives back 3 s after much was freed, and 10 s after it last did.
const GIVING_BACK: Duration = Duration::from_secs(20);

/// Whose received octets an attack draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aim {
    /// A host whose addresses are forged.
    Victim,
    /// The attacker itself.
    Attacker,
    /// The pair's reader, beyond what its writer sends it anyway.
    Reader,
}

/// What is attacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A writer that keeps everything until it is acknowledged, and a reader on another host.
    Usual,
    /// The writer keeps samples for late joiners, whether acknowledged or not.
    Latched,
    /// Both are on one host.
    Neighbours,
}

/// What an attack may do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    aim: Aim,
    /// Octets drawn by an octet sent.
    factor_max: f64,
    /// Resident memory beyond what it was before.
    growth_mb_max: u64,
    /// The longest pause of the stream. Far beyond what a call may take: the machine has other things to do.
    stall_ms_max: u64,
    /// The pair is to lose nothing. Of what comes from a genuine peer's own address, nobody could promise it.
    lossless: bool,
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { factor_max, growth_mb_max, stall_ms_max, .. } = self;
        let aim = match self.aim {
            Aim::Victim => "the victim",
            Aim::Attacker => "the attacker",
            Aim::Reader => "the reader",
        };
        write!(f, "draws {factor_max} octets per octet to {aim}, holds {growth_mb_max} MB, ")?;
        write!(
            f,
            "stops {stall_ms_max} ms, {}",
            if self.lossless { "loses nothing" } else { "may lose samples" }
        )
    }
}

/// One attack.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    pub(crate) bounds: Bounds,
    pair: Kind,
    attack: fn(&mut Stage<'_>) -> Result<(), String>,
}

/// What most attacks may do.
const USUAL: Bounds =
    Bounds { aim: Aim::Victim, factor_max: 3.0, growth_mb_max: 32, stall_ms_max: 2_000, lossless: true };
/// From the address of one of the pair nothing can be promised without security, but that it stays within
/// bounds.
const AS_PEER: Bounds = Bounds { stall_ms_max: u64::MAX, lossless: false, ..USUAL };

/// Every attack, and what it may do.
pub(crate) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "forged-proof",
        what: "three datagrams from the victim's address: a participant for ever, and what could pass for its answer",
        bounds: USUAL,
        pair: Kind::Usual,
        attack: forged::proof,
    },
    Scenario {
        name: "forged-readers",
        what: "the same, and fifty readers of the pair's topic",
        bounds: USUAL,
        pair: Kind::Latched,
        attack: forged::readers,
    },
    Scenario {
        name: "forged-guesses",
        what: "the same, guessing numbers and counts that a proof has to name",
        bounds: USUAL,
        pair: Kind::Usual,
        attack: forged::guesses,
    },
    Scenario {
        name: "forged-replay",
        what: "the numbers of a challenge that the attacker was sent itself, replayed from the victim's address",
        bounds: USUAL,
        pair: Kind::Latched,
        attack: forged::replay,
    },
    Scenario {
        name: "third-addresses",
        what: "readers of a proven participant that name the victim's addresses",
        bounds: USUAL,
        pair: Kind::Latched,
        attack: forged::third_addresses,
    },
    Scenario {
        name: "strangers",
        what: "ever new participants from ever new addresses, which answer nothing; a newcomer is discovered",
        bounds: Bounds { stall_ms_max: 1_000, ..USUAL },
        pair: Kind::Usual,
        attack: flood::strangers,
    },
    Scenario {
        name: "closed-door",
        what: "1,200 proven participants for ever; a newcomer is discovered",
        bounds: Bounds { aim: Aim::Attacker, factor_max: f64::INFINITY, ..USUAL },
        pair: Kind::Usual,
        attack: flood::closed_door,
    },
    Scenario {
        name: "departure",
        what: "says for each of the pair that it leaves, from other addresses",
        bounds: USUAL,
        pair: Kind::Usual,
        attack: control::departure,
    },
    Scenario {
        name: "departure-nearby",
        what: "another process of their host says for each that it leaves, or that its lease is short",
        bounds: USUAL,
        pair: Kind::Neighbours,
        attack: control::departure_nearby,
    },
    Scenario {
        name: "redirect-participant",
        what: "announces each of the pair at the attacker's address, and answers there; or with a short lease",
        bounds: Bounds { aim: Aim::Attacker, ..USUAL },
        pair: Kind::Usual,
        attack: control::redirect_participant,
    },
    Scenario {
        name: "redirect-endpoint",
        what: "announces the pair's endpoints at the attacker's address, and withdraws them",
        bounds: Bounds { aim: Aim::Attacker, ..USUAL },
        pair: Kind::Usual,
        attack: control::redirect_endpoint,
    },
    Scenario {
        name: "heartbeat-gap",
        what: "HEARTBEAT and GAP far ahead in the writer's name, from the attacker's address",
        bounds: USUAL,
        pair: Kind::Usual,
        attack: control::heartbeat_gap,
    },
    Scenario {
        name: "acknack",
        what: "acknowledges everything in the reader's name, from the attacker's address, while datagrams get lost",
        bounds: USUAL,
        pair: Kind::Usual,
        attack: control::acknack,
    },
    Scenario {
        name: "as-peer",
        what: "all of these from the addresses of the pair itself",
        bounds: AS_PEER,
        pair: Kind::Usual,
        attack: control::as_peer,
    },
    Scenario {
        name: "nack-storm",
        what: "a proven reader asks for 256 samples again and again",
        bounds: Bounds { aim: Aim::Attacker, ..USUAL },
        pair: Kind::Latched,
        attack: flood::nack_storm,
    },
    Scenario {
        name: "nack-storm-as-peer",
        what: "the same in the reader's name and from its address",
        bounds: Bounds { aim: Aim::Reader, ..AS_PEER },
        pair: Kind::Latched,
        attack: flood::nack_storm_as_peer,
    },
    Scenario {
        name: "silent-readers",
        what: "fifty reliable readers of a proven participant that acknowledge nothing",
        bounds: Bounds { aim: Aim::Attacker, factor_max: f64::INFINITY, ..USUAL },
        pair: Kind::Usual,
        attack: flood::silent_readers,
    },
    Scenario {
        name: "endpoints",
        what: "ever new endpoints of a proven participant, until its lease ends",
        bounds: Bounds { aim: Aim::Attacker, growth_mb_max: 64, ..USUAL },
        pair: Kind::Usual,
        attack: flood::endpoints,
    },
    Scenario {
        name: "instances",
        what: "ever new instances for the pair's reader, until the lease of their writer ends",
        // As many as a reader admits, and of each what tells that its writer is gone.
        bounds: Bounds { aim: Aim::Attacker, growth_mb_max: 192, ..USUAL },
        pair: Kind::Usual,
        attack: flood::instances,
    },
    Scenario {
        name: "fragments",
        what: "one fragment of two octets of each of 250 samples of 1,000 writers",
        // The budget of incomplete samples is 64 MB, and the writers are known, too.
        bounds: Bounds { aim: Aim::Attacker, growth_mb_max: 96, ..USUAL },
        pair: Kind::Usual,
        attack: flood::fragments,
    },
    Scenario {
        name: "group-writers",
        what: "4,000 writers of one publisher with GROUP access, which leave together",
        bounds: Bounds { aim: Aim::Attacker, factor_max: f64::INFINITY, growth_mb_max: 64, ..USUAL },
        pair: Kind::Usual,
        attack: flood::group_writers,
    },
    Scenario {
        name: "mutations",
        what: "all kinds of datagrams with octets changed, cut and repeated",
        bounds: Bounds { aim: Aim::Attacker, growth_mb_max: 64, ..USUAL },
        pair: Kind::Usual,
        attack: noise::mutations,
    },
];

/// What an attack works with.
struct Stage<'a> {
    attacker: Attacker,
    /// The writer's participant and the reader's.
    peers: [Peer; 2],
    lab: &'a Lab,
    pair: &'a mut Pair,
    run: u32,
    end: Instant,
    notes: Vec<String>,
}

impl Stage<'_> {
    fn is_over(&self) -> bool {
        Instant::now() >= self.end
    }

    /// Hears and answers to the end of the attack.
    fn wait(&mut self) {
        while !self.is_over() {
            self.attacker.listen(Duration::from_millis(50));
        }
    }

    /// Loses all datagrams of the reader's host for so long.
    fn cut(&mut self, time: Duration) -> Result<(), String> {
        self.lab.reader.join(false)?;
        self.attacker.listen(time);
        self.lab.reader.join(true)
    }
}

fn drawn(aim: Aim, lab: &Lab) -> u64 {
    match aim {
        Aim::Victim => lab.victim.octets_received(),
        Aim::Attacker => octets_of_attacker(),
        Aim::Reader => lab.reader.octets_received(),
    }
}

/// Carries out an attack on a new pair.
pub(crate) fn run(
    scenario: &Scenario,
    lab: &Lab,
    duration: Duration,
    mut random: Random,
) -> Result<Outcome, String> {
    let run = random.next() as u32 | 1;
    let mut attacker = Attacker::new(random)?;
    let mut pair = match scenario.pair {
        Kind::Usual => Pair::start(&lab.writer, &lab.reader, run, false),
        Kind::Latched => Pair::start(&lab.writer, &lab.reader, run, true),
        Kind::Neighbours => Pair::start(&lab.reader, &lab.reader, run, false),
    }?;
    let peers = [attacker.learn(pair.writer.endpoint)?, attacker.learn(pair.reader.endpoint)?];
    let octets_per_s = if scenario.bounds.aim == Aim::Reader { usual_rate(lab) } else { 0.0 };
    let before = [pair.writer.memory(), pair.reader.memory()];
    [&pair.writer, &pair.reader].into_iter().for_each(|it| it.reset_peak());
    pair.writer.ask()?;
    pair.reader.ask()?;
    let (begin, drawn_before) = (Instant::now(), drawn(scenario.bounds.aim, lab));
    let end = begin + duration;
    let mut stage = Stage { attacker, peers, lab, pair: &mut pair, run, end, notes: Vec::new() };
    let attacked = (scenario.attack)(&mut stage);
    let Stage { attacker, notes, .. } = stage;
    let usual = octets_per_s * begin.elapsed().as_secs_f64();
    let mut outcome = Outcome {
        sent: attacker.raw.octets_sent,
        drawn: (drawn(scenario.bounds.aim, lab) - drawn_before).saturating_sub(usual as u64),
        notes,
        ..Outcome::default()
    };
    if let Err(miss) = attacked {
        outcome.misses.push(miss);
    }
    if let Err(miss) = close(&mut pair, before, scenario.bounds, duration, &mut outcome) {
        outcome.misses.push(miss);
    }
    judge(&scenario.bounds, &mut outcome);
    Ok(outcome)
}

/// Octets a second that arrive at the reader's host without an attack.
fn usual_rate(lab: &Lab) -> f64 {
    let (begin, before) = (Instant::now(), lab.reader.octets_received());
    std::thread::sleep(Duration::from_millis(1_000));
    (lab.reader.octets_received() - before) as f64 / begin.elapsed().as_secs_f64()
}

/// Looks at what an attack has left.
fn close(
    pair: &mut Pair,
    before: [Memory; 2],
    bounds: Bounds,
    duration: Duration,
    outcome: &mut Outcome,
) -> Result<(), String> {
    let after = [pair.writer.memory(), pair.reader.memory()];
    (0..2).for_each(|process| outcome.remember(process, before[process], after[process]));
    outcome.stall_ms = pair.reader.ask()?.pause_ms;
    let begin = Instant::now();
    if !pair.flows(SETTLING_MAX)? {
        let told = if bounds.lossless { &mut outcome.misses } else { &mut outcome.notes };
        told.push("no samples flow any more".to_owned());
    }
    // What has stopped at the end of the attack goes on after it.
    outcome.stall_ms =
        outcome.stall_ms.max(pair.reader.ask()?.pause_ms.min(begin.elapsed().as_millis() as u64));
    let [written, received] = pair.settle(SETTLING_MAX)?;
    outcome.failed = written.failed;
    outcome.missing = written.samples.saturating_sub(received.samples);
    outcome.duplicates = received.duplicates;
    outcome.lost = received.lost;
    // Memory comes back within a minute, and of a short attack within as many seconds as it took, or in which
    // the heap gives back twice.
    let end = Instant::now() + SHRINKING_MAX.min(duration.max(GIVING_BACK));
    loop {
        for (process, worker) in [&pair.writer, &pair.reader].into_iter().enumerate() {
            let now = worker.memory();
            outcome.memory[process][1] = outcome.memory[process][1].max(now.peak);
            outcome.memory[process][2] = now.now;
        }
        if outcome.memory.iter().all(is_back) || Instant::now() > end {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn is_back([before, _, after]: &[u64; 3]) -> bool {
    *after <= 2 * before + SLACK_BYTES
}

/// Compares what happened with what may.
fn judge(bounds: &Bounds, outcome: &mut Outcome) {
    let mut misses = Vec::new();
    if outcome.factor() > bounds.factor_max {
        misses.push(format!("a factor of {:.2}, not {}", outcome.factor(), bounds.factor_max));
    }
    if outcome.stall_ms > bounds.stall_ms_max {
        misses.push(format!("the stream stopped for {} ms, not {}", outcome.stall_ms, bounds.stall_ms_max));
    }
    for (process, moments) in ["writer", "reader"].into_iter().zip(outcome.memory) {
        let [before, peak, after] = moments;
        if peak > before + (bounds.growth_mb_max << 20) {
            let growth = (peak - before) >> 20;
            misses.push(format!("the {process} grew by {growth} MB, not {}", bounds.growth_mb_max));
        }
        if !is_back(&moments) {
            misses.push(format!("the {process} stays at {} MB of {} MB before", after >> 20, before >> 20));
        }
    }
    if bounds.lossless {
        if outcome.missing > 0 {
            misses.push(format!("{} samples did not arrive", outcome.missing));
        }
        if outcome.lost > 0 {
            misses.push(format!("SAMPLE_LOST is {}", outcome.lost));
        }
    }
    if outcome.duplicates > 0 {
        misses.push(format!("{} samples arrived twice", outcome.duplicates));
    }
    outcome.misses.extend(misses);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_attack_has_a_name_of_its_own() {
        let mut names: Vec<_> = SCENARIOS.iter().map(|it| it.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), SCENARIOS.len());
    }

    #[test]
    fn what_goes_beyond_a_bound_is_a_miss_and_what_does_not_is_none() {
        let misses = |change: fn(&mut Outcome)| {
            let memory = [[6 << 20; 3]; 2];
            let mut outcome = Outcome { sent: 1_000, drawn: 3_000, memory, ..Outcome::default() };
            change(&mut outcome);
            judge(&USUAL, &mut outcome);
            outcome.misses.len()
        };
        assert_eq!(misses(|_| {}), 0);
        assert_eq!(misses(|it| it.drawn = 3_001), 1);
        assert_eq!(misses(|it| it.stall_ms = 2_001), 1);
        assert_eq!(misses(|it| it.memory[1] = [6 << 20, 39 << 20, 7 << 20]), 1);
        assert_eq!(misses(|it| it.memory[0] = [6 << 20, 38 << 20, 25 << 20]), 1);
        assert_eq!(misses(|it| (it.missing, it.lost, it.duplicates) = (1, 1, 1)), 3);
    }
}
