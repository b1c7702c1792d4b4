//! `plainsong shapes`: the application that the OMG interoperability suite drives.
//!
//! Its output lines are a protocol: the suite matches them one by one. Each is flushed at once.

mod options;
mod qos;
mod report;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use plainsong::prelude::*;
use plainsong::qos::Presentation;
use plainsong::{Error, Result};

pub(crate) use options::Options;
use options::{FinalState, Verbosity};
use qos::Qos;
use report::Report;

use crate::output::{self, say};
use crate::shape_type::{Motion, ShapeType};
use crate::stop::Stop;

const INITIALIZATION_FAILED: u8 = 2;
const RUN_FAILED: u8 = 3;

/// Runs until the iterations are done or a signal comes.
pub(crate) fn run(options: &Options) -> ExitCode {
    let application = match Application::new(options) {
        Ok(application) => application,
        Err(error) => {
            say!("cannot start: {error}");
            return ExitCode::from(INITIALIZATION_FAILED);
        }
    };
    if let Err(error) = application.run() {
        say!("ended by an error: {error}");
        return ExitCode::from(RUN_FAILED);
    }
    say!("Done.");
    ExitCode::SUCCESS
}

struct Application<'a> {
    options: &'a Options,
    presentation: Presentation,
    stop: Stop,
    // Dropped before the participant, so that others hear of the end in order.
    endpoints: Endpoints,
    _participant: DomainParticipant,
}

enum Endpoints {
    Writers(Publisher, Vec<DataWriter<ShapeType>>),
    Readers(Subscriber, Vec<DataReader<ShapeType>>),
}

impl<'a> Application<'a> {
    fn new(options: &'a Options) -> Result<Self> {
        let stop = Stop::on_signals()
            .map_err(|source| Error::Io { what: "installing signal handlers".into(), source })?;
        let mut config = Config::from_env()?;
        if let Some(period_ms) = options.periodic_announcement_ms {
            config.announce_period_ms = period_ms;
        }
        if let Some(octets) = options.datafrag_size {
            config.datagram_bytes_max = octets.into();
            config.datagram_bytes_max_local = octets.into();
        }
        let qos = Qos::new(options)?;
        let group_qos = qos.group()?;
        let presentation = group_qos.presentation;
        let factory = DomainParticipantFactory::with_config(config);
        let participant =
            factory.create_participant(options.domain, "plainsong shapes", qos.participant()?)?;
        let verbose = options.verbosity == Verbosity::D;
        participant.set_listener(
            Some(Arc::new(Report { verbose })),
            StatusMask::ALL.without(StatusKind::DataOnReaders).without(StatusKind::DataAvailable),
        );
        if verbose {
            for interface in participant.interfaces() {
                say!("interface {interface}");
            }
            participant.on_mismatch(|event| say!("{event}"));
            participant.on_undecodable(|samples| say!("{samples}"));
            participant.on_unresponsive(|participant| say!("{participant}"));
            participant.on_atomic_event(|topic, event| say!("group of topic '{topic}': {event:?}"));
        }
        let topics = options
            .topics()
            .iter()
            .map(|name| {
                say!("Create topic: {name}");
                participant.create_topic::<ShapeType>(name, qos.topic(name)?)
            })
            .collect::<Result<Vec<_>>>()?;
        let endpoints = if options.publish {
            let publisher = participant.create_publisher(group_qos)?;
            let writers = create_writers(options, &qos, &publisher, &topics)?;
            publisher.enable()?;
            Endpoints::Writers(publisher, writers)
        } else {
            let subscriber = participant.create_subscriber(group_qos)?;
            let readers = create_readers(options, &qos, &participant, &subscriber, &topics)?;
            subscriber.enable()?;
            Endpoints::Readers(subscriber, readers)
        };
        Ok(Self { options, presentation, stop, endpoints, _participant: participant })
    }

    fn run(&self) -> Result<()> {
        match &self.endpoints {
            Endpoints::Writers(publisher, writers) => self.publish(publisher, writers),
            Endpoints::Readers(subscriber, readers) => self.subscribe(subscriber, readers),
        }
    }

    /// Whether it is to end, or nobody reads what it prints any more.
    fn is_over(&self) -> bool {
        self.stop.is_told() || output::is_closed()
    }

    /// Whether PRESENTATION asks for anything: then sets and accesses are marked.
    const fn is_presented(&self) -> bool {
        self.presentation.coherent_access || self.presentation.ordered_access
    }

    /// Whether samples are to be taken in an order across topics.
    fn in_group_order(&self) -> bool {
        let Presentation { ordered_access, access_scope, .. } = self.presentation;
        ordered_access && access_scope == AccessScope::Group && !self.options.use_read
    }

    fn publish(&self, publisher: &Publisher, writers: &[DataWriter<ShapeType>]) -> Result<()> {
        let options = self.options;
        let colors = options.colors();
        let mut shape = ShapeType {
            shapesize: options.shape_size,
            additional_payload_size: vec![255; options.additional_payload_size],
            ..ShapeType::default()
        };
        let mut motion = Motion::scatter(u64::from(std::process::id()), &mut shape);
        let mut iterations = 0;
        while !self.is_over() {
            motion.step(&mut shape);
            if options.shape_size == 0 {
                let modulo = if options.size_modulo > 0 { options.size_modulo } else { i32::MAX };
                shape.shapesize = shape.shapesize % modulo + 1;
            }
            let in_set = self.place_in_set(iterations);
            if in_set == Some(0) {
                say!("Started Coherent Set");
                publisher.begin_coherent_changes();
            }
            for writer in writers {
                for color in &colors {
                    shape.color.clone_from(color);
                    if self.paced(|| writer.write(&shape))? && options.print_written {
                        print_shape(writer.topic_name(), &shape);
                    }
                }
            }
            if in_set.is_some_and(|place| place + 1 == u64::from(options.coherent_sample_count)) {
                say!("Finished Coherent Set");
                publisher.end_coherent_changes()?;
            }
            self.stop.sleep(options.write_period());
            iterations += 1;
            if options.num_iterations != 0 && iterations >= options.num_iterations {
                break;
            }
        }
        self.finish(writers, &colors, &mut shape)
    }

    /// Acts at the pace of the readers: a full history is waited for, until told to stop. Tells whether
    /// it was done.
    fn paced(&self, act: impl Fn() -> Result<()>) -> Result<bool> {
        loop {
            match act() {
                Err(Error::Timeout { .. }) if self.stop.is_told() => return Ok(false),
                Err(Error::Timeout { .. }) => {}
                done => return done.map(|()| true),
            }
        }
    }

    /// Which iteration of a coherent set this is, when sets are asked for.
    fn place_in_set(&self, iteration: u64) -> Option<u64> {
        let count = u64::from(self.options.coherent_sample_count);
        (self.is_presented() && count > 0).then(|| iteration % count)
    }

    fn finish(
        &self,
        writers: &[DataWriter<ShapeType>],
        colors: &[String],
        shape: &mut ShapeType,
    ) -> Result<()> {
        for writer in writers {
            for color in colors {
                shape.color.clone_from(color);
                self.paced(|| match self.options.final_instance_state {
                    Some(FinalState::U) => writer.unregister_instance(shape),
                    Some(FinalState::D) => writer.dispose(shape),
                    None => Ok(()),
                })?;
            }
        }
        for writer in writers {
            // Readers that do not answer must not hold up the end.
            let _ = writer.wait_for_acknowledgments(Duration::from_secs(1));
        }
        Ok(())
    }

    fn subscribe(&self, subscriber: &Subscriber, readers: &[DataReader<ShapeType>]) -> Result<()> {
        let options = self.options;
        let mut iterations = 0;
        while !self.is_over() {
            if self.presentation.coherent_access {
                say!("Reading coherent sets, iteration {iterations}");
            }
            if self.presentation.ordered_access {
                say!("Reading with ordered access, iteration {iterations}");
            }
            if self.is_presented() {
                subscriber.begin_access()?;
            }
            if self.in_group_order() {
                read_in_group_order(subscriber)?;
            }
            for reader in readers {
                if options.take_read {
                    let samples = self.fetch(reader, &ReadOptions::new())?;
                    print_samples(reader, &samples);
                } else {
                    self.read_instances(reader)?;
                }
            }
            if self.is_presented() {
                subscriber.end_access()?;
            }
            iterations += 1;
            if options.num_iterations != 0 && iterations >= options.num_iterations {
                break;
            }
            self.stop.sleep(options.read_period());
        }
        Ok(())
    }

    fn read_instances(&self, reader: &DataReader<ShapeType>) -> Result<()> {
        let mut previous = InstanceHandle::NIL;
        loop {
            let samples = self.fetch(reader, &ReadOptions::new().next_instance(previous))?;
            let Some(last) = samples.last() else { return Ok(()) };
            previous = last.info.instance_handle;
            print_samples(reader, &samples);
        }
    }

    fn fetch(&self, reader: &DataReader<ShapeType>, options: &ReadOptions) -> Result<Vec<Sample<ShapeType>>> {
        if self.options.use_read { reader.read_with(options) } else { reader.take_with(options) }
    }
}

fn create_writers(
    options: &Options,
    qos: &Qos<'_>,
    publisher: &Publisher,
    topics: &[Topic<ShapeType>],
) -> Result<Vec<DataWriter<ShapeType>>> {
    let color = options.color.as_deref().unwrap_or("BLUE");
    topics
        .iter()
        .map(|topic| {
            say!("Create writer for topic: {} color: {color}", topic.name());
            publisher.create_writer(topic, qos.writer(topic.name())?)
        })
        .collect()
}

fn create_readers(
    options: &Options,
    qos: &Qos<'_>,
    participant: &DomainParticipant,
    subscriber: &Subscriber,
    topics: &[Topic<ShapeType>],
) -> Result<Vec<DataReader<ShapeType>>> {
    topics
        .iter()
        .map(|topic| {
            let Some((expression, parameters)) = options.filter() else {
                say!("Create reader for topic: {}", topic.name());
                return subscriber.create_reader(topic, qos.reader(topic.name())?);
            };
            let name = format!("{}_filtered", topic.name());
            let filtered = participant
                .create_content_filtered_topic(&name, topic, &expression, parameters)
                .inspect_err(|_| say!("failed to create content filtered topic"))?;
            say!("Create reader for topic: {name}");
            subscriber.create_reader(&filtered, qos.reader(topic.name())?)
        })
        .collect()
}

/// Takes what the readers have, sample by sample in the order the publishers wrote them.
fn read_in_group_order(subscriber: &Subscriber) -> Result<()> {
    for reader in subscriber.readers(&ReadOptions::new()) {
        let Some(reader) = reader.downcast::<ShapeType>() else { continue };
        print_samples(&reader, &reader.take_with(&ReadOptions::new().max_samples(1))?);
    }
    Ok(())
}

fn print_samples(reader: &DataReader<ShapeType>, samples: &[Sample<ShapeType>]) {
    for sample in samples {
        if let Some(shape) = &sample.data {
            print_shape(reader.topic_name(), shape);
            continue;
        }
        let state = match sample.info.instance_state {
            InstanceState::NotAliveNoWriters => "NOT_ALIVE_NO_WRITERS_INSTANCE_STATE",
            InstanceState::NotAliveDisposed => "NOT_ALIVE_DISPOSED_INSTANCE_STATE",
            InstanceState::Alive => continue,
        };
        let color =
            reader.key_value(sample.info.instance_handle).map(|shape| shape.color).unwrap_or_default();
        say!("{:<10} {color:<10} {state}", reader.topic_name());
    }
}

fn print_shape(topic: &str, shape: &ShapeType) {
    let ShapeType { color, x, y, shapesize, additional_payload_size } = shape;
    match additional_payload_size.last() {
        Some(last) => say!("{topic:<10} {color:<10} {x:03} {y:03} [{shapesize}] {{{last}}}"),
        None => say!("{topic:<10} {color:<10} {x:03} {y:03} [{shapesize}]"),
    }
}
