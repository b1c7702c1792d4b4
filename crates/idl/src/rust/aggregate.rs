//! Structures and unions.

use super::Writer;
use crate::model::{
    Aggregate, AutoId, Case, DefinitionId, DefinitionKind, Extensibility, Member, Primitive, Structure, Type,
    Union, Value,
};
use crate::resolve::hash_id;

/// The largest array that the standard library has a default for.
const DEFAULT_ARRAY_MAX: u32 = 32;

/// The attribute that says it.
pub(super) const fn extensibility(extensibility: Extensibility) -> &'static str {
    match extensibility {
        Extensibility::Final => "final",
        Extensibility::Appendable => "appendable",
        Extensibility::Mutable => "mutable",
    }
}

impl Writer<'_> {
    pub(super) fn structure(&mut self, id: DefinitionId, structure: &Structure, derive: &str) {
        let definition = self.model.definition(id);
        let (base, members) = super::parts(self.model, structure);
        if let (Some(_), None) = (structure.base, base) {
            let message =
                format!("peers are told the members of the bases of `{}` as its own", definition.full_name());
            let hint = "a structure and its base have the same extensibility; the octets are the same";
            self.weaker(id, "base", message, hint);
        }
        let mut names = self.names.members[id.0].iter();
        let base = base.and_then(|base| Some((base, names.next()?)));
        let all = members.into_iter().zip(names).collect::<Vec<_>>();
        let (sent, left) = all.into_iter().partition::<Vec<_>, _>(|(member, _)| !member.non_serialized);
        for (member, _) in left {
            let message = format!("the member `{}` is not sent and is left out", member.name);
            self.weaker(id, &format!("non_serialized {}", id.0), message, "keep it beside the type");
        }
        let by_hand = sent.iter().any(|(member, _)| member.default.is_some() || self.is_long(member));
        let eq = self.model.all_members(structure).iter().all(|member| self.has_eq(&member.ty));
        self.head(id, &structure.aggregate, eq, !by_hand, derive, "");
        let name = &self.names.paths[id.0].1;
        if sent.is_empty() && base.is_none() {
            self.line(&format!("pub struct {name} {{}}"));
            return;
        }
        self.line(&format!("pub struct {name} {{"));
        self.depth += 1;
        let mut next = base.map_or(0, |(base, _)| self.next_id(base));
        if let Some((base, field)) = base {
            self.line("#[dds(base)]");
            self.line(&format!("pub {field}: {},", self.path(id, base)));
        }
        for (member, field) in &sent {
            let automatic =
                if structure.aggregate.autoid == AutoId::Hash { hash_id(&member.name) } else { next };
            next = member.id + 1;
            let (ty, limits) = self.member_type(id, member);
            let mut attributes = self.member_attributes(id, member, field, automatic, limits);
            if member.key {
                attributes.insert(0, "key".to_owned());
            }
            if member.must_understand && !member.key {
                attributes.push("must_understand".to_owned());
            }
            if let Some(default) = &member.default {
                attributes.push(format!("default = {}", self.boxed(id, member, default)));
            }
            if !attributes.is_empty() {
                self.line(&format!("#[dds({})]", attributes.join(", ")));
            }
            self.line(&format!("pub {field}: {ty},"));
        }
        self.depth -= 1;
        self.line("}");
        if by_hand {
            self.default_by_hand(id, base.map(|(_, field)| field), &sent);
        }
    }

    /// The id that the derive counts for a member after those of this structure.
    fn next_id(&self, id: DefinitionId) -> u32 {
        let DefinitionKind::Structure(structure) = &self.model.definition(id).kind else { return 0 };
        let members = self.model.all_members(structure);
        let last = members.iter().rfind(|member| !member.non_serialized);
        last.map_or(0, |member| member.id + 1)
    }

    /// Comment, derives and attributes of a structure or union.
    fn head(
        &mut self,
        id: DefinitionId,
        aggregate: &Aggregate,
        eq: bool,
        default: bool,
        derive: &str,
        more: &str,
    ) {
        let definition = self.model.definition(id);
        if aggregate.data_representation.is_some() {
            let message = format!("`@data_representation` of `{}` has no effect", definition.full_name());
            self.weaker(id, "data_representation", message, "use the policy DataRepresentation of the topic");
        }
        self.documentation(&definition.verbatim, &[]);
        let eq = if eq { ", Eq" } else { "" };
        let default = if default { ", Default" } else { "" };
        self.line(&format!("#[derive(Clone, Debug{default}, PartialEq{eq}, {derive})]"));
        let mut attributes = Vec::new();
        if definition.told_name() != self.names.paths[id.0].1 {
            attributes.push(format!("name = {:?}", definition.told_name()));
        }
        attributes.push(extensibility(aggregate.extensibility).to_owned());
        if aggregate.nested {
            attributes.push("nested".to_owned());
        }
        if aggregate.autoid == AutoId::Hash {
            attributes.push("autoid = \"hash\"".to_owned());
        }
        self.line(&format!("#[dds({}{more})]", attributes.join(", ")));
    }

    /// What is said of a member of a structure as of one of a union.
    fn member_attributes(
        &mut self,
        of: DefinitionId,
        member: &Member,
        rust: &str,
        automatic: u32,
        limits: Vec<String>,
    ) -> Vec<String> {
        let mut more = Vec::new();
        if let Some(unit) = &member.unit {
            more.push(format!("Unit: {unit}."));
        }
        let number = |value: &Option<Value>| value.as_ref().map(|it| self.value(of, &member.ty, it));
        match (number(&member.min), number(&member.max)) {
            (Some(min), Some(max)) => more.push(format!("From {min} to {max}.")),
            (Some(min), None) => more.push(format!("At least {min}.")),
            (None, Some(max)) => more.push(format!("At most {max}.")),
            (None, None) => {}
        }
        self.documentation(&member.verbatim, &more);
        let mut attributes = Vec::new();
        if rust.trim_start_matches("r#") != &*member.name {
            attributes.push(format!("name = {:?}", member.name));
        }
        if member.id != automatic {
            attributes.push(format!("id = {}", member.id));
        }
        attributes.extend(limits);
        attributes.extend(member.unit.as_ref().map(|unit| format!("unit = {:?}", &**unit)));
        for (name, value) in [("min", &member.min), ("max", &member.max)] {
            // Others are told numbers.
            match value {
                Some(Value::Integer(number)) => attributes.push(format!("{name} = {number}")),
                Some(Value::Float(number)) => attributes.push(format!("{name} = {number:?}")),
                _ => {}
            }
        }
        attributes
    }

    /// A default within the box or option of its member.
    fn boxed(&self, id: DefinitionId, member: &Member, value: &Value) -> String {
        let mut text = self.owned(id, &member.ty, value);
        if self.is_boxed(id, member) {
            text = format!("{}::new({text})", self.std(id, "Box", "boxed"));
        }
        if member.optional { format!("Some({text})") } else { text }
    }

    /// Whether the standard library has no default for it.
    fn is_long(&self, member: &Member) -> bool {
        !member.optional && self.is_long_array(&member.ty)
    }

    fn is_long_array(&self, ty: &Type) -> bool {
        match self.model.resolved(ty) {
            Type::Array { element, dimensions } => {
                dimensions.iter().any(|size| *size > DEFAULT_ARRAY_MAX) || self.is_long_array(&element.ty)
            }
            _ => false,
        }
    }

    fn default_by_hand(&mut self, id: DefinitionId, base: Option<&String>, members: &[(&Member, &String)]) {
        let name = &self.names.paths[id.0].1;
        let default = self.std(id, "Default", "default");
        self.line("");
        self.line(&format!("impl {default} for {name} {{"));
        self.depth += 1;
        self.line("fn default() -> Self {");
        self.depth += 1;
        self.line("Self {");
        self.depth += 1;
        if let Some(base) = base {
            self.line(&format!("{base}: {default}::default(),"));
        }
        for (member, field) in members {
            let value = match &member.default {
                Some(value) => self.boxed(id, member, value),
                None if self.is_long(member) => {
                    let text = self.array_default(id, &member.ty);
                    if self.is_boxed(id, member) {
                        format!("{}::new({text})", self.std(id, "Box", "boxed"))
                    } else {
                        text
                    }
                }
                None => format!("{default}::default()"),
            };
            self.line(&format!("{field}: {value},"));
        }
        for end in ["}", "}", "}"] {
            self.depth -= 1;
            self.line(end);
        }
    }

    fn array_default(&self, id: DefinitionId, ty: &Type) -> String {
        let default = format!("{}::default()", self.std(id, "Default", "default"));
        match self.model.resolved(ty) {
            Type::Array { element, dimensions } => {
                let inner = self.array_default(id, &element.ty);
                dimensions.iter().fold(inner, |inner, _| format!("std::array::from_fn(|_| {inner})"))
            }
            _ => default,
        }
    }

    pub(super) fn union(&mut self, id: DefinitionId, union: &Union, derive: &str) {
        let discriminator = match self.model.resolved(&union.discriminator).clone() {
            Type::Named(named) => self.path(id, named),
            resolved => self.ty(id, &resolved),
        };
        let eq = union.cases.iter().all(|case| self.has_eq(&case.member.ty));
        let key = if union.key { ", key" } else { "" };
        let more = format!(", union, discriminator = {discriminator}{key}");
        self.head(id, &union.aggregate, eq, false, derive, &more);
        let (name, names) = (&self.names.paths[id.0].1, &self.names.members[id.0]);
        self.line(&format!("pub enum {name} {{"));
        self.depth += 1;
        for ((case, variant), automatic) in union.cases.iter().zip(names).zip(1..) {
            let mut selected = Vec::new();
            if case.default && case.labels.is_empty() && !self.has_number_labels(union) {
                // Without one nothing selects the default, of which there was a warning.
                let Some(label) = self.unused_label(union) else { continue };
                selected.push(format!("default = {}", self.label(id, union, label)));
            } else if case.default {
                selected.push("default".to_owned());
            }
            let (ty, limits) = self.member_type(id, &case.member);
            let labels = case.labels.iter().map(|label| self.label(id, union, *label)).collect::<Vec<_>>();
            match labels.as_slice() {
                [] => {}
                [only] => selected.push(format!("case = {only}")),
                several => selected.push(format!("case({})", several.join(", "))),
            }
            selected.extend(self.member_attributes(id, &case.member, variant, automatic, limits));
            self.line(&format!("#[dds({})]", selected.join(", ")));
            self.line(&format!("{variant}({ty}),"));
        }
        self.depth -= 1;
        self.line("}");
        self.union_default(id, union);
    }

    /// The default of a union: its first member (XTypes 1.3 table 9).
    fn union_default(&mut self, id: DefinitionId, union: &Union) {
        let (name, names) = (&self.names.paths[id.0].1, &self.names.members[id.0]);
        let written = |case: &Case| {
            let told = !case.labels.is_empty() || self.has_number_labels(union);
            told || self.unused_label(union).is_some()
        };
        let first = union.cases.iter().zip(names).find(|(case, _)| written(case));
        let Some((case, variant)) = first else { return };
        let default = self.std(id, "Default", "default");
        let value = match &case.member.default {
            Some(value) => self.boxed(id, &case.member, value),
            None if self.is_long(&case.member) => self.array_default(id, &case.member.ty),
            None => format!("{default}::default()"),
        };
        self.line("");
        self.line(&format!("impl {default} for {name} {{"));
        self.line("    fn default() -> Self {");
        self.line(&format!("        Self::{variant}({value})"));
        self.line("    }");
        self.line("}");
    }

    fn has_number_labels(&self, union: &Union) -> bool {
        match self.model.resolved(&union.discriminator) {
            Type::Primitive(primitive) => {
                !matches!(primitive, Primitive::Boolean | Primitive::Char | Primitive::WChar)
            }
            Type::Named(_) => false,
            _ => true,
        }
    }

    /// A value of the discriminator that selects nothing.
    fn unused_label(&self, union: &Union) -> Option<i64> {
        let candidates = match self.model.named(&union.discriminator) {
            Some((_, definition)) => match &definition.kind {
                DefinitionKind::Enumeration(enumeration) => {
                    enumeration.literals.iter().map(|literal| i64::from(literal.value)).collect()
                }
                DefinitionKind::Bitmask(_) => (0..256).collect(),
                _ => Vec::new(),
            },
            None => match self.model.resolved(&union.discriminator) {
                Type::Primitive(Primitive::Boolean) => vec![0, 1],
                _ => (0..256).collect(),
            },
        };
        candidates.into_iter().find(|value| !union.cases.iter().any(|case| case.labels.contains(value)))
    }

    fn label(&self, id: DefinitionId, union: &Union, label: i64) -> String {
        match self.model.resolved(&union.discriminator) {
            Type::Primitive(Primitive::Boolean) => (label != 0).to_string(),
            Type::Primitive(Primitive::Char) => {
                format!("{:?}", u32::try_from(label).ok().and_then(char::from_u32).unwrap_or_default())
            }
            Type::Named(named) => match &self.model.definition(*named).kind {
                DefinitionKind::Enumeration(enumeration) => {
                    let index = enumeration.literals.iter().position(|it| i64::from(it.value) == label);
                    let value = Value::Literal { of: *named, index: index.unwrap_or_default() };
                    self.value(id, &union.discriminator, &value)
                }
                _ => self.value(id, &union.discriminator, &Value::Integer(label.into())),
            },
            Type::Primitive(Primitive::WChar) => format!("plainsong::cdr::WChar({label:#x})"),
            _ => label.to_string(),
        }
    }
}
