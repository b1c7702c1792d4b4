//! How samples reach the matched readers, and why so.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use plainsong_proto::discovery::UsedTransport;
use plainsong_proto::guid::{Guid, GuidPrefix};

use crate::runtime::ParticipantSlot;

/// How samples of a writer reach its matched readers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Delivery {
    /// By which transport, for each participant with matched readers, in the order of their GUIDs.
    pub participants: Vec<ParticipantDelivery>,
}

/// How samples reach the readers of one participant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParticipantDelivery {
    /// The participant.
    pub participant: Guid,
    /// So many of its readers match.
    pub readers: usize,
    /// By memory or by UDP, and why not by memory.
    pub transport: UsedTransport,
}

impl Delivery {
    /// Of a writer with these readers, as the control plane of its participant knows them.
    pub(super) fn of(readers: &[Guid], participant: &ParticipantSlot) -> Self {
        let mut counts: BTreeMap<GuidPrefix, usize> = BTreeMap::new();
        readers.iter().for_each(|reader| *counts.entry(reader.prefix).or_default() += 1);
        let participants = participant.look(|control| {
            // One that is not known any more is about to be unmatched.
            let known = counts.into_iter().filter_map(|(prefix, readers)| {
                let (participant, transport) = (prefix.participant(), control.transport_of(prefix)?);
                Some(ParticipantDelivery { participant, readers, transport })
            });
            known.collect()
        });
        Self { participants }
    }

    /// Readers that are reached by shared memory.
    #[must_use]
    pub fn readers_by_memory(&self) -> usize {
        let by_memory = self.participants.iter().filter(|it| it.transport == UsedTransport::Memory);
        by_memory.map(|it| it.readers).sum()
    }
}

const fn reader(count: usize) -> &'static str {
    if count == 1 { "reader" } else { "readers" }
}

/// One line for all readers that are reached by memory, and one for each participant that is not.
impl Display for Delivery {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.participants.is_empty() {
            return f.write_str("no reader matches");
        }
        let mut separator = "";
        let by_memory = self.readers_by_memory();
        if by_memory > 0 {
            write!(f, "memory to {by_memory} {} of this host", reader(by_memory))?;
            separator = "\n";
        }
        for ParticipantDelivery { participant, readers, transport } in &self.participants {
            if let UsedTransport::Udp(reason) = transport {
                let word = reader(*readers);
                write!(f, "{separator}UDP to {readers} {word} of participant {participant}: {reason}")?;
                let advice = reason.advice();
                if !advice.is_empty() {
                    write!(f, "; {advice}")?;
                }
                separator = "\n";
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use plainsong_proto::discovery::MemoryRefusal;

    use super::*;

    #[test]
    fn each_participant_that_is_not_reached_by_memory_has_its_reason_and_a_cure_in_one_line() {
        let of = |number, readers, transport| {
            let participant = GuidPrefix([number; 12]).participant();
            ParticipantDelivery { participant, readers, transport }
        };
        let refused = |reason| UsedTransport::Udp(reason);
        let delivery = Delivery {
            participants: vec![
                of(1, 2, UsedTransport::Memory),
                of(2, 1, refused(MemoryRefusal::OtherUser(1_000))),
                of(3, 1, UsedTransport::Memory),
                of(4, 4, refused(MemoryRefusal::OtherHost)),
            ],
        };
        assert_eq!(delivery.readers_by_memory(), 3);
        let text = delivery.to_string();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "memory to 3 readers of this host");
        assert!(lines[1].starts_with("UDP to 1 reader of participant 0202"), "{text}");
        assert!(lines[1].ends_with("PLAINSONG_MEMORY_USERS on both sides"), "{text}");
        assert!(lines[2].ends_with(": on another host"), "{text}");
        assert_eq!(lines.len(), 3, "{text}");
        assert_eq!(Delivery { participants: Vec::new() }.to_string(), "no reader matches");
    }
}
