//! A link of shared memory whose peer writes anything. The body is that of the seeded test
//! `fuzz_shared_memory`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|octets: &[u8]| {
    plainsong::fuzz_shared_memory(octets);
});
