//! Settings of this process: one table of keys with their defaults, then `PLAINSONG_*` variables, then code.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use thiserror::Error;

/// Longest value of a variable, in octets.
const VALUE_BYTES_MAX: usize = 8_192;
/// Most items of a list: each peer without a port costs ten datagrams an announcement.
const LIST_MAX: usize = 64;
/// Longest name of a host (RFC 1035 §2.3.4) or an interface, in octets.
const NAME_BYTES_MAX: usize = 253;
/// Longest path of a directory, in octets.
const PATH_BYTES_MAX: usize = 4_096;
/// Longest name of a voter, in octets.
pub(crate) const VOTER_NAME_BYTES_MAX: usize = 16;
/// Most other users with whom memory is shared.
const USERS_MAX: usize = 16;
/// The largest number of a CPU.
const CPU_MAX: usize = 1023;
/// How much of a value an error shows, in characters.
const SHOWN_CHARS_MAX: usize = 64;

/// A host to announce to, besides multicast.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// A name or an address.
    pub host: String,
    /// The UDP port of its discovery socket; `None`: the well-known ports of the first ten participants.
    pub port: Option<u16>,
}

/// Whether a protocol or a transport is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Where the host offers it.
    Auto,
    /// Never.
    Off,
}

/// Settings of the participants of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Hosts to announce to, besides multicast.
    pub peers: Vec<Peer>,
    /// Names or addresses of the interfaces to use; loopback always is. `None`: all usable ones.
    pub interfaces: Option<Vec<String>>,
    /// Announce to and listen on multicast groups.
    pub multicast: bool,
    /// IPv6 besides IPv4.
    pub ipv6: Use,
    /// Others forget a participant after hearing nothing for so long.
    pub lease_duration_ms: u64,
    /// Time between announcements.
    pub announce_period_ms: u64,
    /// Asked of the kernel for each socket that receives.
    pub receive_buffer_bytes: usize,
    /// Asked of the kernel for each socket that sends.
    pub send_buffer_bytes: usize,
    /// Largest UDP payload sent to other hosts.
    pub datagram_bytes_max: usize,
    /// Largest UDP payload sent within this host.
    pub datagram_bytes_max_local: usize,
    /// Largest serialized sample a reader accepts and a writer writes: what no reader of these settings takes
    /// is refused where it is written. A reader of smaller ones acknowledges it and counts it as lost.
    pub sample_bytes_max: usize,
    /// Unacknowledged octets a reliable writer may have under way before it waits; half of them where all
    /// readers are on its host, a quarter for a single one of samples below 20 KiB, and less for many.
    pub unacknowledged_bytes_max: usize,
    /// Octets of small samples that leave together while an application writes without a pause; 0: each
    /// leaves alone.
    pub batch_bytes: usize,
    /// Threads that receive user data look for it without ever sleeping: a core for each family of addresses.
    pub busy_poll: bool,
    /// Threads that wait for answers look for them before they sleep, for 150 µs at most, where those that
    /// came of late had come within 50 µs, and for the next of a flow for 40 µs at most, where it comes
    /// within 25: not with `busy_poll`, nor with `receive_priority`.
    pub adaptive_poll: bool,
    /// CPUs for the threads that receive user data; empty: all of the process.
    pub receive_cpus: Vec<usize>,
    /// Real-time priority (SCHED_FIFO) of the threads that receive user data; 0: none.
    pub receive_priority: u8,
    /// Memory shared with processes of this host instead of UDP, for what applications write: on Linux.
    pub shared_memory: Use,
    /// What the process has written and another one of this host has not read yet, without long samples: a
    /// power of two.
    pub memory_ring_bytes: usize,
    /// What all samples in shared memory may take; those beyond are copied when they are sent.
    pub memory_pool_bytes_max: u64,
    /// Ask the kernel for huge pages for long samples.
    pub memory_huge_pages: bool,
    /// Users besides its own whose processes the process shares memory with: they read what it writes.
    pub memory_users: Vec<u32>,
    /// Participants tell others what they count, while these read it.
    pub statistics: bool,
    /// Where a participant keeps what must outlive it: an absolute path, of one participant of a domain.
    pub state_directory: Option<PathBuf>,
    /// Who votes in the groups of ATOMIC topics: 1, 3 or 5 names. Empty: the members themselves. All members
    /// of a group must have the same.
    pub voters: Vec<String>,
    /// As which of them the participants vote. That takes a `state_directory`.
    pub voter: Option<String>,
}

/// One setting: what it is called, means and may be.
pub struct Key {
    /// Name of the field; the variable is `PLAINSONG_` and this in capitals.
    pub name: &'static str,
    /// In the form a variable has.
    pub default: &'static str,
    /// What a value looks like, with its unit.
    pub allowed: &'static str,
    /// What it is for.
    pub doc: &'static str,
    set: fn(&mut Config, &str) -> Option<()>,
}

/// A variable has a value that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{variable} is {value:?}; it must be {allowed}")]
pub struct ConfigError {
    /// Name of the variable.
    pub variable: String,
    /// What it holds, or how that begins.
    pub value: String,
    /// What it may hold.
    pub allowed: &'static str,
}

/// Every setting.
pub const KEYS: &[Key] = &[
    Key {
        name: "peers",
        default: "",
        allowed: "a comma-separated list of at most 64 HOST or HOST:PORT, such as 10.0.0.5,robot:7410",
        doc: "hosts to announce to, besides multicast",
        set: |config, value| list(value, Peer::parse).map(|peers| config.peers = peers),
    },
    Key {
        name: "interfaces",
        default: "",
        allowed: "a comma-separated list of at most 64 interface names or addresses, such as eth0,10.0.0.1; \
                  empty for all",
        doc: "interfaces to use; loopback always is, `lo` alone keeps everything on this host",
        set: |config, value| {
            let is_name = |name: &str| name.len() <= NAME_BYTES_MAX && !name.contains(char::is_control);
            let names = list(value, |name| is_name(name).then(|| name.to_owned()))?;
            config.interfaces = Some(names).filter(|names| !names.is_empty());
            Some(())
        },
    },
    Key {
        name: "multicast",
        default: "on",
        allowed: "on or off",
        doc: "announce to and listen on multicast groups",
        set: |config, value| switch(value).map(|on| config.multicast = on),
    },
    Key {
        name: "ipv6",
        default: "auto",
        allowed: "auto or off",
        doc: "IPv6 besides IPv4",
        set: |config, value| use_of(value).map(|it| config.ipv6 = it),
    },
    Key {
        name: "lease_duration_ms",
        default: "20000",
        allowed: "a number of milliseconds from 100 to 86400000",
        doc: "others forget a participant after hearing nothing for so long",
        set: |config, value| number(value, 100, 86_400_000).map(|ms| config.lease_duration_ms = ms),
    },
    Key {
        name: "announce_period_ms",
        default: "3000",
        allowed: "a number of milliseconds from 10 to 3600000",
        doc: "time between announcements of a participant; well below its lease",
        set: |config, value| number(value, 10, 3_600_000).map(|ms| config.announce_period_ms = ms),
    },
    Key {
        name: "receive_buffer_bytes",
        default: "8388608",
        allowed: "a number of octets from 4096 to 1073741824",
        doc: "asked of the kernel for each socket that receives; it may grant less (net.core.rmem_max)",
        set: |config, value| number(value, 4_096, 1 << 30).map(|bytes| config.receive_buffer_bytes = bytes),
    },
    Key {
        name: "send_buffer_bytes",
        default: "4194304",
        allowed: "a number of octets from 4096 to 1073741824",
        doc: "asked of the kernel for each socket that sends; it may grant less (net.core.wmem_max)",
        set: |config, value| number(value, 4_096, 1 << 30).map(|bytes| config.send_buffer_bytes = bytes),
    },
    Key {
        name: "datagram_bytes_max",
        default: "65000",
        allowed: "a number of octets from 512 to 65000",
        doc: "largest UDP payload sent to other hosts, if their paths take as much: it is never beyond a path's MTU",
        set: |config, value| number(value, 512, 65_000).map(|bytes| config.datagram_bytes_max = bytes),
    },
    Key {
        name: "datagram_bytes_max_local",
        default: "65000",
        allowed: "a number of octets from 512 to 65000",
        doc: "largest UDP payload sent within this host",
        set: |config, value| number(value, 512, 65_000).map(|bytes| config.datagram_bytes_max_local = bytes),
    },
    Key {
        name: "sample_bytes_max",
        default: "67108864",
        allowed: "a number of octets from 1024 to 2147483647",
        doc: "largest serialized sample a reader accepts and a writer writes",
        set: |config, value| number(value, 1_024, 0x7fff_ffff).map(|bytes| config.sample_bytes_max = bytes),
    },
    Key {
        name: "unacknowledged_bytes_max",
        default: "2097152",
        allowed: "a number of octets from 65536 to 2147483647",
        doc: "unacknowledged octets a reliable writer may have under way before it waits; half of them where all readers are on \
              its host, a quarter for a single one of samples below 20 KiB, and less for many; each sample counts for 192 octets more than it has",
        set: |config, value| {
            number(value, 65_536, 0x7fff_ffff).map(|bytes| config.unacknowledged_bytes_max = bytes)
        },
    },
    Key {
        name: "batch_bytes",
        default: "65000",
        allowed: "a number of octets from 0 to 65000",
        doc: "octets of small samples that leave together while an application writes without a pause",
        set: |config, value| number(value, 0, 65_000).map(|bytes| config.batch_bytes = bytes),
    },
    Key {
        name: "busy_poll",
        default: "off",
        allowed: "on or off",
        doc: "receive user data without ever sleeping: shorter round trips for a core of its own",
        set: |config, value| switch(value).map(|on| config.busy_poll = on),
    },
    Key {
        name: "adaptive_poll",
        default: "on",
        allowed: "on or off",
        doc: "where the next datagram comes within microseconds, as between two that answer each other and in fast flows, look for it \
              before sleeping: shorter round trips, more samples, for up to a core of each side while that lasts",
        set: |config, value| switch(value).map(|on| config.adaptive_poll = on),
    },
    Key {
        name: "receive_cpus",
        default: "",
        allowed: "a comma-separated list of at most 64 numbers of CPUs; empty for all",
        doc: "CPUs for the threads that receive user data",
        set: |config, value| {
            list(value, |cpu| number(cpu, 0, CPU_MAX)).map(|cpus| config.receive_cpus = cpus)
        },
    },
    Key {
        name: "receive_priority",
        default: "0",
        allowed: "a number from 0 to 99",
        doc: "real-time priority (SCHED_FIFO) of the threads that receive user data; 0 for none. With busy_poll, \
              nothing else runs on their CPUs",
        set: |config, value| number(value, 0, 99).map(|priority| config.receive_priority = priority),
    },
    Key {
        name: "shared_memory",
        default: "auto",
        allowed: "auto or off",
        doc: "memory shared with processes of this host instead of UDP, for what applications write: on Linux",
        set: |config, value| use_of(value).map(|it| config.shared_memory = it),
    },
    Key {
        name: "memory_ring_bytes",
        default: "262144",
        allowed: "a number of octets that is a power of two from 65536 to 67108864",
        doc: "what is on its way to one process in shared memory, without long samples",
        set: |config, value| {
            let bytes = number(value, 1 << 16, 1 << 26).filter(|bytes: &usize| bytes.is_power_of_two())?;
            config.memory_ring_bytes = bytes;
            Some(())
        },
    },
    Key {
        name: "memory_pool_bytes_max",
        default: "268435456",
        allowed: "a number of octets from 0 to 1099511627776",
        doc: "what all long samples in shared memory may take; those beyond are copied when they are sent",
        set: |config, value| number(value, 0, 1 << 40).map(|bytes| config.memory_pool_bytes_max = bytes),
    },
    Key {
        name: "memory_huge_pages",
        default: "off",
        allowed: "on or off",
        doc: "ask the kernel for huge pages for long samples in shared memory",
        set: |config, value| switch(value).map(|on| config.memory_huge_pages = on),
    },
    Key {
        name: "memory_users",
        default: "",
        allowed: "a comma-separated list of at most 16 numbers of users, such as 1000,1001",
        doc: "users besides its own whose processes the process shares memory with: they read what it writes",
        set: |config, value| {
            let users = list(value, |user| number(user, 0, u32::MAX))?;
            config.memory_users = Some(users).filter(|users| users.len() <= USERS_MAX)?;
            Some(())
        },
    },
    Key {
        name: "statistics",
        default: "on",
        allowed: "on or off",
        doc: "tell other participants what is counted, once a second while one of them reads it, as plainsong top does",
        set: |config, value| switch(value).map(|on| config.statistics = on),
    },
    Key {
        name: "state_directory",
        default: "",
        allowed: "an absolute path of at most 4096 octets; empty for none",
        doc: "where a participant keeps what must outlive it: one participant of a domain has a directory",
        set: |config, value| {
            config.state_directory = None;
            if !value.is_empty() {
                let fits = value.len() <= PATH_BYTES_MAX && !value.contains(char::is_control);
                config.state_directory = Some(PathBuf::from(value)).filter(|path| fits && path.is_absolute());
                config.state_directory.as_ref()?;
            }
            Some(())
        },
    },
    Key {
        name: "voters",
        default: "",
        allowed: "1, 3 or 5 different names, separated by commas, of at most 16 letters, digits, `-`, `_` and `.`, \
                  such as a,b,c; empty for the members themselves",
        doc: "who votes in the groups of ATOMIC topics: the same for all members of a group",
        set: |config, value| {
            let voters = list(value, voter_name)?;
            let are_different =
                voters.iter().enumerate().all(|(place, name)| !voters[..place].contains(name));
            config.voters = Some(voters).filter(|it| are_different && matches!(it.len(), 0 | 1 | 3 | 5))?;
            Some(())
        },
    },
    Key {
        name: "voter",
        default: "",
        allowed: "one of the names of `voters`; empty for none",
        doc: "as which of the voters the participants vote; they need a state directory",
        set: |config, value| {
            config.voter = if value.is_empty() { None } else { Some(voter_name(value)?) };
            Some(())
        },
    },
];

impl Key {
    /// The environment variable that sets it.
    #[must_use]
    pub fn variable(&self) -> String {
        format!("PLAINSONG_{}", self.name.to_ascii_uppercase())
    }
}

impl Default for Config {
    fn default() -> Self {
        let mut config = Self {
            peers: Vec::new(),
            interfaces: None,
            multicast: false,
            ipv6: Use::Off,
            lease_duration_ms: 0,
            announce_period_ms: 0,
            receive_buffer_bytes: 0,
            send_buffer_bytes: 0,
            datagram_bytes_max: 0,
            datagram_bytes_max_local: 0,
            sample_bytes_max: 0,
            unacknowledged_bytes_max: 0,
            batch_bytes: 0,
            busy_poll: false,
            adaptive_poll: false,
            receive_cpus: Vec::new(),
            receive_priority: 0,
            shared_memory: Use::Off,
            memory_ring_bytes: 0,
            memory_pool_bytes_max: 0,
            memory_huge_pages: false,
            memory_users: Vec::new(),
            statistics: false,
            state_directory: None,
            voters: Vec::new(),
            voter: None,
        };
        for key in KEYS {
            let set = (key.set)(&mut config, key.default);
            debug_assert!(set.is_some(), "the default of {} is not allowed", key.name);
        }
        config
    }
}

impl Config {
    /// The defaults, changed by the variables that are set.
    ///
    /// # Errors
    /// [`ConfigError`] for the first variable whose value cannot be used.
    pub fn from_env() -> Result<Self, ConfigError> {
        Self::from_variables(|name| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned()))
    }

    /// Like [`Config::from_env`], with the variables looked up by `variable`.
    ///
    /// # Errors
    /// [`ConfigError`] for the first variable whose value cannot be used.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let mut config = Self::default();
        for key in KEYS {
            let name = key.variable();
            let Some(value) = variable(&name) else { continue };
            let fits = value.len() <= VALUE_BYTES_MAX;
            if !fits || (key.set)(&mut config, value.trim()).is_none() {
                let shown = value.chars().take(SHOWN_CHARS_MAX).collect();
                return Err(ConfigError { variable: name, value: shown, allowed: key.allowed });
            }
        }
        Ok(config)
    }

    /// Whether threads that receive may look before they sleep: where others of the host run if they have to.
    pub(crate) const fn may_busy_poll(&self) -> bool {
        self.adaptive_poll && !self.busy_poll && self.receive_priority == 0
    }

    /// Whether threads of the application may receive. Where a receive thread was given a place, a priority
    /// or a core of its own, that is where data is received.
    pub(crate) const fn may_hand_over(&self) -> bool {
        !self.busy_poll && self.receive_cpus.is_empty() && self.receive_priority == 0
    }

    /// Whether nothing may leave this host: loopback is the only interface asked for.
    pub(crate) fn loopback_only(&self) -> bool {
        let is_loopback = |name: &String| name == "lo" || name == "127.0.0.1" || name == "::1";
        self.interfaces.as_ref().is_some_and(|names| names.iter().all(is_loopback))
    }
}

impl Peer {
    /// `host`, `host:port`, `[v6]:port` or a bare IPv6 address; `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let whole = |host: &str| Some(Self { host: host.to_owned(), port: None });
        if text.parse::<std::net::Ipv6Addr>().is_ok() {
            return whole(text);
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) => (host, Some(port.parse().ok().filter(|port| *port != 0)?)),
            None => (text, None),
        };
        let host = match host.strip_prefix('[') {
            Some(rest) => {
                rest.strip_suffix(']').filter(|address| address.parse::<std::net::Ipv6Addr>().is_ok())?
            }
            None => host,
        };
        let is_name = |octet: u8| octet.is_ascii_alphanumeric() || matches!(octet, b'.' | b'-' | b'_' | b':');
        let fits = (1..=NAME_BYTES_MAX).contains(&host.len());
        (fits && host.bytes().all(is_name)).then(|| Self { host: host.to_owned(), port })
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Some(port) if self.host.contains(':') => write!(f, "[{}]:{port}", self.host),
            Some(port) => write!(f, "{}:{port}", self.host),
            None => f.write_str(&self.host),
        }
    }
}

fn list<T>(text: &str, item: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
    let parts = || text.split(',').map(str::trim).filter(|part| !part.is_empty());
    if parts().nth(LIST_MAX).is_some() {
        return None;
    }
    parts().map(item).collect()
}

fn voter_name(text: &str) -> Option<String> {
    is_voter_name(text).then(|| text.to_owned())
}

pub(crate) fn is_voter_name(text: &str) -> bool {
    let is_name = |octet: u8| octet.is_ascii_alphanumeric() || matches!(octet, b'.' | b'-' | b'_');
    (1..=VOTER_NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_name)
}

/// By how a test that kills processes has the stores of their groups lose what was not synced.
#[cfg(feature = "power-loss")]
pub(crate) fn power_loss_seed() -> Option<u64> {
    std::env::var("PLAINSONG_POWER_LOSS").ok()?.parse().ok()
}

fn switch(text: &str) -> Option<bool> {
    match text {
        "on" | "true" | "1" => Some(true),
        "off" | "false" | "0" => Some(false),
        _ => None,
    }
}

fn use_of(text: &str) -> Option<Use> {
    match text {
        "auto" => Some(Use::Auto),
        "off" => Some(Use::Off),
        _ => None,
    }
}

fn number<T: FromStr + PartialOrd>(text: &str, min: T, max: T) -> Option<T> {
    text.parse().ok().filter(|value| *value >= min && *value <= max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(variable: &str, value: &str) -> Result<Config, ConfigError> {
        Config::from_variables(|name| (name == variable).then(|| value.to_owned()))
    }

    #[test]
    fn every_default_is_allowed() {
        for key in KEYS {
            assert!((key.set)(&mut Config::default(), key.default).is_some(), "{}", key.name);
        }
        assert!(Config::default().multicast && Config::default().lease_duration_ms == 20_000);
    }

    #[test]
    fn peers_are_names_or_addresses_with_or_without_port() {
        let config = with("PLAINSONG_PEERS", "10.0.0.5, robot:7410,[fe80::1]:7412,::1").unwrap();
        let told: Vec<_> = config.peers.iter().map(ToString::to_string).collect();
        assert_eq!(told, ["10.0.0.5", "robot:7410", "[fe80::1]:7412", "::1"]);
        for bad in ["robot:0", "robot:99999", "a b", ":7410", "[::1", "[robot]:1"] {
            assert!(with("PLAINSONG_PEERS", bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_bad_value_names_the_variable_and_what_is_allowed() {
        let error = with("PLAINSONG_MULTICAST", "maybe").unwrap_err();
        assert_eq!(error.to_string(), "PLAINSONG_MULTICAST is \"maybe\"; it must be on or off");
        assert!(with("PLAINSONG_LEASE_DURATION_MS", "5").is_err());
        assert_eq!(with("PLAINSONG_LEASE_DURATION_MS", "500").unwrap().lease_duration_ms, 500);
    }

    #[test]
    fn receive_threads_are_placed_and_hurried_by_variables() {
        assert_eq!(with("PLAINSONG_RECEIVE_CPUS", "1, 3").unwrap().receive_cpus, [1, 3]);
        assert_eq!(with("PLAINSONG_RECEIVE_PRIORITY", "50").unwrap().receive_priority, 50);
        assert!(with("PLAINSONG_BUSY_POLL", "on").unwrap().busy_poll);
        assert!(Config::default().adaptive_poll);
        assert!(!with("PLAINSONG_ADAPTIVE_POLL", "off").unwrap().adaptive_poll);
        for (variable, bad) in [("CPUS", "1-3"), ("CPUS", "1024"), ("PRIORITY", "100"), ("PRIORITY", "-1")] {
            assert!(with(&format!("PLAINSONG_RECEIVE_{variable}"), bad).is_err(), "{variable} {bad}");
        }
    }

    #[test]
    fn shared_memory_is_used_unless_a_variable_says_otherwise_and_its_sizes_have_limits() {
        let defaults = Config::default();
        assert_eq!((defaults.shared_memory, defaults.memory_ring_bytes), (Use::Auto, 256 << 10));
        assert_eq!((defaults.memory_pool_bytes_max, defaults.memory_huge_pages), (256 << 20, false));
        assert_eq!(with("PLAINSONG_SHARED_MEMORY", "off").unwrap().shared_memory, Use::Off);
        assert_eq!(with("PLAINSONG_MEMORY_RING_BYTES", "65536").unwrap().memory_ring_bytes, 65_536);
        assert_eq!(with("PLAINSONG_MEMORY_POOL_BYTES_MAX", "0").unwrap().memory_pool_bytes_max, 0);
        assert!(with("PLAINSONG_MEMORY_HUGE_PAGES", "on").unwrap().memory_huge_pages);
        assert_eq!(with("PLAINSONG_MEMORY_USERS", "0, 1000").unwrap().memory_users, [0, 1000]);
        let users = |count| (0..count).map(|user: usize| user.to_string()).collect::<Vec<_>>().join(",");
        assert_eq!(with("PLAINSONG_MEMORY_USERS", &users(16)).unwrap().memory_users.len(), 16);
        for (variable, bad) in [
            ("SHARED_MEMORY", "on"),
            ("MEMORY_RING_BYTES", "65537"),
            ("MEMORY_RING_BYTES", "32768"),
            ("MEMORY_RING_BYTES", "134217728"),
            ("MEMORY_POOL_BYTES_MAX", "1099511627777"),
            ("MEMORY_USERS", "root"),
            ("MEMORY_USERS", "4294967296"),
            ("MEMORY_USERS", &users(17)),
        ] {
            assert!(with(&format!("PLAINSONG_{variable}"), bad).is_err(), "{variable} {bad}");
        }
    }

    #[test]
    fn voters_are_one_three_or_five_names_and_state_is_kept_at_an_absolute_path() {
        assert_eq!(with("PLAINSONG_VOTERS", "a, b,c").unwrap().voters, ["a", "b", "c"]);
        assert_eq!(with("PLAINSONG_VOTER", "robot-7.left_arm").unwrap().voter.unwrap(), "robot-7.left_arm");
        let absolute = std::env::temp_dir();
        let config = with("PLAINSONG_STATE_DIRECTORY", &absolute.to_string_lossy()).unwrap();
        assert_eq!(config.state_directory, Some(absolute));
        for (variable, bad) in [
            ("VOTERS", "a,b"),
            ("VOTERS", "a,b,a"),
            ("VOTERS", "a,b,c,d,e,f,g"),
            ("VOTERS", "a/b"),
            ("VOTER", "a,b"),
            ("VOTER", "more-than-16-octets"),
            ("STATE_DIRECTORY", "state"),
        ] {
            assert!(with(&format!("PLAINSONG_{variable}"), bad).is_err(), "{variable} {bad}");
        }
    }

    #[test]
    fn r6_hostile_values_of_variables_are_refused_with_a_short_word() {
        let hostile = [
            "\u{0}".to_owned(),
            "lo\u{0}".to_owned(),
            "a\u{1b}[2J".to_owned(),
            "a".repeat(NAME_BYTES_MAX + 1),
            "9".repeat(4 << 20),
            vec!["peer"; 5_000].join(","),
            vec!["a"; LIST_MAX + 1].join(","),
            ",".repeat(1 << 20),
        ];
        for key in KEYS {
            for value in &hostile {
                let error = with(&key.variable(), value).expect_err(key.name);
                assert_eq!(error.variable, key.variable());
                assert!(error.to_string().len() < 1_000, "{}", key.name);
            }
        }
    }

    #[test]
    fn r6_lists_of_names_have_a_limit() {
        let longest = vec!["a"; LIST_MAX].join(",");
        assert_eq!(with("PLAINSONG_PEERS", &longest).unwrap().peers.len(), LIST_MAX);
        assert_eq!(with("PLAINSONG_INTERFACES", &longest).unwrap().interfaces.unwrap().len(), LIST_MAX);
        assert!(with("PLAINSONG_INTERFACES", "Ethernet 2,en0").is_ok());
        assert_eq!(Peer::parse(&"a".repeat(NAME_BYTES_MAX + 1)), None);
    }

    #[test]
    fn loopback_alone_keeps_everything_on_this_host() {
        assert!(with("PLAINSONG_INTERFACES", "lo").unwrap().loopback_only());
        assert!(!with("PLAINSONG_INTERFACES", "lo,eth0").unwrap().loopback_only());
        assert!(!Config::default().loopback_only());
    }
}
