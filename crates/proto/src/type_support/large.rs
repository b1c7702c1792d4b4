//! The type support of a Rust type with values that are not to be on a stack: what a peer sends is looked at
//! on receive threads, and a stack that overflows ends the process. The description stands in for the type.

use std::any::{TypeId, type_name};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use super::{DynamicType, KeyError, TypeSupport};
use crate::cdr::{self, DdsType, Endianness, Extensibility, KeyHash, XcdrVersion};
use crate::filter::{FilterError, PayloadFilter};
use crate::malformed::Malformed;
use crate::types::TypeDescription;

/// Reads samples of `T` without a value of it. Where a filter looks at a member that was not sent, it finds
/// what a [`DynamicType`] finds: no default that is an expression.
pub(super) struct LargeType<T> {
    /// Without one, no sample of the type is read.
    octets: Option<DynamicType>,
    description: Option<Arc<TypeDescription>>,
    value_bytes: usize,
    marker: PhantomData<fn() -> T>,
}

impl<T: DdsType> LargeType<T> {
    pub(super) const fn new(
        octets: Option<DynamicType>,
        description: Option<Arc<TypeDescription>>,
        value_bytes: usize,
    ) -> Self {
        Self { octets, description, value_bytes, marker: PhantomData }
    }

    fn octets(&self) -> Result<&DynamicType, Malformed> {
        self.octets.as_ref().ok_or(Malformed::TooLarge)
    }

    fn octets_to_filter(&self) -> Result<&DynamicType, FilterError> {
        self.octets().map_err(|error| FilterError { column: 1, message: error.to_string() })
    }
}

impl<T> fmt::Debug for LargeType<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LargeType<{}>", type_name::<T>())
    }
}

impl<T: DdsType> TypeSupport for LargeType<T> {
    fn name(&self) -> &str {
        T::TYPE_NAME
    }

    fn extensibility(&self) -> Extensibility {
        T::EXTENSIBILITY
    }

    fn is_keyed(&self) -> bool {
        T::KEYED
    }

    fn sample_bytes_max(&self) -> Option<usize> {
        self.octets.as_ref()?.sample_bytes_max()
    }

    fn description(&self) -> Option<Arc<TypeDescription>> {
        self.description.clone()
    }

    fn rust_type(&self) -> Option<TypeId> {
        Some(TypeId::of::<T>())
    }

    fn value_bytes(&self) -> usize {
        self.value_bytes
    }

    fn check(&self, payload: &[u8]) -> Result<(), Malformed> {
        self.octets()?.check(payload)
    }

    fn key_hash(
        &self,
        payload: &[u8],
        key_only: bool,
        long_key: &mut dyn FnMut(&[u8]),
    ) -> Result<KeyHash, Malformed> {
        match cdr::key_hash_in_place::<T>(payload, key_only) {
            Some(hash) => Ok(hash),
            None if !T::KEYED => Ok(KeyHash::default()),
            None => self.octets()?.key_hash(payload, key_only, long_key),
        }
    }

    fn serialize_key(
        &self,
        payload: &[u8],
        key_only: bool,
        representation: (XcdrVersion, Endianness),
        buffer: &mut Vec<u8>,
    ) -> Result<(), KeyError> {
        self.octets()?.serialize_key(payload, key_only, representation, buffer)
    }

    fn filter(&self, expression: &str, parameters: &[String]) -> Result<PayloadFilter, FilterError> {
        self.octets_to_filter()?.filter(expression, parameters)
    }

    fn query(&self, expression: &str, parameters: &[String]) -> Result<PayloadFilter, FilterError> {
        self.octets_to_filter()?.query(expression, parameters)
    }
}
