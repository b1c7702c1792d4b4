//! Structures that extend others, and what every structure offers to those that extend it.
//!
//! The members of the base come first, as if they were those of the extension: without DHEADER in version 2,
//! and in one list where both are mutable.

use proc_macro2::{Ident, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{DeriveInput, Error};

use crate::attribute::{Extensibility, TypeAttributes};
use crate::structure::{Base, Member, MemberId, Structure};

impl Structure<'_> {
    /// The implementation of `cdr::Structure`. It is compiled where another structure extends this one.
    pub(crate) fn extendable(&self, input: &DeriveInput) -> TokenStream {
        let ident = &input.ident;
        let extensibility = self.extensibility.tokens();
        let constants = self.extendable_constants();
        let ids = self.ids();
        let encode = self.encode_members();
        let encode_by_id = self.encode_by_id();
        let decode = self.decode_members();
        let decode_one = self.decode_one();
        let skip_base = self.base.map(|Base { ty, .. }| {
            quote_spanned!(ty.span()=> <#ty as dds_cdr::Structure>::skip_members(decoder)?;)
        });
        let skip = self.members.iter().map(|member| member.skip(self.extensibility));
        quote! {
            #ids
            #[automatically_derived]
            #[allow(unused_variables)]
            impl dds_cdr::Structure for #ident {
                const EXTENSIBILITY: dds_cdr::Extensibility = #extensibility;
                #constants
                #[inline]
                fn encode_members(
                    &self,
                    encoder: &mut dds_cdr::Encoder<'_>,
                    keyed: bool,
                ) -> ::core::result::Result<(), dds_cdr::EncodeError> {
                    #encode
                }
                #[inline]
                fn encode_by_id(
                    &self,
                    encoder: &mut dds_cdr::Encoder<'_>,
                    keyed: bool,
                    ids: ::core::ops::Range<u32>,
                ) -> ::core::result::Result<(), dds_cdr::EncodeError> {
                    #encode_by_id
                }
                #[inline]
                fn decode_members(
                    decoder: &mut dds_cdr::Decoder<'_>,
                    keyed: bool,
                ) -> ::core::result::Result<Self, DdsMalformed> {
                    #decode
                }
                #[inline]
                fn decode_one(
                    &mut self,
                    header: &dds_cdr::MemberHeader,
                    decoder: &mut dds_cdr::Decoder<'_>,
                    keyed: bool,
                    seen: &mut [bool],
                ) -> ::core::result::Result<bool, DdsMalformed> {
                    #decode_one
                }
                #[inline]
                fn skip_members(decoder: &mut dds_cdr::Decoder<'_>) -> ::core::result::Result<(), DdsMalformed> {
                    #skip_base
                    #(#skip)*
                    ::core::result::Result::Ok(())
                }
            }
        }
    }

    /// Constants for the ids of members that are counted from those of the base.
    fn ids(&self) -> TokenStream {
        let Some(Base { ty, .. }) = self.base else { return TokenStream::new() };
        let constants = self.members.iter().filter_map(|member| match member.id {
            MemberId::Told(_) => None,
            MemberId::AfterBase(id) => {
                let constant = MemberId::constant(id);
                Some(quote!(const #constant: u32 = <#ty as dds_cdr::Structure>::NEXT_ID + #id;))
            }
        });
        quote!(#(#constants)*)
    }

    fn extendable_constants(&self) -> TokenStream {
        let outlines = self.members.iter().map(|member| {
            let (id, key, ty, extent) = (member.id, member.key, member.ty, member.extent());
            quote_spanned! {ty.span()=>
                dds_cdr::MemberOutline {
                    id: #id,
                    key: #key,
                    bytes_min: <#ty as dds_cdr::Member>::BYTES_MIN,
                    extent: #extent,
                }
            }
        });
        let fields = self.field_members();
        let Some(Base { ty, .. }) = self.base else {
            let next = self.members.last().map(|member| member.id);
            let next = next.map_or_else(|| quote!(0), |id| quote!(#id + 1));
            return quote! {
                const OUTLINE: &'static [dds_cdr::MemberOutline] = &[#(#outlines),*];
                const FIELDS: &'static [dds_cdr::FieldMember] = &[#(#fields),*];
                const NEXT_ID: u32 = #next;
            };
        };
        let count = self.members.len();
        let next = self.members.last().map(|member| member.id);
        let next = next.map_or_else(|| quote!(<#ty as dds_cdr::Structure>::NEXT_ID), |id| quote!(#id + 1));
        let joined = |of: TokenStream, own: TokenStream, any: TokenStream| {
            quote! {{
                const BASE: &[#of] = #any;
                const OWN: &[#of] = &[#own];
                &dds_cdr::structure::joined(BASE, OWN, [#of::NONE; BASE.len() + #count])
            }}
        };
        let outline = joined(
            quote!(dds_cdr::MemberOutline),
            quote!(#(#outlines),*),
            quote!(<#ty as dds_cdr::Structure>::OUTLINE),
        );
        let fields = joined(
            quote!(dds_cdr::FieldMember),
            quote!(#(#fields),*),
            quote!(<#ty as dds_cdr::Structure>::FIELDS),
        );
        quote! {
            const OUTLINE: &'static [dds_cdr::MemberOutline] = #outline;
            const FIELDS: &'static [dds_cdr::FieldMember] = #fields;
            const NEXT_ID: u32 = #next;
        }
    }

    fn method(&self) -> TokenStream {
        if self.extensibility == Extensibility::Mutable {
            quote!(encode_mutable)
        } else {
            quote!(encode_member)
        }
    }

    fn encode_members(&self) -> TokenStream {
        let base = self.base.map(|Base { ident, ty }| {
            quote_spanned!(ty.span()=> dds_cdr::Structure::encode_members(&self.#ident, encoder, keyed)?;)
        });
        let method = self.method();
        let members = self.members.iter().map(|member| {
            let encode = member.encode(&method);
            if member.key { encode } else { quote!(if all { #encode }) }
        });
        quote! {
            let all = !keyed || !encoder.key_only();
            #base
            #(#members)*
            ::core::result::Result::Ok(())
        }
    }

    /// Between its own members may be some of the base.
    fn encode_by_id(&self) -> TokenStream {
        let base = |from: TokenStream, until: TokenStream| {
            self.base.map(|Base { ident, ty }| {
                quote_spanned! {ty.span()=>
                    dds_cdr::Structure::encode_by_id(&self.#ident, encoder, keyed, #from..#until)?;
                }
            })
        };
        let (before, after) = (base(quote!(from), quote!(id)), base(quote!(from), quote!(ids.end)));
        let method = self.method();
        let arms = self.members.iter().map(|member| {
            let (id, encode) = (member.id, member.encode(&method));
            if member.key { quote!(#id => { #encode }) } else { quote!(#id => if !keyed { #encode }) }
        });
        let ids = self.members.iter().map(|member| member.id);
        quote! {
            let mut from = ids.start;
            for id in const { dds_cdr::structure::ascending([#(#ids),*]) } {
                if !ids.contains(&id) {
                    continue;
                }
                #before
                match id {
                    #(#arms)*
                    _ => {}
                }
                from = id + 1;
            }
            #after
            ::core::result::Result::Ok(())
        }
    }

    fn decode_members(&self) -> TokenStream {
        let base = self.base.map(|Base { ty, .. }| {
            quote_spanned!(ty.span()=> let base = <#ty as dds_cdr::Structure>::decode_members(decoder, keyed)?;)
        });
        let kind = self.extensibility;
        let all = self.literal(|member| member.decode(kind));
        let key = self.literal(|member| if member.key { member.decode(kind) } else { member.initial() });
        let key_of_sample = self
            .literal(|member| if member.key { member.decode(kind) } else { member.decode_unwanted(kind) });
        quote! {
            #base
            ::core::result::Result::Ok(match decoder.form() {
                dds_cdr::decode::Form::Key | dds_cdr::decode::Form::UndelimitedKey if keyed => #key,
                dds_cdr::decode::Form::KeyOfSample if keyed => #key_of_sample,
                _ => #all,
            })
        }
    }

    fn decode_one(&self) -> TokenStream {
        let count = match self.base {
            None => quote!(0),
            Some(Base { ty, .. }) => quote_spanned!(ty.span()=> <#ty as dds_cdr::Structure>::OUTLINE.len()),
        };
        let arms = self.members.iter().enumerate().map(|(place, member)| {
            let Member { ident, id, key, .. } = member;
            let value = member.decode_mutable();
            let read = quote! {
                self.#ident = #value;
                if let ::core::option::Option::Some(seen) = seen.get_mut(#count + #place) {
                    *seen = true;
                }
            };
            if *key { quote!(#id => { #read }) } else { quote!(#id => if all { #read }) }
        });
        let other = match self.base {
            None => quote!(::core::result::Result::Ok(false)),
            Some(Base { ident, ty }) => quote_spanned! {ty.span()=>
                dds_cdr::Structure::decode_one(&mut self.#ident, header, decoder, keyed, seen)
            },
        };
        if self.members.is_empty() {
            return other;
        }
        quote! {
            let all = !keyed || decoder.form() != dds_cdr::decode::Form::KeyOfSample;
            match header.id {
                #(#arms)*
                _ => return #other,
            }
            ::core::result::Result::Ok(true)
        }
    }

    /// All of a structure that extends another one.
    pub(crate) fn expand_extension(
        &self,
        input: &DeriveInput,
        attributes: &TypeAttributes,
        extendable: Option<TokenStream>,
    ) -> syn::Result<TokenStream> {
        let Some(Base { ty, .. }) = self.base else { return Ok(TokenStream::new()) };
        if attributes.plain {
            return Err(Error::new_spanned(&input.ident, "a plain structure extends no other"));
        }
        let (ident, name) = (&input.ident, &attributes.name);
        let extensibility = self.extensibility.tokens();
        let mutable = self.extensibility == Extensibility::Mutable;
        let end = mutable.then(|| quote!(encoder.end_member_list()?;));
        let (decode, skip) = (self.decode_extension(), self.skip_extension());
        let own_initial = self.literal(|member| member.initial());
        let (fields, traits) = (self.extension_fields(name), self.extension_traits(ident, name));
        let describe = self.describe(name, &quote!(#ident));
        let least = if mutable { quote!(4) } else { quote!(dds_cdr::structure::bytes_min(MEMBERS)) };
        let least = if self.extensibility == Extensibility::Appendable {
            quote!(if #least < 4 { #least } else { 4 })
        } else {
            least
        };
        Ok(quote! {
            #extendable
            const MEMBERS: &[dds_cdr::MemberOutline] = <#ident as dds_cdr::Structure>::OUTLINE;
            const KEYED: bool = dds_cdr::structure::is_keyed(MEMBERS);
            const _: () = dds_cdr::structure::check_base::<#ty>(#extensibility);
            #[automatically_derived]
            impl dds_cdr::Cdr for #ident {
                const BYTES_MIN: usize = #least;
                const EXTENT: dds_cdr::Extent = dds_cdr::structure::extent(MEMBERS);
                fn encode(&self, encoder: &mut dds_cdr::Encoder<'_>) -> ::core::result::Result<(), dds_cdr::EncodeError> {
                    let object = encoder.begin_aggregate(#extensibility)?;
                    if encoder.by_member_id() {
                        dds_cdr::Structure::encode_by_id(self, encoder, KEYED, 0..u32::MAX)?;
                    } else {
                        dds_cdr::Structure::encode_members(self, encoder, KEYED)?;
                    }
                    #end
                    encoder.end_aggregate(object)
                }
                fn decode(decoder: &mut dds_cdr::Decoder<'_>) -> ::core::result::Result<Self, DdsMalformed> {
                    let object = decoder.begin_aggregate(#extensibility)?;
                    #decode
                    decoder.end_aggregate(object);
                    ::core::result::Result::Ok(value)
                }
                fn skip(decoder: &mut dds_cdr::Decoder<'_>) -> ::core::result::Result<(), DdsMalformed> {
                    let object = decoder.begin_aggregate(#extensibility)?;
                    if !decoder.jump(&object) {
                        #skip
                    }
                    decoder.end_aggregate(object);
                    ::core::result::Result::Ok(())
                }
                fn initial() -> Self {
                    let base = <#ty as dds_cdr::Cdr>::initial();
                    #own_initial
                }
                #fields
                #describe
            }
            #traits
        })
    }

    /// What an extension is beside its representation.
    fn extension_traits(&self, ident: &Ident, name: &str) -> TokenStream {
        let Some(Base { ident: base, ty }) = self.base else { return TokenStream::new() };
        let extensibility = self.extensibility.tokens();
        quote! {
            #[automatically_derived]
            impl dds_cdr::DdsType for #ident {
                const TYPE_NAME: &'static str = #name;
                const EXTENSIBILITY: dds_cdr::Extensibility = #extensibility;
                const KEYED: bool = KEYED;
                type Borrowed<'borrowed> = Self;
            }
            /// The members of the base are found as if they were its own.
            #[automatically_derived]
            impl ::core::convert::AsRef<#ty> for #ident {
                fn as_ref(&self) -> &#ty {
                    &self.#base
                }
            }
        }
    }

    /// Statements that bind `value`.
    fn decode_extension(&self) -> TokenStream {
        if self.extensibility != Extensibility::Mutable {
            return quote!(let value = <Self as dds_cdr::Structure>::decode_members(decoder, KEYED)?;);
        }
        quote! {
            let mut value = <Self as dds_cdr::Cdr>::initial();
            let mut seen = [false; MEMBERS.len()];
            while let ::core::option::Option::Some(header) = decoder.next_member()? {
                if !dds_cdr::Structure::decode_one(&mut value, &header, decoder, KEYED, &mut seen)? {
                    decoder.unknown_member(&header)?;
                }
                decoder.end_member(header);
            }
            if MEMBERS.iter().zip(seen).any(|(member, seen)| member.key && !seen) {
                return ::core::result::Result::Err(DdsMalformed::MissingMember);
            }
        }
    }

    fn skip_extension(&self) -> TokenStream {
        if self.extensibility == Extensibility::Mutable {
            quote!(decoder.skip_members()?;)
        } else {
            quote!(<Self as dds_cdr::Structure>::skip_members(decoder)?;)
        }
    }

    /// The methods that give content filters access to the members: those of the base come first.
    fn extension_fields(&self, type_name: &str) -> TokenStream {
        let Some(Base { ident: base, ty }) = self.base else { return TokenStream::new() };
        let count = quote_spanned!(ty.span()=> const { <#ty as dds_cdr::Structure>::FIELDS.len() });
        let values = self.members.iter().zip(0_usize..).map(|(Member { ident, ty, .. }, place)| {
            quote_spanned!(ty.span()=> #place => dds_cdr::Member::member_field(&self.#ident, path),)
        });
        let places = self.members.iter().zip(0_usize..).map(|(Member { ident, ty, .. }, place)| {
            quote_spanned!(ty.span()=> #place => dds_cdr::Member::set_member_field(&mut self.#ident, path, value),)
        });
        quote! {
            fn fields() -> dds_cdr::Fields {
                dds_cdr::Fields::Structure(#type_name, <Self as dds_cdr::Structure>::FIELDS)
            }
            fn field(&self, all: &[u16]) -> ::core::option::Option<dds_cdr::FieldValue<'_>> {
                let (place, path) = all.split_first()?;
                let ::core::option::Option::Some(own) = usize::from(*place).checked_sub(#count) else {
                    return dds_cdr::Cdr::field(&self.#base, all);
                };
                let _ = path;
                match own {
                    #(#values)*
                    _ => ::core::option::Option::None,
                }
            }
            fn set_field(&mut self, all: &[u16], value: dds_cdr::FieldValue<'_>) -> bool {
                let ::core::option::Option::Some((place, path)) = all.split_first() else { return false };
                let ::core::option::Option::Some(own) = usize::from(*place).checked_sub(#count) else {
                    return dds_cdr::Cdr::set_field(&mut self.#base, all, value);
                };
                let _ = (path, value);
                match own {
                    #(#places)*
                    _ => false,
                }
            }
        }
    }
}
