//! Readers of Dust DDS.

use std::collections::HashMap;
use std::time::Duration;

use dust_dds::infrastructure::error::DdsError;
use dust_dds::infrastructure::instance::InstanceHandle;
use dust_dds::infrastructure::listener::NO_LISTENER;
use dust_dds::infrastructure::qos::QosKind;
use dust_dds::infrastructure::sample_info::{
    ANY_INSTANCE_STATE, ANY_SAMPLE_STATE, ANY_VIEW_STATE, Sample as DustSample,
};
use dust_dds::infrastructure::status::{NO_STATUS, StatusKind};
use dust_dds::subscription::data_reader::DataReader;
use dust_dds::subscription::subscriber::Subscriber;
use dust_dds::topic_definition::topic::Topic;
use dust_dds::wait_set::{Condition, WaitSet};
use plainsong_perfkit::adapter::{Failure, Reader, Sample, Sink};
use plainsong_perfkit::spec::{EndpointSpec, ReadCall, ReadMethod};

use crate::{Common, Perf, duration, failed, unsupported};

const TAKE_MAX: i32 = 64;

/// Makes a reader, with a wait set if asked for.
pub(crate) fn open<T: Perf>(
    subscriber: &Subscriber,
    topic: &Topic,
    endpoint: &EndpointSpec,
    sink: Sink,
) -> Result<Box<dyn Reader>, Failure> {
    let qos = QosKind::Specific(Common::reader_qos(endpoint)?);
    let reader = subscriber.create_datareader::<T>(topic, qos, NO_LISTENER, NO_STATUS).map_err(failed)?;
    let waitset = match endpoint.read {
        ReadMethod::Waitset => Some(waitset(&reader).map_err(failed)?),
        ReadMethod::Polling { .. } => None,
        ReadMethod::Listener => {
            return unsupported(
                "listeners of Dust DDS run on its executor, where its blocking operations, a write for instance, never end: choose waitset or polling",
            );
        }
    };
    Ok(Box::new(DustReader { reader, waitset, handles: HashMap::new(), sink }))
}

fn waitset<T>(reader: &DataReader<T>) -> Result<WaitSet, DdsError> {
    let condition = reader.get_statuscondition();
    condition.set_enabled_statuses(&[StatusKind::DataAvailable])?;
    let mut waitset = WaitSet::new();
    waitset.attach_condition(Condition::StatusCondition(condition))?;
    Ok(waitset)
}

fn hand_over<T: Perf>(samples: Vec<DustSample<T>>, sink: &mut Sink) -> u64 {
    let mut count = 0;
    for data in samples.into_iter().filter_map(|sample| sample.data) {
        let (instance, payload) = data.parts();
        sink(Sample { instance, payload });
        count += 1;
    }
    count
}

struct DustReader<T> {
    reader: DataReader<T>,
    waitset: Option<WaitSet>,
    handles: HashMap<u32, InstanceHandle>,
    sink: Sink,
}

impl<T: Perf> DustReader<T> {
    fn handle(&mut self, instance: u32) -> Result<InstanceHandle, Failure> {
        if let Some(handle) = self.handles.get(&instance) {
            return Ok(*handle);
        }
        let found = self.reader.lookup_instance(&T::new(instance, Vec::new())).map_err(failed)?;
        let handle = found.ok_or_else(|| Failure::Failed(format!("no instance {instance}")))?;
        self.handles.insert(instance, handle);
        Ok(handle)
    }
}

impl<T: Perf> Reader for DustReader<T> {
    fn matched(&mut self) -> u32 {
        let status = self.reader.get_subscription_matched_status();
        status.map_or(0, |status| u32::try_from(status.current_count).unwrap_or(0))
    }

    fn take(&mut self) -> Result<u64, Failure> {
        let mut count = 0;
        loop {
            match self.reader.take(TAKE_MAX, ANY_SAMPLE_STATE, ANY_VIEW_STATE, ANY_INSTANCE_STATE) {
                Ok(samples) => count += hand_over(samples, &mut self.sink),
                Err(DdsError::NoData) => return Ok(count),
                Err(error) => return Err(failed(error)),
            }
        }
    }

    fn wait(&mut self, timeout: Duration) -> Result<bool, Failure> {
        let Some(waitset) = &self.waitset else {
            return unsupported("this reader was not opened to wait for it");
        };
        match waitset.wait(duration(timeout)?) {
            Ok(_) => Ok(true),
            Err(DdsError::Timeout) => Ok(false),
            Err(error) => Err(failed(error)),
        }
    }

    fn call(&mut self, call: ReadCall, instance: u32) -> Result<u64, Failure> {
        let (samples, views, instances) = (ANY_SAMPLE_STATE, ANY_VIEW_STATE, ANY_INSTANCE_STATE);
        let seen = match call {
            ReadCall::Lookup => {
                let found = self.reader.lookup_instance(&T::new(instance, Vec::new())).map_err(failed)?;
                return Ok(found.map_or(0, |_| 1));
            }
            ReadCall::ReadInstance => {
                let handle = self.handle(instance)?;
                self.reader.read_instance(1, handle, samples, views, instances)
            }
            ReadCall::ReadAll => self.reader.read(i32::MAX, samples, views, instances),
            ReadCall::TakeOne => self.reader.take(1, samples, views, instances),
            ReadCall::Query => return unsupported("Dust DDS has no query conditions"),
        };
        match seen {
            Ok(samples) => Ok(u64::try_from(samples.len()).unwrap_or(u64::MAX)),
            Err(DdsError::NoData) => Ok(0),
            Err(error) => Err(failed(error)),
        }
    }
}
