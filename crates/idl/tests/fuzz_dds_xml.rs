//! Seeded fuzzing of DDS-XML types on stable Rust.

mod idl_fuzzing;
#[path = "../../proto/tests/text_fuzzing/mod.rs"]
mod text_fuzzing;

use text_fuzzing::Random;

/// What DDS-XML is made of, and what it is not.
const PARTS: &[&str] = &[
    "<types>",
    "</types>",
    "<dds>",
    "</dds>",
    "<type>",
    "</type>",
    "<module name=\"M\">",
    "</module>",
    "<struct name=\"S\">",
    "<struct name=\"T\" baseType=\"S\">",
    "<struct name=\"A::B\" nested=\"true\">",
    "</struct>",
    "<member name=\"x\" type=\"int32\"/>",
    "<member name=\"y\" type=\"string\" stringMaxLength=\"8\"/>",
    "<member name=\"z\" type=\"nonBasic\" nonBasicTypeName=\"S\" sequenceMaxLength=\"-1\"/>",
    "<member name=\"m\" type=\"float32\" mapKeyType=\"int8\" mapMaxLength=\"B\"/>",
    "<member name=\"q\" type=\"map\"><key type=\"int8\"/><value type=\"string\"/></member>",
    "<member",
    "name=\"w\"",
    "type=\"uint8\"",
    "type=\"byte\"",
    "key=\"true\"",
    "optional=\"1\"",
    "id=\"7\"",
    "arrayDimensions=\"2, 3\"",
    "sequenceMaxLength=\"2 + 1\"",
    "stringMaxLength=\"-1\"",
    "external=\"true\"",
    "default=\"3\"",
    "default=\"&quot;x&quot;\"",
    "min=\"0\"",
    "max=\"9\"",
    "unit=\"m\"",
    "tryConstruct=\"trim\"",
    "extensibility=\"mutable\"",
    "autoid=\"hash\"",
    "hashid=\"x\"",
    "mustUnderstand=\"true\"",
    "/>",
    ">",
    "<",
    "</member>",
    "<union name=\"U\">",
    "</union>",
    "<discriminator type=\"int32\"/>",
    "<discriminator type=\"char8\" key=\"true\"/>",
    "<case>",
    "</case>",
    "<caseDiscriminator value=\"1\"/>",
    "<caseDiscriminator value=\"default\"/>",
    "<enum name=\"E\" bitBound=\"8\">",
    "<enumerator name=\"A1\" value=\"1\"/>",
    "<enumerator name=\"A2\"/>",
    "</enum>",
    "<bitmask name=\"F\" bitBound=\"16\">",
    "<flag name=\"L\" position=\"3\"/>",
    "</bitmask>",
    "<bitset name=\"G\">",
    "<bitfield name=\"a\" bitBound=\"3\"/>",
    "<bitfield bit_bound=\"4\" type=\"int16\"/>",
    "</bitset>",
    "<typedef name=\"N\" type=\"string\" sequenceMaxLength=\"3\"/>",
    "<const name=\"K\" type=\"int32\" value=\"1 &lt;&lt; 2\"/>",
    "<include file=\"b.xml\"/>",
    "<include file=\"a.xml\"/>",
    "<forward_dcl kind=\"struct\" name=\"S\"/>",
    "<annotate name=\"key\">",
    "</annotate>",
    "<verbatim language=\"comment\"><text>x ]]&gt; */ \"</text></verbatim>",
    "<annotation name=\"P\"/>",
    "<!-- c -->",
    "<!--",
    "-->",
    "<![CDATA[ x ]]>",
    "&amp;",
    "&#65;",
    "&x;",
    "<?xml version=\"1.0\"?>",
    "<!DOCTYPE x>",
    "é",
    "\u{0}",
    "\"",
    "'",
    "=",
    " ",
];

/// Sensible beginnings, in parts that `|` separates.
const EXAMPLES: &[&str] = &[
    "<types>|<struct name=\"S\">|<member name=\"x\" type=\"int32\"/>|</struct>|<struct name=\"T\" baseType=\"S\">|<member|name=\"w\"|type=\"uint8\"|/>|</struct>|</types>",
    "<dds>|<types>|<include file=\"b.xml\"/>|<enum name=\"E\" bitBound=\"8\">|<enumerator name=\"A1\" value=\"1\"/>|</enum>|<union name=\"U\">|<discriminator type=\"int32\"/>|<case>|<caseDiscriminator value=\"1\"/>|<member|name=\"w\"|type=\"byte\"|/>|</case>|</union>|</types>|</dds>",
    "<types>|<module name=\"M\">|<bitmask name=\"F\" bitBound=\"16\">|<flag name=\"L\" position=\"3\"/>|</bitmask>|<bitset name=\"G\">|<bitfield name=\"a\" bitBound=\"3\"/>|</bitset>|</module>|<typedef name=\"N\" type=\"string\" sequenceMaxLength=\"3\"/>|</types>",
];

#[test]
fn fuzz_dds_xml() {
    text_fuzzing::fuzz(text, |text| idl_fuzzing::run("a.xml", text));
}

fn text(random: &mut Random) -> String {
    let mut parts: Vec<&str> = match random.below(8) {
        0 => Vec::new(),
        _ => EXAMPLES[random.below(EXAMPLES.len())].split('|').collect(),
    };
    text_fuzzing::change(random, &mut parts, PARTS, 20);
    parts.join(if random.below(8) == 0 { "" } else { " " })
}
