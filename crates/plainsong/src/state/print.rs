//! A snapshot in words. Names that came from others are quoted and escaped.

use std::fmt::{self, Display, Formatter};

use plainsong_proto::guid::Guid;
use plainsong_proto::locator::Locator;
use plainsong_proto::qos::{HistoryKind, QosSet};

use super::{
    Bounded, DropCount, MatchedReaderState, MatchedWriterState, ParticipantState, ReaderState,
    RemoteEndpointState, RemoteParticipantState, RouteKind, RouteState, TopicState, UnhonouredPolicy,
    WriterState,
};

impl Display for ParticipantState {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { guid, name, domain_id, .. } = self;
        writeln!(f, "participant {guid} {name:?} in domain {domain_id}{}", disabled(self.is_enabled))?;
        for interface in &self.interfaces {
            writeln!(f, "  interface {interface}")?;
        }
        list(f, "  ", "topics", &self.topics)?;
        for (kind, groups) in [("publishers", &self.publishers), ("subscribers", &self.subscribers)] {
            left_out(f, "  ", kind, groups.left_out)?;
        }
        list(f, "  ", "writers", &self.writers)?;
        list(f, "  ", "readers", &self.readers)?;
        list(f, "  ", "participants", &self.remote_participants)?;
        list(f, "  ", "remote endpoints", &self.remote_endpoints)?;
        for mismatch in &self.mismatches.items {
            // The cause and the cure of each stand in lines of their own.
            writeln!(f, "  {}", mismatch.to_string().replace('\n', "\n  "))?;
        }
        left_out(f, "  ", "mismatches", self.mismatches.left_out)?;
        drops(f, "  discovery dropped", &self.discovery_drops)?;
        drops(f, "  the process dropped", &self.domain_drops)
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

/// What people ask of a QoS first.
struct Brief<'a>(&'a QosSet);

impl Display for Brief<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let qos = self.0;
        write!(f, "{} {} {}", qos.reliability.kind, qos.durability, qos.history.kind)?;
        if qos.history.kind == HistoryKind::KeepLast {
            write!(f, " {}", qos.history.depth)?;
        }
        for (name, period) in [("deadline", qos.deadline), ("lifespan", qos.lifespan)] {
            if !period.is_infinite() {
                write!(f, ", {name} {period}")?;
            }
        }
        if !qos.partition.is_empty() {
            const SHOWN_MAX: usize = 4;
            let shown: Vec<_> = qos.partition.iter().take(SHOWN_MAX).map(|it| format!("{it:?}")).collect();
            write!(f, ", partition {}", shown.join(" "))?;
            if qos.partition.len() > SHOWN_MAX {
                write!(f, " and {} more", qos.partition.len() - SHOWN_MAX)?;
            }
        }
        Ok(())
    }
}

impl Display for TopicState {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { name, type_name, inconsistent, .. } = self;
        write!(f, "topic {name:?} of type {type_name:?}")?;
        if *inconsistent > 0 {
            write!(f, ", {inconsistent} others have another type")?;
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
        if self.routes.iter().any(|route| route.kind != RouteKind::Remote) {
            writeln!(f, "    on this host: {}", self.delivery)?;
        }
        let counters = &self.counters;
        write!(
            f,
            "    {} written, {} in the history, {} datagrams",
            counters.written, counters.in_history, counters.datagrams
        )?;
        others(
            f,
            &[
                (counters.incompatible, "incompatible readers"),
                (counters.deadlines_missed, "deadlines missed"),
                (counters.liveliness_lost, "times not alive"),
            ],
        )?;
        drops(f, "    dropped", &self.drops)
    }
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
            RouteKind::SameHost => "this host",
            RouteKind::HostGroup => "a group of this host",
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
        write!(f, "    {} held, {} lost", counters.held, counters.lost)?;
        others(
            f,
            &[
                (counters.rejected, "rejected"),
                (counters.not_alive, "writers not alive"),
                (counters.incompatible, "incompatible writers"),
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
        if *waiting > 0 {
            write!(f, ", {waiting} wait for those before them")?;
        }
        writeln!(f, "{}", if self.is_reliable { "" } else { ", best effort" })
    }
}

impl Display for RemoteParticipantState {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { guid, name, .. } = self;
        let product = self.product.as_deref().unwrap_or("unknown vendor");
        let from = self.address.map_or_else(|| "?".to_owned(), |address| address.to_string());
        write!(f, "participant {guid} {name:?} ({product}) from {from}")?;
        if self.same_host {
            f.write_str(", this host")?;
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
