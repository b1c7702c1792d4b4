//! Tests of the wire, each named after the fact or rule it holds us to.

mod composing;
mod group;
mod parameters;
mod parsing;
mod round_trip;
