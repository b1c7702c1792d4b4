//! Whether a reader's type is assignable from a writer's (XTypes 1.3 §7.2.4), and where they part.
//!
//! What cannot be told, because a TypeObject is missing or of a kind unknown here, counts as assignable.

use std::collections::BTreeSet;
use std::fmt;

use super::{
    Bitfield, Definition, Literal, Primitive, StructureMember, TypeIdentifier, TypeObject, UnionMember,
    member_flag,
};
use super::{Extensibility, TypeHash};

mod words;

use words::{in_words, name_of};

/// What may differ (§7.6.3.4.1). All false: types must be alike but for the names of types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of the policy")]
pub struct AssignabilityRules {
    /// The reader's type need only be assignable; otherwise they must be equivalent.
    pub coercion: bool,
    /// Bounds of sequences may be smaller at the reader.
    pub ignore_sequence_bounds: bool,
    /// Bounds of strings may be smaller at the reader.
    pub ignore_string_bounds: bool,
    /// Members are the same by their ids alone.
    pub ignore_member_names: bool,
    /// The reader's type may not have members that the writer's lacks, unless they are optional.
    pub prevent_type_widening: bool,
    /// Final and appendable look the same on the wire: in XCDR1.
    pub final_is_appendable: bool,
    /// Bounds of keys may be smaller at the reader.
    pub ignore_key_bounds: bool,
    /// What has no length on the wire may differ in bounds, as long as it can be read.
    pub ignore_delimiters: bool,
}

impl AssignabilityRules {
    /// What must be alike for a reader to make sense of what it gets at all.
    #[must_use]
    pub const fn readable(final_is_appendable: bool) -> Self {
        Self {
            coercion: true,
            ignore_sequence_bounds: true,
            ignore_string_bounds: true,
            ignore_member_names: true,
            prevent_type_widening: false,
            final_is_appendable,
            ignore_key_bounds: true,
            ignore_delimiters: true,
        }
    }
}

/// The first thing in which two types differ though they must not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeDifference {
    /// Path of the member; empty when it is about the types themselves.
    pub member: String,
    /// What it is in the writer's type.
    pub writer: String,
    /// What it is in the reader's type.
    pub reader: String,
}

impl fmt::Display for TypeDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { member, writer, reader } = self;
        if member.is_empty() {
            write!(f, "the type is {writer} at the writer, {reader} at the reader")
        } else {
            write!(f, "member `{member}` is {writer} at the writer, {reader} at the reader")
        }
    }
}

/// One of the two types: where its parts are found.
#[derive(Clone, Copy)]
pub struct Side<'a> {
    /// The type.
    pub root: &'a TypeIdentifier,
    /// Finds what a hash names.
    pub find: &'a dyn Fn(&TypeIdentifier) -> Option<&'a TypeObject>,
}

/// Steps of one comparison at most: types of others may be built to take long. The rest counts as assignable.
const STEPS_MAX: usize = 1 << 20;
/// Deepest nesting looked at.
const DEPTH_MAX: usize = 32;

/// The first reason for which the reader's type is not assignable from the writer's; `None` when it is.
#[must_use]
pub fn first_difference<'a>(
    writer: Side<'a>,
    reader: Side<'a>,
    rules: AssignabilityRules,
) -> Option<TypeDifference> {
    let mut comparison = Comparison {
        writer,
        reader,
        rules,
        path: Vec::new(),
        depth: 0,
        steps: STEPS_MAX,
        met: BTreeSet::new(),
        fixed: false,
    };
    comparison.types(writer.root, reader.root, Role::Root).err()
}

/// `Err` carries the first difference.
type Verdict = Result<(), TypeDifference>;

struct Comparison<'a> {
    writer: Side<'a>,
    reader: Side<'a>,
    rules: AssignabilityRules,
    path: Vec<String>,
    depth: usize,
    steps: usize,
    /// Types that were compared, or are being compared: those that contain themselves are met again.
    met: BTreeSet<(TypeHash, TypeHash, Role, bool)>,
    /// What is compared has no length on the wire: nobody can find its end who has other members.
    fixed: bool,
}

/// What a type is for the key of the sample (§7.2.4.4.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    /// It is the type of the topic: its key members are the key.
    Root,
    /// It belongs to the key.
    Holder,
    /// It does not, whatever its own key members are (`KeyErased`).
    Erased,
}

impl Role {
    /// Of a discriminator that is the key.
    const fn of_key(self) -> Self {
        match self {
            Self::Root | Self::Holder => Self::Holder,
            Self::Erased => Self::Erased,
        }
    }

    /// Of a discriminator, or the members, of a union without key.
    const fn of_other(self) -> Self {
        match self {
            Self::Holder => Self::Holder,
            Self::Root | Self::Erased => Self::Erased,
        }
    }

    /// Of a member of a structure: one without key members is the key as a whole.
    const fn of_member_of(self, keyed: bool, is_key: bool) -> Self {
        match self {
            Self::Root | Self::Holder if is_key => Self::Holder,
            Self::Holder if !keyed => Self::Holder,
            _ => Self::Erased,
        }
    }
}

/// A type with its aliases resolved.
#[derive(Clone, Copy)]
enum Resolved<'a> {
    Plain(&'a TypeIdentifier),
    Defined(&'a TypeObject),
    Unknown,
}

impl<'a> Side<'a> {
    fn resolve(&self, mut ty: &'a TypeIdentifier) -> Resolved<'a> {
        for _ in 0..DEPTH_MAX {
            let TypeIdentifier::Hash(_) = ty else {
                return if matches!(ty, TypeIdentifier::Unknown(_)) {
                    Resolved::Unknown
                } else {
                    Resolved::Plain(ty)
                };
            };
            match (self.find)(ty) {
                None => return Resolved::Unknown,
                Some(object) => match &object.definition {
                    Definition::Alias(target) | Definition::Collection(target) => ty = target,
                    Definition::Other(_) => return Resolved::Unknown,
                    _ => return Resolved::Defined(object),
                },
            }
        }
        Resolved::Unknown
    }

    /// The members of a structure, those of the structures it extends first.
    fn members(&self, base: &'a TypeIdentifier, members: &'a [StructureMember]) -> Vec<&'a StructureMember> {
        let mut chain = vec![members];
        let mut base = base;
        while let Resolved::Defined(object) = self.resolve(base)
            && let Definition::Structure { base: next, members, .. } = &object.definition
            && chain.len() < DEPTH_MAX
        {
            chain.push(members);
            base = next;
        }
        chain.into_iter().rev().flatten().collect()
    }
}

impl<'a> Comparison<'a> {
    fn types(&mut self, writer: &'a TypeIdentifier, reader: &'a TypeIdentifier, role: Role) -> Verdict {
        // Equal hashes name equal types, whoever said so.
        if writer == reader || self.depth >= DEPTH_MAX || !self.spend(1) {
            return Ok(());
        }
        if let (TypeIdentifier::Hash(ours), TypeIdentifier::Hash(theirs)) = (writer, reader)
            && !self.met.insert((*ours, *theirs, role, self.fixed || !self.rules.coercion))
        {
            return Ok(());
        }
        self.depth += 1;
        self.resolved(writer, reader, role)?;
        self.depth -= 1;
        Ok(())
    }

    fn resolved(&mut self, writer: &'a TypeIdentifier, reader: &'a TypeIdentifier, role: Role) -> Verdict {
        match (self.writer.resolve(writer), self.reader.resolve(reader)) {
            (Resolved::Unknown, _) | (_, Resolved::Unknown) => Ok(()),
            (Resolved::Plain(ours), Resolved::Plain(theirs)) => self.plain(ours, theirs, role),
            (Resolved::Defined(ours), Resolved::Defined(theirs)) => self.defined(ours, theirs, role),
            (Resolved::Defined(mask), Resolved::Plain(TypeIdentifier::Primitive(number)))
            | (Resolved::Plain(TypeIdentifier::Primitive(number)), Resolved::Defined(mask))
                if holds(mask, *number) =>
            {
                Ok(())
            }
            _ => self.differ_in_words(writer, reader),
        }
    }

    /// Whether so many steps are left; they are not any more.
    fn spend(&mut self, steps: usize) -> bool {
        let left = self.steps.checked_sub(steps);
        self.steps = left.unwrap_or(0);
        left.is_some()
    }

    fn plain(&mut self, writer: &'a TypeIdentifier, reader: &'a TypeIdentifier, role: Role) -> Verdict {
        use TypeIdentifier::{Array, Map, Primitive, Sequence, String};
        let rules = self.rules;
        let key = role == Role::Holder && !rules.ignore_key_bounds;
        match (writer, reader) {
            (Primitive(ours), Primitive(theirs)) if alike(*ours, *theirs) => Ok(()),
            (String { wide, bound }, String { wide: other, bound: most })
                if wide == other && rules.fits(*bound, *most, rules.ignore_string_bounds && !key) =>
            {
                Ok(())
            }
            (Sequence { bound, element, .. }, Sequence { bound: most, element: other, .. })
                if rules.fits(*bound, *most, rules.ignore_sequence_bounds && !key) =>
            {
                self.elements(element, other, role)
            }
            (Array { bounds, element, .. }, Array { bounds: others, element: other, .. })
                if bounds == others =>
            {
                self.elements(element, other, role)
            }
            (Map { bound, key: ours, element, .. }, Map { bound: most, key: theirs, element: other, .. })
                if rules.fits(*bound, *most, rules.ignore_sequence_bounds && !key) =>
            {
                self.elements(ours, theirs, role)?;
                self.elements(element, other, role)
            }
            _ => self.differ_in_words(writer, reader),
        }
    }

    /// Elements that differ make their collections differ, unless they are structures with members to name.
    fn elements(&mut self, writer: &'a TypeIdentifier, reader: &'a TypeIdentifier, role: Role) -> Verdict {
        if let Some(last) = self.path.last_mut() {
            last.push_str("[]");
        }
        self.strongly(writer, reader, role)?;
        if let Some(last) = self.path.last_mut() {
            last.truncate(last.len().saturating_sub(2));
        }
        Ok(())
    }

    /// As [`Self::types`], where something follows that must be found (§7.2.4.3): types without a length on
    /// the wire must be equivalent.
    fn strongly(&mut self, writer: &'a TypeIdentifier, reader: &'a TypeIdentifier, role: Role) -> Verdict {
        if self.is_delimited(writer, DEPTH_MAX) {
            return self.types(writer, reader, role);
        }
        let before = (self.rules, self.fixed);
        if self.rules.ignore_delimiters || !self.rules.coercion {
            self.fixed = true;
        } else {
            // Alike but for the names of types, and for what both versions of XCDR send alike.
            let final_is_appendable = self.rules.final_is_appendable;
            self.rules = AssignabilityRules { final_is_appendable, ..AssignabilityRules::default() };
        }
        self.types(writer, reader, role)?;
        (self.rules, self.fixed) = before;
        Ok(())
    }

    /// Whether the end of what a writer sends of this type is told (§7.2.4.2).
    fn is_delimited(&self, ty: &'a TypeIdentifier, depth: usize) -> bool {
        let Some(depth) = depth.checked_sub(1) else { return true };
        match self.writer.resolve(ty) {
            Resolved::Unknown => true,
            Resolved::Plain(plain) => match plain {
                TypeIdentifier::Sequence { element, .. } | TypeIdentifier::Array { element, .. } => {
                    self.is_delimited(element, depth)
                }
                TypeIdentifier::Map { key, element, .. } => {
                    self.is_delimited(key, depth) && self.is_delimited(element, depth)
                }
                _ => true,
            },
            Resolved::Defined(object) => match &object.definition {
                Definition::Structure { extensibility, .. } | Definition::Union { extensibility, .. } => {
                    match extensibility {
                        Extensibility::Final => false,
                        Extensibility::Appendable => !self.rules.final_is_appendable,
                        Extensibility::Mutable => true,
                    }
                }
                _ => true,
            },
        }
    }

    fn defined(&mut self, writer: &'a TypeObject, reader: &'a TypeObject, role: Role) -> Verdict {
        match (&writer.definition, &reader.definition) {
            (
                Definition::Structure { extensibility, base, members, .. },
                Definition::Structure { extensibility: other, base: their_base, members: theirs, .. },
            ) => {
                self.extensibilities(*extensibility, *other)?;
                let ours = self.writer.members(base, members);
                let theirs = self.reader.members(their_base, theirs);
                self.structures(&ours, &theirs, *extensibility, role)
            }
            (
                Definition::Union { extensibility, discriminator, discriminator_flags, members, .. },
                Definition::Union {
                    extensibility: other,
                    discriminator: theirs,
                    discriminator_flags: their_flags,
                    members: m,
                    ..
                },
            ) => {
                self.extensibilities(*extensibility, *other)?;
                let [keyed, their_key] =
                    [discriminator_flags, their_flags].map(|it| it & member_flag::KEY != 0);
                self.within("discriminator".into(), |it| {
                    let role = if keyed { role.of_key() } else { role.of_other() };
                    it.strongly(discriminator, theirs, role)?;
                    it.same(keyed == their_key, key_words(keyed), key_words(their_key))
                })?;
                self.unions(members, m, *extensibility, if keyed { Role::Erased } else { role.of_other() })
            }
            (
                Definition::Enumeration { bit_bound, literals, .. },
                Definition::Enumeration { bit_bound: other, literals: theirs, .. },
            ) => {
                let bits = |bound: u16| format!("an enumeration of {bound} bits");
                self.same(holder(*bit_bound) == holder(*other), bits(*bit_bound), bits(*other))?;
                self.enumerations(literals, theirs, role == Role::Holder)
            }
            (Definition::Bitmask { bit_bound, .. }, Definition::Bitmask { bit_bound: other, .. }) => {
                let bits = |bound: u16| format!("a bit mask of {bound} bits");
                self.same(bit_bound == other, bits(*bit_bound), bits(*other))
            }
            (Definition::Bitset { fields }, Definition::Bitset { fields: theirs }) => {
                self.bitsets(fields, theirs)
            }
            _ => self.differ(name_of(writer), name_of(reader)),
        }
    }

    fn extensibilities(&self, writer: Extensibility, reader: Extensibility) -> Verdict {
        let words = |extensibility| match extensibility {
            Extensibility::Final => "final",
            Extensibility::Appendable => "appendable",
            Extensibility::Mutable => "mutable",
        };
        let mutable = |it| it == Extensibility::Mutable;
        let alike = self.rules.final_is_appendable && !mutable(writer) && !mutable(reader);
        self.same(alike || writer == reader, words(writer).into(), words(reader).into())
    }

    /// The rules for structures of §7.2.4.4.8, in the order of the members.
    fn structures(
        &mut self,
        writer: &[&'a StructureMember],
        reader: &[&'a StructureMember],
        extensibility: Extensibility,
        role: Role,
    ) -> Verdict {
        let in_order = extensibility != Extensibility::Mutable;
        if !self.spend(writer.len().saturating_mul(reader.len())) {
            return Ok(());
        }
        let keyed = writer.iter().chain(reader).any(|member| member.has(member_flag::KEY));
        let role_of = |member: &StructureMember| role.of_member_of(keyed, member.has(member_flag::KEY));
        for place in 0..writer.len().max(reader.len()) {
            let (ours, theirs) = (writer.get(place), reader.get(place));
            if in_order
                && let (Some(ours), Some(theirs)) = (ours, theirs)
                && ours.id != theirs.id
            {
                self.unequal_places(writer, reader, ours, theirs)?;
            }
            if let Some(ours) = ours {
                match reader.iter().find(|theirs| theirs.id == ours.id) {
                    Some(theirs) => self.members(ours, theirs, in_order, (role, role_of(ours)))?,
                    None => self.unread(ours, reader, extensibility, role_of(ours) == Role::Holder)?,
                }
            }
            if let Some(theirs) = theirs
                && !writer.iter().any(|ours| ours.id == theirs.id)
            {
                self.unwritten(theirs, writer, extensibility, role_of(theirs) == Role::Holder)?;
            }
        }
        let common = writer.iter().any(|ours| reader.iter().any(|theirs| theirs.id == ours.id));
        let nothing_in_common = !common && !writer.is_empty() && !reader.is_empty();
        self.same(!nothing_in_common, "without member in common".into(), "without member in common".into())
    }

    /// In final and appendable structures members have their places.
    fn unequal_places(
        &self,
        writer: &[&StructureMember],
        reader: &[&StructureMember],
        ours: &StructureMember,
        theirs: &StructureMember,
    ) -> Verdict {
        // A member of a base or with an id of its own may only be at another place.
        let names = [ours, theirs].map(|member| member.in_words());
        let known = |members: &[&StructureMember], id| members.iter().any(|member| member.id == id);
        if known(reader, ours.id) || !known(writer, theirs.id) {
            return self.at(names[0].clone(), "at this place", &format!("not, but `{}` is", names[1]));
        }
        self.at(names[0].clone(), "at this place", "not")
    }

    /// Members with the same id.
    fn members(
        &mut self,
        ours: &'a StructureMember,
        theirs: &'a StructureMember,
        in_order: bool,
        (role, own): (Role, Role),
    ) -> Verdict {
        let name = if ours.name.text.is_some() { ours.in_words() } else { theirs.in_words() };
        let renamed = !self.rules.ignore_member_names && ours.name.hash != theirs.name.hash;
        if renamed {
            return self.at(name, &ours.with_id(), &theirs.with_id());
        }
        let is_key = ours.has(member_flag::KEY);
        self.within(name, |it| {
            let alike = role == Role::Erased || is_key == theirs.has(member_flag::KEY);
            it.same(alike, ours.key_words(), theirs.key_words())?;
            let optional = ours.has(member_flag::OPTIONAL);
            if in_order || !it.rules.coercion {
                let alike = optional == theirs.has(member_flag::OPTIONAL);
                it.same(alike, ours.optional_words(), theirs.optional_words())?;
            }
            if in_order {
                it.strongly(&ours.ty, &theirs.ty, own)
            } else {
                it.types(&ours.ty, &theirs.ty, own)
            }
        })
    }

    /// A member that the reader's type has not.
    fn unread(
        &self,
        ours: &StructureMember,
        reader: &[&StructureMember],
        extensibility: Extensibility,
        is_key: bool,
    ) -> Verdict {
        self.elsewhere(ours, reader, |id, other| (id, other))?;
        let needed = is_key || ours.is_needed();
        if self.is_fixed(extensibility) || needed || !self.rules.coercion {
            return self.at(ours.in_words(), &self.type_of(ours, self.writer), "missing");
        }
        Ok(())
    }

    /// A member that the writer's type has not.
    fn unwritten(
        &self,
        theirs: &StructureMember,
        writer: &[&StructureMember],
        extensibility: Extensibility,
        is_key: bool,
    ) -> Verdict {
        self.elsewhere(theirs, writer, |id, other| (other, id))?;
        let widens = self.rules.prevent_type_widening && !theirs.has(member_flag::OPTIONAL);
        let needed = is_key || theirs.is_needed();
        if self.is_fixed(extensibility) || needed || widens || !self.rules.coercion {
            return self.at(theirs.in_words(), "missing", &self.type_of(theirs, self.reader));
        }
        Ok(())
    }

    /// Whether both have the same members.
    const fn is_fixed(&self, extensibility: Extensibility) -> bool {
        self.fixed || matches!(extensibility, Extensibility::Final)
    }

    /// A member of the same name under another id.
    fn elsewhere(
        &self,
        member: &StructureMember,
        others: &[&StructureMember],
        order: impl Fn(u32, u32) -> (u32, u32),
    ) -> Verdict {
        let namesake = others.iter().find(|other| other.name.hash == member.name.hash);
        match namesake.filter(|_| !self.rules.ignore_member_names) {
            Some(other) => {
                let (writer, reader) = order(member.id, other.id);
                self.at(member.in_words(), &format!("number {writer}"), &format!("number {reader}"))
            }
            None => Ok(()),
        }
    }

    fn unions(
        &mut self,
        writer: &'a [UnionMember],
        reader: &'a [UnionMember],
        extensibility: Extensibility,
        role: Role,
    ) -> Verdict {
        let exact = self.is_fixed(extensibility) || !self.rules.coercion;
        let cases = |members: &[UnionMember]| members.iter().map(|it| it.labels.len() + 1).sum::<usize>();
        let both = cases(writer).saturating_add(cases(reader));
        if !self.spend(both.saturating_mul(both)) {
            return Ok(());
        }
        self.union_names(writer, reader)?;
        let selected = |members: &'a [UnionMember], label: Option<i32>| {
            let named = members.iter().find(|it| label.is_some_and(|label| it.labels.contains(&label)));
            named.or_else(|| members.iter().find(|it| it.flags & member_flag::DEFAULT != 0))
        };
        let labels = |members: &'a [UnionMember]| {
            let default = members.iter().any(|it| it.flags & member_flag::DEFAULT != 0).then_some(None);
            members.iter().flat_map(|it| &it.labels).map(|label| Some(*label)).chain(default)
        };
        for label in labels(writer).chain(labels(reader)) {
            let case = label.map_or_else(|| "default".to_owned(), |label| format!("case {label}"));
            match (selected(writer, label), selected(reader, label)) {
                (Some(ours), Some(theirs)) => self.within(case, |it| it.types(&ours.ty, &theirs.ty, role))?,
                (Some(ours), None) if exact => {
                    return self.at(case, &in_words(&ours.ty, self.writer), "missing");
                }
                (None, Some(theirs)) if exact => {
                    return self.at(case, "missing", &in_words(&theirs.ty, self.reader));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Members of unions that have one name have one id, and the other way round; unions have a label in
    /// common.
    fn union_names(&self, writer: &[UnionMember], reader: &[UnionMember]) -> Verdict {
        for (ours, theirs) in writer.iter().flat_map(|ours| reader.iter().map(move |theirs| (ours, theirs))) {
            let (same_id, same_name) = (ours.id == theirs.id, ours.name.hash == theirs.name.hash);
            if same_id != same_name && !self.rules.ignore_member_names {
                let words = |it: &UnionMember| match &it.name.text {
                    Some(name) => format!("`{name}`, number {}", it.id),
                    None => format!("number {}", it.id),
                };
                return self.at("member".to_owned(), &words(ours), &words(theirs));
            }
        }
        let labels = |members: &[UnionMember]| -> BTreeSet<i32> {
            members.iter().flat_map(|it| it.labels.iter().copied()).collect()
        };
        let (ours, theirs) = (labels(writer), labels(reader));
        let apart = !ours.is_empty() && !theirs.is_empty() && ours.is_disjoint(&theirs);
        self.same(!apart, "without label in common".into(), "without label in common".into())
    }

    fn enumerations(&mut self, writer: &[Literal], reader: &[Literal], key: bool) -> Verdict {
        let exact = key || !self.rules.coercion;
        if !self.spend(writer.len().saturating_mul(reader.len())) {
            return Ok(());
        }
        let words = |literal: &Literal| match &literal.name.text {
            Some(name) => format!("{name} = {}", literal.value),
            None => format!("another name for {}", literal.value),
        };
        for ours in writer {
            let theirs = reader
                .iter()
                .find(|it| it.value == ours.value)
                .or_else(|| reader.iter().find(|it| it.name.hash == ours.name.hash));
            match theirs {
                Some(theirs) if theirs.value == ours.value && theirs.name.hash == ours.name.hash => {}
                Some(theirs) if !self.rules.ignore_member_names => {
                    return self.differ(words(ours), words(theirs));
                }
                None if exact => return self.differ(words(ours), format!("without {}", ours.value)),
                _ => {}
            }
        }
        let more = reader.iter().find(|it| !writer.iter().any(|ours| ours.value == it.value));
        match more.filter(|_| !self.rules.coercion) {
            Some(more) => self.differ(format!("without {}", more.value), words(more)),
            None => Ok(()),
        }
    }

    /// XTypes says nothing of bit sets: those of the same size are read, each bit as what it is here.
    fn bitsets(&self, writer: &[Bitfield], reader: &[Bitfield]) -> Verdict {
        let bits = |fields: &[Bitfield]| fields.iter().map(Bitfield::end).max().unwrap_or(0);
        let words = |bits: u16| format!("a bit set of {bits} bits");
        let (ours, theirs) = (bits(writer), bits(reader));
        self.same(holder(ours) == holder(theirs), words(ours), words(theirs))?;
        let field = |it: &Bitfield| format!("{} bits at {} ({})", it.bits, it.position, it.holder.name());
        let alike = |one: &Bitfield, two: &Bitfield| {
            (one.position, one.bits, one.holder) == (two.position, two.bits, two.holder)
                && (self.rules.ignore_member_names || one.name.hash == two.name.hash)
        };
        for place in 0..writer.len().max(reader.len()) {
            match (writer.get(place), reader.get(place)) {
                (Some(ours), Some(theirs)) if alike(ours, theirs) => {}
                (None, Some(_)) | (Some(_), None) if self.rules.coercion => {}
                (ours, theirs) => {
                    let [ours, theirs] =
                        [ours, theirs].map(|it| it.map_or_else(|| "missing".to_owned(), field));
                    return self.at(format!("bit field {place}"), &ours, &theirs);
                }
            }
        }
        Ok(())
    }

    fn type_of(&self, member: &StructureMember, side: Side<'a>) -> String {
        let key = if member.has(member_flag::KEY) { " (key)" } else { "" };
        format!("{}{key}", in_words(&member.ty, side))
    }

    fn within(&mut self, name: String, compare: impl FnOnce(&mut Self) -> Verdict) -> Verdict {
        self.path.push(name);
        compare(self)?;
        self.path.pop();
        Ok(())
    }

    fn same(&self, same: bool, writer: String, reader: String) -> Verdict {
        if same { Ok(()) } else { self.differ(writer, reader) }
    }

    fn differ_in_words(&self, writer: &TypeIdentifier, reader: &TypeIdentifier) -> Verdict {
        self.differ(in_words(writer, self.writer), in_words(reader, self.reader))
    }

    fn differ(&self, writer: String, reader: String) -> Verdict {
        Err(TypeDifference { member: self.path.join("."), writer, reader })
    }

    /// A difference about a member of the structure looked at.
    fn at(&self, name: String, writer: &str, reader: &str) -> Verdict {
        let member = [self.path.as_slice(), &[name]].concat().join(".");
        Err(TypeDifference { member, writer: writer.into(), reader: reader.into() })
    }
}

impl AssignabilityRules {
    /// Whether what a writer bounds by `bound` fits a reader that bounds it by `most`; 0 is no bound.
    fn fits(&self, bound: u32, most: u32, ignored: bool) -> bool {
        if !self.coercion {
            return bound == most;
        }
        ignored || most == 0 || (bound != 0 && bound <= most)
    }
}

impl StructureMember {
    fn in_words(&self) -> String {
        self.name.text.clone().unwrap_or_else(|| format!("number {}", self.id))
    }

    fn with_id(&self) -> String {
        match &self.name.text {
            Some(name) => format!("`{name}`, number {}", self.id),
            None => format!("another, number {}", self.id),
        }
    }

    fn key_words(&self) -> String {
        key_words(self.has(member_flag::KEY))
    }

    fn optional_words(&self) -> String {
        if self.has(member_flag::OPTIONAL) { "optional".into() } else { "always there".into() }
    }

    /// Whether who lacks the member must not take the sample. Key members are looked at by themselves.
    const fn is_needed(&self) -> bool {
        self.has(member_flag::MUST_UNDERSTAND) && !self.has(member_flag::OPTIONAL)
    }
}

impl Bitfield {
    /// The bit behind its last one.
    fn end(&self) -> u16 {
        self.position.saturating_add(u16::from(self.bits))
    }
}

fn key_words(key: bool) -> String {
    if key { "a key".into() } else { "no key".into() }
}

/// The octets that hold so many bits (table 32).
const fn holder(bit_bound: u16) -> u16 {
    match bit_bound {
        0..=8 => 8,
        9..=16 => 16,
        17..=32 => 32,
        _ => 64,
    }
}

/// Whether a number holds the bits of a mask (table 15).
const fn holds(mask: &TypeObject, number: Primitive) -> bool {
    let Definition::Bitmask { bit_bound, .. } = &mask.definition else { return false };
    matches!(
        (holder(*bit_bound), number),
        (8, Primitive::Uint8 | Primitive::Byte)
            | (16, Primitive::Uint16)
            | (32, Primitive::Uint32)
            | (64, Primitive::Uint64)
    )
}

/// The same primitive. An octet and a uint8 are one type in Rust, and Cyclone DDS 0.10 says octet for uint8
/// and char for int8.
const fn alike(one: Primitive, other: Primitive) -> bool {
    const fn canonical(primitive: Primitive) -> u8 {
        match primitive {
            Primitive::Byte => Primitive::Uint8 as u8,
            Primitive::Char8 => Primitive::Int8 as u8,
            other => other as u8,
        }
    }
    canonical(one) == canonical(other)
}
