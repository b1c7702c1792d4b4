//! The endpoints of a group: the lane of its member and the reader of those of others, and the writer and
//! reader of messages. Their kinds are a vendor's own, so that nobody else takes them for his.

use std::sync::Arc;

use plainsong_proto::atomic::codec::{self, BodyCodec};
use plainsong_proto::atomic::entry::{Entry, HEAD_BYTES, Head};
use plainsong_proto::atomic::message::Message;
use plainsong_proto::atomic::{Destination, EntryHeader, MemberId, VoterId};
use plainsong_proto::discovery::LocalEndpoint;
use plainsong_proto::guid::{EntityId, GuidPrefix};
use plainsong_proto::instance::{InstanceHandle, Key, KeyFunction};
use plainsong_proto::outbox::Outbox;
use plainsong_proto::payload::{COPIED_BYTES_MAX, NewPayload, PayloadPool, SHORT_BYTES_MAX};
use plainsong_proto::qos::{Durability, History, HistoryKind, QosSet};
use plainsong_proto::reader::{CachedSample, CachedSamples, Reader, ReaderConfig, ReaderLimits};
use plainsong_proto::sample_info::Selector;
use plainsong_proto::seq::SequenceNumber;
use plainsong_proto::time::Now;
use plainsong_proto::writer::{ChangeKind, WriteError, Writer, WriterConfig, WriterLimits};

use super::dropped::AtomicDrop;
use super::name::Name;
use super::voting::{LANE, MESSAGES, Voting};
use crate::runtime::{ParticipantSlot, ReaderSlot, WriterSlot};

/// Kinds of entities, without keys (RTPS 2.5 Table 9.1), of a vendor's own.
const WRITER: u8 = 0x43;
const READER: u8 = 0x44;
/// Readers of members hold everything until it is taken.
const KEPT_ALL: History = History { kind: HistoryKind::KeepAll, depth: 1 };
/// The group itself.
pub(super) const GROUP: u8 = 0x40;

pub(super) const NO_KEY: Key = Key { hash: InstanceHandle::NIL, fingerprint: None };

/// One direction of the traffic of a group: its writer, and the reader of what others write.
pub(super) struct Channel {
    pub(super) writer: Arc<WriterSlot>,
    pub(super) reader: Arc<ReaderSlot>,
    type_name: String,
}

impl Channel {
    pub(super) fn lane(
        prefix: GuidPrefix,
        next_key: impl FnMut() -> u32,
        limits: (WriterLimits, ReaderLimits),
        voting: &Voting,
    ) -> Self {
        // What a member writes is limited by the group; what everybody has is forgotten as that says.
        let history = History { kind: HistoryKind::KeepLast, depth: i32::MAX };
        let qos = QosSet::writer().durability(Durability::TransientLocal);
        let type_name = voting.type_name(LANE);
        Self::new(prefix, next_key, limits, type_name, QosSet { history, ..qos }, KEPT_ALL)
    }

    pub(super) fn messages(
        prefix: GuidPrefix,
        next_key: impl FnMut() -> u32,
        limits: (WriterLimits, ReaderLimits),
        messages_max: i32,
        voting: &Voting,
    ) -> Self {
        let history = History { kind: HistoryKind::KeepLast, depth: messages_max };
        let qos = QosSet { history, ..QosSet::writer().best_effort() };
        Self::new(prefix, next_key, limits, voting.type_name(MESSAGES), qos, KEPT_ALL)
    }

    /// Messages for who is no member, and may look at times only: the last are kept.
    pub(super) fn observed(
        prefix: GuidPrefix,
        next_key: impl FnMut() -> u32,
        limits: (WriterLimits, ReaderLimits),
        messages_max: i32,
        type_name: &str,
    ) -> Self {
        let history = History { kind: HistoryKind::KeepLast, depth: messages_max };
        let qos = QosSet { history, ..QosSet::writer().best_effort() };
        Self::new(prefix, next_key, limits, type_name.to_owned(), qos, history)
    }

    fn new(
        prefix: GuidPrefix,
        mut next_key: impl FnMut() -> u32,
        (limits, reader_limits): (WriterLimits, ReaderLimits),
        type_name: String,
        qos: QosSet,
        history: History,
    ) -> Self {
        // With one key they are not matched with one another.
        let key = next_key();
        let guid = prefix.entity(EntityId::with_kind(key, WRITER));
        let (content_filter, group) = (None, None);
        let writer =
            Writer::new(WriterConfig { guid, keyed: false, qos: qos.clone(), limits, content_filter, group });
        let qos = QosSet { history, ..qos };
        let guid = prefix.entity(EntityId::with_kind(key, READER));
        let key = KeyFunction::new(|_, _| Ok(NO_KEY));
        let reader = Reader::new(ReaderConfig { guid, keyed: false, qos, limits: reader_limits, key });
        Self { writer: WriterSlot::new(writer), reader: ReaderSlot::new(reader), type_name }
    }

    /// Announces both.
    pub(super) fn announce(
        &self,
        slot: &ParticipantSlot,
        name: &Name,
    ) -> Result<(), plainsong_proto::discovery::DiscoveryError> {
        slot.insert_reader(&self.reader);
        slot.insert_writer(&self.writer);
        let endpoint = |guid, qos| LocalEndpoint {
            guid,
            topic: name.of_endpoints(),
            type_name: self.type_name.clone(),
            keyed: false,
            qos,
            group: EntityId::UNKNOWN,
            content_filter: None,
            type_description: None,
        };
        let reader = endpoint(self.reader.guid, self.reader.look(|reader| reader.qos().clone()));
        let writer = endpoint(self.writer.guid, self.writer.look(|writer| writer.qos().clone()));
        slot.control(|control, now, out| {
            control.add_endpoint(now, reader, out)?;
            control.add_endpoint(now, writer, out)
        })
    }

    pub(super) fn withdraw(&self, slot: &ParticipantSlot) {
        slot.control(|control, now, out| {
            control.remove_endpoint(now, self.writer.guid, out);
            control.remove_endpoint(now, self.reader.guid, out);
        });
        slot.remove_writer(self.writer.id);
        slot.remove_reader(self.reader.id);
    }

    /// Everything that has come. The caller reports the events.
    pub(super) fn take(
        &self,
        slot: &ParticipantSlot,
        now: Now,
        samples: &mut CachedSamples,
        out: &mut Outbox,
    ) {
        self.reader.run(slot.shared(), now, out, |reader, now, _| reader.take(now, &Selector::ALL, samples));
    }
}

/// Sends an entry on the lane: the numbers of its samples there end with this.
pub(super) fn send_entry(
    writer: &mut Writer,
    pool: &PayloadPool,
    now: Now,
    (nonce, header, is_awaited): (u64, EntryHeader, bool),
    entry: &Entry,
    out: &mut Outbox,
) -> Result<SequenceNumber, WriteError> {
    let mut send = |payload: NewPayload<'_>| {
        writer.write_from(now, ChangeKind::Alive, NO_KEY, payload, entry.timestamp, out)
    };
    let is_apart = entry.payload.len() > COPIED_BYTES_MAX;
    let head = Head::encode(nonce, header, entry, (is_apart, is_awaited));
    if is_apart {
        send(NewPayload::Octets(&head))?;
        let number = send(NewPayload::Payload(&mut entry.payload.clone()));
        // Two in a row are no flow of which the end waits for more.
        writer.flush(now, out);
        return number;
    }
    let bytes = HEAD_BYTES + entry.payload.len();
    if bytes <= SHORT_BYTES_MAX {
        let mut octets = [0; SHORT_BYTES_MAX];
        let parts = head.iter().chain(entry.payload.as_slice());
        octets.iter_mut().zip(parts).for_each(|(place, octet)| *place = *octet);
        return send(NewPayload::Octets(octets.get(..bytes).unwrap_or(&[])));
    }
    let mut buffer = pool.take();
    buffer.bytes_mut().extend_from_slice(&head);
    buffer.bytes_mut().extend_from_slice(entry.payload.as_slice());
    send(NewPayload::Payload(&mut buffer.freeze()))
}

/// Sends a message, at once: whether its writer takes it.
pub(super) fn send_message(
    writer: &mut Writer,
    pool: &PayloadPool,
    now: Now,
    (to, message): (Destination, &Message<Arc<Entry>>),
    out: &mut Outbox,
) -> bool {
    let mut buffer = pool.take();
    let octets = buffer.bytes_mut();
    match to {
        Destination::Group => octets.push(TO_ALL),
        Destination::Member(MemberId { prefix, nonce }) => {
            octets.push(TO_MEMBER);
            octets.extend(prefix.0);
            octets.extend(nonce.to_le_bytes());
        }
        Destination::Voter(VoterId(id)) => {
            octets.push(TO_VOTER);
            octets.extend(id);
        }
    }
    codec::encode(message, octets);
    // Samples travel in words of four octets; so many of the last are none of the message.
    let padding = octets.len().next_multiple_of(4) - octets.len();
    octets.extend_from_slice(&[0; 3][..padding]);
    if let Some(first) = octets.first_mut() {
        *first |= (padding as u8) << PADDING_SHIFT;
    }
    let mut payload = buffer.freeze();
    let written =
        writer.write_from(now, ChangeKind::Alive, NO_KEY, NewPayload::Payload(&mut payload), now.wall, out);
    writer.flush(now, out);
    written.is_ok()
}

const TO_ALL: u8 = 0;
const TO_MEMBER: u8 = 1;
const TO_VOTER: u8 = 2;
const PADDING_SHIFT: u32 = 4;

/// Who takes messages of a group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Addressee {
    pub(super) member: Option<MemberId>,
    pub(super) voter: Option<VoterId>,
    /// Voters outlive their participants: their names say nothing of those.
    pub(super) has_lasting_voters: bool,
}

/// The message of a sample, if it is for this member or voter.
///
/// # Errors
/// It is none, or not from whom it says.
pub(super) fn message(
    sample: &CachedSample,
    from: GuidPrefix,
    own: Addressee,
) -> Result<Option<Message<Arc<Entry>>>, AtomicDrop> {
    let (first, octets) = unpad(sample.payload.as_slice()).ok_or(AtomicDrop::Undecodable)?;
    let Some(octets) = addressed(first, octets, own).ok_or(AtomicDrop::Undecodable)? else { return Ok(None) };
    let message = codec::decode::<Arc<Entry>>(octets).map_err(|_| AtomicDrop::Undecodable)?;
    let is_named = own.has_lasting_voters && matches!(message, Message::Decider { .. });
    let is_its_own = is_named || sender(&message).is_none_or(|sender| sender == from.0);
    if is_its_own { Ok(Some(message)) } else { Err(AtomicDrop::Foreign) }
}

fn unpad(octets: &[u8]) -> Option<(u8, &[u8])> {
    let (&first, rest) = octets.split_first()?;
    let rest = rest.get(..rest.len().checked_sub(usize::from(first >> PADDING_SHIFT))?)?;
    Some((first & ((1 << PADDING_SHIFT) - 1), rest))
}

/// The octets of a message, `Some(None)` of one for somebody else.
fn addressed(first: u8, rest: &[u8], own: Addressee) -> Option<Option<&[u8]>> {
    Some(match first {
        TO_ALL => Some(rest),
        TO_MEMBER => {
            let (prefix, rest) = rest.split_first_chunk()?;
            let (nonce, rest) = rest.split_first_chunk()?;
            let to = MemberId { prefix: GuidPrefix(*prefix), nonce: u64::from_le_bytes(*nonce) };
            (Some(to) == own.member).then_some(rest)
        }
        TO_VOTER => {
            let (id, rest) = rest.split_first_chunk()?;
            (Some(VoterId(*id)) == own.voter).then_some(rest)
        }
        _ => return None,
    })
}

/// Who a message says that it is from.
fn sender<B: BodyCodec>(message: &Message<B>) -> Option<[u8; 12]> {
    let id = match message {
        Message::Row(row) => row.from,
        Message::Report { report, .. } => report.speaker(),
        Message::AskView { from, .. } => *from,
        Message::Fetch(fetch) => fetch.from,
        Message::Join(join) => join.from,
        Message::Transfer(part) => part.from,
        Message::Decider { from: VoterId(id), .. } => return id.first_chunk().copied(),
        Message::Wedge { .. } | Message::NewView(_) | Message::Current(_) => return None,
    };
    Some(id.prefix.0)
}
