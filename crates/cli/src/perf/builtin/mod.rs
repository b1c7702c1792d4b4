//! Adapters that are part of the program: Plainsong itself, and the floors that every product stands on.

mod datagram;
mod encode;
mod plainsong;
mod registry;
mod shared;

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use plainsong_perfkit::Adapter;

/// What a worker speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Name {
    /// This product.
    Plainsong,
    /// UDP sockets that block.
    Udp,
    /// UDP sockets that are looked at all the time.
    UdpBusy,
    /// Unix sockets that block.
    Unix,
    /// Shared memory that is looked at all the time.
    ShmSpin,
    /// Shared memory, with the kernel's help to sleep and wake.
    ShmFutex,
}

/// Options of `plainsong perf worker`.
#[derive(Args)]
pub(crate) struct Options {
    /// What it speaks.
    #[arg(long)]
    adapter: Name,
}

/// Is a worker on standard input and output.
pub(crate) fn run(options: &Options) -> ExitCode {
    let mut adapter: Box<dyn Adapter> = match options.adapter {
        Name::Plainsong => Box::new(plainsong::Product),
        Name::Udp => Box::new(datagram::Floor::new(datagram::Kind::Udp)),
        Name::UdpBusy => Box::new(datagram::Floor::new(datagram::Kind::UdpBusy)),
        Name::Unix => Box::new(datagram::Floor::new(datagram::Kind::Unix)),
        Name::ShmSpin => Box::new(shared::Floor { spinning: true }),
        Name::ShmFutex => Box::new(shared::Floor { spinning: false }),
    };
    plainsong_perfkit::worker::main(&mut *adapter)
}
