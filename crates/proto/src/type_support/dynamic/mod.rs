//! A type that is described at run time.

mod base64;
mod build;
mod data;
mod decode;
mod encode;
mod fields;
#[cfg(feature = "serde")]
mod json;
mod model;
mod path;
mod scalar;
mod value;
mod view;
mod words;

use std::sync::Arc;

pub use build::DynamicTypeError;
pub use data::{DataError, DynamicData};
pub use scalar::Scalar;
pub use view::{DataRef, DataValue};

use super::{KeyError, TypeSupport};
use crate::cdr::decode::Form;
use crate::cdr::{
    self, Encapsulation, Endianness, Extensibility, KeyHash, XcdrVersion, append_encoded_key,
    key_hash_of_encoded, open_payload_of,
};
use crate::filter::{Condition, FilterError, PayloadFilter};
use crate::malformed::Malformed;
use crate::types::TypeDescription;
use fields::{Fields, Names};
use model::{Kind, Type};
use value::Value;

/// A structure or union made from its TypeObject. It finds keys and members in encoded samples, as
/// the derived type does, with two differences where a member was not sent, since TypeObjects do not tell
/// them: a default that is an expression, and which literal of an enumeration was declared first.
///
/// A type that contains itself is read as deep as any sample nests.
///
/// A minimal TypeObject suffices where there is no complete one: then members are named by their ids, as
/// `#3`, and literals by their values.
#[derive(Clone, Debug)]
pub struct DynamicType {
    name: String,
    extensibility: Extensibility,
    keyed: bool,
    ty: Arc<Type>,
    description: Arc<TypeDescription>,
}

impl DynamicType {
    /// The type of a description, registered as `name`.
    ///
    /// # Errors
    /// [`DynamicTypeError`].
    pub fn new(name: &str, description: Arc<TypeDescription>) -> Result<Self, DynamicTypeError> {
        let ty = build::build(&description)?;
        let (extensibility, keyed) = match &ty.kind {
            Kind::Structure(structure) => (structure.extensibility, structure.keyed),
            Kind::Union(union) => (union.extensibility, union.keyed),
            _ => {
                let what = "neither structure nor union";
                return Err(DynamicTypeError::Unsupported { name: name.to_owned(), what });
            }
        };
        Ok(Self { name: name.to_owned(), extensibility, keyed, ty, description })
    }

    /// Whether the names of members and literals are known: it was made from a complete TypeObject.
    #[must_use]
    pub fn has_names(&self) -> bool {
        self.description.information.complete.is_some()
    }

    fn read<'a>(&self, payload: &'a [u8], form: Form) -> Result<Value<'a>, Malformed> {
        decode::decode(&self.ty, &mut open_payload_of(self.extensibility, payload, form)?)
    }

    /// The key of a payload: as [`cdr::key_of_payload`].
    fn read_key<'a>(&self, payload: &'a [u8], key_only: bool) -> Result<Value<'a>, Malformed> {
        if !self.keyed {
            return Ok(Value::Initial);
        }
        if !key_only {
            return self.read(payload, Form::KeyOfSample);
        }
        let key = self.read(payload, Form::Key);
        let is_xcdr2 = Encapsulation::parse(payload).is_ok_and(|(it, _)| it.version == XcdrVersion::Xcdr2);
        if key.is_ok() || !is_xcdr2 || self.extensibility != Extensibility::Appendable {
            return key;
        }
        // Cyclone DDS 0.10 leaves the DHEADER out.
        self.read(payload, Form::UndelimitedKey).or(key)
    }
}

impl TypeSupport for DynamicType {
    fn name(&self) -> &str {
        &self.name
    }

    fn extensibility(&self) -> Extensibility {
        self.extensibility
    }

    fn is_keyed(&self) -> bool {
        self.keyed
    }

    fn sample_bytes_max(&self) -> Option<usize> {
        let padding = 3;
        self.ty.bytes_max.and_then(|bytes| bytes.checked_add(Encapsulation::HEADER_BYTES + padding))
    }

    fn description(&self) -> Option<Arc<TypeDescription>> {
        Some(Arc::clone(&self.description))
    }

    fn as_dynamic(&self) -> Option<&DynamicType> {
        Some(self)
    }

    fn check(&self, payload: &[u8]) -> Result<(), Malformed> {
        self.read(payload, Form::Sample).map(drop)
    }

    fn key_hash(
        &self,
        payload: &[u8],
        key_only: bool,
        long_key: &mut dyn FnMut(&[u8]),
    ) -> Result<KeyHash, Malformed> {
        if !self.keyed {
            return Ok(KeyHash::default());
        }
        let key = self.read_key(payload, key_only)?;
        let encode = |encoder: &mut cdr::Encoder<'_>| encode::encode(&self.ty, &key, encoder);
        // As with the derived types: what was decoded fails to encode only where the value is refused.
        key_hash_of_encoded(self.ty.extent.bytes_max(), encode, long_key)
            .map_err(|_| Malformed::InvalidString)
    }

    fn serialize_key(
        &self,
        payload: &[u8],
        key_only: bool,
        (version, endianness): (XcdrVersion, Endianness),
        buffer: &mut Vec<u8>,
    ) -> Result<(), KeyError> {
        let key = self.read_key(payload, key_only)?;
        let encapsulation = Encapsulation::for_type(version, self.extensibility, endianness);
        append_encoded_key(encapsulation, buffer, |encoder| encode::encode(&self.ty, &key, encoder))?;
        Ok(())
    }

    fn filter(&self, expression: &str, parameters: &[String]) -> Result<PayloadFilter, FilterError> {
        Ok(self.payload_filter(Condition::filter(Names(&self.ty), expression, parameters)?))
    }

    fn query(&self, expression: &str, parameters: &[String]) -> Result<PayloadFilter, FilterError> {
        Ok(self.payload_filter(Condition::query(Names(&self.ty), expression, parameters)?))
    }
}

impl DynamicType {
    fn payload_filter(&self, condition: Condition) -> PayloadFilter {
        let (steps, ty) = (condition.steps_per_octet(), Arc::clone(&self.ty));
        let extensibility = self.extensibility;
        let passes = move |payload: &[u8]| {
            let value = open_payload_of(extensibility, payload, Form::Sample)
                .and_then(|mut decoder| decode::decode(&ty, &mut decoder));
            value.map_or(true, |value| condition.passes(&Fields { ty: &ty, value }))
        };
        PayloadFilter::new(passes).with_steps_per_octet(steps)
    }
}
