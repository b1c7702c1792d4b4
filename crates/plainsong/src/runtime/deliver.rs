//! What a thread of the domain does with a datagram that it received, and with a deadline that has passed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use plainsong_proto::guid::{Guid, GuidPrefix};
use plainsong_proto::outbox::{Event, Outbox};
use plainsong_proto::receiver::{self, ControlRun, Run};
use plainsong_proto::stats::DropReason;
use plainsong_proto::time::{Instant, Now};
use plainsong_proto::wire::{EndpointSubmessage, MessageContext, Target};

use super::receive::acks::AckSources;
use super::receive::estimate::{Arrival, Estimator};
use super::{
    ParticipantSlot, ReaderSlot, Response, Shared, WriterSlot, dispatch, heap, listener_time, registry,
};
use crate::base::clock;
use crate::transport::Received;
use crate::transport::own_traffic::Awaiting;

/// Other hosts send no longer datagrams but in pieces of IP: frames have 9,000 octets at most.
const LONG_BYTES: usize = 16 << 10;

/// What was received at once, and delivered so far.
#[derive(Default)]
pub(super) struct Delivery {
    pub(super) datagrams: usize,
    came: Instant,
    sent: u32,
    is_long: bool,
    contents: Contents,
}

/// What a datagram had for readers.
#[derive(Clone, Copy, Default)]
pub(crate) struct Contents {
    /// Samples, or parts of some.
    octets: bool,
    /// Samples that are whole and can be taken.
    samples: bool,
    /// Of readers, for writers.
    acks: AckSources,
}

impl Contents {
    fn with(self, other: Self) -> Self {
        Self {
            octets: self.octets || other.octets,
            samples: self.samples || other.samples,
            acks: self.acks.with(other.acks),
        }
    }
}

impl Delivery {
    /// Delivers one datagram, on the thread that received it.
    pub(super) fn datagram(&mut self, shared: &Shared, received: &Received<'_>) {
        if self.datagrams == 0 {
            (self.came, self.sent) = (clock::mono(), shared.transport.sent());
        }
        self.datagrams += 1;
        self.is_long |= received.bytes.len() >= LONG_BYTES;
        self.contents = self.contents.with(datagram(shared, received));
    }

    /// That was all.
    pub(super) fn end(&self, estimator: &mut Estimator) {
        let Self { came, sent, is_long, contents, .. } = *self;
        if self.has_samples() {
            estimator.note(Arrival { came, done: clock::mono(), sent, is_part: !contents.samples, is_long });
        }
    }

    /// Samples, or parts of some.
    pub(super) const fn has_samples(&self) -> bool {
        self.contents.octets || self.contents.samples
    }

    /// Who answered writers.
    pub(super) const fn acks(&self) -> AckSources {
        self.contents.acks
    }
}

/// Calls what is due of one state machine.
pub(crate) fn fire_timer(shared: &Shared, guid: Guid) {
    catch_panic(|| fire(shared, guid));
}

/// A bug met by one datagram or deadline must not end the thread that serves all; the hook printed it.
fn catch_panic<R: Default>(f: impl FnOnce() -> R) -> R {
    #[cfg(feature = "sim")]
    if clock::is_virtual() {
        return f();
    }
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_default()
}

fn fire(shared: &Shared, guid: Guid) {
    if guid == heap::TIMER {
        return shared.heap.give_back();
    }
    let Some(participant) = shared.registry.participant(guid.prefix) else { return };
    dispatch::with_outbox(|out| {
        participant.fire(guid.entity, clock::now(), out);
        participant.report(out);
    });
}

pub(super) fn locators_changed(shared: &Shared) {
    for participant in shared.registry.participants().iter() {
        let locators = shared.transport.locators();
        catch_panic(|| participant.control(|control, now, out| control.set_locators(now, locators, out)));
    }
}

/// Delivers what arrived, on the thread that received it: what readers got.
pub(crate) fn datagram(shared: &Shared, received: &Received<'_>) -> Contents {
    catch_panic(|| {
        dispatch::with_outbox(|out| {
            let participants = shared.registry.participants();
            let mut router = Router {
                shared,
                participants: &participants,
                deferred: None,
                has_long: false,
                contents: Contents::default(),
            };
            let now = clock::now();
            // What several readers and writers answer is short, and most often goes to one socket.
            let gathers = receiver::asks_several(received.bytes);
            out.gather(gathers);
            receiver::datagram(
                now,
                received.from,
                received.bytes,
                received.attachment,
                &mut router,
                &mut &shared.drops,
                out,
            );
            if gathers {
                shared.send_gathered(out);
            }
            router.notify(out);
            router.contents
        })
    })
}

/// Delivers what this process has sent to itself, on a thread of the application that has sent some of it.
/// Whether a listener or a task is to hear of it: the receive thread calls it, and receives what follows.
#[inline(never)]
pub(super) fn receive_own(shared: &Shared) -> bool {
    let Some(node) = shared.transport.own_queue() else { return false };
    let each = |received: Received<'_>| {
        datagram(shared, &received);
        let has_deferred = dispatch::has_deferred();
        if has_deferred {
            shared.deferred.ask();
        }
        !has_deferred
    };
    // What is sent in answer is received, too.
    let _awaiting = Awaiting::begin(node);
    dispatch::deferring_events(|| shared.transport.receive_own(each)).1
}

/// Finds whom a submessage concerns. Each endpoint is locked, fed and emptied before the next.
struct Router<'a> {
    shared: &'a Shared,
    /// Those that were here when the datagram arrived.
    participants: &'a [Arc<ParticipantSlot>],
    /// Whose events wait, and how many samples they are of.
    deferred: Option<(&'a ParticipantSlot, usize)>,
    /// The datagram had a part of a long sample.
    has_long: bool,
    contents: Contents,
}

impl receiver::Registry for Router<'_> {
    fn deliver(
        &mut self,
        now: Now,
        context: &MessageContext,
        submessage: &EndpointSubmessage<'_>,
        out: &mut Outbox,
    ) {
        if submessage.target(context.source) == Target::Builtin
            && let Some(source) = self.participant(context.source)
        {
            // Those of this process hear of each other without the wire; it hears that its group works.
            self.deliver_to(source, now, context, submessage, out);
        } else if context.destination == GuidPrefix::UNKNOWN {
            for participant in self.participants {
                self.deliver_to(participant, now, context, submessage, out);
            }
        } else if let Some(participant) = self.participant(context.destination) {
            self.deliver_to(participant, now, context, submessage, out);
        }
    }

    fn deliver_run(&mut self, now: Now, run: &mut Run<'_, '_>, out: &mut Outbox) {
        match run.target() {
            Target::Reader(id) => {
                if let Some(participant) = self.participant(run.context().destination)
                    && let Some(reader) = registry::find(&participant.readers(), |slot| slot.id, id)
                {
                    return self.run_to_reader(participant, reader, now, run, out);
                }
            }
            Target::ReadersOf(writer) => {
                if let Some((participant, readers)) = self.only_reader(run.context().destination, writer)
                    && let [only] = &*readers
                {
                    return self.run_to_reader(participant, only, now, run, out);
                }
            }
            Target::Builtin | Target::Writer(_) => {}
        }
        while let Some((context, data)) = run.next() {
            self.deliver(now, context, &EndpointSubmessage::Data(data), out);
        }
    }

    fn deliver_control(&mut self, now: Now, run: &mut ControlRun<'_, '_>, out: &mut Outbox) {
        let (to, from) = (run.context().destination, run.context().source);
        let Some(participant) = self.participant(to).filter(|_| !self.is_local(from)) else {
            while let Some((context, submessage)) = run.next() {
                self.deliver(now, context, &submessage, out);
            }
            return;
        };
        self.notify(out);
        participant.run(now, out, |control, now, out| {
            while let Some((context, submessage)) = run.next() {
                if let Err(reason) = control.on_submessage(now, context, &submessage, out) {
                    self.shared.drops.count(reason);
                }
            }
        });
        participant.report(out);
    }

    fn is_local(&self, prefix: GuidPrefix) -> bool {
        self.participant(prefix).is_some()
    }
}

impl<'a> Router<'a> {
    fn participant(&self, prefix: GuidPrefix) -> Option<&'a ParticipantSlot> {
        registry::find(self.participants, |slot| slot.prefix, prefix).map(|slot| &**slot)
    }

    /// The one reader here that is matched with `writer`, if it is the only one: what goes to the readers of
    /// several processes names no participant.
    fn only_reader(
        &self,
        destination: GuidPrefix,
        writer: Guid,
    ) -> Option<(&'a ParticipantSlot, Arc<[Arc<ReaderSlot>]>)> {
        if destination != GuidPrefix::UNKNOWN {
            let participant = self.participant(destination)?;
            return Some((participant, participant.matched_readers(writer)?));
        }
        let mut matched =
            self.participants.iter().filter_map(|it| Some((&**it, it.matched_readers(writer)?)));
        matched.next().filter(|(_, readers)| readers.len() == 1 && matched.next().is_none())
    }

    fn deliver_to(
        &mut self,
        participant: &'a ParticipantSlot,
        now: Now,
        context: &MessageContext,
        submessage: &EndpointSubmessage<'_>,
        out: &mut Outbox,
    ) {
        self.notify_others(participant, out);
        match submessage {
            EndpointSubmessage::DataFrag(part) => {
                self.contents.octets = true;
                self.has_long |= part.sample_bytes >= listener_time::LONG_BYTES;
            }
            EndpointSubmessage::Heartbeat(_) if self.has_long && participant.listener_time.is_brief() => {
                self.notify(out);
                participant.listener_time.yield_core();
            }
            _ => {}
        }
        let mut events_max = 0;
        let delivered = match submessage.target(context.source) {
            Target::Builtin => participant
                .run(now, out, |control, now, out| control.on_submessage(now, context, submessage, out)),
            Target::Writer(id) => match participant.writer(id) {
                Some(writer) => {
                    self.contents.acks.note(context.source);
                    self.to_writer(&writer, now, context, submessage, out)
                }
                None => Err(DropReason::UnknownEndpoint),
            },
            Target::Reader(id) => match registry::find(&participant.readers(), |slot| slot.id, id) {
                Some(reader) => {
                    events_max = reader.events_max;
                    self.to_reader(reader, now, context, submessage, out)
                }
                None => Err(DropReason::UnknownEndpoint),
            },
            Target::ReadersOf(writer) => {
                let readers = participant.matched_readers(writer);
                let all = readers.iter().flat_map(|readers| readers.iter());
                events_max = all.map(|reader| reader.events_max).min().unwrap_or(0);
                for reader in readers.iter().flat_map(|readers| readers.iter()) {
                    // The reader counts its own drops.
                    let _ = self.to_reader(reader, now, context, submessage, out);
                }
                if readers.is_some() { Ok(()) } else { Err(DropReason::NotMatched) }
            }
        };
        if let Err(reason) = delivered {
            self.shared.drops.count(reason);
        }
        self.notify_later(participant, 1, events_max, out);
    }

    /// Gives a reader the samples of a run under one lock, until some have to be told before others come.
    fn run_to_reader(
        &mut self,
        participant: &'a ParticipantSlot,
        slot: &ReaderSlot,
        now: Now,
        run: &mut Run<'_, '_>,
        out: &mut Outbox,
    ) {
        self.notify_others(participant, out);
        self.contents.octets = true;
        let addressed = matches!(run.target(), Target::Reader(_));
        let shared = self.shared;
        loop {
            let deferred = self.deferred.map_or(0, |(_, samples)| samples);
            let room = slot.events_max.saturating_sub(deferred).max(1);
            let (samples, ended) = slot.run(shared, now, out, |reader, now, out| {
                reader.on_run(now, run, room, out, |reason| {
                    if addressed {
                        shared.drops.count(reason);
                    }
                })
            });
            self.notify_later(participant, samples, slot.events_max, out);
            if ended {
                return;
            }
            self.notify(out);
        }
    }

    /// Listeners are notified of the samples of one datagram together, as many as none of the readers has to
    /// forget any for.
    #[inline]
    fn notify_later(
        &mut self,
        participant: &'a ParticipantSlot,
        new: usize,
        events_max: usize,
        out: &mut Outbox,
    ) {
        if out.events.is_empty() {
            return;
        }
        self.contents.samples |= out.events.iter().any(|event| matches!(event, Event::DataAvailable { .. }));
        let (_, samples) = self.deferred.get_or_insert((participant, 0));
        *samples += new;
        if *samples >= events_max {
            self.notify(out);
        }
    }

    #[inline]
    fn notify(&mut self, out: &mut Outbox) {
        let Some((participant, _)) = self.deferred.take() else { return };
        // Nobody waits for an answer until a listener returns.
        if !out.transmits().is_empty() {
            self.shared.send_gathered(out);
        }
        if !self.has_long {
            return participant.report(out);
        }
        let began = clock::mono();
        participant.report(out);
        participant.listener_time.took(clock::mono().since(began));
    }

    /// Listeners of another participant are notified before anything happens to this one.
    #[inline]
    fn notify_others(&mut self, participant: &ParticipantSlot, out: &mut Outbox) {
        if self.deferred.is_some_and(|(other, _)| other.prefix != participant.prefix) {
            self.notify(out);
        }
    }

    fn to_writer(
        &self,
        slot: &WriterSlot,
        now: Now,
        context: &MessageContext,
        submessage: &EndpointSubmessage<'_>,
        out: &mut Outbox,
    ) -> Result<(), DropReason> {
        let response = match submessage {
            EndpointSubmessage::AckNack(it) => Response::AckNack(context.sender(it.reader), *it),
            EndpointSubmessage::NackFrag(it) => Response::NackFrag(context.sender(it.reader), *it),
            _ => return Err(DropReason::UnknownEndpoint),
        };
        slot.run_or_defer(self.shared, now, out, response);
        Ok(())
    }

    fn to_reader(
        &self,
        slot: &ReaderSlot,
        now: Now,
        context: &MessageContext,
        submessage: &EndpointSubmessage<'_>,
        out: &mut Outbox,
    ) -> Result<(), DropReason> {
        slot.run(self.shared, now, out, |reader, now, out| {
            reader.on_submessage(now, context, submessage, out)
        })
    }
}
