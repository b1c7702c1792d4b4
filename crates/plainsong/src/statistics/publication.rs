//! The writer of a participant's statistics: there while somebody reads them.

use std::sync::Arc;

use plainsong_proto::cdr::{self, Endianness, XcdrVersion};
use plainsong_proto::discovery::{DiscoveryError, LocalEndpoint};
use plainsong_proto::guid::EntityId;
use plainsong_proto::instance::{InstanceHandle, Key};
use plainsong_proto::outbox::Outbox;
use plainsong_proto::payload::{NewPayload, Payload};
use plainsong_proto::qos::{Durability, QosSet};
use plainsong_proto::time::{Duration, Now};
use plainsong_proto::type_support;
use plainsong_proto::writer::{ChangeKind, Writer, WriterConfig, WriterLimits};

use super::{ParticipantStatistics, STATISTICS_TOPIC};
use crate::runtime::{ParticipantSlot, STATISTICS_TIMER, WriterSlot};

/// A writer with a key (RTPS 2.5 Table 9.1), of a vendor's own kind: applications are not shown it.
const WRITER: u8 = 0x42;
/// Pause between two samples.
const PERIOD: Duration = Duration::from_millis(1_000);
/// So often nobody reads before the writer leaves: a reader may be known and not matched yet.
const IDLE_MAX: u32 = 5;

/// What a participant tells, while somebody reads it.
pub(crate) struct Publication {
    writer: Arc<WriterSlot>,
    idle: u32,
}

impl Publication {
    /// Begins to tell, at once.
    pub(crate) fn begin(
        slot: &ParticipantSlot,
        key: u32,
        limits: WriterLimits,
    ) -> Result<Self, DiscoveryError> {
        let guid = slot.prefix.entity(EntityId::with_kind(key, WRITER));
        let qos = QosSet::writer().keep_last(1).durability(Durability::TransientLocal);
        let (content_filter, group) = (None, None);
        let config = WriterConfig { guid, keyed: true, qos: qos.clone(), limits, content_filter, group };
        let writer = WriterSlot::new(Writer::new(config));
        slot.insert_writer(&writer);
        let ty = type_support::of::<ParticipantStatistics>();
        let endpoint = LocalEndpoint {
            guid,
            topic: STATISTICS_TOPIC.to_owned(),
            type_name: ty.name().to_owned(),
            keyed: true,
            qos,
            group: EntityId::UNKNOWN,
            content_filter: None,
            type_description: ty.description(),
        };
        let announced = slot.control(|control, now, out| {
            slot.shared().timer.set(slot.prefix.entity(STATISTICS_TIMER), now.mono);
            control.add_endpoint(now, endpoint, out)
        });
        if let Err(error) = announced {
            slot.remove_writer(writer.id);
            return Err(error);
        }
        Ok(Self { writer, idle: 0 })
    }

    /// Another reader is there.
    pub(crate) const fn hasten(&mut self) {
        self.idle = 0;
    }

    /// Sends what `count` gives; false when nobody has read for long.
    pub(crate) fn publish(
        &mut self,
        slot: &ParticipantSlot,
        now: Now,
        count: impl FnOnce() -> ParticipantStatistics,
        out: &mut Outbox,
    ) -> bool {
        if self.writer.look(|writer| writer.matched_readers().next().is_none()) {
            self.idle += 1;
            if self.idle > IDLE_MAX {
                return false;
            }
        } else {
            self.idle = 0;
            self.send(slot, now, &count(), out);
        }
        if let Some(next) = now.mono.after(PERIOD) {
            slot.shared().timer.set(slot.prefix.entity(STATISTICS_TIMER), next);
        }
        true
    }

    fn send(&self, slot: &ParticipantSlot, now: Now, statistics: &ParticipantStatistics, out: &mut Outbox) {
        let mut octets = Vec::new();
        if cdr::to_payload(statistics, XcdrVersion::Xcdr1, Endianness::Little, &mut octets).is_err() {
            return;
        }
        let mut payload = Payload::from_vec(octets);
        // A key of 16 octets is its own hash (RTPS 2.5 §9.6.4.8).
        let key = Key { hash: InstanceHandle(statistics.participant), fingerprint: None };
        self.writer.run(slot.shared(), now, out, |writer, now, out| {
            // KEEP_LAST always has room, but for what is too long to be sent at all.
            let payload = NewPayload::Payload(&mut payload);
            let _ = writer.write_from(now, ChangeKind::Alive, key, payload, now.wall, out);
            writer.flush(now, out);
        });
    }

    /// Nobody reads any more.
    pub(crate) fn end(&self, slot: &ParticipantSlot) {
        slot.control(|control, now, out| control.remove_endpoint(now, self.writer.guid, out));
        slot.remove_writer(self.writer.id);
    }
}
