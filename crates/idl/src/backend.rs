//! What writes code from a model.

use std::path::PathBuf;

use crate::diagnostic::Diagnostics;
use crate::model::Model;

/// A file that a back end has written, and nobody has stored yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeneratedFile {
    /// Within the output directory.
    pub path: PathBuf,
    /// All of it.
    pub text: String,
}

/// What all back ends are told.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The name of the output, without extension.
    pub name: String,
}

/// Writes code of one language.
pub trait Backend {
    /// The code of a model. What the language or its library cannot say is among the diagnostics; after an
    /// error the files are not to be used.
    fn generate(&self, model: &Model, options: &Options, diagnostics: &mut Diagnostics)
    -> Vec<GeneratedFile>;
}
