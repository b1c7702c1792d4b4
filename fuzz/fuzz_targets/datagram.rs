//! Whole datagrams. The body is that of the seeded test `fuzz_datagram`.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/proto/tests/wire_fuzzing/mod.rs"]
mod wire_fuzzing;

fuzz_target!(|octets: &[u8]| wire_fuzzing::datagram(octets));
