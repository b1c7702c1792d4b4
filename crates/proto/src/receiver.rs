//! Walks one datagram: header, INFO submessages, and each endpoint submessage to whom it concerns
//! (RTPS 2.5 §8.3.4).

use crate::guid::GuidPrefix;
use crate::locator::Locator;
use crate::malformed::Malformed;
use crate::outbox::Outbox;
use crate::payload::Payload;
use crate::stats::{CountDrops, DropReason};
use crate::time::Now;
use crate::tuning::memory::SEVERAL_REQUESTS_BYTES_MAX;
use crate::vendor;
use crate::wire::header::{Header, PROTOCOL_VERSION, Submessage, Submessages, flag, id};
use crate::wire::info::{self, HeaderExtension, InfoReply, InfoReplyIp4, InfoSource};
use crate::wire::secure::{CryptoHeader, Protection};
use crate::wire::{AckNack, Data, EndpointSubmessage, MessageContext, Target};

mod control;

pub use crate::wire::Run;
pub use control::ControlRun;

/// Who is here: implemented by the driver and by the simulator.
pub trait Registry {
    /// Hands a submessage to the local participants that `context.destination` addresses (UNKNOWN: all),
    /// and there to the endpoints that [`EndpointSubmessage::target`] names. Counting what no endpoint
    /// wants is the registry's part.
    ///
    /// The source may be local as well: endpoints of one participant, and participants of one process,
    /// reach each other this way. A participant's own built-in messages, heard again by multicast
    /// loopback, tell it that its group works, and nothing else ([`DropReason::OwnDatagram`]).
    fn deliver(
        &mut self,
        now: Now,
        context: &MessageContext,
        submessage: &EndpointSubmessage<'_>,
        out: &mut Outbox,
    );

    /// As [`Self::deliver`], for each sample of `run`: who finds the endpoint of the first has found that of
    /// all. What is left of the run comes back in another.
    fn deliver_run(&mut self, now: Now, run: &mut Run<'_, '_>, out: &mut Outbox) {
        while let Some((context, data)) = run.next() {
            self.deliver(now, context, &EndpointSubmessage::Data(data), out);
        }
    }

    /// As [`Self::deliver`], for each submessage of `run`, all of which are for built-in endpoints: what they
    /// cause can leave together.
    fn deliver_control(&mut self, now: Now, run: &mut ControlRun<'_, '_>, out: &mut Outbox) {
        while let Some((context, submessage)) = run.next() {
            self.deliver(now, context, &submessage, out);
        }
    }

    /// Whether `prefix` is a participant of this registry.
    fn is_local(&self, prefix: GuidPrefix) -> bool;
}

/// Reads the datagram `bytes` that arrived from `from`, delivers what it holds and counts what it drops.
///
/// A malformed submessage ends the message: what came before it counts, what follows is ignored. Unknown
/// submessages are skipped, those of other vendors' own without being counted. Work is proportional to the
/// length of the datagram, and nothing is allocated.
///
/// `attachment`: the payload of its last submessage, a DATA that goes to the end of the message and has
/// everything but its octets. They stay where they are; built-in endpoints, which look at theirs more than
/// once, take none.
pub fn datagram(
    now: Now,
    from: Locator,
    bytes: &[u8],
    attachment: Option<&Payload>,
    registry: &mut impl Registry,
    counters: &mut impl CountDrops,
    out: &mut Outbox,
) {
    let Ok((header, submessages)) = Header::parse(bytes) else {
        return counters.dropped(DropReason::Malformed);
    };
    if header.version[0] != PROTOCOL_VERSION[0] {
        return counters.dropped(DropReason::UnknownVersion);
    }
    let submessages = submessages.with(attachment);
    let mut message = Message {
        now,
        bytes_len: bytes.len(),
        context: MessageContext {
            source: header.prefix,
            vendor: header.vendor,
            version: header.version,
            destination: GuidPrefix::UNKNOWN,
            timestamp: None,
            from,
        },
        here: submessages,
        rest: submessages,
        skip: None,
        answered: None,
        protected: false,
        registry,
        counters,
        out,
    };
    while let Some(submessage) = message.next() {
        if let Err(reason) = submessage.map_err(DropReason::from).and_then(|it| message.submessage(it)) {
            return message.counters.dropped(reason);
        }
    }
    if message.rest.has_attachment() {
        message.counters.dropped(DropReason::StrayAttachment);
    }
}

/// Whether a datagram, a short one, has several HEARTBEATs and ACKNACKs and nothing that is answered at
/// length: neither samples nor requests for some.
#[must_use]
pub fn asks_several(bytes: &[u8]) -> bool {
    if bytes.len() > SEVERAL_REQUESTS_BYTES_MAX {
        return false;
    }
    let Ok((_, submessages)) = Header::parse(bytes) else { return false };
    let mut questions = 0;
    for submessage in submessages {
        let Ok(Submessage { id, flags, body, .. }) = submessage else { return false };
        match id {
            id::INFO_DST | id::INFO_TS => {}
            id::HEARTBEAT => questions += 1,
            id::ACKNACK => match AckNack::parse(body, flags) {
                Ok(acknack) if acknack.missing.is_empty() => questions += 1,
                _ => return false,
            },
            id::VENDOR_SPECIFIC_FIRST.. => {}
            _ => return false,
        }
    }
    questions > 1
}

/// One message being walked.
struct Message<'a, R, C> {
    now: Now,
    bytes_len: usize,
    context: MessageContext,
    /// The submessage that is looked at, and what follows it.
    here: Submessages<'a>,
    rest: Submessages<'a>,
    /// Why endpoint submessages go nowhere for now.
    skip: Option<DropReason>,
    /// The HEARTBEAT that the next ACKNACK answers.
    answered: Option<i32>,
    /// Between SEC_PREFIX and SEC_POSTFIX.
    protected: bool,
    registry: &'a mut R,
    counters: &'a mut C,
    out: &'a mut Outbox,
}

impl<'a, R: Registry, C: CountDrops> Message<'a, R, C> {
    fn next(&mut self) -> Option<Result<Submessage<'a>, Malformed>> {
        self.here = self.rest;
        self.rest.next()
    }

    /// An error ends the message.
    fn submessage(&mut self, submessage: Submessage<'a>) -> Result<(), DropReason> {
        let Submessage { id, flags, body, .. } = submessage;
        if let Some(protection) = Protection::of(id) {
            return self.protection(protection, body);
        }
        if self.protected {
            return Ok(());
        }
        match id {
            id::DATA if flags & flag::DATA_NON_STANDARD == 0 && self.skip.is_none() => {
                return self.samples(&submessage);
            }
            id::PAD => {}
            id::INFO_TS => self.context.timestamp = info::parse_timestamp(body, flags)?,
            id::INFO_DST => {
                self.context.destination = info::parse_destination(body, flags)?;
                self.judge_destination();
            }
            id::INFO_SRC => self.source(&InfoSource::parse(body, flags)?)?,
            // Answers go to the locators that discovery learnt and checked, never to announced ones.
            id::INFO_REPLY => drop(InfoReply::parse(body, flags)?),
            id::INFO_REPLY_IP4 => drop(InfoReplyIp4::parse(body, flags)?),
            id::ANSWERED if self.context.vendor == vendor::PLAINSONG => {
                self.answered = Some(AckNack::parse_answered(body, flags)?);
            }
            id::HEADER_EXTENSION => self.header_extension(&HeaderExtension::parse(body, flags)?)?,
            // Valid, and for those that know them.
            id::VENDOR_SPECIFIC_FIRST.. => {}
            _ => return self.endpoint_submessage(submessage),
        }
        Ok(())
    }

    /// A sample, and those like it that follow.
    fn samples(&mut self, submessage: &Submessage<'a>) -> Result<(), DropReason> {
        self.answered = None;
        let (reader, writer) = Data::endpoints(submessage.body)?;
        if Target::of_readers(self.context.source, reader, writer) == Target::Builtin {
            let data = Data::of(submessage)?;
            if data.attachment.is_some() {
                return Err(DropReason::StrayAttachment);
            }
            self.control(EndpointSubmessage::Data(data));
            return Ok(());
        }
        let (context, rest) = (&mut self.context, &mut self.rest);
        let mut run = Run::new(context, self.here, reader, writer);
        self.registry.deliver_run(self.now, &mut run, self.out);
        if run.rest().bytes_left() < rest.bytes_left() {
            *rest = run.rest();
        } else {
            // Nobody took the first: it is passed over, unless it is none.
            Data::of(submessage)?;
        }
        Ok(())
    }

    /// What is for the built-in endpoints, and what follows of that kind.
    fn control(&mut self, first: EndpointSubmessage<'a>) {
        let mut run = ControlRun { context: &mut self.context, rest: &mut self.rest, first: Some(first) };
        self.registry.deliver_control(self.now, &mut run, self.out);
    }

    fn endpoint_submessage(&mut self, submessage: Submessage<'a>) -> Result<(), DropReason> {
        let answered = self.answered.take();
        let mut parsed = match control::parse(submessage) {
            Ok(Some(parsed)) => parsed,
            Ok(None) => {
                self.counters.dropped(DropReason::UnknownSubmessage);
                return Ok(());
            }
            Err(DropReason::SecurityRequired) => return self.needs_security(),
            Err(reason) => return Err(reason),
        };
        if let Some(reason) = self.skip {
            self.counters.dropped(reason);
            return Ok(());
        }
        if let EndpointSubmessage::AckNack(acknack) = &mut parsed {
            acknack.heartbeat = answered;
        }
        if parsed.target(self.context.source) == Target::Builtin {
            self.control(parsed);
        } else {
            self.registry.deliver(self.now, &self.context, &parsed, self.out);
        }
        Ok(())
    }

    #[cold]
    fn source(&mut self, source: &InfoSource) -> Result<(), DropReason> {
        if source.version[0] != PROTOCOL_VERSION[0] {
            return Err(DropReason::UnknownVersion);
        }
        self.context.source = source.prefix;
        self.context.version = source.version;
        self.context.vendor = source.vendor;
        self.context.timestamp = None;
        Ok(())
    }

    /// Whether the destination allows delivery from here on.
    fn judge_destination(&mut self) {
        let destination = self.context.destination;
        let here = destination == GuidPrefix::UNKNOWN || self.registry.is_local(destination);
        self.skip = (!here).then_some(DropReason::OtherDestination);
    }

    #[cold]
    fn header_extension(&self, extension: &HeaderExtension) -> Result<(), DropReason> {
        // Zero is MESSAGE_LENGTH_INVALID: not told. Checksums are left to UDP.
        let wrong = |bytes: u32| bytes != 0 && usize::try_from(bytes) != Ok(self.bytes_len);
        if extension.message_bytes.is_some_and(wrong) {
            return Err(Malformed::LengthOutOfRange.into());
        }
        Ok(())
    }

    #[cold]
    fn protection(&mut self, protection: Protection, body: &[u8]) -> Result<(), DropReason> {
        match protection {
            Protection::Message => {
                CryptoHeader::parse(body)?;
                Err(DropReason::SecurityRequired)
            }
            Protection::UntilPostfix => {
                CryptoHeader::parse(body)?;
                self.protected = true;
                self.needs_security()
            }
            Protection::Itself if self.protected => Ok(()),
            Protection::Itself => self.needs_security(),
            Protection::Ends => {
                self.protected = false;
                Ok(())
            }
        }
    }

    /// Counts and skips one submessage.
    #[cold]
    fn needs_security(&mut self) -> Result<(), DropReason> {
        self.counters.dropped(DropReason::SecurityRequired);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
