//! Reading a recording, and what is left of a damaged one. Nothing in the file is believed: sizes are checked
//! against limits and the file itself before memory is taken.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::Arc;

use mcap::records::{MessageHeader, Record, SchemaHeader};
use mcap::sans_io::linear_reader::{LinearReadEvent, LinearReader, LinearReaderOptions};

use crate::compressed::inflate;
use crate::event::{self, Event};
use crate::foreign::{self, ForeignSchema};
use crate::lengths;
use crate::limits::{FLAWS_MAX, METADATA_BYTES_MAX, READ_BYTES, RECORD_BYTES_MAX};
use crate::writer::{MetadataError, RecordedWriter};

/// Why a file is not read on.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The file cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It is something else.
    #[error("it is no MCAP file")]
    NotMcap,
}

/// Something that could not be read, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// Octets of the file before it, about.
    pub at: u64,
    /// What is wrong.
    pub what: String,
}

/// What a file has, in its order.
#[derive(Clone, Debug)]
pub enum Item {
    /// A writer; what follows names it by this number.
    Writer(u16, Arc<RecordedWriter>),
    /// A change, or the departure of a writer.
    Change(Change),
}

/// One message of a file.
#[derive(Clone, Debug)]
pub enum Change {
    /// A sample.
    Sample {
        /// The number of its writer.
        writer: u16,
        /// When it arrived, in nanoseconds since 1970.
        log_time: u64,
        /// When it was written.
        publish_time: u64,
        /// With its encapsulation header.
        payload: Vec<u8>,
    },
    /// What happened beside samples.
    Event {
        /// What.
        event: Event,
        /// When it arrived.
        log_time: u64,
        /// When it was written.
        publish_time: u64,
    },
}

impl Change {
    /// When it arrived, in nanoseconds since 1970.
    #[must_use]
    pub const fn log_time(&self) -> u64 {
        match self {
            Self::Sample { log_time, .. } | Self::Event { log_time, .. } => *log_time,
        }
    }

    /// Octets that it keeps.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let octets = match self {
            Self::Sample { payload, .. } => payload.len(),
            Self::Event { event, .. } => event.key.len() + event.key_hash.len() + event.topic.len(),
        };
        octets + size_of::<Self>()
    }
}

/// A record; none if nobody looks at its kind.
fn parse(opcode: u8, data: &[u8]) -> Result<Option<Record<'_>>, String> {
    if !lengths::is_read(opcode) {
        return Ok(None);
    }
    if !lengths::fit(opcode, data) {
        return Err("it tells a length beyond its end".to_owned());
    }
    mcap::parse_record(opcode, data).map(Some).map_err(|error| error.to_string())
}

/// What a channel is.
enum Known {
    Writer,
    Events,
    /// Nobody plays it.
    Other,
}

/// A file that is being read.
pub struct Input<R> {
    source: R,
    reader: LinearReader,
    /// Octets read.
    read: u64,
    /// Of the current chunk, the last first.
    items: Vec<Item>,
    channels: BTreeMap<u16, Known>,
    /// What they are named by in files of others.
    schemas: BTreeMap<u16, ForeignSchema>,
    /// The raw metadata of each channel: one may be told again, but not otherwise.
    metadata_bytes: usize,
    flaws: Vec<Flaw>,
    flaw_count: u64,
    is_over: bool,
}

impl<R: Read> Input<R> {
    /// Begins to read.
    pub fn new(source: R) -> Self {
        let options =
            LinearReaderOptions::default().with_emit_chunks(true).with_record_length_limit(RECORD_BYTES_MAX);
        Self {
            source,
            reader: LinearReader::new_with_options(options),
            read: 0,
            items: Vec::new(),
            channels: BTreeMap::new(),
            schemas: BTreeMap::new(),
            metadata_bytes: 0,
            flaws: Vec::new(),
            flaw_count: 0,
            is_over: false,
        }
    }

    /// What could not be read so far, the first of it, and how much there was.
    #[must_use]
    pub fn flaws(&self) -> (&[Flaw], u64) {
        (&self.flaws, self.flaw_count)
    }

    /// Octets of the file that were read.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.read
    }

    /// What comes next; `None` at the end, which may be earlier than it should: see [`Self::flaws`].
    ///
    /// # Errors
    /// [`InputError`].
    pub fn next_item(&mut self) -> Result<Option<Item>, InputError> {
        loop {
            if let Some(item) = self.items.pop() {
                return Ok(Some(item));
            }
            if self.is_over {
                return Ok(None);
            }
            self.step()?;
        }
    }

    /// Reads a record, or some more of one.
    fn step(&mut self) -> Result<(), InputError> {
        let need = match self.reader.next_event() {
            None => {
                self.is_over = true;
                return Ok(());
            }
            Some(Ok(LinearReadEvent::ReadRequest(_))) => READ_BYTES,
            Some(Ok(LinearReadEvent::Record { data, opcode })) => {
                // The reader is asked for the next record only when nothing of this is needed any more.
                match parse(opcode, data).map(|record| record.map(Record::into_owned)) {
                    Ok(Some(record)) => self.record(record),
                    Ok(None) => {}
                    Err(why) => self.flaw(format!("a record is damaged: {why}")),
                }
                self.items.reverse();
                return Ok(());
            }
            Some(Err(mcap::McapError::BadMagic)) if self.channels.is_empty() && self.flaw_count == 0 => {
                return Err(InputError::NotMcap);
            }
            Some(Err(error)) => {
                self.is_over = true;
                let what = match error {
                    mcap::McapError::UnexpectedEof => "the file ends in the middle".to_owned(),
                    error => format!("the rest of the file cannot be read: {error}"),
                };
                self.flaw(what);
                return Ok(());
            }
        };
        // Never more than is there: what a record says of its length costs nothing until its octets come.
        let count = self.source.read(self.reader.insert(need))?;
        self.reader.notify_read(count);
        self.read += count as u64;
        Ok(())
    }

    fn record(&mut self, record: Record<'static>) {
        match record {
            Record::Chunk { header, data } => {
                let data = match header.compression.as_str() {
                    "" => data,
                    compression => match inflate(compression, &data, header.uncompressed_size) {
                        Ok(octets) => octets.into(),
                        Err(why) => return self.flaw(why),
                    },
                };
                if header.uncompressed_crc != 0 && crc32fast::hash(&data) != header.uncompressed_crc {
                    return self.flaw("a chunk is damaged: its checksum is wrong".to_owned());
                }
                self.chunk(&data);
            }
            other => self.content(other),
        }
    }

    fn chunk(&mut self, data: &[u8]) {
        for record in lengths::records(data) {
            let Some((opcode, record)) = record else {
                return self.flaw("a chunk is damaged: it ends within a record".to_owned());
            };
            match parse(opcode, record) {
                Ok(Some(Record::Chunk { .. })) => self.flaw("a chunk is within another".to_owned()),
                Ok(Some(record)) => self.content(record),
                Ok(None) => {}
                Err(why) => return self.flaw(format!("a chunk is damaged: {why}")),
            }
        }
    }

    fn content(&mut self, record: Record<'_>) {
        match record {
            Record::Schema { header, data } => self.schema(header, &data),
            Record::Channel(channel) => self.channel(channel),
            Record::Message { header, data } => self.message(header, &data),
            _ => {}
        }
    }

    fn schema(&mut self, header: SchemaHeader, text: &[u8]) {
        let id = header.id;
        let schema = ForeignSchema::new(header, text);
        self.metadata_bytes += schema.bytes();
        if self.metadata_bytes <= METADATA_BYTES_MAX {
            self.schemas.entry(id).or_insert(schema);
        }
    }

    /// The writer of a channel; else why there is none.
    fn writer(&self, channel: &mcap::records::Channel) -> Result<RecordedWriter, String> {
        match RecordedWriter::of_metadata(&channel.metadata) {
            // Somebody else recorded it, who has nothing of ours.
            Err(MetadataError::Missing(_))
                if !channel.metadata.keys().any(|key| key.starts_with("plainsong.")) =>
            {
                let schema = self.schemas.get(&channel.schema_id);
                foreign::writer(channel, schema).map_err(|error| error.to_string())
            }
            found => found.map_err(|error| error.to_string()),
        }
    }

    fn channel(&mut self, channel: mcap::records::Channel) {
        if self.channels.contains_key(&channel.id) {
            return;
        }
        let bytes: usize = channel.metadata.iter().map(|(key, value)| key.len() + value.len()).sum();
        self.metadata_bytes += bytes;
        let known = if self.metadata_bytes > METADATA_BYTES_MAX {
            self.flaw("the metadata of the channels is too long".to_owned());
            Known::Other
        } else if channel.topic == event::TOPIC && channel.message_encoding == "json" {
            Known::Events
        } else {
            match self.writer(&channel) {
                Ok(writer) => {
                    self.items.push(Item::Writer(channel.id, Arc::new(writer)));
                    Known::Writer
                }
                Err(error) => {
                    self.flaw(format!(
                        "the channel of topic '{}' is left out: {error}",
                        channel.topic.escape_debug()
                    ));
                    Known::Other
                }
            }
        };
        self.channels.insert(channel.id, known);
    }

    fn message(&mut self, header: MessageHeader, data: &[u8]) {
        let MessageHeader { channel_id, log_time, publish_time, .. } = header;
        match self.channels.get(&channel_id) {
            Some(Known::Writer) => {
                let payload = data.to_vec();
                let sample = Change::Sample { writer: channel_id, log_time, publish_time, payload };
                self.items.push(Item::Change(sample));
            }
            Some(Known::Events) => match serde_json::from_slice(data) {
                Ok(event) => self.items.push(Item::Change(Change::Event { event, log_time, publish_time })),
                Err(error) => self.flaw(format!("an event is damaged: {error}")),
            },
            Some(Known::Other) => {}
            None => self.flaw("a message is of no channel that the file tells".to_owned()),
        }
    }

    fn flaw(&mut self, what: String) {
        self.flaw_count += 1;
        if self.flaws.len() < FLAWS_MAX {
            self.flaws.push(Flaw { at: self.read, what });
        }
    }
}
