//! Types of DDS-XML (XTypes 1.3 §7.3.2 and Annex A, DDS-XML 1.0 §7.3.3) to an [`ast`](crate::ast): what
//! `<types>` says, as if it had been written in IDL. Names that Fast DDS, OpenDDS and RTI Connext have
//! instead of the standard's are understood, too.

mod aggregate;
mod document;
mod member;
mod value;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::ast::{Annotation, Definition, DefinitionKind, Forward, Name};
use crate::diagnostic::{Diagnostic, Diagnostics, closest};
use crate::limits::{INCLUDE_DEPTH_MAX, INCLUSIONS_MAX};
use crate::source::{FileId, Files, SourceMap, Span, Unread};

use document::Element;

/// The definitions of one input file; none if it cannot be read.
pub(crate) fn read(
    path: &Path,
    files: &dyn Files,
    include_directories: &[PathBuf],
    sources: &mut SourceMap,
    diagnostics: &mut Diagnostics,
) -> Option<(FileId, Vec<Definition>)> {
    let file = diagnostics.input(sources, files, path)?;
    let mut reader =
        Reader { files, include_directories, sources, diagnostics, seen: HashSet::new(), inclusions: 0 };
    let mut definitions = Vec::new();
    reader.file(file, 0, &mut definitions);
    Some((file, definitions))
}

/// What was wrong has been said.
struct Failed;

type Parsed<T> = Result<T, Failed>;

struct Reader<'a> {
    files: &'a dyn Files,
    include_directories: &'a [PathBuf],
    sources: &'a mut SourceMap,
    diagnostics: &'a mut Diagnostics,
    /// Files whose definitions are there.
    seen: HashSet<FileId>,
    inclusions: usize,
}

/// Elements that define something, as hints name them.
const DEFINITIONS: [&str; 11] = [
    "module",
    "struct",
    "union",
    "enum",
    "bitmask",
    "bitset",
    "typedef",
    "const",
    "include",
    "forward_dcl",
    "annotation",
];

impl Reader<'_> {
    fn say(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    fn fail<T>(&mut self, diagnostic: Diagnostic) -> Parsed<T> {
        self.say(diagnostic);
        Err(Failed)
    }

    fn file(&mut self, file: FileId, depth: usize, definitions: &mut Vec<Definition>) {
        if !self.seen.insert(file) {
            return;
        }
        let text = self.sources.text(file);
        let Some(root) = document::parse(file, &text, self.diagnostics) else { return };
        let mut libraries = Vec::new();
        find_types(&root, &mut libraries);
        if libraries.is_empty() {
            let said = Diagnostic::error(root.span, "the document has no `<types>`");
            self.say(said.hint("types stand in `<types>`, by itself or within `<dds>`"));
        }
        for library in libraries {
            self.definitions(library, depth, definitions);
        }
    }

    fn definitions(&mut self, parent: &Element, depth: usize, definitions: &mut Vec<Definition>) {
        for element in &parent.children {
            // What is wrong with one of them has been said.
            let _ = self.definition(element, depth, definitions);
        }
    }

    fn definition(&mut self, element: &Element, depth: usize, to: &mut Vec<Definition>) -> Parsed<()> {
        let (annotations, kind) = match &*element.name {
            // Fast DDS has one around each.
            "type" => {
                self.definitions(element, depth, to);
                return Ok(());
            }
            "include" => return self.include(element, depth, to),
            "module" => {
                self.check(element, &["name", "autoid"]);
                let mut definitions = Vec::new();
                self.definitions(element, depth, &mut definitions);
                let annotations = self.aggregate_annotations(element);
                (annotations, DefinitionKind::Module { name: self.name(element)?, definitions })
            }
            "struct" => self.structure(element, to)?,
            "union" => self.union(element)?,
            "enum" => self.enumeration(element)?,
            "bitmask" => self.bitmask(element)?,
            "bitset" => self.bitset(element)?,
            "typedef" => self.typedef(element)?,
            "const" => self.constant(element)?,
            "forward_dcl" | "forward" => {
                self.check(element, &["name", "kind"]);
                let kind = match element.attribute("kind").map(|it| &*it.value) {
                    Some("union") => Forward::Union,
                    _ => Forward::Structure,
                };
                (Vec::new(), DefinitionKind::Forward(kind, self.name(element)?))
            }
            "annotation" => (Vec::new(), DefinitionKind::Annotation(self.name(element)?)),
            "valuetype" | "sparse_valuetype" => {
                (Vec::new(), DefinitionKind::Other { what: "valuetype", name: self.name(element)? })
            }
            "directive" => {
                let said = Diagnostic::warning(element.span, "`<directive>` has no effect");
                self.diagnostics.push_once("<directive>", said.hint("it is about code of RTI Connext"));
                return Ok(());
            }
            other => return self.unknown(element, other, "a definition", &DEFINITIONS),
        };
        to.push(self.in_modules(element, Definition { annotations, kind }));
        Ok(())
    }

    /// `name="A::B"` is `B` in the module `A`.
    fn in_modules(&self, element: &Element, definition: Definition) -> Definition {
        let Some(attribute) = element.attribute("name") else { return definition };
        let modules = attribute.value.trim_start_matches("::").split("::").collect::<Vec<_>>();
        let modules = modules.split_last().map_or(&[][..], |(_, modules)| modules);
        modules.iter().rev().fold(definition, |definition, module| {
            let name = Name { text: (*module).into(), span: attribute.span };
            let kind = DefinitionKind::Module { name, definitions: vec![definition] };
            Definition { annotations: Vec::new(), kind }
        })
    }

    fn include(&mut self, element: &Element, depth: usize, to: &mut Vec<Definition>) -> Parsed<()> {
        self.check(element, &["file"]);
        let Some(attribute) = element.attribute("file") else {
            let said = Diagnostic::error(element.span, "`<include>` wants the name of a file");
            return self.fail(said.hint("write `<include file=\"Types.xml\"/>`"));
        };
        self.inclusions += 1;
        if depth >= INCLUDE_DEPTH_MAX || self.inclusions > INCLUSIONS_MAX {
            let message = format!("more than {INCLUDE_DEPTH_MAX} files include one another");
            return self.fail(Diagnostic::error(attribute.span, message));
        }
        let own = self.sources.path(attribute.span.file).parent().unwrap_or_else(|| Path::new("")).to_owned();
        let directories = std::iter::once(&own).chain(self.include_directories);
        let candidates = directories.map(|it| it.join(&attribute.value)).collect::<Vec<_>>();
        for candidate in &candidates {
            match self.sources.load(self.files, candidate, Some(attribute.span)) {
                Ok(file) => {
                    self.file(file, depth + 1, to);
                    return Ok(());
                }
                Err(Unread::Missing) => {}
                Err(Unread::Because(reason)) => {
                    let message = format!("cannot read {}: {reason}", candidate.display());
                    return self.fail(Diagnostic::error(attribute.span, message));
                }
            }
        }
        let message = format!("the file {:?} is in none of the directories", attribute.value);
        let looked = candidates.iter().map(|it| it.display().to_string()).collect::<Vec<_>>().join(", ");
        let hint = format!("looked for {looked}; -I DIRECTORY adds a place to look");
        self.fail(Diagnostic::error(attribute.span, message).hint(hint))
    }

    /// The last part of the attribute `name`.
    fn name(&mut self, element: &Element) -> Parsed<Name> {
        let Some(attribute) = element.attribute("name") else {
            let said = Diagnostic::error(element.span, format!("`<{}>` has no name", element.name));
            return self.fail(said.hint("write `name=\"…\"`"));
        };
        let value = &attribute.value;
        let parts = value.strip_prefix("::").unwrap_or(value).split("::").collect::<Vec<_>>();
        let last = parts.last().copied().unwrap_or_default();
        if parts.iter().all(|part| is_name(part)) {
            return Ok(Name { text: last.into(), span: attribute.span });
        }
        let said = Diagnostic::error(attribute.span, format!("{value:?} is no name"));
        self.fail(said.hint("names consist of the letters a to z and A to Z, digits and `_`"))
    }

    fn unknown<T>(&mut self, element: &Element, name: &str, what: &str, known: &[&str]) -> Parsed<T> {
        let said = Diagnostic::error(element.span, format!("`<{name}>` is no {}", &what[2..]));
        self.fail(match closest(name, known.iter().copied()) {
            Some(meant) => said.hint(format!("did you mean `<{meant}>`?")),
            None => said.hint(format!("here stand `<{}>`", known.join(">`, `<"))),
        })
    }

    /// Warns about attributes that are not known, once each.
    fn check(&mut self, element: &Element, known: &[&str]) {
        for attribute in &element.attributes {
            if known.contains(&&*attribute.name) {
                continue;
            }
            let message = format!("the attribute `{}` of `<{}>` has no effect", attribute.name, element.name);
            let said = Diagnostic::warning(attribute.span, message);
            let said = match closest(&attribute.name, known.iter().copied()) {
                Some(meant) => said.hint(format!("did you mean `{meant}`?")),
                None => said.hint("it is not known"),
            };
            self.diagnostics.push_once(&format!("<{} {}>", element.name, attribute.name), said);
        }
    }

    /// Annotations that stand as elements: `<annotate>` and `<verbatim>`.
    fn applied(&mut self, element: &Element) -> Vec<Annotation> {
        let mut annotations = Vec::new();
        for child in &element.children {
            match &*child.name {
                "annotate" => annotations.extend(self.annotate(child)),
                "verbatim" => annotations.push(verbatim(child)),
                _ => {}
            }
        }
        annotations
    }
}

/// The elements `<types>` of a document, whatever they stand in.
fn find_types<'e>(element: &'e Element, found: &mut Vec<&'e Element>) {
    if element.name == "types" {
        found.push(element);
    } else {
        element.children.iter().for_each(|child| find_types(child, found));
    }
}

fn is_name(text: &str) -> bool {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') && text.chars().all(is_part)
}

fn verbatim(element: &Element) -> Annotation {
    let span = element.span;
    let inner = element.children.iter().find(|child| child.name == "text");
    let text = inner.map_or(&element.text, |inner| &inner.text);
    let word = |name: &str, default: &str| {
        element.attribute(name).map_or_else(|| default.to_owned(), |attribute| attribute.value.clone())
    };
    let placement = word("placement", "before-declaration").to_ascii_uppercase().replace('-', "_");
    let parameters = [("language", word("language", "*")), ("placement", placement), ("text", text.clone())];
    let parameters = parameters.map(|(name, text)| (name, crate::ast::Expression::text(&text, span)));
    Annotation::with(Name::new("verbatim", span), parameters)
}

/// The place of an element's value, or of the element.
fn span_of(element: &Element, attribute: &str) -> Span {
    element.attribute(attribute).map_or(element.span, |it| it.span)
}
