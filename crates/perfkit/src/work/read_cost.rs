//! Fills a reader with one sample of each instance, and times its calls one by one.

use super::{Context, Work, checked_size, enough};
use crate::adapter::{Adapter, Failure, Reader, Session, Writer};
use crate::clock::{ms, now_ns};
use crate::event::{NamedHistogram, Report, Totals};
use crate::payload::{Head, Maker, Random};
use crate::recorder::{histogram, named};
use crate::spec::{EndpointSpec, ReadCall, ReadMethod, Role};

/// Time between looks at whether all samples are there: such a look may be long itself.
const LOOKING_NS: u64 = 50_000_000;

pub(super) struct ReadCost {
    context: Context,
    endpoint: EndpointSpec,
    size: u64,
    calls: Vec<ReadCall>,
    writer: Box<dyn Writer>,
    reader: Box<dyn Reader>,
    // After the endpoints, so that it is dropped after them.
    _session: Box<dyn Session>,
}

impl ReadCost {
    pub(super) fn new(adapter: &mut dyn Adapter, context: Context) -> Result<Self, Failure> {
        let Role::ReadCost { writer: endpoint, reader, size, mut calls } = context.spec.role.clone() else {
            return Err(Failure::Failed("the role is another".to_owned()));
        };
        // It consumes what the others look at.
        calls.sort_by_key(|call| *call == ReadCall::TakeOne);
        let mut session = adapter.open(&context.spec.session)?;
        let writer = session.writer(&endpoint)?;
        // A listener would take what is to be read.
        let read = match reader.read {
            ReadMethod::Listener => ReadMethod::Waitset,
            other => other,
        };
        let reader = session.reader(&EndpointSpec { read, ..reader }, Box::new(|_| {}))?;
        Ok(Self { context, endpoint, size, calls, writer, reader, _session: session })
    }

    /// Writes one sample of each instance, and waits until the reader has them all; their number.
    fn fill(&mut self, until_ns: u64) -> Result<u64, Failure> {
        let mut maker = Maker::new(checked_size(self.size)?, self.context.spec.seed);
        let instances = self.endpoint.instances.max(1);
        for instance in 0..instances {
            let payload = maker.make(&Head { due_ns: now_ns(), ..Head::default() });
            while self.writer.write(instance, payload) == Err(Failure::Timeout) {
                if now_ns() > until_ns || self.context.control.is_stopped() {
                    return Err(Failure::Timeout);
                }
            }
        }
        self.writer.flush();
        loop {
            let there = self.reader.call(ReadCall::ReadAll, 0)?;
            if there >= u64::from(instances) || self.context.control.is_stopped() {
                return Ok(there);
            }
            if now_ns() > until_ns {
                return Err(Failure::Failed(format!(
                    "{there} of {instances} samples reached the reader: it needs RELIABLE and a history of at least one \
                     sample for each instance, or more time"
                )));
            }
            self.context.control.sleep_until(now_ns().saturating_add(LOOKING_NS));
        }
    }

    fn time(
        &mut self,
        call: ReadCall,
        random: &mut Random,
        until_ns: u64,
    ) -> Result<Option<NamedHistogram>, Failure> {
        let instances = self.endpoint.instances.max(1);
        let samples_max = self.context.spec.samples_max;
        let mut times = histogram();
        loop {
            let instance = random.below(instances);
            let begin_ns = now_ns();
            let seen = self.reader.call(call, instance)?;
            let end_ns = now_ns();
            // Nothing is left to take.
            if seen == 0 && call == ReadCall::TakeOne {
                break;
            }
            times.saturating_record(end_ns.saturating_sub(begin_ns).max(1));
            let enough = samples_max > 0 && times.len() >= samples_max;
            if end_ns >= until_ns || enough || self.context.control.is_stopped() {
                break;
            }
        }
        let name = serde_json::to_value(call).ok();
        let name = format!("call:{}", name.as_ref().and_then(|it| it.as_str()).unwrap_or("unknown"));
        Ok(named(&name, &times))
    }
}

impl Work for ReadCost {
    fn matched(&mut self) -> Result<(), String> {
        enough("readers", &self.endpoint.topic, self.writer.matched(), 1)?;
        enough("writers", &self.endpoint.topic, self.reader.matched(), 1)
    }

    fn run(&mut self, _adapter: &mut dyn Adapter, start_ns: u64) -> Result<Report, Failure> {
        self.context.control.wait_until(start_ns);
        let patience_ns = ms(self.context.spec.match_timeout_ms);
        let filled = self.fill(now_ns().saturating_add(patience_ns))?;
        let mut random = Random::new(self.context.spec.seed);
        let calls = self.calls.clone();
        let each_ns = ms(self.context.spec.duration_ms) / (calls.len().max(1) as u64);
        let begin_ns = now_ns();
        let mut histograms = Vec::new();
        for call in calls {
            let until_ns = now_ns().saturating_add(each_ns);
            histograms.extend(self.time(call, &mut random, until_ns)?);
        }
        Ok(Report {
            start_ns: begin_ns,
            length_ns: now_ns().saturating_sub(begin_ns),
            sent: u64::from(self.endpoint.instances.max(1)),
            totals: Totals { received: filled, ..Totals::default() },
            histograms,
            ..Report::default()
        })
    }
}
