//! Where a state machine lives: in its process as it is, or in a slot of the driver.

use plainsong::sim::{SimParticipant, SimReader, SimWriter};
use plainsong_proto::discovery::Participant;
use plainsong_proto::outbox::Outbox;
use plainsong_proto::reader::Reader;
use plainsong_proto::time::Now;
use plainsong_proto::writer::Writer;

/// A state machine of which the node makes calls itself, or a handle of one that the driver has.
pub enum Home<M, S> {
    /// In the node.
    Here(Box<M>),
    /// In a slot.
    Driver(S),
}

/// A slot of the driver.
pub trait Slot<M> {
    /// A call, after which the driver sends, carries out commands and arms its timer.
    fn run<R>(&self, now: Now, f: impl FnOnce(&mut M, &mut Outbox) -> R) -> R;

    /// Looks at the state machine.
    fn look<R>(&self, f: impl FnOnce(&M) -> R) -> R;
}

macro_rules! slots {
    ($($slot:ty: $machine:ty),*) => {$(
        impl Slot<$machine> for $slot {
            fn run<R>(&self, now: Now, f: impl FnOnce(&mut $machine, &mut Outbox) -> R) -> R {
                Self::run(self, now, f)
            }

            fn look<R>(&self, f: impl FnOnce(&$machine) -> R) -> R {
                Self::look(self, f)
            }
        }
    )*};
}

slots!(SimParticipant: Participant, SimWriter: Writer, SimReader: Reader);

impl<M, S: Slot<M>> Home<M, S> {
    /// A call; what it leaves is in `out`, unless the driver has the state machine, which deals with it.
    pub fn run<R>(&mut self, now: Now, out: &mut Outbox, f: impl FnOnce(&mut M, &mut Outbox) -> R) -> R {
        match self {
            Self::Here(machine) => f(machine, out),
            Self::Driver(slot) => slot.run(now, f),
        }
    }

    /// A call that leaves nothing.
    pub fn edit<R>(&mut self, now: Now, f: impl FnOnce(&mut M) -> R) -> R {
        match self {
            Self::Here(machine) => f(machine),
            Self::Driver(slot) => slot.run(now, |machine, _| f(machine)),
        }
    }

    /// Looks at the state machine.
    pub fn look<R>(&self, f: impl FnOnce(&M) -> R) -> R {
        match self {
            Self::Here(machine) => f(machine),
            Self::Driver(slot) => slot.look(f),
        }
    }
}
