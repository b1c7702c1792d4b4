//! CDR: random types and values, and octets that were never a sample. The body is that of the seeded test
//! `fuzz_cdr_random_types`.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/proto/tests/cdr_fuzzing/mod.rs"]
mod cdr_fuzzing;
#[path = "../../crates/proto/tests/type_model/mod.rs"]
mod type_model;

fuzz_target!(|octets: &[u8]| cdr_fuzzing::run(octets));
