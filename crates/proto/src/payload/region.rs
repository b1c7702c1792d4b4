//! Octets in memory that is not of the heap of this process: shared with another one, as a rule.

use std::any::Any;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use super::{Octets, Payload, narrow};

/// Memory that a transport lends as long as anybody has it.
///
/// Whoever shares it may change it at any time: nothing that is read from it holds when it is read again, so
/// what is to stay true is copied first and checked then.
pub trait Region: Send + Sync + Debug {
    /// All of it; always the same place and length.
    fn octets(&self) -> &[u8];

    /// For the transport that it is of.
    fn as_any(&self) -> &dyn Any;
}

/// A range of a region.
#[derive(Clone)]
pub(crate) struct RegionOctets {
    region: Arc<dyn Region>,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl RegionOctets {
    pub(crate) const fn region(&self) -> &Arc<dyn Region> {
        &self.region
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        self.region.octets().get(self.start..self.end).unwrap_or(&[])
    }

    pub(super) fn narrow(&mut self, range: &Range<usize>) {
        let narrowed = narrow(self.start..self.end, range);
        (self.start, self.end) = (narrowed.start, narrowed.end);
    }
}

impl Payload {
    /// A range of a region, clipped to its length.
    #[must_use]
    pub fn from_region(region: Arc<dyn Region>, range: Range<usize>) -> Self {
        let Range { start, end } = narrow(0..region.octets().len(), &range);
        Self(Octets::Region(RegionOctets { region, start, end }))
    }

    /// The region that the octets are in, and where.
    #[must_use]
    pub fn region(&self) -> Option<(&Arc<dyn Region>, Range<usize>)> {
        match &self.0 {
            Octets::Region(part) => Some((&part.region, part.start..part.end)),
            Octets::None | Octets::Short { .. } | Octets::Own(_) | Octets::Shared(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::SHORT_BYTES_MAX;

    #[derive(Debug)]
    struct Chunk(Vec<u8>);

    impl Region for Chunk {
        fn octets(&self) -> &[u8] {
            &self.0
        }

        fn as_any(&self) -> &dyn Any {
            self
        }
    }

    fn chunk(length: usize) -> Arc<dyn Region> {
        Arc::new(Chunk((0..length).map(|octet| octet as u8).collect()))
    }

    #[test]
    fn a_payload_in_a_region_is_shared_until_the_last_lets_go() {
        let region = chunk(1_000);
        let payload = Payload::from_region(Arc::clone(&region), 100..900);
        assert_eq!((payload.len(), payload.as_slice()), (800, &region.octets()[100..900]));
        let (copy, part) = (payload.clone(), payload.slice(10..20));
        assert_eq!(part.as_slice().as_ptr(), region.octets()[110..].as_ptr(), "nothing is copied");
        assert_eq!(Arc::strong_count(&region), 4);
        let (mut slot, mut taken) = (copy, Payload::empty());
        slot.hand_over(&mut taken);
        assert!(slot.is_empty());
        taken.copy_over(&mut slot);
        assert_eq!((slot.len(), taken.len(), Arc::strong_count(&region)), (800, 800, 5));
        slot.vacate(0);
        taken.copy_few(&[1; 3]);
        assert!(slot.is_empty() && taken.region().is_none());
        drop((payload, part));
        assert_eq!(Arc::strong_count(&region), 1);
    }

    #[test]
    fn what_is_beyond_a_region_is_cut_off() {
        let region = chunk(SHORT_BYTES_MAX);
        let payload = Payload::from_region(Arc::clone(&region), 8..usize::MAX);
        let (of, range) = payload.region().unwrap();
        assert!(of.as_any().downcast_ref::<Chunk>().is_some());
        assert_eq!((range, payload.slice(0..9_999).len()), (8..SHORT_BYTES_MAX, SHORT_BYTES_MAX - 8));
        assert!(Payload::from_region(region, 9_999..10_000).is_empty());
    }
}
