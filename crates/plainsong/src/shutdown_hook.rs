//! At the exit of the process its remaining participants are deleted, so that others hear that they leave.
//!
//! Dropping the last handle deletes a participant too, but not every handle is dropped: a listener that is
//! running holds one, a static does, and `std::process::exit` drops none. Without a word, others wait for the
//! lease of such a participant to end, a reliable KEEP_ALL writer in the middle of `write`. So far only on
//! systems like Unix.

#![allow(unsafe_code, reason = "atexit has no safe wrapper")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::base::clock;
use crate::participant;
use crate::runtime::notify::Notify;

/// The end of the process waits so long at most.
const TIMEOUT: Duration = Duration::from_millis(200);

/// The process whose participants are deleted; 0 before any has some.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Has the participants deleted when `main` returns or `exit` is called. Nothing helps one that is killed.
pub(crate) fn install() {
    // A forked process has the handler of its parent, which serves it when it has participants of its own.
    if PROCESS.swap(std::process::id(), Ordering::SeqCst) != 0 {
        return;
    }
    extern "C" fn at_exit() {
        delete_all();
    }
    // SAFETY: the function has the right type, never unwinds and lives as long as the library; the C library
    // calls it once. When it cannot note it, the process ends without a word, as it would have.
    let _ = unsafe { libc::atexit(at_exit) };
}

/// Whatever happens, it returns, soon, and does not unwind.
fn delete_all() {
    // A fork of the process that ends is not the end of the participants.
    if PROCESS.load(Ordering::SeqCst) != std::process::id() {
        return;
    }
    let done = Arc::new(Notify::default());
    let (seen, deadline) = (done.epoch(), clock::deadline(TIMEOUT));
    let deleted = Arc::clone(&done);
    // On a thread of its own: the variables of the ending thread are gone, and it may hold locks of the
    // application.
    let thread = std::thread::Builder::new().name("shutdown".to_owned()).spawn(move || {
        let all = participant::all();
        for participant in &all {
            // One of the process that this one was forked from is deleted there.
            let _ = participant.delete();
        }
        deleted.wake_all();
        // The last handle of a domain would wait for its threads.
        std::mem::forget(all);
    });
    if thread.is_ok() {
        done.wait(seen, deadline);
    }
}
