//! `plainsong idl`: compiles IDL, DDS-XML and interfaces of ROS 2.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use plainsong_idl::model::Extensibility;
use plainsong_idl::{
    Backend, Compilation, Compiler, Diagnostics, GeneratedFile, Idl, Options as BackendOptions, Rust,
    Severity, SourceMap,
};
use serde_json::{Value, json};

use crate::output::say;

/// The files have errors.
const WRONG: u8 = 1;
/// The output cannot be written.
const NOT_WRITTEN: u8 = 3;

/// Options of `plainsong idl`.
#[derive(Args)]
#[command(after_help = "\
Example:
  plainsong idl shapes.idl -I idl --out src/generated
  plainsong idl --check -I idl $(find idl -name '*.idl')
  plainsong idl geometry_msgs/msg/Pose.msg -I /opt/ros/kilted/share

Exit status: 0 if the files compile, 1 if they have errors, 2 after an unknown option, 3 if the output cannot be
written. docs/idl.md tells what is read and written.")]
pub(crate) struct Options {
    /// Files of IDL, DDS-XML (.xml) or ROS 2 (.msg, .srv, .action), which become one set of types; a file
    /// that several of them include counts once
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Look for included files here, after the directory of the file that includes them
    #[arg(short = 'I', value_name = "DIR")]
    include: Vec<PathBuf>,
    /// Define a macro: NAME or NAME=VALUE
    #[arg(short = 'D', value_name = "NAME=VALUE")]
    define: Vec<String>,
    /// Write into this directory instead of standard output; it is made if it does not exist
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// What to write
    #[arg(short, long, value_enum, default_value_t = Language::Rust)]
    language: Language,
    /// Name of the output, without extension; default: that of the first file
    #[arg(long)]
    name: Option<String>,
    /// Extensibility of types that tell none
    #[arg(long, value_enum, default_value_t = DefaultExtensibility::Appendable)]
    default_extensibility: DefaultExtensibility,
    /// Leave out types that Rust types of Plainsong cannot say, and those that use them, with a warning
    #[arg(long)]
    leave_out: bool,
    /// Write nothing; say what is wrong
    #[arg(long)]
    check: bool,
    /// Print JSON: the files that were written, and what was said of the input
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Language {
    /// Types with `#[derive(DdsType)]`
    Rust,
    /// IDL again, with everything told and nothing included
    Idl,
}

#[derive(Clone, Copy, ValueEnum)]
enum DefaultExtensibility {
    Final,
    Appendable,
    Mutable,
}

/// Compiles; see [`Options`] for the exit status.
pub(crate) fn run(options: &Options) -> ExitCode {
    let mut compilation = compiler(options).compile(&options.files);
    let generated = generate(options, &mut compilation);
    let Compilation { diagnostics, sources, .. } = &compilation;
    let failed = diagnostics.has_errors();
    let files = if failed || options.check { Vec::new() } else { generated };
    let written = match &options.out {
        Some(directory) => files.iter().map(|file| write(directory, file)).collect(),
        None => Ok(files.iter().map(|file| file.path.clone()).collect::<Vec<_>>()),
    };
    let written = match written {
        Ok(written) => written,
        Err(text) => {
            eprintln!("{text}");
            return ExitCode::from(NOT_WRITTEN);
        }
    };
    if options.json {
        say!("{}", report(options, &files, &written, diagnostics, sources));
    } else {
        let said = diagnostics.render(sources);
        if !said.is_empty() {
            eprintln!("{said}");
        }
        if failed {
            eprintln!("{} errors: nothing is written", diagnostics.errors());
        } else if options.out.is_none() {
            files.iter().for_each(|file| say!("{}", file.text.trim_end()));
        }
    }
    if failed { ExitCode::from(WRONG) } else { ExitCode::SUCCESS }
}

fn compiler(options: &Options) -> Compiler {
    let extensibility = match options.default_extensibility {
        DefaultExtensibility::Final => Extensibility::Final,
        DefaultExtensibility::Appendable => Extensibility::Appendable,
        DefaultExtensibility::Mutable => Extensibility::Mutable,
    };
    let compiler = Compiler::new().default_extensibility(extensibility);
    let compiler = options.include.iter().fold(compiler, Compiler::include);
    options.define.iter().fold(compiler, Compiler::define)
}

fn generate(options: &Options, compilation: &mut Compilation) -> Vec<GeneratedFile> {
    let Some(model) = &compilation.model else { return Vec::new() };
    let first =
        || options.files.first().and_then(|path| path.file_stem()).map(|stem| stem.to_string_lossy().into());
    let name = options.name.clone().or_else(first).unwrap_or_default();
    let backend: &dyn Backend = match options.language {
        Language::Rust => &Rust { leave_out: options.leave_out },
        Language::Idl => &Idl,
    };
    backend.generate(model, &BackendOptions { name }, &mut compilation.diagnostics)
}

fn write(directory: &Path, file: &GeneratedFile) -> Result<PathBuf, String> {
    let path = directory.join(&file.path);
    let written = || -> io::Result<()> {
        fs::create_dir_all(directory)?;
        fs::write(&path, &file.text)
    };
    written().map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    Ok(path)
}

fn report(
    options: &Options,
    files: &[GeneratedFile],
    written: &[PathBuf],
    diagnostics: &Diagnostics,
    sources: &SourceMap,
) -> Value {
    let files = files.iter().zip(written).map(|(file, path)| match options.out {
        Some(_) => json!({ "path": path }),
        None => json!({ "path": path, "text": file.text }),
    });
    let said = diagnostics.all().iter().map(|said| {
        let place = said.span.map(|span| sources.location(span));
        let notes = said.notes.iter().map(|(text, span)| {
            let at = sources.location(*span);
            json!({ "message": text, "path": at.path, "line": at.line, "column": at.column })
        });
        json!({
            "severity": if said.severity == Severity::Error { "error" } else { "warning" },
            "message": said.message,
            "path": place.as_ref().map(|at| &at.path),
            "line": place.as_ref().map(|at| at.line),
            "column": place.as_ref().map(|at| at.column),
            "hint": said.hint,
            "notes": notes.collect::<Vec<_>>(),
        })
    });
    json!({
        "errors": diagnostics.errors(),
        "files": files.collect::<Vec<_>>(),
        "diagnostics": said.collect::<Vec<_>>(),
        "not_shown": diagnostics.left_out(),
    })
}
