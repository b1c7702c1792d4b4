//! Structures whose memory may be copied: `repr(C)`, every member a number or an array of numbers.
//!
//! Such a structure is one copy where it has no padding, and its members are at the same offsets in memory
//! and on the wire. Others are encoded member by member, with numbers in arrays and sequences in one copy.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{GenericArgument, PathArguments, Type};

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
/// The code they write is the only `unsafe` of the derive. It rests on nothing that a hand-written
/// implementation could get wrong: the types of all members are checked by a trait that only numbers have,
/// and padding is excluded by comparing sizes.
pub(crate) fn octets<'a>(types: impl Iterator<Item = &'a Type> + Clone) -> Option<TokenStream> {
    if types.clone().count() == 0 || !types.clone().all(is_number) {
        return None;
    }
    Some(quote! {
        fn plain_octets(values: &[Self]) -> ::core::option::Option<&[u8]> {
            const fn bytes_of<T: dds_cdr::Number>() -> usize {
                ::core::mem::size_of::<T>()
            }
            if const { ::core::mem::size_of::<Self>() != 0 #(+ bytes_of::<#types>())* } {
                return ::core::option::Option::None;
            }
            // SAFETY: all members are numbers or arrays of numbers, and their sizes add up to that of the
            // structure: every octet of it is one of a number, so each is initialised and may be read as u8,
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
