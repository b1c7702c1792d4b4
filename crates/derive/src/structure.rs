//! Structures.

use std::collections::HashMap;

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{DataStruct, DeriveInput, Error, Fields, Type};

use crate::attribute::{DefaultValue, Extensibility, MemberAttributes, TypeAttributes, hash_id, mentions};
use crate::bounds::{Bounds, TryConstruct};

/// Structures of so many members, all of them numbers or the like, are encoded where they are written,
/// without a call.
const INLINED_MEMBERS_MAX: usize = 8;

/// A member with everything known about it.
pub(crate) struct Member<'a> {
    pub(crate) ident: &'a Ident,
    name: String,
    pub(crate) ty: &'a Type,
    pub(crate) id: MemberId,
    pub(crate) key: bool,
    must_understand: bool,
    external: bool,
    bounds: Bounds,
    default: Option<DefaultValue>,
    /// Its type names the structure itself.
    recursive: bool,
}

/// The id of a member.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum MemberId {
    /// So many after the first one that is not of the base.
    AfterBase(u32),
    /// This.
    Told(u32),
}

impl MemberId {
    fn following(self) -> Self {
        match self {
            Self::AfterBase(id) => Self::AfterBase(id + 1),
            Self::Told(id) => Self::Told(id + 1),
        }
    }

    /// The constant that has it.
    pub(crate) fn constant(id: u32) -> Ident {
        quote::format_ident!("DDS_ID_{id}")
    }
}

/// An expression, or a pattern.
impl ToTokens for MemberId {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        match self {
            Self::AfterBase(id) => Self::constant(*id).to_tokens(tokens),
            Self::Told(id) => id.to_tokens(tokens),
        }
    }
}

pub(crate) fn expand(
    input: &DeriveInput,
    data: &DataStruct,
    attributes: &TypeAttributes,
) -> syn::Result<TokenStream> {
    if attributes.union || attributes.discriminator.is_some() || attributes.discriminator_key {
        return Err(Error::new_spanned(
            &input.ident,
            "union, discriminator and key on the type are for enums",
        ));
    }
    let (base, members) = members(input, data, attributes)?;
    let structure = Structure {
        members: &members,
        base: base.as_ref(),
        extensibility: attributes.extensibility,
        hash_ids: attributes.hash_ids,
        nested: attributes.nested,
    };
    // Of the memory of a writer nothing is inherited.
    let extendable = input.generics.params.is_empty().then(|| structure.extendable(input));
    if structure.base.is_some() {
        return structure.expand_extension(input, attributes, extendable);
    }
    let constants = structure.constants(attributes.repr_c);
    let types = members.iter().map(|it| it.ty);
    let plain = attributes.repr_c.then(|| crate::plain::octets(types.clone(), attributes.plain)).flatten();
    let pod = attributes.plain.then(|| crate::plain::pod(&input.ident, types));
    let (inline, encode) = (inlining(&members), structure.encode());
    let (in_one_copy, elements_in_one_copy) = plain.as_ref().map(|_| in_one_copy()).unzip();
    let decode = structure.decode();
    let decode_over = structure.decode_over();
    let short_key = structure.short_key();
    let octet_seq = structure.octet_seq();
    let skip = structure.skip();
    let initial = structure.literal(|member| member.initial());
    let (ident, name) = (&input.ident, &attributes.name);
    let fields = structure.fields(name);
    let (parameters, arguments, _) = input.generics.split_for_impl();
    let (key_constants, keyed) =
        structure.key_constants(&quote!(impl #parameters DdsKeyed for #ident #arguments));
    let lives_on: Vec<_> = input.generics.lifetimes().map(|_| quote!(<'static>)).collect();
    let describe = structure.describe(name, &quote!(#ident #(#lives_on)*));
    let dds_type = dds_type(input, attributes, &key_constants);
    Ok(quote! {
        #keyed
        #pod
        #extendable
        #[automatically_derived]
        impl #parameters dds_cdr::Cdr for #ident #arguments {
            #constants
            #inline
            fn encode(&self, encoder: &mut dds_cdr::Encoder<'_>) -> ::core::result::Result<(), dds_cdr::EncodeError> {
                #in_one_copy
                #encode
            }
            #elements_in_one_copy
            #plain
            #short_key
            #octet_seq
            #[inline]
            fn decode(decoder: &mut dds_cdr::Decoder<'_>) -> ::core::result::Result<Self, DdsMalformed> {
                #decode
            }
            #decode_over
            fn skip(decoder: &mut dds_cdr::Decoder<'_>) -> ::core::result::Result<(), DdsMalformed> {
                #skip
            }
            fn initial() -> Self {
                #initial
            }
            #fields
            #describe
        }
        #dds_type
    })
}

/// The structure as the type of a topic.
fn dds_type(input: &DeriveInput, attributes: &TypeAttributes, key_constants: &TokenStream) -> TokenStream {
    let (ident, name) = (&input.ident, &attributes.name);
    let extensibility = attributes.extensibility.tokens();
    let lives_on = input.generics.lifetimes().map(|_| quote!(<'static>));
    let lends = input.generics.lifetimes().map(|_| quote!(<'borrowed>));
    quote! {
        #[automatically_derived]
        impl dds_cdr::DdsType for #ident #(#lives_on)* {
            const TYPE_NAME: &'static str = #name;
            const EXTENSIBILITY: dds_cdr::Extensibility = #extensibility;
            #key_constants
            type Borrowed<'borrowed> = #ident #(#lends)*;
        }
    }
}

/// A statement that encodes a plain structure in one copy where that is possible, and the method that does so
/// with several.
fn in_one_copy() -> (TokenStream, TokenStream) {
    let one = quote! {
        if encoder.put_plain(::core::slice::from_ref(self))? {
            return ::core::result::Result::Ok(());
        }
    };
    let elements = quote! {
        fn encode_elements(elements: &[Self], encoder: &mut dds_cdr::Encoder<'_>) -> ::core::result::Result<(), dds_cdr::EncodeError> {
            if encoder.put_plain(elements)? {
                return ::core::result::Result::Ok(());
            }
            elements.iter().try_for_each(|element| dds_cdr::Cdr::encode(element, encoder))
        }
    };
    (one, elements)
}

/// Where a handful of numbers is encoded, the compiler is to see that the version, the byte order and the
/// place are known.
fn inlining(members: &[Member<'_>]) -> TokenStream {
    let few = members.len() <= INLINED_MEMBERS_MAX;
    if few && members.iter().all(|it| crate::plain::is_leaf(it.ty)) {
        quote!(#[inline(always)])
    } else {
        quote!(#[inline])
    }
}

/// The structure that another one extends: its first member.
pub(crate) struct Base<'a> {
    pub(crate) ident: &'a Ident,
    pub(crate) ty: &'a Type,
}

fn members<'a>(
    input: &DeriveInput,
    data: &'a DataStruct,
    attributes: &TypeAttributes,
) -> syn::Result<(Option<Base<'a>>, Vec<Member<'a>>)> {
    let fields = match &data.fields {
        Fields::Named(fields) => fields.named.iter().collect::<Vec<_>>(),
        Fields::Unit => Vec::new(),
        Fields::Unnamed(fields) => {
            return Err(Error::new_spanned(
                fields,
                "members of a DDS structure have names; name these fields",
            ));
        }
    };
    let (mut base, mut members) = (None, Vec::new());
    let mut taken = HashMap::new();
    let mut next_id = MemberId::Told(0);
    for (place, field) in fields.into_iter().enumerate() {
        let Some(ident) = &field.ident else { continue };
        let parsed = MemberAttributes::parse(&field.attrs, ident)?;
        if let Some(span) = parsed.base {
            if place > 0 || !input.generics.params.is_empty() {
                let text = "the base is the first member, of a structure without lifetime";
                return Err(Error::new(span, text));
            }
            base = Some(Base { ident, ty: &field.ty });
            next_id = MemberId::AfterBase(0);
            continue;
        }
        let name = parsed.name_or(ident);
        check_member(field, &parsed)?;
        let automatic = if attributes.hash_ids { MemberId::Told(hash_id(&name)) } else { next_id };
        let id = parsed.id.map_or(automatic, MemberId::Told);
        if let Some(other) = taken.insert(id, name.clone()) {
            let id = match id {
                MemberId::AfterBase(id) | MemberId::Told(id) => id,
            };
            let text = format!(
                "member id {id} is already that of `{other}`; give one of them another with #[dds(id = …)]"
            );
            return Err(Error::new_spanned(ident, text));
        }
        next_id = id.following();
        members.push(Member {
            ident,
            name,
            ty: &field.ty,
            id,
            key: parsed.key.is_some(),
            // A key member must always be understood (XTypes 1.3 §7.2.2.4.4.4.8).
            must_understand: parsed.must_understand || parsed.key.is_some(),
            external: parsed.external,
            bounds: parsed.bounds,
            default: parsed.default,
            recursive: mentions(field.ty.to_token_stream(), &input.ident),
        });
    }
    Ok((base, members))
}

fn check_member(field: &syn::Field, parsed: &MemberAttributes) -> syn::Result<()> {
    let optional = is_named(&field.ty, "Option");
    if let (Some(span), true) = (parsed.key, optional) {
        return Err(Error::new(span, "a key member cannot be optional; remove `key` or the `Option`"));
    }
    if let (Some(span), true) = (parsed.key, is_named(&field.ty, "Box")) {
        return Err(Error::new(
            span,
            "a key member cannot be boxed, its largest size must be known; remove the `Box`",
        ));
    }
    if let (Some(span), false) = (parsed.optional, optional) {
        return Err(Error::new(span, "an optional member has a type `Option<…>`; wrap its type"));
    }
    if !parsed.cases.is_empty() {
        return Err(Error::new_spanned(field, "`case` is for variants of unions"));
    }
    if let Some(literal) = parsed.bits.as_ref().or(parsed.position.as_ref()) {
        return Err(Error::new_spanned(literal, "bits and position are for bit sets: #[dds(bitset)]"));
    }
    Ok(())
}

fn is_named(ty: &Type, name: &str) -> bool {
    match ty {
        Type::Path(path) => path.path.segments.last().is_some_and(|segment| segment.ident == name),
        _ => false,
    }
}

impl Member<'_> {
    fn constant(&self, name: &str) -> TokenStream {
        let constant = Ident::new(name, self.ty.span());
        let ty = self.ty;
        quote_spanned!(self.ty.span()=> <#ty as dds_cdr::Member>::#constant)
    }

    pub(crate) fn extent(&self) -> TokenStream {
        if self.recursive {
            return quote!(dds_cdr::Extent::UNBOUNDED);
        }
        self.bounds.extent(&self.ty.to_token_stream())
    }

    /// A statement that appends the member by `method`.
    pub(crate) fn encode(&self, method: &TokenStream) -> TokenStream {
        let Self { ident, name, id, must_understand, .. } = self;
        let check = self.bounds.check_to_encode(&quote_spanned!(self.ty.span()=> &self.#ident), name);
        quote_spanned! {self.ty.span()=>
            #check
            dds_cdr::Member::#method(&self.#ident, encoder, #id, #must_understand)?;
        }
    }

    /// An expression: `read`, made to fit its bounds.
    fn checked(&self, read: &TokenStream, skip: &TokenStream) -> TokenStream {
        self.bounds.read(self.ty, read, skip, &self.initial())
    }

    /// An expression: the member read from a mutable structure.
    pub(crate) fn decode_mutable(&self) -> TokenStream {
        let ty = self.ty;
        // What is left of it is skipped with its header.
        let read = quote_spanned!(ty.span()=> <#ty as dds_cdr::Member>::decode_mutable(decoder)?);
        self.checked(&read, &TokenStream::new())
    }

    /// An expression: the member read from a final or appendable structure.
    pub(crate) fn decode(&self, extensibility: Extensibility) -> TokenStream {
        let Self { ty, id, .. } = self;
        let read = quote_spanned!(ty.span()=> <#ty as dds_cdr::Member>::decode_member(decoder, #id)?);
        let value = self.checked(&read, &self.skip(Extensibility::Final));
        if extensibility == Extensibility::Final {
            return value;
        }
        let octets_min = self.constant("BYTES_MIN_XCDR1");
        let absent = self.absent();
        quote!(if decoder.ends_before(#octets_min) { #absent } else { #value })
    }

    /// A statement that reads the member of a final or appendable structure over the one that is there.
    fn decode_over(&self, extensibility: Extensibility) -> TokenStream {
        let Self { ident, ty, id, .. } = self;
        if self.bounds.try_construct == TryConstruct::UseDefault {
            let value = self.decode(extensibility);
            return quote!(self.#ident = #value;);
        }
        let check = self.bounds.check_decoded(&quote!((&mut self.#ident)), true);
        let read = quote_spanned! {ty.span()=>
            dds_cdr::Member::decode_member_over(&mut self.#ident, decoder, #id)?;
            #check
        };
        if extensibility == Extensibility::Final {
            return read;
        }
        let octets_min = self.constant("BYTES_MIN_XCDR1");
        let absent = self.absent();
        let absent = if self.key { absent } else { quote!(self.#ident = #absent) };
        quote!(if decoder.ends_before(#octets_min) { #absent; } else { #read })
    }

    /// An expression: initial, after the member of a final or appendable structure was skipped.
    pub(crate) fn decode_unwanted(&self, extensibility: Extensibility) -> TokenStream {
        let skip = self.skip(extensibility);
        let initial = self.initial();
        quote!({ #skip #initial })
    }

    /// A statement that reads past the member of a final or appendable structure.
    pub(crate) fn skip(&self, extensibility: Extensibility) -> TokenStream {
        let Self { ty, id, .. } = self;
        let skip = quote_spanned!(ty.span()=> <#ty as dds_cdr::Member>::skip_member(decoder, #id)?;);
        if extensibility == Extensibility::Final {
            return skip;
        }
        let octets_min = self.constant("BYTES_MIN_XCDR1");
        quote!(if !decoder.ends_before(#octets_min) { #skip })
    }

    /// An expression for a member that was not sent: a key member must be.
    fn absent(&self) -> TokenStream {
        if self.key {
            quote!(return ::core::result::Result::Err(DdsMalformed::MissingMember))
        } else {
            self.initial()
        }
    }

    pub(crate) fn initial(&self) -> TokenStream {
        let ty = self.ty;
        match &self.default {
            None => quote_spanned!(ty.span()=> <#ty as dds_cdr::Member>::initial_member()),
            Some(DefaultValue::Trait(span)) => {
                quote_spanned!(*span=> <#ty as ::core::default::Default>::default())
            }
            Some(DefaultValue::Expression(expression)) => expression.to_token_stream(),
        }
    }
}

pub(crate) struct Structure<'a> {
    /// Its own.
    pub(crate) members: &'a [Member<'a>],
    pub(crate) base: Option<&'a Base<'a>>,
    pub(crate) extensibility: Extensibility,
    hash_ids: bool,
    nested: bool,
}

impl Structure<'_> {
    /// The method that tells the type to other participants.
    pub(crate) fn describe(&self, name: &str, rust_type: &TokenStream) -> TokenStream {
        let (extensibility, hash_ids, nested) = (self.extensibility.tokens(), self.hash_ids, self.nested);
        let base = match self.base {
            None => quote!(::core::option::Option::None),
            Some(Base { ty, .. }) => {
                quote_spanned!(ty.span()=> ::core::option::Option::Some(<#ty as dds_cdr::Cdr>::describe))
            }
        };
        let members = self.members.iter().map(|member| {
            let Member { name, ty, id, key, must_understand, external, bounds, .. } = member;
            crate::describe_member(name, ty, id, (*key, *must_understand, *external), bounds)
        });
        quote! {
            fn describe(types: &mut dds_types::TypeBuilder) -> ::core::option::Option<dds_types::TypeIdentifiers> {
                types.structure(
                    &dds_types::AggregateDescription {
                        rust_type: ::core::any::TypeId::of::<#rust_type>(),
                        name: #name,
                        extensibility: #extensibility,
                        hash_ids: #hash_ids,
                        nested: #nested,
                    },
                    #base,
                    &[#(#members),*],
                )
            }
        }
    }

    /// Expressions: the members as content filters find them.
    pub(crate) fn field_members(&self) -> impl Iterator<Item = TokenStream> {
        self.members.iter().map(|Member { name, ty, key, .. }| {
            quote_spanned! {ty.span()=>
                dds_cdr::FieldMember { name: #name, fields: <#ty as dds_cdr::Member>::member_fields, key: #key }
            }
        })
    }

    /// The methods that give content filters access to the members.
    fn fields(&self, type_name: &str) -> TokenStream {
        let members = self.field_members();
        let places = self.members.iter().zip(0_u16..).map(|(Member { ident, ty, .. }, place)| {
            quote_spanned! {ty.span()=>
                #place => dds_cdr::Member::set_member_field(&mut self.#ident, path, value),
            }
        });
        let values = self.members.iter().zip(0_u16..).map(|(Member { ident, ty, .. }, place)| {
            quote_spanned! {ty.span()=>
                #place => dds_cdr::Member::member_field(&self.#ident, path),
            }
        });
        quote! {
            fn fields() -> dds_cdr::Fields {
                dds_cdr::Fields::Structure(#type_name, const { &[#(#members),*] })
            }
            fn field(&self, path: &[u16]) -> ::core::option::Option<dds_cdr::FieldValue<'_>> {
                let (place, path) = path.split_first()?;
                let _ = path;
                match *place {
                    #(#values)*
                    _ => ::core::option::Option::None,
                }
            }
            fn set_field(&mut self, path: &[u16], value: dds_cdr::FieldValue<'_>) -> bool {
                let ::core::option::Option::Some((place, path)) = path.split_first() else { return false };
                let _ = (path, value);
                match *place {
                    #(#places)*
                    _ => false,
                }
            }
        }
    }

    /// The members of the key holder: the key members, or all if there are none (XTypes 1.3 §7.6.8).
    fn key_holder(&self) -> Vec<&Member<'_>> {
        if self.keyed() {
            self.members.iter().filter(|member| member.key).collect()
        } else {
            self.members.iter().collect()
        }
    }

    fn key_holder_by_id(&self) -> Vec<&Member<'_>> {
        let mut holder = self.key_holder();
        holder.sort_by_key(|member| member.id);
        holder
    }

    pub(crate) fn keyed(&self) -> bool {
        self.members.iter().any(|member| member.key)
    }

    fn constants(&self, repr_c: bool) -> TokenStream {
        let sizes =
            self.key_holder().into_iter().map(|member| member.constant("BYTES_MIN")).collect::<Vec<_>>();
        let octets_min = match self.extensibility {
            Extensibility::Final => quote!(0 #(+ #sizes)*),
            // The delimiter of XCDR2 alone, or all members in XCDR1.
            Extensibility::Appendable => quote!({
                let whole = 0 #(+ #sizes)*;
                if whole < 4 { whole } else { 4 }
            }),
            Extensibility::Mutable => quote!(4),
        };
        let extents = self.key_holder_by_id().into_iter().map(Member::extent).collect::<Vec<_>>();
        let plain = repr_c.then(|| {
            let extensibility = self.extensibility.tokens();
            let offsets = self.members.iter().map(|member| {
                let ident = member.ident;
                let plain = member.constant("PLAIN");
                quote!((::core::mem::offset_of!(Self, #ident), #plain))
            });
            quote! {
                const PLAIN: dds_cdr::Plain =
                    dds_cdr::Plain::structure(#extensibility, ::core::mem::size_of::<Self>(), &[#(#offsets),*]);
            }
        });
        quote! {
            const BYTES_MIN: usize = #octets_min;
            const EXTENT: dds_cdr::Extent = dds_cdr::Extent::EMPTY #(.then(#extents))*;
            #plain
        }
    }

    /// Whether there is a key; where the only key member is, if all before it have a fixed size. And what
    /// that needs beside.
    fn key_constants(&self, implements: &TokenStream) -> (TokenStream, Option<TokenStream>) {
        let keyed = self.keyed();
        if !keyed || self.key_holder().len() != 1 {
            return (quote!(const KEYED: bool = #keyed;), None);
        }
        let extensibility = self.extensibility.tokens();
        let members = self.members.iter().map(|member| {
            let (ty, plain) = (member.ty, member.constant("PLAIN"));
            if member.key {
                quote!((#plain, ::core::option::Option::Some(<#ty as dds_cdr::Cdr>::ELEMENT)))
            } else {
                quote!((#plain, ::core::option::Option::None))
            }
        });
        let constants = quote! {
            const KEYED: bool = true;
            const KEY_PLACE: dds_cdr::KeyPlace = <Self as DdsKeyed>::KEY_PLACE;
        };
        // Where the types of members may name the lifetime.
        let beside = quote! {
            trait DdsKeyed {
                const KEY_PLACE: dds_cdr::KeyPlace;
            }
            #implements {
                const KEY_PLACE: dds_cdr::KeyPlace = dds_cdr::KeyPlace::of(#extensibility, &[#(#members),*]);
            }
        };
        (constants, Some(beside))
    }

    fn encode(&self) -> TokenStream {
        let extensibility = self.extensibility.tokens();
        let mutable = self.extensibility == Extensibility::Mutable;
        let method = if mutable { quote!(encode_mutable) } else { quote!(encode_member) };
        let all = self.members.iter().map(|member| member.encode(&method)).collect::<TokenStream>();
        let keys =
            self.key_holder().into_iter().map(|member| member.encode(&method)).collect::<TokenStream>();
        let sorted =
            self.key_holder_by_id().into_iter().map(|member| member.encode(&method)).collect::<TokenStream>();
        let in_order = self.key_holder().is_sorted_by_key(|member| member.id);
        let members = match (self.keyed(), in_order) {
            (false, true) => all,
            (false, false) => quote!(if encoder.by_member_id() { #sorted } else { #all }),
            (true, true) => quote!(if encoder.key_only() { #keys } else { #all }),
            (true, false) => quote! {
                if encoder.by_member_id() { #sorted } else if encoder.key_only() { #keys } else { #all }
            },
        };
        let end = mutable.then(|| quote!(encoder.end_member_list()?;));
        quote! {
            let object = encoder.begin_aggregate(#extensibility)?;
            #members
            #end
            encoder.end_aggregate(object)
        }
    }

    /// The method that tells the key, where it is one number.
    fn short_key(&self) -> Option<TokenStream> {
        let mut keys = self.members.iter().filter(|member| member.key);
        let (Some(Member { ident, ty, .. }), None) = (keys.next(), keys.next()) else { return None };
        let is_number = matches!(ty, Type::Path(_)) && crate::plain::is_number(ty);
        is_number.then(|| {
            quote! {
                #[inline(always)]
                fn short_key(&self) -> ::core::option::Option<u64> {
                    dds_cdr::Cdr::short_key(&self.#ident)
                }
            }
        })
    }

    /// The method that tells what octets it is mostly made of, where a member says that it has many.
    fn octet_seq(&self) -> Option<TokenStream> {
        let Member { ident, .. } = self.members.iter().find(|member| is_named(member.ty, "OctetSeq"))?;
        Some(quote! {
            #[inline]
            fn octet_seq(&self) -> ::core::option::Option<&dds_cdr::OctetSeq<'_>> {
                dds_cdr::Cdr::octet_seq(&self.#ident)
            }
        })
    }

    fn decode(&self) -> TokenStream {
        let extensibility = self.extensibility;
        let kind = extensibility.tokens();
        if extensibility == Extensibility::Mutable {
            return self.decode_mutable();
        }
        let all = self.literal(|member| member.decode(extensibility));
        let value = if self.keyed() {
            let key = self.literal(
                |member| {
                    if member.key { member.decode(extensibility) } else { member.initial() }
                },
            );
            let key_of_sample = self.literal(|member| {
                if member.key { member.decode(extensibility) } else { member.decode_unwanted(extensibility) }
            });
            quote! {
                match decoder.form() {
                    dds_cdr::decode::Form::Sample => #all,
                    dds_cdr::decode::Form::Key | dds_cdr::decode::Form::UndelimitedKey => #key,
                    dds_cdr::decode::Form::KeyOfSample => #key_of_sample,
                }
            }
        } else {
            all
        };
        quote! {
            let object = decoder.begin_aggregate(#kind)?;
            let value = #value;
            decoder.end_aggregate(object);
            ::core::result::Result::Ok(value)
        }
    }

    /// The method that reads a sample over another, where members may have memory to be used again.
    fn decode_over(&self) -> Option<TokenStream> {
        let extensibility = self.extensibility;
        if extensibility == Extensibility::Mutable
            || self.members.iter().all(|it| crate::plain::is_number(it.ty))
        {
            return None;
        }
        let kind = extensibility.tokens();
        let keys = self.keyed().then(|| {
            quote! {
                if !::core::matches!(decoder.form(), dds_cdr::decode::Form::Sample) {
                    *self = <Self as dds_cdr::Cdr>::decode(decoder)?;
                    return ::core::result::Result::Ok(());
                }
            }
        });
        let members = self.members.iter().map(|member| member.decode_over(extensibility));
        Some(quote! {
            #[inline]
            fn decode_over(&mut self, decoder: &mut dds_cdr::Decoder<'_>) -> ::core::result::Result<(), DdsMalformed> {
                #keys
                let object = decoder.begin_aggregate(#kind)?;
                #(#members)*
                decoder.end_aggregate(object);
                ::core::result::Result::Ok(())
            }
        })
    }

    fn decode_mutable(&self) -> TokenStream {
        let kind = self.extensibility.tokens();
        let locals =
            (0..self.members.len()).map(|index| quote::format_ident!("member_{index}")).collect::<Vec<_>>();
        let keyed = self.keyed();
        let wanted =
            keyed.then(|| quote!(let wanted = decoder.form() != dds_cdr::decode::Form::KeyOfSample;));
        let types = self.members.iter().map(|member| member.ty);
        let arms = self.members.iter().zip(&locals).map(|(member, local)| {
            let id = member.id;
            let value = member.decode_mutable();
            if keyed && !member.key {
                quote!(#id => if wanted { #local = ::core::option::Option::Some(#value) },)
            } else {
                quote!(#id => #local = ::core::option::Option::Some(#value),)
            }
        });
        let fields = self.members.iter().zip(&locals).map(|(member, local)| {
            let ident = member.ident;
            let absent = member.absent();
            quote!(#ident: match #local {
                ::core::option::Option::Some(value) => value,
                ::core::option::Option::None => #absent,
            })
        });
        quote! {
            let object = decoder.begin_aggregate(#kind)?;
            #wanted
            #(let mut #locals: ::core::option::Option<#types> = ::core::option::Option::None;)*
            while let ::core::option::Option::Some(header) = decoder.next_member()? {
                match header.id {
                    #(#arms)*
                    _ => decoder.unknown_member(&header)?,
                }
                decoder.end_member(header);
            }
            decoder.end_aggregate(object);
            ::core::result::Result::Ok(Self { #(#fields),* })
        }
    }

    fn skip(&self) -> TokenStream {
        let kind = self.extensibility.tokens();
        let walk = if self.extensibility == Extensibility::Mutable {
            quote!(decoder.skip_members()?;)
        } else {
            self.members.iter().map(|member| member.skip(self.extensibility)).collect()
        };
        quote! {
            let object = decoder.begin_aggregate(#kind)?;
            if !decoder.jump(&object) {
                #walk
            }
            decoder.end_aggregate(object);
            ::core::result::Result::Ok(())
        }
    }

    pub(crate) fn literal(&self, value: impl Fn(&Member<'_>) -> TokenStream) -> TokenStream {
        let fields = self.members.iter().map(|member| {
            let ident = member.ident;
            let value = value(member);
            quote!(#ident: #value)
        });
        // The variable that has it.
        let base = self.base.map(|Base { ident, .. }| quote!(#ident: base,));
        quote!(Self { #base #(#fields),* })
    }
}
