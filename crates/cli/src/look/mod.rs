//! Looking at a domain from outside: the options that all such commands have, a participant that is there to
//! look, and how long discovery is waited for.

pub(crate) mod view;

use std::time::{Duration, Instant};

use clap::Args;
use plainsong::Error;
use plainsong::prelude::*;
use plainsong::survey;

use crate::span;
use crate::stop::Stop;

/// No participant or endpoint has come for so long: a newcomer is answered at once, and announces itself four
/// times within 0.62 s in case that is lost.
pub(crate) const QUIET_FOR: Duration = Duration::from_millis(700);
/// Who is heard, but has not answered, is waited for; after three seconds it counts as unresponsive.
pub(crate) const ANSWERS_WITHIN: Duration = Duration::from_millis(3_300);
const LOOK_AGAIN: Duration = Duration::from_millis(25);

/// What every command has that looks at a domain.
#[derive(Args, Clone, Debug)]
pub(crate) struct DomainOptions {
    /// Domain id
    #[arg(short, long, default_value_t = 0, value_parser = span::domain)]
    pub(crate) domain: u16,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Seconds to wait for discovery at most; it ends before when nothing new has come for 0.7 s, and
    /// everyone has answered who is heard
    #[arg(long, value_name = "S", default_value = "5", value_parser = seconds)]
    pub(crate) wait: Duration,
}

/// A number of seconds from 0 to a day, with fractions.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text.parse().map_err(|_| format!("{text:?} is no number of seconds"))?;
    if (0.0..=86_400.0).contains(&number) {
        return Ok(Duration::from_secs_f64(number));
    }
    Err(format!("{text} is not between 0 and 86400 seconds"))
}

/// The configuration of whoever looks: it votes not, whatever is set for the members of groups, and keeps
/// nothing.
pub(crate) fn config() -> Result<Config, Error> {
    let mut config = Config::from_env()?;
    config.voter = None;
    config.voters.clear();
    config.state_directory = None;
    Ok(config)
}

/// Joins a domain as the tool of that name, which other tools leave out.
pub(crate) fn join(domain: u16, tool: &str, config: Config) -> Result<DomainParticipant, Error> {
    let factory = DomainParticipantFactory::with_config(config);
    let mut qos = QosSet::default();
    qos.properties.push(survey::tool(tool));
    factory.create_participant(domain, &format!("plainsong {tool}"), qos)
}

/// Waits until discovery has nothing new for `quiet`, and until everyone has answered or has had the time to;
/// no longer than `wait`, nor past the end of the program. Whether it was not interrupted by that.
pub(crate) fn settle(
    participant: &DomainParticipant,
    quiet: Duration,
    wait: Duration,
    stop: &Stop,
) -> Result<bool, Error> {
    let begin = Instant::now();
    let (mut known, mut since) = (participant.discovery_progress()?, begin);
    loop {
        participant.ask_types()?;
        let now = participant.discovery_progress()?;
        if now != known {
            (known, since) = (now, Instant::now());
        }
        let is_awaited = known.unproven > 0 && begin.elapsed() < ANSWERS_WITHIN || known.awaits_types;
        let is_done = since.elapsed() >= quiet && !is_awaited;
        if is_done || begin.elapsed() >= wait || stop.is_told() {
            return Ok(is_done || !stop.is_told());
        }
        stop.sleep(LOOK_AGAIN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_a_number_of_seconds_up_to_a_day() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for bad in ["-1", "nan", "inf", "86401", "1s", ""] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }
}
