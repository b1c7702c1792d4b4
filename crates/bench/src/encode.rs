//! What encoding costs: a plain structure in one copy, and the same members one by one.

use std::hint::black_box;
use std::time::Instant;

use plainsong::Result;
use plainsong::cdr::{Endianness, XcdrVersion, to_payload};
use plainsong::prelude::*;

const ROUNDS: u32 = 5_000_000;

macro_rules! pose {
    ($name:ident $(#[$attribute:meta])*) => {
        #[derive(Clone, Copy, DdsType)]
        #[dds(name = "Pose", final)]
        $(#[$attribute])*
        struct $name {
            position: [f64; 3],
            orientation: [f64; 4],
            sequence: u32,
            flags: u32,
            quality: f32,
            age: f32,
            covariance: [f64; 36],
        }

        impl $name {
            const fn some() -> Self {
                Self {
                    position: [1.0; 3],
                    orientation: [0.5; 4],
                    sequence: 1,
                    flags: 2,
                    quality: 0.5,
                    age: 0.25,
                    covariance: [0.125; 36],
                }
            }
        }
    };
}

pose!(Plain #[repr(C)]);
pose!(ByMember);

pub(super) fn measure() -> Result<()> {
    let (plain, by_member) = (time(&Plain::some())?, time(&ByMember::some())?);
    println!("encode {} octets plain_ns {plain:.1} by_member_ns {by_member:.1}", size_of::<Plain>());
    Ok(())
}

/// Nanoseconds to encode a sample into a buffer that has room.
fn time<T: DdsType>(sample: &T) -> Result<f64> {
    let mut buffer = Vec::new();
    let begin = Instant::now();
    for _ in 0..ROUNDS {
        buffer.clear();
        to_payload(black_box(sample), XcdrVersion::Xcdr2, Endianness::Little, &mut buffer)
            .map_err(|error| crate::failed(error.to_string()))?;
        black_box(&buffer);
    }
    Ok(begin.elapsed().as_nanos() as f64 / f64::from(ROUNDS))
}
