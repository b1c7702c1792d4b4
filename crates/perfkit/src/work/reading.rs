//! How samples get to a sink: by the product's threads, or by one of the worker that waits or looks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::adapter::{Failure, Reader};
use crate::spec::ReadMethod;

/// The longest that a waiting thread does not look whether it should end.
const PATIENCE: Duration = Duration::from_millis(50);

/// A reader at work.
pub(super) enum Reading {
    /// The product calls, or nobody reads now.
    Idle(Box<dyn Reader>),
    /// A thread of the worker reads.
    Thread {
        /// Tells it to end.
        ending: Arc<AtomicBool>,
        /// Gives the reader back.
        thread: JoinHandle<Result<Box<dyn Reader>, Failure>>,
    },
    /// The thread has panicked.
    Gone,
}

impl Reading {
    /// Begins to read in this way.
    pub(super) fn begin(&mut self, method: ReadMethod) {
        let Self::Idle(reader) = std::mem::replace(self, Self::Gone) else { return };
        if method == ReadMethod::Listener {
            *self = Self::Idle(reader);
            return;
        }
        let ending = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&ending);
        let thread = std::thread::spawn(move || read(reader, method, &told));
        *self = Self::Thread { ending, thread };
    }

    /// Whether reading ended by itself, since it failed.
    pub(super) fn has_failed(&self) -> bool {
        matches!(self, Self::Thread { thread, .. } if thread.is_finished())
    }

    /// Ends reading.
    pub(super) fn end(&mut self) -> Result<(), Failure> {
        match std::mem::replace(self, Self::Gone) {
            Self::Thread { ending, thread } => {
                ending.store(true, Ordering::Relaxed);
                let reader =
                    thread.join().map_err(|_| Failure::Failed("the reading thread panicked".to_owned()))?;
                *self = Self::Idle(reader?);
            }
            other => *self = other,
        }
        Ok(())
    }

    /// The reader, while nothing reads.
    pub(super) fn reader(&mut self) -> Result<&mut dyn Reader, Failure> {
        match self {
            Self::Idle(reader) => Ok(&mut **reader),
            _ => Err(Failure::Failed("the reader is in use".to_owned())),
        }
    }
}

fn read(
    mut reader: Box<dyn Reader>,
    method: ReadMethod,
    ending: &AtomicBool,
) -> Result<Box<dyn Reader>, Failure> {
    crate::floor::system::sleep_exactly();
    while !ending.load(Ordering::Relaxed) {
        read_once(&mut *reader, method, PATIENCE)?;
    }
    Ok(reader)
}

/// Waits or pauses as the method says, and takes what is there.
pub(super) fn read_once(
    reader: &mut dyn Reader,
    method: ReadMethod,
    patience: Duration,
) -> Result<(), Failure> {
    match method {
        ReadMethod::Listener | ReadMethod::Waitset => {
            if reader.wait(patience)? {
                reader.take()?;
            }
        }
        ReadMethod::Polling { period_us } => {
            if period_us == 0 {
                std::hint::spin_loop();
            } else {
                std::thread::sleep(Duration::from_micros(period_us));
            }
            reader.take()?;
        }
    }
    Ok(())
}
