//! IDL 4.2 for Plainsong: a compiler from files to a [`Model`] of their types, and [back ends](Backend) that
//! write code from it.
//!
//! The way of an input: `source` holds files, `preprocess` makes tokens of them, `parse` a tree, `resolve`
//! a [`model`]. DDS-XML and interfaces of ROS 2 become trees in `xml` and `ros`. Each goes on after errors,
//! so that one run finds all of them.
//!
//! ```
//! use plainsong_idl::{Compiler, Memory};
//!
//! let files = Memory::new().with("shape.idl", "struct Shape { @key string<128> color; long x; };");
//! let compilation = Compiler::new().compile_from(&files, &["shape.idl"]);
//! let model = compilation.model.expect("no errors");
//! assert_eq!(model.definitions().count(), 1);
//! ```
#![forbid(unsafe_code)]

mod ast;
mod backend;
pub mod build;
mod compile;
#[cfg(feature = "described")]
mod described;
#[cfg(feature = "described")]
mod description;
mod diagnostic;
mod idl;
mod lex;
mod limits;
pub mod model;
mod parse;
mod preprocess;
mod resolve;
mod ros;
mod rust;
mod source;
mod xml;

pub use backend::{Backend, GeneratedFile, Options};
pub use compile::{Compilation, Compiler};
#[cfg(feature = "described")]
pub use described::{DescribedError, idl_of};
#[cfg(feature = "described")]
pub use description::DescriptionError;
pub use diagnostic::{Diagnostic, Diagnostics, Severity};
pub use idl::Idl;
pub use model::Model;
pub use rust::Rust;
pub use source::{Disk, Files, Location, Memory, SourceMap, Span};
