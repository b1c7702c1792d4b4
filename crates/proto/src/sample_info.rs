//! What `read` and `take` tell about each sample (DCPS 1.4 §2.2.2.5.5), and how to choose samples.

use crate::instance::InstanceHandle;
use crate::time::Time;

/// Whether the sample was read before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(u8)]
pub enum SampleState {
    /// Returned by an earlier `read`.
    Read = 1,
    /// Not yet.
    NotRead = 2,
}

/// Whether the reader has seen the instance since it last became alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(u8)]
pub enum ViewState {
    /// First time.
    New = 1,
    /// Seen before.
    NotNew = 2,
}

/// The life of the instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(u8)]
pub enum InstanceState {
    /// Samples received and a writer is alive.
    Alive = 1,
    /// A writer disposed it.
    NotAliveDisposed = 2,
    /// No writer writes it any more.
    NotAliveNoWriters = 4,
}

/// Where a sample stands in the order on which the members of the group of an ATOMIC topic agree: the same
/// for all readers. All 0 with EVENTUAL consistency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Agreed {
    /// Its position among all entries of the group, from 1, without gaps: disposed and unregistered instances
    /// and barriers have theirs.
    pub position: u64,
    /// The epoch in which it was delivered.
    pub epoch: u64,
}

/// Facts about one sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SampleInfo {
    /// Read before or not.
    pub sample_state: SampleState,
    /// Instance new to the reader or not.
    pub view_state: ViewState,
    /// Life of the instance at the time of the call.
    pub instance_state: InstanceState,
    /// Times the instance came back from disposed when this sample arrived.
    pub disposed_generation_count: i32,
    /// Times the instance came back from no-writers when this sample arrived.
    pub no_writers_generation_count: i32,
    /// Samples of the same instance that follow in the returned collection.
    pub sample_rank: i32,
    /// Generations between this sample and the last of its instance in the collection.
    pub generation_rank: i32,
    /// Generations between this sample and the last of its instance in the reader.
    pub absolute_generation_rank: i32,
    /// When the writer wrote it; reception time when the writer did not say.
    pub source_timestamp: Time,
    /// When it arrived here.
    pub reception_timestamp: Time,
    /// The instance.
    pub instance_handle: InstanceHandle,
    /// The writer.
    pub publication_handle: InstanceHandle,
    /// False when the sample only reports a change of the instance's state.
    pub valid_data: bool,
    /// Where it stands in the agreed order of an ATOMIC topic.
    pub agreed: Agreed,
}

/// Which samples to return: masks are unions of the states' discriminants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selector {
    /// Sample states.
    pub sample_states: u8,
    /// View states.
    pub view_states: u8,
    /// Instance states.
    pub instance_states: u8,
    /// One instance only, or the next after one, or all.
    pub instance: InstanceSelector,
    /// At most this many samples.
    pub samples_max: usize,
}

/// Which instances to return samples of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InstanceSelector {
    /// All, grouped by instance.
    #[default]
    All,
    /// Exactly this one.
    Exactly(InstanceHandle),
    /// The one with the smallest handle greater than this that has matching samples.
    NextAfter(InstanceHandle),
}

impl Selector {
    /// All samples.
    pub const ALL: Self = Self {
        sample_states: 0xff,
        view_states: 0xff,
        instance_states: 0xff,
        instance: InstanceSelector::All,
        samples_max: usize::MAX,
    };
}

impl Default for Selector {
    fn default() -> Self {
        Self::ALL
    }
}
