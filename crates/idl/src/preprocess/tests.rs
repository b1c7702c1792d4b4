//! The preprocessor: what it puts out, and what it says.

use super::*;
use crate::source::Memory;

fn run(files: Memory, definitions: &[&str]) -> (String, String) {
    let mut sources = SourceMap::default();
    let mut diagnostics = Diagnostics::default();
    let definitions = definitions.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    let settings = Settings { include_directories: &["inc".into()], definitions: &definitions };
    let tokens = preprocess(Path::new("a.idl"), &files, &settings, &mut sources, &mut diagnostics);
    let tokens = tokens.map_or_else(Vec::new, |(_, tokens)| tokens);
    let words = tokens.iter().map(|token| match &token.kind {
        TokenKind::Word(text) | TokenKind::Number(text) => text.to_string(),
        TokenKind::Mark(mark) => (*mark).to_owned(),
        TokenKind::Text { value, .. } => format!("{value:?}"),
        other => format!("{other:?}"),
    });
    (words.collect::<Vec<_>>().join(" "), diagnostics.render(&sources))
}

fn output(text: &str) -> String {
    let (output, said) = run(Memory::new().with("a.idl", text), &[]);
    assert_eq!(said, "");
    output
}

fn errors(text: &str) -> String {
    run(Memory::new().with("a.idl", text), &[]).1
}

#[test]
fn macros_are_expanded_as_c_expands_them() {
    assert_eq!(output("#define N 3\nlong a[N];"), "long a [ 3 ] ;");
    assert_eq!(output("#define F(x, y) x##y #x\nF(a b, c)"), "a bc \"a b\"");
    assert_eq!(output("#define G(x) x x\n#define H G\nG((1, 2)) G G()"), "( 1 , 2 ) ( 1 , 2 ) G");
    assert_eq!(output("#define X X Y\n#define Y X\nX"), "X X");
    assert_eq!(output("#define V(first, ...) __VA_ARGS__\nV(1, 2, 3)"), "2 , 3");
    assert_eq!(output("#define A B\n#define B 1\n#undef B\nA"), "B");
    assert_eq!(output("#define LONG \\\n one \\\n two\nLONG"), "one two");
    assert_eq!(output("#define S(x) struct x { long\\\n a; };\nS(P)\nS(Q)").matches("struct").count(), 2);
}

#[test]
fn conditions_choose_one_branch() {
    let text = "#if defined(A) && !defined B\n1\n#elif VALUE > 2 ? 1 : 0\n2\n#else\n3\n#endif\n4";
    let choose = |definitions: &[&str]| run(Memory::new().with("a.idl", text), definitions);
    assert_eq!(choose(&["A"]), ("1 4".to_owned(), String::new()));
    assert_eq!(choose(&["A", "B", "VALUE=0x10"]), ("2 4".to_owned(), String::new()));
    assert_eq!(choose(&["VALUE=2L"]), ("3 4".to_owned(), String::new()));
    assert_eq!(
        output("#if 0\n#if 1\nx\n#else\ny\n#endif\n'\"/*\n#else\n*/\n#elif (1+2)*3==9\nz\n#endif"),
        "z"
    );
    assert_eq!(output("#ifndef A\n1\n#endif\n#ifdef A\n2\n#endif"), "1");
}

#[test]
fn files_are_found_beside_the_file_and_in_the_directories() {
    let files = Memory::new()
        .with("a.idl", "#include \"b.idl\"\n#include <c.idl>\n#include \"b.idl\"\n#include NAME\nlast")
        .with("b.idl", "#pragma once\nb")
        .with("inc/c.idl", "#ifndef C\n#define C\nc\n#endif\n#define FROM_C");
    let (output, said) = run(files, &["NAME=\"c.idl\""]);
    assert_eq!((output.as_str(), said.as_str()), ("b c last", ""));
}

#[test]
fn errors_name_the_place() {
    let said = errors("#include \"none.idl\"");
    assert_eq!(
        said,
        "error: the file \"none.idl\" is in none of the directories\n --> a.idl:1:1\n  |\n\
         1 | #include \"none.idl\"\n  | ^^^^^^^^^^^^^^^^^^^\n\
         hint: looked for none.idl, inc/none.idl; -I DIRECTORY adds a place to look\n"
    );
    let files = Memory::new().with("a.idl", "\n#include \"b.idl\"").with("b.idl", "#error don't\n#if\n");
    let (_, said) = run(files, &[]);
    assert!(said.contains("the file says: don't"), "{said}");
    assert!(said.contains("--> b.idl:1:1"), "{said}");
    assert!(said.contains("included from a.idl:2"), "{said}");
    assert!(said.contains("this condition does not end"), "{said}");
    assert!(errors("#endif").contains("no `#if` is open"));
    assert!(errors("#inclde \"x\"").contains("did you mean `#include`?"));
    assert!(errors("#if 1/0\n#endif").contains("divides by zero"));
    assert!(errors("#define F(x) x\nF(1, 2)").contains("has 1 parameters, and 2 arguments"));
    assert!(errors("#define F(x) x\nF(1").contains("do not end"));
    assert!(errors("#pragma strange").contains("has no effect"));
}

#[test]
fn nothing_grows_without_end() {
    assert!(errors("#include \"a.idl\"").contains("more than 64 files include one another"));
    let mut bomb = "#define M0 x x x x x x x x x x\n".to_owned();
    for level in 1..10 {
        bomb += &format!("#define M{level} {}\n", format!("M{} ", level - 1).repeat(10));
    }
    assert!(errors(&(bomb + "M9")).contains("expand to more than"));
    let deep = (1..100).map(|level| format!("#define D{level} D{}\n", level - 1)).collect::<String>();
    assert!(errors(&(deep + "D99")).contains("more than 64 macros"));
    let arguments = format!("#define F(x) x\n{}1{}", "F(".repeat(50_000), ")".repeat(50_000));
    assert!(errors(&arguments).contains("more than 64 macros"));
    assert!(errors(&"#if 1\n".repeat(100)).contains("more than 64 conditions"));
    assert!(errors(&format!("#if {}1\n#endif", "(".repeat(100))).contains("nested more than"));
}

#[test]
fn pragmas_of_keys_reach_the_parser() {
    let text = "#pragma keylist M::Type a b.c\n#pragma DCPS_DATA_KEY \"M::Other id\"";
    let output = output(text);
    assert!(output.contains(r#"Keys { of: "M::Type", paths: ["a", "b.c"], early: false }"#), "{output}");
    assert!(output.contains(r#"Keys { of: "M::Other", paths: ["id"], early: true }"#), "{output}");
}
