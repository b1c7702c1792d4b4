//! Bit sets: a structure whose members share the bits of one integer.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{DataStruct, DeriveInput, Error, Fields, LitInt, Type};

use crate::attribute::{MemberAttributes, TypeAttributes};

/// Bits of a bit set at most.
const BITS_MAX: u32 = 64;

struct Field<'a> {
    ident: &'a Ident,
    ty: &'a Type,
    name: String,
    position: u32,
    bits: u32,
}

pub(crate) fn expand(
    input: &DeriveInput,
    data: &DataStruct,
    attributes: &TypeAttributes,
) -> syn::Result<TokenStream> {
    let fields = fields(input, data)?;
    let bits = match &attributes.bit_bound {
        // Others may have unnamed bits at the end.
        Some(_) => attributes.bits(BITS_MAX)?,
        None => fields.iter().map(|field| field.position + field.bits).max().unwrap_or(1),
    };
    let holder = format_ident!("u{}", bits.next_power_of_two().max(8));
    let (ident, name) = (&input.ident, &attributes.name);
    let describe = describe(name, &fields);
    let access = access(name, &fields);
    let packed = fields.iter().map(|Field { ident, ty, name, position, bits }| {
        let most = quote_spanned!(ty.span()=> <#ty as dds_cdr::BitField>::BITS_MAX);
        quote! {
            const { ::core::assert!(#bits <= #most, "a member has more bits than its type") };
            match dds_cdr::BitField::to_bits(self.#ident, #bits) {
                ::core::option::Option::Some(bits) => packed |= bits << #position,
                ::core::option::Option::None => {
                    return ::core::result::Result::Err(dds_cdr::EncodeError::BitsOutOfRange {
                        member: #name,
                        bits: #bits,
                    });
                }
            }
        }
    });
    let unpacked = fields.iter().map(|Field { ident, ty, position, bits, .. }| {
        quote_spanned! {ty.span()=>
            #ident: <#ty as dds_cdr::BitField>::from_bits(packed >> #position & u64::MAX >> (64 - #bits), #bits)
        }
    });
    let initial = fields.iter().map(|Field { ident, ty, bits, .. }| {
        quote_spanned!(ty.span()=> #ident: <#ty as dds_cdr::BitField>::from_bits(0, #bits))
    });
    Ok(quote! {
        #[automatically_derived]
        impl dds_cdr::Cdr for #ident {
            const FIXED_BYTES: ::core::option::Option<usize> = <#holder as dds_cdr::Cdr>::FIXED_BYTES;
            const BYTES_MIN: usize = <#holder as dds_cdr::Cdr>::BYTES_MIN;
            const EXTENT: dds_cdr::Extent = <#holder as dds_cdr::Cdr>::EXTENT;

            fn encode(&self, encoder: &mut dds_cdr::Encoder<'_>) -> ::core::result::Result<(), dds_cdr::EncodeError> {
                let mut packed = 0_u64;
                #(#packed)*
                dds_cdr::Cdr::encode(&(packed as #holder), encoder)
            }

            fn decode(decoder: &mut dds_cdr::Decoder<'_>) -> ::core::result::Result<Self, DdsMalformed> {
                let packed = <#holder as dds_cdr::Cdr>::decode(decoder)? as u64;
                ::core::result::Result::Ok(Self { #(#unpacked),* })
            }

            fn skip(decoder: &mut dds_cdr::Decoder<'_>) -> ::core::result::Result<(), DdsMalformed> {
                <#holder as dds_cdr::Cdr>::skip(decoder)
            }

            fn initial() -> Self {
                Self { #(#initial),* }
            }

            #access

            #describe
        }
    })
}

fn fields<'a>(input: &DeriveInput, data: &'a DataStruct) -> syn::Result<Vec<Field<'a>>> {
    let Fields::Named(named) = &data.fields else {
        return Err(Error::new_spanned(
            &input.ident,
            "a bit set is a structure of named members, each with its bits",
        ));
    };
    let mut fields = Vec::new();
    let mut next = 0;
    for field in &named.named {
        let Some(ident) = &field.ident else { continue };
        let told = MemberAttributes::parse(&field.attrs, ident)?;
        let number = |literal: &Option<LitInt>| literal.as_ref().map(LitInt::base10_parse::<u32>).transpose();
        let Some(bits) = number(&told.bits)? else {
            return Err(Error::new_spanned(ident, "say how many bits the member has: #[dds(bits = 3)]"));
        };
        let position = number(&told.position)?.unwrap_or(next);
        if position < next {
            return Err(Error::new_spanned(
                ident,
                format!("bit {position} is taken; the next one is {next}"),
            ));
        }
        next = position.saturating_add(bits);
        if bits == 0 || next > BITS_MAX {
            return Err(Error::new_spanned(
                ident,
                "members of a bit set have 1 bit or more, 64 together at most",
            ));
        }
        fields.push(Field { ident, ty: &field.ty, name: told.name_or(ident), position, bits });
    }
    if fields.is_empty() {
        return Err(Error::new_spanned(&input.ident, "a bit set has at least one member"));
    }
    Ok(fields)
}

/// The methods that give content filters access to the members.
fn access(type_name: &str, fields: &[Field<'_>]) -> TokenStream {
    let members = fields.iter().map(|Field { name, ty, .. }| {
        quote_spanned! {ty.span()=>
            dds_cdr::FieldMember { name: #name, fields: <#ty as dds_cdr::Cdr>::fields, key: false }
        }
    });
    let places = 0_u16..;
    let values = fields.iter().zip(places.clone()).map(|(Field { ident, ty, .. }, place)| {
        quote_spanned!(ty.span()=> #place => dds_cdr::Cdr::field(&self.#ident, path),)
    });
    let set = fields.iter().zip(places).map(|(Field { ident, ty, .. }, place)| {
        quote_spanned!(ty.span()=> #place => dds_cdr::Cdr::set_field(&mut self.#ident, path, value),)
    });
    quote! {
        fn fields() -> dds_cdr::Fields {
            dds_cdr::Fields::Structure(#type_name, const { &[#(#members),*] })
        }
        fn field(&self, path: &[u16]) -> ::core::option::Option<dds_cdr::FieldValue<'_>> {
            let (place, path) = path.split_first()?;
            match *place {
                #(#values)*
                _ => ::core::option::Option::None,
            }
        }
        fn set_field(&mut self, path: &[u16], value: dds_cdr::FieldValue<'_>) -> bool {
            let ::core::option::Option::Some((place, path)) = path.split_first() else { return false };
            match *place {
                #(#set)*
                _ => false,
            }
        }
    }
}

/// The method that tells the type to other participants.
fn describe(name: &str, fields: &[Field<'_>]) -> TokenStream {
    let fields = fields.iter().map(|Field { name, ty, position, bits, .. }| {
        quote_spanned! {ty.span()=>
            dds_types::FieldDescription {
                name: #name,
                position: #position as u16,
                bits: #bits as u8,
                holder: <#ty as dds_cdr::BitField>::HOLDER,
            }
        }
    });
    quote! {
        fn describe(types: &mut dds_types::TypeBuilder) -> ::core::option::Option<dds_types::TypeIdentifiers> {
            types.bitset(::core::any::TypeId::of::<Self>(), #name, &[#(#fields),*])
        }
    }
}
