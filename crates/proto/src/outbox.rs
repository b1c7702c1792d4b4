//! Everything a call into a state machine asks of the driver: datagrams to send, decisions to carry
//! out, events to report. The driver owns the outbox and reuses it, so a steady state allocates nothing.

use std::ops::Range;

mod compose;
mod merge;

pub(crate) use compose::SURROUNDING_BYTES;
pub use compose::{
    DATAGRAM_OVERHEAD, DataFragHeader, DataHeader, MessageBuilder, data_frag_overhead, data_overhead,
};

use crate::guid::{EntityId, Guid, GuidPrefix};
use crate::locator::Locator;
use crate::matched::Command;
use crate::payload::Payload;
use crate::status::StatusKind;
use crate::time::Time;
use crate::tuning::memory::{GATHERED_BYTES_MAX, GATHERED_MAX};

/// Effects of one or more calls, in order.
#[derive(Debug, Default)]
pub struct Outbox {
    pub(crate) bytes: Vec<u8>,
    pub(crate) segments: Vec<Segment>,
    pub(crate) destinations: Vec<Locator>,
    pub(crate) transmits: Vec<Transmit>,
    pub(crate) open: OpenMessage,
    gathers: bool,
    /// Decisions of the control plane about user endpoints, in order.
    pub commands: Vec<Command>,
    /// What happened, for listeners, conditions and waiting callers.
    pub events: Vec<Event>,
}

/// A run of octets of one datagram.
#[derive(Clone, Debug)]
pub(crate) enum Segment {
    /// In the outbox's own header bytes.
    Bytes(Range<usize>),
    /// Shared octets of a sample.
    Payload(Payload),
    /// Those of the last DATA of a message, which go beside it.
    Attachment(Payload),
}

/// One datagram to one or more destinations.
#[derive(Clone, Debug)]
pub struct Transmit {
    pub(crate) segments: Range<usize>,
    pub(crate) destinations: Range<usize>,
    pub(crate) len: usize,
}

/// The datagram under construction at the end of an outbox.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenMessage {
    pub(crate) bytes_start: usize,
    pub(crate) segments_start: usize,
    pub(crate) destinations_start: usize,
    /// Where the run of bytes begins that is not yet a segment.
    pub(crate) run_start: usize,
    /// Octets that it has before anything is added.
    pub(crate) head_bytes: usize,
    pub(crate) len: usize,
    pub(crate) datagram_bytes_max: usize,
    pub(crate) info: Info,
}

/// What the INFO submessages tell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Info {
    pub(crate) source: InForce<GuidPrefix>,
    pub(crate) destination: InForce<GuidPrefix>,
    /// INVALID: none.
    pub(crate) timestamp: InForce<Time>,
    /// Source or destination may have changed.
    pub(crate) readdressed: bool,
}

/// What the receiver holds at this point of the message, and what it should hold next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InForce<T> {
    pub(crate) current: T,
    pub(crate) wanted: T,
}

impl<T: Copy + PartialEq> InForce<T> {
    pub(crate) fn change(&self) -> Option<T> {
        (self.current != self.wanted).then_some(self.wanted)
    }
}

impl Default for OpenMessage {
    fn default() -> Self {
        Self {
            bytes_start: 0,
            segments_start: 0,
            destinations_start: 0,
            run_start: 0,
            head_bytes: 0,
            len: 0,
            datagram_bytes_max: 0,
            info: Info::NONE,
        }
    }
}

impl Info {
    pub(crate) const NONE: Self = Self {
        source: InForce { current: GuidPrefix::UNKNOWN, wanted: GuidPrefix::UNKNOWN },
        destination: InForce { current: GuidPrefix::UNKNOWN, wanted: GuidPrefix::UNKNOWN },
        timestamp: InForce { current: Time::INVALID, wanted: Time::INVALID },
        readdressed: false,
    };

    /// A message begins with these. Each field is written where it is: made elsewhere and moved it took
    /// thrice as long.
    #[inline]
    pub(crate) const fn begin(&mut self, source: &GuidPrefix, destination: &GuidPrefix) {
        self.source.current = *source;
        self.source.wanted = *source;
        self.destination.current = *destination;
        self.destination.wanted = *destination;
        self.timestamp.current = Time::INVALID;
        self.timestamp.wanted = Time::INVALID;
        self.readdressed = false;
    }
}

/// Something the driver reports to the application or to a waiting caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A status of a local user endpoint changed.
    Status {
        /// The local endpoint.
        endpoint: Guid,
        /// Which status.
        kind: StatusKind,
    },
    /// Samples arrived that `read` or `take` would return.
    DataAvailable {
        /// The local reader.
        reader: EntityId,
    },
    /// A writer's history got room or was acknowledged, or a reader has all the history there was when
    /// its writer matched: blocked callers look again.
    Progress {
        /// The local endpoint.
        endpoint: EntityId,
    },
    /// A reader has its part of a coherent set of GROUP scope: the driver looks whether the readers of
    /// its subscriber have all the parts (`reader::GroupMember`).
    GroupPart {
        /// The local reader.
        reader: EntityId,
    },
    /// Many things were forgotten, as after a flood: the heap may have much to give back to the system.
    MemoryFreed,
    /// Samples of a writer do not decode as the type of a reader, for the first time:
    /// `reader::Reader::undecodable` tells why.
    Undecodable {
        /// The local reader.
        reader: EntityId,
        /// The writer.
        writer: Guid,
    },
    /// A remote participant appeared, changed or left.
    ParticipantChanged {
        /// Its GUID.
        participant: Guid,
        /// False when it left or its lease expired.
        alive: bool,
    },
    /// A participant announces itself, but answers nothing at the addresses that it announces: nothing is
    /// matched with it until it does. Told once.
    ParticipantUnanswering {
        /// Its GUID.
        participant: Guid,
    },
    /// An endpoint of a remote participant appeared, changed or left: `discovery::Participant::endpoint`
    /// tells what is known of it now.
    EndpointChanged {
        /// Its GUID.
        endpoint: Guid,
    },
    /// A writer and a reader of the same topic, at least one of them local, do not match or differ in
    /// another way than before: `discovery::Participant::mismatch` explains. Or they no longer do.
    MismatchChanged {
        /// The writer.
        writer: Guid,
        /// The reader.
        reader: Guid,
        /// False when they match now or one of them is gone.
        mismatched: bool,
    },
}

impl Outbox {
    /// An empty outbox.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets everything, keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        // Most calls leave nothing.
        if !(self.bytes.is_empty() && self.commands.is_empty() && self.events.is_empty()) {
            self.clear_all();
        }
    }

    /// Whether what follows is sent together, as long as it is short: see [`Self::is_gathering`].
    pub const fn gather(&mut self, gathers: bool) {
        self.gathers = gathers;
    }

    /// Whether its datagrams wait for those that follow, until they are cleared: control messages alone,
    /// which few datagrams hold.
    #[must_use]
    pub fn is_gathering(&self) -> bool {
        self.gathers
            && self.transmits.len() <= GATHERED_MAX
            && self.transmits.iter().all(|transmit| transmit.len <= GATHERED_BYTES_MAX)
    }

    fn clear_all(&mut self) {
        self.clear_transmits();
        self.commands.clear();
        self.events.clear();
    }

    /// Forgets the datagrams only: they are sent, the events are still to be told.
    pub fn clear_transmits(&mut self) {
        // No datagram is without octets of its own.
        if self.bytes.is_empty() {
            return;
        }
        self.bytes.clear();
        self.segments.clear();
        self.destinations.clear();
        self.transmits.clear();
    }

    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.transmits.is_empty() && self.commands.is_empty() && self.events.is_empty()
    }

    /// The datagrams, in the order in which they must leave.
    #[must_use]
    pub fn transmits(&self) -> &[Transmit] {
        &self.transmits
    }

    /// The octets of one datagram, as slices to gather. Only by memory go messages with an attachment, which
    /// is not among them.
    pub fn slices<'a>(&'a self, transmit: &Transmit) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.parts(transmit).0
    }

    /// The same, and the payload of the last DATA where that goes beside the message.
    pub fn parts<'a>(
        &'a self,
        transmit: &Transmit,
    ) -> (impl Iterator<Item = &'a [u8]> + use<'a>, Option<&'a Payload>) {
        let segments = self.segments.get(transmit.segments.clone()).unwrap_or(&[]);
        let (segments, attachment) = match segments {
            [segments @ .., Segment::Attachment(payload)] => (segments, Some(payload)),
            _ => (segments, None),
        };
        let slices = segments.iter().map(|segment| match segment {
            Segment::Bytes(range) => self.bytes.get(range.clone()).unwrap_or(&[]),
            Segment::Payload(payload) | Segment::Attachment(payload) => payload.as_slice(),
        });
        (slices, attachment)
    }

    /// Where one datagram goes.
    #[must_use]
    pub fn destinations(&self, transmit: &Transmit) -> &[Locator] {
        self.destinations.get(transmit.destinations.clone()).unwrap_or(&[])
    }

    /// The octets of one datagram in one piece: for tests and the simulator.
    #[must_use]
    pub fn datagram(&self, transmit: &Transmit) -> Vec<u8> {
        self.slices(transmit).flatten().copied().collect()
    }

    /// Moves the datagrams of `other` behind those here.
    pub fn append(&mut self, other: &mut Self) {
        if self.transmits.is_empty() && self.bytes.is_empty() {
            std::mem::swap(&mut self.bytes, &mut other.bytes);
            std::mem::swap(&mut self.segments, &mut other.segments);
            std::mem::swap(&mut self.destinations, &mut other.destinations);
            std::mem::swap(&mut self.transmits, &mut other.transmits);
        } else {
            let (bytes, segments) = (self.bytes.len(), self.segments.len());
            let destinations = self.destinations.len();
            let moved = |range: Range<usize>, by: usize| range.start + by..range.end + by;
            self.bytes.append(&mut other.bytes);
            self.segments.extend(other.segments.drain(..).map(|segment| match segment {
                Segment::Bytes(range) => Segment::Bytes(moved(range, bytes)),
                octets => octets,
            }));
            self.destinations.append(&mut other.destinations);
            self.transmits.extend(other.transmits.drain(..).map(|transmit| Transmit {
                segments: moved(transmit.segments, segments),
                destinations: moved(transmit.destinations, destinations),
                len: transmit.len,
            }));
        }
        other.clear_transmits();
    }

    /// Records a status change.
    pub fn status(&mut self, endpoint: Guid, kind: StatusKind) {
        self.events.push(Event::Status { endpoint, kind });
    }
}

impl Transmit {
    /// Length of the datagram in octets, without what is attached to it.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether the datagram is empty; never for one that was composed.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}
