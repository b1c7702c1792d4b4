//! The destinations of several readers together, worked out once when one is matched or unmatched.

use crate::guid::{EntityId, Guid, GuidPrefix};
use crate::locator::Locator;

use super::proxy::ReaderProxy;
use super::target::Target;
use crate::writer::WriterLimits;
use crate::writer::flow::class::Class;

/// The part of a socket's buffer that one writer may fill: others write too, and the kernel counts more than octets.
const WINDOW_PART: u32 = 4;

/// The part of it that datagrams of an Ethernet frame fill with their octets; the rest is what the kernel counts beside.
const HOLD_PART: u32 = 2;

/// More on its way than this makes nothing faster.
const WINDOW_BYTES_MAX: u32 = 2 << 20;

/// All readers of one class, addressed at once.
#[derive(Debug, Default)]
pub(in crate::writer) struct Route {
    /// Each locator once.
    pub(in crate::writer) destinations: Vec<Locator>,
    /// The participant all readers live in; UNKNOWN when there are several.
    prefix: GuidPrefix,
    /// The only reader; UNKNOWN when there are several.
    reader: EntityId,
    /// Reliable readers.
    pub(in crate::writer) reliable: usize,
    /// Octets of large samples that may be on their way to them unacknowledged, whatever the time; `None`: a reader
    /// acknowledges nothing, or did not tell what its socket holds.
    pub(in crate::writer) window_bytes: Option<usize>,
    /// What the sockets of the reliable readers hold of short datagrams; `None`: one did not tell.
    pub(in crate::writer) hold_bytes: Option<usize>,
}

impl Route {
    pub(in crate::writer) fn target<'a>(
        &'a self,
        class: Class,
        source: Guid,
        limits: &WriterLimits,
    ) -> Target<'a> {
        Target {
            source,
            destinations: &self.destinations,
            prefix: &self.prefix,
            reader: self.reader,
            class,
            datagram_bytes_max: limits.datagram_bytes_max(class),
        }
    }

    /// The only reader.
    pub(in crate::writer) fn only(&self) -> Option<Guid> {
        (self.reader != EntityId::UNKNOWN).then(|| self.prefix.entity(self.reader))
    }

    pub(in crate::writer) fn rebuild<'r>(
        &mut self,
        mut members: impl Iterator<Item = &'r ReaderProxy> + Clone,
    ) {
        let first = members.clone().next().map_or(Guid::UNKNOWN, |reader| reader.guid);
        self.reader = if members.clone().count() == 1 { first.entity } else { EntityId::UNKNOWN };
        let all = members.clone();
        let together = members.all(|reader| reader.guid.prefix == first.prefix);
        self.prefix = if together { first.prefix } else { GuidPrefix::UNKNOWN };
        let holds = all.clone().map(|reader| if reader.reliable { reader.receive_bytes } else { 0 });
        let window = (holds.min().unwrap_or(0) / WINDOW_PART).min(WINDOW_BYTES_MAX);
        self.window_bytes = usize::try_from(window).ok().filter(|bytes| *bytes > 0);
        let holds = all.clone().filter(|reader| reader.reliable).map(|reader| reader.receive_bytes);
        let hold = (holds.min().unwrap_or(0) / HOLD_PART).min(WINDOW_BYTES_MAX);
        self.hold_bytes = usize::try_from(hold).ok().filter(|bytes| *bytes > 0);
        self.reliable = 0;
        self.destinations.clear();
        for reader in all {
            self.reliable += usize::from(reader.reliable);
            self.destinations.extend_from_slice(reader.destinations());
        }
        self.destinations.sort_unstable();
        self.destinations.dedup();
    }
}
