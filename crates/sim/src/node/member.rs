//! A participant of a process, its writers and its readers: how commands of discovery and datagrams reach
//! them.

use std::collections::BTreeMap;
use std::sync::Arc;

use plainsong_proto::discovery::{Command, Participant};
use plainsong_proto::guid::{EntityId, Guid, GuidPrefix};
use plainsong_proto::locator::ports;
use plainsong_proto::outbox::Outbox;
use plainsong_proto::reader::Reader;
use plainsong_proto::sources::Sources;
use plainsong_proto::stats::{DropCounters, DropReason};
use plainsong_proto::time::{Duration, Now};
use plainsong_proto::wire::{EndpointSubmessage, MessageContext, Target};
use plainsong_proto::writer::{Writer, WriterGroup};

use super::home::Home;
use super::{Call, Told};
use crate::mutation::Mutation;
use crate::network::{STRANGER, is_genuine};
use crate::sample::Filter;
use plainsong::sim::{Heard, SimParticipant, SimReader, SimWriter};

/// A participant and its endpoints.
pub struct Member {
    /// The control plane.
    pub participant: Home<Participant, SimParticipant>,
    /// Its place in the ledger.
    pub record: usize,
    /// User writers.
    pub writers: BTreeMap<EntityId, LocalWriter>,
    /// User readers.
    pub readers: BTreeMap<EntityId, LocalReader>,
    /// Its name.
    pub prefix: GuidPrefix,
    pub(super) next_key: u32,
}

/// A writer and its place in the ledger.
pub struct LocalWriter {
    /// The state machine.
    pub writer: Home<Writer, SimWriter>,
    /// Its place in the ledger.
    pub record: usize,
    pub(super) group: Option<Arc<WriterGroup>>,
}

/// A reader and its place in the ledger.
pub struct LocalReader {
    /// The state machine.
    pub reader: Home<Reader, SimReader>,
    /// Its place in the ledger.
    pub record: usize,
}

impl Member {
    pub(super) fn next_guid(&mut self, entity: impl Fn(u32) -> EntityId) -> Guid {
        let key = self.next_key;
        self.next_key += 1;
        self.prefix.entity(entity(key))
    }

    pub(super) fn carry_out(&mut self, now: Now, command: Command, call: &mut Call<'_>) {
        match command {
            Command::MatchReader { writer, mut reader } => {
                let Some(local) = self.writers.get_mut(&writer) else { return };
                if call.mutation == Some(Mutation::AimAnywhere) && !is_genuine(reader.guid.prefix) {
                    reader.locators = vec![STRANGER.locator(ports::user_unicast(0, 0))];
                }
                if call.mutation == Some(Mutation::HearAnywhere) {
                    reader.sources = Sources::default();
                }
                if call.ledger.writers[local.record].endpoint.begin_match(reader.guid, call.at) {
                    call.told.push(Told::Match { local: writer, peer: reader.guid, begins: true });
                } else if call.mutation == Some(Mutation::KeepOldRoutes) {
                    return;
                }
                let filter = reader.content_filter.as_ref().and_then(Filter::told);
                call.ledger.writers[local.record].told_filter(reader.guid, call.at, filter);
                call.of_writer(&mut local.writer, |writer, out| writer.match_reader(now, &reader, out));
            }
            Command::UnmatchReader { writer, reader } => {
                let Some(local) = self.writers.get_mut(&writer) else { return };
                if call.mutation == Some(Mutation::KeepGhosts) {
                    return;
                }
                call.ledger.writers[local.record].endpoint.end_match(reader, call.at);
                call.told.push(Told::Match { local: writer, peer: reader, begins: false });
                call.of_writer(&mut local.writer, |writer, out| writer.unmatch_reader(now, reader, out));
            }
            Command::IncompatibleReader { writer, policies } => {
                let hidden = call.mutation == Some(Mutation::HideMismatch);
                if let Some(local) = self.writers.get_mut(&writer).filter(|_| !hidden) {
                    call.of_writer(&mut local.writer, |writer, out| {
                        writer.incompatible_reader(&policies, out);
                    });
                }
            }
            Command::MatchWriter { .. } | Command::UnmatchWriter { .. } => {
                self.carry_out_for_reader(now, command, call);
            }
            Command::IncompatibleWriter { reader, policies } => {
                let hidden = call.mutation == Some(Mutation::HideMismatch);
                if let Some(local) = self.readers.get_mut(&reader).filter(|_| !hidden) {
                    local.reader.run(now, call.out, |reader, out| reader.incompatible_writer(&policies, out));
                }
            }
            Command::GroupWriters { reader, publisher, writers } => {
                if let Some(local) = self.readers.get_mut(&reader) {
                    local.reader.run(now, call.out, |reader, out| {
                        reader.set_group_writers(publisher, writers, out);
                    });
                }
            }
            Command::WriterAsserted { writer } => {
                if let Some(local) = self.writers.get_mut(&writer) {
                    local.writer.edit(now, |writer| writer.participant_asserted(now));
                }
            }
            Command::Link { node } => call.told.push(Told::Link(node)),
            Command::WriterAlive { reader, writer } => {
                let hidden = call.mutation == Some(Mutation::HideLiveliness);
                if let Some(local) = self.readers.get_mut(&reader).filter(|_| !hidden) {
                    local.reader.run(now, call.out, |reader, out| reader.writer_liveliness(now, writer, out));
                }
            }
        }
    }

    /// What the driver of this member decided and did since this was asked last.
    pub(super) fn take_heard(&self) -> Vec<Heard> {
        match &self.participant {
            Home::Here(_) => Vec::new(),
            Home::Driver(slot) => slot.take_heard(),
        }
    }

    /// Enters into the ledger what the driver carries out.
    pub(super) fn note_command(&mut self, command: &Command, call: &mut Call<'_>) {
        match command {
            Command::MatchReader { writer, reader } => {
                let Some(local) = self.writers.get(writer) else { return };
                let record = &mut call.ledger.writers[local.record];
                if record.endpoint.begin_match(reader.guid, call.at) {
                    call.told.push(Told::Match { local: *writer, peer: reader.guid, begins: true });
                }
                let filter = reader.content_filter.as_ref().and_then(Filter::told);
                record.told_filter(reader.guid, call.at, filter);
            }
            Command::UnmatchReader { writer, reader } => {
                let Some(local) = self.writers.get(writer) else { return };
                call.ledger.writers[local.record].endpoint.end_match(*reader, call.at);
                call.told.push(Told::Match { local: *writer, peer: *reader, begins: false });
            }
            Command::MatchWriter { reader, writer } => {
                let Some(local) = self.readers.get(reader) else { return };
                if call.ledger.readers[local.record].endpoint.begin_match(writer.guid, call.at) {
                    call.told.push(Told::Match { local: *reader, peer: writer.guid, begins: true });
                }
            }
            Command::UnmatchWriter { reader, writer } => {
                let Some(local) = self.readers.get(reader) else { return };
                call.ledger.readers[local.record].endpoint.end_match(*writer, call.at);
                call.told.push(Told::Match { local: *reader, peer: *writer, begins: false });
            }
            _ => {}
        }
    }

    fn carry_out_for_reader(&mut self, now: Now, command: Command, call: &mut Call<'_>) {
        match command {
            Command::MatchWriter { reader, mut writer } => {
                let Some(local) = self.readers.get_mut(&reader) else { return };
                if call.mutation == Some(Mutation::ForgetMatches) {
                    return;
                }
                if call.ledger.readers[local.record].endpoint.begin_match(writer.guid, call.at) {
                    call.told.push(Told::Match { local: reader, peer: writer.guid, begins: true });
                }
                match call.mutation {
                    Some(Mutation::StretchLifespan) if !writer.qos.lifespan.is_infinite() => {
                        writer.qos.lifespan.0 *= 4;
                    }
                    Some(Mutation::ForgetLifespan) => writer.qos.lifespan = Duration::INFINITE,
                    Some(Mutation::ForgetStrength) => writer.qos.ownership_strength = 0,
                    _ => {}
                }
                local.reader.run(now, call.out, |reader, out| reader.match_writer(now, &writer, out));
            }
            Command::UnmatchWriter { reader, writer } => {
                let Some(local) = self.readers.get_mut(&reader) else { return };
                if call.mutation == Some(Mutation::KeepGhosts) {
                    return;
                }
                call.ledger.readers[local.record].endpoint.end_match(writer, call.at);
                call.told.push(Told::Match { local: reader, peer: writer, begins: false });
                local.reader.run(now, call.out, |reader, out| reader.unmatch_writer(now, writer, out));
            }
            _ => {}
        }
    }

    pub(super) fn deliver(
        &mut self,
        now: Now,
        context: &MessageContext,
        submessage: &EndpointSubmessage<'_>,
        call: &mut Call<'_>,
        drops: &mut DropCounters,
    ) {
        let mut count = |result: Result<(), DropReason>| {
            if let Err(reason) = result {
                drops.count(reason);
            }
        };
        match submessage.target(context.source) {
            Target::Builtin if context.source == self.prefix => count(Err(DropReason::OwnDatagram)),
            Target::Builtin => count(self.participant.run(now, call.out, |participant, out| {
                participant.on_submessage(now, context, submessage, out)
            })),
            Target::Writer(writer) => match self.writers.get_mut(&writer) {
                Some(local) if call.mutation != Some(Mutation::DropAcknacks) => {
                    count(call.of_writer(&mut local.writer, |writer, out| {
                        to_writer(writer, now, context, submessage, out)
                    }));
                }
                _ => count(Err(DropReason::UnknownEndpoint)),
            },
            Target::Reader(reader) => {
                match self.readers.get_mut(&reader) {
                    Some(local) => count(local.reader.run(now, call.out, |reader, out| {
                        reader.on_submessage(now, context, submessage, out)
                    })),
                    None => count(Err(DropReason::UnknownEndpoint)),
                }
            }
            Target::ReadersOf(writer) => {
                let is_matched =
                    |local: &&mut LocalReader| local.reader.look(|reader| reader.is_matched(writer));
                for local in self.readers.values_mut().filter(is_matched) {
                    count(local.reader.run(now, call.out, |reader, out| {
                        reader.on_submessage(now, context, submessage, out)
                    }));
                }
            }
        }
    }
}

fn to_writer(
    writer: &mut Writer,
    now: Now,
    context: &MessageContext,
    submessage: &EndpointSubmessage<'_>,
    out: &mut Outbox,
) -> Result<(), DropReason> {
    let reader = context.sender(submessage.reader());
    match submessage {
        EndpointSubmessage::AckNack(acknack) => writer.on_acknack(now, reader, acknack, out),
        EndpointSubmessage::NackFrag(nack_frag) => writer.on_nack_frag(now, reader, nack_frag, out),
        _ => Err(DropReason::UnknownEndpoint),
    }
}
