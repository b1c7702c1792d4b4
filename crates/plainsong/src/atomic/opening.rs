//! How a participant's part in a group begins: as a member, as a voter, or as both.

use std::sync::Arc;

use plainsong_proto::atomic::coordinator::Bootstrap;
use plainsong_proto::atomic::decider::RestoreError;
use plainsong_proto::atomic::entry::Entry;
use plainsong_proto::atomic::group::{FIXED, FixedVoter, VoteError};
use plainsong_proto::atomic::storage::{Change, Image};
use plainsong_proto::atomic::{self, Config, Group, GroupLimits, Member, MemberId};
use plainsong_proto::guid::GuidPrefix;
use plainsong_proto::qos::{DeliverAt, Durability, QosSet};
use plainsong_proto::reader::ReaderLimits;
use plainsong_proto::time::{Duration, Now};
use plainsong_proto::writer::WriterLimits;

use super::name::Name;
use super::storage::{Batch, Committer, Stage, Storage, Store, StoreError};
use super::voting::Voting;
use crate::base::clock;

/// With what a group is opened.
pub(crate) struct Opening<'a> {
    pub(crate) name: Name,
    pub(crate) voting: &'a Voting,
    /// What the member keeps on its disk.
    pub(crate) keeps: atomic::Storage,
    /// Where that is kept, and the votes of who votes by a name.
    pub(crate) storage: Option<&'a Storage>,
    /// It votes, and is no member.
    pub(crate) is_witness: bool,
    pub(crate) limits: (WriterLimits, ReaderLimits),
}

/// The core of a group, and where it keeps what outlives it.
pub(super) struct Opened {
    pub(super) group: Group<Arc<Entry>>,
    pub(super) store: Option<Box<dyn Store>>,
}

impl Opening<'_> {
    pub(super) fn open(&self, prefix: GuidPrefix, now: Now) -> Result<Opened, StoreError> {
        let bounds = GroupLimits::default();
        // The group that was made first goes on.
        let instance = now.wall.0.cast_unsigned() & !0xffff | clock::seed() & 0xffff;
        let config = Config {
            digest: self.voting.digest(),
            lease: bounds.lease,
            stuck: bounds.stuck,
            slow: Duration::INFINITE,
            window_entries: bounds.window_entries,
            window_octets: bounds.window_bytes,
            keeps_history: true,
            history_entries_max: bounds.history_entries_max,
            storage: self.keeps,
            voters: self.voting.voters(),
            bootstrap_after: self.voting.bootstrap_after(&bounds),
            instance,
        };
        // Later incarnations count on from this.
        let id = MemberId { prefix, nonce: clock::seed() >> 16 };
        let Some(storage) = self.storage else {
            return Ok(Opened { group: Group::new(config, id, now.mono), store: None });
        };
        let Some(own) = self.voting.own_id() else {
            let store = storage.store(&self.name, self.voting)?;
            let group = Group::restore(config, id, now.mono, read(&*store)?);
            return Ok(Opened { group, store: Some(store) });
        };
        let store = storage.store(&self.name, self.voting)?;
        let mut image = read(&*store)?;
        let voter = FixedVoter { id: own, bootstrap: Bootstrap { members: 1, instance, begins_anew: true } };
        let records = image.votes.remove(&FIXED).unwrap_or_default();
        let member = (!self.is_witness).then(|| match self.keeps {
            atomic::Storage::None => Member::new(config, id, now.mono),
            _ => Member::restore(config, id, now.mono, image),
        });
        let group = Group::with_vote(member, &self.voting.ids(), &voter, &records, now.mono);
        let group = group.map_err(|error| match error {
            VoteError::Restore(RestoreError::OtherVoters) => {
                StoreError::OtherVoter { file: store.file().to_owned() }
            }
            other => StoreError::damaged(store.file(), other),
        })?;
        Ok(Opened { group, store: Some(store) })
    }

    /// What makes durable from now on what the group keeps.
    pub(super) fn committer(
        &self,
        store: Option<Box<dyn Store>>,
        on_durable: impl Fn(Result<u64, StoreError>) + Send + Sync + 'static,
    ) -> Option<Committer<Change<Arc<Entry>>>> {
        Some(self.storage?.thread.committer(store?, on_durable))
    }
}

/// What a participant with an endpoint of such QoS keeps of its topic on its disk.
pub(crate) fn keeps(qos: &QosSet) -> atomic::Storage {
    match (qos.durability, qos.consistency.deliver_at) {
        (Durability::Persistent, DeliverAt::Durable) => atomic::Storage::Durable,
        (Durability::Persistent, DeliverAt::Stable) => atomic::Storage::Stable,
        _ => atomic::Storage::None,
    }
}

/// What is kept of a group.
fn read(store: &dyn Store) -> Result<Image<Arc<Entry>>, StoreError> {
    let mut pairs = Vec::new();
    store.read(&mut |key, value| pairs.push((key.to_vec(), value.to_vec())))?;
    Image::read(pairs).map_err(|error| StoreError::damaged(store.file(), error))
}

impl Stage for Change<Arc<Entry>> {
    fn discards(&self) -> bool {
        matches!(self, Self::Begin { discards: true, .. })
    }

    fn stage(self, batch: &mut Batch) {
        Self::stage(&self, batch);
    }
}
