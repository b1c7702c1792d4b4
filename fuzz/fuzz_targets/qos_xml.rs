//! QoS profiles. The body is that of the seeded test `fuzz_qos_xml`.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/plainsong/tests/qos_xml_fuzzing/mod.rs"]
mod qos_xml_fuzzing;

fuzz_target!(|text: &str| {
    qos_xml_fuzzing::run(text);
});
