//! Samples that do not decode as the reader's type: each is discarded by itself (XTypes 1.3 §7.2.2.7),
//! counted once, and explained once for each writer.
//!
//! Where the key does not decode this is seen when a sample arrives, otherwise when the application reads it:
//! decoding every sample twice would cost more than all else that a reader does.

use std::collections::{BTreeMap, BTreeSet};

use super::access::{Access, CachedSample, CachedSamples, Choice, Content, Fetch};
use super::cache::{Cache, leave};
use super::{Reader, WriterId};
use crate::guid::Guid;
use crate::instance::InstanceHandle;
use crate::malformed::Malformed;
use crate::outbox::{Event, Outbox};
use crate::sample_info::ViewState;
use crate::stats::DropReason;
use crate::status::StatusKind;
use crate::time::Now;
use crate::tuning::reader::{UNDECODABLE_COUNTED_MAX, UNDECODABLE_WRITERS_MAX};

/// Samples of one writer that do not decode, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Undecodable {
    /// The writer.
    pub writer: Guid,
    /// How many so far.
    pub count: u64,
    /// Representation identifier of the first; `None` when it is too short to have one.
    pub representation_id: Option<u16>,
    /// What is wrong with the first.
    pub reason: Malformed,
}

/// What a reader could not decode.
#[derive(Debug, Default)]
pub(super) struct Undecodables {
    count: u64,
    /// Of those, how many are not in SAMPLE_LOST yet.
    pub(super) unnotified: u64,
    /// The oldest first.
    writers: Vec<Explanation>,
    /// Writers that were not told of yet.
    news: Vec<Guid>,
    /// The last samples that were counted when they were read.
    counted: BTreeSet<u64>,
}

#[derive(Debug)]
struct Explanation {
    undecodable: Undecodable,
    is_gone: bool,
}

impl Undecodables {
    /// One more.
    #[cold]
    fn note(&mut self, writer: Guid, payload: &[u8], reason: Malformed) {
        self.count += 1;
        if let Some(known) = self.writers.iter_mut().find(|known| known.undecodable.writer == writer) {
            known.undecodable.count += 1;
            return;
        }
        if self.writers.len() >= UNDECODABLE_WRITERS_MAX {
            let Some(gone) = self.writers.iter().position(|known| known.is_gone) else { return };
            self.writers.remove(gone);
        }
        let representation_id = payload.first_chunk().map(|id| u16::from_be_bytes(*id));
        let undecodable = Undecodable { writer, count: 1, representation_id, reason };
        self.writers.push(Explanation { undecodable, is_gone: false });
        self.news.push(writer);
    }

    /// Whether a sample was not counted before.
    fn is_first(&mut self, id: u64) -> bool {
        let first = self.counted.insert(id);
        if self.counted.len() > UNDECODABLE_COUNTED_MAX {
            self.counted.pop_first();
        }
        first
    }

    /// A writer is no longer matched. What was said of it stays while there is room.
    pub(super) fn gone(&mut self, writer: Guid) {
        if let Some(known) = self.writers.iter_mut().find(|known| known.undecodable.writer == writer) {
            known.is_gone = true;
        }
    }
}

/// Samples that were read or taken together, some of which do not decode.
#[derive(Clone, Copy, Debug)]
pub struct Discarded<'a> {
    /// All of them.
    pub given: &'a [CachedSample],
    /// Those that do not decode: their places, and what is wrong.
    pub undecodable: &'a [(usize, Malformed)],
    /// Those that do, and their instances; also of earlier times of the same call.
    pub kept: &'a BTreeMap<u64, InstanceHandle>,
}

impl Cache {
    /// The key of a change does not decode.
    #[cold]
    pub(super) fn discard_arrived(
        &mut self,
        writer: WriterId,
        payload: &[u8],
        reason: Malformed,
    ) -> DropReason {
        if let Some(publication) = self.publications.get(writer) {
            self.undecodable.note(publication.guid, payload, reason);
            self.undecodable.unnotified += 1;
        }
        DropReason::Undecodable
    }

    /// Samples leave, wherever they are among those of their instance.
    fn discard(&mut self, discarded: &BTreeSet<(InstanceHandle, u64)>) {
        let handles: BTreeSet<_> = discarded.iter().map(|(handle, _)| *handle).collect();
        for handle in handles {
            let Some(id) = self.instances.find(handle) else { continue };
            let Self { instances, samples, ledger, policy, .. } = self;
            let Some(instance) = instances.get_mut(id) else { continue };
            let before = instance.shape();
            let mut next = instance.samples.first();
            while let Some(at) = next {
                next = samples.after(at);
                if samples.get(at).is_some_and(|sample| discarded.contains(&(handle, sample.id))) {
                    leave(samples, ledger, policy, instance, at, None);
                }
            }
            instances.reshaped(id, before);
            self.retire_if_idle(id);
        }
    }

    fn set_view(&mut self, handle: InstanceHandle, view: ViewState) {
        let Some(id) = self.instances.find(handle) else { return };
        let Some(instance) = self.instances.get_mut(id) else { return };
        let before = instance.shape();
        instance.view = view;
        self.instances.reshaped(id, before);
    }
}

impl Reader {
    /// Of samples that [`Self::fetch`] returned some do not decode: these are as if they had never come, and
    /// are counted. `samples` gets as many in their place as `fetch` asks for now.
    pub fn replace_undecodable(
        &mut self,
        now: Now,
        fetch: &Fetch<'_>,
        discarded: &Discarded<'_>,
        samples: &mut CachedSamples,
    ) {
        let Discarded { given, undecodable, kept } = *discarded;
        let mut gone = BTreeSet::new();
        for (at, reason) in undecodable {
            let Some(CachedSample { info, payload, id, .. }) = given.get(*at) else { continue };
            gone.insert((info.instance_handle, *id));
            if self.cache.undecodable.is_first(*id) {
                let writer = Guid::from_bytes(info.publication_handle.0);
                self.cache.undecodable.note(writer, payload.as_slice(), *reason);
                self.drops.count(DropReason::Undecodable);
                // Reading tells nobody: the timer does.
                self.count_lost(1);
                self.unnotified = self.unnotified.with(StatusKind::SampleLost);
            }
        }
        if fetch.access == Access::Read {
            self.cache.discard(&gone);
        }
        for sample in given.iter().filter(|sample| sample.info.view_state == ViewState::New) {
            self.cache.set_view(sample.info.instance_handle, ViewState::New);
        }
        let content = Some(Content { query: fetch.query, kept: Some(kept) });
        self.access(now, fetch.access, &Choice { selector: fetch.selector, content }, samples);
        for instance in kept.values() {
            self.cache.set_view(*instance, ViewState::NotNew);
        }
        if self.blocked > 0 && !self.presenter.is_accessing() {
            self.unblock(now);
        }
        self.wake_at(Some(now.mono));
    }

    /// Samples that arrived and did not decode as the reader's type.
    #[must_use]
    pub const fn undecodable_samples(&self) -> u64 {
        self.cache.undecodable.count
    }

    /// Why, of each writer.
    pub fn undecodable(&self) -> impl Iterator<Item = Undecodable> + '_ {
        self.cache.undecodable.writers.iter().map(|known| known.undecodable)
    }

    /// Notifies of writers whose samples do not decode.
    pub(super) fn notify_undecodable(&mut self, out: &mut Outbox) {
        let reader = self.guid.entity;
        let news = self.cache.undecodable.news.drain(..);
        out.events.extend(news.map(|writer| Event::Undecodable { reader, writer }));
    }
}
