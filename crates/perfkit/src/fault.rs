//! A writer that goes wrong on purpose, and says exactly how often it did.

use std::time::Duration;

use crate::adapter::{Failure, Writer};
use crate::event::Totals;
use crate::payload::SIZE_WITH_CHECKSUM;
use crate::spec::Faults;

/// Between a workload and the writer of a product.
pub struct Faulty {
    writer: Box<dyn Writer>,
    faults: Faults,
    written: u64,
    injected: Totals,
    /// The sample that is written after the next one of its instance.
    held: Option<u32>,
    held_payload: Vec<u8>,
    scratch: Vec<u8>,
}

impl Faulty {
    /// Around this writer, for payloads up to that size.
    #[must_use]
    pub fn new(writer: Box<dyn Writer>, faults: Faults, payload_max: u64) -> Self {
        let capacity = usize::try_from(payload_max).unwrap_or(0);
        let room = |needed: bool| Vec::with_capacity(if needed { capacity } else { 0 });
        Self {
            writer,
            written: 0,
            injected: Totals::default(),
            held: None,
            held_payload: room(faults.swap_every > 0),
            scratch: room(faults.corrupt_every > 0),
            faults,
        }
    }

    /// Writes a sample, or what becomes of it.
    ///
    /// # Errors
    /// Those of the product's writer.
    pub fn write(&mut self, instance: u32, payload: &[u8]) -> Result<(), Failure> {
        if !self.faults.any() {
            return self.writer.write(instance, payload);
        }
        if self.held == Some(instance) {
            self.held = None;
            self.writer.write(instance, payload)?;
            self.injected.reordered += 1;
            return self.writer.write(instance, &self.held_payload);
        }
        self.written += 1;
        let falls = |every: u64| every > 0 && self.written.is_multiple_of(every);
        if falls(self.faults.drop_every) {
            self.injected.lost += 1;
            return Ok(());
        }
        if falls(self.faults.duplicate_every) {
            self.writer.write(instance, payload)?;
            self.injected.duplicates += 1;
            return self.writer.write(instance, payload);
        }
        if self.held.is_none() && falls(self.faults.swap_every) {
            self.held = Some(instance);
            self.held_payload.clear();
            self.held_payload.extend_from_slice(payload);
            return Ok(());
        }
        // What has no checksum cannot be seen to be wrong.
        if falls(self.faults.corrupt_every) && payload.len() >= SIZE_WITH_CHECKSUM {
            self.scratch.clear();
            self.scratch.extend_from_slice(payload);
            if let Some(last) = self.scratch.last_mut() {
                *last ^= 0x10;
            }
            self.injected.corrupted += 1;
            return self.writer.write(instance, &self.scratch);
        }
        self.writer.write(instance, payload)
    }

    /// Writes what is still held: after all, it is in order.
    ///
    /// # Errors
    /// Those of the product's writer.
    pub fn finish(&mut self) -> Result<(), Failure> {
        let result = match self.held.take() {
            Some(instance) => self.writer.write(instance, &self.held_payload),
            None => Ok(()),
        };
        self.writer.flush();
        result
    }

    /// What went wrong so far.
    #[must_use]
    pub fn injected(&self) -> Totals {
        self.injected
    }

    /// The number of readers that are matched now.
    pub fn matched(&mut self) -> u32 {
        self.writer.matched()
    }

    /// See [`Writer::flush`].
    pub fn flush(&mut self) {
        self.writer.flush();
    }

    /// See [`Writer::wait_acknowledged`].
    pub fn wait_acknowledged(&mut self, timeout: Duration) -> bool {
        self.writer.wait_acknowledged(timeout)
    }
}

impl Faults {
    /// Whether a writer does anything wrong.
    #[must_use]
    pub fn any(&self) -> bool {
        [self.drop_every, self.duplicate_every, self.swap_every, self.corrupt_every]
            .iter()
            .any(|every| *every > 0)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Notes(Arc<Mutex<Vec<u8>>>);

    impl Writer for Notes {
        fn write(&mut self, _instance: u32, payload: &[u8]) -> Result<(), Failure> {
            self.0.lock().expect("no panics").push(payload[0]);
            Ok(())
        }

        fn matched(&mut self) -> u32 {
            1
        }
    }

    fn written(faults: Faults, count: u8) -> (Vec<u8>, Totals) {
        let notes = Notes::default();
        let mut faulty = Faulty::new(Box::new(notes.clone()), faults, 20);
        for number in 0..count {
            faulty.write(0, &[number; 20]).expect("notes never fail");
        }
        faulty.finish().expect("notes never fail");
        let order = notes.0.lock().expect("no panics").clone();
        (order, faulty.injected())
    }

    #[test]
    fn what_goes_wrong_is_what_is_told() {
        let (order, injected) = written(Faults { drop_every: 3, ..Faults::default() }, 7);
        assert_eq!((order, injected.lost), (vec![0, 1, 3, 4, 6], 2));
        let (order, injected) = written(Faults { duplicate_every: 2, ..Faults::default() }, 4);
        assert_eq!((order, injected.duplicates), (vec![0, 1, 1, 2, 3, 3], 2));
        let (order, injected) = written(Faults { swap_every: 2, ..Faults::default() }, 6);
        assert_eq!((order, injected.reordered), (vec![0, 2, 1, 3, 5, 4], 2));
    }

    #[test]
    fn the_last_sample_has_nothing_to_be_exchanged_with() {
        let (order, injected) = written(Faults { swap_every: 3, ..Faults::default() }, 3);
        assert_eq!((order, injected.reordered), (vec![0, 1, 2], 0));
    }
}
