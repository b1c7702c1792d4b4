//! DDS-XML types. The body is that of the seeded test `fuzz_dds_xml`.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/idl/tests/idl_fuzzing/mod.rs"]
mod idl_fuzzing;

fuzz_target!(|text: &str| {
    idl_fuzzing::run("a.xml", text);
});
