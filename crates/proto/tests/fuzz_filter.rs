//! Seeded fuzzing of filter expressions on stable Rust. Whatever the text: no panic, little memory, a column
//! inside of it.

use plainsong_derive::DdsType;
use plainsong_proto::filter::{Filter, TOPICS_MAX, TopicExpression};

mod counting;
mod text_fuzzing;

use text_fuzzing::Random;

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
    text_fuzzing::fuzz(expression, |expression| {
        let (compiled, allocated) = counting::allocated_by(|| run(expression));
        let limit = ALLOCATED_BASE + ALLOCATED_FACTOR * expression.len();
        assert!(allocated.octets <= limit, "{allocated:?}");
        compiled
    });
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
    text_fuzzing::change(random, &mut words, PARTS, 20);
    words.join(if random.below(4) == 0 { "" } else { " " })
}
