//! A switch: ports, a link for each direction between two of them, and the frames that are on their way.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use crate::nemesis::network::link::{Conditions, Counts, Link, is_multicast};
use crate::random::Random;

/// Frames on their way; more are dropped. At 1,500 octets each this is 192 MB.
const FRAMES_MAX: usize = 1 << 17;

/// A frame on its way to a port. Of those due at once the first sent comes first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct OnItsWay {
    due_ns: u64,
    number: u64,
    to: usize,
    frame: Arc<[u8]>,
}

/// The hardware address of a port.
pub(crate) fn hardware_address(port: usize) -> [u8; 6] {
    [2, 0, 0, 0, 0, port as u8 + 1]
}

/// It decides when which frame arrives where; others bring and fetch them.
pub(crate) struct Switch {
    ports: usize,
    /// One for each pair, `from * ports + to`.
    links: Vec<Link>,
    queue: BinaryHeap<Reverse<OnItsWay>>,
    next_number: u64,
    /// Dropped because too many are on their way.
    overflowed: u64,
}

impl Switch {
    /// With so many ports, and links without conditions.
    pub(crate) fn new(ports: usize, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let links = (0..ports * ports).map(|_| Link::new(random.next())).collect();
        Self { ports, links, queue: BinaryHeap::new(), next_number: 0, overflowed: 0 }
    }

    /// Changes the conditions of each link for which there are some: `of(from, to)`.
    pub(crate) fn change(&mut self, of: impl Fn(usize, usize) -> Option<Conditions>) {
        for from in 0..self.ports {
            for to in (0..self.ports).filter(|to| *to != from) {
                if let Some(conditions) = of(from, to) {
                    self.links[from * self.ports + to].conditions = conditions;
                }
            }
        }
    }

    /// Takes a frame that a port sends.
    pub(crate) fn receive(&mut self, now_ns: u64, from: usize, frame: &[u8]) {
        if is_multicast(frame) {
            let frame: Arc<[u8]> = frame.into();
            (0..self.ports).filter(|to| *to != from).for_each(|to| self.forward(now_ns, from, to, &frame));
        } else if let Some(to) = self.port_of(frame)
            && to != from
        {
            self.forward(now_ns, from, to, &frame.into());
        }
    }

    fn port_of(&self, frame: &[u8]) -> Option<usize> {
        let destination = frame.get(..6)?;
        (0..self.ports).find(|port| hardware_address(*port) == destination)
    }

    fn forward(&mut self, now_ns: u64, from: usize, to: usize, frame: &Arc<[u8]>) {
        for due_ns in self.links[from * self.ports + to].send(now_ns, frame).into_iter().flatten() {
            if self.queue.len() >= FRAMES_MAX {
                self.overflowed += 1;
                continue;
            }
            let number = self.next_number;
            self.next_number += 1;
            self.queue.push(Reverse(OnItsWay { due_ns, number, to, frame: Arc::clone(frame) }));
        }
    }

    /// When the next frame arrives.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.queue.peek().map(|Reverse(it)| it.due_ns)
    }

    /// A frame that has arrived by now, and at which port.
    pub(crate) fn arrived(&mut self, now_ns: u64) -> Option<(usize, Arc<[u8]>)> {
        if self.next_ns()? > now_ns {
            return None;
        }
        self.queue.pop().map(|Reverse(it)| (it.to, it.frame))
    }

    #[cfg(test)]
    pub(crate) fn counts(&self, from: usize, to: usize) -> Counts {
        self.links[from * self.ports + to].counts
    }

    /// What all links together counted.
    pub(crate) fn total(&self) -> Counts {
        let mut total = Counts { queue_full: self.overflowed, ..Counts::default() };
        self.links.iter().for_each(|link| total.add(&link.counts));
        total
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn frame(to: [u8; 6], number: u8) -> Vec<u8> {
        let mut frame = to.to_vec();
        frame.extend([0; 8]);
        frame.push(number);
        frame
    }

    /// Ports and numbers of the frames that have arrived.
    fn arrived(switch: &mut Switch, now_ns: u64) -> Vec<(usize, u8)> {
        let next = || switch.arrived(now_ns).map(|(port, frame)| (port, frame[14]));
        std::iter::from_fn(next).collect()
    }

    const GROUP: [u8; 6] = [1, 0, 0x5e, 0, 0, 1];

    #[test]
    fn frames_go_where_they_are_addressed_to() {
        let mut switch = Switch::new(3, 1);
        switch.receive(0, 0, &frame(hardware_address(2), 1));
        switch.receive(0, 1, &frame(GROUP, 2));
        switch.receive(0, 2, &frame([0xff; 6], 3));
        // To a port that sends it, to nobody, and none at all.
        switch.receive(0, 2, &frame(hardware_address(2), 4));
        switch.receive(0, 2, &frame([8; 6], 5));
        switch.receive(0, 2, &[]);
        assert_eq!(arrived(&mut switch, 0), [(2, 1), (0, 2), (2, 2), (0, 3), (1, 3)]);
        assert_eq!(switch.next_ns(), None);
    }

    #[test]
    fn a_link_has_conditions_for_each_direction() {
        let mut switch = Switch::new(2, 1);
        let cut = Conditions { cut: true, ..Conditions::default() };
        switch.change(|from, _| (from == 0).then_some(cut));
        switch.receive(0, 0, &frame(hardware_address(1), 1));
        switch.receive(0, 1, &frame(hardware_address(0), 2));
        assert_eq!(arrived(&mut switch, 0), [(0, 2)]);
        assert_eq!((switch.counts(0, 1).cut, switch.counts(1, 0).passed), (1, 1));
    }

    #[test]
    fn frames_arrive_when_they_are_due() {
        let mut switch = Switch::new(3, 1);
        let late = |ms| Conditions { delay: Duration::from_millis(ms), ..Conditions::default() };
        switch.change(|_, to| Some(late(to as u64)));
        switch.receive(0, 0, &frame(GROUP, 1));
        assert_eq!(switch.next_ns(), Some(1_000_000));
        assert_eq!(arrived(&mut switch, 999_999), []);
        assert_eq!(arrived(&mut switch, 1_000_000), [(1, 1)]);
        assert_eq!(arrived(&mut switch, 2_000_000), [(2, 1)]);
    }

    #[test]
    fn what_is_on_its_way_has_a_limit() {
        let mut switch = Switch::new(2, 1);
        let to = frame(hardware_address(1), 1);
        (0..=FRAMES_MAX).for_each(|_| switch.receive(0, 0, &to));
        assert_eq!((switch.queue.len(), switch.total().queue_full), (FRAMES_MAX, 1));
    }
}
