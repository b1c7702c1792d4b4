//! Seeded fuzzing of QoS profiles on stable Rust.

mod qos_xml_fuzzing;
#[path = "../../proto/tests/text_fuzzing/mod.rs"]
mod text_fuzzing;

use text_fuzzing::Random;

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
    text_fuzzing::fuzz(text, qos_xml_fuzzing::run);
}

fn text(random: &mut Random) -> String {
    let mut parts: Vec<&str> = match random.below(4) {
        0 => Vec::new(),
        _ => EXAMPLE.split_inclusive('\n').collect(),
    };
    text_fuzzing::change(random, &mut parts, PARTS, 50);
    let mut text = parts.concat();
    if random.below(3) == 0 {
        let at = random.below(text.len() + 1);
        if text.is_char_boundary(at) {
            text.truncate(at);
        }
    }
    text
}
