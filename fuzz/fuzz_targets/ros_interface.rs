//! Messages of ROS 2. The body is that of the seeded test `fuzz_ros_interface`.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/idl/tests/idl_fuzzing/mod.rs"]
mod idl_fuzzing;

fuzz_target!(|text: &str| {
    idl_fuzzing::run("p/msg/A.msg", text);
});
