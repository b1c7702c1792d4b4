//! One fuzzing run over what a peer tells of its types: TypeInformation, TypeObjects and messages of the
//! TypeLookup service, and what they cause here. Whatever happens, nothing panics; what is written is what
//! was read.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use plainsong_derive::DdsType;
use plainsong_idl::{Compiler, Memory, Model, idl_of};
use plainsong_proto::cdr::{DdsType, Endianness, WString, XcdrVersion, to_payload};
use plainsong_proto::guid::{EntityId, Guid, GuidPrefix};
use plainsong_proto::type_support::{DynamicType, TypeSupport};
use plainsong_proto::types::library::{TypeLibrary, TypeLimits};
use plainsong_proto::types::lookup::{self, Request, RequestId};
use plainsong_proto::types::{
    AssignabilityRules, TypeDescription, TypeHash, TypeInformation, TypeObject, TypeWithDependencies,
};

/// The run that `octets` choose.
pub(crate) fn run(octets: &[u8]) {
    let [kind, octets @ ..] = octets else { return };
    match kind & 3 {
        0 => as_they_are(octets),
        1 => told::<Everything>(*kind, &Everything::default(), octets),
        2 => told::<Tree>(*kind, &Tree::default(), octets),
        _ => told::<Sparse>(*kind, &Sparse::default(), octets),
    }
}

/// Octets that are nothing yet.
fn as_they_are(octets: &[u8]) {
    if let Ok(information) = TypeInformation::decode(octets) {
        assert!(TypeInformation::decode(&information.encode()).is_ok(), "{information:?}");
    }
    if let Ok((object, complete)) = TypeObject::deserialize(octets) {
        let hash = TypeHash::of(complete, octets);
        let objects = BTreeMap::from([(hash, octets.to_vec())]);
        used(&description(hash, objects), octets);
        let _ = format!("{object:?}");
    }
    let message = [&[0, 7, 0, 0], octets].concat();
    if let Ok(Some(request)) = Request::decode(&message) {
        assert_eq!(Request::decode(&request.encode()), Ok(Some(request)));
    }
    if let Ok(types) = lookup::decode_reply(&message) {
        let types: BTreeMap<_, _> = types.into_iter().collect();
        let mut library = TypeLibrary::new(TypeLimits::default());
        for (hash, octets) in &types {
            if learn(&mut library, *hash, &types)
                && let Some(objects) = library.with_dependencies(PEER, *hash)
            {
                used(&description(*hash, objects), octets);
            }
        }
    }
}

const PEER: GuidPrefix = GuidPrefix([7; 12]);

/// A peer whose type is like `T`, and an answer in which it tells it.
fn told<T: DdsType>(kind: u8, sample: &T, octets: &[u8]) {
    let (of_types, rest) = octets.split_at(octets.len() / 2);
    let (of_reply, of_sample) = rest.split_at(rest.len() / 2);
    let own = TypeDescription::of::<T>().expect("it is described");
    let changed = changed(&own, kind & 4 == 0, of_types);
    let Some(root) = changed.information.complete.as_ref().or(changed.information.minimal.as_ref()) else {
        return;
    };
    let root = root.id;
    let information = changed.information.encode();
    let heard = TypeInformation::decode(&information).expect("what was written can be read");
    assert_eq!(heard.complete.as_ref().or(heard.minimal.as_ref()).map(|it| it.id), Some(root));
    let types: Vec<_> = changed.objects.iter().map(|(hash, object)| (*hash, object.as_slice())).collect();
    let writer = Guid { prefix: PEER, entity: EntityId([0, 3, 0, 0xc3]) };
    let mut reply = lookup::encode_reply(RequestId { writer, number: 1 }, &types);
    mutate(reply.get_mut(4..).unwrap_or_default(), of_reply);
    let mut library = TypeLibrary::new(TypeLimits::default());
    let Ok(types) = lookup::decode_reply(&reply) else { return };
    let types: BTreeMap<_, _> = types.into_iter().collect();
    if !learn(&mut library, root, &types) {
        return;
    }
    compared(&library, root);
    let Some(objects) = library.with_dependencies(PEER, root) else { return };
    let mut payload = Vec::new();
    let version = if kind & 8 == 0 { XcdrVersion::Xcdr1 } else { XcdrVersion::Xcdr2 };
    to_payload(sample, version, Endianness::Little, &mut payload).expect("a small sample fits");
    mutate(&mut payload, of_sample);
    used(&description(root, objects), &payload);
    library.forget(PEER);
    assert_eq!(library.missing(PEER, root, 8), [root.whole()]);
}

/// Asks for types until nothing is missing, as a participant does; whether all were told.
fn learn(library: &mut TypeLibrary, root: TypeHash, told: &BTreeMap<TypeHash, &[u8]>) -> bool {
    for _ in 0..64 {
        let wanted = library.missing(PEER, root, lookup::REQUESTED_MAX);
        if wanted.is_empty() {
            return true;
        }
        if !matches!(library.add_told(PEER, &wanted, told), Some(1..)) {
            return false;
        }
    }
    false
}

/// A type with itself, and with those of its parts.
fn compared(library: &TypeLibrary, root: TypeHash) {
    let strict = AssignabilityRules {
        coercion: false,
        ignore_sequence_bounds: false,
        ignore_string_bounds: false,
        ignore_member_names: false,
        prevent_type_widening: true,
        final_is_appendable: false,
        ignore_key_bounds: false,
        ignore_delimiters: false,
    };
    for rules in [strict, AssignabilityRules::readable(true)] {
        let _ = library.first_difference((PEER, root), (PEER, root), rules).map(|it| it.to_string());
        for other in library.with_dependencies(PEER, root).unwrap_or_default().into_keys().take(8) {
            let _ = library.first_difference((PEER, root), (PEER, other), rules).map(|it| it.to_string());
            let _ = library.first_difference((PEER, other), (PEER, root), rules).map(|it| it.to_string());
        }
    }
}

fn description(root: TypeHash, objects: BTreeMap<TypeHash, Vec<u8>>) -> TypeDescription {
    let bytes = |hash: &TypeHash| objects.get(hash).map_or(0, Vec::len) as u32;
    let dependencies = objects.keys().filter(|it| **it != root).map(|it| (*it, bytes(it))).collect();
    let ty = TypeWithDependencies { id: root, bytes: bytes(&root), dependencies };
    let information = match root.complete {
        true => TypeInformation { complete: Some(ty), minimal: None },
        false => TypeInformation { minimal: Some(ty), complete: None },
    };
    TypeDescription { information, objects }
}

/// What a program does with a type that it was told: values, and IDL.
fn used(description: &TypeDescription, payload: &[u8]) {
    if let Ok(ty) = DynamicType::new("told", Arc::new(description.clone())) {
        assert_eq!(ty.check(payload).err(), ty.read_data(payload).err());
        let read = ty.read_data(payload).ok();
        for data in read.into_iter().chain([ty.new_data()]) {
            let mut octets = Vec::new();
            data.write(XcdrVersion::Xcdr2, Endianness::Big, &mut octets)
                .expect("what was read can be written");
            ty.read_data(&octets).expect("what was written can be read");
        }
    }
    let Ok(idl) = idl_of(description) else { return };
    let again = Compiler::new().compile_from(&Memory::new().with("told.idl", idl.clone()), &["told.idl"]);
    // Names that stand there twice, bounds and values out of range are not refused as they are printed.
    if let Some(model) = again.model {
        let printed = Model::described(description).expect("it was printed");
        assert!(named(&model) == named(&printed), "{idl}");
    }
}

/// How many definitions there are of each name.
fn named(model: &Model) -> HashMap<String, usize> {
    let mut names = HashMap::new();
    for (_, definition) in model.definitions() {
        *names.entry(definition.full_name()).or_default() += 1;
    }
    names
}

/// The description with changed TypeObjects, each with the hash that it then has, and of one kind alone.
fn changed(own: &TypeDescription, complete: bool, changes: &[u8]) -> TypeDescription {
    let TypeInformation { minimal, complete: full } = own.information.clone();
    let Some(mut root) = (if complete { full } else { minimal }) else { return own.clone() };
    let objects = own.objects.iter().filter(|(hash, _)| hash.complete == complete);
    let mut objects: Vec<_> = objects.map(|(hash, octets)| (*hash, octets.clone())).collect();
    for change in changes.chunks_exact(4).take(8) {
        let object = usize::from(change[3]) % objects.len().max(1);
        if let Some((_, octets)) = objects.get_mut(object) {
            mutate(octets, &change[..3]);
        }
    }
    // From those that name no other to those that do. Types of a component keep their hash, and are refused
    // if they were changed.
    for _ in 0..=objects.len() {
        for at in 0..objects.len() {
            let (old, octets) = &objects[at];
            let new = TypeHash::of(complete, octets);
            if old.component.is_some() || new == *old {
                continue;
            }
            let old = std::mem::replace(&mut objects[at].0, new);
            for (_, octets) in &mut objects {
                replace(octets, &old.octets, &new.octets);
            }
            if root.id == old {
                root.id = new;
            }
        }
    }
    root.dependencies = objects.iter().map(|(hash, octets)| (hash.whole(), octets.len() as u32)).collect();
    let information = match complete {
        true => TypeInformation { minimal: None, complete: Some(root) },
        false => TypeInformation { minimal: Some(root), complete: None },
    };
    TypeDescription { information, objects: objects.into_iter().collect() }
}

fn replace(octets: &mut [u8], old: &[u8; 14], new: &[u8; 14]) {
    let mut at = 0;
    while let Some(place) = octets.get_mut(at..at + 14) {
        if place == old {
            place.copy_from_slice(new);
        }
        at += 1;
    }
}

/// Changes some octets: where, and to what.
fn mutate(octets: &mut [u8], changes: &[u8]) {
    for change in changes.chunks_exact(3).take(4) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % octets.len().max(1);
        if let Some(octet) = octets.get_mut(at) {
            *octet = change[2];
        }
    }
}

#[derive(DdsType, Clone, Default)]
#[dds(crate = "plainsong_proto", name = "plant::Mode")]
enum Mode {
    #[default]
    Idle = 3,
    Moving = -5,
}

#[derive(DdsType, Clone, Copy, Default)]
#[dds(crate = "plainsong_proto", name = "plant::Status", bitmask, flag(READY), flag(BROKEN = 5))]
struct Status(u8);

#[derive(DdsType, Clone, Copy, Default)]
#[dds(crate = "plainsong_proto", name = "plant::Packed", bitset)]
struct Packed {
    #[dds(bits = 3)]
    low: u8,
    #[dds(bits = 9, position = 8)]
    high: i16,
}

#[derive(DdsType, Clone)]
#[dds(crate = "plainsong_proto", name = "plant::Choice", union, discriminator = i16)]
enum Choice {
    #[dds(case = 1)]
    Number(i32),
    #[dds(default, case(2, -3))]
    Text(String),
}

impl Default for Choice {
    fn default() -> Self {
        Self::Number(0)
    }
}

#[derive(DdsType, Clone, Default)]
#[dds(crate = "plainsong_proto", name = "plant::Base")]
struct Base {
    #[dds(key)]
    key: u32,
}

#[derive(DdsType, Clone, Default)]
#[dds(crate = "plainsong_proto", name = "plant::Everything")]
struct Everything {
    #[dds(base)]
    base: Base,
    mode: Mode,
    status: Status,
    packed: Packed,
    choice: Choice,
    matrix: [[i16; 3]; 2],
    #[dds(alias = "plant::Lists", element(alias = "plant::Modes"))]
    lists: Vec<[Mode; 2]>,
    #[dds(unit = "m", min = -3, max = 7.5)]
    level: f64,
    by_name: BTreeMap<String, Vec<f32>>,
    #[dds(bound = 9)]
    wide: WString,
    sparse: Sparse,
}

#[derive(DdsType, Clone, Default)]
#[dds(crate = "plainsong_proto", name = "plant::Sparse", mutable)]
struct Sparse {
    #[dds(id = 70)]
    note: Option<String>,
    #[dds(must_understand)]
    choices: Vec<Choice>,
}

#[derive(DdsType, Clone, Default)]
#[dds(crate = "plainsong_proto", name = "Tree")]
struct Tree {
    status: Status,
    #[dds(alias = "Branches")]
    leaves: Vec<Branch>,
}

#[derive(DdsType, Clone, Default)]
#[dds(crate = "plainsong_proto", name = "Branch")]
struct Branch {
    tree: Option<Box<Tree>>,
}
