//! What two nodes tell each other over their local socket, as octets.
//!
//! Who connects and who accepts do the same: each says [`Hello`](Message::Hello) with the segment by which it
//! sends and with what shows the event that it will ring. Whoever has mapped the segment of the other, and
//! found there the number that the message has, puts that number into its own segment and says `Proved`; the
//! other looks for it there. So each knows that the memory is one and the same before anything is sent by it.
//!
//! All numbers are little endian. Everything is checked: it may come from anybody of this user.

use plainsong_proto::locator::NodeId;

/// Layout of segments and messages: nodes of another one stay with UDP.
pub(super) const VERSION: u32 = 2;
/// Octets of the longest message.
pub(super) const MESSAGE_BYTES_MAX: usize = 64;

const MAGIC: u32 = u32::from_le_bytes(*b"PSMM");

/// What one node says to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// With the descriptors of a segment and of an event.
    Hello(Hello),
    /// The number that the peer's segment had is in ours now.
    Proved,
    /// With the descriptor of a slab of chunks of so many octets, which attachments may name from now on.
    Slab { id: u32, chunk_bytes: u64 },
    /// No attachment names that slab any more.
    SlabGone { id: u32 },
    /// There will be no link, and this is why.
    Refused(Refusal),
    /// Nothing more is sent. The connection stays until the last attachment that was borrowed is let go of.
    Closing,
}

/// Why a node is refused, as far as it may know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Memory is not shared with its user.
    User,
    /// There is no memory for it, or no descriptor.
    NoMemory,
    /// Another reason.
    Other,
}

/// Who says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) version: u32,
    pub(super) node: NodeId,
    /// A number that nobody could guess, which is in the segment, too.
    pub(super) nonce: u64,
}

impl Message {
    const HELLO: u32 = 1;
    const PROVED: u32 = 2;
    const SLAB: u32 = 3;
    const SLAB_GONE: u32 = 4;
    const CLOSING: u32 = 5;
    const REFUSED: u32 = 6;

    pub(super) fn to_octets(self) -> Vec<u8> {
        let mut octets = MAGIC.to_le_bytes().to_vec();
        let mut put = |number: u32| octets.extend(number.to_le_bytes());
        match self {
            Self::Hello(hello) => {
                put(Self::HELLO);
                put(hello.version);
                octets.extend(hello.nonce.to_le_bytes());
                octets.extend(hello.node);
            }
            Self::Proved => put(Self::PROVED),
            Self::Closing => put(Self::CLOSING),
            Self::Refused(why) => {
                put(Self::REFUSED);
                put(why.number());
            }
            Self::Slab { id, chunk_bytes } => {
                put(Self::SLAB);
                put(id);
                octets.extend(chunk_bytes.to_le_bytes());
            }
            Self::SlabGone { id } => {
                put(Self::SLAB_GONE);
                put(id);
            }
        }
        octets
    }

    /// `None`: these are no message. Of another version only the beginning of a HELLO is understood.
    pub(super) fn from_octets(octets: &[u8]) -> Option<Self> {
        let mut octets = Octets(octets);
        if octets.u32()? != MAGIC {
            return None;
        }
        let message = match octets.u32()? {
            Self::HELLO => {
                let version = octets.u32()?;
                let (nonce, node) = (octets.u64()?, octets.array()?);
                return Some(Self::Hello(Hello { version, node, nonce }));
            }
            Self::PROVED => Self::Proved,
            Self::CLOSING => Self::Closing,
            Self::REFUSED => Self::Refused(Refusal::of(octets.u32()?)),
            Self::SLAB => Self::Slab { id: octets.u32()?, chunk_bytes: octets.u64()? },
            Self::SLAB_GONE => Self::SlabGone { id: octets.u32()? },
            _ => return None,
        };
        octets.0.is_empty().then_some(message)
    }
}

impl Refusal {
    const fn number(self) -> u32 {
        match self {
            Self::Other => 0,
            Self::User => 1,
            Self::NoMemory => 2,
        }
    }

    const fn of(number: u32) -> Self {
        match number {
            1 => Self::User,
            2 => Self::NoMemory,
            _ => Self::Other,
        }
    }
}

struct Octets<'a>(&'a [u8]);

impl Octets<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*array)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message() -> impl Strategy<Value = Message> {
        let hello = any::<(u32, [u8; 16], u64)>()
            .prop_map(|(version, node, nonce)| Message::Hello(Hello { version, node, nonce }));
        prop_oneof![
            hello,
            Just(Message::Proved),
            Just(Message::Closing),
            Just(Message::Refused(Refusal::User)),
            Just(Message::Refused(Refusal::NoMemory)),
            Just(Message::Refused(Refusal::Other)),
            any::<(u32, u64)>().prop_map(|(id, chunk_bytes)| Message::Slab { id, chunk_bytes }),
            any::<u32>().prop_map(|id| Message::SlabGone { id }),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(message in message()) {
            let octets = message.to_octets();
            prop_assert!(octets.len() <= MESSAGE_BYTES_MAX);
            prop_assert_eq!(Message::from_octets(&octets), Some(message));
            prop_assert_eq!(Message::from_octets(&octets[..octets.len() - 1]), None);
        }

        #[test]
        fn anything_else_is_no_message(octets in proptest::collection::vec(any::<u8>(), 0..64)) {
            prop_assert_eq!(Message::from_octets(&octets), None);
        }
    }

    #[test]
    fn later_versions_may_say_more_in_a_hello() {
        let hello = Hello { version: VERSION + 1, node: [7; 16], nonce: 2 };
        let mut octets = Message::Hello(hello).to_octets();
        octets.push(1);
        assert_eq!(Message::from_octets(&octets), Some(Message::Hello(hello)));
    }
}
