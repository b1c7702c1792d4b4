//! Recordings of DDS topics in MCAP files: what is kept of a writer and its changes, and how it is found
//! again.
//!
//! [`Output`] writes files that every reader of MCAP opens, at any time: also after the process was killed,
//! or the disk was full. [`Input`] reads them, and what is left of damaged ones, within limits.
//! `docs/recording.md` tells the layout.
#![forbid(unsafe_code)]

mod compressed;
mod event;
mod file;
mod foreign;
mod input;
mod lengths;
mod limits;
mod names;
mod ros;
mod writer;

pub use event::{Event, EventKind};
pub use file::{Output, OutputError};
pub use input::{Change, Flaw, Input, InputError, Item};
pub use limits::{CHUNK_BYTES, FLUSH_PERIOD};
pub use names::{Globs, channel_topic, dds_topic};
pub use writer::{MetadataError, RecordedWriter};
