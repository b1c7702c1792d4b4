//! Reads `#[dds(…)]`.

use md5::{Digest, Md5};
use proc_macro2::{Span, TokenStream, TokenTree};
use quote::quote;
use syn::ext::IdentExt;
use syn::meta::ParseNestedMeta;
use syn::punctuated::Punctuated;
use syn::{Attribute, DeriveInput, Error, Expr, Ident, LitInt, LitStr, Path, Token, Type, parenthesized};

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
pub(crate) struct TypeAttributes {
    pub(crate) name: String,
    pub(crate) extensibility: Extensibility,
    pub(crate) hash_ids: bool,
    pub(crate) union: bool,
    pub(crate) discriminator: Option<Type>,
    pub(crate) discriminator_key: bool,
    pub(crate) bit_bound: u32,
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
            hash_ids: false,
            union: false,
            discriminator: None,
            discriminator_key: false,
            bit_bound: 32,
            proto: syn::parse_quote!(::plainsong::__private),
            repr_c: is_repr_c(&input.attrs),
            plain: false,
        };
        let mut extensibility = None;
        each_dds(&input.attrs, |meta| parsed.take(&meta, &mut extensibility))?;
        if let Some(told) = extensibility {
            parsed.extensibility = told;
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
            "union" => self.union = true,
            "plain" => self.plain = true,
            "discriminator" => self.discriminator = Some(meta.value()?.parse()?),
            "key" => self.discriminator_key = true,
            "bit_bound" => self.bit_bound = bit_bound(&meta.value()?.parse()?)?,
            "crate" => self.proto = meta.value()?.parse::<LitStr>()?.parse()?,
            _ => {
                return Err(meta.error(
                    "unknown attribute of a type; known are name, final, appendable, mutable, autoid, union, \
                     discriminator, key, bit_bound, plain and crate",
                ));
            }
        }
        Ok(())
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
    pub(crate) bound: Option<LitInt>,
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
            "bound" => {
                let bound: LitInt = meta.value()?.parse()?;
                bound.base10_parse::<u32>()?;
                self.bound = Some(LitInt::new(bound.base10_digits(), bound.span()));
            }
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
                    "unknown attribute of a member; known are name, key, id, hashid, bound, optional, default, \
                     must_understand, and case in unions",
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

fn attribute_name(meta: &ParseNestedMeta<'_>) -> String {
    meta.path.get_ident().map(ToString::to_string).unwrap_or_default()
}

fn member_id(literal: &LitInt) -> syn::Result<u32> {
    match literal.base10_parse() {
        Ok(id) if id <= MEMBER_ID_MAX => Ok(id),
        _ => Err(Error::new(literal.span(), "a member id has 28 bits: use 0 to 0x0fffffff")),
    }
}

fn bit_bound(literal: &LitInt) -> syn::Result<u32> {
    match literal.base10_parse() {
        Ok(bits @ 1..=32) => Ok(bits),
        _ => Err(Error::new(literal.span(), "the bit bound of an enumeration is 1 to 32")),
    }
}

/// The largest member id.
const MEMBER_ID_MAX: u32 = 0x0fff_ffff;
