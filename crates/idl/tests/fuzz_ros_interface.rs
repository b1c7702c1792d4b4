//! Seeded fuzzing of messages of ROS 2 on stable Rust.

mod idl_fuzzing;
#[path = "../../proto/tests/text_fuzzing/mod.rs"]
mod text_fuzzing;

use text_fuzzing::Random;

/// What messages are made of, and what they are not.
const PARTS: &[&str] = &[
    "int32",
    "uint8",
    "string",
    "wstring",
    "bool",
    "byte",
    "char",
    "float64",
    "B",
    "p/B",
    "p/msg/B",
    "A",
    "time",
    "string<=3",
    "int8[]",
    "int8[2]",
    "B[<=4]",
    "string<=2[3]",
    "[",
    "]",
    "<=",
    "x",
    "y",
    "z",
    "X",
    "_x",
    "=",
    "=1",
    "=-7",
    "='a # b'",
    "=\"q\\\"",
    "1",
    "-1",
    "0x7f",
    "0b11",
    "1.5",
    "1e400",
    "nan",
    "true",
    "False",
    "\"t\"",
    "'",
    "\"",
    "[1, 2]",
    "# c",
    "#",
    "\n",
    "\n",
    "\n",
    "\n---\n",
    "\r\n",
    "\t",
    " ",
    "é",
    "\u{0}",
    "module",
    "default",
    "sequence",
];

/// Sensible beginnings, in parts.
const EXAMPLES: &[&str] = &[
    "# all\n|\n|int32 |x| 5 |\n|B| |y|\n|uint8 |X|=1|# one\n",
    "string<=3| |x|\n|p/B|[<=4] |z|\n|string |X|='a # b'|\n",
];

#[test]
fn fuzz_ros_interface() {
    text_fuzzing::fuzz(text, |text| idl_fuzzing::run("p/msg/A.msg", text));
}

fn text(random: &mut Random) -> String {
    let mut parts: Vec<&str> = match random.below(4) {
        0 => Vec::new(),
        _ => EXAMPLES[random.below(EXAMPLES.len())].split('|').collect(),
    };
    text_fuzzing::change(random, &mut parts, PARTS, 20);
    parts.join(if random.below(2) == 0 { "" } else { " " })
}
