//! Profiles as people write them, as other products write them, and as nobody should.

use plainsong_proto::cdr::XcdrVersion;
use plainsong_proto::qos::{
    AccessScope, DestinationOrder, Durability, EntityKind, HistoryKind, LENGTH_UNLIMITED, LivelinessKind,
    Ownership, POLICIES, Property, QosSet,
};
use plainsong_proto::time::Duration;

use super::schema::{ELEMENTS, elements_of};
use super::xml::{ATTRIBUTES_MAX, DEPTH_MAX, DOCUMENT_BYTES_MAX, ELEMENTS_MAX};
use super::*;

mod round_trip;

/// The profiles of a library "Lib" with these contents.
fn library(contents: &str) -> Result<QosProvider> {
    QosProvider::from_text(&format!("<qos_library name=\"Lib\">\n{contents}\n</qos_library>"))
}

/// The QoS of a writer with these policies.
fn writer(policies: &str) -> Result<QosSet> {
    library(&format!("<datawriter_qos name=\"P\">{policies}</datawriter_qos>"))?.writer_qos("Lib::P")
}

fn refusal(result: Result<impl Sized>) -> String {
    match result {
        Ok(_) => panic!("accepted"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn every_policy_has_an_element_where_it_applies() {
    for policy in POLICIES {
        let elements = ELEMENTS.iter().filter(|element| element.policy == policy.name);
        assert_eq!(elements.count(), 1, "{}", policy.name);
    }
    let names = |kind| elements_of(kind).map(|element| element.name).collect::<Vec<_>>();
    assert_eq!(names(EntityKind::Participant), ["user_data", "entity_factory", "property"]);
    assert_eq!(names(EntityKind::Subscriber), ["group_data", "presentation", "partition", "entity_factory"]);
}

const ROBOT: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<dds xmlns="http://www.omg.org/spec/DDS-XML"
     xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
     xsi:schemaLocation="http://www.omg.org/spec/DDS-XML dds-xml_dds_system_definitions.xsd">
  <types><struct name="Pose"><member name="x" type="float64"/></struct></types>
  <qos_library name="Base">
    <qos_profile name="Reliable" is_default_qos="true">
      <domain_participant_qos>
        <user_data><value>82, 0x6f, 98</value></user_data>
        <property><value>
          <element><name>team</name><value>blue &amp; white</value><propagate>true</propagate></element>
          <element><name>secret</name><value><![CDATA[<7>]]></value></element>
        </value></property>
      </domain_participant_qos>
      <publisher_qos>
        <presentation>
          <access_scope>TOPIC_PRESENTATION_QOS</access_scope>
          <coherent_access>true</coherent_access>
        </presentation>
        <partition><name><element>left</element><element>right*</element></name></partition>
        <group_data><valueB64>Zm9v</valueB64></group_data>
      </publisher_qos>
      <datawriter_qos>
        <reliability>
          <kind> RELIABLE_RELIABILITY_QOS </kind>
          <max_blocking_time><sec>1</sec><nanosec>500000000</nanosec></max_blocking_time>
        </reliability>
        <history><kind>KEEP_ALL_HISTORY_QOS</kind></history>
        <resource_limits>
          <max_samples>LENGTH_UNLIMITED</max_samples>
          <max_samples_per_instance>0x10</max_samples_per_instance>
          <initial_samples>128</initial_samples>
        </resource_limits>
      </datawriter_qos>
      <datareader_qos>
        <reliability><kind>RELIABLE_RELIABILITY_QOS</kind></reliability>
        <deadline><period><sec>DURATION_INFINITE_SEC</sec><nanosec>DURATION_INFINITE_NSEC</nanosec></period></deadline>
        <data_representation><value>
          <element>XCDR2_DATA_REPRESENTATION</element><element>XCDR_DATA_REPRESENTATION</element>
        </value></data_representation>
        <type_consistency><kind>DISALLOW_TYPE_COERCION</kind></type_consistency>
      </datareader_qos>
    </qos_profile>
  </qos_library>
  <qos_library name="Robot">
    <qos_profile name="State" base_name="Base::Reliable">
      <datawriter_qos topic_filter="Log*">
        <durability><kind>TRANSIENT_LOCAL_DURABILITY_QOS</kind></durability>
      </datawriter_qos>
      <datawriter_qos topic_filter="*Pose" base_name="Fast">
        <lifespan><duration><sec>3</sec></duration></lifespan>
      </datawriter_qos>
      <datawriter_qos><history><kind>KEEP_LAST_HISTORY_QOS</kind><depth>5</depth></history></datawriter_qos>
    </qos_profile>
    <qos_profile name="Fast">
      <datawriter_qos><reliability><kind>BEST_EFFORT_RELIABILITY_QOS</kind></reliability></datawriter_qos>
    </qos_profile>
    <datareader_qos name="Slow">
      <time_based_filter><minimum_separation><nanosec>1</nanosec></minimum_separation></time_based_filter>
    </datareader_qos>
  </qos_library>
</dds>"#;

#[test]
fn a_system_description_gives_its_profiles() {
    let profiles = QosProvider::from_text(ROBOT).unwrap();
    let names: Vec<_> = profiles.profiles().collect();
    assert_eq!(names, ["Base::Reliable", "Robot::Fast", "Robot::Slow", "Robot::State"]);
    assert_eq!(profiles.default_profile(), Some("Base::Reliable"));

    let participant = profiles.participant_qos("").unwrap();
    assert_eq!(participant.user_data, b"Rob");
    let property = |name: &str, value: &str, propagate| Property {
        name: name.to_owned(),
        value: value.to_owned(),
        propagate,
    };
    assert_eq!(
        participant.properties,
        [property("team", "blue & white", true), property("secret", "<7>", false)]
    );

    let publisher = profiles.publisher_qos("Base::Reliable").unwrap();
    assert_eq!(publisher.presentation.access_scope, AccessScope::Topic);
    assert!(publisher.presentation.coherent_access && !publisher.presentation.ordered_access);
    assert_eq!(publisher.partition, ["left", "right*"]);
    assert_eq!(publisher.group_data, b"foo");
    assert_eq!(profiles.subscriber_qos("Base::Reliable").unwrap(), QosSet::default());

    let reader = profiles.reader_qos("Robot::State").unwrap();
    assert!(reader.is_reliable());
    assert_eq!(reader.deadline, Duration::INFINITE);
    assert_eq!(reader.data_representation, [XcdrVersion::Xcdr2, XcdrVersion::Xcdr1]);
    assert!(!reader.type_consistency.allow_type_coercion);
    assert_eq!(profiles.reader_qos("Robot::Slow").unwrap().time_based_filter, Duration(1));
}

#[test]
fn fields_are_inherited_one_by_one_and_filters_choose_by_topic() {
    let profiles = QosProvider::from_text(ROBOT).unwrap();
    let writer = |topic| profiles.writer_qos_for_topic("Robot::State", topic).unwrap();
    let log = writer("Logbook");
    assert_eq!((log.durability, log.history.kind), (Durability::TransientLocal, HistoryKind::KeepAll));
    assert_eq!(log.reliability.max_blocking_time, Duration::from_millis(1500));
    assert_eq!(log.resource_limits.max_samples_per_instance, 16);
    assert_eq!(log.resource_limits.max_samples, LENGTH_UNLIMITED);
    // A base of its own takes the place of its profile's.
    let pose = writer("ArmPose");
    assert!(!pose.is_reliable());
    assert_eq!((pose.lifespan, pose.history.kind), (Duration::from_secs(3), HistoryKind::KeepLast));
    // The first filter that fits wins, whatever comes after.
    assert_eq!(writer("LogPose"), log);
    let other = writer("Other");
    assert!(other.is_reliable());
    assert_eq!((other.history.kind, other.history.depth), (HistoryKind::KeepLast, 5));
    assert_eq!(profiles.writer_qos("Robot::State").unwrap(), other);
}

#[test]
fn a_filter_for_all_topics_comes_before_no_filter() {
    let profiles = library(
        "<qos_profile name=\"A\">
           <datawriter_qos><history><depth>1</depth></history></datawriter_qos>
           <datawriter_qos topic_filter=\"*\"><history><depth>2</depth></history></datawriter_qos>
           <datawriter_qos topic_filter=\"T\"><history><depth>3</depth></history></datawriter_qos>
         </qos_profile>",
    )
    .unwrap();
    assert_eq!(profiles.writer_qos("Lib::A").unwrap().history.depth, 2);
    assert_eq!(profiles.writer_qos_for_topic("Lib::A", "T").unwrap().history.depth, 2, "in order");
    assert_eq!(profiles.reader_qos_for_topic("Lib::A", "T").unwrap(), QosSet::reader());
}

#[test]
fn what_no_profile_says_has_the_default_of_its_kind() {
    let profiles = library("<qos_profile name=\"Empty\"/>").unwrap();
    assert_eq!(profiles.writer_qos("Lib::Empty").unwrap(), QosSet::writer());
    assert_eq!(profiles.reader_qos("Lib::Empty").unwrap(), QosSet::reader());
    assert_eq!(profiles.topic_qos_for_topic("Lib::Empty", "T").unwrap(), QosSet::default());
    assert_eq!(profiles.default_profile(), None);
    assert_eq!(refusal(profiles.topic_qos("")), "no profile says is_default_qos: name a profile");
    assert_eq!(refusal(profiles.topic_qos("Empty")), "there is no profile Empty; did you mean Lib::Empty?");
}

#[test]
fn values_come_in_all_forms_of_the_standard() {
    let strength =
        |text: &str| writer(&format!("<ownership_strength><value>{text}</value></ownership_strength>"));
    for (text, number) in
        [("7", 7), ("-7", -7), ("0xff", 255), ("0xfffffffe", -2), ("0x80000000", i32::MIN), ("", 0)]
    {
        assert_eq!(strength(text).unwrap().ownership_strength, number, "{text}");
    }
    for text in ["2147483648", "0x100000000", "0x", "seven", "1.0", "0x+1", "--1"] {
        assert!(refusal(strength(text)).contains("is a number of 32 bits"), "{text}");
    }
    let lifespan = |parts: &str| writer(&format!("<lifespan><duration>{parts}</duration></lifespan>"));
    for (parts, duration) in [
        ("<sec>2</sec>", Duration::from_secs(2)),
        ("<nanosec>20</nanosec>", Duration(20)),
        ("<sec>DURATION_ZERO_SEC</sec><nanosec>999999999</nanosec>", Duration(999_999_999)),
        ("<sec>DURATION_INFINITY</sec>", Duration::INFINITE),
        ("<sec>DURATION_INFINITY</sec><nanosec>DURATION_INFINITY_NSEC</nanosec>", Duration::INFINITE),
        ("<nanosec>DURATION_INFINITE_NSEC</nanosec>", Duration::INFINITE),
        ("<sec>2147483647</sec><nanosec>2147483647</nanosec>", Duration::INFINITE),
    ] {
        assert_eq!(lifespan(parts).unwrap().lifespan, duration, "{parts}");
    }
    for (parts, reason) in [
        ("<sec>1</sec><nanosec>1000000000</nanosec>", "below 1000000000"),
        ("<sec>1</sec><nanosec>DURATION_INFINITY</nanosec>", "infinite <sec>"),
        ("<sec>-1</sec>", "not negative"),
        ("<second>1</second>", "did you mean sec?"),
        ("<sec>1</sec><sec>1</sec>", "twice"),
        ("5", "holds elements, no text"),
    ] {
        assert!(refusal(lifespan(parts)).contains(reason), "{parts}");
    }
    let octets = |text: &str| writer(&format!("<user_data><value>{text}</value></user_data>"));
    for (text, octets_there) in [
        ("", &[][..]),
        ("7", &[7]),
        (" 84, 104 ,0x71,0X0 ", &[84, 104, 0x71, 0]),
        ("0x71", &[0x71]),
        ("Zm9v", b"foo"),
        ("1234", &[0xd7, 0x6d, 0xf8]),
    ] {
        assert_eq!(octets(text).unwrap().user_data, octets_there, "{text}");
    }
    for text in ["256", "1,", ",", "-1", "0x100", "1 2", "?"] {
        assert!(refusal(octets(text)).contains("octets are numbers"), "{text}");
    }
}

#[test]
fn what_is_not_known_is_named_with_its_place_and_what_is_near() {
    for (policies, message) in [
        ("<histroy/>", "text:3:1: <histroy> is not known inside of <datawriter_qos>; did you mean history?"),
        (
            "<history><dept>1</dept></history>",
            "text:3:10: <dept> is not known inside of <history>; did you mean depth?",
        ),
        (
            "<history>\n  <kind>KEEP_LAST</kind></history>",
            "text:4:3: <kind> cannot be \"KEEP_LAST\"; did you mean KEEP_LAST_HISTORY_QOS?",
        ),
        (
            "<partition/>",
            "text:3:1: <datawriter_qos> has no PARTITION (DCPS 1.4 §2.2.3): put it where it belongs",
        ),
        ("<history depth='1'/>", "text:3:1: <history> has no attribute \"depth\""),
        ("<history/><history/>", "text:3:11: <history> is there twice"),
        ("<history>ä<depth>1</depth></history>", "text:3:1: <history> holds elements, no text"),
        ("<history><depth><x/></depth></history>", "text:3:17: <depth> holds a value, no elements"),
        (
            "<resource_limits><max_samples>0</max_samples></resource_limits>",
            "text:3:18: <max_samples> is at least 1, not 0; LENGTH_UNLIMITED means no limit",
        ),
        (
            "<writer_data_lifecycle><autodispose_unregistered_instances>True</autodispose_unregistered_instances></writer_data_lifecycle>",
            "text:3:24: <autodispose_unregistered_instances> is true or false, not \"True\"",
        ),
    ] {
        assert_eq!(refusal(writer(&format!("\n{policies}"))), message);
    }
    let unknown = refusal(library("<qos_profile name=\"P\"><participant_qos/></qos_profile>"));
    assert!(unknown.ends_with("did you mean domain_participant_qos?"), "{unknown}");
}

#[test]
fn contradictions_are_found_when_profiles_are_read() {
    let error = library(
        "<qos_profile name=\"Low\">
           <datawriter_qos>
             <resource_limits><max_samples_per_instance>2</max_samples_per_instance></resource_limits>
           </datawriter_qos>
         </qos_profile>
         <qos_profile name=\"High\" base_name=\"Low\">
           <datawriter_qos topic_filter=\"A*\">
             <history><depth>5</depth></history>
           </datawriter_qos>
         </qos_profile>",
    );
    assert_eq!(
        refusal(error),
        "text:9:23: inconsistent QoS: HISTORY: the depth must not exceed max_samples_per_instance"
    );
    let filters_meet = library(
        "<qos_profile name=\"Low\">
           <datawriter_qos topic_filter=\"A\">
             <resource_limits><max_samples_per_instance>2</max_samples_per_instance></resource_limits>
           </datawriter_qos>
         </qos_profile>
         <qos_profile name=\"High\" base_name=\"Low\">
           <datawriter_qos><history><depth>5</depth></history></datawriter_qos>
         </qos_profile>",
    )
    .unwrap();
    assert!(filters_meet.writer_qos_for_topic("Lib::High", "B").is_ok());
    assert!(
        refusal(filters_meet.writer_qos_for_topic("Lib::High", "A")).starts_with("text:8:37: inconsistent")
    );
}

#[test]
fn bases_that_do_not_exist_or_inherit_from_themselves_are_refused() {
    let unknown = library("<qos_profile name=\"A\" base_name=\"Libb::A\"/>");
    assert_eq!(refusal(unknown), "text:2:1: there is no profile Libb::A; did you mean Lib::A?");
    let itself = library("<qos_profile name=\"A\" base_name=\"A\"/>");
    assert_eq!(refusal(itself), "text:2:1: a profile inherits from itself: Lib::A -> Lib::A");
    let circle = library(
        "<qos_profile name=\"A\" base_name=\"B\"/>
         <qos_profile name=\"B\"><datareader_qos base_name=\"Lib::C\"/></qos_profile>
         <qos_profile name=\"C\" base_name=\"::Lib::A\"/>",
    );
    assert!(refusal(circle).contains("Lib::A -> Lib::B -> Lib::C -> Lib::A"));
    let chain = |count: usize| {
        let first = "<qos_profile name=\"P0\"/>".to_owned();
        let rest =
            (1..count).map(|index| format!("<qos_profile name=\"P{index}\" base_name=\"P{}\"/>", index - 1));
        library(&std::iter::once(first).chain(rest).collect::<String>())
    };
    assert!(chain(CHAIN_MAX).is_ok());
    assert!(refusal(chain(CHAIN_MAX + 1)).contains("more than 32 profiles inherit in a row"));
}

#[test]
fn two_of_a_name_two_defaults_and_two_for_all_topics_are_refused() {
    let twice = library("<qos_profile name=\"A\"/>\n<datareader_qos name=\"A\"/>");
    assert_eq!(refusal(twice), "text:3:1: the profile Lib::A exists already, at text:2:1");
    let defaults = library(
        "<qos_profile name=\"A\" is_default_qos=\"1\"/><qos_profile name=\"B\" is_default_qos=\"true\"/>",
    );
    assert!(refusal(defaults).contains("Lib::A is the default already"));
    let all = library("<qos_profile name=\"A\"><datawriter_qos/><datawriter_qos/></qos_profile>");
    assert!(refusal(all).contains("they apply to the same topics"));
    let filtered = library("<qos_profile name=\"A\"><publisher_qos topic_filter=\"*\"/></qos_profile>");
    assert!(refusal(filtered).contains("belongs to no topic"));
    assert!(refusal(library("<qos_profile/>")).contains("needs an attribute \"name\""));
    assert!(refusal(library("<qos_profile name=\"a b\"/>")).contains("name is made of"));
}

#[test]
fn properties_add_to_inherited_ones() {
    let of =
        |name: &str, value: &str| format!("<element><name>{name}</name><value>{value}</value></element>");
    let property = |elements: String| format!("<property><value>{elements}</value></property>");
    let profiles = library(&format!(
        "<qos_profile name=\"A\"><domain_participant_qos>{}</domain_participant_qos></qos_profile>
         <qos_profile name=\"B\" base_name=\"A\"><domain_participant_qos>{}</domain_participant_qos></qos_profile>",
        property(of("one", "1") + &of("two", "2")),
        property(of("two", "II") + &of("three", "3")),
    ))
    .unwrap();
    let properties = profiles.participant_qos("Lib::B").unwrap().properties;
    let told: Vec<_> = properties.iter().map(|it| format!("{}={}", it.name, it.value)).collect();
    assert_eq!(told, ["one=1", "two=II", "three=3"]);
    assert!(refusal(writer(&property(of("x", "") + &of("x", "")))).contains("\"x\" is there twice"));
    assert!(refusal(writer(&property("<element/>".into()))).contains("a property has a <name>"));
    assert!(refusal(writer(&property(of("x", "").repeat(65)))).contains("twice"));
    let many: String = (0..65).map(|index| of(&index.to_string(), "")).collect();
    assert!(refusal(writer(&property(many))).contains("at most 64 properties"));
}

#[test]
fn profiles_of_other_products_are_recognised() {
    for (text, what) in [
        (
            "<dds xmlns=\"http://www.eprosima.com/XMLSchemas/fastRTPS_Profiles\">\n<profiles><data_writer \
             profile_name=\"w\"/></profiles></dds>",
            "text:2:1: this looks like a Fast DDS profile (<profiles>)",
        ),
        (
            "<profiles><participant profile_name=\"p\"/></profiles>",
            "this looks like a Fast DDS profile (<profiles>)",
        ),
        (
            "<CycloneDDS xmlns=\"https://cdds.io/config\"><Domain/></CycloneDDS>",
            "this looks like the configuration of Cyclone DDS",
        ),
        (
            "<dds xmlns=\"http://www.omg.org/dds/\"><qos_profile name=\"P\"/></dds>",
            "this looks like a profile of DDS4CCM or OpenSplice",
        ),
        (
            "<dds xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" version=\"6.0.1\"
              xsi:noNamespaceSchemaLocation=\"https://community.rti.com/schema/6.0.1/rti_dds_profiles.xsd\">
              <qos_library name=\"L\"><qos_profile name=\"P\" base_name=\"BuiltinQosLib::Generic.Common\">
              <participant_qos/></qos_profile></qos_library></dds>",
            "did you mean domain_participant_qos? (this looks like a profile of RTI Connext",
        ),
        ("<html/>", "<html> holds no QoS profiles"),
        ("<qos_libary name=\"L\"/>", "did you mean qos_library?"),
    ] {
        let message = refusal(QosProvider::from_text(text));
        assert!(message.contains(what), "{message}");
    }
}

#[test]
fn r6_hostile_documents_are_refused_with_their_place() {
    let bomb = "<!DOCTYPE q [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;&a;\">]>\n<qos_library name=\"L\">&b;</qos_library>";
    let deep = "<a>".repeat(DEPTH_MAX + 1);
    let wide = format!("<qos_library name=\"L\">{}</qos_library>", "<b/>".repeat(ELEMENTS_MAX));
    let attributes: String = (0..=ATTRIBUTES_MAX).map(|index| format!(" a{index}=''")).collect();
    let many_attributes = format!("<qos_library{attributes}/>");
    let long = format!("<qos_library name=\"L\">{}</qos_library>", " ".repeat(DOCUMENT_BYTES_MAX));
    for (text, message) in [
        (bomb, "text:1:1: a document type is refused"),
        (&deep, "text:1:97: more than 32 elements are inside each other"),
        (&wide, "more than 20000 elements"),
        (&many_attributes, "text:1:1: an element has more than 16 attributes"),
        (&long, "text:1:1: the document has 1048"),
        ("<qos_library name=\"L\">\n &evil;</qos_library>", "text:2:2: the entity &evil; is not known"),
        ("<qos_library name=\"L\">&#0;</qos_library>", "text:1:23: "),
        ("<qos_library name=\"&evil;\"/>", "text:1:1: "),
        ("<qos_library name=\"L\" name=\"M\"/>", "the attribute name is there twice"),
        ("<qos_library name=\"L\">", "the document ends inside of <qos_library>"),
        ("<qos_library name=\"L\"></qos_lib>", "text:1:23: "),
        ("<qos_library name=\"L\"/><qos_library name=\"M\"/>", "text:1:24: a second element"),
        ("<qos_library name=\"L\"/>more", "text:1:24: text outside"),
        (
            "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><qos_library name=\"L\"/>",
            "the encoding must be UTF-8",
        ),
        ("", "text:1:1: the document has no element"),
        ("<qos_library name=\"L\"", "text:1:1: "),
        ("<!-- -- --><qos_library name=\"L\"/>", "text:1:"),
    ] {
        let refused = refusal(QosProvider::from_text(text));
        assert!(refused.contains(message), "{refused}");
    }
    assert!(QosProvider::from_text("\u{feff}<qos_library name=\"L\"/>").is_ok());
}

#[test]
fn files_are_read_with_limits_and_name_themselves_in_errors() {
    let folder = std::env::temp_dir().join(format!("plainsong-qos-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = |name: &str, octets: &[u8]| {
        let path = folder.join(name);
        std::fs::write(&path, octets).unwrap();
        path
    };
    let base = file(
        "base.xml",
        b"<qos_library name=\"Base\"><datareader_qos name=\"R\"><ownership>\
        <kind>EXCLUSIVE_OWNERSHIP_QOS</kind></ownership></datareader_qos></qos_library>",
    );
    let other = file(
        "other.xml",
        b"<qos_library name=\"Other\"><qos_profile name=\"R\" base_name=\"Base::R\"/></qos_library>",
    );
    let both = QosProvider::from_files(&[&other, &base]).unwrap();
    assert_eq!(both.reader_qos("Other::R").unwrap().ownership, Ownership::Exclusive);
    assert!(refusal(QosProvider::from_file(&other)).contains("other.xml:1:27: there is no profile Base::R"));
    let latin = file("latin.xml", b"<qos_library\n name=\"L\xe4\"/>");
    let refused = QosProvider::from_file(&latin).err().unwrap();
    assert_eq!((refused.line(), refused.column()), (Some(2), Some(9)));
    let large = file("large.xml", &vec![b' '; DOCUMENT_BYTES_MAX + 1]);
    assert!(refusal(QosProvider::from_file(&large)).contains("the file has more than 1048576 octets"));
    assert!(refusal(QosProvider::from_file(folder.join("none.xml"))).contains("none.xml: "));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn every_kind_has_its_literal() {
    let check = |policies: &str, holds: &dyn Fn(&QosSet) -> bool| {
        assert!(holds(&writer(policies).unwrap()), "{policies}");
    };
    check(
        "<destination_order><kind>BY_SOURCE_TIMESTAMP_DESTINATIONORDER_QOS</kind></destination_order>",
        &|qos| qos.destination_order == DestinationOrder::BySourceTimestamp,
    );
    check("<liveliness><kind>MANUAL_BY_TOPIC_LIVELINESS_QOS</kind></liveliness>", &|qos| {
        qos.liveliness.kind == LivelinessKind::ManualByTopic
    });
    check("<durability><kind>PERSISTENT_DURABILITY_QOS</kind></durability>", &|qos| {
        qos.durability == Durability::Persistent
    });
    check("<consistency><kind>ATOMIC_CONSISTENCY_QOS</kind></consistency>", &QosSet::is_atomic);
}

#[test]
fn consistency_of_an_unknown_kind_or_beside_what_it_excludes_is_refused() {
    let refused = |policies: &str| refusal(writer(policies));
    let unknown = refused("<consistency><kind>ATOMC_CONSISTENCY_QOS</kind></consistency>");
    let message = "<kind> cannot be \"ATOMC_CONSISTENCY_QOS\"; did you mean ATOMIC_CONSISTENCY_QOS?";
    assert!(unknown.contains(message), "{unknown}");
    let atomic = "<consistency><kind>ATOMIC_CONSISTENCY_QOS</kind></consistency>";
    let exclusive = refused(&format!("{atomic}<ownership><kind>EXCLUSIVE_OWNERSHIP_QOS</kind></ownership>"));
    assert!(exclusive.contains("OWNERSHIP: ") && exclusive.contains("use SHARED"), "{exclusive}");
}
