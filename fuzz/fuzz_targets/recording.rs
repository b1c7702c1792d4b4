//! Recordings. The body is that of the seeded test `fuzz_recording`.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/recording/tests/recording_fuzzing/mod.rs"]
mod recording_fuzzing;

fuzz_target!(|octets: &[u8]| {
    recording_fuzzing::run(octets);
});
