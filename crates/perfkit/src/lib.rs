//! The worker side of `plainsong perf`.
//!
//! An adapter is a program that speaks one product (a DDS, or a bare socket) and nothing else: it implements
//! [`Adapter`], or the same as a table of C functions, and hands over to this library. Workloads, pacing,
//! payloads, clock and recorder are here, so that every product does the same work and is measured by the
//! same instructions.
//!
//! A worker is one process. It reads [`Command`]s from its standard input and writes [`Event`]s to its
//! standard output, one JSON object a line. When its standard input ends, it ends.

pub mod adapter;
pub mod c;
pub mod clock;
pub mod command;
pub mod counting;
pub mod event;
pub mod fault;
pub mod floor;
pub mod payload;
pub mod recorder;
pub mod schedule;
pub mod spec;
pub mod tracker;
mod work;
pub mod worker;

pub use adapter::{Adapter, Description, Failure, Reader, Sample, Session, Sink, Writer};
pub use command::Command;
pub use event::{Event, Report};
pub use spec::WorkerSpec;
