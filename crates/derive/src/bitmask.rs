//! Bit masks: a structure of one unnamed integer.

use std::collections::HashMap;

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DataStruct, DeriveInput, Error, Fields, Type};

use crate::attribute::{Flag, TypeAttributes};

/// The integers it may have, and their bits.
const HOLDERS: [(&str, u32); 4] = [("u8", 8), ("u16", 16), ("u32", 32), ("u64", 64)];

pub(crate) fn expand(
    input: &DeriveInput,
    data: &DataStruct,
    attributes: &TypeAttributes,
) -> syn::Result<TokenStream> {
    let (holder, holder_bits) = holder(input, data)?;
    let bit_bound = attributes.bits(holder_bits)?;
    if bit_bound.next_power_of_two().max(8) != holder_bits {
        let text =
            format!("a bit mask of {bit_bound} bits is in a smaller integer; use that, or say no bit_bound");
        return Err(Error::new_spanned(holder, text));
    }
    let positions = positions(&attributes.flags, bit_bound)?;
    let ident = &input.ident;
    let operations = operations(input, holder, &attributes.flags, &positions);
    let name = &attributes.name;
    let names = attributes.flags.iter().map(|flag| &flag.name);
    let extensibility = crate::enumeration::told_extensibility(attributes);
    Ok(quote! {
        #operations

        #[automatically_derived]
        impl dds_cdr::Cdr for #ident {
            const FIXED_BYTES: ::core::option::Option<usize> = <#holder as dds_cdr::Cdr>::FIXED_BYTES;
            const BYTES_MIN: usize = <#holder as dds_cdr::Cdr>::BYTES_MIN;
            const EXTENT: dds_cdr::Extent = <#holder as dds_cdr::Cdr>::EXTENT;

            fn encode(&self, encoder: &mut dds_cdr::Encoder<'_>) -> ::core::result::Result<(), dds_cdr::EncodeError> {
                dds_cdr::Cdr::encode(&self.0, encoder)
            }

            fn decode(decoder: &mut dds_cdr::Decoder<'_>) -> ::core::result::Result<Self, DdsMalformed> {
                ::core::result::Result::Ok(Self(dds_cdr::Cdr::decode(decoder)?))
            }

            fn skip(decoder: &mut dds_cdr::Decoder<'_>) -> ::core::result::Result<(), DdsMalformed> {
                <#holder as dds_cdr::Cdr>::skip(decoder)
            }

            fn initial() -> Self {
                Self(0)
            }

            fn fields() -> dds_cdr::Fields {
                <#holder as dds_cdr::Cdr>::fields()
            }

            fn field(&self, path: &[u16]) -> ::core::option::Option<dds_cdr::FieldValue<'_>> {
                dds_cdr::Cdr::field(&self.0, path)
            }

            fn set_field(&mut self, path: &[u16], value: dds_cdr::FieldValue<'_>) -> bool {
                dds_cdr::Cdr::set_field(&mut self.0, path, value)
            }

            fn describe(types: &mut dds_types::TypeBuilder) -> ::core::option::Option<dds_types::TypeIdentifiers> {
                types.bitmask(
                    &dds_types::BitsDescription {
                        rust_type: ::core::any::TypeId::of::<Self>(),
                        name: #name,
                        extensibility: #extensibility,
                        bit_bound: #bit_bound as u16,
                    },
                    &[#(dds_types::FlagDescription { name: #names, position: #positions as u16 }),*],
                )
            }
        }

        #[automatically_derived]
        impl dds_cdr::Discriminator for #ident {
            fn label(&self) -> i64 {
                dds_cdr::Discriminator::label(&self.0)
            }
        }
    })
}

fn holder<'a>(input: &DeriveInput, data: &'a DataStruct) -> syn::Result<(&'a Type, u32)> {
    let advice =
        "a bit mask is a structure of one unnamed integer: `struct Status(pub u8);`, or u16, u32, u64";
    let Fields::Unnamed(fields) = &data.fields else { return Err(Error::new_spanned(&input.ident, advice)) };
    let (Some(field), 1) = (fields.unnamed.first(), fields.unnamed.len()) else {
        return Err(Error::new_spanned(fields, advice));
    };
    // A macro may have put it in a group.
    let ty = if let Type::Group(group) = &field.ty { &*group.elem } else { &field.ty };
    let is_named = |name: &str| matches!(ty, Type::Path(path) if path.path.is_ident(name));
    let found = HOLDERS.iter().find(|(name, _)| is_named(name));
    found.map(|(_, bits)| (ty, *bits)).ok_or_else(|| Error::new_spanned(ty, advice))
}

/// Which bit each flag is: that it says, or the one after the flag before.
fn positions(flags: &[Flag], bit_bound: u32) -> syn::Result<Vec<u32>> {
    let mut taken = HashMap::new();
    let mut next = 0;
    let mut positions = Vec::new();
    for flag in flags {
        let position = match &flag.position {
            Some(literal) => literal.base10_parse()?,
            None => next,
        };
        if position >= bit_bound {
            let text = format!("the mask has {bit_bound} bits: positions are 0 to {}", bit_bound - 1);
            return Err(Error::new_spanned(&flag.ident, text));
        }
        if let Some(other) = taken.insert(position, &flag.ident) {
            return Err(Error::new_spanned(&flag.ident, format!("bit {position} is `{other}` already")));
        }
        next = position + 1;
        positions.push(position);
    }
    Ok(positions)
}

/// The flags, and what sets offer.
fn operations(input: &DeriveInput, holder: &Type, flags: &[Flag], positions: &[u32]) -> TokenStream {
    let (ident, visibility) = (&input.ident, &input.vis);
    let constants = flags.iter().zip(positions).map(|(flag, position)| {
        let name = &flag.ident;
        let text = flag.documentation.as_ref().map_or_else(|| format!("Bit {position}."), syn::LitStr::value);
        quote! {
            #[doc = #text]
            #visibility const #name: Self = Self(1 << #position);
        }
    });
    quote! {
        #[automatically_derived]
        #[allow(dead_code, unreachable_pub)]
        impl #ident {
            #(#constants)*

            /// No flag.
            #[must_use]
            #visibility const fn empty() -> Self {
                Self(0)
            }

            /// The flags of these bits, those that have no name too.
            #[must_use]
            #visibility const fn from_bits(bits: #holder) -> Self {
                Self(bits)
            }

            /// The flags as bits.
            #[must_use]
            #visibility const fn bits(&self) -> #holder {
                self.0
            }

            /// Whether there is no flag.
            #[must_use]
            #visibility const fn is_empty(&self) -> bool {
                self.0 == 0
            }

            /// Whether all these flags are there.
            #[must_use]
            #visibility const fn contains(&self, flags: Self) -> bool {
                self.0 & flags.0 == flags.0
            }

            /// Adds flags.
            #visibility const fn insert(&mut self, flags: Self) {
                self.0 |= flags.0;
            }

            /// Takes flags away.
            #visibility const fn remove(&mut self, flags: Self) {
                self.0 &= !flags.0;
            }
        }

        #[automatically_derived]
        impl ::core::ops::BitOr for #ident {
            type Output = Self;
            fn bitor(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }

        #[automatically_derived]
        impl ::core::ops::BitOrAssign for #ident {
            fn bitor_assign(&mut self, other: Self) {
                self.0 |= other.0;
            }
        }

        #[automatically_derived]
        impl ::core::ops::BitAnd for #ident {
            type Output = Self;
            fn bitand(self, other: Self) -> Self {
                Self(self.0 & other.0)
            }
        }

        #[automatically_derived]
        impl ::core::ops::Sub for #ident {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self(self.0 & !other.0)
            }
        }
    }
}
