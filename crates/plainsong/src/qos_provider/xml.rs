//! An XML document as a tree with places, read with limits: what a profile may be, and no more.
//!
//! Refused are document types (and with them entities), other encodings than UTF-8 (DDS-XML 1.0 §7.1.1), and
//! whatever exceeds the limits below.

use std::sync::Arc;

use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

use super::error::{Place, QosProviderError};

/// Octets of a document.
pub(super) const DOCUMENT_BYTES_MAX: usize = 1 << 20;
/// Elements of a document.
pub(super) const ELEMENTS_MAX: usize = 20_000;
/// Elements inside each other.
pub(super) const DEPTH_MAX: usize = 32;
/// Attributes of an element.
pub(super) const ATTRIBUTES_MAX: usize = 16;

/// An element and all in it.
#[derive(Debug)]
pub(super) struct Element {
    /// Without prefix.
    pub(super) name: String,
    pub(super) place: Place,
    pub(super) attributes: Vec<(String, String)>,
    pub(super) children: Vec<Self>,
    /// All text directly in it, put together.
    pub(super) text: String,
}

impl Element {
    /// The value of an attribute, without the blanks around it.
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.trim())
    }

    pub(super) fn error(&self, message: impl Into<String>) -> QosProviderError {
        QosProviderError::at(&self.place, message)
    }
}

/// Reads a document.
///
/// # Errors
/// [`QosProviderError`] with line and column.
pub(super) fn parse(source: &Arc<str>, text: &str) -> Result<Element, QosProviderError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut cursor = Cursor { source, text, offset: 0, line: 1, column: 1 };
    if text.len() > DOCUMENT_BYTES_MAX {
        let message = format!("the document has {} octets, {DOCUMENT_BYTES_MAX} are read", text.len());
        return Err(cursor.error(message));
    }
    let mut reader = Reader::from_str(text);
    reader.config_mut().expand_empty_elements = true;
    reader.config_mut().check_comments = true;
    let mut tree = Tree { open: Vec::new(), root: None, elements: 0 };
    loop {
        let start = usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX);
        let event = reader.read_event();
        let at =
            if event.is_ok() { start } else { usize::try_from(reader.error_position()).unwrap_or(start) };
        cursor.move_to(at);
        match event.map_err(|error| cursor.error(error.to_string()))? {
            Event::Start(tag) => tree.start(&tag, &cursor)?,
            Event::End(_) => tree.end(),
            Event::Text(text) => tree.text(&text.xml10_content(), &cursor)?,
            Event::CData(text) => tree.text(&text.xml10_content(), &cursor)?,
            Event::GeneralRef(name) => tree.text(&reference(&name, &cursor)?, &cursor)?,
            Event::DocType(_) => {
                return Err(cursor.error("a document type is refused: profiles need no DTD and no entities"));
            }
            Event::Decl(declaration) => {
                let encoding = declaration.encoding().transpose();
                let encoding = encoding.map_err(|error| cursor.error(error.to_string()))?;
                if encoding.is_some_and(|name| !name.eq_ignore_ascii_case("UTF-8")) {
                    return Err(cursor.error("the encoding must be UTF-8 (DDS-XML 1.0 §7.1.1)"));
                }
            }
            Event::Comment(_) | Event::PI(_) | Event::Empty(_) => {}
            Event::Eof => break,
        }
    }
    if let Some(open) = tree.open.last() {
        return Err(cursor.error(format!("the document ends inside of <{}>", open.name)));
    }
    tree.root.ok_or_else(|| cursor.error("the document has no element"))
}

/// Where the reader is, in lines and columns.
struct Cursor<'a> {
    source: &'a Arc<str>,
    text: &'a str,
    offset: usize,
    line: u32,
    column: u32,
}

impl Cursor<'_> {
    /// Moves forward; each octet is walked over once.
    fn move_to(&mut self, offset: usize) {
        let Some(passed) = self.text.get(self.offset..offset.min(self.text.len())) else { return };
        for letter in passed.chars() {
            if letter == '\n' {
                self.line += 1;
                self.column = 1;
            } else {
                self.column += 1;
            }
        }
        self.offset += passed.len();
    }

    fn place(&self) -> Place {
        Place { source: Arc::clone(self.source), line: self.line, column: self.column }
    }

    fn error(&self, message: impl Into<String>) -> QosProviderError {
        QosProviderError::at(&self.place(), message)
    }
}

/// The tree as far as it was read.
struct Tree {
    /// Elements whose end is still to come, outermost first.
    open: Vec<Element>,
    root: Option<Element>,
    elements: usize,
}

impl Tree {
    fn start(&mut self, tag: &BytesStart<'_>, cursor: &Cursor<'_>) -> Result<(), QosProviderError> {
        self.elements += 1;
        if self.elements > ELEMENTS_MAX {
            return Err(cursor.error(format!("the document has more than {ELEMENTS_MAX} elements")));
        }
        if self.open.len() >= DEPTH_MAX {
            return Err(cursor.error(format!("more than {DEPTH_MAX} elements are inside each other")));
        }
        if self.open.is_empty() && self.root.is_some() {
            return Err(cursor.error("a second element outside of the first"));
        }
        let mut attributes: Vec<(String, String)> = Vec::new();
        // Checks of ours: those of the reader cost the square of the number of attributes.
        for attribute in tag.attributes().with_checks(false) {
            let attribute = attribute.map_err(|error| cursor.error(error.to_string()))?;
            let name = attribute.key.as_ref();
            if attributes.len() >= ATTRIBUTES_MAX {
                return Err(cursor.error(format!("an element has more than {ATTRIBUTES_MAX} attributes")));
            }
            if attributes.iter().any(|(known, _)| known == name) {
                return Err(cursor.error(format!("the attribute {name} is there twice")));
            }
            let value = attribute.normalized_value(XmlVersion::Implicit1_0);
            let value = value.map_err(|error| cursor.error(error.to_string()))?;
            attributes.push((name.to_owned(), value.into_owned()));
        }
        self.open.push(Element {
            name: tag.local_name().as_ref().to_owned(),
            place: cursor.place(),
            attributes,
            children: Vec::new(),
            text: String::new(),
        });
        Ok(())
    }

    fn end(&mut self) {
        // The reader has checked that it is open, and its name.
        let Some(element) = self.open.pop() else { return };
        match self.open.last_mut() {
            Some(parent) => parent.children.push(element),
            None => self.root = Some(element),
        }
    }

    fn text(&mut self, text: &str, cursor: &Cursor<'_>) -> Result<(), QosProviderError> {
        match self.open.last_mut() {
            Some(element) => element.text.push_str(text),
            None if text.trim().is_empty() => {}
            None => return Err(cursor.error("text outside of the document's element")),
        }
        Ok(())
    }
}

/// One of the five predefined entities, or a character by number.
fn reference(name: &BytesRef<'_>, cursor: &Cursor<'_>) -> Result<String, QosProviderError> {
    let number = name.resolve_char_ref().map_err(|error| cursor.error(error.to_string()))?;
    if let Some(letter) = number {
        return Ok(letter.into());
    }
    let name = name.xml10_content();
    quick_xml::escape::resolve_predefined_entity(&name).map(str::to_owned).ok_or_else(|| {
        cursor.error(format!("the entity &{name}; is not known: only &lt; &gt; &amp; &apos; &quot; are"))
    })
}
