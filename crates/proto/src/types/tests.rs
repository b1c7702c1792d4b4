//! Types as data, against hostile ones: whatever octets say, work and memory are bounded and nothing panics.
#![allow(clippy::indexing_slicing, reason = "tests")]

use std::any::TypeId;
use std::sync::Arc;

use super::library::{TypeLibrary, TypeLimits};
use super::lookup::{REQUESTED_MAX, Request, RequestId, decode_reply, encode_reply, instance_of};
use super::*;
use crate::cdr::Cdr;
use crate::guid::{EntityId, Guid, GuidPrefix};
use crate::malformed::Malformed;

const PEER: GuidPrefix = GuidPrefix([1, 1, 7, 7, 0, 0, 0, 0, 0, 0, 0, 9]);
const OURS: GuidPrefix = GuidPrefix([1, 1, 7, 7, 0, 0, 0, 0, 0, 0, 0, 1]);

fn member(name: &'static str, id: u32, describe: Describe) -> MemberDescription {
    MemberDescription::new(name, id, describe)
}

fn about<T: 'static>(name: &'static str, extensibility: Extensibility) -> AggregateDescription {
    let rust_type = TypeId::of::<T>();
    AggregateDescription { rust_type, name, extensibility, hash_ids: false, nested: false }
}

fn bits<T: 'static>(name: &'static str, bit_bound: u16) -> BitsDescription {
    BitsDescription { rust_type: TypeId::of::<T>(), name, extensibility: None, bit_bound }
}

/// A structure with nearly everything in it.
fn sample() -> TypeDescription {
    struct Sample;
    struct Base;
    struct Mode;
    struct Choice;
    struct Mask;
    struct Set;
    fn base(types: &mut TypeBuilder) -> Option<TypeIdentifiers> {
        let members = [MemberDescription {
            key: true,
            bounds: &const { Bounds::of(Some(300)) },
            ..member("name", 0, String::describe)
        }];
        types.structure(&about::<Base>("Base", Extensibility::Appendable), None, &members)
    }
    fn mode(types: &mut TypeBuilder) -> Option<TypeIdentifiers> {
        types.enumeration(&bits::<Mode>("Mode", 8), &[("Off", 0, true), ("On", 1, false)])
    }
    fn mask(types: &mut TypeBuilder) -> Option<TypeIdentifiers> {
        let flags = [("READY", 0), ("BROKEN", 7)];
        let flags = flags.map(|(name, position)| FlagDescription { name, position });
        types.bitmask(&bits::<Mask>("Mask", 8), &flags)
    }
    fn set(types: &mut TypeBuilder) -> Option<TypeIdentifiers> {
        let field = |name, position, bits, holder| FieldDescription { name, position, bits, holder };
        let fields = [field("one", 0, 3, Primitive::Uint8), field("two", 5, 10, Primitive::Int16)];
        types.bitset(TypeId::of::<Set>(), "Set", &fields)
    }
    fn choice(types: &mut TypeBuilder) -> Option<TypeIdentifiers> {
        let case = |name, id, describe, labels, default| CaseDescription {
            member: member(name, id, describe),
            labels,
            default,
        };
        let cases = [
            case("number", 1, i32::describe as Describe, &[1, 2], false),
            case("rest", 2, String::describe, &[], true),
        ];
        let about =
            AggregateDescription { nested: true, ..about::<Choice>("Choice", Extensibility::Mutable) };
        let discriminator = MemberDescription {
            key: true,
            must_understand: true,
            try_construct: TryConstruct::UseDefault,
            ..member("discriminator", 0, i16::describe)
        };
        types.union(&about, &discriminator, &cases)
    }
    const NAMES: Bounds = Bounds { key: Some(&Bounds::of(Some(16))), ..Bounds::of(Some(20)) };
    let members = [
        MemberDescription { external: true, ..member("mode", 1, mode) },
        member("choices", 2, |types| choice(types).map(TypeIdentifiers::sequence)),
        member("grid", 3, |types| Some(f64::describe(types)?.array(3).array(400))),
        MemberDescription {
            bounds: &NAMES,
            try_construct: TryConstruct::Trim,
            ..member("ages", 4, |types| Some(u8::describe(types)?.map(String::describe(types)?)))
        },
        MemberDescription { optional: true, ..member("note", 5, String::describe) },
        member("mask", 6, mask),
        member("set", 7, set),
        member("tree", 8, node),
    ];
    TypeDescription::build(|types| {
        types.structure(&about::<Sample>("Sample", Extensibility::Appendable), Some(base), &members)
    })
    .expect("it can be described")
}

/// A tree, one node of which has a list of its kind.
fn node(types: &mut TypeBuilder) -> Option<TypeIdentifiers> {
    struct Node;
    let members = [
        member("value", 0, i32::describe),
        member("children", 1, |types| node(types).map(TypeIdentifiers::sequence)),
    ];
    types.structure(&about::<Node>("Node", Extensibility::Appendable), None, &members)
}

fn known(library: &mut TypeLibrary, object: &TypeObject) -> TypeHash {
    let serialized = object.serialize(true).expect("it fits");
    let hash = TypeHash::of(true, &serialized);
    assert!(library.add(PEER, hash, &serialized));
    hash
}

fn structure(name: &str, members: Vec<TypeIdentifier>) -> TypeObject {
    let members = members.into_iter().zip(0..).map(|(ty, id)| StructureMember {
        id,
        flags: member_flag::DISCARD,
        ty,
        name: MemberName::new(&format!("m{id}")),
        annotations: MemberAnnotations::default(),
    });
    TypeObject {
        name: Some(name.into()),
        definition: Definition::Structure {
            extensibility: Extensibility::Appendable,
            hash_ids: false,
            nested: false,
            base: TypeIdentifier::None,
            members: members.collect(),
        },
    }
}

#[test]
fn what_is_told_is_read_back() {
    let description = sample();
    assert_eq!(
        TypeInformation::decode(&description.information.encode()),
        Ok(description.information.clone())
    );
    for (hash, serialized) in &description.objects {
        let (object, complete) = TypeObject::deserialize(serialized).expect("well-formed");
        assert_eq!(complete, hash.complete);
        assert_eq!(object.serialize(complete).as_ref(), Ok(serialized));
        assert_eq!(Some(object), description.object(*hash));
        if hash.component.is_none() {
            assert_eq!(TypeHash::of(complete, serialized), *hash);
        }
    }
}

#[test]
fn inner_bounds_and_flags_are_told() {
    let description = sample();
    let root = description.information.complete.as_ref().unwrap().id;
    let Definition::Structure { base, members, .. } = description.object(root).unwrap().definition else {
        panic!("a structure");
    };
    let TypeIdentifier::Hash(base) = base else { panic!("a base") };
    assert_eq!(description.object(base).unwrap().name.as_deref(), Some("Base"));
    assert_eq!(members[0].flags, member_flag::DISCARD | member_flag::EXTERNAL);
    let TypeIdentifier::Map { bound: 20, key, element, .. } = &members[3].ty else { panic!("a map") };
    assert_eq!(**key, TypeIdentifier::String { wide: false, bound: 16 });
    assert_eq!(**element, TypeIdentifier::Primitive(Primitive::Uint8));
    assert_eq!(TryConstruct::of_flags(members[3].flags), TryConstruct::Trim);
    for (at, name) in [(5, "Mask"), (6, "Set")] {
        let TypeIdentifier::Hash(hash) = members[at].ty else { panic!("a type") };
        let object = description.object(hash).unwrap();
        assert_eq!(object.name.as_deref(), Some(name));
        match object.definition {
            Definition::Bitmask { bit_bound: 8, flags, .. } => {
                assert_eq!(flags.iter().map(|it| it.position).collect::<Vec<_>>(), [0, 7]);
            }
            Definition::Bitset { fields } => assert_eq!((fields[1].position, fields[1].bits), (5, 10)),
            other => panic!("{other:?}"),
        }
    }
}

/// Two types that contain one another, one of them by a base that does: `A` has `B`s, `B` extends `C`, which
/// has an `A`. `Apart` is a type beside them.
fn circle(types: &mut TypeBuilder) -> Option<TypeIdentifiers> {
    struct A;
    struct B;
    struct C;
    struct Apart;
    fn b(types: &mut TypeBuilder) -> Option<TypeIdentifiers> {
        types.structure(&about::<B>("B", Extensibility::Final), Some(c), &[member("b", 7, i32::describe)])
    }
    fn c(types: &mut TypeBuilder) -> Option<TypeIdentifiers> {
        let optional = MemberDescription { optional: true, ..member("a", 0, circle) };
        types.structure(&about::<C>("C", Extensibility::Final), None, &[optional])
    }
    fn apart(types: &mut TypeBuilder) -> Option<TypeIdentifiers> {
        let members = [member("x", 0, i32::describe)];
        types.structure(&about::<Apart>("Apart", Extensibility::Final), None, &members)
    }
    let members = [member("bs", 0, |types| Some(b(types)?.sequence())), member("apart", 1, apart)];
    types.structure(&about::<A>("A", Extensibility::Final), None, &members)
}

#[test]
fn types_that_contain_one_another_have_one_hash() {
    let description = TypeDescription::build(circle).unwrap();
    assert_eq!(description.objects.len(), 2 * 4);
    let information = TypeInformation::decode(&description.information.encode()).unwrap();
    assert_eq!(information, description.information);
    for root in [information.minimal.unwrap(), information.complete.unwrap()] {
        assert_eq!(root.id.component, Some(ComponentPlace { length: 3, index: 1 }));
        let names: Vec<_> = root.id.whole().types().map(|it| description.object(it).unwrap().name).collect();
        if root.id.complete {
            assert_eq!(names, ["A", "B", "C"].map(|it| Some(it.to_owned())));
        }
        // `Apart`, and the component under its own name.
        let dependencies: Vec<_> = root.dependencies.iter().map(|it| it.0).collect();
        assert_eq!(dependencies.len(), 2);
        assert!(dependencies.contains(&root.id.whole()));
        let others = dependencies.iter().find(|it| it.component.is_none()).unwrap();
        assert_eq!(others.component, None);
    }
    // Whichever type comes first, they are called the same.
    let from_tree = TypeDescription::build(|types| {
        struct Root;
        let members = [member("tree", 0, node), member("circle", 1, circle)];
        types.structure(&about::<Root>("Root", Extensibility::Final), None, &members)
    });
    let from_tree = from_tree.unwrap();
    assert!(description.objects.keys().all(|it| from_tree.objects.contains_key(it)));
}

#[test]
fn a_component_is_taken_as_a_whole_or_not_at_all() {
    let description = TypeDescription::build(circle).unwrap();
    let root = description.information.complete.as_ref().unwrap().id;
    let told: std::collections::BTreeMap<_, _> =
        description.objects.iter().map(|(hash, it)| (*hash, it.as_slice())).collect();
    let mut library = TypeLibrary::new(TypeLimits::default());
    assert_eq!(library.missing(PEER, root, 9), [root.whole()]);
    assert_eq!(library.add_told(PEER, &[root.whole()], &told), Some(1));
    let missing = library.missing(PEER, root, 9);
    assert!(missing.len() == 1 && missing[0].component.is_none(), "the type beside it: {missing:?}");
    assert_eq!(library.add_told(PEER, &missing, &told), Some(1));
    assert!(library.missing(PEER, root, 9).is_empty());
    // Without one of its types, or with another one, it is refused.
    for change in 0..2 {
        let mut library = TypeLibrary::new(TypeLimits::default());
        let mut told = told.clone();
        let other = told[&missing[0]];
        if change == 0 {
            told.remove(&root)
        } else {
            told.insert(root, other)
        };
        assert_eq!(library.add_told(PEER, &[root.whole()], &told), None);
        assert_eq!(library.missing(PEER, root, 9), [root.whole()]);
    }
}

/// A tree with one more member.
fn larger_node(types: &mut TypeBuilder) -> Option<TypeIdentifiers> {
    struct Node;
    let members = [
        member("value", 0, i32::describe),
        member("children", 1, |types| larger_node(types).map(TypeIdentifiers::sequence)),
        member("weight", 2, f64::describe),
    ];
    types.structure(&about::<Node>("Node", Extensibility::Appendable), None, &members)
}

/// A tree whose value is of another type.
fn other_node(types: &mut TypeBuilder) -> Option<TypeIdentifiers> {
    struct Node;
    let members = [
        member("value", 0, i64::describe),
        member("children", 1, |types| other_node(types).map(TypeIdentifiers::sequence)),
    ];
    types.structure(&about::<Node>("Node", Extensibility::Appendable), None, &members)
}

#[test]
fn trees_are_compared_once() {
    let mut library = TypeLibrary::new(TypeLimits::default());
    let nodes: [fn(&mut TypeBuilder) -> Option<TypeIdentifiers>; 3] = [node, larger_node, other_node];
    let [tree, larger, other] = nodes.map(|describe| {
        let description = TypeDescription::build(describe).unwrap();
        library.add_own(&description);
        (OURS, description.information.complete.unwrap().id)
    });
    let rules = AssignabilityRules { coercion: true, ..AssignabilityRules::default() };
    assert_eq!(library.first_difference(tree, larger, rules), None);
    assert_eq!(library.first_difference(larger, tree, rules), None);
    let difference = library.first_difference(larger, other, rules).unwrap();
    assert_eq!(difference.to_string(), "member `value` is int32 at the writer, int64 at the reader");
}

#[test]
fn questions_and_answers_are_read_back() {
    let description = sample();
    let types: Vec<_> = description.objects.iter().map(|(hash, it)| (*hash, it.as_slice())).collect();
    let id = RequestId { writer: PEER.entity(EntityId::TYPE_LOOKUP[0]), number: 5 << 32 | 7 };
    let instance = instance_of(PEER.participant());
    assert_eq!(instance, "dds.builtin.TOS.010107070000000000000009000001c1");
    let request = Request { id, instance, types: types.iter().map(|(hash, _)| *hash).collect() };
    assert_eq!(Request::decode(&request.encode()), Ok(Some(request.clone())));
    let reply = encode_reply(id, &types);
    assert_eq!(reply.get(28..32), Some(&[0; 4][..]), "a ReplyHeader: no exception after the identity");
    assert_eq!(decode_reply(&reply), Ok(types.clone()));
    // Replies of Cyclone DDS 0.10 have the instance there.
    let (identity, rest) = (reply.get(..28).unwrap(), reply.get(32..).unwrap());
    let old = [identity, &[4, 0, 0, 0], b"TOS\0", rest].concat();
    assert_eq!(decode_reply(&old), Ok(types));
}

/// A question of Cyclone DDS 11.0.1 about one type, as captured.
#[test]
fn a_question_of_cyclone_is_understood() {
    const REQUEST: &str = concat!(
        "00070001011028d7020599b176c4ef03000300c30000000001000000310000006464732e6275696c74696e2e",
        "544f532e30316635623831343037376136636363636333663134363930303030303163310000000023000000",
        "d35282011b0000006560535c1300000001000000f16b428aede6719842160c1ffcce9f00",
    );
    let octet = |at| u8::from_str_radix(&REQUEST[at..at + 2], 16).unwrap();
    let octets: Vec<u8> = (0..REQUEST.len()).step_by(2).map(octet).collect();
    let request = Request::decode(&octets).unwrap().unwrap();
    assert_eq!(request.id.number, 1);
    assert_eq!(request.instance, "dds.builtin.TOS.01f5b814077a6ccccc3f1469000001c1");
    assert_eq!(request.types.len(), 1);
    assert!(!request.types[0].complete && request.types[0].octets.starts_with(&[0x6b, 0x42, 0x8a]));
    // Ours looks the same, but for the padding at the end.
    let ours = request.encode();
    assert_eq!(ours[4..], octets[4..ours.len()]);
}

#[test]
fn octets_that_were_changed_do_no_harm() {
    let description = sample();
    let objects: Vec<_> = description.objects.iter().map(|(hash, it)| (*hash, it.as_slice())).collect();
    let id = RequestId { writer: Guid::from_bytes([7; 16]), number: 1 };
    let request = Request { id, instance: String::new(), types: objects.iter().map(|it| it.0).collect() };
    let mut seeds = vec![description.information.encode(), request.encode(), encode_reply(id, &objects)];
    seeds.extend(objects.iter().map(|(_, serialized)| serialized.to_vec()));
    let mut random: u64 = 1;
    let mut roll = |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(random >> 33).unwrap() % below.max(1)
    };
    let root = description.information.complete.as_ref().unwrap().id;
    let mut compared = 0;
    for round in 0..60_000 {
        let mut octets = seeds[round % seeds.len()].clone();
        for _ in 0..=roll(4) {
            let at = roll(octets.len());
            match roll(4) {
                0 => octets[at] = [0, 1, 0x7f, 0x80, 0xff][roll(5)],
                1 => octets[at] ^= 1 << roll(8),
                2 => octets.truncate(at.max(1)),
                _ => octets.splice(at..at, [0xff; 3]).for_each(drop),
            }
        }
        let _ = (TypeInformation::decode(&octets), Request::decode(&octets), decode_reply(&octets));
        // With a hash of its own it is a type like any other.
        if let Ok((_, complete)) = TypeObject::deserialize(&octets) {
            let mut library = TypeLibrary::new(TypeLimits::default());
            library.add_own(&description);
            let hash = TypeHash::of(complete, &octets);
            assert!(library.add(PEER, hash, &octets));
            let rules = AssignabilityRules::default();
            let _ = library.first_difference((PEER, hash), (OURS, root), rules);
            compared += 1;
        }
    }
    assert!(compared > 1_000, "{compared} of the changed octets are types still");
}

#[test]
fn huge_counts_and_deep_nesting_are_refused_before_memory_is_taken() {
    // A structure of four thousand million members.
    let mut octets = structure("Huge", Vec::new()).serialize(true).unwrap();
    let count = octets.len() - 4;
    octets[count..].fill(0xff);
    assert!(TypeObject::deserialize(&octets).is_err());
    let mut nested = TypeIdentifier::Primitive(Primitive::Int32);
    for _ in 0..100 {
        nested = TypeIdentifier::Sequence { bound: 0, element_flags: 1, element: Box::new(nested) };
    }
    let mut octets = Vec::new();
    nested.encode(&mut encode::encoder(&mut octets)).unwrap();
    assert_eq!(TypeIdentifier::decode(&mut decode::decoder(&octets)), Err(Malformed::TooDeep));
    let types = vec![TypeHash { complete: true, octets: [0; 14], component: None }; REQUESTED_MAX + 1];
    let id = RequestId { writer: Guid::from_bytes([0; 16]), number: 1 };
    let request = Request { id, instance: String::new(), types };
    assert_eq!(Request::decode(&request.encode()), Err(Malformed::LengthOutOfRange));
}

#[test]
fn what_one_participant_tells_is_bounded() {
    let limits = TypeLimits { types_per_participant_max: 3, bytes_per_participant_max: 500, bytes_max: 600 };
    let mut library = TypeLibrary::new(limits);
    let mut add = |of, name: String| {
        let serialized = structure(&name, vec![]).serialize(true).unwrap();
        library.add(of, TypeHash::of(true, &serialized), &serialized)
    };
    assert!((0..3).all(|number| add(PEER, format!("T{number}"))));
    assert!(!add(PEER, "T3".into()), "three types");
    assert!(add(OURS, "x".repeat(200)));
    assert!(!add(OURS, "y".repeat(250)), "500 octets");
    library.forget(PEER);
    library.forget(OURS);
    let large = structure(&"x".repeat(250), vec![]).serialize(true).unwrap();
    assert!(library.add(PEER, TypeHash::of(true, &large), &large), "the room is given back");
}

#[test]
fn types_built_to_take_long_are_compared_in_bounded_work() {
    // Each level names the one below twice: two to the power of thirty ways down.
    let tower = |library: &mut TypeLibrary, bottom: Primitive| {
        let mut below = TypeIdentifier::Primitive(bottom);
        for level in 0..30 {
            let object = structure(&format!("L{level}"), vec![below.clone(), below]);
            below = TypeIdentifier::Hash(known(library, &object));
        }
        let TypeIdentifier::Hash(top) = below else { panic!("a structure") };
        top
    };
    let mut library = TypeLibrary::new(TypeLimits::default());
    let (one, other) = (tower(&mut library, Primitive::Int32), tower(&mut library, Primitive::Int64));
    let rules = AssignabilityRules::readable(true);
    let difference = library.first_difference((PEER, one), (PEER, other), rules).expect("a difference");
    assert_eq!((difference.writer.as_str(), difference.reader.as_str()), ("int32", "int64"));
    assert!(library.first_difference((PEER, one), (PEER, one), rules).is_none());
    // Thousands of members of other names.
    let wide = |from: u32| {
        let mut object = structure("Wide", vec![TypeIdentifier::Primitive(Primitive::Byte); 1_500]);
        if let Definition::Structure { members, .. } = &mut object.definition {
            members
                .iter_mut()
                .for_each(|member| member.name = MemberName::new(&format!("{}", from + member.id)));
        }
        object
    };
    let (one, other) = (known(&mut library, &wide(0)), known(&mut library, &wide(5_000)));
    let alike = AssignabilityRules::default();
    // More than is looked at counts as assignable.
    assert!(library.first_difference((PEER, one), (PEER, other), alike).is_none());
}

/// Where a writer's `written` and a reader's `read` part, both as members of one structure.
fn difference(written: TypeIdentifier, read: TypeIdentifier, rules: AssignabilityRules) -> Option<String> {
    let mut library = TypeLibrary::new(TypeLimits::default());
    let [one, other] = [written, read].map(|ty| known(&mut library, &structure("T", vec![ty])));
    library.first_difference((PEER, one), (PEER, other), rules).map(|it| it.to_string())
}

#[test]
fn bounds_and_kinds_differ_as_the_reader_allows() {
    use TypeIdentifier::{Array, Primitive as Plain, Sequence, String};
    let text = |bound| String { wide: false, bound };
    let element = || Box::new(Plain(Primitive::Int32));
    let list = |bound| Sequence { bound, element_flags: 1, element: element() };
    let grid = |bounds: &[u32]| Array { bounds: bounds.into(), element_flags: 1, element: element() };
    let checked = AssignabilityRules { coercion: true, ..AssignabilityRules::default() };
    let lenient = AssignabilityRules::readable(false);
    assert_eq!(difference(text(5), text(9), checked), None);
    assert_eq!(difference(text(0), text(9), lenient), None);
    assert_eq!(
        difference(text(0), text(9), checked).unwrap(),
        "member `m0` is string at the writer, string<9> at the reader"
    );
    assert_eq!(
        difference(list(10), list(9), checked).unwrap(),
        "member `m0` is sequence<int32, 10> at the writer, sequence<int32, 9> at the reader"
    );
    assert_eq!(
        difference(grid(&[2, 3]), grid(&[3, 2]), lenient).unwrap(),
        "member `m0` is int32[2][3] at the writer, int32[3][2] at the reader"
    );
    assert_eq!(
        difference(list(0), text(0), lenient).unwrap(),
        "member `m0` is sequence<int32> at the writer, string at the reader"
    );
    assert_eq!(difference(Plain(Primitive::Byte), Plain(Primitive::Uint8), checked), None);
    let missing = TypeIdentifier::Hash(TypeHash { complete: true, octets: [1; 14], component: None });
    assert_eq!(difference(missing, text(1), checked), None, "nobody knows");
}

#[test]
fn our_own_types_are_answered_for() {
    let description = Arc::new(sample());
    let mut library = TypeLibrary::new(TypeLimits::default());
    library.add_own(&description);
    let root = description.information.minimal.as_ref().unwrap().id;
    assert_eq!(library.own(&root), description.objects.get(&root).map(Vec::as_slice));
    assert!(library.missing(PEER, root, 10).is_empty());
}
