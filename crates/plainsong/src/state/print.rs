//! A snapshot in words. Names that came from others are quoted and escaped.

use std::fmt::{self, Display, Formatter};

use plainsong_proto::guid::Guid;
use plainsong_proto::locator::Locator;
use plainsong_proto::qos::{HistoryKind, QosSet};

use super::{
    Bounded, DropCount, MatchedReaderState, MatchedWriterState, ParticipantState, ProcessData, ReaderState,
    RemoteEndpointState, RemoteParticipantState, RouteKind, RouteState, TopicState, UnhonouredPolicy,
    UsedTransport, WriterState,
};
use crate::base::words::counted;

impl Display for ParticipantState {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let participant = ParticipantName { guid: self.guid, name: &self.name, process: &self.process };
        writeln!(f, "{participant} in domain {}{}", self.domain_id, disabled(self.is_enabled))?;
        // What somebody looks for who misses samples comes first.
        for mismatch in &self.mismatches.items {
            // The cause and the cure of each stand in lines of their own.
            writeln!(f, "  {}", mismatch.to_string().replace('\n', "\n  "))?;
        }
        left_out(f, "  ", "mismatches", self.mismatches.left_out)?;
        for interface in &self.interfaces {
            writeln!(f, "  interface {interface}")?;
        }
        list(f, "  ", "participants", &self.remote_participants)?;
        list(f, "  ", "topics", &self.topics)?;
        for (kind, groups) in [("publishers", &self.publishers), ("subscribers", &self.subscribers)] {
            left_out(f, "  ", kind, groups.left_out)?;
        }
        list(f, "  ", "writers", &self.writers)?;
        list(f, "  ", "readers", &self.readers)?;
        list(f, "  ", "remote endpoints", &self.remote_endpoints)?;
        drops(f, "  discovery dropped", &self.discovery_drops)?;
        drops(f, "  the process dropped", &self.domain_drops)?;
        if self.copied_samples > 0 {
            writeln!(
                f,
                "  {} long samples were copied: a receiver keeps its share of shared memory; take less, or raise memory_pool_bytes_max",
                self.copied_samples
            )?;
        }
        Ok(())
    }
}

fn list<T: Display>(f: &mut Formatter<'_>, indent: &str, what: &str, all: &Bounded<T>) -> fmt::Result {
    for item in &all.items {
        // An item ends its last line itself.
        write!(f, "{indent}{item}")?;
    }
    left_out(f, indent, what, all.left_out)
}

fn left_out(f: &mut Formatter<'_>, indent: &str, what: &str, count: usize) -> fmt::Result {
    if count == 0 { Ok(()) } else { writeln!(f, "{indent}and {count} more {what}") }
}

fn drops(f: &mut Formatter<'_>, what: &str, counts: &[DropCount]) -> fmt::Result {
    if counts.is_empty() {
        return Ok(());
    }
    write!(f, "{what}:")?;
    for (index, DropCount { reason, count }) in counts.iter().enumerate() {
        write!(f, "{} {count} {reason:?}", if index == 0 { "" } else { "," })?;
    }
    writeln!(f)
}

const fn disabled(is_enabled: bool) -> &'static str {
    if is_enabled { "" } else { " (not enabled)" }
}

/// A participant, as its lines begin.
struct ParticipantName<'a> {
    guid: Guid,
    name: &'a str,
    process: &'a ProcessData,
}

impl Display for ParticipantName<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { guid, name, process } = self;
        if name.is_empty() {
            write!(f, "participant {guid} unnamed")?;
        } else {
            write!(f, "participant {guid} {name:?}")?;
        }
        let process = process.to_string();
        if process.is_empty() { Ok(()) } else { write!(f, ", {process}") }
    }
}

/// What people ask of a QoS first, and then all that is not as by default.
struct Brief<'a>(&'a QosSet);

impl Display for Brief<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let qos = self.0;
        write!(f, "{} {} {}", qos.reliability.kind, qos.durability, qos.history.kind)?;
        if qos.history.kind == HistoryKind::KeepLast {
            write!(f, " {}", qos.history.depth)?;
        }
        let default = QosSet::default();
        if qos.reliability.max_blocking_time != default.reliability.max_blocking_time {
            write!(f, ", max_blocking_time {}", qos.reliability.max_blocking_time)?;
        }
        let others = QosSet {
            reliability: default.reliability,
            durability: default.durability,
            history: default.history,
            ..qos.clone()
        };
        if others == default { Ok(()) } else { write!(f, ", {others}") }
    }
}

impl Display for TopicState {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { name, type_name, inconsistent, .. } = self;
        write!(f, "topic {name:?} of type {type_name:?}")?;
        if *inconsistent > 0 {
            write!(f, ", another type at {}", counted(u64::from(inconsistent.unsigned_abs()), "other"))?;
        }
        writeln!(f)
    }
}

/// The first line of an endpoint, and what is not honoured.
fn endpoint(
    f: &mut Formatter<'_>,
    (kind, guid): (&str, Guid),
    (topic, type_name): (&str, &str),
    (qos, is_enabled): (&QosSet, bool),
    unhonoured: &[UnhonouredPolicy],
) -> fmt::Result {
    let is_disabled = disabled(is_enabled);
    writeln!(f, "{kind} {guid} of topic {topic:?}, type {type_name:?}: {}{is_disabled}", Brief(qos))?;
    for UnhonouredPolicy { policy, what } in unhonoured {
        writeln!(f, "    {policy}: {what}")?;
    }
    Ok(())
}

fn places(locators: &[Locator]) -> String {
    let all: Vec<_> = locators.iter().map(ToString::to_string).collect();
    if all.is_empty() { "nowhere".to_owned() } else { all.join(" ") }
}

impl Display for WriterState {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let names = (&*self.topic, &*self.type_name);
        endpoint(f, ("writer", self.guid), names, (&self.qos, self.is_enabled), &self.unhonoured)?;
        for route in &self.routes {
            write!(f, "    {route}")?;
        }
        left_out(f, "    ", "readers", self.readers_left_out)?;
        let counters = &self.counters;
        write!(
            f,
            "    {} written, {} in the history, {}",
            counters.written,
            counters.in_history,
            counted(counters.datagrams, "datagram")
        )?;
        incompatible(f, "readers", self.incompatible_now, counters.incompatible)?;
        others(
            f,
            &[(counters.deadlines_missed, "deadlines missed"), (counters.liveliness_lost, "times not alive")],
        )?;
        drops(f, "    dropped", &self.drops)
    }
}

/// Endpoints of incompatible QoS: those known now, and all there ever were.
fn incompatible(f: &mut Formatter<'_>, whom: &str, now: usize, total: i32) -> fmt::Result {
    if now == 0 && total == 0 {
        return Ok(());
    }
    write!(f, ", {now} incompatible {whom} now and {total} in all")
}

/// Counters that are told when they are not 0.
fn others(f: &mut Formatter<'_>, counters: &[(i32, &str)]) -> fmt::Result {
    for (count, what) in counters.iter().filter(|(count, _)| *count > 0) {
        write!(f, ", {count} {what}")?;
    }
    writeln!(f)
}

impl Display for RouteState {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let way = match self.kind {
            RouteKind::Memory | RouteKind::SameHost => "this host",
            RouteKind::Remote => "another host",
        };
        writeln!(f, "to {way} at {}", places(&self.destinations))?;
        self.readers.iter().try_for_each(|reader| write!(f, "      {reader}"))
    }
}

impl Display for MatchedReaderState {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "reader {}", self.guid)?;
        if !self.is_reliable {
            return writeln!(f, ", best effort");
        }
        if self.behind > 0 {
            write!(f, ", {} behind", self.behind)?;
        }
        if let Some(silence) = self.silent_for {
            write!(f, ", has answered nothing for {silence}")?;
        }
        writeln!(f, "{}", if self.is_left_out { ", not waited for" } else { "" })
    }
}

impl Display for ReaderState {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let names = (&*self.topic, &*self.type_name);
        endpoint(f, ("reader", self.guid), names, (&self.qos, self.is_enabled), &self.unhonoured)?;
        list(f, "    ", "writers", &self.writers)?;
        let counters = &self.counters;
        write!(f, "    {} received, {} held, {} lost", counters.received, counters.held, counters.lost)?;
        incompatible(f, "writers", self.incompatible_now, counters.incompatible)?;
        others(
            f,
            &[
                (counters.rejected, "rejected"),
                (counters.not_alive, "writers not alive"),
                (counters.deadlines_missed, "deadlines missed"),
            ],
        )?;
        drops(f, "    dropped", &self.drops)
    }
}

impl Display for MatchedWriterState {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { guid, received, waiting, .. } = self;
        write!(f, "writer {guid} at {}, received up to {received}", places(&self.destinations))?;
        match (waiting, self.is_refused) {
            (0, _) => {}
            (_, false) => write!(f, ", {waiting} wait for those before them")?,
            (_, true) => write!(
                f,
                ", {waiting} wait for room: RESOURCE_LIMITS refuse more until samples are taken (KEEP_LAST: read)"
            )?,
        }
        writeln!(f, "{}", if self.is_reliable { "" } else { ", best effort" })
    }
}

impl Display for RemoteParticipantState {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let participant = ParticipantName { guid: self.guid, name: &self.name, process: &self.process };
        let product = self.product.as_deref().unwrap_or("unknown vendor");
        let from = self.address.map_or_else(|| "?".to_owned(), |address| address.to_string());
        write!(f, "{participant} ({product}) from {from}")?;
        if self.same_host {
            write!(f, ", this host by {}", self.transport)?;
            if let UsedTransport::Udp(reason) = self.transport
                && !reason.advice().is_empty()
            {
                write!(f, " ({})", reason.advice())?;
            }
        }
        writeln!(f, "{}", if self.is_proven { "" } else { ", has not answered yet" })
    }
}

impl Display for RemoteEndpointState {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { guid, topic, type_name, qos, .. } = self;
        let kind = if self.is_writer { "remote writer" } else { "remote reader" };
        write!(f, "{kind} {guid} of topic {topic:?}, type {type_name:?}: {}", Brief(qos))?;
        if let Some(filter) = &self.content_filter {
            write!(f, ", filter {:?} with {:?}", filter.expression, filter.parameters)?;
        }
        writeln!(f)
    }
}
