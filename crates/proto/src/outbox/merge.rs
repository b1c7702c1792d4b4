//! Messages to the same destinations become one: each datagram costs both sides about as much as all that a
//! short one has in it.
//!
//! So all that a datagram for built-in endpoints causes, and all that is due at once, leaves together. Two
//! participants know all of each other after some six datagrams.

use std::ops::Range;

use super::{Outbox, Segment, Transmit};

use crate::tuning::memory::{MERGE_LOOK_BACK, MERGED_BYTES_MAX};
use crate::wire::header::{HEADER_BYTES, id};
use crate::wire::info::DESTINATION_BYTES;

/// Messages that become one.
struct Group {
    /// Indices of transmits.
    members: Vec<usize>,
    len: usize,
}

impl Outbox {
    /// Merges the messages from the `first` on that go to the same destinations, as far as an Ethernet frame
    /// reaches; their order at each destination stays. They must be of participants and endpoints that speak
    /// in their own name, each addressed to one participant or to all from its beginning to its end.
    pub fn merge(&mut self, first: usize) {
        if self.transmits.len() < first.saturating_add(2) {
            return;
        }
        let mut groups: Vec<Group> = Vec::new();
        for next in first..self.transmits.len() {
            let Some(len) = self.transmits.get(next).map(Transmit::len) else { return };
            let place = self.last_to_same(&groups, next);
            match place.and_then(|place| groups.get_mut(place)).filter(|group| self.can_follow(group, next)) {
                Some(group) => {
                    group.len += len - self.in_force(group.members.last().copied(), next);
                    group.members.push(next);
                }
                None => groups.push(Group { members: vec![next], len }),
            }
        }
        if groups.len() < self.transmits.len() - first {
            self.regroup(first, &groups);
        }
    }

    fn last_to_same(&self, groups: &[Group], next: usize) -> Option<usize> {
        let destinations = |index: usize| self.transmits.get(index).map(|it| self.destinations(it));
        let wanted = destinations(next);
        let same = |group: &&Group| group.members.first().and_then(|index| destinations(*index)) == wanted;
        let back = groups.iter().rev().take(MERGE_LOOK_BACK).position(|group| same(&group))?;
        groups.len().checked_sub(back + 1)
    }

    fn can_follow(&self, group: &Group, next: usize) -> bool {
        let first = group.members.first().and_then(|index| self.transmits.get(*index));
        let (Some(first), Some(next)) = (first, self.transmits.get(next)) else { return false };
        let (Some(one), Some(other)) = (self.beginning(first), self.beginning(next)) else { return false };
        let last = group.members.last().and_then(|index| self.transmits.get(*index));
        group.len + next.len - HEADER_BYTES <= MERGED_BYTES_MAX
            // A message ends with what goes beside it.
            && last.is_none_or(|last| self.parts(last).1.is_none())
            && one.header == other.header
            && one.destination.is_some() == other.destination.is_some()
            // A sample without a timestamp of its own would have that of the one before.
            && !matches!(other.submessage, id::DATA | id::DATA_FRAG)
    }

    /// Octets at the beginning of a message that say nothing new behind another one: the header, and the
    /// destination where it is the same.
    fn in_force(&self, before: Option<usize>, next: usize) -> usize {
        let beginning = |index: usize| self.transmits.get(index).and_then(|it| self.beginning(it));
        let destination = |index: usize| beginning(index).and_then(|it| it.destination);
        let same = destination(next).is_some_and(|it| before.and_then(destination) == Some(it));
        if same { HEADER_BYTES + DESTINATION_BYTES } else { HEADER_BYTES }
    }

    /// Puts the segments of each group behind each other.
    fn regroup(&mut self, first: usize, groups: &[Group]) {
        let skips = |group: &Group| {
            let before = std::iter::once(None).chain(group.members.iter().copied().map(Some));
            let pairs = before.zip(&group.members);
            pairs.map(|(before, next)| before.map_or(0, |_| self.in_force(before, *next))).collect()
        };
        let skips: Vec<Vec<usize>> = groups.iter().map(skips).collect();
        let old = self.transmits.split_off(first);
        let Some(start) = old.first().map(|transmit| transmit.segments.start) else { return };
        let mut segments: Vec<_> = self.segments.split_off(start).into_iter().map(Some).collect();
        for (group, skips) in groups.iter().zip(&skips) {
            let begin = self.segments.len();
            let members = group.members.iter().filter_map(|index| old.get(index - first));
            for (transmit, skip) in members.clone().zip(skips) {
                let range = transmit.segments.start - start..transmit.segments.end - start;
                let own = segments.get_mut(range).into_iter().flatten().filter_map(Option::take);
                for (index, mut segment) in own.enumerate() {
                    // The header of the first holds for all, a destination until the next.
                    if let Segment::Bytes(Range { start, .. }) = &mut segment
                        && index == 0
                    {
                        *start += skip;
                    }
                    self.segments.push(segment);
                }
            }
            if let Some(transmit) = members.clone().next() {
                let (segments, destinations) = (begin..self.segments.len(), transmit.destinations.clone());
                self.transmits.push(Transmit { segments, destinations, len: group.len });
            }
        }
    }

    fn beginning(&self, transmit: &Transmit) -> Option<Beginning<'_>> {
        match self.segments.get(transmit.segments.start)? {
            Segment::Bytes(range) => Beginning::of(self.bytes.get(range.clone())?),
            Segment::Payload(_) | Segment::Attachment(_) => None,
        }
    }
}

/// How a message begins.
struct Beginning<'a> {
    header: &'a [u8],
    /// The INFO_DST, if it has one.
    destination: Option<&'a [u8]>,
    /// The first submessage that is no INFO_DST.
    submessage: u8,
}

impl<'a> Beginning<'a> {
    fn of(bytes: &'a [u8]) -> Option<Self> {
        let (header, rest) = bytes.split_at_checked(HEADER_BYTES)?;
        if *rest.first()? != id::INFO_DST {
            return Some(Self { header, destination: None, submessage: *rest.first()? });
        }
        let (destination, rest) = rest.split_at_checked(DESTINATION_BYTES)?;
        Some(Self { header, destination: Some(destination), submessage: *rest.first()? })
    }
}

#[cfg(test)]
mod tests {
    use crate::guid::{EntityId, GuidPrefix};
    use crate::locator::Locator;
    use crate::outbox::DataHeader;
    use crate::outbox::Outbox;
    use crate::payload::Payload;
    use crate::seq::{SequenceNumber, SequenceSet};
    use crate::time::Time;
    use crate::wire::AckNack;

    const SOURCE: GuidPrefix = GuidPrefix([1; 12]);
    const PEER: GuidPrefix = GuidPrefix([2; 12]);

    fn to(port: u16) -> [Locator; 1] {
        [Locator::udp([127, 0, 0, 1].into(), port)]
    }

    fn ask(out: &mut Outbox, prefix: GuidPrefix, port: u16, count: i32) {
        ask_from(SOURCE, out, prefix, port, count);
    }

    fn ask_from(source: GuidPrefix, out: &mut Outbox, prefix: GuidPrefix, port: u16, count: i32) {
        let mut message = out.message(source, &to(port), 1_456);
        message.info_destination(prefix);
        let missing = SequenceSet::empty(SequenceNumber::FIRST);
        let (reader, writer) = (EntityId::SEDP_PUBLICATIONS_READER, EntityId::SEDP_PUBLICATIONS_WRITER);
        assert!(message.acknack(&AckNack {
            reader,
            writer,
            missing,
            count,
            final_flag: false,
            heartbeat: None
        }));
    }

    fn tell(out: &mut Outbox, time: Option<Time>, octets: usize) {
        let mut message = out.message(SOURCE, &to(1), 65_000);
        message.info_destination(PEER);
        message.info_timestamp(time);
        let header = DataHeader {
            reader: EntityId::UNKNOWN,
            writer: EntityId::SEDP_PUBLICATIONS_WRITER,
            sequence_number: SequenceNumber::FIRST,
            inline_qos: &[],
            key_only: false,
        };
        assert!(message.data(&header, &Payload::from_vec(vec![7; octets])));
    }

    fn datagrams(out: &Outbox) -> Vec<Vec<u8>> {
        out.transmits().iter().map(|transmit| out.datagram(transmit)).collect()
    }

    #[test]
    fn messages_to_one_destination_become_one_with_all_their_submessages() {
        let (mut out, mut apart) = (Outbox::new(), Outbox::new());
        for out in [&mut out, &mut apart] {
            ask(out, PEER, 1, 1);
            tell(out, Some(Time(5)), 1_000);
            ask(out, PEER, 1, 2);
        }
        out.merge(0);
        let apart = datagrams(&apart);
        // One header, one destination.
        let expected = [&apart[0][..], &apart[1][36..], &apart[2][36..]].concat();
        assert_eq!(datagrams(&out), [expected]);
        assert_eq!(out.transmits()[0].len(), out.datagram(&out.transmits()[0]).len());
    }

    #[test]
    fn what_goes_elsewhere_in_between_is_no_obstacle() {
        let mut out = Outbox::new();
        ask(&mut out, PEER, 9, 0);
        for count in 1..=3 {
            (1..=2).for_each(|port| ask(&mut out, PEER, port, count));
            tell(&mut out, Some(Time(5)), 600);
        }
        let apart = datagrams(&out);
        out.merge(1);
        let destinations: Vec<_> = out.transmits().iter().map(|it| out.destinations(it)[0]).collect();
        assert_eq!(destinations, [to(9)[0], to(1)[0], to(2)[0], to(1)[0]]);
        // The third sample does not fit any more.
        let rest = apart[9].clone();
        let one =
            [3, 4, 6, 7].iter().fold(apart[1].clone(), |one, next| [&one, &apart[*next][36..]].concat());
        let other = [&apart[2][..], &apart[5][36..], &apart[8][36..]].concat();
        assert_eq!(datagrams(&out), [apart[0].clone(), one, other, rest]);
    }

    #[test]
    fn what_goes_to_two_participants_of_one_process_names_each_once_in_a_row() {
        let (mut out, mut apart) = (Outbox::new(), Outbox::new());
        for out in [&mut out, &mut apart] {
            for (prefix, count) in [(PEER, 1), (PEER, 2), (SOURCE, 3), (SOURCE, 4), (PEER, 5)] {
                ask(out, prefix, 1, count);
            }
        }
        out.merge(0);
        let apart = datagrams(&apart);
        let begin = [0, 36, 20, 36, 20];
        let expected: Vec<u8> =
            apart.iter().zip(begin).flat_map(|(one, begin)| one[begin..].to_vec()).collect();
        assert_eq!(datagrams(&out), [expected]);
        assert_eq!(out.transmits()[0].len(), out.datagram(&out.transmits()[0]).len());
    }

    #[test]
    fn others_and_what_would_mean_something_else_stay_apart() {
        let cases: [fn(&mut Outbox); 5] = [
            |out| ask(out, PEER, 2, 1),
            |out| ask(out, GuidPrefix::UNKNOWN, 1, 1),
            |out| tell(out, None, 10),
            |out| tell(out, Some(Time(5)), 1_400),
            |out| ask_from(PEER, out, PEER, 1, 1),
        ];
        for other in cases {
            let (mut out, mut apart) = (Outbox::new(), Outbox::new());
            for out in [&mut out, &mut apart] {
                ask(out, PEER, 1, 1);
                other(out);
            }
            out.merge(0);
            assert_eq!(out.transmits().len(), 2);
            assert_eq!(datagrams(&out), datagrams(&apart));
        }
    }

    #[test]
    fn only_what_follows_the_first_is_merged() {
        let mut out = Outbox::new();
        (1..=3).for_each(|count| ask(&mut out, PEER, 1, count));
        out.merge(1);
        assert_eq!(out.transmits().len(), 2);
        out.merge(2);
        assert_eq!(out.transmits().len(), 2);
        let mut empty = Outbox::new();
        empty.merge(0);
        assert!(empty.transmits().is_empty());
    }
}
