//! Seeded fuzzing of QoS profiles on stable Rust. `PLAINSONG_FUZZ_SECONDS` says how long, default 1;
//! `PLAINSONG_FUZZ_SEED` repeats one run.

use std::env;
use std::time::{Duration, Instant};

mod qos_xml_fuzzing;

/// What profiles are made of, and what they are not.
const PARTS: &[&str] = &[
    "<qos_library name=\"L\">",
    "</qos_library>",
    "<qos_profile name=\"P\">",
    "<qos_profile name=\"Q\" base_name=\"P\" is_default_qos=\"true\">",
    "</qos_profile>",
    "<datawriter_qos topic_filter=\"S*\">",
    "<datawriter_qos>",
    "</datawriter_qos>",
    "<datareader_qos base_name=\"L::Q\">",
    "</datareader_qos>",
    "<history>",
    "<kind>",
    "KEEP_ALL_HISTORY_QOS",
    "</kind>",
    "<depth>",
    "</depth>",
    "</history>",
    "<deadline><period>",
    "<sec>",
    "DURATION_INFINITY",
    "</sec>",
    "</period></deadline>",
    "<user_data><value>",
    "</value></user_data>",
    "<partition><name><element>",
    "</element></name></partition>",
    "<resource_limits/>",
    "LENGTH_UNLIMITED",
    "0x7fffffff",
    "-1",
    "1,2,0xff",
    "Zm9v",
    "&amp;",
    "&#x10ffff;",
    "&#0;",
    "&evil;",
    "<!DOCTYPE x>",
    "<!-- - -->",
    "<![CDATA[",
    "]]>",
    "<?xml version=\"1.0\"?>",
    "<?pi",
    "<",
    ">",
    "/>",
    "\"",
    "'",
    "=",
    " x=''",
    "\u{0}",
    "\n",
    "é",
    "::",
];

const EXAMPLE: &str = "<dds xmlns=\"http://www.omg.org/spec/DDS-XML\">\n<qos_library name=\"L\">\n\
    <qos_profile name=\"P\">\n<datawriter_qos topic_filter=\"S*\">\n<history>\n<depth>\n3\n</depth>\n</history>\n\
    </datawriter_qos>\n<datareader_qos>\n<deadline><period>\n<sec>\n1\n</sec>\n</period></deadline>\n\
    </datareader_qos>\n</qos_profile>\n<qos_profile name=\"Q\" base_name=\"P\">\n<datawriter_qos>\n\
    <resource_limits><max_samples>\nLENGTH_UNLIMITED\n</max_samples></resource_limits>\n</datawriter_qos>\n\
    </qos_profile>\n</qos_library>\n</dds>";

#[test]
fn fuzz_qos_xml() {
    let number = |name: &str| env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let end = Instant::now() + Duration::from_secs(number("PLAINSONG_FUZZ_SECONDS").unwrap_or(1));
    let only = number("PLAINSONG_FUZZ_SEED");
    let (mut runs, mut accepted) = (0_u64, 0_u64);
    for seed in only.map_or(0..=u64::MAX, |seed| seed..=seed) {
        if Instant::now() >= end {
            break;
        }
        let text = text(&mut Random::new(seed));
        let result = std::panic::catch_unwind(|| qos_xml_fuzzing::run(&text));
        let Ok(good) = result else { panic!("{text:?}; repeat with PLAINSONG_FUZZ_SEED={seed}") };
        accepted += u64::from(good);
        runs += 1;
    }
    println!("{runs} runs, {accepted} texts accepted");
    assert!(only.is_some() || accepted > 0, "all {runs} texts were refused");
}

fn text(random: &mut Random) -> String {
    let mut parts: Vec<&str> = match random.below(4) {
        0 => Vec::new(),
        _ => EXAMPLE.split_inclusive('\n').collect(),
    };
    let changes = if parts.is_empty() { random.below(60) } else { random.below(5) };
    for _ in 0..changes {
        let at = random.below(parts.len() + 1);
        let part = PARTS[random.below(PARTS.len())];
        match (random.below(3), parts.get_mut(at)) {
            (0, Some(old)) => *old = part,
            (1, Some(_)) => drop(parts.remove(at)),
            _ => parts.insert(at, part),
        }
    }
    if random.below(50) == 0 {
        let part = PARTS[random.below(PARTS.len())];
        parts.extend(std::iter::repeat_n(part, random.below(2000)));
    }
    let mut text = parts.concat();
    if random.below(3) == 0 {
        let at = random.below(text.len() + 1);
        if text.is_char_boundary(at) {
            text.truncate(at);
        }
    }
    text
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
