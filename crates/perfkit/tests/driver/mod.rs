//! Workers as their agent sees them, and what they are told.

use std::io::{BufRead, BufReader, Read, Write};

use plainsong_perfkit::event::Interval;
use plainsong_perfkit::spec::{EndpointSpec, ReadMethod, Role, SessionSpec};
use plainsong_perfkit::{Command, Event, Report, WorkerSpec};

/// A worker, as its agent sees it.
pub(crate) struct Worker {
    input: Box<dyn Write>,
    output: Box<dyn Iterator<Item = Event>>,
    pub(crate) intervals: Vec<Interval>,
}

impl Worker {
    /// By its standard input and output.
    pub(crate) fn new(input: impl Write + 'static, output: impl Read + 'static) -> Self {
        let lines = BufReader::new(output).lines().map_while(Result::ok);
        let output = lines.map(|line| serde_json::from_str(&line).expect("an event in each line"));
        let mut worker = Self { input: Box::new(input), output: Box::new(output), intervals: Vec::new() };
        assert!(matches!(worker.next(), Event::Hello { protocol: 1, .. }));
        worker
    }

    /// The next event but intervals, which are kept.
    pub(crate) fn next(&mut self) -> Event {
        loop {
            match self.output.next().expect("the worker tells how it ends") {
                Event::Interval(interval) => self.intervals.push(interval),
                event => return event,
            }
        }
    }

    pub(crate) fn line(&mut self, line: &str) {
        writeln!(self.input, "{line}").expect("the worker listens");
    }

    pub(crate) fn tell(&mut self, command: &Command) {
        let line = serde_json::to_string(command).expect("commands are JSON");
        self.line(&line);
    }

    pub(crate) fn configure(&mut self, spec: &WorkerSpec) {
        self.tell(&Command::Configure { spec: Box::new(spec.clone()) });
    }

    pub(crate) fn report(&mut self) -> Report {
        match self.next() {
            Event::Report(report) => *report,
            other => panic!("instead of a report: {other:?}"),
        }
    }
}

/// Configures and runs workers together, until the first has done its work; what they tell.
pub(crate) fn run_all(workers: &mut [Worker], specs: &[WorkerSpec]) -> Vec<(Report, Vec<Interval>)> {
    for (worker, spec) in workers.iter_mut().zip(specs) {
        worker.configure(spec);
    }
    for worker in &mut *workers {
        let event = worker.next();
        assert!(matches!(event, Event::Ready { .. }), "instead of ready: {event:?}");
    }
    let at_ns = plainsong_perfkit::clock::now_ns() + 20_000_000;
    for worker in &mut *workers {
        worker.tell(&Command::Start { at_ns });
    }
    let mut done = Vec::new();
    for number in 0..workers.len() {
        let report = workers[number].report();
        done.push((report, std::mem::take(&mut workers[number].intervals)));
        if number == 0 {
            workers[1..].iter_mut().for_each(|worker| worker.tell(&Command::Stop));
        }
    }
    done
}

pub(crate) fn spec(name: &str, role: Role) -> WorkerSpec {
    WorkerSpec {
        name: name.to_owned(),
        session: SessionSpec::default(),
        role,
        warmup_ms: 50,
        // Long enough for any machine to reach `samples_max`.
        duration_ms: 20_000,
        samples_max: 200,
        match_timeout_ms: 5000,
        drain_ms: 200,
        settle_ms: 0,
        faults: plainsong_perfkit::spec::Faults::default(),
        seed: 42,
        background: None,
    }
}

pub(crate) fn endpoint(topic: &str, read: ReadMethod) -> EndpointSpec {
    EndpointSpec {
        topic: topic.to_owned(),
        reliable: true,
        history_depth: 0,
        blocking_ms: 1000,
        payload_max: 1024,
        instances: 1,
        read,
        ..EndpointSpec::default()
    }
}
