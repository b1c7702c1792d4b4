//! Samples that do not decode as their reader's type: each is discarded by itself, counted, and explained
//! once for each writer.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use plainsong_proto::cdr::{Encapsulation, Extensibility};
use plainsong_proto::discovery::Party;
use plainsong_proto::guid::Guid;
use plainsong_proto::malformed::Malformed;
use plainsong_proto::reader::{CachedSamples, Discarded, Fetch, Reader, Undecodable};
use plainsong_proto::sample_info::InstanceSelector;

use crate::base::clock;
use crate::data_reader::ReaderInner;
use crate::error::Result;
use crate::group::Member;
use crate::participant::DomainParticipant;
use crate::sample::Store;

/// Samples of one writer that a reader cannot decode, and why. `Display` tells it in a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndecodableSamples {
    /// The reader.
    pub reader: Guid,
    /// Its topic.
    pub topic: String,
    /// The name of its type.
    pub type_name: String,
    /// How its type may evolve.
    pub extensibility: Extensibility,
    /// The writer; what is known of it.
    pub writer: Party,
    /// How many samples so far.
    pub count: u64,
    /// Representation identifier of the first (XTypes 1.3 §7.6.3.1.2); `None` when it was too short to have
    /// one.
    pub representation_id: Option<u16>,
    /// What is wrong with the first.
    pub reason: Malformed,
}

/// Called with each writer whose samples do not decode.
pub(crate) type OnUndecodable = Arc<dyn Fn(&UndecodableSamples) + Send + Sync>;

impl DomainParticipant {
    /// Calls `callback` once for each reader of this participant and writer whose samples do not decode as
    /// the reader's type. Where the key decodes, that is seen when the application reads or takes the sample.
    /// [`DataReader::undecodable`](crate::data_reader::DataReader::undecodable) has those from before.
    pub fn on_undecodable(&self, callback: impl Fn(&UndecodableSamples) + Send + Sync + 'static) {
        self.inner.router.set_on_undecodable(Arc::new(callback));
    }
}

impl ReaderInner {
    /// What could not be decoded, of each writer.
    pub(crate) fn undecodable(&self) -> Vec<UndecodableSamples> {
        let found: Vec<_> = self.look(|reader| reader.undecodable().collect());
        found.into_iter().map(|undecodable| self.explain(undecodable)).collect()
    }

    fn explain(&self, undecodable: Undecodable) -> UndecodableSamples {
        let Undecodable { writer, count, representation_id, reason } = undecodable;
        let known = self.subscriber().participant.slot().ok();
        let known = known.and_then(|slot| slot.look(|control| control.party_of(writer)));
        UndecodableSamples {
            reader: self.guid(),
            topic: self.topic.name.clone(),
            type_name: self.topic.type_name().to_owned(),
            extensibility: self.ty.extensibility(),
            writer: known.unwrap_or_else(|| Party::unknown(writer)),
            count,
            representation_id,
            reason,
        }
    }
}

impl ReaderInner {
    /// Some of the samples just fetched, which are in `cached`, do not decode; the others were stored. These
    /// go, as if they had never come, and the call goes on: it returns nothing only where there is nothing.
    #[cold]
    pub(crate) fn replace_undecodable(
        &self,
        samples: &mut impl Store,
        start: usize,
        fetch: &Fetch<'_>,
        cached: &mut CachedSamples,
        mut undecodable: Vec<(usize, Malformed)>,
    ) -> Result<()> {
        let mut selector = *fetch.selector;
        let (mut kept, mut discarded) = (BTreeMap::new(), 0);
        // No more than there are now: a writer that goes on sending such samples does not keep the caller.
        let discarded_max = undecodable.len() + self.look(Reader::held_samples);
        while !undecodable.is_empty() {
            discarded += undecodable.len();
            let is_undecodable = |at: &usize| undecodable.binary_search_by_key(at, |(at, _)| *at).is_ok();
            let decoded = cached.iter().enumerate().filter(|(at, _)| !is_undecodable(at));
            kept.extend(decoded.map(|(_, sample)| (sample.id, sample.info.instance_handle)));
            let next_instance = matches!(selector.instance, InstanceSelector::NextAfter(_));
            let is_all = cached.len() < selector.samples_max && !(next_instance && kept.is_empty());
            if next_instance && let Some(instance) = kept.values().next() {
                selector.instance = InstanceSelector::Exactly(*instance);
            }
            // Where each sample has its turn among those of other readers, none may come in place of another.
            selector.samples_max = match fetch.selector.samples_max.checked_sub(kept.len()) {
                Some(left) if !is_all && !self.takes_turns && discarded < discarded_max => left,
                _ => 0,
            };
            let mut more = CachedSamples::new();
            self.access(|reader, _| {
                let discarded = Discarded { given: cached, undecodable: &undecodable, kept: &kept };
                let fetch = Fetch { selector: &selector, ..*fetch };
                reader.replace_undecodable(clock::now(), &fetch, &discarded, &mut more);
            })?;
            *cached = more;
            undecodable = self.store(samples, cached);
        }
        let interleaved = self.look(|reader| reader.is_interleaved());
        let grouped = !(interleaved && fetch.selector.instance == InstanceSelector::All);
        samples.settle(start, grouped);
        if kept.is_empty() {
            // Who waits for a sample may have got none though another is there: it has its turn now.
            self.core().wake_waiters();
        }
        Ok(())
    }
}

impl fmt::Display for UndecodableSamples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { topic, type_name, extensibility, writer, count, representation_id, reason, .. } = self;
        write!(f, "topic {topic:?}: {count} of the samples of writer {writer} could not be decoded: ")?;
        match representation_id {
            Some(id) => match Encapsulation::from_id(*id) {
                Ok(encapsulation) => write!(f, "encapsulated as {} ({id:#06x})", encapsulation.name())?,
                Err(_) => write!(f, "encapsulated as {id:#06x}")?,
            },
            None => f.write_str("without encapsulation")?,
        }
        let extensibility = match extensibility {
            Extensibility::Final => "final",
            Extensibility::Appendable => "appendable",
            Extensibility::Mutable => "mutable",
        };
        write!(
            f,
            ", for the reader's {extensibility} type {type_name:?}: {reason}; define the type alike on both sides"
        )
    }
}
