//! The type support of a Rust type: nothing but its implementations of [`DdsType`] and [`crate::cdr::Cdr`].

use std::any::{TypeId, type_name};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use super::large::LargeType;
use super::{DynamicType, KeyError, TypeSupport};
use crate::cdr::{self, DdsType, Endianness, Extensibility, KeyHash, XcdrVersion};
use crate::filter::{Filter, FilterError, PayloadFilter};
use crate::malformed::Malformed;
use crate::tuning::memory::{STACK_VALUE_BYTES, STACK_VALUE_BYTES_MAX};
use crate::types::TypeDescription;

/// The type support of `T`.
#[must_use]
pub fn of<T: DdsType>() -> Arc<dyn TypeSupport> {
    let (description, value_bytes) = TypeDescription::of_with_value_bytes::<T>();
    let description = description.map(Arc::new);
    if value_bytes > STACK_VALUE_BYTES {
        let octets = description.clone().and_then(|it| DynamicType::new(T::TYPE_NAME, it).ok());
        if octets.is_some() || value_bytes > STACK_VALUE_BYTES_MAX {
            return Arc::new(LargeType::<T>::new(octets, description, value_bytes));
        }
    }
    Arc::new(RustType::<T> { description, value_bytes, marker: PhantomData })
}

/// Decodes values of `T`, which are small.
struct RustType<T> {
    description: Option<Arc<TypeDescription>>,
    value_bytes: usize,
    marker: PhantomData<fn() -> T>,
}

impl<T> fmt::Debug for RustType<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RustType<{}>", type_name::<T>())
    }
}

impl<T: DdsType> TypeSupport for RustType<T> {
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
        DynamicType::new(T::TYPE_NAME, self.description()?).ok()?.sample_bytes_max()
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
        cdr::from_payload::<T>(payload).map(drop)
    }

    #[inline]
    fn key_hash(
        &self,
        payload: &[u8],
        key_only: bool,
        long_key: &mut dyn FnMut(&[u8]),
    ) -> Result<KeyHash, Malformed> {
        if !T::KEYED {
            return Ok(KeyHash::default());
        }
        cdr::key_hash_and_key_of_payload::<T>(payload, key_only, long_key)
    }

    fn serialize_key(
        &self,
        payload: &[u8],
        key_only: bool,
        (version, endianness): (XcdrVersion, Endianness),
        buffer: &mut Vec<u8>,
    ) -> Result<(), KeyError> {
        let key = cdr::key_of_payload::<T>(payload, key_only)?;
        Ok(cdr::key_to_payload(&key, version, endianness, buffer)?)
    }

    fn filter(&self, expression: &str, parameters: &[String]) -> Result<PayloadFilter, FilterError> {
        Ok(by_value(Filter::<T>::condition(expression, parameters)?))
    }

    fn query(&self, expression: &str, parameters: &[String]) -> Result<PayloadFilter, FilterError> {
        Ok(by_value(Filter::<T>::query(expression, parameters)?))
    }
}

fn by_value<T: DdsType>(filter: Filter<T>) -> PayloadFilter {
    let steps = filter.steps_per_octet();
    PayloadFilter::new(move |payload| filter.passes_payload(payload)).with_steps_per_octet(steps)
}
