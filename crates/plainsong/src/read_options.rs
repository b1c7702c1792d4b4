//! Which samples to read or take.

use std::fmt;

use plainsong_proto::instance::InstanceHandle;
use plainsong_proto::sample_info::{InstanceSelector, InstanceState, SampleState, Selector, ViewState};

use crate::condition::Condition;

/// Which samples [`DataReader::take_with`](crate::data_reader::DataReader::take_with) and its like choose:
/// all, by default.
///
/// ```
/// use plainsong::prelude::*;
///
/// let options = ReadOptions::new().sample_states([SampleState::NotRead]).max_samples(10);
/// ```
#[derive(Clone, Default, PartialEq)]
pub struct ReadOptions {
    pub(crate) selector: Selector,
    pub(crate) condition: Option<Condition>,
}

impl ReadOptions {
    /// All samples.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// At most so many.
    #[must_use]
    pub const fn max_samples(mut self, count: usize) -> Self {
        self.selector.samples_max = count;
        self
    }

    /// Those in one of these states.
    #[must_use]
    pub fn sample_states(mut self, states: impl IntoIterator<Item = SampleState>) -> Self {
        self.selector.sample_states = states.into_iter().fold(0, |mask, state| mask | state as u8);
        self
    }

    /// Those of instances in one of these view states.
    #[must_use]
    pub fn view_states(mut self, states: impl IntoIterator<Item = ViewState>) -> Self {
        self.selector.view_states = states.into_iter().fold(0, |mask, state| mask | state as u8);
        self
    }

    /// Those of instances in one of these states.
    #[must_use]
    pub fn instance_states(mut self, states: impl IntoIterator<Item = InstanceState>) -> Self {
        self.selector.instance_states = states.into_iter().fold(0, |mask, state| mask | state as u8);
        self
    }

    /// Those of one instance. Where the reader does not know it, the call fails.
    #[must_use]
    pub const fn instance(mut self, handle: InstanceHandle) -> Self {
        self.selector.instance = InstanceSelector::Exactly(handle);
        self
    }

    /// Those of the first instance after `previous` that has some ([`InstanceHandle::NIL`] for the first of
    /// all): so a loop comes to all instances, one after the other, also where `previous` is gone meanwhile.
    #[must_use]
    pub const fn next_instance(mut self, previous: InstanceHandle) -> Self {
        self.selector.instance = InstanceSelector::NextAfter(previous);
        self
    }

    /// Those that a read or query condition of the same reader chooses, too, in the order of its ORDER BY:
    /// that orders what is returned, not what is chosen.
    #[must_use]
    pub fn condition(mut self, condition: impl Into<Condition>) -> Self {
        self.condition = Some(condition.into());
        self
    }

    /// Whether it chooses samples in this state.
    #[must_use]
    pub const fn has_sample_state(&self, state: SampleState) -> bool {
        self.selector.sample_states & state as u8 != 0
    }

    /// Whether it chooses samples of instances in this view state.
    #[must_use]
    pub const fn has_view_state(&self, state: ViewState) -> bool {
        self.selector.view_states & state as u8 != 0
    }

    /// Whether it chooses samples of instances in this state.
    #[must_use]
    pub const fn has_instance_state(&self, state: InstanceState) -> bool {
        self.selector.instance_states & state as u8 != 0
    }

    /// What both choose.
    pub(crate) fn within(&self, condition: &Selector) -> Selector {
        let own = &self.selector;
        Selector {
            sample_states: own.sample_states & condition.sample_states,
            view_states: own.view_states & condition.view_states,
            instance_states: own.instance_states & condition.instance_states,
            instance: if own.instance == InstanceSelector::All { condition.instance } else { own.instance },
            samples_max: own.samples_max.min(condition.samples_max),
        }
    }
}

impl fmt::Debug for ReadOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut options = f.debug_struct("ReadOptions");
        options.field("selector", &self.selector).field("has_condition", &self.condition.is_some()).finish()
    }
}
