//! Samples that follow each other in a message.

use super::header::{Submessage, Submessages, flag, id};
use super::{Data, MessageContext, Target, info};
use crate::guid::{EntityId, Guid};

/// Samples of one writer to the same readers that follow each other in a message, with no more than
/// timestamps in between. There is at least one.
#[derive(Debug)]
pub struct Run<'m, 'a> {
    context: &'m mut MessageContext,
    rest: Submessages<'a>,
    target: Target,
    writer: EntityId,
    reader: EntityId,
}

impl<'m, 'a> Run<'m, 'a> {
    /// Of samples from and to these, with one of which `rest` begins.
    pub(crate) fn new(
        context: &'m mut MessageContext,
        rest: Submessages<'a>,
        reader: EntityId,
        writer: EntityId,
    ) -> Self {
        let target = Target::of_readers(context.source, reader, writer);
        Self { context, rest, target, writer, reader }
    }

    /// Where the message comes from and goes to.
    #[must_use]
    pub const fn context(&self) -> &MessageContext {
        self.context
    }

    /// Whom the samples are for.
    #[must_use]
    pub const fn target(&self) -> Target {
        self.target
    }

    /// Whose samples they are.
    #[must_use]
    pub fn writer(&self) -> Guid {
        self.context.source.entity(self.writer)
    }

    /// What follows the samples that were taken.
    pub(crate) const fn rest(&self) -> Submessages<'a> {
        self.rest
    }

    /// Whether nothing that follows is of this run; when in doubt it may be.
    #[must_use]
    pub fn is_over(&self) -> bool {
        !matches!(self.rest.next_id(), Some(id::INFO_TS | id::DATA))
    }

    /// The next sample and its timestamp.
    #[expect(clippy::should_implement_trait, reason = "it lends the context, which iterators cannot")]
    #[inline(always)]
    pub fn next(&mut self) -> Option<(&MessageContext, Data<'a>)> {
        let (mut rest, mut timestamp) = (self.rest, self.context.timestamp);
        loop {
            // What is wrong, or anything else, ends the run; the walk meets it again.
            let submessage = rest.next()?.ok()?;
            let Submessage { id, flags, body, .. } = submessage;
            match id {
                id::INFO_TS => timestamp = info::parse_timestamp(body, flags).ok()?,
                id::DATA if flags & flag::DATA_NON_STANDARD == 0 => {
                    let data = Data::of(&submessage).ok()?;
                    if (data.writer, data.reader) != (self.writer, self.reader) {
                        return None;
                    }
                    self.rest = rest;
                    self.context.timestamp = timestamp;
                    return Some((self.context, data));
                }
                _ => return None,
            }
        }
    }
}
