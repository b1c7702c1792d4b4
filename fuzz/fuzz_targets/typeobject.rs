//! Types that peers tell: TypeInformation, TypeObjects, messages of the TypeLookup service, and what comes of
//! them. The body is that of the seeded test `fuzz_typeobject`.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/idl/tests/typeobject_fuzzing/mod.rs"]
mod typeobject_fuzzing;

fuzz_target!(|octets: &[u8]| typeobject_fuzzing::run(octets));
