//! Readers with and without a key, which are different types in RustDDS.

use std::time::Duration;

use plainsong_perfkit::adapter::{Failure, Reader, Sample, Sink};
use plainsong_perfkit::spec::{EndpointSpec, ReadCall, ReadMethod};
use rustdds::mio1::{Events, Interest, Poll, Token};
use rustdds::with_key::Sample as Keyed;
use rustdds::{
    DataReaderStatus, QosPolicies, ReadCondition, SelectByKey, StatusEvented, Subscriber, Topic, no_key,
    with_key,
};

use crate::{Perf, failed, unsupported};

const TAKE_MAX: usize = 64;

/// Makes a reader, and a poll around it if it shall be waited for.
pub(crate) fn open(
    subscriber: &Subscriber,
    topic: &Topic,
    qos: QosPolicies,
    endpoint: &EndpointSpec,
    sink: Sink,
) -> Result<Box<dyn Reader>, Failure> {
    let mut entity = if endpoint.keyed {
        ReaderEntity::Keyed(subscriber.create_datareader_cdr::<Perf>(topic, Some(qos)).map_err(failed)?)
    } else {
        ReaderEntity::Plain(
            subscriber.create_datareader_no_key_cdr::<Perf>(topic, Some(qos)).map_err(failed)?,
        )
    };
    let poll = match endpoint.read {
        ReadMethod::Waitset => Some(entity.poll().map_err(failed)?),
        ReadMethod::Listener | ReadMethod::Polling { .. } => None,
    };
    Ok(Box::new(RustDdsReader { entity, poll, events: Events::with_capacity(4), matched: 0, sink }))
}

enum ReaderEntity {
    Keyed(with_key::DataReaderCdr<Perf>),
    Plain(no_key::DataReaderCdr<Perf>),
}

impl ReaderEntity {
    fn poll(&mut self) -> std::io::Result<Poll> {
        let poll = Poll::new()?;
        match self {
            Self::Keyed(reader) => poll.registry().register(reader, Token(0), Interest::READABLE)?,
            Self::Plain(reader) => poll.registry().register(reader, Token(0), Interest::READABLE)?,
        }
        Ok(poll)
    }

    /// Up to so many samples, without the news of disposed instances.
    fn take(&mut self, maximum: usize) -> Result<Vec<Option<Perf>>, Failure> {
        Ok(match self {
            Self::Keyed(reader) => {
                let samples = reader.take(maximum, ReadCondition::any()).map_err(failed)?;
                samples.into_iter().map(|sample| sample.into_value().value()).collect()
            }
            Self::Plain(reader) => {
                let samples = reader.take(maximum, ReadCondition::any()).map_err(failed)?;
                samples.into_iter().map(|sample| Some(sample.into_value())).collect()
            }
        })
    }
}

struct RustDdsReader {
    entity: ReaderEntity,
    poll: Option<Poll>,
    events: Events,
    matched: i32,
    sink: Sink,
}

impl Reader for RustDdsReader {
    fn matched(&mut self) -> u32 {
        let next = |entity: &ReaderEntity| match entity {
            ReaderEntity::Keyed(reader) => reader.try_recv_status(),
            ReaderEntity::Plain(reader) => reader.try_recv_status(),
        };
        while let Some(status) = next(&self.entity) {
            if let DataReaderStatus::SubscriptionMatched { current, .. } = status {
                self.matched = current.count();
            }
        }
        u32::try_from(self.matched).unwrap_or(0)
    }

    fn take(&mut self) -> Result<u64, Failure> {
        let mut count = 0;
        loop {
            let samples = self.entity.take(TAKE_MAX)?;
            let last = samples.len() < TAKE_MAX;
            for sample in samples.into_iter().flatten() {
                (self.sink)(Sample { instance: sample.instance, payload: &sample.data });
                count += 1;
            }
            if last {
                return Ok(count);
            }
        }
    }

    fn wait(&mut self, timeout: Duration) -> Result<bool, Failure> {
        let Some(poll) = &mut self.poll else {
            return unsupported("this reader was not opened to wait for it");
        };
        poll.poll(&mut self.events, Some(timeout)).map_err(failed)?;
        Ok(!self.events.is_empty())
    }

    fn call(&mut self, call: ReadCall, instance: u32) -> Result<u64, Failure> {
        let any = ReadCondition::any();
        let seen = match (&mut self.entity, call) {
            (_, ReadCall::TakeOne) => self.entity.take(1)?.len(),
            (ReaderEntity::Keyed(reader), ReadCall::ReadAll) => {
                reader.read(usize::MAX, any).map_err(failed)?.len()
            }
            (ReaderEntity::Plain(reader), ReadCall::ReadAll) => {
                reader.read(usize::MAX, any).map_err(failed)?.len()
            }
            (ReaderEntity::Keyed(reader), ReadCall::ReadInstance) => {
                let samples =
                    reader.read_instance(1, any, Some(instance), SelectByKey::This).map_err(failed)?;
                samples.iter().filter(|sample| matches!(sample.value(), Keyed::Value(_))).count()
            }
            (ReaderEntity::Plain(_), ReadCall::ReadInstance) => {
                return unsupported("the topic has no instances");
            }
            (_, ReadCall::Lookup) => return unsupported("RustDDS has no lookup_instance"),
            (_, ReadCall::Query) => return unsupported("RustDDS has no query conditions"),
        };
        Ok(u64::try_from(seen).unwrap_or(u64::MAX))
    }
}
