//! Content filters and queries: the grammar, the type check, and every verdict against a naive evaluator.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::cmp::Ordering;

use plainsong_derive::DdsType;
use plainsong_proto::cdr::{Endianness, FieldPath, FieldValue, XcdrVersion, to_payload};
use plainsong_proto::filter::{DEPTH_MAX, EXPRESSION_BYTES_MAX, Filter, PARAMETERS_MAX, TERMS_MAX};
use proptest::prelude::*;

#[derive(DdsType, Debug, Clone, Copy, Default, PartialEq)]
#[dds(crate = "plainsong_proto")]
enum Mode {
    #[default]
    Idle,
    Moving = 5,
}

#[derive(DdsType, Debug, Clone, Default, PartialEq)]
#[dds(crate = "plainsong_proto")]
struct Pose {
    speed: f64,
    mode: Mode,
}

#[derive(DdsType, Debug, Clone, Default, PartialEq)]
#[dds(crate = "plainsong_proto")]
struct Robot {
    #[dds(key)]
    name: String,
    x: i32,
    y: u64,
    pose: Pose,
    armed: bool,
    grade: char,
    load: Option<i16>,
    track: Vec<u8>,
    next: Option<Box<Self>>,
}

fn robot() -> Robot {
    Robot {
        name: "R2".into(),
        x: -3,
        y: u64::MAX,
        pose: Pose { speed: 2.5, mode: Mode::Moving },
        armed: true,
        grade: 'B',
        ..Robot::default()
    }
}

fn passes(expression: &str, parameters: &[&str]) -> bool {
    let parameters: Vec<_> = parameters.iter().map(ToString::to_string).collect();
    let filter = Filter::<Robot>::condition(expression, &parameters);
    filter.unwrap_or_else(|error| panic!("{expression}: {error}")).passes(&robot())
}

fn refusal(expression: &str, parameters: &[&str]) -> String {
    let parameters: Vec<_> = parameters.iter().map(ToString::to_string).collect();
    Filter::<Robot>::condition(expression, &parameters).expect_err(expression).to_string()
}

#[test]
fn comparisons_of_every_kind() {
    for expression in [
        "name = 'R2'",
        "'R2' = name",
        "name = `R2`",
        "name = `R2'",
        "name <> 'R''2'",
        "x != 3",
        "x < -2 AND x <= -3 and x > -4 And x >= -3.0",
        "x = -0x3 and y = 18446744073709551615 and y > 1.8446744073709551615e19 or x = -3",
        "x BETWEEN -3 AND 0",
        "x NOT BETWEEN -2 AND 0",
        "name BETWEEN 'R1' AND 'R3'",
        "x < y",
        "pose.speed = 2.5 and pose.speed > 2 and 3 > pose.speed and pose.speed < 3e0 and pose.speed > .5",
        "pose.speed > x",
        "pose.mode = 'Moving' and pose.mode <> 'Idle' and pose.mode = 5 and pose.mode = `Moving`",
        "armed = TRUE and armed <> false",
        "grade = 'B' and grade < 'C' and grade LIKE '_'",
        "name LIKE 'R%' and name not like '%3' and name MATCH 'C*,R[0-9]'",
        "NOT x = 3 AND NOT (x = 4 OR name = 'C3')",
        "x = 3 OR x = 4 OR x = -3 AND armed = TRUE",
        "((x = 3 OR x = -3)) AND NOT NOT armed = TRUE",
    ] {
        assert!(passes(expression, &[]), "{expression}");
    }
    for expression in ["NOT (x = 3 OR x = -3)", "x = 3 AND armed = TRUE OR x = 4", "y < x", "name = 'r2'"] {
        assert!(!passes(expression, &[]), "{expression}");
    }
}

#[test]
fn parameters_are_values_of_their_place() {
    assert!(passes("name = %1 AND x BETWEEN %0 AND %0", &["-3", "'R2'"]));
    assert!(passes("pose.mode = %0 AND pose.speed < %2 AND armed = %1", &["'Moving'", "true", "+3.5"]));
    assert!(passes("name LIKE %99", &std::array::from_fn::<_, 100, _>(|_| "'R%'")));
    assert!(
        refusal("x = %1", &["3"])
            .contains("at column 5: %1 has no value: 1 parameter is given, %0; it needs 2")
    );
    assert!(refusal("name = %0", &["R2"]).contains("quote strings"));
    assert!(refusal("x = %0", &["'3'"]).contains("expected a number, found the value of %0, the string '3'"));
    assert!(refusal("x = %0", &["3 4"]).contains("is no number"));
}

#[test]
fn an_absent_member_is_neither_equal_nor_different() {
    for expression in ["load = 3", "load <> 3", "NOT load = 3", "NOT load <> 3", "next.x = 3", "next.x = x"] {
        assert!(!passes(expression, &[]), "{expression}");
    }
    assert!(passes("load = 3 OR x = -3", &[]));
    let chain = Robot { next: Some(Box::new(robot())), load: Some(3), ..robot() };
    let filter = Filter::<Robot>::condition("next.pose.speed = 2.5 AND load = 3", &[]).unwrap();
    assert!(filter.passes(&chain));
}

#[test]
fn not_a_number_only_differs() {
    let lost = Robot { pose: Pose { speed: f64::NAN, ..Pose::default() }, ..robot() };
    let holds = |expression| Filter::<Robot>::condition(expression, &[]).unwrap().passes(&lost);
    assert!(holds("pose.speed <> 1") && holds("NOT pose.speed = 1.0"));
    assert!(!holds("pose.speed = 1") && !holds("pose.speed < 1") && !holds("pose.speed BETWEEN 0 AND 9"));
}

#[test]
fn mistakes_are_told_with_their_column() {
    for (expression, complaint) in [
        (
            "colour = 'RED'",
            "at column 1: the type Robot has no member 'colour'; its members are name, x, y, pose",
        ),
        (
            "x = 1 AND pose.color = 2",
            "at column 11: the type Pose has no member 'color'; its members are speed, mode",
        ),
        ("x.y = 1", "'x.y' asks for a member 'y' of what is no structure"),
        ("pose = 1", "'pose' is a structure, Pose: compare one of its members"),
        ("track = 1", "'track' cannot be compared"),
        ("name = 5", "at column 8: expected a string in quotes, found the number 5"),
        ("x = 'five'", "expected a number, found the string 'five'"),
        ("armed = 1", "expected TRUE or FALSE"),
        ("grade = 'AB'", "expected one character in quotes"),
        ("pose.mode = 'Flying'", "expected one of 'Idle', 'Moving'"),
        ("name = x", "'name' is a string, 'x' is an integer: they do not compare"),
        ("1 = 1", "one side of a comparison has to be a member of Robot"),
        ("x LIKE '3%'", "'x' is an integer; patterns are for strings"),
        ("name LIKE x", "expected a value or a parameter, found 'x'"),
        ("x = ", "at column 5: expected a member, a value or a parameter, found the end"),
        ("x", "expected a comparison, as in x = 1, found the end"),
        ("x NOT 3", "expected BETWEEN, LIKE or MATCH, found the number 3"),
        ("(x = 3", "at column 7: expected AND, OR or ')', found the end"),
        ("x = 3)", "expected AND, OR, ORDER BY or the end, found ')'"),
        ("x BETWEEN 1 OR 2", "expected AND and the upper bound of BETWEEN, found OR"),
        ("'a' LIKE 'b'", "LIKE needs the name of a member before it"),
        ("x == 3", "'==' is no comparison"),
        ("x = 3..4", "'3..4' is no number"),
        ("x = 0xg", "a hexadecimal number is 0x and 1 to 16 digits"),
        ("name = 'R2", "at column 8: the string that begins here has no closing quote"),
        ("x = %100", "'%100' is no parameter: those are %0 to %99"),
        ("é = 3 AND x ; 3", "at column 13: ';' has no meaning here"),
        ("", "a filter needs a condition"),
        ("x = 3 ORDER BY x", "a filter has no ORDER BY"),
    ] {
        let found = refusal(expression, &[]);
        assert!(found.contains(complaint), "{expression}: {found}");
    }
}

#[test]
fn queries_sort() {
    let filter = Filter::<Robot>::query("ORDER BY pose.speed, name", &[]).unwrap();
    let with = |speed: f64, name: &str| Robot {
        name: name.into(),
        pose: Pose { speed, ..Pose::default() },
        ..Robot::default()
    };
    let mut robots = [with(2.0, "a"), with(1.0, "c"), with(1.0, "b")];
    robots.sort_by(|left, right| filter.compare(left, right));
    let names: Vec<_> = robots.iter().map(|robot| robot.name.as_str()).collect();
    assert_eq!(names, ["b", "c", "a"]);
    assert!(filter.passes(&robots[0]), "without a condition everything passes");
    let by_load = Filter::<Robot>::query("x > 0 ORDER BY load", &[]).unwrap();
    let loaded = Robot { load: Some(-5), ..Robot::default() };
    assert_eq!(by_load.compare(&Robot::default(), &loaded), Ordering::Less, "absent comes first");
    for wrong in ["ORDER", "ORDER BY", "ORDER BY x,", "ORDER BY 3", "ORDER BY z", "BY x"] {
        assert!(Filter::<Robot>::query(wrong, &[]).is_err(), "{wrong}");
    }
}

#[test]
fn serialized_samples_are_filtered_as_they_come() {
    let filter = Filter::<Robot>::condition("name = 'R2'", &[]).unwrap();
    for version in [XcdrVersion::Xcdr1, XcdrVersion::Xcdr2] {
        let mut payload = Vec::new();
        to_payload(&robot(), version, Endianness::Big, &mut payload).unwrap();
        assert!(filter.passes_payload(&payload));
        to_payload(&Robot::default(), version, Endianness::Little, &mut payload).unwrap();
    }
    let mut payload = Vec::new();
    to_payload(&Robot::default(), XcdrVersion::Xcdr2, Endianness::Little, &mut payload).unwrap();
    assert!(!filter.passes_payload(&payload));
    assert!(filter.passes_payload(b"nonsense"), "left for the reader to count");
}

#[test]
fn r15_expressions_cannot_exhaust_the_stack() {
    let nested = |depth: usize| format!("{}x = 1{}", "(".repeat(depth), ")".repeat(depth));
    assert!(Filter::<Robot>::condition(&nested(DEPTH_MAX), &[]).is_ok());
    assert!(
        refusal(&nested(DEPTH_MAX + 1), &[]).contains("at column 33: parentheses and NOTs are nested deeper")
    );
    let negated = |depth: usize| format!("{}x = -3", "NOT ".repeat(depth));
    assert!(passes(&negated(DEPTH_MAX), &[]));
    assert!(refusal(&negated(DEPTH_MAX + 1), &[]).contains("nested deeper"));
    // NOTs that are done with do not count.
    assert!(passes(&vec!["NOT x = 3"; 200].join(" AND "), &[]));
    // As many values waiting as there can be.
    let waiting = format!("{}x = -3{}", "x = 3 OR x = -3 AND (".repeat(DEPTH_MAX), ")".repeat(DEPTH_MAX));
    assert!(passes(&waiting, &[]));
}

#[test]
fn r15_expressions_are_bounded() {
    let long = format!("x = 1{}", " ".repeat(EXPRESSION_BYTES_MAX));
    assert!(refusal(&long, &[]).contains("more than 4096 octets"));
    assert!(passes(&vec!["x=-3"; TERMS_MAX].join(" OR "), &[]));
    assert!(refusal(&vec!["x=-3"; TERMS_MAX + 1].join(" OR "), &[]).contains("more than 256 comparisons"));
    assert!(
        refusal("x = 1", &["1"; PARAMETERS_MAX + 1])
            .contains("101 parameters are given, and there may be 100")
    );
    assert!(
        refusal("x = 1", &[&"1".repeat(257)]).contains("the value of %0 has 257 octets, and may have 256")
    );
    assert!(refusal(&format!("{}x = 1", "next.".repeat(16)), &[]).contains("more than 16 steps"));
}

/// An expression as a tree, and what it means.
#[derive(Debug, Clone)]
enum Tree {
    Compare(&'static str, &'static str, i64),
    Flipped(i64, &'static str, &'static str),
    Between(&'static str, bool, i64, i64),
    Name(String),
    Not(Box<Self>),
    And(Box<Self>, Box<Self>),
    Or(Box<Self>, Box<Self>),
}

impl Tree {
    /// With parentheses only where `wanted` or precedence asks for them.
    fn text(&self, parentheses: bool) -> String {
        let part = |tree: &Self, binds: bool| {
            let text = tree.text(parentheses);
            if parentheses || binds { format!("({text})") } else { text }
        };
        match self {
            Self::Compare(field, relation, value) => format!("{field} {relation} {value}"),
            Self::Flipped(value, relation, field) => format!("{value}{relation}{field}"),
            Self::Between(field, inside, low, high) => {
                format!("{field} {}BETWEEN {low} AND {high}", if *inside { "" } else { "NOT " })
            }
            Self::Name(name) => format!("name = '{name}'"),
            Self::Not(tree) => format!("NOT {}", part(tree, matches!(**tree, Self::And(..) | Self::Or(..)))),
            Self::And(left, right) => format!(
                "{} AND {}",
                part(left, matches!(**left, Self::Or(..))),
                part(right, matches!(**right, Self::Or(..)))
            ),
            Self::Or(left, right) => format!("{} OR {}", part(left, false), part(right, false)),
        }
    }

    fn means(&self, robot: &Robot) -> bool {
        let number = |field: &str| if field == "x" { robot.x as i64 } else { robot.y as i64 };
        let holds = |left: i64, relation: &str, right: i64| match relation {
            "=" => left == right,
            "<>" | "!=" => left != right,
            "<" => left < right,
            "<=" => left <= right,
            ">" => left > right,
            _ => left >= right,
        };
        match self {
            Self::Compare(field, relation, value) => holds(number(field), relation, *value),
            Self::Flipped(value, relation, field) => holds(*value, relation, number(field)),
            Self::Between(field, inside, low, high) => (*low..=*high).contains(&number(field)) == *inside,
            Self::Name(name) => robot.name == *name,
            Self::Not(tree) => !tree.means(robot),
            Self::And(left, right) => left.means(robot) && right.means(robot),
            Self::Or(left, right) => left.means(robot) || right.means(robot),
        }
    }
}

fn trees() -> impl Strategy<Value = Tree> {
    let field = prop::sample::select(vec!["x", "y"]);
    let relation = prop::sample::select(vec!["=", "<>", "!=", "<", "<=", ">", ">="]);
    let leaf = prop_oneof![
        (field.clone(), relation.clone(), -2..6_i64).prop_map(|(f, r, v)| Tree::Compare(f, r, v)),
        (-2..6_i64, relation, field.clone()).prop_map(|(v, r, f)| Tree::Flipped(v, r, f)),
        (field, any::<bool>(), -2..6_i64, -2..6_i64).prop_map(|(f, i, l, h)| Tree::Between(f, i, l, h)),
        "[ab]{0,2}".prop_map(Tree::Name),
    ];
    leaf.prop_recursive(5, 40, 2, |inner| {
        prop_oneof![
            inner.clone().prop_map(|tree| Tree::Not(Box::new(tree))),
            (inner.clone(), inner.clone()).prop_map(|(l, r)| Tree::And(Box::new(l), Box::new(r))),
            (inner.clone(), inner).prop_map(|(l, r)| Tree::Or(Box::new(l), Box::new(r))),
        ]
    })
}

/// Looks for a fit by trying everything.
fn naive_like(pattern: &[char], text: &[char]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some(('%', rest)) => (0..=text.len()).any(|skip| naive_like(rest, &text[skip..])),
        Some(('_', rest)) => !text.is_empty() && naive_like(rest, &text[1..]),
        Some((first, rest)) => text.first() == Some(first) && naive_like(rest, &text[1..]),
    }
}

proptest! {
    #[test]
    fn filters_mean_what_the_naive_evaluator_says(
        tree in trees(),
        parentheses: bool,
        x in -2..6_i32,
        y in 0..6_u64,
        name in "[ab]{0,2}",
    ) {
        let robot = Robot { name, x, y, ..Robot::default() };
        let text = tree.text(parentheses);
        let filter = Filter::<Robot>::condition(&text, &[]).unwrap_or_else(|error| panic!("{text}: {error}"));
        prop_assert_eq!(filter.passes(&robot), tree.means(&robot), "{}", text);
    }

    #[test]
    fn like_means_what_trying_everything_says(pattern in "[ab%_]{0,7}", name in "[ab]{0,7}") {
        let robot = Robot { name: name.clone(), ..Robot::default() };
        let filter = Filter::<Robot>::condition(&format!("name LIKE '{pattern}'"), &[]).unwrap();
        let (pattern, text): (Vec<_>, Vec<_>) = (pattern.chars().collect(), name.chars().collect());
        prop_assert_eq!(filter.passes(&robot), naive_like(&pattern, &text));
    }
}

#[test]
fn r15_patterns_say_what_they_cost() {
    let steps = |expression: &str| Filter::<Robot>::condition(expression, &[]).unwrap().steps_per_octet();
    assert_eq!(steps("x > 3 AND name = 'a long name'"), 0);
    assert_eq!(steps("name LIKE 'R%2' OR NOT name MATCH 'a*,b[cd]'"), 3 + 2 + 2);
}

#[test]
fn members_are_set_by_name_when_the_value_suits() {
    let mut sample = Robot::default();
    let mut set = |name: &str, value: FieldValue<'_>| {
        let (path, _) = FieldPath::find::<Robot>(name).unwrap();
        path.set(&mut sample, value)
    };
    assert!(set("name", FieldValue::Text("R2")));
    assert!(set("x", FieldValue::Integer(-3)));
    assert!(set("y", FieldValue::Integer(u64::MAX.into())));
    assert!(set("pose.speed", FieldValue::Float(2.5)));
    assert!(set("pose.mode", FieldValue::Integer(5)));
    assert!(set("armed", FieldValue::Boolean(true)));
    assert!(set("grade", FieldValue::Character('B')));
    assert!(set("load", FieldValue::Integer(7)));
    assert!(set("next.x", FieldValue::Integer(1)));
    assert!(!set("x", FieldValue::Integer(1 << 31)), "beyond its range");
    assert!(!set("pose.mode", FieldValue::Integer(1)), "no such literal");
    assert!(!set("name", FieldValue::Integer(1)), "another kind");
    let next = Some(Box::new(Robot { x: 1, grade: '\0', ..Robot::default() }));
    assert_eq!(sample, Robot { load: Some(7), next, ..robot() });
}
