//! What the back ends write, word for word. `RECORD=1` writes it down anew.

use std::env;
use std::fs;
use std::path::Path;

use plainsong_idl::{Backend, Compiler, Diagnostics, Idl, Memory, Options, Rust};

fn directory() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden"))
}

fn assert_recorded(name: &str, found: &str) {
    let path = directory().join(name);
    if env::var_os("RECORD").is_some() {
        fs::write(&path, found).expect("golden files can be written");
    }
    let expected = fs::read_to_string(&path).expect("there is a golden file");
    assert!(expected == found, "{name} is not what is written; RECORD=1 shows the difference:\n{found}");
}

#[test]
fn types_become_rust_and_idl() {
    let text = fs::read_to_string(directory().join("types.idl")).unwrap();
    let compilation = Compiler::new().compile_from(&Memory::new().with("types.idl", text), &["types.idl"]);
    let model = compilation.model.as_ref().unwrap_or_else(|| panic!("{}", compilation.render()));
    let options = Options { name: "types".to_owned() };
    let mut diagnostics = Diagnostics::default();
    let rust = Rust { leave_out: true }.generate(model, &options, &mut diagnostics);
    assert_recorded("types.rust", &rust[0].text);
    assert_recorded("types.warnings.txt", &diagnostics.render(&compilation.sources));
    let idl = Idl.generate(model, &options, &mut diagnostics);
    assert_recorded("types.out.idl", &idl[0].text);
    let again = Compiler::new()
        .compile_from(&Memory::new().with("types.out.idl", idl[0].text.clone()), &["types.out.idl"]);
    assert!(again.model.as_ref() == Some(model), "{}", again.render());
}

/// Inputs after `=== NAME`, and after `---` what is said of them.
#[test]
fn errors_say_place_and_cure() {
    let path = directory().join("errors.txt");
    let recorded = fs::read_to_string(&path).unwrap();
    let mut written = String::new();
    for case in recorded.split("=== ").skip(1) {
        let (name, rest) = case.split_once('\n').unwrap();
        let input = rest.split("---\n").next().unwrap();
        let files = Memory::new().with("a.idl", input);
        let compilation = Compiler::new().compile_from(&files, &["a.idl"]);
        let said = compilation.render();
        written += &format!("=== {name}\n{input}---\n{said}\n");
        let fails = !name.ends_with("(warning)");
        assert_eq!(compilation.model.is_none(), fails, "{name}: {said}");
    }
    if env::var_os("RECORD").is_some() {
        fs::write(&path, &written).unwrap();
    }
    for (expected, found) in recorded.split("=== ").zip(written.split("=== ")) {
        assert_eq!(expected, found);
    }
}
