//! What memory may be read and written as octets.

#![allow(unsafe_code, reason = "a promise about memory, which code that is derived relies on")]

/// A number, an array of these, or a structure of these without padding: its octets are all there is to it.
///
/// # Safety
/// Each octet of a value is initialised, and any octets are a value.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not plain",
    label = "neither a number, nor an array of plain values, nor a structure that says `#[dds(plain)]`",
    note = "`bool`, `char` and enumerations are not plain, since not all octets are one: use a number"
)]
pub unsafe trait Pod {}

// SAFETY: as those of its elements are, and there is nothing between them.
unsafe impl<T: Pod, const COUNT: usize> Pod for [T; COUNT] {}

macro_rules! pod {
    ($($number:ty),*) => { $(
        // SAFETY: a number has no padding, and no octets are none.
        unsafe impl Pod for $number {}
    )* };
}

pod!(u8, i8, u16, i16, u32, i32, u64, i64, f32, f64);
