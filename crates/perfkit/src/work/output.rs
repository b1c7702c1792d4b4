//! Events, one a line.

use std::io::Write;
use std::sync::{Mutex, PoisonError};

use crate::event::Event;

/// Where events go.
pub(crate) struct Output(Mutex<Box<dyn Write + Send>>);

impl Output {
    pub(crate) fn new(output: impl Write + Send + 'static) -> Self {
        Self(Mutex::new(Box::new(output)))
    }

    /// Tells an event. Nobody is left to be told that this failed: the standard input ends then, too.
    pub(crate) fn tell(&self, event: &Event) {
        let Ok(mut line) = serde_json::to_vec(event) else { return };
        line.push(b'\n');
        let mut output = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = output.write_all(&line).and_then(|()| output.flush());
    }
}
