//! The submessages of DDS Security (1.1 §7.3.6, §7.3.7): recognised, so that protected content is
//! skipped and counted as such. Opening it is the business of security plug-ins.

use crate::malformed::Malformed;

use super::header::id;
use super::octets::Reader;

/// The crypto header that SEC_PREFIX and SRTPS_PREFIX carry; always octets in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CryptoHeader {
    /// Kind of the transformation: NONE, AES128_GMAC, AES128_GCM, AES256_GMAC, AES256_GCM.
    pub transformation_kind: [u8; 4],
    /// Key material of the sender.
    pub transformation_key_id: [u8; 4],
    /// Session of the key.
    pub session_id: [u8; 4],
    /// Rest of the initialisation vector.
    pub initialization_vector_suffix: [u8; 8],
}

impl CryptoHeader {
    /// From the body of a prefix.
    ///
    /// # Errors
    /// [`Malformed::Truncated`].
    pub fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let mut fields = Reader::new(body, false);
        Ok(Self {
            transformation_kind: fields.array()?,
            transformation_key_id: fields.array()?,
            session_id: fields.array()?,
            initialization_vector_suffix: fields.array()?,
        })
    }
}

/// How much of a message a security submessage protects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protection {
    /// Everything up to SEC_POSTFIX.
    UntilPostfix,
    /// Itself.
    Itself,
    /// The rest of the message.
    Message,
    /// SEC_POSTFIX: what follows is in clear again.
    Ends,
}

impl Protection {
    /// Of a submessage id; `None` when it is none of DDS Security.
    pub(crate) const fn of(submessage_id: u8) -> Option<Self> {
        match submessage_id {
            id::SEC_PREFIX => Some(Self::UntilPostfix),
            id::SEC_POSTFIX => Some(Self::Ends),
            id::SRTPS_PREFIX => Some(Self::Message),
            id::SEC_BODY | id::SRTPS_POSTFIX => Some(Self::Itself),
            _ => None,
        }
    }
}
