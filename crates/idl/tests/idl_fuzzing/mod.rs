//! One run of the fuzzers of IDL, DDS-XML and interfaces of ROS 2: whatever the text, no panic; what compiles
//! is the same when it is written as IDL and read again.

#![allow(unreachable_pub, reason = "two crates include it")]

use plainsong_idl::{Backend, Compiler, Diagnostics, Idl, Memory, Options, Rust};

/// Whether the text compiled. The path tells what it is.
pub fn run(path: &str, text: &str) -> bool {
    let files = Memory::new()
        .with(path, text)
        .with("b.idl", "struct Included { long x; };\n#define B b\n")
        .with("b.xml", "<types><include file='a.xml'/><const name='B' type='int32' value='3'/></types>")
        .with("p/msg/B.msg", "int32 x\n");
    let compilation = Compiler::new().compile_from(&files, &[path]);
    let said = compilation.render();
    assert!(said.len() <= 8192 + 128 * 1024, "so much is said: {said}");
    let Some(model) = compilation.model else {
        assert!(said.contains("error: "), "nothing says why there is no model: {said}");
        return false;
    };
    let mut diagnostics = Diagnostics::default();
    Rust::default().generate(&model, &Options::default(), &mut diagnostics);
    let _ = diagnostics.render(&compilation.sources);
    let written = Idl.generate(&model, &Options::default(), &mut diagnostics);
    let idl = written.into_iter().map(|file| file.text).collect::<String>();
    let again = Compiler::new().compile_from(&Memory::new().with("c.idl", idl.clone()), &["c.idl"]);
    assert!(again.model.as_ref() == Some(&model), "read again: {}\n{idl}", again.render());
    true
}
