//! A type of which nothing is known but its name.

use std::sync::Arc;

use super::{KeyError, TypeSupport};
use crate::cdr::{Encapsulation, Endianness, Extensibility, KeyHash, XcdrVersion};
use crate::filter::{FilterError, PayloadFilter};
use crate::malformed::Malformed;
use crate::types::TypeDescription;

/// A type whose samples are octets: for who hands them on, as a recorder does. Readers of it are told no
/// type, match by its name, keep no instances and have all changes as they came. Writers of it know no keys:
/// only those of a type without key can be right.
#[derive(Clone, Debug)]
pub struct OpaqueType {
    name: String,
    keyed: bool,
    description: Option<Arc<TypeDescription>>,
}

impl OpaqueType {
    /// A type with this name; `keyed` as those are with which it is to match.
    #[must_use]
    pub fn new(name: &str, keyed: bool) -> Self {
        Self { name: name.to_owned(), keyed, description: None }
    }

    /// The same, which others are told this of.
    #[must_use]
    pub fn with_description(self, description: Arc<TypeDescription>) -> Self {
        Self { description: Some(description), ..self }
    }
}

impl TypeSupport for OpaqueType {
    fn name(&self) -> &str {
        &self.name
    }

    fn extensibility(&self) -> Extensibility {
        Extensibility::Appendable
    }

    fn is_keyed(&self) -> bool {
        self.keyed
    }

    fn is_opaque(&self) -> bool {
        true
    }

    fn sample_bytes_max(&self) -> Option<usize> {
        None
    }

    fn description(&self) -> Option<Arc<TypeDescription>> {
        self.description.clone()
    }

    fn check(&self, payload: &[u8]) -> Result<(), Malformed> {
        Encapsulation::parse(payload).map(drop)
    }

    fn key_hash(&self, _: &[u8], _: bool, _: &mut dyn FnMut(&[u8])) -> Result<KeyHash, Malformed> {
        Ok(KeyHash([0; 16]))
    }

    fn serialize_key(
        &self,
        payload: &[u8],
        _: bool,
        _: (XcdrVersion, Endianness),
        buffer: &mut Vec<u8>,
    ) -> Result<(), KeyError> {
        buffer.extend_from_slice(payload);
        Ok(())
    }

    fn filter(&self, _: &str, _: &[String]) -> Result<PayloadFilter, FilterError> {
        Err(no_members())
    }

    fn query(&self, _: &str, _: &[String]) -> Result<PayloadFilter, FilterError> {
        Err(no_members())
    }
}

fn no_members() -> FilterError {
    FilterError { column: 1, message: "the members of the type are not known".to_owned() }
}
