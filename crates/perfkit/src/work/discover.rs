//! Makes participants with endpoints, and waits until each has found all others.

use super::{Context, Work};
use crate::adapter::{Adapter, Failure, Reader, Session, Writer};
use crate::clock::{ms, now_ns};
use crate::event::Report;
use crate::recorder::{histogram, named};
use crate::spec::{EndpointSpec, Role};

/// Time between looks at what is matched.
const LOOKING_NS: u64 = 200_000;

pub(super) struct Discover {
    context: Context,
    members: Vec<Member>,
}

/// A participant. The endpoints are dropped before it.
struct Member {
    writers: Vec<Box<dyn Writer>>,
    readers: Vec<Box<dyn Reader>>,
    _session: Box<dyn Session>,
    matched: bool,
}

impl Discover {
    pub(super) fn new(context: Context) -> Self {
        Self { context, members: Vec::new() }
    }

    fn join(&mut self, adapter: &mut dyn Adapter, endpoints: u32) -> Result<(), Failure> {
        let mut session = adapter.open(&self.context.spec.session)?;
        let (mut writers, mut readers) = (Vec::new(), Vec::new());
        for number in 0..endpoints {
            let endpoint = EndpointSpec {
                topic: format!("perf_{number}"),
                reliable: true,
                history_depth: 1,
                blocking_ms: 1000,
                payload_max: 64,
                instances: 1,
                ..EndpointSpec::default()
            };
            writers.push(session.writer(&endpoint)?);
            readers.push(session.reader(&endpoint, Box::new(|_| {}))?);
        }
        self.members.push(Member { writers, readers, _session: session, matched: false });
        Ok(())
    }
}

impl Member {
    fn look(&mut self, expected: u32) -> bool {
        let writers = self.writers.iter_mut().all(|writer| writer.matched() >= expected);
        self.matched = writers && self.readers.iter_mut().all(|reader| reader.matched() >= expected);
        self.matched
    }
}

impl Work for Discover {
    fn matched(&mut self) -> Result<(), String> {
        Ok(())
    }

    fn run(&mut self, adapter: &mut dyn Adapter, start_ns: u64) -> Result<Report, Failure> {
        let Role::Discover { participants, endpoints, participants_total } = self.context.spec.role else {
            return Err(Failure::Failed("the role is another".to_owned()));
        };
        let control = std::sync::Arc::clone(&self.context.control);
        control.wait_until(start_ns);
        let begin_ns = now_ns();
        for _ in 0..participants {
            if control.is_stopped() {
                break;
            }
            self.join(adapter, endpoints)?;
        }
        let until_ns = begin_ns.saturating_add(ms(self.context.spec.duration_ms));
        let mut times = histogram();
        let mut matched_after_ns = None;
        loop {
            for member in self.members.iter_mut().filter(|member| !member.matched) {
                if member.look(participants_total) {
                    times.saturating_record(now_ns().saturating_sub(begin_ns).max(1));
                }
            }
            if times.len() == u64::from(participants) {
                matched_after_ns = Some(now_ns().saturating_sub(begin_ns));
                break;
            }
            if control.is_stopped() || now_ns() >= until_ns {
                break;
            }
            control.sleep_until(now_ns().saturating_add(LOOKING_NS));
        }
        Ok(Report {
            start_ns: begin_ns,
            length_ns: now_ns().saturating_sub(begin_ns),
            matched_after_ns,
            histograms: named("matched", &times).into_iter().collect(),
            ..Report::default()
        })
    }
}
