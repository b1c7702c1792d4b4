//! Reads `#[dds(…)]`.

use md5::{Digest, Md5};
use proc_macro2::{Span, TokenStream, TokenTree};
use quote::quote;
use syn::ext::IdentExt;
use syn::meta::ParseNestedMeta;
use syn::punctuated::Punctuated;
use syn::{Attribute, DeriveInput, Error, Expr, Ident, LitInt, LitStr, Path, Token, Type, parenthesized};

use crate::bounds::{Bounds, attribute_name};

/// How a type may evolve.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extensibility {
    Final,
    Appendable,
    Mutable,
}

impl Extensibility {
    /// The value of `cdr::Extensibility` that says the same.
    pub(crate) fn tokens(self) -> TokenStream {
        match self {
            Self::Final => quote!(dds_cdr::Extensibility::Final),
            Self::Appendable => quote!(dds_cdr::Extensibility::Appendable),
            Self::Mutable => quote!(dds_cdr::Extensibility::Mutable),
        }
    }
}

/// What `#[dds(…)]` says on a type.
#[allow(clippy::struct_excessive_bools, reason = "each is an attribute")]
pub(crate) struct TypeAttributes {
    pub(crate) name: String,
    pub(crate) extensibility: Extensibility,
    /// It stands there.
    pub(crate) told_extensibility: bool,
    pub(crate) hash_ids: bool,
    pub(crate) nested: bool,
    pub(crate) union: bool,
    pub(crate) bitmask: bool,
    pub(crate) bitset: bool,
    pub(crate) flags: Vec<Flag>,
    pub(crate) discriminator: Option<Type>,
    pub(crate) discriminator_key: bool,
    pub(crate) bit_bound: Option<LitInt>,
    pub(crate) proto: Path,
    /// Whether the memory layout is defined: `#[repr(C)]` alone.
    pub(crate) repr_c: bool,
    /// The memory is to be what is sent, or it does not compile.
    pub(crate) plain: bool,
}

impl TypeAttributes {
    pub(crate) fn parse(input: &DeriveInput) -> syn::Result<Self> {
        let mut parsed = Self {
            name: input.ident.unraw().to_string(),
            extensibility: Extensibility::Appendable,
            told_extensibility: false,
            hash_ids: false,
            nested: false,
            union: false,
            bitmask: false,
            bitset: false,
            flags: Vec::new(),
            discriminator: None,
            discriminator_key: false,
            bit_bound: None,
            proto: syn::parse_quote!(::plainsong::__private),
            repr_c: is_repr_c(&input.attrs),
            plain: false,
        };
        let mut extensibility = None;
        each_dds(&input.attrs, |meta| parsed.take(&meta, &mut extensibility))?;
        if let Some(told) = extensibility {
            parsed.extensibility = told;
            parsed.told_extensibility = true;
        }
        Ok(parsed)
    }

    fn take(&mut self, meta: &ParseNestedMeta<'_>, told: &mut Option<Extensibility>) -> syn::Result<()> {
        let mut extensibility = |value| match told.replace(value) {
            None => Ok(()),
            Some(_) => Err(meta.error("a type has one extensibility: final, appendable or mutable")),
        };
        match attribute_name(meta).as_str() {
            "final" => extensibility(Extensibility::Final)?,
            "appendable" => extensibility(Extensibility::Appendable)?,
            "mutable" => extensibility(Extensibility::Mutable)?,
            "name" => self.name = meta.value()?.parse::<LitStr>()?.value(),
            "autoid" => {
                let kind: LitStr = meta.value()?.parse()?;
                self.hash_ids = match kind.value().as_str() {
                    "hash" => true,
                    "sequential" => false,
                    _ => return Err(Error::new(kind.span(), "autoid is \"sequential\" or \"hash\"")),
                };
            }
            "nested" => self.nested = true,
            "union" => self.union = true,
            "bitmask" => self.bitmask = true,
            "bitset" => self.bitset = true,
            "flag" => self.flags.push(Flag::parse(meta)?),
            "plain" => self.plain = true,
            "discriminator" => self.discriminator = Some(meta.value()?.parse()?),
            "key" => self.discriminator_key = true,
            "bit_bound" => self.bit_bound = Some(meta.value()?.parse()?),
            "crate" => self.proto = meta.value()?.parse::<LitStr>()?.parse()?,
            _ => {
                return Err(meta.error(
                    "unknown attribute of a type; known are name, final, appendable, mutable, autoid, nested, union, \
                     discriminator, key, bitmask, flag, bitset, bit_bound, plain and crate",
                ));
            }
        }
        Ok(())
    }

    /// The bits of an enumeration or bit mask: so many, or fewer if that is told.
    pub(crate) fn bits(&self, most: u32) -> syn::Result<u32> {
        let Some(literal) = &self.bit_bound else { return Ok(most) };
        match literal.base10_parse() {
            Ok(bits) if (1..=most).contains(&bits) => Ok(bits),
            _ => Err(Error::new(literal.span(), format!("the bit bound is 1 to {most} here"))),
        }
    }
}

/// A flag of a bit mask: `flag(READY = 0, name = "ready")`.
pub(crate) struct Flag {
    pub(crate) ident: Ident,
    pub(crate) name: String,
    pub(crate) position: Option<LitInt>,
    pub(crate) documentation: Option<LitStr>,
}

impl Flag {
    fn parse(meta: &ParseNestedMeta<'_>) -> syn::Result<Self> {
        let content;
        parenthesized!(content in meta.input);
        let ident = content.call(Ident::parse_any)?;
        let name = ident.unraw().to_string();
        let mut flag = Self { ident, name, position: None, documentation: None };
        if content.parse::<Option<Token![=]>>()?.is_some() {
            flag.position = Some(content.parse()?);
        }
        while content.parse::<Option<Token![,]>>()?.is_some() && !content.is_empty() {
            let what: Ident = content.call(Ident::parse_any)?;
            content.parse::<Token![=]>()?;
            let text: LitStr = content.parse()?;
            match what.to_string().as_str() {
                "name" => flag.name = text.value(),
                "doc" => flag.documentation = Some(text),
                _ => return Err(Error::new_spanned(what, "of a flag a name and a doc may be told")),
            }
        }
        Ok(flag)
    }
}

/// What `#[dds(…)]` says on a member or variant.
#[derive(Default)]
pub(crate) struct MemberAttributes {
    /// The name that peers are told, if it is not that of the field or variant.
    pub(crate) name: Option<String>,
    pub(crate) key: Option<Span>,
    pub(crate) optional: Option<Span>,
    pub(crate) must_understand: bool,
    pub(crate) id: Option<u32>,
    pub(crate) base: Option<Span>,
    pub(crate) external: bool,
    pub(crate) bounds: Bounds,
    pub(crate) bits: Option<LitInt>,
    pub(crate) position: Option<LitInt>,
    pub(crate) default: Option<DefaultValue>,
    pub(crate) cases: Vec<Expr>,
}

/// The value of a member that is not sent.
pub(crate) enum DefaultValue {
    /// `#[dds(default)]`.
    Trait(Span),
    /// `#[dds(default = expression)]`.
    Expression(Box<Expr>),
}

impl MemberAttributes {
    pub(crate) fn parse(attributes: &[Attribute], name: &Ident) -> syn::Result<Self> {
        let mut parsed = Self::default();
        let mut hashed = false;
        each_dds(attributes, |meta| parsed.take(&meta, &mut hashed))?;
        if hashed {
            parsed.id = Some(hash_id(&parsed.name_or(name)));
        }
        Ok(parsed)
    }

    /// The name that peers are told.
    pub(crate) fn name_or(&self, ident: &Ident) -> String {
        self.name.clone().unwrap_or_else(|| ident.unraw().to_string())
    }

    /// `hashed`: the id is the hash of the name, which may be told later.
    fn take(&mut self, meta: &ParseNestedMeta<'_>, hashed: &mut bool) -> syn::Result<()> {
        let span = syn::spanned::Spanned::span(&meta.path);
        match attribute_name(meta).as_str() {
            "key" => self.key = Some(span),
            "optional" => self.optional = Some(span),
            "must_understand" => self.must_understand = true,
            "id" => self.id = Some(member_id(&meta.value()?.parse()?)?),
            "hashid" if meta.input.peek(Token![=]) => {
                self.id = Some(hash_id(&meta.value()?.parse::<LitStr>()?.value()));
            }
            "hashid" => *hashed = true,
            "name" => self.name = Some(meta.value()?.parse::<LitStr>()?.value()),
            "base" => self.base = Some(span),
            "external" => self.external = true,
            "bits" => self.bits = Some(meta.value()?.parse()?),
            "position" => self.position = Some(meta.value()?.parse()?),
            _ if self.bounds.take(meta)? => {}
            "default" if meta.input.peek(Token![=]) => {
                self.default = Some(DefaultValue::Expression(Box::new(meta.value()?.parse()?)));
            }
            "default" => self.default = Some(DefaultValue::Trait(span)),
            "case" if meta.input.peek(Token![=]) => self.cases.push(meta.value()?.parse()?),
            "case" => {
                let list;
                parenthesized!(list in meta.input);
                self.cases.extend(Punctuated::<Expr, Token![,]>::parse_terminated(&list)?);
            }
            _ => {
                return Err(meta.error(
                    "unknown attribute of a member; known are name, key, id, hashid, bound, element, key_element, octet, alias, unit, min, max, \
                     optional, default, must_understand, try_construct, external, base, case in unions, bits and \
                     position in bit sets",
                ));
            }
        }
        Ok(())
    }
}

/// Whether a type names the type it is a member of.
pub(crate) fn mentions(tokens: TokenStream, ident: &Ident) -> bool {
    tokens.into_iter().any(|tree| match tree {
        TokenTree::Ident(found) => found == *ident || found == "Self",
        TokenTree::Group(group) => mentions(group.stream(), ident),
        _ => false,
    })
}

/// The member id that the hash of a name gives (XTypes 1.3 §7.3.1.2.1.1).
pub(crate) fn hash_id(name: &str) -> u32 {
    let [first, second, third, fourth, ..] = <[u8; 16]>::from(Md5::digest(name));
    u32::from_le_bytes([first, second, third, fourth]) & MEMBER_ID_MAX
}

fn each_dds(
    attributes: &[Attribute],
    mut take: impl FnMut(ParseNestedMeta<'_>) -> syn::Result<()>,
) -> syn::Result<()> {
    attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("dds"))
        .try_for_each(|attribute| attribute.parse_nested_meta(&mut take))
}

fn is_repr_c(attributes: &[Attribute]) -> bool {
    let mut representations = attributes.iter().filter(|attribute| attribute.path().is_ident("repr"));
    let is_c = |attribute: &Attribute| attribute.parse_args::<Ident>().is_ok_and(|kind| kind == "C");
    representations.next().is_some_and(is_c) && representations.next().is_none()
}

fn member_id(literal: &LitInt) -> syn::Result<u32> {
    match literal.base10_parse() {
        Ok(id) if id <= MEMBER_ID_MAX => Ok(id),
        _ => Err(Error::new(literal.span(), "a member id has 28 bits: use 0 to 0x0fffffff")),
    }
}

/// The largest member id.
const MEMBER_ID_MAX: u32 = 0x0fff_ffff;
