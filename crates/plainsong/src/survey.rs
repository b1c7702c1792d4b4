//! Asking who is there in a domain without joining it: datagrams to be sent to its well-known addresses, and
//! what is read of the answers. Tools mark their participants with [`tool`].

pub use plainsong_proto::discovery::survey::{
    HeardParticipant, Survey, TOOL_PROPERTY, empty_message, heard, tool,
};
pub use plainsong_proto::guid::GuidPrefix;
pub use plainsong_proto::locator::ports;
