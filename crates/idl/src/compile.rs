//! From paths to a model.

use std::path::{Path, PathBuf};

use crate::diagnostic::Diagnostics;
use crate::model::{Extensibility, Model};
use crate::parse::parse;
use crate::preprocess::{Settings, preprocess};
use crate::resolve::Resolver;
use crate::source::{Disk, Files, SourceMap};
use crate::{ros, xml};

/// Reads IDL, DDS-XML (`.xml`), and interfaces of ROS 2 (`.msg`, `.srv`, `.action`).
#[derive(Debug, Clone)]
pub struct Compiler {
    include_directories: Vec<PathBuf>,
    definitions: Vec<String>,
    extensibility: Extensibility,
}

/// What came of a run.
#[derive(Debug)]
pub struct Compilation {
    /// The types; none if there was an error.
    pub model: Option<Model>,
    /// What was said.
    pub diagnostics: Diagnostics,
    /// The files that were read.
    pub sources: SourceMap,
}

impl Compilation {
    /// What was said, as text.
    pub fn render(&self) -> String {
        self.diagnostics.render(&self.sources)
    }
}

impl Default for Compiler {
    fn default() -> Self {
        Self::new()
    }
}

impl Compiler {
    /// A compiler that looks for included files beside the file that includes them only.
    pub const fn new() -> Self {
        let extensibility = Extensibility::Appendable;
        Self { include_directories: Vec::new(), definitions: Vec::new(), extensibility }
    }

    /// Adds a directory for `#include`.
    #[must_use]
    pub fn include(mut self, directory: impl Into<PathBuf>) -> Self {
        self.include_directories.push(directory.into());
        self
    }

    /// Defines a macro: `NAME` or `NAME=VALUE`.
    #[must_use]
    pub fn define(mut self, definition: impl Into<String>) -> Self {
        self.definitions.push(definition.into());
        self
    }

    /// The extensibility of types that tell none: appendable, as XTypes 1.3 says, unless this says otherwise.
    #[must_use]
    pub const fn default_extensibility(mut self, extensibility: Extensibility) -> Self {
        self.extensibility = extensibility;
        self
    }

    /// Compiles files of this machine into one model. Files that several of them include count once.
    pub fn compile<P: AsRef<Path>>(&self, paths: &[P]) -> Compilation {
        self.compile_from(&Disk, paths)
    }

    /// The same with files from anywhere.
    pub fn compile_from<P: AsRef<Path>>(&self, files: &dyn Files, paths: &[P]) -> Compilation {
        let mut sources = SourceMap::default();
        let mut diagnostics = Diagnostics::default();
        let settings =
            Settings { include_directories: &self.include_directories, definitions: &self.definitions };
        let mut trees = Vec::new();
        for path in paths.iter().map(AsRef::as_ref) {
            let extension = path.extension().and_then(|it| it.to_str()).unwrap_or_default();
            let directories = &self.include_directories;
            let tree = match extension.to_ascii_lowercase().as_str() {
                "xml" => xml::read(path, files, directories, &mut sources, &mut diagnostics),
                "msg" | "srv" | "action" => {
                    ros::read(path, files, directories, &mut sources, &mut diagnostics)
                }
                _ => preprocess(path, files, &settings, &mut sources, &mut diagnostics)
                    .map(|(file, tokens)| (file, parse(file, &tokens, &mut diagnostics))),
            };
            trees.extend(tree);
        }
        let mut resolver = Resolver::new(self.extensibility, &mut diagnostics);
        for (file, definitions) in &trees {
            resolver.input(*file, definitions);
        }
        let model = resolver.finish();
        let model = (!diagnostics.has_errors()).then_some(model);
        Compilation { model, diagnostics, sources }
    }
}
