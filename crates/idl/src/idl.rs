//! IDL from a model: what the compiler reads again as the same model.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::backend::{Backend, GeneratedFile, Options};
use crate::diagnostic::Diagnostics;
use crate::model::{
    Aggregate, AutoId, Bitset, Definition, DefinitionId, DefinitionKind, Element, Extensibility, Member,
    Model, Structure, TryConstruct, Type, Union, Value, Verbatim,
};
use crate::parse::is_keyword;
use crate::resolve::{hash_id, keyword};

/// Writes one file of IDL.
#[derive(Debug, Clone, Copy, Default)]
pub struct Idl;

impl Backend for Idl {
    fn generate(&self, model: &Model, options: &Options, _: &mut Diagnostics) -> Vec<GeneratedFile> {
        let mut writer = Writer { model, text: String::new(), depth: 0, open: Vec::new() };
        for (id, definition) in model.definitions() {
            writer.enter(&definition.scope);
            writer.definition(id, definition);
        }
        writer.enter(&[]);
        let path = format!("{}.idl", if options.name.is_empty() { "types" } else { &options.name });
        vec![GeneratedFile { path: path.into(), text: writer.text }]
    }
}

struct Writer<'a> {
    model: &'a Model,
    text: String,
    depth: usize,
    /// The modules that are open.
    open: Vec<Arc<str>>,
}

/// A name that is like a keyword gets a `_`, which is no part of it.
fn name(text: &str) -> String {
    if is_keyword(text) || text.starts_with('_') { format!("_{text}") } else { text.to_owned() }
}

const fn extensibility(extensibility: Extensibility) -> &'static str {
    match extensibility {
        Extensibility::Final => "@final",
        Extensibility::Appendable => "@appendable",
        Extensibility::Mutable => "@mutable",
    }
}

impl Writer<'_> {
    fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "{:width$}{line}", "", width = self.depth * 4);
    }

    /// Closes and opens modules.
    fn enter(&mut self, scope: &[Arc<str>]) {
        let shared = self.open.iter().zip(scope).take_while(|(one, other)| one == other).count();
        while self.open.len() > shared {
            self.open.pop();
            self.depth -= 1;
            self.line("};");
        }
        for module in &scope[shared..] {
            self.line(&format!("module {} {{", name(module)));
            self.depth += 1;
            self.open.push(Arc::clone(module));
        }
    }

    fn definition(&mut self, id: DefinitionId, definition: &Definition) {
        match &definition.kind {
            DefinitionKind::Alias(ty) => self.forward(id, &[ty]),
            DefinitionKind::Structure(it) => {
                self.forward(id, &it.members.iter().map(|it| &it.ty).collect::<Vec<_>>())
            }
            DefinitionKind::Union(it) => {
                self.forward(id, &it.cases.iter().map(|it| &it.member.ty).collect::<Vec<_>>())
            }
            _ => {}
        }
        self.told_before(definition);
        let own = name(&definition.name);
        match &definition.kind {
            DefinitionKind::Constant { ty, value } => {
                let value = self.value(ty, value);
                let ty = if let Type::Fixed { .. } = ty { "fixed".to_owned() } else { self.ty(ty) };
                self.line(&format!("const {ty} {own} = {value};"));
            }
            DefinitionKind::Alias(ty) => {
                let (ty, dimensions) = self.declared(ty);
                self.line(&format!("typedef {ty} {own}{dimensions};"));
            }
            DefinitionKind::Structure(structure) => self.structure(&own, structure),
            DefinitionKind::Union(union) => self.union(&own, union),
            DefinitionKind::Enumeration(enumeration) => {
                let mut annotations: Vec<_> =
                    enumeration.extensibility.map(|it| extensibility(it).to_owned()).into_iter().collect();
                if enumeration.bit_bound != 32 {
                    annotations.push(format!("@bit_bound({})", enumeration.bit_bound));
                }
                if enumeration.ignore_literal_names {
                    annotations.push("@ignore_literal_names".to_owned());
                }
                let mut next = 0;
                let literals = enumeration.literals.iter().map(|literal| {
                    let mut text = self.verbatim_text(&literal.verbatim);
                    if literal.default {
                        text += "@default_literal ";
                    }
                    if i64::from(literal.value) != next {
                        let _ = write!(text, "@value({}) ", literal.value);
                    }
                    next = i64::from(literal.value) + 1;
                    text + &name(&literal.name)
                });
                let literals = literals.collect::<Vec<_>>();
                self.list(&annotations, "enum", &own, &literals);
            }
            DefinitionKind::Bitmask(bitmask) => {
                let annotations = match bitmask.bit_bound {
                    32 => vec![],
                    bits => vec![format!("@bit_bound({bits})")],
                };
                let mut next = 0;
                let flags = bitmask.flags.iter().map(|flag| {
                    let mut text = self.verbatim_text(&flag.verbatim);
                    if flag.position != next {
                        let _ = write!(text, "@position({}) ", flag.position);
                    }
                    next = flag.position + 1;
                    text + &name(&flag.name)
                });
                let flags = flags.collect::<Vec<_>>();
                self.list(&annotations, "bitmask", &own, &flags);
            }
            DefinitionKind::Bitset(bitset) => self.bitset(&own, bitset),
        }
    }

    /// What stands before a definition: after declarations of other types, to which it would belong.
    fn told_before(&mut self, definition: &Definition) {
        for text in &definition.verbatim {
            self.verbatim(text);
        }
        if let Some(told) = &definition.dds_name {
            self.line(&format!("@dds_name({})", string(told)));
        }
    }

    fn list(&mut self, annotations: &[String], what: &str, own: &str, items: &[String]) {
        if !annotations.is_empty() {
            self.line(&annotations.join(" "));
        }
        self.line(&format!("{what} {own} {{"));
        self.depth += 1;
        for (index, item) in items.iter().enumerate() {
            let comma = if index + 1 < items.len() { "," } else { "" };
            self.line(&format!("{item}{comma}"));
        }
        self.depth -= 1;
        self.line("};");
    }

    fn aggregate(&mut self, aggregate: &Aggregate) {
        let mut annotations = vec![extensibility(aggregate.extensibility).to_owned()];
        if aggregate.autoid == AutoId::Hash {
            annotations.push("@autoid(HASH)".to_owned());
        }
        if aggregate.nested {
            annotations.push("@nested".to_owned());
        }
        match &aggregate.topic {
            Some(Some(topic)) => annotations.push(format!("@topic(name={})", string(topic))),
            Some(None) => annotations.push("@topic".to_owned()),
            None => {}
        }
        if let Some(bits) = aggregate.data_representation {
            annotations.push(format!("@data_representation({bits})"));
        }
        self.line(&annotations.join(" "));
    }

    /// Declares the types that are defined later and used here.
    fn forward(&mut self, id: DefinitionId, types: &[&Type]) {
        let mut later = Vec::new();
        for ty in types {
            each_named(ty, &mut |named| {
                if named.0 > id.0 && !later.contains(&named) {
                    later.push(named);
                }
            });
        }
        for named in later {
            let definition = self.model.definition(named);
            let what = if matches!(definition.kind, DefinitionKind::Union(_)) { "union" } else { "struct" };
            let here = std::mem::take(&mut self.open);
            let depth = std::mem::replace(&mut self.depth, here.len());
            self.open = here.clone();
            self.enter(&definition.scope);
            self.line(&format!("{what} {};", name(&definition.name)));
            self.enter(&here);
            self.depth = depth;
        }
    }

    fn structure(&mut self, own: &str, structure: &Structure) {
        self.aggregate(&structure.aggregate);
        let base = structure.base.map_or_else(String::new, |base| format!(" : {}", self.named(base)));
        self.line(&format!("struct {own}{base} {{"));
        self.depth += 1;
        let inherited = self.model.all_members(structure);
        let inherited = inherited.len() - structure.members.len();
        let last =
            self.model.all_members(structure).get(inherited.wrapping_sub(1)).map(|member| member.id + 1);
        let mut next = last.unwrap_or(0);
        for member in &structure.members {
            self.member(member, structure.aggregate.autoid, next);
            next = member.id + 1;
        }
        self.depth -= 1;
        self.line("};");
    }

    fn member(&mut self, member: &Member, autoid: AutoId, next: u32) {
        let automatic = if autoid == AutoId::Hash { hash_id(&member.name) } else { next };
        let mut text = self.verbatim_text(&member.verbatim);
        for (told, word) in [
            (member.key, "@key "),
            (member.optional, "@optional "),
            (member.must_understand, "@must_understand "),
            (member.external, "@external "),
            (member.non_serialized, "@non_serialized "),
        ] {
            if told {
                text += word;
            }
        }
        if member.id != automatic {
            let _ = write!(text, "@id({}) ", member.id);
        }
        if let Some(kind) = member.try_construct {
            let _ = write!(text, "{} ", try_construct(kind));
        }
        for (value, word) in [(&member.default, "default"), (&member.min, "min"), (&member.max, "max")] {
            if let Some(value) = value {
                let _ = write!(text, "@{word}({}) ", self.value(&member.ty, value));
            }
        }
        if let Some(unit) = &member.unit {
            let _ = write!(text, "@unit({}) ", string(unit));
        }
        let (ty, dimensions) = self.declared(&member.ty);
        self.line(&format!("{text}{ty} {}{dimensions};", name(&member.name)));
    }

    fn union(&mut self, own: &str, union: &Union) {
        self.aggregate(&union.aggregate);
        let key = if union.key { "@key " } else { "" };
        let discriminator = self.ty(&union.discriminator);
        self.line(&format!("union {own} switch ({key}{discriminator}) {{"));
        let mut next = 1;
        for case in &union.cases {
            for label in &case.labels {
                let label = self.label(union, *label);
                self.line(&format!("case {label}:"));
            }
            if case.default {
                self.line("default:");
            }
            self.depth += 1;
            self.member(&case.member, union.aggregate.autoid, next);
            self.depth -= 1;
            next = case.member.id + 1;
        }
        self.line("};");
    }

    fn label(&self, union: &Union, label: i64) -> String {
        let resolved = self.model.resolved(&union.discriminator);
        if let Type::Named(id) = resolved
            && let DefinitionKind::Enumeration(enumeration) = &self.model.definition(*id).kind
            && let Some(index) = enumeration.literals.iter().position(|it| i64::from(it.value) == label)
        {
            return self.value(resolved, &Value::Literal { of: *id, index });
        }
        let letter = || u32::try_from(label).ok().and_then(char::from_u32);
        match resolved {
            Type::Primitive(crate::model::Primitive::Boolean) => {
                if label == 0 { "FALSE" } else { "TRUE" }.to_owned()
            }
            Type::Primitive(crate::model::Primitive::Char) => character(letter().unwrap_or_default(), false),
            Type::Primitive(crate::model::Primitive::WChar) => character(letter().unwrap_or_default(), true),
            _ => label.to_string(),
        }
    }

    fn bitset(&mut self, own: &str, bitset: &Bitset) {
        let base = bitset.base.map_or_else(String::new, |base| format!(" : {}", self.named(base)));
        self.line(&format!("bitset {own}{base} {{"));
        self.depth += 1;
        let mut next = match bitset.base.map(|base| &self.model.definition(base).kind) {
            Some(DefinitionKind::Bitset(base)) => base.bits,
            _ => 0,
        };
        for field in &bitset.fields {
            if field.position > next {
                self.line(&format!("bitfield<{}>;", field.position - next));
            }
            let ty = field.ty.map_or_else(String::new, |ty| format!(", {}", keyword(ty)));
            self.line(&format!("bitfield<{}{ty}> {};", field.width, name(&field.name)));
            next = field.position + field.width;
        }
        if bitset.bits > next {
            self.line(&format!("bitfield<{}>;", bitset.bits - next));
        }
        self.depth -= 1;
        self.line("};");
    }

    fn verbatim(&mut self, verbatim: &Verbatim) {
        let text = self.verbatim_text(std::slice::from_ref(verbatim));
        self.line(text.trim_end());
    }

    fn verbatim_text(&self, verbatim: &[Verbatim]) -> String {
        let texts = verbatim.iter().map(|it| {
            let (language, text) = (string(&it.language), string(&it.text));
            format!("@verbatim(language={language}, placement={}, text={text}) ", it.placement)
        });
        texts.collect()
    }

    /// The type before a name, and the dimensions after it.
    fn declared(&self, ty: &Type) -> (String, String) {
        match ty {
            Type::Array { element, dimensions } => {
                let sizes = dimensions.iter().map(|size| format!("[{size}]")).collect::<String>();
                (self.ty(&element.ty), format!("{}{sizes}", element_annotations(element)))
            }
            _ => (self.ty(ty), String::new()),
        }
    }

    fn element(&self, element: &Element) -> String {
        format!("{}{}", element_annotations(element).trim_start(), self.ty(&element.ty))
    }

    fn ty(&self, ty: &Type) -> String {
        let bounded = |bound: &Option<u32>| bound.map_or_else(String::new, |bound| format!(", {bound}"));
        match ty {
            Type::Primitive(primitive) => keyword(*primitive).to_owned(),
            Type::String { wide, bound } => {
                let word = if *wide { "wstring" } else { "string" };
                bound.map_or_else(|| word.to_owned(), |bound| format!("{word}<{bound}>"))
            }
            Type::Sequence { element, bound } => {
                format!("sequence<{}{}>", self.element(element), bounded(bound))
            }
            Type::Map { key, value, bound } => {
                format!("map<{}, {}{}>", self.element(key), self.element(value), bounded(bound))
            }
            Type::Fixed { digits, scale } => format!("fixed<{digits}, {scale}>"),
            Type::Named(id) => self.named(*id),
            // IDL has arrays only where something gets a name; a model from IDL has no others.
            Type::Array { element, .. } => self.element(element),
        }
    }

    fn named(&self, id: DefinitionId) -> String {
        let definition = self.model.definition(id);
        let scopes = definition.scope.iter().map(|scope| format!("{}::", name(scope))).collect::<String>();
        format!("::{scopes}{}", name(&definition.name))
    }

    fn value(&self, ty: &Type, value: &Value) -> String {
        let wide = matches!(
            self.model.resolved(ty),
            Type::String { wide: true, .. } | Type::Primitive(crate::model::Primitive::WChar)
        );
        match value {
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => format!("{number:?}"),
            Value::Boolean(value) => if *value { "TRUE" } else { "FALSE" }.to_owned(),
            Value::Character(letter) => character(*letter, wide),
            Value::Text(text) => format!("{}{}", if wide { "L" } else { "" }, string(text)),
            Value::Fixed(text) => format!("{text}d"),
            Value::Literal { of, index } => match &self.model.definition(*of).kind {
                DefinitionKind::Enumeration(enumeration) => {
                    let literal = enumeration.literals.get(*index).map_or("", |literal| &literal.name);
                    let definition = self.model.definition(*of);
                    let scopes = definition.scope.iter().map(|scope| format!("{}::", name(scope)));
                    format!("::{}{}", scopes.collect::<String>(), name(literal))
                }
                _ => index.to_string(),
            },
        }
    }
}

/// What is said of the elements of a collection, with spaces around it.
fn element_annotations(element: &Element) -> String {
    let external = if element.external { " @external" } else { "" };
    let construct =
        element.try_construct.map_or_else(String::new, |kind| format!(" {}", try_construct(kind)));
    let text = format!("{external}{construct}");
    if text.is_empty() { text } else { text + " " }
}

const fn try_construct(kind: TryConstruct) -> &'static str {
    match kind {
        TryConstruct::Discard => "@try_construct(DISCARD)",
        TryConstruct::UseDefault => "@try_construct(USE_DEFAULT)",
        TryConstruct::Trim => "@try_construct(TRIM)",
    }
}

fn each_named(ty: &Type, visit: &mut dyn FnMut(DefinitionId)) {
    match ty {
        Type::Named(id) => visit(*id),
        Type::Sequence { element, .. } | Type::Array { element, .. } => each_named(&element.ty, visit),
        Type::Map { key, value, .. } => {
            each_named(&key.ty, visit);
            each_named(&value.ty, visit);
        }
        Type::Primitive(_) | Type::String { .. } | Type::Fixed { .. } => {}
    }
}

fn string(text: &str) -> String {
    format!("\"{}\"", text.chars().map(|letter| escaped(letter, '"')).collect::<String>())
}

fn character(letter: char, wide: bool) -> String {
    format!("{}'{}'", if wide { "L" } else { "" }, escaped(letter, '\''))
}

fn escaped(letter: char, quote: char) -> String {
    match letter {
        '\\' => "\\\\".to_owned(),
        '\n' => "\\n".to_owned(),
        '\t' => "\\t".to_owned(),
        _ if letter == quote => format!("\\{letter}"),
        // Of three digits, so that one that follows is no part of it.
        _ if letter.is_control() && u32::from(letter) <= 0xff => format!("\\{:03o}", u32::from(letter)),
        _ => letter.to_string(),
    }
}
