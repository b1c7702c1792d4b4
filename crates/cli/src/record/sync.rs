//! Makes a file durable beside the thread that writes it: a slow disk is to hold up nobody.

use std::fs::File;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

/// The thread that does it.
pub(crate) struct Syncer {
    requests: Option<SyncSender<()>>,
    failures: Receiver<io::Error>,
    thread: Option<JoinHandle<()>>,
}

impl Syncer {
    pub(crate) fn start(file: File) -> io::Result<Self> {
        let (requests, asked) = sync_channel::<()>(1);
        let (told, failures) = sync_channel(1);
        let thread = std::thread::Builder::new().name("sync".into()).spawn(move || {
            while asked.recv().is_ok() {
                if let Err(error) = file.sync_data() {
                    // The first one ends the recording.
                    let _ = told.try_send(error);
                    return;
                }
            }
        })?;
        Ok(Self { requests: Some(requests), failures, thread: Some(thread) })
    }

    /// What was written before is durable soon; an error of an earlier time.
    pub(crate) fn request(&self) -> io::Result<()> {
        if let Ok(error) = self.failures.try_recv() {
            return Err(error);
        }
        match self.requests.as_ref().map(|it| it.try_send(())) {
            // One that waits is for this, too.
            Some(Ok(()) | Err(TrySendError::Full(()))) | None => Ok(()),
            Some(Err(TrySendError::Disconnected(()))) => Err(self
                .failures
                .try_recv()
                .unwrap_or_else(|_| io::Error::other("the file cannot be made durable"))),
        }
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
