//! Inputs that are long or deep: reading them ends, with an error where there is a limit.

use plainsong_idl::{Backend, Compilation, Compiler, Diagnostics, Idl, Memory, Options, Rust};

fn compile(text: String) -> Compilation {
    Compiler::new().compile_from(&Memory::new().with("a.idl", text), &["a.idl"])
}

#[track_caller]
fn assert_refused(text: String, why: &str) {
    let compilation = compile(text);
    assert!(compilation.model.is_none() && compilation.render().contains(why), "{}", compilation.render());
}

#[test]
fn chains_of_types_have_a_limit() {
    let chain = |link: &dyn Fn(usize) -> String| {
        format!("typedef long T0;\n{}", (1..5_000).map(link).collect::<String>())
    };
    let why = "made of more than 256 types";
    assert_refused(chain(&|at| format!("typedef T{} T{at};\n", at - 1)), why);
    assert_refused(chain(&|at| format!("typedef sequence<T{}> T{at};\n", at - 1)), why);
    assert_refused(chain(&|at| format!("struct T{at} {{ T{} x; }};\n", at - 1)), why);
}

#[test]
fn long_inputs_end() {
    // Each refers to the next, so that nothing is deep when it is read.
    let mut text = String::new();
    for at in 0..10_000 {
        text +=
            &format!("struct S{};\nstruct S{at} {{ sequence<S{}> next; string name; }};\n", at + 1, at + 1);
    }
    let compilation = compile(text.clone() + "struct S10000 { double x; };\n");
    let model = compilation.model.as_ref().unwrap_or_else(|| panic!("{}", compilation.render()));
    let mut diagnostics = Diagnostics::default();
    let rust = Rust::default().generate(model, &Options::default(), &mut diagnostics);
    assert!(rust[0].text.contains("pub next: Vec<S1>,"));
    assert!(!rust[0].text.contains(" Eq,"), "all have a number that is not comparable");
    assert_eq!(
        Idl.generate(model, &Options::default(), &mut diagnostics)[0].text.matches("double").count(),
        1
    );
    // The last of them is no data, and so is none.
    let compilation = compile(text.clone() + "struct S10000 { any x; };\n");
    assert_eq!(compilation.model.map(|model| model.definitions().count()), Some(0));
    assert_refused(text, "never defined");
    let literals = (0..50_000).map(|at| format!("L{at}, ")).collect::<String>();
    assert!(compile(format!("enum E {{ {literals} }};")).model.is_some());
    assert_refused(format!("bitmask B {{ {literals} }};"), "at most 64 flags");
    let unknown = (0..20_000).map(|at| format!("struct U{at} {{ Unknown{at} x; }};\n")).collect::<String>();
    let compilation = compile(unknown);
    assert_eq!((compilation.diagnostics.errors(), compilation.diagnostics.all().len()), (20_000, 100));
}
