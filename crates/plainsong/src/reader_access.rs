//! The ways to read and take (DCPS 1.4 §2.2.2.5.3.8 to .19). Samples are owned by whoever gets them: there is
//! no loan to return.

use plainsong_proto::cdr::DdsType;
use plainsong_proto::instance::InstanceHandle;
use plainsong_proto::reader::Access;
use plainsong_proto::sample_info::{InstanceSelector, SampleState, Selector};

use crate::data_reader::DataReader;
use crate::error::{Error, Result};
use crate::query::QueryCondition;
use crate::sample::Sample;

/// Chooses what was not read yet.
const UNREAD: u8 = SampleState::NotRead as u8;

impl<T: DdsType> DataReader<T> {
    /// Returns the next sample that was not read yet, and marks it read.
    ///
    /// # Errors
    /// [`Error::NotEnabled`].
    pub fn read_next_sample(&self) -> Result<Option<Sample<T>>> {
        let selector = Selector { sample_states: UNREAD, samples_max: 1, ..Selector::default() };
        Ok(self.read_selected(&selector)?.pop())
    }

    /// Removes and returns the next sample that was not read yet.
    ///
    /// # Errors
    /// [`Error::NotEnabled`].
    pub fn take_next_sample(&self) -> Result<Option<Sample<T>>> {
        let selector = Selector { sample_states: UNREAD, samples_max: 1, ..Selector::default() };
        Ok(self.take_selected(&selector)?.pop())
    }

    /// Returns samples of one instance and marks them read.
    ///
    /// # Errors
    /// [`Error::BadParameter`] when the reader does not know the instance, [`Error::NotEnabled`].
    pub fn read_instance(&self, instance: InstanceHandle, samples_max: usize) -> Result<Vec<Sample<T>>> {
        self.check_instance(instance)?;
        let instance = InstanceSelector::Exactly(instance);
        self.read_selected(&Selector { instance, samples_max, ..Selector::default() })
    }

    /// Removes and returns samples of one instance.
    ///
    /// # Errors
    /// As [`Self::read_instance`].
    pub fn take_instance(&self, instance: InstanceHandle, samples_max: usize) -> Result<Vec<Sample<T>>> {
        self.check_instance(instance)?;
        let instance = InstanceSelector::Exactly(instance);
        self.take_selected(&Selector { instance, samples_max, ..Selector::default() })
    }

    /// Returns samples of the instance that follows `previous` ([`InstanceHandle::NIL`] for the first), and
    /// marks them read.
    ///
    /// # Errors
    /// [`Error::NotEnabled`].
    pub fn read_next_instance(&self, previous: InstanceHandle, samples_max: usize) -> Result<Vec<Sample<T>>> {
        let instance = InstanceSelector::NextAfter(previous);
        self.read_selected(&Selector { instance, samples_max, ..Selector::default() })
    }

    /// Returns samples that a condition chooses, and marks them read.
    ///
    /// # Errors
    /// [`Error::PreconditionNotMet`] for a condition of another reader, [`Error::NotEnabled`].
    pub fn read_w_condition(
        &self,
        condition: &QueryCondition<T>,
        samples_max: usize,
    ) -> Result<Vec<Sample<T>>> {
        self.check_condition(condition)?;
        condition.read(samples_max)
    }

    /// Removes and returns samples that a condition chooses.
    ///
    /// # Errors
    /// As [`Self::read_w_condition`].
    pub fn take_w_condition(
        &self,
        condition: &QueryCondition<T>,
        samples_max: usize,
    ) -> Result<Vec<Sample<T>>> {
        self.check_condition(condition)?;
        condition.take(samples_max)
    }

    /// As [`Self::read_next_instance`], of the instances that have samples the condition chooses.
    ///
    /// # Errors
    /// As [`Self::read_w_condition`].
    pub fn read_next_instance_w_condition(
        &self,
        previous: InstanceHandle,
        condition: &QueryCondition<T>,
        samples_max: usize,
    ) -> Result<Vec<Sample<T>>> {
        self.check_condition(condition)?;
        condition.fetch(Access::Read, InstanceSelector::NextAfter(previous), samples_max)
    }

    /// As [`Self::take_next_instance`], of the instances that have samples the condition chooses.
    ///
    /// # Errors
    /// As [`Self::read_w_condition`].
    pub fn take_next_instance_w_condition(
        &self,
        previous: InstanceHandle,
        condition: &QueryCondition<T>,
        samples_max: usize,
    ) -> Result<Vec<Sample<T>>> {
        self.check_condition(condition)?;
        condition.fetch(Access::Take, InstanceSelector::NextAfter(previous), samples_max)
    }

    fn check_condition(&self, condition: &QueryCondition<T>) -> Result<()> {
        if condition.reader().guid() == self.guid() {
            return Ok(());
        }
        Err(Error::PreconditionNotMet("the condition belongs to another reader".into()))
    }

    fn check_instance(&self, instance: InstanceHandle) -> Result<()> {
        if self.knows_instance(instance)? {
            return Ok(());
        }
        Err(Error::BadParameter("the reader does not know such an instance".into()))
    }
}
