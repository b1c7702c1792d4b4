//! An XML document as a tree whose parts know their places, read with limits. Document types, and with them
//! entities, are refused.

use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::limits::{NESTING_MAX, XML_ATTRIBUTES_MAX, XML_ELEMENTS_MAX};
use crate::source::{FileId, Span};

/// An element and all in it.
#[derive(Debug)]
pub(super) struct Element {
    /// Without prefix.
    pub(super) name: String,
    /// Its name in the start tag.
    pub(super) span: Span,
    pub(super) attributes: Vec<Attribute>,
    pub(super) children: Vec<Self>,
    /// All text directly in it, put together.
    pub(super) text: String,
}

/// An attribute, other than those of XML itself.
#[derive(Debug)]
pub(super) struct Attribute {
    pub(super) name: String,
    /// What it means, without the blanks around it.
    pub(super) value: String,
    /// Where the value stands.
    pub(super) span: Span,
}

impl Element {
    pub(super) fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|attribute| attribute.name == name)
    }

    /// The first attribute that has one of these names.
    pub(super) fn any(&self, names: &[&str]) -> Option<&Attribute> {
        names.iter().find_map(|name| self.attribute(name))
    }
}

/// Reads a document; what is wrong with it is among the diagnostics.
pub(super) fn parse(file: FileId, text: &str, diagnostics: &mut Diagnostics) -> Option<Element> {
    let mut tree = Tree { file, text, open: Vec::new(), root: None, elements: 0 };
    match tree.read() {
        Ok(root) => Some(root),
        Err(diagnostic) => {
            diagnostics.push(diagnostic);
            None
        }
    }
}

/// The tree as far as it was read.
struct Tree<'a> {
    file: FileId,
    text: &'a str,
    /// Elements whose end is still to come, outermost first.
    open: Vec<Element>,
    root: Option<Element>,
    elements: usize,
}

impl<'a> Tree<'a> {
    fn span(&self, start: usize, length: usize) -> Span {
        // A file has fewer than 2^32 octets.
        Span { file: self.file, start: start as u32, end: (start + length) as u32 }
    }

    fn read(&mut self) -> Result<Element, Diagnostic> {
        let mark = if self.text.starts_with('\u{feff}') { 3 } else { 0 };
        let body = self.text.get(mark..).unwrap_or_default();
        let mut reader = Reader::from_str(body);
        reader.config_mut().expand_empty_elements = true;
        reader.config_mut().check_comments = true;
        let offset = |position: u64| usize::try_from(position).unwrap_or(usize::MAX).saturating_add(mark);
        loop {
            let start = offset(reader.buffer_position());
            let event = reader.read_event().map_err(|error| {
                let at = offset(reader.error_position()).min(self.text.len());
                Diagnostic::error(self.span(at, 0), format!("this is no XML: {error}"))
            })?;
            let at = self.span(start.min(self.text.len()), 1);
            match event {
                Event::Start(tag) => self.start(&tag, at)?,
                Event::End(_) => self.end(),
                Event::Text(text) => self.characters(&text.xml10_content(), at)?,
                Event::CData(text) => self.characters(&text.xml10_content(), at)?,
                Event::GeneralRef(name) => {
                    let number = name.resolve_char_ref().ok().flatten();
                    let name = name.xml10_content();
                    let letter = number.map(String::from);
                    let known = letter
                        .or_else(|| quick_xml::escape::resolve_predefined_entity(&name).map(str::to_owned));
                    let known = known.ok_or_else(|| {
                        Diagnostic::error(at, format!("the entity `&{name};` is not known"))
                            .hint("known are `&lt;`, `&gt;`, `&amp;`, `&apos;`, `&quot;`, and numbers")
                    })?;
                    self.characters(&known, at)?;
                }
                Event::DocType(_) => {
                    let said = Diagnostic::error(at, "a document type is refused");
                    return Err(said.hint("types need no DTD and no entities: remove `<!DOCTYPE …>`"));
                }
                Event::Decl(declaration) => {
                    let encoding = declaration.encoding().and_then(Result::ok);
                    let encoding = encoding.map_or_else(|| "UTF-8".to_owned(), |it| it.to_string());
                    const KNOWN: [&str; 3] = ["UTF-8", "ISO-8859-1", "US-ASCII"];
                    if !KNOWN.iter().any(|known| known.eq_ignore_ascii_case(&encoding)) {
                        let said = Diagnostic::error(at, format!("the encoding {encoding} is not read"));
                        return Err(said.hint("write the file in UTF-8"));
                    }
                }
                Event::Comment(_) | Event::PI(_) | Event::Empty(_) => {}
                Event::Eof => break,
            }
        }
        let end = self.span(self.text.len(), 0);
        if let Some(open) = self.open.last() {
            let said = Diagnostic::error(end, format!("`</{}>` is missing", open.name));
            return Err(said.note("it starts here", open.span));
        }
        self.root.take().ok_or_else(|| Diagnostic::error(end, "the document has no element"))
    }

    fn start(&mut self, tag: &BytesStart<'_>, at: Span) -> Result<(), Diagnostic> {
        self.elements += 1;
        if self.elements > XML_ELEMENTS_MAX {
            return Err(Diagnostic::error(at, format!("the file has more than {XML_ELEMENTS_MAX} elements")));
        }
        if self.open.len() >= NESTING_MAX {
            let message = format!("more than {NESTING_MAX} elements stand within one another");
            return Err(Diagnostic::error(at, message));
        }
        if self.open.is_empty() && self.root.is_some() {
            return Err(Diagnostic::error(at, "a second element outside of the first"));
        }
        let full = tag.name();
        let full: &str = full.as_ref();
        let span = self.span(at.start as usize + 1, full.len());
        let attributes = self.attributes(tag, span)?;
        let name = tag.local_name();
        let name: &str = name.as_ref();
        let name = name.to_owned();
        self.open.push(Element { name, span, attributes, children: Vec::new(), text: String::new() });
        Ok(())
    }

    fn attributes(&self, tag: &BytesStart<'_>, span: Span) -> Result<Vec<Attribute>, Diagnostic> {
        let mut attributes: Vec<Attribute> = Vec::new();
        // Checks of ours: those of the reader cost the square of the number of attributes.
        for attribute in tag.attributes().with_checks(false) {
            let attribute = attribute.map_err(|error| Diagnostic::error(span, error.to_string()))?;
            let name: &str = attribute.key.as_ref();
            if name.contains(':') || name == "xmlns" {
                continue;
            }
            if attributes.len() >= XML_ATTRIBUTES_MAX {
                let message = format!("an element has more than {XML_ATTRIBUTES_MAX} attributes");
                return Err(Diagnostic::error(span, message));
            }
            let raw: &str = &attribute.value;
            let place = self.place(raw).unwrap_or(span);
            if attributes.iter().any(|known| known.name == name) {
                return Err(Diagnostic::error(place, format!("the attribute `{name}` is there twice")));
            }
            let value = attribute.normalized_value(XmlVersion::Implicit1_0);
            let value = value.map_err(|error| Diagnostic::error(place, error.to_string()))?;
            attributes.push(Attribute { name: name.to_owned(), value: value.trim().to_owned(), span: place });
        }
        Ok(attributes)
    }

    /// Where a piece of the text stands in it, without the blanks around it.
    fn place(&self, piece: &str) -> Option<Span> {
        let piece = piece.trim();
        let start = piece.as_ptr().addr().checked_sub(self.text.as_ptr().addr())?;
        let same = self.text.get(start..start.checked_add(piece.len())?) == Some(piece);
        same.then(|| self.span(start, piece.len()))
    }

    fn end(&mut self) {
        // The reader has checked that it is open, and its name.
        let Some(element) = self.open.pop() else { return };
        match self.open.last_mut() {
            Some(parent) => parent.children.push(element),
            None => self.root = Some(element),
        }
    }

    fn characters(&mut self, text: &str, at: Span) -> Result<(), Diagnostic> {
        match self.open.last_mut() {
            Some(element) => element.text.push_str(text),
            None if text.trim().is_empty() => {}
            None => return Err(Diagnostic::error(at, "text outside of the document's element")),
        }
        Ok(())
    }
}
