//! Types that are known at run time: TypeObjects, samples and texts that were changed. The body is that of
//! the seeded test `fuzz_dynamic`.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/proto/tests/dynamic_fuzzing/mod.rs"]
mod dynamic_fuzzing;

fuzz_target!(|octets: &[u8]| dynamic_fuzzing::run(octets));
