//! Enumerations.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{DataEnum, DeriveInput, Error, Fields};

use crate::attribute::{MemberAttributes, TypeAttributes};

pub(crate) fn expand(
    input: &DeriveInput,
    data: &DataEnum,
    attributes: &TypeAttributes,
) -> syn::Result<TokenStream> {
    let mut initial = None;
    let mut names = Vec::new();
    for variant in &data.variants {
        if !matches!(variant.fields, Fields::Unit) {
            return Err(Error::new_spanned(
                variant,
                "a literal of an enumeration holds no value; for a union write #[dds(union, discriminator = …)] on the enum",
            ));
        }
        let told = MemberAttributes::parse(&variant.attrs, &variant.ident)?;
        names.push(told.name_or(&variant.ident));
        if told.default.is_some() {
            initial = Some(&variant.ident);
        }
    }
    let default = initial;
    let Some(initial) = initial.or_else(|| data.variants.first().map(|variant| &variant.ident)) else {
        return Err(Error::new_spanned(&input.ident, "an enumeration needs at least one literal"));
    };
    // The holder of the bit bound (XTypes 1.3 table 32).
    let bits = attributes.bits(32)?;
    let holder = format_ident!("i{}", bits.next_power_of_two().max(8));
    let ident = &input.ident;
    let literals = data.variants.iter().map(|variant| &variant.ident).collect::<Vec<_>>();
    let values = literals.iter().map(|literal| {
        quote! {
            const {
                let value = Self::#literal as i64;
                assert!(
                    value >= #holder::MIN as i64 && value <= #holder::MAX as i64,
                    "a literal does not fit the bit bound of its enumeration"
                );
                value as #holder
            }
        }
    });
    let values = values.collect::<Vec<_>>();
    let fields = fields(&literals, &names);
    let discriminator = discriminator(ident, &literals);
    let describe = describe(attributes, bits, &literals, &names, default);
    Ok(quote! {
        #[automatically_derived]
        impl dds_cdr::Cdr for #ident {
            const FIXED_BYTES: ::core::option::Option<usize> = <#holder as dds_cdr::Cdr>::FIXED_BYTES;
            const BYTES_MIN: usize = <#holder as dds_cdr::Cdr>::BYTES_MIN;
            const EXTENT: dds_cdr::Extent = <#holder as dds_cdr::Cdr>::EXTENT;

            fn encode(&self, encoder: &mut dds_cdr::Encoder<'_>) -> ::core::result::Result<(), dds_cdr::EncodeError> {
                let value: #holder = match self {
                    #(Self::#literals => #values,)*
                };
                dds_cdr::Cdr::encode(&value, encoder)
            }

            fn decode(decoder: &mut dds_cdr::Decoder<'_>) -> ::core::result::Result<Self, DdsMalformed> {
                let value = <#holder as dds_cdr::Cdr>::decode(decoder)?;
                #(if value == #values {
                    return ::core::result::Result::Ok(Self::#literals);
                })*
                ::core::result::Result::Err(DdsMalformed::InvalidEnum)
            }

            fn skip(decoder: &mut dds_cdr::Decoder<'_>) -> ::core::result::Result<(), DdsMalformed> {
                <#holder as dds_cdr::Cdr>::skip(decoder)
            }

            fn initial() -> Self {
                Self::#initial
            }

            #fields

            #describe
        }

        #discriminator
    })
}

/// The methods that give content filters and multi-topics access to the value.
fn fields(literals: &[&syn::Ident], names: &[String]) -> TokenStream {
    quote! {
        fn fields() -> dds_cdr::Fields {
            dds_cdr::Fields::Value(dds_cdr::FieldKind::Enumeration(
                const { &[#((::std::borrow::Cow::Borrowed(#names), Self::#literals as i64)),*] },
            ))
        }

        fn field(&self, path: &[u16]) -> ::core::option::Option<dds_cdr::FieldValue<'_>> {
            let value = match self {
                #(Self::#literals => Self::#literals as i64,)*
            };
            path.is_empty().then(|| dds_cdr::FieldValue::Integer(i128::from(value)))
        }

        fn set_field(&mut self, path: &[u16], value: dds_cdr::FieldValue<'_>) -> bool {
            let dds_cdr::FieldValue::Integer(value) = value else { return false };
            #(if path.is_empty() && value == i128::from(Self::#literals as i64) {
                *self = Self::#literals;
                return true;
            })*
            false
        }
    }
}

/// It may select the member of a union.
fn discriminator(ident: &syn::Ident, literals: &[&syn::Ident]) -> TokenStream {
    quote! {
        #[automatically_derived]
        impl dds_cdr::Discriminator for #ident {
            fn label(&self) -> i64 {
                match self {
                    #(Self::#literals => Self::#literals as i64,)*
                }
            }
        }
    }
}

/// What others are told of how an enumeration or bit mask may evolve.
pub(crate) fn told_extensibility(attributes: &TypeAttributes) -> TokenStream {
    let told = attributes.extensibility.tokens();
    if attributes.told_extensibility {
        quote!(::core::option::Option::Some(#told))
    } else {
        quote!(::core::option::Option::None)
    }
}

/// The method that tells the type to other participants.
fn describe(
    attributes: &TypeAttributes,
    bit_bound: u32,
    literals: &[&syn::Ident],
    names: &[String],
    default: Option<&syn::Ident>,
) -> TokenStream {
    let (name, extensibility) = (&attributes.name, told_extensibility(attributes));
    let defaults = literals.iter().map(|literal| default == Some(*literal));
    quote! {
        fn describe(types: &mut dds_types::TypeBuilder) -> ::core::option::Option<dds_types::TypeIdentifiers> {
            types.enumeration(
                &dds_types::BitsDescription {
                    rust_type: ::core::any::TypeId::of::<Self>(),
                    name: #name,
                    extensibility: #extensibility,
                    bit_bound: #bit_bound as u16,
                },
                &[#((#names, Self::#literals as i64, #defaults)),*],
            )
        }
    }
}
