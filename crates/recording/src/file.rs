//! Writing a recording. After every chunk the file has an end, which the next chunk overwrites: it can be
//! opened at any time, and whatever becomes of the process.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::rc::Rc;

use mcap::records::MessageHeader;

use crate::event::{self, Event};
use crate::limits::CHUNK_BYTES;
use crate::names::channel_topic;
use crate::writer::RecordedWriter;

/// Why nothing more is recorded.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// The file cannot be written. It ends after what was written before.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// What is to be written cannot be said in the format: too many channels, perhaps.
    #[error("{0}")]
    Format(mcap::McapError),
}

impl From<mcap::McapError> for OutputError {
    fn from(error: mcap::McapError) -> Self {
        match error {
            mcap::McapError::Io(error) => Self::Io(error),
            error => Self::Format(error),
        }
    }
}

/// What is to be written next.
#[derive(Debug, Default)]
struct Pending {
    /// Where in the file it belongs.
    base: u64,
    octets: Vec<u8>,
    at: usize,
}

/// Where the format is written to before it goes to the file.
#[derive(Clone, Debug, Default)]
struct Sink(Rc<RefCell<Pending>>);

impl Write for Sink {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        let pending = &mut *self.0.borrow_mut();
        let over = pending.octets.len().saturating_sub(pending.at).min(octets.len());
        let (first, rest) = octets.split_at(over);
        if let Some(place) = pending.octets.get_mut(pending.at..pending.at + over) {
            place.copy_from_slice(first);
        }
        pending.octets.extend_from_slice(rest);
        pending.at += octets.len();
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Sink {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let pending = &mut *self.0.borrow_mut();
        let end = pending.base + pending.octets.len() as u64;
        let place = match to {
            SeekFrom::Start(place) => Some(place),
            SeekFrom::Current(by) => (pending.base + pending.at as u64).checked_add_signed(by),
            SeekFrom::End(by) => end.checked_add_signed(by),
        };
        let inside = place.filter(|place| (pending.base..=end).contains(place));
        let place = inside.ok_or_else(|| io::Error::other("what is written already does not change"))?;
        pending.at = usize::try_from(place - pending.base).unwrap_or(usize::MAX);
        Ok(place)
    }
}

/// The end of a file without summary: nothing but its data.
fn ending() -> Vec<u8> {
    let mut octets = Vec::new();
    // The data end, without checksum.
    octets.push(0x0f);
    octets.extend_from_slice(&4_u64.to_le_bytes());
    octets.extend_from_slice(&[0; 4]);
    // The footer: no summary.
    octets.push(0x02);
    octets.extend_from_slice(&20_u64.to_le_bytes());
    octets.extend_from_slice(&[0; 20]);
    octets.extend_from_slice(mcap::MAGIC);
    octets
}

/// A recording that is being written.
pub struct Output {
    file: File,
    writer: mcap::Writer<Sink>,
    sink: Sink,
    /// Octets of the file that stay.
    written: u64,
    events: Option<u16>,
    event_count: u32,
}

impl Output {
    /// Begins a file, which must not exist unless it may be overwritten.
    ///
    /// # Errors
    /// [`OutputError::Io`].
    pub fn create(path: &Path, overwrite: bool) -> Result<Self, OutputError> {
        let mut options = File::options();
        options.write(true).truncate(overwrite).create(overwrite).create_new(!overwrite);
        let file = options.open(path)?;
        let sink = Sink::default();
        let options = mcap::WriteOptions::new()
            .compression(None)
            .library(concat!("plainsong ", env!("CARGO_PKG_VERSION")))
            // Chunks are closed by `commit`.
            .chunk_size(None)
            .calculate_data_section_crc(false);
        let writer = options.create(sink.clone())?;
        let mut output = Self { file, writer, sink, written: 0, events: None, event_count: 0 };
        output.commit()?;
        Ok(output)
    }

    /// Another handle of the file, for who makes it durable.
    ///
    /// # Errors
    /// [`io::Error`].
    pub fn handle(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Octets in the file, and octets that wait to be written.
    #[must_use]
    pub fn bytes(&self) -> (u64, usize) {
        (self.written, self.sink.0.borrow().octets.len())
    }

    /// Whether a chunk is full.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.sink.0.borrow().octets.len() >= CHUNK_BYTES
    }

    /// The channel of a writer, and what is to be said of its schema where it has none.
    ///
    /// # Errors
    /// [`OutputError::Format`] after 65,535 channels.
    pub fn add_writer(&mut self, writer: &RecordedWriter) -> Result<(u16, Option<String>), OutputError> {
        let (schema, said) = writer.schema();
        let schema = match schema {
            Some(schema) => self.writer.add_schema(&schema.name, schema.encoding, schema.text.as_bytes())?,
            None => 0,
        };
        let topic = channel_topic(&writer.topic);
        Ok((self.writer.add_channel(schema, &topic, "cdr", &writer.metadata())?, said))
    }

    /// A sample, with its times in nanoseconds since 1970.
    ///
    /// # Errors
    /// [`OutputError`].
    pub fn sample(
        &mut self,
        channel_id: u16,
        sequence: u32,
        (log_time, publish_time): (u64, u64),
        payload: &[u8],
    ) -> Result<(), OutputError> {
        let header = MessageHeader { channel_id, sequence, log_time, publish_time };
        Ok(self.writer.write_to_known_channel(&header, payload)?)
    }

    /// What happens beside samples.
    ///
    /// # Errors
    /// [`OutputError`].
    pub fn event(&mut self, event: &Event, (log_time, publish_time): (u64, u64)) -> Result<(), OutputError> {
        let channel = match self.events {
            Some(channel) => channel,
            None => {
                let schema =
                    self.writer.add_schema(event::SCHEMA_NAME, "jsonschema", event::SCHEMA.as_bytes())?;
                *self.events.insert(self.writer.add_channel(
                    schema,
                    event::TOPIC,
                    "json",
                    &BTreeMap::new(),
                )?)
            }
        };
        let text = serde_json::to_vec(event).map_err(io::Error::from)?;
        self.event_count = self.event_count.wrapping_add(1);
        self.sample(channel, self.event_count, (log_time, publish_time), &text)
    }

    /// Writes what waits, and an end after it.
    ///
    /// # Errors
    /// [`OutputError::Io`]: the file ends after what was written before, and nothing more can be written.
    pub fn commit(&mut self) -> Result<(), OutputError> {
        self.writer.flush()?;
        let kept = self.sink.0.borrow().octets.len();
        if kept == 0 {
            return Ok(());
        }
        self.sink.0.borrow_mut().octets.extend_from_slice(&ending());
        self.write_pending()?;
        self.written += kept as u64;
        let mut pending = self.sink.0.borrow_mut();
        pending.base += kept as u64;
        pending.octets.clear();
        pending.octets.shrink_to(2 * CHUNK_BYTES);
        pending.at = 0;
        Ok(())
    }

    /// Ends the file with a summary, by which readers find what they look for, and makes it durable.
    ///
    /// # Errors
    /// [`OutputError::Io`]: the file ends after what was written before.
    pub fn finish(mut self) -> Result<u64, OutputError> {
        self.commit()?;
        self.writer.finish()?;
        self.write_pending()?;
        let end = self.written + self.sink.0.borrow().octets.len() as u64;
        self.file.sync_all()?;
        Ok(end)
    }

    fn write_pending(&self) -> Result<(), OutputError> {
        let result = self.file.write_all_at(&self.sink.0.borrow().octets, self.written);
        result.map_err(|error| {
            self.restore();
            error.into()
        })
    }

    /// Ends the file after what was written before: there was an end, whose place nobody else has taken.
    fn restore(&self) {
        if self.written > 0 {
            let ending = ending();
            let cut = self.file.set_len(self.written + ending.len() as u64);
            // Where not even that works, readers find the end of the file in the middle of a chunk.
            let _ = cut.and_then(|()| self.file.write_all_at(&ending, self.written));
            let _ = self.file.sync_all();
        }
    }
}
