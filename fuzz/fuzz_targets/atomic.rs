//! Messages of groups and disks of their members. The body is that of the seeded test `fuzz_atomic`.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/proto/tests/atomic_fuzzing/mod.rs"]
mod atomic_fuzzing;

fuzz_target!(|octets: &[u8]| atomic_fuzzing::run(octets));
