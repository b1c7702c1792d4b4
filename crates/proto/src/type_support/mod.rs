//! Types as objects: what endpoints, bindings and tools ask of a type.
//!
//! [`of`] makes one from a Rust type; a [`DynamicType`] is made from a description that is there at run time,
//! and walks encoded samples. What both say of the same octets is the same.
//!
//! Endpoints without a Rust type take and give encoded samples: what is written is decoded once before it
//! leaves, what is taken before it is handed out. Typed handles share all but encoding and decoding, which
//! stay monomorphic. A TypeObject tells neither the labels of a union that select no member nor defaults that
//! are expressions: there a described type takes what XTypes says.

#![deny(clippy::indexing_slicing)]

mod dynamic;
mod large;
mod opaque;
mod rust;

use std::any::TypeId;
use std::fmt;
use std::sync::Arc;

use crate::cdr::{Encapsulation, EncodeError, Endianness, Extensibility, KeyHash, XcdrVersion};
use crate::filter::{FilterError, FilterFunction, PayloadFilter};
use crate::instance::{Fingerprint, InstanceHandle, Key, KeyFunction};
use crate::malformed::Malformed;
use crate::types::TypeDescription;
pub use dynamic::{DataError, DataRef, DataValue, DynamicData, DynamicType, DynamicTypeError, Scalar};
pub use opaque::OpaqueType;
pub use rust::of;

/// What an endpoint knows of its type. Payloads have their encapsulation header, and may be in each
/// representation that suits the type, in both byte orders.
pub trait TypeSupport: fmt::Debug + Send + Sync + 'static {
    /// The name under which it is registered.
    fn name(&self) -> &str;

    /// How it may evolve.
    fn extensibility(&self) -> Extensibility;

    /// Whether it has key members.
    fn is_keyed(&self) -> bool;

    /// Most octets of a sample in any representation, encapsulation header and padding included; `None`
    /// without limit, and where that is not known.
    fn sample_bytes_max(&self) -> Option<usize>;

    /// As others are told it; `None` for a type that no TypeObject tells. Made anew for each call, perhaps.
    fn description(&self) -> Option<Arc<TypeDescription>>;

    /// The Rust type of its samples, if it has one.
    fn rust_type(&self) -> Option<TypeId> {
        None
    }

    /// Whether nothing is known of it but its name: see [`OpaqueType`].
    fn is_opaque(&self) -> bool {
        false
    }

    /// Octets of memory of the largest value that decoding has on the stack: of the Rust type, or of what its
    /// collections and boxes have; 0 without a Rust type.
    fn value_bytes(&self) -> usize {
        0
    }

    /// The same as a type that is known at run time, if it is one.
    fn as_dynamic(&self) -> Option<&DynamicType> {
        None
    }

    /// Decodes a sample, and forgets it.
    ///
    /// # Errors
    /// [`Malformed`]: it is none of this type.
    fn check(&self, payload: &[u8]) -> Result<(), Malformed>;

    /// The key hash of a payload: of a serialized key if `key_only`, else of a sample, whose other members
    /// need not decode. All zeros without key. Where the hash is a digest, which other keys may have too,
    /// `long_key` gets the key holder.
    ///
    /// # Errors
    /// [`Malformed`].
    fn key_hash(
        &self,
        payload: &[u8],
        key_only: bool,
        long_key: &mut dyn FnMut(&[u8]),
    ) -> Result<KeyHash, Malformed>;

    /// Appends the serialized key of a payload (as with [`Self::key_hash`]), with encapsulation header and
    /// padding.
    ///
    /// # Errors
    /// [`KeyError`].
    fn serialize_key(
        &self,
        payload: &[u8],
        key_only: bool,
        representation: (XcdrVersion, Endianness),
        buffer: &mut Vec<u8>,
    ) -> Result<(), KeyError>;

    /// A content filter: a condition, without ORDER BY. What does not decode passes it.
    ///
    /// # Errors
    /// [`FilterError`], also where members are not known by their names.
    fn filter(&self, expression: &str, parameters: &[String]) -> Result<PayloadFilter, FilterError>;

    /// As [`Self::filter`], of a query, which may have ORDER BY, too: it does not count here.
    ///
    /// # Errors
    /// [`FilterError`].
    fn query(&self, expression: &str, parameters: &[String]) -> Result<PayloadFilter, FilterError>;

    /// How a reader finds the instance of a payload. `fingerprint` tells long keys apart: see
    /// [`Fingerprint::new`].
    fn key_function(self: Arc<Self>, fingerprint: fn(&[u8]) -> Fingerprint) -> KeyFunction {
        if self.is_opaque() {
            return KeyFunction::verbatim();
        }
        let serializing = Arc::clone(&self);
        let find = KeyFunction::new(move |payload, key_only| {
            if !self.is_keyed() {
                return Ok(InstanceHandle::NIL.into());
            }
            let mut found = None;
            let hash = self.key_hash(payload, key_only, &mut |key| found = Some(fingerprint(key)))?;
            Ok(Key { hash: hash.into(), fingerprint: found })
        });
        find.with_serialized(move |payload, key_only, buffer| {
            Encapsulation::parse(payload).is_ok_and(|(it, _)| {
                let representation = (it.version, it.endianness);
                serializing.serialize_key(payload, key_only, representation, buffer).is_ok()
            })
        })
    }

    /// How a writer makes filters of what readers announce.
    fn filter_function(self: Arc<Self>) -> FilterFunction {
        FilterFunction::new(move |announced| self.filter(&announced.expression, &announced.parameters).ok())
    }
}

impl dyn TypeSupport {
    /// Whether both are the same type: the same Rust type, or types with equal hashes, names of members
    /// included.
    #[must_use]
    pub fn is_same_type(&self, other: &dyn TypeSupport) -> bool {
        if let (Some(one), Some(two)) = (self.rust_type(), other.rust_type())
            && one == two
        {
            return true;
        }
        let hash = |ty: &dyn TypeSupport| ty.description()?.information.complete.as_ref().map(|it| it.id);
        hash(self).is_some_and(|one| hash(other) == Some(one))
    }
}

/// Why there is no serialized key of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The payload does not decode.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// What was decoded cannot be encoded.
    #[error(transparent)]
    Encode(#[from] EncodeError),
}
