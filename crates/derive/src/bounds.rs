//! What limits a member: bounds of strings and collections, and of what is in them.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::meta::ParseNestedMeta;
use syn::spanned::Spanned;
use syn::{Error, Expr, ExprLit, Lit, LitInt, LitStr, Type, UnOp};

/// The name of an attribute; empty where it is a path.
pub(crate) fn attribute_name(meta: &ParseNestedMeta<'_>) -> String {
    meta.path.get_ident().map(ToString::to_string).unwrap_or_default()
}

/// What happens to a value that does not fit.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum TryConstruct {
    #[default]
    Discard,
    UseDefault,
    Trim,
}

impl TryConstruct {
    fn tokens(self) -> TokenStream {
        match self {
            Self::Discard => quote!(dds_types::TryConstruct::Discard),
            Self::UseDefault => quote!(dds_types::TryConstruct::UseDefault),
            Self::Trim => quote!(dds_types::TryConstruct::Trim),
        }
    }
}

/// The limits of a member or element, and of its own elements.
#[derive(Default)]
pub(crate) struct Bounds {
    bound: Option<LitInt>,
    pub(crate) try_construct: TryConstruct,
    octet: bool,
    key: Option<Box<Self>>,
    element: Option<Box<Self>>,
    /// The names that typedefs give the type, the outermost first.
    aliases: Vec<LitStr>,
    annotations: Annotations,
}

/// What others are told of a member besides its type.
#[derive(Default)]
struct Annotations {
    unit: Option<LitStr>,
    min: Option<TokenStream>,
    max: Option<TokenStream>,
}

/// An expression: the `AnnotationValue` of a number.
fn number(meta: &ParseNestedMeta<'_>) -> syn::Result<TokenStream> {
    let value: Expr = meta.value()?.parse()?;
    let literal = match &value {
        Expr::Unary(negative) if matches!(negative.op, UnOp::Neg(_)) => &*negative.expr,
        positive => positive,
    };
    match literal {
        Expr::Lit(ExprLit { lit: Lit::Int(_), .. }) => {
            Ok(quote!(dds_types::AnnotationValue::integer(#value)))
        }
        Expr::Lit(ExprLit { lit: Lit::Float(_), .. }) => {
            Ok(quote!(dds_types::AnnotationValue::float(#value)))
        }
        other => Err(Error::new(other.span(), "min and max are numbers")),
    }
}

impl Bounds {
    /// Whether the attribute is one of a limit.
    pub(crate) fn take(&mut self, meta: &ParseNestedMeta<'_>) -> syn::Result<bool> {
        match attribute_name(meta).as_str() {
            "bound" => {
                let bound: LitInt = meta.value()?.parse()?;
                bound.base10_parse::<u32>()?;
                self.bound = Some(LitInt::new(bound.base10_digits(), bound.span()));
            }
            "octet" => self.octet = true,
            "alias" => self.aliases.push(meta.value()?.parse()?),
            "unit" => self.annotations.unit = Some(meta.value()?.parse()?),
            "min" => self.annotations.min = Some(number(meta)?),
            "max" => self.annotations.max = Some(number(meta)?),
            "try_construct" => {
                let kind: LitStr = meta.value()?.parse()?;
                self.try_construct = match kind.value().as_str() {
                    "discard" => TryConstruct::Discard,
                    "use_default" => TryConstruct::UseDefault,
                    "trim" => TryConstruct::Trim,
                    _ => {
                        let known = "try_construct is \"discard\", \"use_default\" or \"trim\"";
                        return Err(Error::new(kind.span(), known));
                    }
                };
            }
            "element" => Self::take_inner(&mut self.element, meta)?,
            "key_element" => Self::take_inner(&mut self.key, meta)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn take_inner(inner: &mut Option<Box<Self>>, meta: &ParseNestedMeta<'_>) -> syn::Result<()> {
        let inner = inner.get_or_insert_default();
        meta.parse_nested_meta(|meta| {
            // These are about members alone.
            let of_member = matches!(attribute_name(&meta).as_str(), "unit" | "min" | "max");
            if !of_member && inner.take(&meta)? {
                return Ok(());
            }
            Err(meta.error(
                "unknown attribute of an element; known are bound, try_construct, octet, alias, element and key_element",
            ))
        })
    }

    /// Whether values need not be looked at after they were read.
    pub(crate) fn is_none(&self) -> bool {
        let inner = |it: &Option<Box<Self>>| it.as_ref().is_none_or(|it| it.is_none());
        self.bound.is_none() && inner(&self.key) && inner(&self.element)
    }

    /// Whether a value is to be compared with its bound alone.
    pub(crate) fn is_plain(&self) -> bool {
        let inner = |it: &Option<Box<Self>>| it.as_ref().is_none_or(|it| it.is_none());
        self.try_construct == TryConstruct::Discard && inner(&self.key) && inner(&self.element)
    }

    /// An expression: as `types::Bounds` has them.
    pub(crate) fn describe(&self) -> TokenStream {
        let inner = |bounds: &Option<Box<Self>>| match bounds {
            None => quote!(::core::option::Option::None),
            Some(bounds) => {
                let bounds = bounds.describe();
                quote!(::core::option::Option::Some(&#bounds))
            }
        };
        let (key, element) = (inner(&self.key), inner(&self.element));
        let (try_construct, octet, aliases) = (self.try_construct.tokens(), self.octet, &self.aliases);
        let bound = match &self.bound {
            None => quote!(::core::option::Option::None),
            Some(bound) => quote!(::core::option::Option::Some(#bound)),
        };
        quote! {
            dds_types::Bounds {
                bound: #bound,
                try_construct: #try_construct,
                octet: #octet,
                key: #key,
                element: #element,
                aliases: &[#(#aliases),*],
            }
        }
    }

    /// An expression: the `AnnotationsDescription` of the member.
    pub(crate) fn describe_annotations(&self) -> TokenStream {
        let Annotations { unit, min, max } = &self.annotations;
        let option = |value: Option<TokenStream>| match value {
            Some(value) => quote!(::core::option::Option::Some(#value)),
            None => quote!(::core::option::Option::None),
        };
        let unit = option(unit.as_ref().map(|unit| quote!(#unit)));
        let (min, max) = (option(min.clone()), option(max.clone()));
        quote!(dds_types::AnnotationsDescription { unit: #unit, min: #min, max: #max })
    }

    /// The `TryConstruct` of the member.
    pub(crate) fn describe_try_construct(&self) -> TokenStream {
        self.try_construct.tokens()
    }

    /// An expression: the most octets of a value of the type in the form for key hashes.
    pub(crate) fn extent(&self, ty: &TokenStream) -> TokenStream {
        let is_none = |it: &Option<Box<Self>>| it.as_ref().is_none_or(|it| it.is_none());
        if is_none(&self.key) && is_none(&self.element) {
            return match &self.bound {
                Some(bound) => quote_spanned!(bound.span()=> <#ty as dds_cdr::Bounded<#bound>>::EXTENT),
                None => quote!(<#ty as dds_cdr::Member>::EXTENT),
            };
        }
        let element_type = quote!(<#ty as dds_cdr::Elements>::Element);
        let element = self.element.as_deref().unwrap_or(&Self::NONE).extent(&element_type);
        let key = match &self.key {
            Some(key) => key.extent(&quote!(<#ty as dds_cdr::Keys>::Key)),
            None => quote!(<#ty as dds_cdr::Elements>::KEY_EXTENT),
        };
        let bound = match &self.bound {
            None => quote!(::core::option::Option::None),
            Some(bound) => quote!(::core::option::Option::Some(#bound)),
        };
        quote!(dds_cdr::collection_extent::<#ty>((#key).then(#element), #bound))
    }

    const NONE: Self = Self {
        bound: None,
        try_construct: TryConstruct::Discard,
        octet: false,
        key: None,
        element: None,
        aliases: Vec::new(),
        annotations: Annotations { unit: None, min: None, max: None },
    };

    /// Statements that refuse to encode `value`, a reference, where it is too long.
    pub(crate) fn check_to_encode(&self, value: &TokenStream, name: &str) -> TokenStream {
        let own = self.bound.as_ref().map(|bound| {
            quote_spanned! {bound.span()=>
                encoder.check_bound(dds_cdr::Bounded::<#bound>::length(#value), #bound, #name)?;
            }
        });
        let inner = |bounds: &Option<Box<Self>>, each: TokenStream| {
            let bounds = bounds.as_ref().filter(|it| !it.is_none())?;
            let check = bounds.check_to_encode(&quote!(element), name);
            Some(quote! {
                #each(#value, |element| {
                    #check
                    ::core::result::Result::<(), dds_cdr::EncodeError>::Ok(())
                })?;
            })
        };
        let keys = inner(&self.key, quote!(dds_cdr::Keys::try_each_key));
        let elements = inner(&self.element, quote!(dds_cdr::Elements::try_each));
        quote!(#own #keys #elements)
    }

    /// Statements that make `value`, which was read and is a mutable reference, fit its bounds, or refuse it.
    /// That of a member is refused where its default is wanted.
    pub(crate) fn check_decoded(&self, value: &TokenStream, is_member: bool) -> TokenStream {
        let own = self.bound.as_ref().map(|bound| {
            let refuse = quote_spanned! {bound.span()=>
                decoder.check_bound(dds_cdr::Bounded::<#bound>::length(&*#value), #bound)?;
            };
            match self.try_construct {
                TryConstruct::Discard => refuse,
                TryConstruct::UseDefault if is_member => refuse,
                TryConstruct::UseDefault => quote_spanned! {bound.span()=>
                    if dds_cdr::Bounded::<#bound>::length(&*#value) > #bound {
                        *#value = dds_cdr::Cdr::initial();
                    }
                },
                TryConstruct::Trim => quote_spanned! {bound.span()=>
                    if dds_cdr::Bounded::<#bound>::length(&*#value) > #bound {
                        dds_cdr::Bounded::<#bound>::truncate(#value);
                    }
                },
            }
        });
        let keys = self.key.as_ref().filter(|it| !it.is_none()).map(|key| {
            let check = key.check_read_key(&quote!(element));
            quote! {
                dds_cdr::Keys::try_each_key(&*#value, |element| {
                    #check
                    ::core::result::Result::<(), DdsMalformed>::Ok(())
                })?;
            }
        });
        let elements = self.element.as_ref().filter(|it| !it.is_none()).map(|inner| {
            let check = inner.check_decoded(&quote!(element), false);
            quote! {
                dds_cdr::Elements::try_each_mut(#value, |element| {
                    #check
                    ::core::result::Result::<(), DdsMalformed>::Ok(())
                })?;
            }
        });
        quote!(#own #keys #elements)
    }

    /// A key that does not fit makes its map unfit (XTypes 1.3 table 17).
    fn check_read_key(&self, key: &TokenStream) -> TokenStream {
        let own = self.bound.as_ref().map(|bound| {
            quote_spanned! {bound.span()=>
                decoder.check_bound(dds_cdr::Bounded::<#bound>::length(#key), #bound)?;
            }
        });
        let elements = self.element.as_ref().filter(|it| !it.is_none()).map(|inner| {
            let check = inner.check_read_key(&quote!(element));
            quote! {
                dds_cdr::Elements::try_each(#key, |element| {
                    #check
                    ::core::result::Result::<(), DdsMalformed>::Ok(())
                })?;
            }
        });
        quote!(#own #elements)
    }

    /// An expression: the value of `read`, an expression of this type with `?` for errors, made to fit. Where
    /// the default is wanted instead of one that does not, `skip` are statements that read past it.
    pub(crate) fn read(
        &self,
        ty: &Type,
        read: &TokenStream,
        skip: &TokenStream,
        initial: &TokenStream,
    ) -> TokenStream {
        let none = self.is_none();
        if self.try_construct == TryConstruct::UseDefault {
            let check = self.check_decoded(&quote!((&mut value)), true);
            let mutable = (!none).then(|| quote!(mut));
            let check = (!none).then_some(check);
            return quote_spanned! {ty.span()=> {
                let mark = decoder.mark();
                let read = (|decoder: &mut dds_cdr::Decoder<'_>| {
                    let #mutable value = #read;
                    #check
                    ::core::result::Result::<#ty, DdsMalformed>::Ok(value)
                })(decoder);
                match read {
                    ::core::result::Result::Ok(value) => value,
                    ::core::result::Result::Err(error) if error.is_unfit() => {
                        decoder.reset(mark);
                        #skip
                        #initial
                    }
                    ::core::result::Result::Err(error) => return ::core::result::Result::Err(error),
                }
            }};
        }
        if none {
            return read.clone();
        }
        if let (true, Some(bound)) = (self.is_plain(), &self.bound) {
            return quote_spanned! {bound.span()=> {
                let value = #read;
                decoder.check_bound(dds_cdr::Bounded::<#bound>::length(&value), #bound)?;
                value
            }};
        }
        let check = self.check_decoded(&quote!((&mut value)), true);
        quote_spanned! {ty.span()=> {
            let mut value = #read;
            #check
            value
        }}
    }
}
