//! Readers of Dust DDS.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use dust_dds::dds_async::data_reader::DataReaderAsync;
use dust_dds::dds_async::subscriber::SubscriberAsync;
use dust_dds::dds_async::topic::TopicAsync;
use dust_dds::dds_async::wait_set::{ConditionAsync, WaitSetAsync};
use dust_dds::infrastructure::error::DdsError;
use dust_dds::infrastructure::instance::InstanceHandle;
use dust_dds::infrastructure::listener::NO_LISTENER;
use dust_dds::infrastructure::qos::QosKind;
use dust_dds::infrastructure::sample_info::{
    ANY_INSTANCE_STATE, ANY_SAMPLE_STATE, ANY_VIEW_STATE, Sample as DustSample,
};
use dust_dds::infrastructure::status::{NO_STATUS, StatusKind};
use dust_dds::std_runtime::executor::block_on;
use dust_dds::subscription::data_reader::DataReader;
use dust_dds::topic_definition::topic::Topic;
use plainsong_perfkit::adapter::{Failure, Reader, Sample, Sink};
use plainsong_perfkit::spec::{EndpointSpec, ReadCall, ReadMethod};

use crate::{Common, Perf, failed, unsupported};

const TAKE_MAX: i32 = 64;
/// Who waits gives up only after nothing has moved for so long.
const QUIET: Duration = Duration::from_millis(100);

/// Makes a reader, with a wait set if asked for.
pub(crate) fn open<T: Perf>(
    subscriber: &SubscriberAsync,
    topic: Topic,
    endpoint: &EndpointSpec,
    sink: Sink,
) -> Result<Box<dyn Reader>, Failure> {
    let qos = QosKind::Specific(Common::reader_qos(endpoint)?);
    let topic = TopicAsync::from(topic);
    let reader = block_on(subscriber.create_datareader::<T>(&topic, qos, NO_LISTENER, NO_STATUS));
    let reader = reader.map_err(failed)?;
    let waitset = match endpoint.read {
        ReadMethod::Waitset => Some(block_on(waitset(&reader)).map_err(failed)?),
        ReadMethod::Polling { .. } => None,
        ReadMethod::Listener => {
            return unsupported(
                "listeners of Dust DDS run on its executor, where its blocking operations, a write for instance, never end: choose waitset or polling",
            );
        }
    };
    Ok(Box::new(DustReader { reader: DataReader::from(reader), waitset, handles: HashMap::new(), sink }))
}

async fn waitset<T>(reader: &DataReaderAsync<T>) -> Result<WaitSetAsync, DdsError> {
    let condition = reader.get_statuscondition();
    condition.set_enabled_statuses(&[StatusKind::DataAvailable]).await?;
    let mut waitset = WaitSetAsync::new();
    waitset.attach_condition(ConditionAsync::StatusCondition(condition)).await?;
    Ok(waitset)
}

/// What comes of a future if it comes in time, and after that as long as something moves. `WaitSet::wait` of
/// 0.16.0 gives up in the midst of a call to Dust's executor too, and its answer is then taken for that of
/// the next call, which panics.
fn within<T>(timeout: Duration, future: impl Future<Output = T>) -> Option<T> {
    let alarm = Arc::new(Alarm { rung: AtomicBool::new(false), sleeper: std::thread::current() });
    let waker = Waker::from(Arc::clone(&alarm));
    let mut future = pin!(future);
    let end = Instant::now() + timeout;
    loop {
        if let Poll::Ready(result) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Some(result);
        }
        let end = end.max(Instant::now() + QUIET);
        while !alarm.rung.swap(false, Ordering::Acquire) {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            std::thread::park_timeout(left);
        }
    }
}

/// Wakes a thread.
struct Alarm {
    rung: AtomicBool,
    sleeper: Thread,
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.rung.store(true, Ordering::Release);
        self.sleeper.unpark();
    }
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
    waitset: Option<WaitSetAsync>,
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
        match within(timeout, waitset.wait()) {
            Some(Ok(_)) => Ok(true),
            None => Ok(false),
            Some(Err(error)) => Err(failed(error)),
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
