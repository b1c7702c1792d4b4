//! What hostile QoS profiles cost: work and memory grow with the document and no faster, whatever is in it.
//!
//! Counted are the allocations and their octets: every element read, base followed and value inherited makes
//! some.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

#[path = "../../proto/tests/counting/mod.rs"]
mod counting;

use counting::Allocated;
use plainsong::qos_provider::QosProvider;

/// Octets of the smaller document of each shape.
const SMALL: usize = 60_000;
/// How much larger the other is.
const TIMES: usize = 8;

fn library(contents: &str) -> String {
    format!("<qos_library name=\"L\">{contents}</qos_library>")
}

/// As many as fit into a document of so many octets.
fn repeated(octets: usize, part: impl Fn(usize) -> String) -> String {
    let mut text = String::new();
    for number in 0.. {
        let next = part(number);
        if text.len() + next.len() > octets {
            break;
        }
        text.push_str(&next);
    }
    text
}

fn profile(number: usize, base: &str, contents: &str) -> String {
    format!("<qos_profile name=\"P{number}\" base_name=\"{base}\">{contents}</qos_profile>")
}

fn properties(names: std::ops::Range<usize>) -> String {
    let one = |name| format!("<element><name>{name:030}</name></element>");
    let all: String = names.map(one).collect();
    format!("<datawriter_qos><property><value>{all}</value></property></datawriter_qos>")
}

/// Chains as long as allowed, one after the other; each link says something.
fn chains(octets: usize, contents: &str) -> String {
    let link = |number: usize| {
        let base = if number.is_multiple_of(32) { "Root".to_owned() } else { format!("P{}", number - 1) };
        // The first of each chain has no base.
        profile(number, &base, contents).replace(" base_name=\"Root\"", "")
    };
    library(&repeated(octets, link))
}

/// A document of that shape and about so many octets.
type Shape = fn(usize) -> String;

/// Documents that are read to their end.
const READ: [(&str, Shape); 7] = [
    ("many elements", |octets| {
        library(&repeated(octets, |number| profile(number, "P0", "").replace(" base_name=\"P0\"", "")))
    }),
    ("long text", |octets| library(&format!("<!--{}-->", "x".repeat(octets)))),
    ("references", |octets| {
        library(&format!("<qos_profile name=\"P\">{}</qos_profile>", "&#32;".repeat(octets / 5)))
    }),
    ("chains", |octets| chains(octets, "<datawriter_qos/>")),
    ("chains of deadlines", |octets| {
        chains(octets, "<datawriter_qos><deadline><period><sec>9</sec></period></deadline></datawriter_qos>")
    }),
    ("properties replaced again and again", |octets| chains(octets, &properties(0..30))),
    ("topic filters", |octets| {
        let filter = |number| format!("<datawriter_qos topic_filter=\"*a*a*a{number}\"/>");
        library(&format!("<qos_profile name=\"P\">{}</qos_profile>", repeated(octets, filter)))
    }),
];

/// Documents in which something is wrong, and what.
const REFUSED: [(&str, Shape, &str); 7] = [
    ("deep", |octets| "<a>".repeat(octets / 3), "elements are inside each other"),
    (
        "many attributes",
        |octets| format!("<qos_library {}/>", repeated(octets, |number| format!("a{number}='' "))),
        "attributes",
    ),
    ("a long name", |octets| format!("<qos_library {}=''/>", "x".repeat(octets)), "has no attribute"),
    ("no end", |octets| library(&"<qos_profile name='P'>".repeat(octets / 22)), "inside each other"),
    (
        "a cycle of bases",
        |octets| {
            let count = octets / 60;
            library(
                &(0..count).map(|it| profile(it, &format!("P{}", (it + 1) % count), "")).collect::<String>(),
            )
        },
        "inherit",
    ),
    (
        "an unknown base",
        |octets| library(&repeated(octets, |number| profile(number, "Nobody", ""))),
        "no profile",
    ),
    (
        "a large value that all inherit and another hides",
        |octets| {
            let value = "AAAA".repeat(octets / 8);
            let base = format!(
                "<qos_profile name=\"Z\"><datawriter_qos><user_data><valueB64>{value}</valueB64></user_data>\
                 </datawriter_qos></qos_profile>"
            );
            let hides =
                profile(0, "Z", "<datawriter_qos><user_data><value>1</value></user_data></datawriter_qos>");
            let heir = |number| profile(number + 1, "P0", "<datawriter_qos/>");
            library(&format!("{base}{hides}{}", repeated(octets / 2, heir)))
        },
        "too much is inherited",
    ),
];

/// What reading it allocates, and the outcome.
fn cost(text: &str) -> (Result<usize, String>, Allocated) {
    counting::allocated_by(|| {
        let provider = QosProvider::from_text(text);
        provider.map(|provider| provider.profiles().count()).map_err(|error| error.to_string())
    })
}

#[test]
fn work_and_memory_grow_with_the_document_and_no_faster() {
    for (name, shape) in READ {
        let [small, large] = [SMALL, SMALL * TIMES].map(|octets| {
            let text = shape(octets);
            let (outcome, allocated) = cost(&text);
            assert!(outcome.is_ok(), "{name}: {outcome:?}");
            println!("{name}, {} octets: {allocated:?}", text.len());
            assert!(allocated.octets <= 200 * text.len(), "{name}: {allocated:?}");
            allocated
        });
        assert!(large.calls <= 2 * TIMES * small.calls.max(8), "{name}: {small:?}, {large:?}");
        assert!(large.octets <= 2 * TIMES * small.octets.max(64), "{name}: {small:?}, {large:?}");
    }
}

#[test]
fn what_is_refused_costs_no_more_than_what_is_read() {
    for (name, shape, message) in REFUSED {
        let text = shape(SMALL * TIMES);
        let (outcome, allocated) = cost(&text);
        println!("{name}, {} octets: {allocated:?}, {:.99}", text.len(), outcome.clone().unwrap_err());
        assert!(outcome.unwrap_err().contains(message), "{name}");
        assert!(allocated.octets <= 200 * text.len(), "{name}: {allocated:?}");
    }
}

#[test]
fn a_document_of_several_megabytes_is_refused_at_once() {
    let (outcome, allocated) = cost(&chains(4_000_000, "<datawriter_qos/>"));
    assert!(outcome.unwrap_err().contains("octets, 1048576 are read"));
    assert!(allocated.octets < 4_096, "{allocated:?}");
}
