//! Until the endpoints of the protocol core land.
use plainsong_proto::discovery::MatchedWriter;
use plainsong_proto::guid::Guid;
use plainsong_proto::outbox::Outbox;
use plainsong_proto::stats::DropReason;
use plainsong_proto::time::{Instant, Now};
use plainsong_proto::wire::*;
pub(crate) struct Reader(Guid);
impl Reader {
    pub(crate) fn guid(&self) -> Guid {
        self.0
    }
    pub(crate) fn timeout(&mut self, _: Now, _: &mut Outbox) {}
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        None
    }
    pub(crate) fn match_writer(&mut self, _: Now, _: &MatchedWriter, _: &mut Outbox) {}
    pub(crate) fn unmatch_writer(&mut self, _: Now, _: Guid, _: &mut Outbox) {}
    pub(crate) fn incompatible_writer(&mut self, _: &[u32], _: &mut Outbox) {}
    pub(crate) fn writer_liveliness(&mut self, _: Now, _: Guid, _: &mut Outbox) {}
    pub(crate) fn on_data(
        &mut self,
        _: Now,
        _: &MessageContext,
        _: &Data<'_>,
        _: &mut Outbox,
    ) -> Result<(), DropReason> {
        Ok(())
    }
    pub(crate) fn on_data_frag(
        &mut self,
        _: Now,
        _: &MessageContext,
        _: &DataFrag<'_>,
        _: &mut Outbox,
    ) -> Result<(), DropReason> {
        Ok(())
    }
    pub(crate) fn on_heartbeat(
        &mut self,
        _: Now,
        _: &MessageContext,
        _: &Heartbeat,
        _: &mut Outbox,
    ) -> Result<(), DropReason> {
        Ok(())
    }
    pub(crate) fn on_heartbeat_frag(
        &mut self,
        _: Now,
        _: &MessageContext,
        _: &HeartbeatFrag,
        _: &mut Outbox,
    ) -> Result<(), DropReason> {
        Ok(())
    }
    pub(crate) fn on_gap(
        &mut self,
        _: Now,
        _: &MessageContext,
        _: &Gap,
        _: &mut Outbox,
    ) -> Result<(), DropReason> {
        Ok(())
    }
}
