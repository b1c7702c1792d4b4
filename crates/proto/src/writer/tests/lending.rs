//! Long samples whose octets the application lends while it writes.

use super::*;
use crate::lent::Lent;
use crate::payload::COPIED_BYTES_MAX;

const MIB: usize = 1 << 20;
/// What the buffer had before.
const STALE: u8 = 0xee;
const HEAD: [u8; 4] = [1, 2, 3, 4];
const TAIL: [u8; 3] = [5, 6, 7];

fn octets(seed: usize) -> Vec<u8> {
    (0..MIB).map(|index| ((index + seed) % 233) as u8).collect()
}

fn whole(octets: &[u8]) -> Vec<u8> {
    [&HEAD[..], octets, &TAIL].concat()
}

fn best_effort(number: u8) -> MatchedReader {
    reader(number, QosSet::reader())
}

/// A reader that holds so much that a sample leaves in one burst.
fn roomy(reader: MatchedReader) -> MatchedReader {
    MatchedReader { receive_bytes: 8 << 20, ..reader }
}

impl Story {
    fn of(readers: &[MatchedReader]) -> Self {
        let mut story = Self::new(QosSet::writer().keep_all());
        readers.iter().for_each(|reader| story.matched(reader));
        story.sent();
        story
    }

    fn borrows(&self) -> bool {
        self.writer.borrows(self.now.mono)
    }

    /// Writes as the driver does, and gives what was sent; the octets are gone afterwards.
    fn lend(&mut self, octets: Vec<u8>) -> Vec<Sent> {
        let mut payload = Payload::from_vec([&HEAD[..], &vec![STALE; octets.len()], &TAIL].concat());
        let lent = Lent::new(&payload, HEAD.len(), &octets);
        let (wall, sample) = (self.now.wall, (handle(1).into(), &mut payload));
        self.writer.write_lent(self.now, sample, &lent, wall, &mut self.out).unwrap();
        let mut ear = Ear::default();
        for transmit in self.out.transmits() {
            let datagram: Vec<u8> = self.out.slices_lent(transmit, &lent).flatten().copied().collect();
            assert_eq!(datagram.len(), transmit.len());
            let mut drops = DropCounters::default();
            let from = Locator::default();
            receiver::datagram(self.now, from, &datagram, None, &mut ear, &mut drops, &mut Outbox::new());
            assert_eq!(drops, DropCounters::default());
        }
        self.out.clear_transmits();
        self.writer.settle_lent(&lent);
        self.writer.sent(self.now.mono);
        ear.0
    }
}

/// What the fragments are, put together.
fn put_together(sent: &[Sent]) -> Vec<u8> {
    let fragments = sent.iter().filter_map(|sent| match sent {
        Sent::Fragment(fragment) => Some(fragment),
        _ => None,
    });
    let mut whole = Vec::new();
    for fragment in fragments {
        let start = (fragment.fragment as usize - 1) * usize::from(fragment.fragment_bytes);
        assert_eq!(start, whole.len());
        whole.extend(&fragment.payload);
    }
    whole
}

#[test]
fn a_lone_sample_leaves_from_where_it_is_and_is_kept_as_a_copy() {
    let reader = roomy(reliable(7));
    let mut story = Story::of(std::slice::from_ref(&reader));
    for number in 1..=3 {
        let sample = whole(&octets(number as usize));
        assert!(story.borrows());
        assert!(put_together(&story.lend(octets(number as usize))) == sample, "what was sent");
        story.acknack(&reader, number, &[number]).unwrap();
        story.pass(Duration::from_millis(50));
        assert!(put_together(&story.sent()) == sample, "what is sent again");
        story.acknack(&reader, number + 1, &[]).unwrap();
    }
}

#[test]
fn a_short_last_fragment_leaves_from_where_it_is_too() {
    let reader = roomy(reliable(7));
    let mut story = Story::of(std::slice::from_ref(&reader));
    let sent = story.lend(octets(1));
    let Some(Sent::Fragment(first)) = sent.first() else { panic!("{:?}", sent.first()) };
    let fragment_bytes = usize::from(first.fragment_bytes);
    for (number, rest) in (2..).zip([TAIL.len() + 1, 170, COPIED_BYTES_MAX]) {
        story.acknack(&reader, number, &[]).unwrap();
        story.pass(Duration::from_millis(50));
        let mut octets = octets(number as usize);
        octets.truncate(8 * fragment_bytes + rest - HEAD.len() - TAIL.len());
        assert!(story.borrows());
        assert!(put_together(&story.lend(octets.clone())) == whole(&octets), "a fragment of {rest} octets");
    }
}

#[test]
fn what_one_burst_does_not_take_follows_with_the_copy() {
    for reader in [reliable(7), best_effort(8)] {
        let mut story = Story::of(std::slice::from_ref(&reader));
        let mut sent = story.lend(octets(1));
        let first = put_together(&sent).len();
        assert!((64_000..MIB).contains(&first), "{first} octets in the first burst");
        story.pass(Duration::from_millis(100));
        sent.extend(story.sent());
        assert!(put_together(&sent) == whole(&octets(1)), "{:?}", reader.guid);
    }
}

#[test]
fn what_is_cut_for_other_hosts_is_whole() {
    let there = MatchedReader { same_host: false, ..best_effort(7) };
    let mut story = Story::of(&[there]);
    let mut sent = story.lend(octets(3));
    story.pass(Duration::from_secs(2));
    sent.extend(story.sent());
    assert!(put_together(&sent) == whole(&octets(3)));
    // Short fragments are copied when the datagram is composed.
    let Some(Sent::Fragment(first)) = sent.first() else { panic!("{:?}", sent.first()) };
    let end = MIB + HEAD.len() + TAIL.len();
    assert!(
        usize::from(first.fragment_bytes) < 2_000
            && end % usize::from(first.fragment_bytes) < COPIED_BYTES_MAX
    );
}

#[test]
fn a_late_joiner_gets_the_copy() {
    let reader = roomy(durable(7));
    let mut story = Story::new(QosSet::writer().keep_all().durability(Durability::TransientLocal));
    story.matched(&reader);
    story.sent();
    story.lend(octets(5));
    story.acknack(&reader, 2, &[]).unwrap();
    let late = roomy(durable(8));
    story.matched(&late);
    story.pass(Duration::from_millis(50));
    story.sent();
    story.acknack(&late, 1, &[1]).unwrap();
    story.pass(Duration::from_millis(50));
    assert!(put_together(&story.sent()) == whole(&octets(5)));
}

#[test]
fn what_waited_for_room_is_copied_first() {
    let here = roomy(reliable(7));
    let mut qos = QosSet::writer().keep_all();
    qos.resource_limits.max_samples = 1;
    let mut story = Story::new(qos);
    story.matched(&here);
    story.lend(octets(1));
    assert_eq!(story.write(1, &octets(2)), Err(WriteError::Full));
    story.pass(Duration::from_millis(5));
    story.acknack(&here, 2, &[]).unwrap();
    assert!(!story.borrows(), "the pause was not the application's");
    story.write(1, &octets(2)).unwrap();
    story.acknack(&here, 3, &[]).unwrap();
    story.pass(Duration::from_millis(5));
    assert!(story.borrows());
}

#[test]
fn what_follows_another_or_goes_elsewhere_is_copied_first() {
    let here = roomy(reliable(7));
    assert!(!Story::of(&[]).borrows(), "nobody hears it");
    assert!(!Story::of(&[here.clone(), MatchedReader { same_host: false, ..reliable(8) }]).borrows());
    let filtering = MatchedReader { content_filter: Some(content::filter("1")), ..reliable(8) };
    assert!(!Story::of(&[here.clone(), filtering]).borrows(), "a filter reads it");

    let mut story = Story::of(std::slice::from_ref(&here));
    story.lend(octets(1));
    story.advance_to(story.now.mono.after(Duration::from_micros(4)).unwrap());
    assert!(!story.borrows(), "a flow");
    story.advance_to(story.now.mono.after(Duration::from_micros(1)).unwrap());
    assert!(story.borrows());

    let mut story = Story::of(&[best_effort(7)]);
    story.lend(octets(1));
    story.advance_to(story.now.mono.after(Duration::from_micros(10)).unwrap());
    assert!(!story.borrows(), "some of it waits for the next burst");
    story.pass(Duration::from_millis(100));
    assert!(story.borrows());
}
