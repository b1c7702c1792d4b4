//! Commands about one topic, whose type comes from those who have it: `type`, `sub`, `pub`, `hz`, `bw` and
//! `delay`. What they wait for, and why nothing comes, they say on standard error.

pub(crate) mod describe;
pub(crate) mod meter;
pub(crate) mod publish;
mod samples;
mod statistics;
pub(crate) mod subscribe;

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use plainsong::Error;
use plainsong::prelude::*;

use crate::look;
use crate::output;
use crate::span;
use crate::stop::Stop;

/// There is no such topic, its type is not known, or nothing came.
const NOTHING: u8 = 1;
/// Something failed, and it is said what.
const FAILED: u8 = 3;
/// How often discovery is looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(25);
/// No endpoint of the topic has come for so long: those of one participant come together.
const QUIET_FOR: Duration = Duration::from_millis(250);
/// Waiting is told after so long, and what has changed since.
const TELL_AFTER: Duration = Duration::from_millis(1_000);
/// So long is waited for another endpoint where none of those that are there tells its type.
const HOPE_FOR: Duration = Duration::from_secs(5);

/// What all of these commands have.
#[derive(Args)]
pub(crate) struct TopicOptions {
    /// The topic; a ROS 2 topic such as `rt/chatter` is found as `/chatter` too
    topic: String,
    /// Domain id
    #[arg(short, long, default_value_t = 0, value_parser = span::domain)]
    domain: u16,
    /// Print JSON, one object a line
    #[arg(long)]
    json: bool,
}

/// Runs a command; what fails is said.
fn run(topic: &str, what: &str, show: impl FnOnce() -> Result<ExitCode, Error>) -> ExitCode {
    show().unwrap_or_else(|error| {
        eprintln!("cannot {what} topic '{topic}': {error}");
        ExitCode::from(FAILED)
    })
}

/// A participant that looks at one topic of others.
struct Session {
    stop: Stop,
    participant: DomainParticipant,
    /// As it was asked for, and as it is called.
    asked: String,
    name: String,
    domain: u16,
    begin: Instant,
    /// When waiting ends.
    deadline: Option<Instant>,
    /// What was said, lest it be said again.
    said: BTreeSet<String>,
}

impl Session {
    fn open(options: &TopicOptions, command: &str, wait: Option<Duration>) -> Result<Self, Error> {
        let stop = Stop::on_signals()
            .map_err(|source| Error::Io { what: "installing signal handlers".into(), source })?;
        let participant = look::join(options.domain, command, look::config()?)?;
        let begin = Instant::now();
        Ok(Self {
            stop,
            participant,
            asked: options.topic.clone(),
            name: options.topic.clone(),
            domain: options.domain,
            begin,
            deadline: wait.map(|wait| begin + wait),
            said: BTreeSet::new(),
        })
    }

    /// Says something, once.
    fn say(&mut self, text: String) {
        if !self.said.contains(&text) {
            eprintln!("{text}");
            self.said.insert(text);
        }
    }

    /// Nothing more is waited for.
    fn is_over(&self) -> bool {
        self.stop.is_told() || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Whether it is time to say why nothing comes.
    fn may_tell(&self) -> bool {
        self.begin.elapsed() >= TELL_AFTER || self.is_over()
    }

    /// The endpoints that others have of the topic, by its name or that of the ROS 2 topic.
    fn look(&mut self) -> Result<Vec<DiscoveredEndpoint>, Error> {
        let endpoints = self.participant.look_up_topic(&self.name)?;
        if endpoints.is_empty()
            && self.asked.starts_with('/')
            && self.name == self.asked
            && self.names()?.contains(&format!("rt{}", self.asked))
        {
            self.name = format!("rt{}", self.asked);
            let text = format!("'{}' is the ROS 2 topic '{}'", self.asked, self.name);
            self.say(text);
            return self.participant.look_up_topic(&self.name);
        }
        Ok(endpoints)
    }

    /// The names of all topics that others have.
    fn names(&self) -> Result<BTreeSet<String>, Error> {
        let mut names = BTreeSet::new();
        for handle in self.participant.discovered_topics()? {
            // One that has left meanwhile is no news.
            if let Ok(data) = self.participant.discovered_topic_data(handle) {
                names.insert(data.name);
            }
        }
        Ok(names)
    }

    /// Waits until somebody has the topic, and nobody else comes any more; nothing when that ends without.
    fn wait_for_endpoints(
        &mut self,
        are_enough: impl Fn(&[DiscoveredEndpoint]) -> bool,
    ) -> Result<Option<Vec<DiscoveredEndpoint>>, Error> {
        let (mut known, mut since) = (0, Instant::now());
        loop {
            let endpoints = self.look()?;
            if endpoints.len() != known {
                (known, since) = (endpoints.len(), Instant::now());
            }
            if are_enough(&endpoints) && since.elapsed() >= QUIET_FOR {
                return Ok(Some(endpoints));
            }
            if !are_enough(&endpoints) && self.may_tell() {
                self.say_who_is_missing(&endpoints)?;
            }
            if self.is_over() {
                return Ok(None);
            }
            self.stop.sleep(LOOK_AGAIN);
        }
    }

    fn say_who_is_missing(&mut self, endpoints: &[DiscoveredEndpoint]) -> Result<(), Error> {
        let Self { asked, domain, .. } = self;
        if !endpoints.is_empty() {
            let text = format!("topic '{}' has {}: waiting for a writer", self.name, counted(endpoints));
            self.say(text);
            return Ok(());
        }
        let mut text = format!("waiting for topic '{asked}' in domain {domain}: nobody has it");
        let alike = |name: &String| plain(name) == plain(&self.asked) && *name != self.asked;
        let names: Vec<String> =
            self.names()?.into_iter().filter(alike).map(|name| format!("'{name}'")).collect();
        if !names.is_empty() {
            text += &format!("; there is {}", names.join(", "));
        }
        self.say(text);
        Ok(())
    }

    /// Waits until somebody has the topic and has told its type; nothing, and why is said, when nobody does.
    fn wait_for_type(&mut self) -> Result<Option<(DynamicType, Vec<DiscoveredEndpoint>)>, Error> {
        let mut hopeless_since = None;
        loop {
            let Some(endpoints) = self.wait_for_endpoints(|endpoints| !endpoints.is_empty())? else {
                return Ok(None);
            };
            if let Some(ty) = endpoints.iter().find_map(|endpoint| endpoint.dynamic_type().ok()) {
                if !ty.has_names() {
                    self.say(format!(
                        "the names of the members of type '{}' are not known, for nobody told more than its minimal form: \
                         they are #0, #1, … by their ids",
                        ty.name()
                    ));
                }
                return Ok(Some((ty, endpoints)));
            }
            let is_hopeless =
                endpoints.iter().all(|it| !matches!(it.told, plainsong::dynamic::ToldType::Awaited));
            let since = *hopeless_since.get_or_insert_with(Instant::now);
            if !is_hopeless {
                hopeless_since = None;
            }
            let gives_up = self.is_over() || is_hopeless && since.elapsed() >= HOPE_FOR;
            if is_hopeless && self.may_tell() || gives_up {
                for endpoint in &endpoints {
                    let Err(why) = endpoint.dynamic_type() else { continue };
                    self.say(format!("{}: {why}", words(endpoint)));
                }
            }
            if gives_up {
                self.say(format!(
                    "the type of topic '{}' is not known; `plainsong hz`, `bw` and `delay` do without",
                    self.name
                ));
                return Ok(None);
            }
            self.stop.sleep(LOOK_AGAIN);
        }
    }

    /// Says what keeps our endpoint and others apart.
    fn say_mismatches(&mut self) -> Result<(), Error> {
        for mismatch in self.participant.mismatches()? {
            self.say(mismatch.to_string());
        }
        Ok(())
    }
}

/// A name without what often differs: case, a leading slash, the prefix of ROS 2.
fn plain(name: &str) -> String {
    let name = name.strip_prefix("rt/").or_else(|| name.strip_prefix('/')).unwrap_or(name);
    name.to_lowercase()
}

/// A writer or reader, in words.
fn words(endpoint: &DiscoveredEndpoint) -> String {
    let what = if endpoint.is_writer() { "writer" } else { "reader" };
    format!("{what} {}", endpoint.guid)
}

/// So many writers and readers.
fn counted(endpoints: &[DiscoveredEndpoint]) -> String {
    let writers = endpoints.iter().filter(|it| it.is_writer()).count();
    let count = |count: usize, what: &str| match count {
        0 => format!("no {what}"),
        _ => output::counted(count as u64, what),
    };
    format!("{} and {}", count(writers, "writer"), count(endpoints.len() - writers, "reader"))
}

fn has_writer(endpoints: &[DiscoveredEndpoint]) -> bool {
    endpoints.iter().any(DiscoveredEndpoint::is_writer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_people_mix_up_are_alike() {
        for name in ["rt/Chatter", "/chatter", "CHATTER", "rt/chatter"] {
            assert_eq!(plain(name), "chatter");
        }
        assert_ne!(plain("art/chatter"), "chatter");
    }
}
