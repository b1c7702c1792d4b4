//! The options of the OMG interoperability application.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, ValueEnum};

use crate::span;

/// Options of `plainsong shapes`: those of the OMG suite's `shape_main`.
#[derive(Args, Clone, Debug)]
#[command(group = ArgGroup::new("role").required(true).args(["publish", "subscribe"]))]
pub(crate) struct Options {
    /// Verbosity: e shows errors, d also what happens
    #[arg(short, value_enum, default_value = "e")]
    pub(crate) verbosity: Verbosity,
    /// Publish
    #[arg(short = 'P')]
    pub(crate) publish: bool,
    /// Subscribe
    #[arg(short = 'S')]
    pub(crate) subscribe: bool,
    /// Domain id
    #[arg(short, default_value_t = 0, value_parser = span::domain)]
    pub(crate) domain: u16,
    /// Best-effort reliability
    #[arg(short, conflicts_with = "reliable")]
    pub(crate) best_effort: bool,
    /// Reliable (the default)
    #[arg(short)]
    pub(crate) reliable: bool,
    /// History depth; 0 keeps all
    #[arg(short = 'k')]
    pub(crate) history_depth: Option<i32>,
    /// Deadline in milliseconds
    #[arg(short = 'f', default_value_t = 0)]
    pub(crate) deadline_ms: i64,
    /// Ownership strength; -1 is shared ownership
    #[arg(short = 's', default_value_t = -1, allow_hyphen_values = true)]
    pub(crate) strength: i32,
    /// Topic name
    #[arg(short, default_value = "Square")]
    pub(crate) topic: String,
    /// Colour to publish; on a subscriber, the only colour to show
    #[arg(short)]
    pub(crate) color: Option<String>,
    /// Partition
    #[arg(short)]
    pub(crate) partition: Option<String>,
    /// Durability: v(olatile, the default), l (transient-local), t(ransient), p(ersistent)
    #[arg(short = 'D', value_enum)]
    pub(crate) durability: Option<DurabilityOption>,
    /// Data representation: 1 (XCDR1, the default) or 2 (XCDR2)
    #[arg(short = 'x', value_parser = clap::value_parser!(u8).range(1..=2))]
    pub(crate) representation: Option<u8>,
    /// Print samples written
    #[arg(short = 'w')]
    pub(crate) print_written: bool,
    /// Shape size; 0 grows by one with each sample
    #[arg(short = 'z', default_value_t = 20)]
    pub(crate) shape_size: i32,
    /// Use read instead of take
    #[arg(short = 'R')]
    pub(crate) use_read: bool,
    /// Time between writes in milliseconds
    #[arg(long = "write-period", default_value_t = 33)]
    write_period_ms: u64,
    /// Time between reads in milliseconds
    #[arg(long = "read-period", default_value_t = 100)]
    read_period_ms: u64,
    /// Time-based filter in milliseconds
    #[arg(long = "time-filter", default_value_t = 0)]
    pub(crate) time_filter_ms: i64,
    /// Lifespan in milliseconds
    #[arg(long = "lifespan", default_value_t = 0)]
    pub(crate) lifespan_ms: i64,
    /// End after this many iterations; 0 never ends
    #[arg(long, default_value_t = 0)]
    pub(crate) num_iterations: u64,
    /// Instances to write: BLUE, BLUE1, …
    #[arg(long, default_value_t = 1)]
    pub(crate) num_instances: u32,
    /// Topics: Square, Square1, …
    #[arg(long, default_value_t = 1)]
    pub(crate) num_topics: u32,
    /// At the end: u(nregister) or d(ispose) the instances
    #[arg(long, value_enum)]
    pub(crate) final_instance_state: Option<FinalState>,
    /// Presentation access scope: i(nstance), t(opic), g(roup)
    #[arg(long, value_enum)]
    pub(crate) access_scope: Option<Scope>,
    /// Coherent access
    #[arg(long)]
    pub(crate) coherent: bool,
    /// Ordered access
    #[arg(long)]
    pub(crate) ordered: bool,
    /// Samples in each coherent set
    #[arg(long, default_value_t = 0)]
    pub(crate) coherent_sample_count: u32,
    /// Octets added to each sample
    #[arg(long, default_value_t = 0)]
    pub(crate) additional_payload_size: usize,
    /// Take all instances at once instead of one after the other
    #[arg(long)]
    pub(crate) take_read: bool,
    /// Period of participant announcements in milliseconds
    #[arg(long = "periodic-announcement")]
    pub(crate) periodic_announcement_ms: Option<u64>,
    /// Largest fragment in octets
    #[arg(long)]
    pub(crate) datafrag_size: Option<u16>,
    /// Content filter expression
    #[arg(long)]
    pub(crate) cft: Option<String>,
    /// The size cycles from 1 to this, with -z 0
    #[arg(long, default_value_t = 0)]
    pub(crate) size_modulo: i32,
    /// Consistency of the readers of a topic: eventual (the default) or atomic
    #[arg(long, value_enum)]
    pub(crate) consistency: Option<ConsistencyOption>,
    /// File with QoS profiles in XML (DDS-XML 1.0) for all entities; other options go before it
    #[arg(long, value_name = "FILE")]
    pub(crate) qos_file: Option<PathBuf>,
    /// Profile in that file, as library::profile; without it, the one that is_default_qos
    #[arg(long, value_name = "NAME", requires = "qos_file")]
    pub(crate) qos_profile: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Verbosity {
    E,
    D,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DurabilityOption {
    V,
    L,
    T,
    P,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ConsistencyOption {
    Eventual,
    Atomic,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FinalState {
    U,
    D,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scope {
    I,
    T,
    G,
}

impl Options {
    pub(crate) const fn write_period(&self) -> Duration {
        Duration::from_millis(self.write_period_ms)
    }

    pub(crate) const fn read_period(&self) -> Duration {
        Duration::from_millis(self.read_period_ms)
    }

    /// Names of the topics: the first as given, the others numbered.
    pub(crate) fn topics(&self) -> Vec<String> {
        (0..self.num_topics).map(|index| numbered(&self.topic, index)).collect()
    }

    /// Colours of the instances.
    pub(crate) fn colors(&self) -> Vec<String> {
        let color = self.color.as_deref().unwrap_or("BLUE");
        (0..self.num_instances).map(|index| numbered(color, index)).collect()
    }

    /// The content filter of a subscriber and its parameters: an expression, or one colour.
    pub(crate) fn filter(&self) -> Option<(String, Vec<String>)> {
        match (&self.cft, &self.color) {
            _ if !self.subscribe => None,
            (Some(expression), _) => Some((expression.clone(), Vec::new())),
            (None, Some(color)) => {
                Some(("color = %0".to_owned(), vec![format!("'{}'", color.replace('\'', "''"))]))
            }
            (None, None) => None,
        }
    }
}

fn numbered(name: &str, index: u32) -> String {
    if index == 0 { name.to_owned() } else { format!("{name}{index}") }
}
