//! `plainsong idl`: what it prints and writes, and its exit status.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

/// A directory of this test, empty.
fn directory(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("plainsong-idl-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(path.join("inc")).expect("a directory for the test");
    path
}

fn idl(arguments: &[&str], directory: &PathBuf) -> (Output, String, String) {
    let program = env!("CARGO_BIN_EXE_plainsong");
    let output = Command::new(program).arg("idl").args(arguments).current_dir(directory).output();
    let output = output.expect("plainsong starts");
    let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
    (output.clone(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn files_become_rust_and_idl() {
    let directory = directory("good");
    fs::write(directory.join("inc/point.idl"), "#pragma once\nstruct Point { double x; };\n").unwrap();
    fs::write(directory.join("a.idl"), "#include <point.idl>\nstruct A { Point at; long b[N]; };\n").unwrap();
    let (output, rust, said) = idl(&["a.idl", "-I", "inc", "-D", "N=3"], &directory);
    assert!(output.status.success(), "{said}");
    assert!(rust.contains("pub at: Point,") && rust.contains("pub b: [i32; 3],"), "{rust}");
    let arguments = ["a.idl", "-I", "inc", "-D", "N=3", "--out", "new/out", "--language", "idl", "--json"];
    let (output, report, said) = idl(&arguments, &directory);
    assert!(output.status.success(), "{said}");
    let report = serde_json::from_str::<Value>(&report).unwrap();
    assert_eq!(report["files"][0]["path"], "new/out/a.idl");
    let written = fs::read_to_string(directory.join("new/out/a.idl")).unwrap();
    assert!(written.contains("int32 b[3];"), "{written}");
    fs::write(directory.join("file"), "").unwrap();
    let (output, _, said) = idl(&["a.idl", "-I", "inc", "-D", "N=3", "--out", "file"], &directory);
    assert_eq!((output.status.code(), said.contains("cannot write file/a.rs")), (Some(3), true), "{said}");
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn errors_have_places_and_the_exit_status_tells() {
    let directory = directory("bad");
    fs::write(directory.join("a.idl"), "struct A { long b };\n@strange struct B { strin c; };\n").unwrap();
    let (output, out, said) = idl(&["a.idl", "--out", "out"], &directory);
    assert_eq!((output.status.code(), out.as_str()), (Some(1), ""));
    assert!(said.contains("--> a.idl:1:18") && said.contains("--> a.idl:2:21"), "{said}");
    assert!(!directory.join("out").exists(), "nothing is written after an error");
    let (output, report, _) = idl(&["a.idl", "missing.idl", "--check", "--json"], &directory);
    assert_eq!(output.status.code(), Some(1));
    let report = serde_json::from_str::<Value>(&report).unwrap();
    assert_eq!(report["errors"], 3, "{report}");
    let diagnostics = report["diagnostics"].as_array().unwrap();
    let at = |message: &str| diagnostics.iter().find(|it| it["message"].as_str().unwrap().contains(message));
    assert_eq!(at("strange").unwrap()["severity"], "warning");
    assert_eq!(at("strin`").unwrap()["column"], 21);
    assert_eq!(at("missing.idl").unwrap()["path"], Value::Null);
    let (output, _, _) = idl(&["--no-such-option"], &directory);
    assert_eq!(output.status.code(), Some(2));
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn dds_xml_and_interfaces_of_ros_are_read() {
    let directory = directory("others");
    let package = directory.join("inc/lab/msg");
    fs::create_dir_all(&package).unwrap();
    fs::write(package.join("Point.msg"), "float64 x\n").unwrap();
    fs::write(package.join("Path.msg"), "Point[] points\n").unwrap();
    let xml = "<types><struct name='Shape'><member name='color' type='string' key='true'/></struct></types>";
    fs::write(directory.join("shape.xml"), xml).unwrap();
    let (output, rust, said) = idl(&["shape.xml"], &directory);
    assert!(output.status.success(), "{said}");
    assert!(rust.contains("pub struct Shape {") && rust.contains("#[dds(key)]"), "{rust}");
    let (output, written, said) = idl(&["inc/lab/msg/Path.msg", "--language", "idl"], &directory);
    assert!(output.status.success(), "{said}");
    assert!(written.contains("@dds_name(\"lab::msg::dds_::Point_\")"), "{written}");
    let (output, _, said) = idl(&["inc/lab/msg/Nowhere.msg", "shape.xml"], &directory);
    assert_eq!((output.status.code(), said.contains("Nowhere.msg")), (Some(1), true), "{said}");
    fs::remove_dir_all(directory).unwrap();
}
