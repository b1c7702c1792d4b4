//! Statistics against values that are known.

use hdrhistogram::serialization::{Serializer, V2DeflateSerializer, V2Serializer};

use super::bootstrap::{Estimate, Pool, seed_of};
use super::compare::{Dominance, compare, magnitude, normal_above};
use super::smooth::{cumulative, smoothed};
use super::trend::{Step, bend, knee, slope};
use super::*;

fn of(values: &[u64]) -> Distribution {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    Distribution::of_counts(sorted.into_iter().map(|value| (value, 1)))
}

fn close(found: f64, expected: f64, within: f64) {
    assert!((found - expected).abs() <= within, "{found} is not {expected} within {within}");
}

#[test]
fn a_percentile_needs_ten_values_above_it() {
    assert!(!is_supported(50.0, 19) && is_supported(50.0, 20));
    assert!(!is_supported(99.0, 999) && is_supported(99.0, 1000));
    assert!(!is_supported(99.9, 9_999) && is_supported(99.9, 10_000));
    assert!(!is_supported(99.9999, 9_999_999) && is_supported(99.9999, 10_000_000));
    assert!(is_supported(0.0, 1) && is_supported(100.0, 1) && !is_supported(100.0, 0));
    let hundred = of(&(1..=100).collect::<Vec<_>>());
    assert_eq!(hundred.percentile(90.0), Some(90));
    assert_eq!(hundred.percentile(95.0), None);
    assert_eq!(hundred.percentile(0.0), Some(1));
    assert_eq!(hundred.percentile(100.0), Some(100));
}

#[test]
fn moments_are_those_of_the_values() {
    let values = of(&[2, 4, 4, 4, 5, 5, 7, 9]);
    assert_eq!(values.mean(), Some(5.0));
    assert_eq!(values.deviation(), Some(2.0));
    // Distances from the median 4: 2 0 0 0 1 1 3 5.
    assert_eq!(values.median_absolute_deviation(), Some(1));
    assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
    assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    assert_eq!(median(&[]), None);
}

#[test]
fn nothing_measured_gives_nothing() {
    let nothing = Distribution::default();
    assert_eq!((nothing.mean(), nothing.deviation(), nothing.quantile(0.5)), (None, None, None));
    assert_eq!(nothing.median_absolute_deviation(), None);
    assert!(compare(&nothing, &of(&[1])).is_none());
    assert!(Estimate::of_quantile(&Pool::new(std::slice::from_ref(&nothing)), 0.5, 1).is_none());
    assert!(smoothed(&nothing, 0.0, 1.0, 10).is_empty() && cumulative(&nothing, 0.0, 1.0, 10).is_empty());
}

#[test]
fn merging_is_counting_everything_again() {
    let merged = Distribution::merge(&[of(&[1, 1, 5]), of(&[1, 9])]);
    assert_eq!(merged.counts().collect::<Vec<_>>(), [(1, 3), (5, 1), (9, 1)]);
    assert_eq!((merged.count_at_most(0), merged.count_at_most(5), merged.count_at_most(100)), (0, 4, 5));
}

#[test]
fn histograms_are_decoded_in_both_forms() {
    let mut histogram: Histogram<u64> = Histogram::new(3).unwrap();
    for value in [1_000, 1_000, 25_000, 1_000_000_000] {
        histogram.record(value).unwrap();
    }
    let mut deflated = Vec::new();
    V2DeflateSerializer::new().serialize(&histogram, &mut deflated).unwrap();
    let mut plain = Vec::new();
    V2Serializer::new().serialize(&histogram, &mut plain).unwrap();
    let again = super::deflated(&STANDARD.encode(&plain)).into_owned();
    assert!(again.starts_with("HISTFAAA"), "the prefix of every deflated V2 histogram: {again}");
    assert_eq!(super::deflated(&again), again, "it is deflated already");
    assert_eq!(super::deflated("something else"), "something else");
    for octets in [&deflated, &plain, &STANDARD.decode(again).unwrap()] {
        let distribution = Distribution::decode(&STANDARD.encode(octets)).unwrap();
        assert_eq!(distribution.count(), 4);
        close(distribution.quantile(0.5).unwrap() as f64, 1_000.0, 1.0);
        close(distribution.quantile(1.0).unwrap() as f64, 1e9, 1e6);
    }
    for cut in 0..deflated.len() {
        // Cut anywhere, it is an error or a histogram, never a panic.
        let _ = Distribution::decode(&STANDARD.encode(&deflated[..cut]));
        let _ = Distribution::decode(&STANDARD.encode(plain.get(..cut).unwrap_or(&plain)));
    }
    assert!(Distribution::decode("not base64!").is_err());
    let mut greedy = plain.clone();
    greedy[4..8].copy_from_slice(&0x7fff_ffff_u32.to_be_bytes());
    assert!(Distribution::decode(&STANDARD.encode(greedy)).unwrap_err().contains("cut off"));
}

#[test]
fn the_normal_tail_is_that_of_the_tables() {
    close(normal_above(0.0), 0.5, 1e-7);
    close(normal_above(1.96), 0.024_997_9, 1e-7);
    close(normal_above(-1.0), 0.841_344_7, 1e-7);
}

#[test]
fn ranks_and_curves_are_compared_as_the_textbooks_do() {
    // scipy.stats.mannwhitneyu([19,22,16,29,24], [20,11,17,12]): U = 17, asymptotic p = 0.11134688653314041.
    let found = compare(&of(&[19, 22, 16, 29, 24]), &of(&[20, 11, 17, 12])).unwrap();
    close(found.delta, 2.0 * 17.0 / 20.0 - 1.0, 1e-12);
    close(found.rank_p, 0.111_346_886_533, 1e-7);
    close(found.distance, 0.6, 1e-12);
    // With ties: U of {1,2,2,3} over {2,3,3,4} is 2.5, variance 16/12 (9 - 48/56), z = 5/3.2958.
    let tied = compare(&of(&[1, 2, 2, 3]), &of(&[2, 3, 3, 4])).unwrap();
    close(tied.delta, 2.0 * 3.0 / 16.0 - 1.0, 1e-12);
    let same = compare(&of(&[1, 2, 3]), &of(&[1, 2, 3])).unwrap();
    assert_eq!((same.delta, same.rank_p, same.distance, same.distance_p), (0.0, 1.0, 0.0, 1.0));
    assert_eq!(same.dominance, Dominance::Neither);
}

#[test]
fn the_kolmogorov_tail_is_that_of_the_tables() {
    // Two samples of 100 000 whose curves differ by 1.358 / sqrt(50 000) at most: p = 0.05.
    let first = Distribution::of_counts([(1, 50_607), (2, 49_393)]);
    let second = Distribution::of_counts([(1, 50_000), (2, 50_000)]);
    close(compare(&first, &second).unwrap().distance_p, 0.05, 0.001);
}

#[test]
fn dominance_needs_curves_that_do_not_cross() {
    let fast = Distribution::of_counts([(10, 500), (20, 400), (30, 100)]);
    let slow = Distribution::of_counts([(15, 500), (25, 400), (35, 100)]);
    let wide = Distribution::of_counts([(5, 500), (60, 500)]);
    assert_eq!(compare(&fast, &slow).unwrap().dominance, Dominance::FirstSmaller);
    assert_eq!(compare(&slow, &fast).unwrap().dominance, Dominance::SecondSmaller);
    assert_eq!(compare(&fast, &wide).unwrap().dominance, Dominance::Neither);
    assert_eq!(
        (magnitude(-0.1), magnitude(0.2), magnitude(0.4), magnitude(-0.9)),
        ("negligible", "small", "medium", "large")
    );
}

#[test]
fn confidence_needs_three_repetitions_and_is_the_same_each_time() {
    assert_eq!(Estimate::of_mean(&[1.0, 2.0], 7).unwrap().interval, None);
    let numbers = [10.0, 11.0, 12.0, 13.0, 14.0];
    let estimate = Estimate::of_mean(&numbers, seed_of("cell")).unwrap();
    assert_eq!(estimate.value, 12.0);
    let (low, high) = estimate.interval.unwrap();
    // The standard error of the bootstrap mean is sqrt(2 / 5) = 0.632: 12 ± 1.24.
    close(low, 10.8, 0.25);
    close(high, 13.2, 0.25);
    assert_eq!(Estimate::of_mean(&numbers, seed_of("cell")), Some(estimate));
    assert_eq!(Estimate::of_mean(&[1.0, f64::NAN], 7), None);
}

#[test]
fn the_quantile_of_repetitions_is_that_of_their_merged_histogram() {
    let parts: Vec<Distribution> =
        (0..5).map(|shift| of(&(100 + shift..200 + shift).collect::<Vec<_>>())).collect();
    let estimate = Estimate::of_quantile(&Pool::new(&parts), 0.5, 3).unwrap();
    assert_eq!(Some(estimate.value as u64), Distribution::merge(&parts).quantile(0.5));
    let (low, high) = estimate.interval.unwrap();
    assert!(low >= 149.0 && low < estimate.value && high > estimate.value && high <= 154.0, "{low} {high}");
    let slower: Vec<Distribution> =
        (0..5).map(|shift| of(&(200 + shift..300 + shift).collect::<Vec<_>>())).collect();
    let slower = Estimate::of_quantile(&Pool::new(&slower), 0.5, 4).unwrap();
    let ratio = slower.ratio_to(&estimate).unwrap();
    close(ratio.value, 251.0 / 151.0, 0.01);
    let (low, high) = ratio.interval.unwrap();
    assert!(low > 1.6 && high < 1.72, "{low} {high}");
}

#[test]
fn a_slope_ignores_outliers_and_knows_when_it_is_nothing() {
    let mut line: Vec<(f64, f64)> = (0..50).map(|x| (f64::from(x), 3.0 * f64::from(x))).collect();
    line[20].1 = 1e6;
    let found = slope(&line).unwrap();
    close(found.value, 3.0, 1e-9);
    assert!(found.rises() && found.low <= 3.0 && found.high >= 3.0);
    let noise: Vec<(f64, f64)> = (0..50).map(|x| (f64::from(x), f64::from((x * 37) % 11))).collect();
    assert!(!slope(&noise).unwrap().rises());
    assert!(slope(&line[..4]).is_none());
    let long: Vec<(f64, f64)> = (0..100_000).map(|x| (f64::from(x), 2.0 * f64::from(x))).collect();
    close(slope(&long).unwrap().value, 2.0, 1e-9);
}

#[test]
fn theil_sen_agrees_with_a_worked_example() {
    // Heights 1, 2, 4, 3, 6, 8 at 0 to 5. The 15 slopes, sorted: -1, 1/2, 2/3, 1, 1, 5/4, 4/3, 4/3, 7/5, ...,
    // 3; the eighth is 4/3.
    let points: Vec<(f64, f64)> =
        [1.0, 2.0, 4.0, 3.0, 6.0, 8.0].iter().enumerate().map(|(x, &y)| (x as f64, y)).collect();
    close(slope(&points).unwrap().value, 4.0 / 3.0, 1e-9);
}

fn step(target: f64, received: f64, lost_percent: f64) -> Step {
    Step { target, sent: target, received, lost_percent, ..Step::default() }
}

#[test]
fn the_knee_is_the_last_step_that_was_kept_up_with() {
    let ramp = [
        step(1000.0, 1000.0, 0.0),
        step(2000.0, 1995.0, 0.2),
        step(3000.0, 2700.0, 10.0),
        step(4000.0, 3999.0, 0.0),
        step(5000.0, 4000.0, 0.0),
        step(6000.0, 4000.0, 0.0),
        step(7000.0, 7000.0, 0.0),
    ];
    let found = knee(&ramp).unwrap();
    assert_eq!((found.step, found.rate, found.reached), (3, 4000.0, true), "one missed step is none");
    assert_eq!(knee(&ramp[..3]).map(|found| found.rate), Some(2000.0), "unless it is the last");
    assert!(!knee(&ramp[..2]).unwrap().reached);
    assert_eq!(knee(&ramp[2..3]), None);
    assert_eq!(knee(&[]), None);
}

#[test]
fn latency_bends_where_it_leaves_the_floor() {
    let curve: Vec<(f64, f64)> =
        [20.0, 20.0, 21.0, 22.0, 30.0, 200.0].iter().enumerate().map(|(x, &y)| (x as f64, y)).collect();
    assert_eq!(bend(&curve), Some(4));
    let straight: Vec<(f64, f64)> = (0..10).map(|x| (f64::from(x), f64::from(x))).collect();
    assert_eq!(bend(&straight), None);
}

#[test]
fn smoothing_ends_at_the_same_heights_and_gives_nothing_below_zero() {
    let values = Distribution::of_counts((1..=1000).map(|value| (value, 10)));
    let curve = smoothed(&values, 0.0, 2000.0, 100);
    close(curve[0].1, 0.0, 1e-6);
    close(curve[25].1, 0.5, 0.005);
    close(curve[100].1, 1.0, 1e-3);
    assert!(curve.windows(2).all(|pair| pair[1].1 >= pair[0].1 - 1e-9));
    let steps = cumulative(&values, 0.0, 2000.0, 50);
    assert!(steps.len() <= 53 && steps.last().unwrap().1 == 1.0, "{}", steps.len());
}
