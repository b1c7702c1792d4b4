//! [`DynamicData`]: a value of a type that is known at run time, to be looked at, changed, read and written.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::cdr::decode::Form;
use crate::cdr::{
    Encapsulation, EncodeError, Endianness, Extensibility, XcdrVersion, append_encoded, open_payload_of,
};
use crate::malformed::Malformed;

use super::DynamicType;
use super::model::{Kind, Type, Union};
use super::path::{self, DISCRIMINATOR, Step};
use super::scalar::Scalar;
use super::value::Value;
use super::view::DataRef;
use super::{decode, encode};

/// A value of a [`DynamicType`].
///
/// A path names a part of it: `part.lines[2].name`, `cells[1][3]`, `ages["Ann"]` for the value of a map,
/// `choice.$discriminator`. What was never set is zero, empty, the first literal, absent where it is
/// optional, and takes no memory.
///
/// # As JSON
///
/// With the feature `serde` it is written by `serde::Serialize`, and read by
/// `DynamicType::deserialize_data`, of which `serde_json` makes JSON:
///
/// | type | JSON |
/// |---|---|
/// | structure | an object; an optional member that is not there is left out, and may be read as `null` |
/// | union | an object with `"$discriminator"` and the selected member; reading, one of them suffices |
/// | enumeration | the name of the literal; its value where names are unknown, and that is always read |
/// | bitmask | an array of the names of its flags; bits without name are a number, and that is always read |
/// | bitset | an object with its fields; if some bits are of none, their number, which is always read |
/// | integers | a number with all its digits; reading, the digits may stand in a text |
/// | floats | a number, or `"NaN"`, `"Infinity"`, `"-Infinity"` |
/// | char, wchar, strings | a text; a wchar that is half a letter is a number |
/// | sequence, array | an array; of octets and uint8 a text in base64, and a list of numbers is read too |
/// | map | an object if its keys are texts, numbers, booleans or literals; otherwise an array of pairs |
///
/// A member that is missing in a text has the value of one that was never set. One that the type has not is
/// an error, as is what does not fit: the error names the member, what it should be, and what it is.
#[derive(Clone)]
pub struct DynamicData {
    pub(super) ty: Arc<Type>,
    pub(super) value: Value<'static>,
}

/// Why a part of a value cannot be had, or be set to something.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: expected {expected}, found {found}", Place(path))]
pub struct DataError {
    /// The path to the part; empty for the whole.
    pub path: String,
    /// What would fit.
    pub expected: String,
    /// What there is instead.
    pub found: String,
}

/// A path in a sentence.
struct Place<'a>(&'a str);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { f.write_str("the sample") } else { write!(f, "member `{}`", self.0) }
    }
}

impl DataError {
    pub(super) fn new(path: &str, expected: impl Into<String>, found: impl fmt::Display) -> Self {
        Self { path: path.to_owned(), expected: expected.into(), found: found.to_string() }
    }
}

impl fmt::Debug for DynamicData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DynamicData").field(&self.value).finish()
    }
}

impl DynamicType {
    /// A value of which nothing is set.
    #[must_use]
    pub fn new_data(&self) -> DynamicData {
        DynamicData { ty: Arc::clone(&self.ty), value: Value::Initial }
    }

    /// The value that a sample is: a payload with its encapsulation header, in any representation that suits
    /// the type.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn read_data(&self, payload: &[u8]) -> Result<DynamicData, Malformed> {
        let value = self.read(payload, Form::Sample)?.into_owned();
        Ok(DynamicData { ty: Arc::clone(&self.ty), value })
    }

    /// A value of which the key members alone are set: of a serialized key if `key_only`, else of a sample.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn read_key_data(&self, payload: &[u8], key_only: bool) -> Result<DynamicData, Malformed> {
        let value = self.read_key(payload, key_only)?.into_owned();
        Ok(DynamicData { ty: Arc::clone(&self.ty), value })
    }
}

/// A part that is about to be set.
struct Part<'v> {
    ty: &'v Type,
    optional: bool,
    place: PlaceOfPart<'v>,
}

enum PlaceOfPart<'v> {
    Value(&'v mut Value<'static>),
    /// An element of many numbers.
    Number(&'v mut [u8], Endianness),
}

impl DynamicData {
    /// The whole, to be looked at.
    #[must_use]
    pub fn root(&self) -> DataRef<'_> {
        DataRef::new(&self.ty, &self.value)
    }

    /// The part at a path.
    ///
    /// # Errors
    /// [`DataError`]: there is none.
    pub fn get(&self, path: &str) -> Result<DataRef<'_>, DataError> {
        self.root().at(path)
    }

    /// Sets the part at a path. On the way a member of a union is selected, with the first label that does,
    /// an optional member comes to be, and so does the pair of a map, and the element behind the last of a
    /// sequence.
    ///
    /// # Errors
    /// [`DataError`]: there is no such part, or the value does not fit. Members on the way may have come to
    /// be.
    pub fn set<'s>(&mut self, path: &str, value: impl Into<Scalar<'s>>) -> Result<(), DataError> {
        let scalar = value.into();
        let (way, discriminator) = match path.strip_suffix(DISCRIMINATOR) {
            Some(union) => (union.strip_suffix('.').unwrap_or(union), true),
            None => (path, false),
        };
        let part = self.part(way)?;
        if discriminator {
            return part.set_discriminator(path, &scalar);
        }
        part.set(path, &scalar)
    }

    /// Makes a part what it is in a value of which nothing is set: an optional member is absent then.
    ///
    /// # Errors
    /// [`DataError`]: there is no such part.
    pub fn reset(&mut self, path: &str) -> Result<(), DataError> {
        let Part { optional, place, .. } = self.part(path)?;
        match place {
            PlaceOfPart::Value(value) => *value = if optional { Value::Absent } else { Value::Initial },
            PlaceOfPart::Number(octets, _) => octets.fill(0),
        }
        Ok(())
    }

    /// Makes a sequence this long: elements behind are gone, new ones are not set.
    ///
    /// # Errors
    /// [`DataError`]: there is no such sequence, or it has a bound.
    pub fn resize(&mut self, path: &str, count: usize) -> Result<(), DataError> {
        let Part { ty, place, .. } = self.part(path)?;
        let (Kind::Sequence { bound, element }, PlaceOfPart::Value(value)) = (&ty.kind, place) else {
            return Err(DataError::new(path, "a sequence", ty.expected()));
        };
        if count > bound.unwrap_or(ELEMENTS_MAX) {
            return Err(DataError::new(path, ty.expected(), format_args!("{count} elements")));
        }
        ty.expand(value);
        match value {
            Value::Elements(values) => values.resize(count, Value::Initial),
            Value::Numbers(octets, _) => {
                octets.to_mut().resize(count.saturating_mul(element.number_bytes().unwrap_or(1)), 0);
            }
            _ => {}
        }
        Ok(())
    }

    /// Appends the sample as a payload: encapsulation header, value, padding. On error `buffer` is as it was.
    ///
    /// # Errors
    /// [`EncodeError`].
    pub fn write(
        &self,
        version: XcdrVersion,
        endianness: Endianness,
        buffer: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let encapsulation = Encapsulation::for_type(version, self.extensibility(), endianness);
        append_encoded(encapsulation, buffer, |encoder| encode::encode(&self.ty, &self.value, encoder))
    }

    /// Reads another sample of its type in its place.
    ///
    /// # Errors
    /// [`Malformed`]; the value is as it was.
    pub fn read(&mut self, payload: &[u8]) -> Result<(), Malformed> {
        let mut decoder = open_payload_of(self.extensibility(), payload, Form::Sample)?;
        self.value = decode::decode(&self.ty, &mut decoder)?.into_owned();
        Ok(())
    }

    fn extensibility(&self) -> Extensibility {
        match &self.ty.kind {
            Kind::Structure(structure) => structure.extensibility,
            Kind::Union(union) => union.extensibility,
            // Nothing else is the type of samples.
            _ => Extensibility::Final,
        }
    }

    fn part(&mut self, path: &str) -> Result<Part<'_>, DataError> {
        let mut part = Part { ty: &self.ty, optional: false, place: PlaceOfPart::Value(&mut self.value) };
        let all = path::steps(path).map_err(|at| not_a_path(path, at))?;
        let mut steps = all.iter();
        while let Some(step) = steps.next() {
            part = match (&part.ty.kind, step) {
                (Kind::Structure(_) | Kind::Union(_), Step::Member(name)) => part.member(path, name)?,
                (Kind::Sequence { .. }, Step::At(index)) => part.element_of_sequence(path, index)?,
                (Kind::Map { .. }, Step::At(key)) => part.value_of_map(path, key)?,
                (Kind::Array { dimensions, .. }, Step::At(first)) => {
                    let more = steps.by_ref().take(dimensions.len() - 1);
                    let more = more
                        .filter_map(|step| if let Step::At(index) = step { Some(&**index) } else { None });
                    let indices: Vec<&str> = std::iter::once(&**first).chain(more).collect();
                    part.element_of_array(path, &indices)?
                }
                (_, step) => return Err(no_step(path, part.ty, step)),
            };
        }
        Ok(part)
    }
}

/// Elements that an application gives a sequence without bound at most.
const ELEMENTS_MAX: usize = 1 << 28;

fn not_a_path(path: &str, at: usize) -> DataError {
    DataError::new(path, "a path such as `part.lines[2].name`", format_args!("an error at its octet {at}"))
}

fn no_step(path: &str, ty: &Type, step: &Step<'_>) -> DataError {
    match step {
        Step::Member(name) => DataError::new(path, ty.expected_members(), format_args!("`{name}`")),
        Step::At(index) => DataError::new(path, ty.expected(), format_args!("an element [{index}]")),
    }
}

fn index_of(path: &str, index: &str, below: usize) -> Result<usize, DataError> {
    let found = index.parse().ok().filter(|index: &usize| *index < below);
    found.ok_or_else(|| DataError::new(path, format!("an index below {below}"), format_args!("[{index}]")))
}

impl Type {
    /// Gives a value that was never set its parts, themselves not set.
    fn expand(&self, value: &mut Value<'static>) {
        if !matches!(value, Value::Initial | Value::Absent) {
            return;
        }
        let zeros = |count: usize, bytes: usize| {
            Value::Numbers(Cow::Owned(vec![0; count.saturating_mul(bytes)]), Endianness::NATIVE)
        };
        *value = match &self.kind {
            Kind::Structure(structure) => Value::Structure(
                (0..structure.members.len()).map(|at| structure.initial_member(at)).collect(),
            ),
            Kind::Union(union) => {
                let (bits, selected) = union.initial_case();
                Value::Union(
                    bits,
                    selected.map(|place| (place, Box::new(union.initial_member(place).clone()))),
                )
            }
            Kind::Sequence { element, .. } if element.primitive().is_some() => zeros(0, 1),
            Kind::Array { count, element, .. } => match element.primitive() {
                Some(_) => zeros(*count, element.number_bytes().unwrap_or(1)),
                None => Value::Elements(vec![Value::Initial; *count]),
            },
            Kind::Sequence { .. } | Kind::Map { .. } => Value::Elements(Vec::new()),
            _ => Value::Initial,
        };
    }
}

impl Union {
    /// A discriminator that selects the case in this place.
    pub(super) fn label_of(&self, place: usize) -> Option<u64> {
        let selects = |label: &i64| self.select(*label) == Some(place);
        let told = self.labels.iter().map(|(label, _)| *label).find(selects);
        // The default case: what is no label of others.
        let other = || match &self.discriminator.kind {
            Kind::Enumeration(it) => it.literals.iter().map(|(_, value)| *value).find(selects),
            _ => (0..=i64::try_from(self.labels.len()).unwrap_or(i64::MAX)).find(selects),
        };
        told.or_else(other).map(i64::cast_unsigned)
    }
}

impl<'v> Part<'v> {
    /// Its value, whose parts are there.
    fn expanded(self) -> Option<&'v mut Value<'static>> {
        let PlaceOfPart::Value(value) = self.place else { return None };
        self.ty.expand(value);
        Some(value)
    }

    fn member(self, path: &str, name: &str) -> Result<Self, DataError> {
        let ty = self.ty;
        let unknown = || no_step(path, ty, &Step::Member(name));
        let (members, union) = match &ty.kind {
            Kind::Structure(structure) => (&structure.members, None),
            Kind::Union(union) => (&union.cases, Some(union)),
            _ => return Err(unknown()),
        };
        let at = members.iter().position(|member| member.name == name).ok_or_else(unknown)?;
        let (member, value) = members.get(at).zip(self.expanded()).ok_or_else(unknown)?;
        let value = match (value, union) {
            (Value::Structure(values), None) => values.get_mut(at).ok_or_else(unknown)?,
            (Value::Union(bits, selected), Some(union)) => {
                if selected.as_ref().is_none_or(|(place, _)| *place != at) {
                    *bits = union.label_of(at).ok_or_else(unknown)?;
                    *selected = Some((at, Box::new(union.initial_member(at).clone())));
                }
                selected.as_mut().map(|(_, value)| &mut **value).ok_or_else(unknown)?
            }
            _ => return Err(unknown()),
        };
        Ok(Self { ty: &member.ty, optional: member.optional, place: PlaceOfPart::Value(value) })
    }

    fn element_of_sequence(self, path: &str, index: &str) -> Result<Self, DataError> {
        let ty = self.ty;
        let wrong = || no_step(path, ty, &Step::At(Cow::Borrowed(index)));
        let Kind::Sequence { bound, element } = &ty.kind else { return Err(wrong()) };
        let most = bound.unwrap_or(ELEMENTS_MAX);
        let value = self.expanded().ok_or_else(wrong)?;
        let bytes = element.number_bytes().unwrap_or(1);
        let count = match value {
            Value::Elements(values) => values.len(),
            Value::Numbers(octets, _) => octets.len() / bytes,
            _ => return Err(wrong()),
        };
        let at = index_of(path, index, count.saturating_add(1).min(most))?;
        match value {
            Value::Elements(values) if at == count => values.push(Value::Initial),
            Value::Numbers(octets, _) if at == count => octets.to_mut().extend(std::iter::repeat_n(0, bytes)),
            _ => {}
        }
        Self::flat(element, value, at).ok_or_else(wrong)
    }

    fn element_of_array(self, path: &str, indices: &[&str]) -> Result<Self, DataError> {
        let ty = self.ty;
        let Kind::Array { dimensions, element, .. } = &ty.kind else {
            return Err(DataError::new(path, "an array", ty.expected()));
        };
        if indices.len() != dimensions.len() {
            let expected = format!("{} indices of {}", dimensions.len(), ty.expected());
            return Err(DataError::new(path, expected, indices.len()));
        }
        let mut at = 0;
        for (index, size) in indices.iter().zip(dimensions) {
            at = at * size + index_of(path, index, *size)?;
        }
        let value = self.expanded().and_then(|value| Self::flat(element, value, at));
        value.ok_or_else(|| DataError::new(path, ty.expected(), "something else"))
    }

    fn flat(element: &'v Type, value: &'v mut Value<'static>, at: usize) -> Option<Self> {
        let place = match value {
            Value::Elements(values) => PlaceOfPart::Value(values.get_mut(at)?),
            Value::Numbers(octets, order) => {
                let bytes = element.number_bytes()?;
                let start = at.checked_mul(bytes)?;
                PlaceOfPart::Number(octets.to_mut().get_mut(start..start.checked_add(bytes)?)?, *order)
            }
            _ => return None,
        };
        Some(Self { ty: element, optional: false, place })
    }

    fn value_of_map(self, path: &str, key: &str) -> Result<Self, DataError> {
        let ty = self.ty;
        let Kind::Map { bound, key: of_keys, element } = &ty.kind else {
            return Err(no_step(path, ty, &Step::At(key.into())));
        };
        let wrong =
            || DataError::new(path, format!("a key, {}", of_keys.expected()), format_args!("[{key}]"));
        let wanted = of_keys.value_of(&Scalar::from(key)).ok_or_else(wrong)?;
        let Some(Value::Elements(values)) = self.expanded() else { return Err(wrong()) };
        let pairs = values.as_chunks::<2>().0;
        let at = match pairs.iter().position(|[known, _]| of_keys.same_key(known, &wanted)) {
            Some(at) => at,
            None if bound.is_some_and(|bound| pairs.len() >= bound) => {
                return Err(DataError::new(path, ty.expected(), "one more"));
            }
            None => {
                let at = pairs.len();
                values.extend([wanted, Value::Initial]);
                at
            }
        };
        let value = values.get_mut(2 * at + 1).ok_or_else(wrong)?;
        Ok(Self { ty: element, optional: false, place: PlaceOfPart::Value(value) })
    }

    fn set(self, path: &str, scalar: &Scalar<'_>) -> Result<(), DataError> {
        let Self { ty, optional, place } = self;
        let wrong = || DataError::new(path, ty.expected_instead_of(scalar), scalar);
        match (place, scalar) {
            (PlaceOfPart::Value(value), Scalar::Absent) if optional => *value = Value::Absent,
            (PlaceOfPart::Value(value), _) => *value = ty.value_of(scalar).ok_or_else(wrong)?,
            (PlaceOfPart::Number(octets, order), _) => {
                let Some(Value::Number(bits)) = ty.value_of(scalar) else { return Err(wrong()) };
                put_bits(octets, order, bits);
            }
        }
        Ok(())
    }

    fn set_discriminator(self, path: &str, scalar: &Scalar<'_>) -> Result<(), DataError> {
        let ty = self.ty;
        let Kind::Union(union) = &ty.kind else {
            return Err(DataError::new(path, "a union", ty.expected()));
        };
        let wrong = || DataError::new(path, union.discriminator.expected(), scalar);
        let Some(Value::Number(bits)) = union.discriminator.value_of(scalar) else { return Err(wrong()) };
        let Some(Value::Union(known, selected)) = self.expanded() else { return Err(wrong()) };
        let at = union.select(union.discriminator.integer(bits));
        *known = bits;
        if selected.as_ref().map(|(place, _)| *place) != at {
            *selected = at.map(|at| (at, Box::new(union.initial_member(at).clone())));
        }
        Ok(())
    }
}

/// Writes a number where it is kept among many.
pub(super) fn put_bits(octets: &mut [u8], order: Endianness, bits: u64) {
    let little = bits.to_le_bytes();
    match order {
        Endianness::Little => octets.iter_mut().zip(little).for_each(|(to, from)| *to = from),
        Endianness::Big => octets.iter_mut().rev().zip(little).for_each(|(to, from)| *to = from),
    }
}

impl<'a> DataRef<'a> {
    /// The part at a path; see [`DynamicData`].
    ///
    /// # Errors
    /// [`DataError`]: there is none.
    pub fn at(&self, path: &str) -> Result<Self, DataError> {
        let mut part = *self;
        for step in path::steps(path).map_err(|at| not_a_path(path, at))? {
            let found = match &step {
                Step::Member(DISCRIMINATOR) => part.discriminator(),
                Step::Member(name) => part.member(name),
                Step::At(key) => match &part.ty.kind {
                    Kind::Map { key: of_keys, .. } => part.value_at_key(of_keys, key),
                    _ => key.parse().ok().and_then(|at: usize| part.elements().nth(at)),
                },
            };
            part = found.ok_or_else(|| no_step(path, part.ty, &step))?;
        }
        Ok(part)
    }
}
