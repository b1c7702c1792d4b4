//! Messages to the same destinations become one: each datagram costs both sides about as much as all that a short one has
//! in it.

use std::ops::Range;

use crate::outbox::{Outbox, Segment, Transmit};

use super::header::{HEADER_BYTES, id};
use super::info::DESTINATION_BYTES;

/// No larger message is made: any path takes this much.
const MERGED_BYTES_MAX: usize = 1_456;
/// Messages among which the last one to the same destinations is looked for.
const LOOK_BACK: usize = 256;

/// Messages that become one.
struct Group {
    /// Indices of transmits.
    members: Vec<usize>,
    len: usize,
}

impl Outbox {
    /// Merges the messages from the `first` on that go to the same destinations, as far as an Ethernet frame reaches; their
    /// order at each destination stays. They must be of participants and endpoints that speak in their own name, each
    /// addressed to one participant or to all from its beginning to its end.
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
                    group.members.push(next);
                    group.len += len - HEADER_BYTES;
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
        let back = groups.iter().rev().take(LOOK_BACK).position(|group| same(&group))?;
        groups.len().checked_sub(back + 1)
    }

    fn can_follow(&self, group: &Group, next: usize) -> bool {
        let first = group.members.first().and_then(|index| self.transmits.get(*index));
        let (Some(first), Some(next)) = (first, self.transmits.get(next)) else { return false };
        let (Some(one), Some(other)) = (self.beginning(first), self.beginning(next)) else { return false };
        group.len + next.len - HEADER_BYTES <= MERGED_BYTES_MAX
            && one.header == other.header
            && one.is_addressed == other.is_addressed
            // A sample without a timestamp of its own would have that of the one before.
            && !matches!(other.submessage, id::DATA | id::DATA_FRAG)
    }

    /// Puts the segments of each group behind each other.
    fn regroup(&mut self, first: usize, groups: &[Group]) {
        let old = self.transmits.split_off(first);
        let Some(start) = old.first().map(|transmit| transmit.segments.start) else { return };
        let mut segments: Vec<_> = self.segments.split_off(start).into_iter().map(Some).collect();
        for group in groups {
            let begin = self.segments.len();
            let members = group.members.iter().filter_map(|index| old.get(index - first));
            for (place, transmit) in members.clone().enumerate() {
                let range = transmit.segments.start - start..transmit.segments.end - start;
                let own = segments.get_mut(range).into_iter().flatten().filter_map(Option::take);
                for (index, mut segment) in own.enumerate() {
                    // The header of the first holds for all.
                    if let Segment::Bytes(Range { start, .. }) = &mut segment
                        && place > 0
                        && index == 0
                    {
                        *start += HEADER_BYTES;
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
            Segment::Payload(_) => None,
        }
    }
}

/// How a message begins.
struct Beginning<'a> {
    header: &'a [u8],
    /// With an INFO_DST.
    is_addressed: bool,
    /// The first submessage that is no INFO_DST.
    submessage: u8,
}

impl<'a> Beginning<'a> {
    fn of(bytes: &'a [u8]) -> Option<Self> {
        let (header, rest) = bytes.split_at_checked(HEADER_BYTES)?;
        let is_addressed = *rest.first()? == id::INFO_DST;
        let submessage = *rest.get(if is_addressed { DESTINATION_BYTES } else { 0 })?;
        Some(Self { header, is_addressed, submessage })
    }
}

#[cfg(test)]
mod tests {
    use crate::guid::{EntityId, GuidPrefix};
    use crate::locator::Locator;
    use crate::outbox::Outbox;
    use crate::payload::Payload;
    use crate::seq::{SequenceNumber, SequenceSet};
    use crate::time::Time;
    use crate::wire::AckNack;
    use crate::wire::compose::DataHeader;

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
        let expected = [&apart[0][..], &apart[1][20..], &apart[2][20..]].concat();
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
            [3, 4, 6, 7].iter().fold(apart[1].clone(), |one, next| [&one, &apart[*next][20..]].concat());
        let other = [&apart[2][..], &apart[5][20..], &apart[8][20..]].concat();
        assert_eq!(datagrams(&out), [apart[0].clone(), one, other, rest]);
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
