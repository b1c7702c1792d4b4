//! Structures whose memory may be copied: `repr(C)`, every member a number or an array of numbers, or, where
//! they say that they are `plain`, such a structure.
//!
//! Such a structure is one copy where it has no padding, and its members are at the same offsets in memory
//! and on the wire. Others are encoded member by member, with numbers in arrays and sequences in one copy.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{Data, DeriveInput, Error, GenericArgument, PathArguments, Type};

use crate::attribute::{Extensibility, TypeAttributes};

const NUMBERS: [&str; 10] = ["u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f32", "f64"];

/// Whether a type looks like a number or an array of numbers; the compiler checks that it is one.
pub(crate) fn is_number(ty: &Type) -> bool {
    match ty {
        Type::Path(path) => path.path.get_ident().is_some_and(|ident| NUMBERS.iter().any(|it| ident == it)),
        Type::Array(array) => is_number(&array.elem),
        _ => false,
    }
}

/// Whether a type looks like a number, a string, or a sequence or an array of numbers.
pub(crate) fn is_leaf(ty: &Type) -> bool {
    let Type::Path(path) = ty else { return is_number(ty) };
    let Some(last) = path.path.segments.last() else { return false };
    match &last.arguments {
        PathArguments::None => is_number(ty) || ["bool", "String"].iter().any(|it| last.ident == it),
        PathArguments::AngleBracketed(elements) => {
            let is_number =
                |element: &GenericArgument| matches!(element, GenericArgument::Type(ty) if is_number(ty));
            last.ident == "Vec" && elements.args.iter().all(is_number)
        }
        PathArguments::Parenthesized(_) => false,
    }
}

/// The methods that give the memory of such a structure, and such a structure in memory; `None` for other
/// structures.
///
/// The code they write, and that of [`pod`], is the only `unsafe` of the derive. The types of all members are
/// checked by a trait that only numbers and such structures have, and padding is excluded by comparing sizes.
pub(crate) fn octets<'a>(
    types: impl Iterator<Item = &'a Type> + Clone,
    is_plain: bool,
) -> Option<TokenStream> {
    if types.clone().count() == 0 || !(is_plain || types.clone().all(is_number)) {
        return None;
    }
    Some(quote! {
        fn plain_octets(values: &[Self]) -> ::core::option::Option<&[u8]> {
            const fn bytes_of<T: dds_cdr::Pod>() -> usize {
                ::core::mem::size_of::<T>()
            }
            if const { ::core::mem::size_of::<Self>() != 0 #(+ bytes_of::<#types>())* } {
                return ::core::option::Option::None;
            }
            // SAFETY: all members are made of numbers, and their sizes add up to that of the structure: every
            // octet of it is one of a number, so each is initialised and may be read as u8,
            // which needs no alignment. Length and lifetime are those of `values`.
            ::core::option::Option::Some(unsafe {
                ::core::slice::from_raw_parts(values.as_ptr().cast::<u8>(), ::core::mem::size_of_val(values))
            })
        }

        fn plain_ref(octets: &[u8]) -> ::core::option::Option<&Self> {
            let place = octets.as_ptr().cast::<Self>();
            let is_one = octets.len() == ::core::mem::size_of::<Self>() && place.is_aligned();
            if !is_one || Self::plain_octets(&[]).is_none() {
                return ::core::option::Option::None;
            }
            // SAFETY: there are so many octets, aligned as the structure is; all its octets are of numbers,
            // as above, and any are a number. It is borrowed as they are.
            ::core::option::Option::Some(unsafe { &*place })
        }

        fn plain_mut(octets: &mut [u8]) -> ::core::option::Option<&mut Self> {
            let place = octets.as_mut_ptr().cast::<Self>();
            let is_one = octets.len() == ::core::mem::size_of::<Self>() && place.is_aligned();
            if !is_one || Self::plain_octets(&[]).is_none() {
                return ::core::option::Option::None;
            }
            // SAFETY: as above; whatever is written to the structure leaves octets that are initialised,
            // since it has no padding.
            ::core::option::Option::Some(unsafe { &mut *place })
        }
    })
}

/// What can be seen to stand against being plain without looking at members.
pub(crate) fn check(input: &DeriveInput, attributes: &TypeAttributes) -> syn::Result<()> {
    let refuse = |what: &str| Err(Error::new_spanned(&input.ident, what));
    let Data::Struct(data) = &input.data else { return refuse("plain is for structures") };
    if let Some(lifetime) = input.generics.lifetimes().next() {
        return Err(Error::new_spanned(lifetime, "a plain structure borrows nothing"));
    }
    if !attributes.repr_c {
        return refuse("a plain structure has the memory of #[repr(C)], without packed, align or another");
    }
    if attributes.extensibility == Extensibility::Mutable {
        return refuse("a mutable structure is not plain, since each member is sent with its id: say final");
    }
    if data.fields.is_empty() {
        return refuse("a plain structure has members");
    }
    Ok(())
}

/// Says that a structure is such memory, so that it may be a member of another one, and refuses to compile
/// where it is not.
pub(crate) fn pod<'a>(ident: &syn::Ident, types: impl Iterator<Item = &'a Type>) -> TokenStream {
    let sizes = types.map(|ty| quote_spanned!(ty.span() => bytes_of::<#ty>()));
    quote! {
        // SAFETY: all members are made of numbers and there is no padding, or the next item does not compile.
        #[automatically_derived]
        unsafe impl dds_cdr::Pod for #ident {}

        const _: () = {
            const fn bytes_of<T: dds_cdr::Pod>() -> usize {
                ::core::mem::size_of::<T>()
            }
            ::core::assert!(
                ::core::mem::size_of::<#ident>() > 0,
                "a plain structure has members that take octets"
            );
            ::core::assert!(
                ::core::mem::size_of::<#ident>() == 0 #(+ #sizes)*,
                "a plain structure has no padding between its members or behind the last: put larger ones first, and add members \
                 that fill what is left, as `[u8; 4]`"
            );
            let plain = <#ident as dds_cdr::Cdr>::PLAIN;
            ::core::assert!(
                plain.is_of_a_version(),
                "in memory and on the wire members are at other places: structures in a plain one are `final`, and numbers of 8 octets at \
                 multiples of 8"
            );
        };
    }
}
