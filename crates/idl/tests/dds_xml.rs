//! DDS-XML types: they are those of the IDL that says the same, and errors have places.

use plainsong_idl::{Backend, Compilation, Compiler, Diagnostics, Idl, Memory, Model, Options};

fn compile(files: &Memory, path: &str) -> Compilation {
    Compiler::new().include("inc").compile_from(files, &[path])
}

/// Compiles both, and compares.
fn assert_same(xml: &str, idl: &str) -> Compilation {
    let files = Memory::new().with("a.xml", xml).with("a.idl", idl);
    let (found, expected) = (compile(&files, "a.xml"), compile(&files, "a.idl"));
    let expected = expected.model.as_ref().unwrap_or_else(|| panic!("{}", expected.render()));
    let model = found.model.as_ref().unwrap_or_else(|| panic!("{}", found.render()));
    assert!(model == expected, "{}\n{}", idl_of(model), idl_of(expected));
    found
}

fn idl_of(model: &Model) -> String {
    let files = Idl.generate(model, &Options::default(), &mut Diagnostics::default());
    files.into_iter().map(|file| file.text).collect()
}

#[test]
fn everything_of_the_standard_is_what_idl_says() {
    let xml = r#"<?xml version="1.0" encoding="UTF-8"?>
<dds:types xmlns:dds="http://www.omg.org/dds">
  <const name="SIZE" type="int32" value="2 + 3"/>
  <const name="TOPIC" type="string" value="&quot;Pumps&quot;"/>
  <module name="plant" autoid="hash">
    <forward_dcl kind="struct" name="Node"/>
    <enum name="Mode" bitBound="16">
      <enumerator name="IDLE" value="1"/>
      <enumerator name="ON" value="SIZE + 1" defaultLiteral="true"/>
      <enumerator name="NEXT"/>
    </enum>
    <bitmask name="Status" bitBound="8">
      <flag name="READY" position="0"/>
      <flag name="BROKEN" position="5"/>
    </bitmask>
    <bitset name="Packed"><bitfield name="a" bitBound="3" type="uint8"/><bitfield bitBound="5"/></bitset>
    <typedef name="Names" type="string" stringMaxLength="SIZE" sequenceMaxLength="-1"/>
    <struct name="Node" extensibility="mutable" nested="true">
      <member name="next" type="nonBasic" nonBasicTypeName="Node" sequenceMaxLength="-1"/>
    </struct>
  </module>
  <struct name="Base" extensibility="final"><member name="id" type="uint32" key="true" id="7"/></struct>
  <struct name="Pump" baseType="Base" extensibility="final">
    <verbatim language="comment" placement="before-declaration"><text>A pump &amp; all.</text></verbatim>
    <member name="a" type="float64" optional="true" min="0.0" max="2.5" unit="m/s"/>
    <member name="b" type="nonBasic" nonBasicTypeName="plant::Mode" default="plant::ON"/>
    <member name="c" type="int16" arrayDimensions=" 2, SIZE " mustUnderstand="true"/>
    <member name="d" type="wstring" stringMaxLength="8" tryConstruct="trim"/>
    <member name="e" type="float32" mapKeyType="string" mapKeyStringMaxLength="9" mapMaxLength="6 * 3"/>
    <member name="f" type="byte" sequenceMaxLength="4" arrayDimensions="3" external="true"/>
    <member name="g" type="string" default="text"/>
    <member name="h" type="boolean" nonSerialized="true"><annotate name="default"><member name="value" value="TRUE"/></annotate></member>
  </struct>
  <union name="Value" extensibility="appendable">
    <discriminator type="nonBasic" nonBasicTypeName="plant::Mode" key="true"/>
    <case><caseDiscriminator value="plant::IDLE"/><caseDiscriminator value="plant::NEXT"/>
      <member name="number" type="int64"/></case>
    <case><caseDiscriminator value="default"/><member name="other" type="nonBasic" nonBasicTypeName="Pump"/></case>
  </union>
</dds:types>"#;
    let idl = r#"
const long SIZE = 2 + 3;
const string TOPIC = "Pumps";
@autoid(HASH) module plant {
    struct Node;
    @bit_bound(16) enum Mode { @value(1) IDLE, @value(6) @default_literal ON, NEXT };
    @bit_bound(8) bitmask Status { READY, @position(5) BROKEN };
    bitset Packed { bitfield<3, uint8> a; bitfield<5>; };
    typedef sequence<string<SIZE>> Names;
    @mutable @nested struct Node { sequence<Node> next; };
};
@final struct Base { @key @id(7) unsigned long id; };
@verbatim(language="comment", text="A pump & all.")
@final struct Pump : Base {
    @optional @min(0.0) @max(2.5) @unit("m/s") double a;
    @default(plant::ON) plant::Mode b;
    @must_understand short c[2][5];
    @try_construct(TRIM) wstring<8> d;
    map<string<9>, float, 18> e;
    @external sequence<octet, 4> f[3];
    @default("text") string g;
    @non_serialized @default(TRUE) boolean h;
};
@appendable union Value switch (@key plant::Mode) {
    case plant::IDLE: case plant::NEXT: long long number;
    default: Pump other;
};
"#;
    let found = assert_same(xml, idl);
    assert_eq!(found.render(), "", "nothing is to be said of it");
}

#[test]
fn names_of_other_products_are_understood() {
    let xml = r#"<?xml version="1.0" encoding="iso-8859-1"?>
<dds xmlns="http://www.eprosima.com"><profiles/><types>
  <type><bitmask name="Mask" bit_bound="8"><bit_value name="a" position="2"/><bit_value name="b"/></bitmask></type>
  <type><bitset name="Bits"><bitfield bit_bound="10" name="x" type="int16"/></bitset></type>
  <type><typedef name="Inner" type="int32" key_type="uint8" mapMaxLength="2"/>
    <struct name="One::Two::Fast"><member name="a" type="uLong"/><member name="b" type="nonBasic" nonBasicTypeName="Inner"/></struct></type>
  <struct name="Rti" topLevel="false"><member name="a" id="-1" type="unsignedLongLong"/>
    <member name="b" type="long" sequenceMaxLength="-1"/></struct>
  <bitmask name="Flags"><flag name="LOW" value="3"/></bitmask>
  <struct name="Open"><member name="a" type="map" mapMaxLength="3"><key type="uint32"/><value type="string"/></member></struct>
</types></dds>"#;
    let idl = "@bit_bound(8) bitmask Mask { @position(2) a, b };
bitset Bits { bitfield<10, short> x; };
typedef map<uint8, long, 2> Inner;
module One { module Two { struct Fast { unsigned long a; Inner b; }; }; };
@nested struct Rti { unsigned long long a; sequence<long> b; };
bitmask Flags { @position(3) LOW };
struct Open { map<unsigned long, string, 3> a; };";
    assert_same(xml, idl);
}

#[test]
fn files_include_one_another_once() {
    let files = Memory::new()
        .with("a.xml", "<types><include file='b.xml'/><include file='c.xml'/><struct name='A'><member name='b' type='nonBasic' nonBasicTypeName='B'/></struct></types>")
        .with("b.xml", "<types><include file='a.xml'/><struct name='B'><member name='x' type='int32'/></struct></types>")
        .with("inc/c.xml", "<types><include file='missing.xml'/></types>");
    let compilation = compile(&files, "a.xml");
    let said = compilation.render();
    assert!(compilation.model.is_none());
    assert_eq!(compilation.diagnostics.errors(), 1, "{said}");
    assert!(said.contains("--> inc/c.xml:1:23") && said.contains("included from a.xml:1"), "{said}");
    assert!(said.contains("looked for inc/missing.xml"), "{said}");
    let files = files.with("inc/c.xml", "<types/>");
    let compilation = compile(&files, "a.xml");
    let model = compilation.model.as_ref().unwrap_or_else(|| panic!("{}", compilation.render()));
    let included = model.definitions().map(|(id, it)| (it.full_name(), model.is_included(id)));
    assert_eq!(included.collect::<Vec<_>>(), [("B".to_owned(), true), ("A".to_owned(), false)]);
}

#[test]
fn errors_have_place_and_cure() {
    let mut wrong = String::new();
    for (xml, expected) in [
        (
            "<types><struct name='A'><member name='b' type='int23'/></struct></types>",
            ":1:48 did you mean `int16`?",
        ),
        (
            "<types><struct name='A'><member name='b' type='Point'/></struct></types>",
            ":1:48 nonBasicTypeName=\"Point\"",
        ),
        (
            "<types><struct name='A'><member name='b' type='nonBasic' nonBasicTypeName='P'/></struct></types>",
            ":1:76 the type `P` is unknown",
        ),
        (
            "<types><struct name='A'><member name='b' type='string' stringMaxLength='2 +'/></struct></types>",
            ":1:76 expected a value, found the end of the value",
        ),
        ("<types>\n<strut name='A'/></types>", ":2:2 did you mean `<struct>`?"),
        (
            "<types><struct name='A b'><member name='b' type='int8'/></struct></types>",
            ":1:22 \"A b\" is no name",
        ),
        ("<types><union name='U'><case/></union></types>", ":1:25 this case has no `<caseDiscriminator>`"),
        ("<types><struct name='A'>", ":1:25 `</struct>` is missing"),
        ("<types><struct name='A'></types>", "this is no XML"),
        ("<dds/>", ":1:2 the document has no `<types>`"),
        ("<!DOCTYPE a><types/>", "a document type is refused"),
        (
            "<types><struct name='A'><member name='b' type='int8' key='yes'/></struct></types>",
            ":1:59 `key` is true or false",
        ),
        (
            "<types><struct name='A'><member name='a' type='int8' id='&#50;9999999999'/></struct></types>",
            ":1:58 `@id` is 0 to 268435455",
        ),
        (
            "<types><struct name='A'><member name='a' name='b' type='int8'/></struct></types>",
            ":1:48 the attribute `name` is there twice",
        ),
    ] {
        let compilation = compile(&Memory::new().with("a.xml", xml), "a.xml");
        let said = compilation.render();
        let (place, words) = match expected.strip_prefix(':') {
            Some(rest) => {
                rest.split_once(' ').map(|(place, words)| (format!("a.xml:{place}"), words)).unwrap()
            }
            None => (String::new(), expected),
        };
        assert!(compilation.model.is_none(), "{xml} compiles");
        if !(said.contains(&place) && said.contains(words)) {
            wrong += &format!("{xml}: expected {expected}\n{said}\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn depth_and_attributes_are_limited() {
    let deep = format!("<types>{}{}</types>", "<module name='m'>".repeat(100), "</module>".repeat(100));
    let many = (0..100).map(|number| format!(" a{number}='1'")).collect::<String>();
    let wide = format!("<types><struct name='A'{many}/></types>");
    for (xml, expected) in [(deep, "elements stand within one another"), (wide, "more than 64 attributes")] {
        let compilation = compile(&Memory::new().with("a.xml", xml), "a.xml");
        assert!(compilation.render().contains(expected), "{}", compilation.render());
    }
}
