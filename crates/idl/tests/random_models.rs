//! Random models, written as IDL and read again: nothing is lost on the way. `PLAINSONG_FUZZ_SECONDS` and
//! `PLAINSONG_FUZZ_SEED` work as in fuzzing.

#[allow(dead_code, reason = "models are made here")]
#[path = "../../proto/tests/text_fuzzing/mod.rs"]
mod text_fuzzing;

use plainsong_idl::model::{
    Aggregate, AutoId, Bitfield, Bitmask, Bitset, Case, Definition, DefinitionId, DefinitionKind, Element,
    Enumeration, Extensibility, Flag, Literal, Member, Primitive, Structure, TryConstruct, Type, Union,
    Value, Verbatim,
};
use plainsong_idl::{Backend, Compiler, Diagnostics, Idl, Memory, Model, Options, Rust};
use text_fuzzing::Random;

const PRIMITIVES: [Primitive; 15] = [
    Primitive::Boolean,
    Primitive::Octet,
    Primitive::Char,
    Primitive::WChar,
    Primitive::Int8,
    Primitive::UInt8,
    Primitive::Int16,
    Primitive::UInt16,
    Primitive::Int32,
    Primitive::UInt32,
    Primitive::Int64,
    Primitive::UInt64,
    Primitive::Float32,
    Primitive::Float64,
    Primitive::Float128,
];
const EXTENSIBILITIES: [Extensibility; 3] =
    [Extensibility::Final, Extensibility::Appendable, Extensibility::Mutable];
const SCOPES: [&[&str]; 5] = [&[], &["a"], &["a", "b"], &["c"], &["module", "B"]];
const TEXTS: [&str; 6] = ["", "plain", "two\nlines\t\\ \"quoted\"", "\u{1}7", "ä€", "*/ // '"];

#[test]
fn fuzz_random_models() {
    text_fuzzing::fuzz(
        |random| {
            let model = Maker { random, model: Model::default() }.model();
            let text = idl(&model);
            let again = Compiler::new().compile_from(&Memory::new().with("a.idl", text.clone()), &["a.idl"]);
            assert!(again.model.is_some(), "{text}\n{}", again.render());
            assert!(again.model.as_ref() == Some(&model), "{text}\n{model:#?}\n{:#?}", again.model);
            text
        },
        |text| {
            let read = Compiler::new().compile_from(&Memory::new().with("a.idl", text), &["a.idl"]);
            let model = read.model.unwrap();
            Rust::default().generate(&model, &Options::default(), &mut Diagnostics::default());
            idl(&model) == *text
        },
    );
}

fn idl(model: &Model) -> String {
    let files = Idl.generate(model, &Options::default(), &mut Diagnostics::default());
    files.into_iter().map(|file| file.text).collect()
}

struct Maker<'a> {
    random: &'a mut Random,
    model: Model,
}

impl Maker<'_> {
    fn model(mut self) -> Model {
        for index in 0..1 + self.random.below(8) {
            // Some names are keywords, which are escaped.
            let name = match self.random.below(12) {
                0 if index == 0 => "struct".to_owned(),
                1 if index == 0 => "Long".to_owned(),
                _ => format!("Type{index}"),
            };
            let kind = self.kind(index);
            let scope = self.pick(&SCOPES);
            let mut definition = Definition::new(scope, &name, kind);
            definition.verbatim = self.verbatim();
            self.model.add(definition);
        }
        self.model
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.random.below(count) == 0
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.random.below(of.len())]
    }

    fn verbatim(&mut self) -> Vec<Verbatim> {
        if !self.one_in(6) {
            return Vec::new();
        }
        let text = self.pick(&TEXTS).into();
        vec![Verbatim { language: "comment".into(), placement: "BEFORE_DECLARATION".into(), text }]
    }

    fn kind(&mut self, index: usize) -> DefinitionKind {
        match self.random.below(9) {
            0 => self.constant(),
            1 => self.enumeration(index),
            2 => self.bitmask(),
            3 => self.bitset(),
            4 => DefinitionKind::Alias(self.declared()),
            5 | 6 => self.union(),
            _ => self.structure(),
        }
    }

    fn constant(&mut self) -> DefinitionKind {
        let ty = match self.random.below(3) {
            0 => Type::String { wide: self.one_in(2), bound: None },
            _ => Type::Primitive(self.pick(&PRIMITIVES)),
        };
        let Some(value) = self.value(&ty) else { unreachable!("{ty:?} has values") };
        DefinitionKind::Constant { ty, value }
    }

    fn value(&mut self, ty: &Type) -> Option<Value> {
        let small = self.random.below(100) as i128;
        Some(match self.model.resolved(ty).clone() {
            Type::Primitive(Primitive::Boolean) => Value::Boolean(small > 50),
            Type::Primitive(Primitive::Char) => {
                Value::Character(self.pick(&['a', '\'', '\\', '\n', 'ä', '\u{0}']))
            }
            Type::Primitive(Primitive::WChar) => Value::Character(self.pick(&['b', '€', '\u{7f}'])),
            Type::Primitive(Primitive::Float32 | Primitive::Float64 | Primitive::Float128) => {
                Value::Float(self.pick(&[0.0, -1.5, 1e300, 0.1, 3e-7, 1e16]))
            }
            Type::Primitive(Primitive::Int64) => Value::Integer(i128::from(i64::MIN) + small),
            Type::Primitive(Primitive::UInt64) => Value::Integer(i128::from(u64::MAX) - small),
            Type::Primitive(_) => Value::Integer(small),
            Type::String { bound, .. } => {
                Value::Text(if bound.is_some() { "" } else { self.pick(&TEXTS) }.into())
            }
            Type::Named(id) => match &self.model.definition(id).kind {
                DefinitionKind::Enumeration(enumeration) => {
                    let index = self.random.below(enumeration.literals.len());
                    Value::Literal { of: id, index }
                }
                _ => return None,
            },
            _ => return None,
        })
    }

    fn enumeration(&mut self, index: usize) -> DefinitionKind {
        let bit_bound = self.pick(&[32, 8, 16, 3]);
        let default = self.one_in(3).then(|| self.random.below(3));
        let mut value = -1;
        let literals = (0..3).map(|number| {
            value += 1 + i32::from(self.one_in(4));
            let (name, verbatim) = (format!("LITERAL_{index}_{number}").into(), self.verbatim());
            Literal { name, value: value.min(3), default: default == Some(number), verbatim }
        });
        let mut literals = literals.collect::<Vec<_>>();
        literals.dedup_by_key(|literal| literal.value);
        let extensibility = self.one_in(2).then(|| self.pick(&EXTENSIBILITIES));
        let ignore_literal_names = self.one_in(5);
        DefinitionKind::Enumeration(Enumeration { bit_bound, extensibility, ignore_literal_names, literals })
    }

    fn bitmask(&mut self) -> DefinitionKind {
        let bit_bound = self.pick(&[32, 8, 64]);
        let start = self.random.below(3) as u32;
        let flags = (0..3).map(|number| Flag {
            name: format!("flag{number}").into(),
            position: start + number * 2,
            verbatim: Vec::new(),
        });
        DefinitionKind::Bitmask(Bitmask { bit_bound, flags: flags.collect() })
    }

    fn bitset(&mut self) -> DefinitionKind {
        let mut position = 0;
        let fields = (0..1 + self.random.below(3)).map(|number| {
            position += self.random.below(3) as u32;
            let width = 1 + self.random.below(8) as u32;
            let ty = self.pick(&[None, Some(Primitive::UInt8), Some(Primitive::Int32)]);
            let field = Bitfield { name: format!("field{number}").into(), position, width, ty };
            position += width;
            field
        });
        let fields = fields.collect();
        let bits = position + self.random.below(3) as u32;
        DefinitionKind::Bitset(Bitset { base: None, fields, bits })
    }

    fn aggregate(&mut self) -> Aggregate {
        Aggregate {
            extensibility: self.pick(&EXTENSIBILITIES),
            autoid: self.pick(&[AutoId::Sequential, AutoId::Hash]),
            nested: self.one_in(4),
            topic: self.pick(&[None, None, Some(None), Some(Some("Topic"))]).map(|it| it.map(Into::into)),
            data_representation: self.pick(&[None, None, Some(1), Some(5)]),
        }
    }

    fn structure(&mut self) -> DefinitionKind {
        let mut aggregate = self.aggregate();
        let mut first = 0;
        let mut base = None;
        let parents = self.model.definitions().filter_map(|(id, definition)| match &definition.kind {
            DefinitionKind::Structure(parent) if parent.base.is_none() => {
                Some((id, parent.aggregate.extensibility))
            }
            _ => None,
        });
        let parents = parents.collect::<Vec<_>>();
        if !parents.is_empty() && self.one_in(2) {
            let (id, extensibility) = self.pick(&parents);
            (base, aggregate.extensibility) = (Some(id), extensibility);
            // Names and ids apart from those of the base.
            first = 100;
        }
        let itself = DefinitionId::following(&self.model);
        let mut id = first;
        let members = (0..self.random.below(4)).map(|number| {
            id += 1 + self.random.below(2) as u32;
            let mut member = self.member(&format!("member{}", first + number as u32), id, itself);
            member.key = !member.optional && self.one_in(4);
            member
        });
        let members = members.collect();
        DefinitionKind::Structure(Structure { aggregate, base, members })
    }

    fn member(&mut self, name: &str, id: u32, itself: DefinitionId) -> Member {
        let mut ty = self.declared();
        let mut member = Member::new(name, ty.clone(), id);
        if self.one_in(8) {
            ty = Type::Sequence { element: Element::new(Type::Named(itself)).into(), bound: None };
        } else {
            member.default = if self.one_in(3) { self.value(&ty) } else { None };
        }
        member.ty = ty;
        member.optional = self.one_in(5);
        member.external = self.one_in(6);
        member.must_understand = self.one_in(5);
        member.non_serialized = self.one_in(9);
        member.try_construct =
            self.pick(&[None, None, Some(TryConstruct::Trim), Some(TryConstruct::UseDefault)]);
        member.unit = self.pick(&[None, None, Some("m/s")]).map(Into::into);
        member.verbatim = self.verbatim();
        member
    }

    fn union(&mut self) -> DefinitionKind {
        let enumerations = self.model.definitions().filter_map(|(id, definition)| match &definition.kind {
            DefinitionKind::Enumeration(of) => {
                Some((id, of.literals.iter().map(|it| i64::from(it.value)).collect()))
            }
            _ => None,
        });
        let enumerations = enumerations.collect::<Vec<(DefinitionId, Vec<i64>)>>();
        let (discriminator, labels) = match self.random.below(4) {
            0 if !enumerations.is_empty() => {
                let (id, labels) = enumerations[self.random.below(enumerations.len())].clone();
                (Type::Named(id), labels)
            }
            1 => (Type::Primitive(Primitive::Char), vec![97, 39, 0]),
            2 => (Type::Primitive(Primitive::Int64), vec![i64::MIN, -1, i64::MAX]),
            _ => (Type::Primitive(Primitive::Octet), vec![0, 1, 255]),
        };
        let default = self.random.below(2 * labels.len());
        let itself = DefinitionId::following(&self.model);
        let cases = labels.iter().enumerate().map(|(number, label)| {
            let mut member = self.member(&format!("case{number}"), 1 + number as u32, itself);
            member.optional = false;
            let default = number == default;
            let labels = if default && self.one_in(2) { Vec::new() } else { vec![*label] };
            Case { labels, default, member }
        });
        let cases = cases.collect();
        DefinitionKind::Union(Union {
            aggregate: self.aggregate(),
            discriminator,
            key: self.one_in(4),
            cases,
        })
    }

    /// A type that a declaration can have: an array, too.
    fn declared(&mut self) -> Type {
        if !self.one_in(5) {
            return self.ty(0);
        }
        let dimensions = (0..1 + self.random.below(2)).map(|_| 1 + self.random.below(40) as u32).collect();
        Type::Array { element: self.element(0).into(), dimensions }
    }

    fn element(&mut self, depth: usize) -> Element {
        let mut element = Element::new(self.ty(depth + 1));
        element.external = self.one_in(8);
        element.try_construct = self.pick(&[None, None, None, Some(TryConstruct::Discard)]);
        element
    }

    fn ty(&mut self, depth: usize) -> Type {
        let bound = self.pick(&[None, Some(1), Some(77)]);
        match self.random.below(if depth > 2 { 3 } else { 7 }) {
            0 => Type::String { wide: self.one_in(3), bound },
            1 => {
                let named = self
                    .model
                    .definitions()
                    .filter(|(_, definition)| !matches!(definition.kind, DefinitionKind::Constant { .. }));
                let named = named.map(|(id, _)| id).collect::<Vec<_>>();
                if named.is_empty() {
                    Type::Primitive(Primitive::Octet)
                } else {
                    Type::Named(self.pick(&named))
                }
            }
            2 | 3 => Type::Primitive(self.pick(&PRIMITIVES)),
            4 => Type::Sequence { element: self.element(depth).into(), bound },
            5 => {
                let key = Element::new(Type::Primitive(self.pick(&[Primitive::Int32, Primitive::Char])));
                Type::Map { key: key.into(), value: self.element(depth).into(), bound }
            }
            _ => Type::Fixed { digits: 9, scale: self.random.below(4) as u32 },
        }
    }
}
