//! What a steady `take_into` costs: no allocation, for samples whose type is bounded.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod common;
#[path = "../../proto/tests/counting/mod.rs"]
mod counting;

use common::{Pair, Point, until};
use plainsong::prelude::*;

const SAMPLES: u32 = 500;
/// After so many all memory is there.
const STEADY_AFTER: u32 = 100;

#[test]
fn a_steady_take_into_memory_of_the_caller_allocates_nothing() {
    let pair = Pair::<Point>::new(QosSet::writer().keep_last(8), QosSet::reader().reliable().keep_last(8));
    let mut samples = Vec::with_capacity(SAMPLES as usize);
    for number in 0..SAMPLES {
        pair.writer.write(&Point { id: number % 4, x: number.into(), y: 0.0 }).unwrap();
        until("it is taken", || {
            let take = || pair.reader.take_into(&Selector::default(), &mut samples).unwrap();
            let (_, allocated) = counting::allocated_by(take);
            assert!(number < STEADY_AFTER || allocated.calls == 0, "sample {number}: {allocated:?}");
            samples.len() > number as usize
        });
    }
    assert!(
        samples.iter().zip(0..SAMPLES).all(|(sample, number)| {
            sample.data.as_ref().is_some_and(|point| point.x == f64::from(number))
        })
    );
}
