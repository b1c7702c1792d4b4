//! Seeded fuzzing of filter expressions on stable Rust. `PLAINSONG_FUZZ_SECONDS` says how long, default 1;
//! `PLAINSONG_FUZZ_SEED` repeats one run. Whatever the text: no panic, little memory, a column inside of it.

use std::env;
use std::time::{Duration, Instant};

use plainsong_derive::DdsType;
use plainsong_proto::filter::{Filter, TOPICS_MAX, TopicExpression};

mod counting;

#[derive(DdsType, Debug, Default)]
#[dds(crate = "plainsong_proto")]
struct Inner {
    real: f64,
    letter: char,
}

#[derive(DdsType, Debug, Default)]
#[dds(crate = "plainsong_proto")]
struct Sample {
    text: String,
    number: i32,
    flag: bool,
    inner: Inner,
    maybe: Option<u64>,
}

/// What expressions are made of, and what they are not.
const PARTS: &[&str] = &[
    "text",
    "number",
    "flag",
    "inner.real",
    "inner.letter",
    "maybe",
    "inner",
    "nothing",
    "=",
    "<>",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "(",
    "(",
    ")",
    ")",
    "AND",
    "OR",
    "NOT",
    "BETWEEN",
    "LIKE",
    "MATCH",
    "ORDER BY",
    "SELECT",
    "FROM",
    "NATURAL JOIN",
    "WHERE",
    "AS",
    "*",
    ";",
    ",",
    "TRUE",
    "false",
    "0",
    "-1",
    "1e9",
    "0xff",
    ".5",
    "'a'",
    "`b'",
    "'%_*'",
    "'[a-'",
    "'",
    "%0",
    "%1",
    "%99",
    "%100",
    "é",
    "\u{0}",
    "..",
    "9999999999999999999999999999999999999999",
    "1e999",
    "''''",
    "\n",
];

/// Sensible beginnings.
const EXAMPLES: &[&str] = &[
    "text = 'a' AND (number BETWEEN %0 AND 9 OR NOT inner.real < 2.5)",
    "text LIKE '%a_%' OR text MATCH 'a*,[b-c]?' AND flag = TRUE ORDER BY number, inner.letter",
    "NOT NOT ((maybe <> 3)) AND 3 > number",
];

/// Octets one run may allocate for each octet it was given, and at least.
const ALLOCATED_FACTOR: usize = 512;
const ALLOCATED_BASE: usize = 16 << 10;

#[test]
fn fuzz_filter() {
    let number = |name: &str| env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let end = Instant::now() + Duration::from_secs(number("PLAINSONG_FUZZ_SECONDS").unwrap_or(1));
    let only = number("PLAINSONG_FUZZ_SEED");
    let (mut runs, mut accepted) = (0_u64, 0_u64);
    for seed in only.map_or(0..=u64::MAX, |seed| seed..=seed) {
        if Instant::now() >= end {
            break;
        }
        let expression = expression(&mut Random::new(seed));
        let (result, allocated) = counting::allocated_by(|| std::panic::catch_unwind(|| run(&expression)));
        let Ok(compiled) = result else { panic!("{expression:?}; repeat with PLAINSONG_FUZZ_SEED={seed}") };
        let limit = ALLOCATED_BASE + ALLOCATED_FACTOR * expression.len();
        assert!(allocated.octets <= limit, "{allocated:?}; repeat with PLAINSONG_FUZZ_SEED={seed}");
        accepted += u64::from(compiled);
        runs += 1;
    }
    println!("{runs} runs, {accepted} expressions accepted");
    assert!(only.is_some() || accepted > 0, "all {runs} expressions were refused");
}

fn run(expression: &str) -> bool {
    let parameters = ["3".to_owned(), "'ab'".to_owned()];
    if let Ok(topics) = TopicExpression::parse(expression) {
        assert!((1..=TOPICS_MAX).contains(&topics.topics.len()));
        let _ = topics.condition::<Sample>(&parameters);
    }
    match Filter::<Sample>::query(expression, &parameters) {
        Ok(filter) => {
            let sample = Sample { text: "abcabc".to_owned(), number: 3, ..Sample::default() };
            let _ = filter.passes(&sample);
            assert!(filter.compare(&sample, &sample).is_eq());
            true
        }
        Err(error) => {
            assert!((1..=expression.chars().count() + 1).contains(&error.column), "{error}");
            false
        }
    }
}

fn expression(random: &mut Random) -> String {
    let mut words: Vec<&str> = match random.below(3) {
        0 => Vec::new(),
        _ => EXAMPLES[random.below(EXAMPLES.len())].split(' ').collect(),
    };
    let changes = if words.is_empty() { random.below(60) } else { random.below(5) };
    for _ in 0..changes {
        let at = random.below(words.len() + 1);
        let part = PARTS[random.below(PARTS.len())];
        match (random.below(3), words.get_mut(at)) {
            (0, Some(word)) => *word = part,
            (1, Some(_)) => drop(words.remove(at)),
            _ => words.insert(at, part),
        }
    }
    if random.below(20) == 0 {
        let part = PARTS[random.below(PARTS.len())];
        words.extend(std::iter::repeat_n(part, random.below(2000)));
    }
    words.join(if random.below(4) == 0 { "" } else { " " })
}

/// xorshift64*.
struct Random(u64);

impl Random {
    const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    const fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 8) as usize % limit
    }
}
