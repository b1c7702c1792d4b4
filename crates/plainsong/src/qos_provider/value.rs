//! Values of elements (DDS-XML 1.0 §7.1.4, §7.2): numbers, constants, durations, octets, lists.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use plainsong_proto::cdr::XcdrVersion;
use plainsong_proto::qos::check::PROPERTIES_MAX;
use plainsong_proto::qos::{LENGTH_UNLIMITED, Property};
use plainsong_proto::time::Duration;

use super::error::{QosProviderError, suggestion};
use super::xml::Element;

type Result<T> = std::result::Result<T, QosProviderError>;

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// Refuses attributes other than those named and those of XML itself.
pub(super) fn only_attributes(element: &Element, known: &[&str]) -> Result<()> {
    for (name, _) in &element.attributes {
        let of_xml = ["xmlns:", "xsi:", "xml:"].iter().any(|prefix| name.starts_with(prefix));
        if !of_xml && name != "xmlns" && !known.contains(&name.as_str()) {
            let hint = suggestion(name, known.iter().copied());
            return Err(element.error(format!("<{}> has no attribute {name:?}{hint}", element.name)));
        }
    }
    Ok(())
}

/// Children of an element that holds nothing else.
pub(super) fn children(element: &Element) -> Result<&[Element]> {
    if element.text.trim().is_empty() {
        return Ok(&element.children);
    }
    Err(element.error(format!("<{}> holds elements, no text", element.name)))
}

/// The text of an element without attributes and children, exactly as it is.
fn text(element: &Element) -> Result<&str> {
    only_attributes(element, &[])?;
    match element.children.first() {
        None => Ok(&element.text),
        Some(child) => Err(child.error(format!("<{}> holds a value, no elements", element.name))),
    }
}

/// The same without the blanks around it.
fn word(element: &Element) -> Result<&str> {
    text(element).map(str::trim)
}

/// The children of a structure by the names of its fields; each at most once.
fn fields<'a, const N: usize>(element: &'a Element, names: [&str; N]) -> Result<[Option<&'a Element>; N]> {
    only_attributes(element, &[])?;
    let mut found = [None; N];
    for child in children(element)? {
        let slot = names.iter().position(|name| *name == child.name).and_then(|index| found.get_mut(index));
        let Some(slot) = slot else { return Err(unknown(child, &element.name, names.into_iter())) };
        if slot.replace(child).is_some() {
            return Err(twice(child));
        }
    }
    Ok(found)
}

pub(super) fn unknown<'a>(
    element: &Element,
    parent: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> QosProviderError {
    let hint = suggestion(&element.name, known);
    element.error(format!("<{}> is not known inside of <{parent}>{hint}", element.name))
}

pub(super) fn twice(element: &Element) -> QosProviderError {
    element.error(format!("<{}> is there twice", element.name))
}

pub(super) fn boolean(element: &Element) -> Result<bool> {
    match word(element)? {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        other => Err(element.error(format!("<{}> is true or false, not {other:?}", element.name))),
    }
}

/// An attribute that is true or false; false when it is absent.
pub(super) fn boolean_attribute(element: &Element, name: &str) -> Result<bool> {
    match element.attribute(name) {
        Some("true" | "1") => Ok(true),
        None | Some("false" | "0") => Ok(false),
        Some(other) => Err(element.error(format!("the attribute {name} is true or false, not {other:?}"))),
    }
}

/// The place of a literal among `literals`.
pub(super) fn kind(element: &Element, literals: &[&str]) -> Result<usize> {
    let word = word(element)?;
    literals.iter().position(|literal| *literal == word).ok_or_else(|| {
        let hint = suggestion(word, literals.iter().copied());
        element.error(format!("<{}> cannot be {word:?}{hint}", element.name))
    })
}

/// A number of 32 bits: decimal, or hexadecimal as two's complement.
fn number(element: &Element, word: &str) -> Result<i32> {
    let hexadecimal = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X"));
    let number = match hexadecimal {
        Some(digits) if digits.starts_with('+') => None,
        Some(digits) => u32::from_str_radix(digits, 16).ok().map(u32::cast_signed),
        None => word.parse().ok(),
    };
    number.ok_or_else(|| element.error(format!("<{}> is a number of 32 bits, not {word:?}", element.name)))
}

/// A number; `None` for an element that is empty, which the schema allows.
pub(super) fn any_number(element: &Element) -> Result<Option<i32>> {
    match word(element)? {
        "" => Ok(None),
        word => number(element, word).map(Some),
    }
}

/// A number from 1.
pub(super) fn positive(element: &Element) -> Result<Option<i32>> {
    match any_number(element)? {
        Some(number) if number < 1 => {
            Err(element.error(format!("<{}> is at least 1, not {number}", element.name)))
        }
        number => Ok(number),
    }
}

/// A number from 1, or LENGTH_UNLIMITED.
pub(super) fn limit(element: &Element) -> Result<Option<i32>> {
    match word(element)? {
        "LENGTH_UNLIMITED" | "-1" => Ok(Some(LENGTH_UNLIMITED)),
        _ => positive(element)
            .map_err(|error| element.error(format!("{}; LENGTH_UNLIMITED means no limit", error.message()))),
    }
}

/// A part of a duration.
enum Part {
    Infinite,
    Number(i64),
}

/// A duration (§7.2.6). What is not told is zero.
pub(super) fn duration(element: &Element) -> Result<Duration> {
    let [seconds, nanoseconds] = fields(element, ["sec", "nanosec"])?;
    let part = |part: Option<&Element>, infinite: [&str; 2], zero: &str| -> Result<Part> {
        let Some(part) = part else { return Ok(Part::Number(0)) };
        match word(part)? {
            "DURATION_INFINITY" | "DURATION_INFINITE" => Ok(Part::Infinite),
            word if infinite.contains(&word) => Ok(Part::Infinite),
            word if word.is_empty() || word == zero => Ok(Part::Number(0)),
            word => match number(part, word)? {
                i32::MAX => Ok(Part::Infinite),
                negative if negative < 0 => {
                    Err(part.error(format!("<{}> is not negative, so not {negative}", part.name)))
                }
                number => Ok(Part::Number(number.into())),
            },
        }
    };
    let infinite = ["DURATION_INFINITE_SEC", "DURATION_INFINITY_SEC"];
    let whole = part(seconds, infinite, "DURATION_ZERO_SEC")?;
    let infinite = ["DURATION_INFINITE_NSEC", "DURATION_INFINITY_NSEC"];
    let rest = part(nanoseconds, infinite, "DURATION_ZERO_NSEC")?;
    match (whole, rest) {
        (Part::Infinite, _) => Ok(Duration::INFINITE),
        (Part::Number(_), Part::Infinite) if seconds.is_none() => Ok(Duration::INFINITE),
        (Part::Number(_), Part::Infinite) => {
            Err(element.error("a duration with infinite <nanosec> has infinite <sec>: DURATION_INFINITE_SEC"))
        }
        (Part::Number(_), Part::Number(rest)) if rest >= NANOS_PER_SECOND => {
            Err(element.error("<nanosec> is below 1000000000: write whole seconds as <sec>"))
        }
        (Part::Number(whole), Part::Number(rest)) => Ok(Duration(whole * NANOS_PER_SECOND + rest)),
    }
}

/// Octets (§7.2.4.2): a list of numbers, or what the published schema asks for, Base64. A text that could be
/// either is a list.
pub(super) fn octets(element: &Element) -> Result<Vec<u8>> {
    let text = word(element)?;
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let octet = |word: &str| {
        let word = word.trim();
        let hexadecimal = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X"));
        match hexadecimal {
            Some(digits) if digits.len() <= 2 && !digits.starts_with('+') => {
                u8::from_str_radix(digits, 16).ok()
            }
            None if word.len() <= 3 && !word.starts_with('+') => word.parse().ok(),
            _ => None,
        }
    };
    let list: Option<Vec<u8>> = text.split(',').map(octet).collect();
    if let Some(list) = list {
        return Ok(list);
    }
    let message = "octets are numbers from 0 to 255, or 0x00 to 0xff, with commas between, or Base64";
    base64(text).ok_or_else(|| element.error(message))
}

pub(super) fn octets_base64(element: &Element) -> Result<Vec<u8>> {
    base64(text(element)?).ok_or_else(|| element.error("this is not Base64 (RFC 4648 §4)"))
}

/// Base64 of RFC 4648 §4, with blanks anywhere.
fn base64(text: &str) -> Option<Vec<u8>> {
    let letters: Vec<u8> = text.bytes().filter(|letter| !letter.is_ascii_whitespace()).collect();
    BASE64_STANDARD.decode(letters).ok()
}

/// The `element`s of a sequence (§7.2.4).
fn elements(sequence: &Element) -> Result<&[Element]> {
    only_attributes(sequence, &[])?;
    let elements = children(sequence)?;
    match elements.iter().find(|child| child.name != "element") {
        Some(other) => Err(unknown(other, &sequence.name, std::iter::once("element"))),
        None => Ok(elements),
    }
}

/// A sequence of strings, each exactly as it is.
pub(super) fn strings(sequence: &Element) -> Result<Vec<String>> {
    elements(sequence)?.iter().map(|element| text(element).map(str::to_owned)).collect()
}

/// A sequence of properties.
pub(super) fn properties(sequence: &Element) -> Result<Vec<Property>> {
    let mut properties: Vec<Property> = Vec::new();
    for element in elements(sequence)? {
        if properties.len() >= PROPERTIES_MAX {
            return Err(element.error(format!("an entity has at most {PROPERTIES_MAX} properties")));
        }
        let [name, value, propagate] = fields(element, ["name", "value", "propagate"])?;
        let name = name.ok_or_else(|| element.error("a property has a <name>"))?;
        let property = Property {
            name: word(name)?.to_owned(),
            value: value.map_or(Ok(""), text)?.to_owned(),
            propagate: propagate.map_or(Ok(false), boolean)?,
        };
        if properties.iter().any(|known| known.name == property.name) {
            return Err(name.error(format!("the property {:?} is there twice", property.name)));
        }
        properties.push(property);
    }
    Ok(properties)
}

/// A sequence of data representations.
pub(super) fn representations(sequence: &Element) -> Result<Vec<XcdrVersion>> {
    const XML: &str = "XML_DATA_REPRESENTATION";
    let mut list = Vec::new();
    for element in elements(sequence)? {
        let kinds = ["XCDR_DATA_REPRESENTATION", "XCDR2_DATA_REPRESENTATION", XML];
        let version = match kind(element, &kinds)? {
            0 => XcdrVersion::Xcdr1,
            1 => XcdrVersion::Xcdr2,
            _ => return Err(element.error("samples in XML are not supported: name XCDR or XCDR2")),
        };
        if list.contains(&version) {
            return Err(element.error("this representation is there twice"));
        }
        list.push(version);
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_rfc() {
        let cases: [(&str, &[u8]); 7] = [
            ("", b""),
            ("Zg==", b"f"),
            ("Zm8=", b"fo"),
            ("Zm9v", b"foo"),
            ("Zm9v\n YmFy", b"foobar"),
            ("+/+/", &[0xfb, 0xff, 0xbf]),
            ("AAAA", &[0, 0, 0]),
        ];
        for (text, octets) in cases {
            assert_eq!(base64(text).as_deref(), Some(octets), "{text:?}");
        }
        for text in ["Z", "Zg", "Zg=", "Zh==", "Zm9=", "====", "Zg==Zg==", "Zm9*"] {
            assert_eq!(base64(text), None, "{text:?}");
        }
    }
}
