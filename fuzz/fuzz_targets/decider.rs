//! Messages to a voter that decides on epochs. The body is that of the seeded test `fuzz_decider`.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/proto/tests/decider_fuzzing/mod.rs"]
mod decider_fuzzing;

fuzz_target!(|octets: &[u8]| decider_fuzzing::run(octets));
