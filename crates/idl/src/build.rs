//! For build scripts: IDL files to a Rust file in `OUT_DIR`.
//!
//! In `build.rs`:
//!
//! ```no_run
//! fn main() -> Result<(), plainsong_idl::build::Error> {
//!     plainsong_idl::build::compile(&["idl/shapes.idl"], &["idl"]).map(drop)
//! }
//! ```
//!
//! In the library: `mod shapes { include!(concat!(env!("OUT_DIR"), "/shapes.rs")); }`

use std::env;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::backend::{Backend, Options};
use crate::compile::Compiler;
use crate::diagnostic::{Diagnostics, Severity};
use crate::rust::Rust;
use crate::source::SourceMap;

/// Why there is no Rust file. `Debug` is what `main` prints: the same text.
pub struct Error(String);

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "IDL does not compile\n\n{}", self.0)
    }
}

impl std::error::Error for Error {}

/// Compiles files into one Rust file in `OUT_DIR`, which is called after the first of them; its path. Cargo
/// is told to do so again when one of the files changes, or one that they include.
///
/// # Errors
/// What is wrong with the files, with places; or that the output cannot be written.
pub fn compile<P: AsRef<Path>, Q: AsRef<Path>>(
    files: &[P],
    include_directories: &[Q],
) -> Result<PathBuf, Error> {
    let compiler = include_directories
        .iter()
        .fold(Compiler::new(), |compiler, directory| compiler.include(directory.as_ref()));
    compile_with(&compiler, files)
}

/// The same with a compiler of one's own.
///
/// # Errors
/// As those of [`compile`].
pub fn compile_with<P: AsRef<Path>>(compiler: &Compiler, files: &[P]) -> Result<PathBuf, Error> {
    let directory = env::var_os("OUT_DIR").map(PathBuf::from);
    let directory = directory.ok_or_else(|| {
        Error("OUT_DIR is not set: call this from a build script, or use Compiler and Rust".to_owned())
    })?;
    compile_into(&directory, compiler, files)
}

fn compile_into<P: AsRef<Path>>(
    directory: &Path,
    compiler: &Compiler,
    files: &[P],
) -> Result<PathBuf, Error> {
    let mut compilation = compiler.compile(files);
    for path in compilation.sources.paths() {
        println!("cargo:rerun-if-changed={}", path.display());
    }
    let Some(model) = compilation.model.take() else { return Err(Error(compilation.render())) };
    let name = files.first().and_then(|path| path.as_ref().file_stem()).unwrap_or_default();
    let options = Options { name: name.to_string_lossy().into_owned() };
    let mut diagnostics = compilation.diagnostics;
    let generated = Rust::default().generate(&model, &options, &mut diagnostics);
    if diagnostics.has_errors() {
        return Err(Error(diagnostics.render(&compilation.sources)));
    }
    warn(&diagnostics, &compilation.sources);
    let mut written = directory.to_owned();
    for file in generated {
        written = directory.join(&file.path);
        std::fs::write(&written, file.text)
            .map_err(|error| Error(format!("cannot write {}: {error}", written.display())))?;
    }
    Ok(written)
}

/// Warnings as Cargo shows them, a line each.
fn warn(diagnostics: &Diagnostics, sources: &SourceMap) {
    for diagnostic in diagnostics.all().iter().filter(|it| it.severity == Severity::Warning) {
        let place = diagnostic.span.map(|span| sources.location(span));
        let place = place.map_or_else(String::new, |at| format!("{}:{}: ", at.path.display(), at.line));
        println!("cargo:warning={place}{}", diagnostic.message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rust_file_is_written_or_the_error_has_the_place() {
        let directory = env::temp_dir().join(format!("plainsong-idl-build-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let input = directory.join("shapes.idl");
        std::fs::write(&input, "struct Shape { @key string color; long x; };\n").unwrap();
        let written = compile_into(&directory, &Compiler::new(), &[&input]).unwrap();
        assert_eq!(written, directory.join("shapes.rs"));
        assert!(std::fs::read_to_string(&written).unwrap().contains("pub struct Shape {"));
        std::fs::write(&input, "struct Shape { fixed<5, 2> x; };\n").unwrap();
        let error = compile_into(&directory, &Compiler::new(), &[&input]).unwrap_err();
        assert!(format!("{error:?}").contains("shapes.idl:1:8"), "{error:?}");
        std::fs::remove_dir_all(directory).unwrap();
    }
}
