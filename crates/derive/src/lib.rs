//! `#[derive(DdsType)]`: the traits of `plainsong_proto::cdr` for structures, unions and enumerations.
//!
//! A Rust `struct` is a DDS structure, a Rust `enum` of plain names is a DDS enumeration, and a Rust `enum`
//! marked `#[dds(union, discriminator = …)]` is a DDS union. Errors point at the member they are about.
#![forbid(unsafe_code)]

mod attribute;
mod bitmask;
mod bitset;
mod bounds;
mod enumeration;
mod inheritance;
mod plain;
mod structure;
mod union;

use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, GenericParam, Type};

use attribute::TypeAttributes;
use bounds::Bounds;

/// Implements `Cdr` and `DdsType` for a structure or union, `Cdr` for an enumeration.
///
/// On the type, in `#[dds(…)]`:
///
/// | attribute | meaning |
/// |---|---|
/// | `name = "ShapeType"` | registered type name; default: the Rust name |
/// | `final`, `appendable`, `mutable` | extensibility; default: appendable |
/// | `autoid = "hash"` | member ids from hashes of names; default: counted from 0 |
/// | `union`, `discriminator = i32` | a Rust enum is a union with this discriminator |
/// | `key` | the discriminator of a union is its key |
/// | `nested` | no type of a topic, as others are told |
/// | `bit_bound = 16` | bits of an enumeration; default: 32; of a bit mask; default: those of its integer |
/// | `bitmask`, `flag(READY = 0)` | a structure of one unnamed integer is a bit mask with these flags |
/// | `bitset` | a structure of members with `bits` is a bit set |
/// | `plain` | its memory is what is sent, so that it can be lent, or it does not compile |
/// | `crate = "path"` | where `cdr`, `malformed`, `types` of `plainsong_proto` are; default: in `plainsong` |
///
/// A structure may have one lifetime, of members that a writer borrows:
/// `struct Image<'a> { data: OctetSeq<'a> }`. The type of the topic is `Image<'static>`.
///
/// On a member: `name = "type"`, by which peers know it, `key`, `id = 7`, `hashid = "name"`, `bound = 128`,
/// `must_understand`, `optional` (told by `Option` anyway), and `default` or `default = expression` for the
/// value when the member is not sent. `base` on the first member says that the structure extends the one that
/// is its type. `element(bound = 16)` and `key_element(bound = 16)` are about what is in a collection, and
/// nest. `try_construct = "trim"` or `"use_default"` says what happens to a value that does not fit, for
/// which otherwise the sample is dropped. `octet` and `external` tell others what IDL calls so.
///
/// On a variant of a union: `case = 1` or `case(1, 2)`, `default`, or `default = 7` for the discriminator
/// that is written with it, `name`, `id`, and the limits of members.
/// On a variant of an enumeration: `name`, and `default` for the literal that members take when they are not
/// sent. On a member of a bit set: `bits = 3`, `name`, and `position = 8` where bits are left out before it.
///
/// A bit mask gets a constant for each flag, and the operators of sets:
///
/// ```ignore
/// #[derive(DdsType, Clone, Copy, PartialEq)]
/// #[dds(bitmask, flag(READY = 0), flag(BROKEN = 7, doc = "It does not turn."))]
/// pub struct Status(pub u8);
///
/// assert!((Status::READY | Status::BROKEN).contains(Status::READY));
/// ```
#[proc_macro_derive(DdsType, attributes(dds))]
pub fn derive_dds_type(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = syn::parse_macro_input!(input as DeriveInput);
    expand(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}

fn expand(input: &DeriveInput) -> syn::Result<TokenStream> {
    let is_structure = matches!(input.data, Data::Struct(_));
    let may_have = |parameter: &GenericParam| is_structure && matches!(parameter, GenericParam::Lifetime(_));
    if input.generics.params.len() > 1 || !input.generics.params.iter().all(may_have) {
        return Err(Error::new_spanned(
            &input.generics,
            "a DDS type has one name and no parameters, but for one lifetime of a structure whose octets may be borrowed; derive \
             DdsType for a type without generics",
        ));
    }
    let attributes = TypeAttributes::parse(input)?;
    if attributes.plain {
        plain::check(input, &attributes)?;
    }
    let implementation = match &input.data {
        Data::Struct(data) if attributes.bitmask => bitmask::expand(input, data, &attributes)?,
        Data::Struct(data) if attributes.bitset => bitset::expand(input, data, &attributes)?,
        Data::Struct(data) => structure::expand(input, data, &attributes)?,
        Data::Enum(data) if attributes.union => union::expand(input, data, &attributes)?,
        Data::Enum(data) => enumeration::expand(input, data, &attributes)?,
        Data::Union(_) => {
            return Err(Error::new_spanned(
                &input.ident,
                "DdsType needs a struct or an enum; write a DDS union as an enum with #[dds(union, discriminator = …)]",
            ));
        }
    };
    let proto = &attributes.proto;
    Ok(quote! {
        const _: () = {
            use #proto::cdr as dds_cdr;
            use #proto::malformed::Malformed as DdsMalformed;
            use #proto::types as dds_types;
            #implementation
        };
    })
}

/// An expression: the description of a member of a structure or union.
fn describe_member(
    name: &str,
    ty: &Type,
    id: &impl ToTokens,
    (key, must_understand, external): (bool, bool, bool),
    bounds: &Bounds,
) -> TokenStream {
    let (limits, try_construct) = (bounds.describe(), bounds.describe_try_construct());
    let annotations = bounds.describe_annotations();
    quote_spanned! {ty.span()=>
        dds_types::MemberDescription {
            name: #name,
            id: #id,
            optional: <#ty as dds_cdr::Member>::OPTIONAL,
            key: #key,
            must_understand: #must_understand,
            external: #external,
            try_construct: #try_construct,
            bounds: const { &#limits },
            annotations: const { &#annotations },
            describe: <#ty as dds_cdr::Member>::describe_member,
        }
    }
}

#[cfg(test)]
mod tests;
