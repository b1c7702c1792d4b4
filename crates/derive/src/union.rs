//! Unions.

use std::collections::HashSet;

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{DataEnum, DeriveInput, Error, Expr, ExprLit, ExprUnary, Fields, Lit, LitInt, Type, UnOp, Variant};

use crate::attribute::{DefaultValue, Extensibility, MemberAttributes, TypeAttributes, mentions};
use crate::bounds::Bounds;

/// A variant: the member a discriminator value selects, or none.
struct Case<'a> {
    ident: &'a Ident,
    name: String,
    ty: Option<&'a Type>,
    id: u32,
    external: bool,
    bounds: Bounds,
    /// Its type names the union itself.
    recursive: bool,
    labels: Vec<Expr>,
    default: bool,
    /// The discriminator to write.
    written: Expr,
}

pub(crate) fn expand(
    input: &DeriveInput,
    data: &DataEnum,
    attributes: &TypeAttributes,
) -> syn::Result<TokenStream> {
    let Some(discriminator) = &attributes.discriminator else {
        return Err(Error::new_spanned(
            &input.ident,
            "a union needs the type of its discriminator: #[dds(union, discriminator = i32)]",
        ));
    };
    let union = Union {
        cases: cases(input, data)?,
        discriminator,
        discriminator_key: attributes.discriminator_key,
        extensibility: attributes.extensibility,
        nested: attributes.nested,
    };
    let constants = union.constants();
    let encode = union.encode();
    let decode = union.decode();
    let skip = union.skip();
    let initial = union.initial();
    let ident = &input.ident;
    let name = &attributes.name;
    let describe = union.describe(name);
    let extensibility = attributes.extensibility.tokens();
    let keyed = attributes.discriminator_key;
    Ok(quote! {
        #[automatically_derived]
        impl dds_cdr::Cdr for #ident {
            #constants
            fn encode(&self, encoder: &mut dds_cdr::Encoder<'_>) -> ::core::result::Result<(), dds_cdr::EncodeError> {
                #encode
            }
            fn decode(decoder: &mut dds_cdr::Decoder<'_>) -> ::core::result::Result<Self, DdsMalformed> {
                #decode
            }
            fn skip(decoder: &mut dds_cdr::Decoder<'_>) -> ::core::result::Result<(), DdsMalformed> {
                #skip
            }
            fn initial() -> Self {
                #initial
            }
            #describe
        }
        #[automatically_derived]
        impl dds_cdr::DdsType for #ident {
            const TYPE_NAME: &'static str = #name;
            const EXTENSIBILITY: dds_cdr::Extensibility = #extensibility;
            const KEYED: bool = #keyed;
            type Borrowed<'borrowed> = Self;
        }
    })
}

fn cases<'a>(input: &DeriveInput, data: &'a DataEnum) -> syn::Result<Vec<Case<'a>>> {
    let mut labelled = HashSet::new();
    for variant in &data.variants {
        for label in MemberAttributes::parse(&variant.attrs, &variant.ident)?.cases {
            if !labelled.insert(label.to_token_stream().to_string()) {
                return Err(Error::new_spanned(label, "this case label belongs to another variant already"));
            }
        }
    }
    for variant in &data.variants {
        if let Some(DefaultValue::Expression(label)) =
            MemberAttributes::parse(&variant.attrs, &variant.ident)?.default
            && labelled.contains(&label.to_token_stream().to_string())
        {
            return Err(Error::new_spanned(label, "this discriminator selects another variant"));
        }
    }
    let unused = unused_label(data)?;
    let mut cases = Vec::<Case<'_>>::new();
    for (variant, automatic) in data.variants.iter().zip(1..) {
        let case = case(&input.ident, variant, automatic, &unused)?;
        if cases.iter().any(|other| other.id == case.id) {
            return Err(Error::new_spanned(variant, "another variant has this member id"));
        }
        if case.default && cases.iter().any(|other| other.default) {
            return Err(Error::new_spanned(variant, "a union has at most one default variant"));
        }
        cases.push(case);
    }
    if cases.is_empty() {
        return Err(Error::new_spanned(&input.ident, "a union needs at least one variant"));
    }
    Ok(cases)
}

fn case<'a>(union: &Ident, variant: &'a Variant, automatic: u32, unused: &Expr) -> syn::Result<Case<'a>> {
    let parsed = MemberAttributes::parse(&variant.attrs, &variant.ident)?;
    if let Some(span) = parsed.key.or(parsed.optional) {
        return Err(Error::new(
            span,
            "a variant of a union is neither key nor optional; `key` goes on the union",
        ));
    }
    let ty = match &variant.fields {
        Fields::Unit => None,
        Fields::Unnamed(fields) if fields.unnamed.len() == 1 => fields.unnamed.first().map(|field| &field.ty),
        _ => {
            return Err(Error::new_spanned(
                variant,
                "a variant of a union holds one unnamed value or none; put several into a structure of their own",
            ));
        }
    };
    let default = parsed.default.is_some();
    let told = match &parsed.default {
        Some(DefaultValue::Expression(label)) => Some(&**label),
        _ => parsed.cases.first(),
    };
    let written = match (told, default) {
        (Some(label), _) => label.clone(),
        (None, true) => unused.clone(),
        (None, false) => {
            return Err(Error::new_spanned(
                variant,
                "say when this variant is selected: #[dds(case = …)] or #[dds(default)]",
            ));
        }
    };
    Ok(Case {
        ident: &variant.ident,
        name: parsed.name_or(&variant.ident),
        ty,
        id: parsed.id.unwrap_or(automatic),
        external: parsed.external,
        bounds: parsed.bounds,
        recursive: ty.is_some_and(|ty| mentions(ty.to_token_stream(), union)),
        labels: parsed.cases,
        default,
        written,
    })
}

/// The discriminator of a default variant without label: the smallest number from 0 that is no label.
/// For labels that are not numbers this is 0, and the compiler will ask for a `case` on the default variant.
fn unused_label(data: &DataEnum) -> syn::Result<Expr> {
    let mut numbers = HashSet::new();
    for variant in &data.variants {
        let parsed = MemberAttributes::parse(&variant.attrs, &variant.ident)?;
        let named = parsed.cases.iter().any(|label| number(label).is_none());
        let is_silent = matches!(parsed.default, Some(DefaultValue::Trait(_))) && parsed.cases.is_empty();
        if is_silent && named_labels(data)? {
            return Err(Error::new_spanned(
                variant,
                "the labels of this union are not numbers; give the default variant the label to write: #[dds(default = …)]",
            ));
        }
        if !named {
            numbers.extend(parsed.cases.iter().filter_map(number));
        }
    }
    let unused = (0..=u64::MAX).find(|value| !numbers.contains(value)).unwrap_or_default();
    let literal = LitInt::new(&unused.to_string(), proc_macro2::Span::call_site());
    Ok(syn::parse_quote!(#literal))
}

fn named_labels(data: &DataEnum) -> syn::Result<bool> {
    for variant in &data.variants {
        let parsed = MemberAttributes::parse(&variant.attrs, &variant.ident)?;
        if parsed.cases.iter().any(|label| number(label).is_none()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A label that is a number; negative ones count as the largest, which is never chosen.
fn number(label: &Expr) -> Option<u64> {
    match label {
        Expr::Lit(ExprLit { lit: Lit::Int(literal), .. }) => literal.base10_parse().ok(),
        Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr, .. }) => number(expr).map(|_| u64::MAX),
        _ => None,
    }
}

impl Case<'_> {
    fn extent(&self) -> Option<TokenStream> {
        let ty = self.ty?;
        Some(if self.recursive {
            quote!(dds_cdr::Extent::UNBOUNDED)
        } else {
            self.bounds.extent(&ty.to_token_stream())
        })
    }

    /// An expression: `read`, made to fit its bounds.
    fn checked(&self, ty: &Type, read: &TokenStream, skip: &TokenStream) -> TokenStream {
        let initial = quote_spanned!(ty.span()=> <#ty as dds_cdr::Member>::initial_member());
        self.bounds.read(ty, read, skip, &initial)
    }

    /// The variant with the value `value` makes of its type.
    fn build(&self, value: impl FnOnce(&Type) -> TokenStream) -> TokenStream {
        let ident = self.ident;
        match self.ty {
            None => quote!(Self::#ident),
            Some(ty) => {
                let value = value(ty);
                quote!(Self::#ident(#value))
            }
        }
    }

    fn initial(&self) -> TokenStream {
        self.build(|ty| quote_spanned!(ty.span()=> <#ty as dds_cdr::Member>::initial_member()))
    }
}

struct Union<'a> {
    cases: Vec<Case<'a>>,
    discriminator: &'a Type,
    discriminator_key: bool,
    extensibility: Extensibility,
    nested: bool,
}

impl Union<'_> {
    fn mutable(&self) -> bool {
        self.extensibility == Extensibility::Mutable
    }

    fn constants(&self) -> TokenStream {
        let discriminator = self.discriminator;
        let octets_min = match self.extensibility {
            Extensibility::Final => quote!(<#discriminator as dds_cdr::Cdr>::BYTES_MIN),
            Extensibility::Appendable => quote!(if <#discriminator as dds_cdr::Cdr>::BYTES_MIN < 4 {
                <#discriminator as dds_cdr::Cdr>::BYTES_MIN
            } else {
                4
            }),
            Extensibility::Mutable => quote!(4),
        };
        let members = (!self.discriminator_key).then(|| {
            let extents = self.cases.iter().filter_map(Case::extent);
            quote!(.then(dds_cdr::Extent::EMPTY #(.or(#extents))*))
        });
        quote! {
            const BYTES_MIN: usize = #octets_min;
            const EXTENT: dds_cdr::Extent = <#discriminator as dds_cdr::Cdr>::EXTENT #members;
        }
    }

    fn encode(&self) -> TokenStream {
        let extensibility = self.extensibility.tokens();
        let discriminator = self.discriminator;
        let method = if self.mutable() { quote!(encode_mutable) } else { quote!(encode_member) };
        let end = self.mutable().then(|| quote!(encoder.end_member_list()?;));
        let key_only = self.discriminator_key.then(|| quote!(if !encoder.key_only()));
        let arms = self.cases.iter().map(|case| {
            let Case { name, id, written, bounds, .. } = case;
            let pattern = case.build(|_| quote!(value));
            let member = case.ty.map(|ty| {
                let check = bounds.check_to_encode(&quote!(value), name);
                quote_spanned! {ty.span()=>
                    #key_only {
                        #check
                        dds_cdr::Member::#method(value, encoder, #id, false)?;
                    }
                }
            });
            let unread = (case.ty.is_some() && member.is_none()).then(|| quote!(let _ = value;));
            quote! {
                #pattern => {
                    #unread
                    let discriminator: #discriminator = #written;
                    dds_cdr::Member::#method(&discriminator, encoder, 0, true)?;
                    #member
                }
            }
        });
        quote! {
            let object = encoder.begin_aggregate(#extensibility)?;
            match self { #(#arms)* }
            #end
            encoder.end_aggregate(object)
        }
    }

    fn decode(&self) -> TokenStream {
        let extensibility = self.extensibility.tokens();
        let selected = self.select(|case| self.read(case));
        let discriminator = self.read_discriminator();
        let rest = self.mutable().then(|| quote!(decoder.skip_members()?;));
        quote! {
            let object = decoder.begin_aggregate(#extensibility)?;
            #discriminator
            let value = #selected;
            #rest
            decoder.end_aggregate(object);
            ::core::result::Result::Ok(value)
        }
    }

    fn skip(&self) -> TokenStream {
        let extensibility = self.extensibility.tokens();
        let walk = if self.mutable() {
            quote!(decoder.skip_members()?;)
        } else {
            let discriminator = self.read_discriminator();
            let selected = self.select(|case| skip_member(case).unwrap_or_else(|| quote!({})));
            quote!(#discriminator #selected)
        };
        quote! {
            let object = decoder.begin_aggregate(#extensibility)?;
            if !decoder.jump(&object) {
                #walk
            }
            decoder.end_aggregate(object);
            ::core::result::Result::Ok(())
        }
    }

    /// Statements that bind `discriminator`.
    fn read_discriminator(&self) -> TokenStream {
        let ty = self.discriminator;
        if !self.mutable() {
            return quote!(let discriminator = <#ty as dds_cdr::Cdr>::decode(decoder)?;);
        }
        quote! {
            let header = match decoder.next_member()? {
                ::core::option::Option::Some(header) if header.id == 0 => header,
                _ => return ::core::result::Result::Err(DdsMalformed::MissingMember),
            };
            let discriminator = <#ty as dds_cdr::Cdr>::decode(decoder)?;
            decoder.end_member(header);
        }
    }

    /// An expression: the branch of the variant that `discriminator` selects.
    fn select(&self, branch: impl Fn(&Case<'_>) -> TokenStream) -> TokenStream {
        let labelled = self.cases.iter().filter(|case| !case.default).map(|case| {
            let labels = &case.labels;
            let branch = branch(case);
            quote!(if #(discriminator == #labels)||* { #branch } else)
        });
        let otherwise = match self.cases.iter().find(|case| case.default) {
            Some(case) => branch(case),
            None => quote!(return ::core::result::Result::Err(DdsMalformed::InvalidDiscriminator)),
        };
        quote!(#(#labelled)* { #otherwise })
    }

    /// An expression: the variant read.
    fn read(&self, case: &Case<'_>) -> TokenStream {
        let id = case.id;
        let read = if self.mutable() {
            case.build(|ty| {
                let read = quote_spanned!(ty.span()=> <#ty as dds_cdr::Member>::decode_mutable(decoder)?);
                let value = case.checked(ty, &read, &TokenStream::new());
                quote! {
                    loop {
                        match decoder.next_member()? {
                            ::core::option::Option::Some(header) if header.id == #id => {
                                let value = #value;
                                decoder.end_member(header);
                                break value;
                            }
                            ::core::option::Option::Some(header) => {
                                decoder.unknown_member(&header)?;
                                decoder.end_member(header);
                            }
                            ::core::option::Option::None => {
                                return ::core::result::Result::Err(DdsMalformed::MissingMember);
                            }
                        }
                    }
                }
            })
        } else {
            case.build(|ty| {
                let read = quote_spanned!(ty.span()=> <#ty as dds_cdr::Member>::decode_member(decoder, #id)?);
                case.checked(ty, &read, &skip_member(case).unwrap_or_default())
            })
        };
        if !self.discriminator_key || case.ty.is_none() {
            return read;
        }
        let initial = case.initial();
        let skip = if self.mutable() { None } else { skip_member(case) };
        quote! {
            match decoder.form() {
                dds_cdr::decode::Form::Sample => #read,
                dds_cdr::decode::Form::Key | dds_cdr::decode::Form::UndelimitedKey => #initial,
                dds_cdr::decode::Form::KeyOfSample => { #skip #initial }
            }
        }
    }

    /// The method that tells the type to other participants. A variant without value has no member.
    fn describe(&self, name: &str) -> TokenStream {
        let Self { discriminator, discriminator_key, nested, .. } = self;
        let extensibility = self.extensibility.tokens();
        let cases = self.cases.iter().filter_map(|case| {
            let Case { name, ty, id, external, bounds, labels, default, .. } = case;
            let member = crate::describe_member(name, (*ty)?, id, (false, false, *external), bounds);
            Some(quote! {
                dds_types::CaseDescription {
                    member: #member,
                    labels: &[#({
                        let label: #discriminator = #labels;
                        dds_cdr::Discriminator::label(&label)
                    }),*],
                    default: #default,
                }
            })
        });
        quote! {
            fn describe(types: &mut dds_types::TypeBuilder) -> ::core::option::Option<dds_types::TypeIdentifiers> {
                types.union(
                    &dds_types::AggregateDescription {
                        rust_type: ::core::any::TypeId::of::<Self>(),
                        name: #name,
                        extensibility: #extensibility,
                        hash_ids: false,
                        nested: #nested,
                    },
                    &dds_types::MemberDescription {
                        key: #discriminator_key,
                        must_understand: true,
                        ..dds_types::MemberDescription::new(
                            "discriminator",
                            0,
                            <#discriminator as dds_cdr::Cdr>::describe,
                        )
                    },
                    &[#(#cases),*],
                )
            }
        }
    }

    /// The default value of a union: its first variant (XTypes 1.3 table 9).
    fn initial(&self) -> TokenStream {
        self.cases.first().map(Case::initial).unwrap_or_default()
    }
}

fn skip_member(case: &Case<'_>) -> Option<TokenStream> {
    let Case { ty, id, .. } = case;
    ty.map(|ty| quote_spanned!(ty.span()=> <#ty as dds_cdr::Member>::skip_member(decoder, #id)?;))
}
