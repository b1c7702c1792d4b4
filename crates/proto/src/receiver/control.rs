//! What one message holds for the built-in endpoints, in one go.

use crate::stats::DropReason;
use crate::wire::header::{Submessage, Submessages, flag, id};
use crate::wire::info;
use crate::wire::{
    AckNack, Data, DataFrag, EndpointSubmessage, Gap, Heartbeat, HeartbeatFrag, MessageContext, NackFrag,
    Target,
};

/// Submessages for built-in endpoints that follow each other in a message, from one participant to the same
/// ones. There is at least one.
#[derive(Debug)]
pub struct ControlRun<'m, 'a> {
    pub(super) context: &'m mut MessageContext,
    pub(super) rest: &'m mut Submessages<'a>,
    pub(super) first: Option<EndpointSubmessage<'a>>,
}

impl<'a> ControlRun<'_, 'a> {
    /// Where the message comes from and goes to.
    #[must_use]
    pub const fn context(&self) -> &MessageContext {
        self.context
    }

    /// The next submessage, and what holds for it.
    #[expect(clippy::should_implement_trait, reason = "it lends the context, which iterators cannot")]
    pub fn next(&mut self) -> Option<(&MessageContext, EndpointSubmessage<'a>)> {
        if let Some(first) = self.first.take() {
            return Some((self.context, first));
        }
        let (mut rest, mut timestamp) = (*self.rest, self.context.timestamp);
        loop {
            // What is wrong, or anything else, ends the run; the walk meets it again.
            let submessage = rest.next()?.ok()?;
            let Submessage { id, flags, body, .. } = submessage;
            match id {
                id::INFO_TS => timestamp = info::parse_timestamp(body, flags).ok()?,
                id::INFO_DST => {
                    let destination = info::parse_destination(body, flags).ok()?;
                    if destination != self.context.destination {
                        return None;
                    }
                }
                _ => {
                    let parsed = parse(submessage).ok()??;
                    if parsed.target(self.context.source) != Target::Builtin || parsed.is_attached() {
                        return None;
                    }
                    *self.rest = rest;
                    self.context.timestamp = timestamp;
                    return Some((self.context, parsed));
                }
            }
        }
    }
}

/// A submessage of an endpoint; `None` for others.
///
/// # Errors
/// Why it is dropped.
pub(super) fn parse(submessage: Submessage<'_>) -> Result<Option<EndpointSubmessage<'_>>, DropReason> {
    let Submessage { id, flags, body, .. } = submessage;
    Ok(Some(match id {
        id::DATA if flags & flag::DATA_NON_STANDARD != 0 => return Err(DropReason::SecurityRequired),
        id::DATA_FRAG if flags & flag::FRAG_NON_STANDARD != 0 => return Err(DropReason::SecurityRequired),
        id::DATA => EndpointSubmessage::Data(Data::of(&submessage)?),
        id::DATA_FRAG => EndpointSubmessage::DataFrag(DataFrag::parse(body, flags)?),
        id::HEARTBEAT => EndpointSubmessage::Heartbeat(Heartbeat::parse(body, flags)?),
        id::HEARTBEAT_FRAG => EndpointSubmessage::HeartbeatFrag(HeartbeatFrag::parse(body, flags)?),
        id::GAP => EndpointSubmessage::Gap(Gap::parse(body, flags)?),
        id::ACKNACK => EndpointSubmessage::AckNack(AckNack::parse(body, flags)?),
        id::NACK_FRAG => EndpointSubmessage::NackFrag(NackFrag::parse(body, flags)?),
        _ => return Ok(None),
    }))
}
