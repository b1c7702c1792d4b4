//! Standard output, whose reader may have heard enough.

use std::fmt::Arguments;
use std::io::Write;

/// Prints a line. When nobody reads any more, what is said is lost, and the work goes on: its results are
/// kept elsewhere.
macro_rules! say {
    () => {{ $crate::output::print(format_args!("\n")); }};
    ($($text:tt)*) => {{ $crate::output::print(format_args!("{}\n", format_args!($($text)*))); }};
}

pub(crate) use say;

/// Prints at once; whether somebody may still read it.
pub(crate) fn print(text: Arguments<'_>) -> bool {
    let mut out = std::io::stdout().lock();
    out.write_fmt(text).and_then(|()| out.flush()).is_ok()
}
