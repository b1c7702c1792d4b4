//! Scopes, and how names are found in them (IDL 4.2 §7.5).

use std::collections::HashMap;
use std::sync::Arc;

use super::{Missing, Resolved, Resolver};
use crate::ast::{Name, ScopedName};
use crate::diagnostic::{Diagnostic, closest};
use crate::limits::DIAGNOSTICS_MAX;
use crate::model::{DefinitionId, DefinitionKind, Type};
use crate::source::Span;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ScopeId(pub(super) usize);

impl ScopeId {
    pub(super) const ROOT: Self = Self(0);
}

pub(super) struct Scope {
    pub(super) name: Arc<str>,
    pub(super) parent: Option<ScopeId>,
    /// A structure or union: types in it are called after it.
    pub(super) aggregate: bool,
    /// The interfaces that an interface inherits from.
    pub(super) inherited: Vec<ScopeId>,
    symbols: HashMap<Arc<str>, Symbol>,
    /// How a name in lower case is spelled.
    spellings: HashMap<String, Arc<str>>,
}

impl Scope {
    pub(super) fn root() -> Self {
        Self::new("".into(), None)
    }

    fn new(name: Arc<str>, parent: Option<ScopeId>) -> Self {
        Self {
            name,
            parent,
            aggregate: false,
            inherited: Vec::new(),
            symbols: HashMap::new(),
            spellings: HashMap::new(),
        }
    }
}

struct Symbol {
    name: Arc<str>,
    span: Span,
    kind: SymbolKind,
}

#[derive(Debug, Clone)]
pub(super) enum SymbolKind {
    /// A module or interface.
    Scope {
        id: ScopeId,
        interface: bool,
    },
    Type {
        id: DefinitionId,
        defined: bool,
    },
    Constant(DefinitionId),
    Literal(DefinitionId, usize),
    /// An interface whose definition may follow.
    ForwardInterface(Arc<str>),
    /// No data, for this reason.
    LeftOut(Arc<str>),
    /// What is wrong with it has been said.
    Broken,
}

/// What came of a declaration.
pub(super) enum Declared {
    New,
    /// The same place was read before.
    Known,
    /// An error was said.
    Twice,
}

impl Resolver<'_> {
    fn symbol(&self, scope: ScopeId, name: &str) -> Option<&Symbol> {
        let scope = &self.scopes[scope.0];
        let other = || scope.symbols.get(scope.spellings.get(&name.to_ascii_lowercase())?);
        scope.symbols.get(name).or_else(other)
    }

    /// Whether this scope has the name, or one that differs only in case.
    pub(super) fn is_taken(&self, scope: ScopeId, name: &Name) -> bool {
        self.symbol(scope, &name.text).is_some()
    }

    /// Whether this very place has declared the name.
    pub(super) fn is_known(&self, scope: ScopeId, name: &Name) -> bool {
        self.symbol(scope, &name.text).is_some_and(|known| known.span == name.span && known.name == name.text)
    }

    /// The type of this name that this scope has.
    pub(super) fn forward_declared(&self, scope: ScopeId, name: &Name) -> Option<DefinitionId> {
        match self.symbol(scope, &name.text) {
            Some(Symbol { kind: SymbolKind::Type { id, .. }, name: known, .. }) if *known == name.text => {
                Some(*id)
            }
            _ => None,
        }
    }

    pub(super) fn is_defined(&self, scope: ScopeId, name: &Name) -> bool {
        let kind = self.symbol(scope, &name.text).map(|known| &known.kind);
        !matches!(kind, Some(SymbolKind::Type { defined: false, .. }))
    }

    pub(super) fn redeclare(&mut self, scope: ScopeId, name: &Name, kind: SymbolKind) {
        let symbol = Symbol { name: Arc::clone(&name.text), span: name.span, kind };
        let scope = &mut self.scopes[scope.0];
        scope.spellings.entry(name.text.to_ascii_lowercase()).or_insert_with(|| Arc::clone(&name.text));
        scope.symbols.insert(Arc::clone(&name.text), symbol);
    }

    /// Introduces a name.
    pub(super) fn declare(&mut self, scope: ScopeId, name: &Name, kind: SymbolKind) -> Declared {
        if let Some(known) = self.symbol(scope, &name.text) {
            let same_name = known.name == name.text;
            if same_name && known.span == name.span {
                return Declared::Known;
            }
            if same_name && matches!(kind, SymbolKind::ForwardInterface(_)) {
                return Declared::Known;
            }
            let gone = matches!(known.kind, SymbolKind::LeftOut(_) | SymbolKind::Broken);
            if same_name && gone && matches!(kind, SymbolKind::Type { defined: false, .. }) {
                return Declared::Known;
            }
            // What turned out to be no data may be declared again: it may be an interface.
            let again = matches!(known.kind, SymbolKind::ForwardInterface(_) | SymbolKind::LeftOut(_));
            if same_name && again && matches!(kind, SymbolKind::Scope { .. } | SymbolKind::LeftOut(_)) {
                self.redeclare(scope, name, kind);
                return Declared::New;
            }
            let first = known.span;
            if same_name {
                let message = format!("`{}` is defined twice", name.text);
                let said = Diagnostic::error(name.span, message).note("the first definition", first);
                self.say(said.hint("give one of them another name, or put one into another module"));
                return Declared::Twice;
            }
            // IDL 4.2 §7.2.3 forbids it, and other compilers take it.
            let message = format!("`{}` differs from `{}` only in case", name.text, known.name);
            let said = Diagnostic::warning(name.span, message).note("the other one", first);
            self.say(said.hint("IDL does not allow that: give one of them another name"));
        }
        self.redeclare(scope, name, kind);
        Declared::New
    }

    /// The scope of a module or interface, which may have been open before.
    pub(super) fn open_scope(&mut self, scope: ScopeId, name: &Name, interface: bool) -> Option<ScopeId> {
        if let Some(Symbol { name: known, kind: SymbolKind::Scope { id, interface: before }, span }) =
            self.symbol(scope, &name.text)
            && *known == name.text
            && *before == interface
            && (!interface || *span == name.span)
        {
            return Some(*id);
        }
        let id = ScopeId(self.scopes.len());
        match self.declare(scope, name, SymbolKind::Scope { id, interface }) {
            Declared::New => {
                self.scopes.push(Scope::new(Arc::clone(&name.text), Some(scope)));
                Some(id)
            }
            Declared::Known | Declared::Twice => None,
        }
    }

    /// The scope within a structure or union.
    pub(super) fn aggregate_scope(&mut self, scope: ScopeId, name: &Name) -> ScopeId {
        let mut inner = Scope::new(Arc::clone(&name.text), Some(scope));
        inner.aggregate = true;
        self.scopes.push(inner);
        ScopeId(self.scopes.len() - 1)
    }

    /// The modules of a definition and its name. A type within a structure is called after it.
    pub(super) fn path_of(&self, scope: ScopeId, name: &Name) -> (Vec<Arc<str>>, Arc<str>) {
        let mut name = Arc::clone(&name.text);
        let mut modules = Vec::new();
        let mut at = scope;
        while let Scope { name: outer, parent: Some(parent), aggregate, .. } = &self.scopes[at.0] {
            if *aggregate {
                name = format!("{outer}_{name}").into();
            } else {
                modules.push(Arc::clone(outer));
            }
            at = *parent;
        }
        modules.reverse();
        (modules, name)
    }

    /// What a name means here; an error says so if it means nothing.
    pub(super) fn look_up(&mut self, scope: ScopeId, name: &ScopedName, what: &str) -> Resolved<SymbolKind> {
        let Some(first) = name.parts.first() else { return Err(Missing::Failed) };
        let mut found = if name.absolute {
            self.find_in(ScopeId::ROOT, &first.text)
        } else {
            self.find(scope, &first.text)
        };
        let mut place = String::new();
        let mut previous = first;
        for (index, part) in name.parts.iter().enumerate() {
            if index > 0 {
                place = format!(" in `{}`", previous.text);
                found = match &found {
                    Some((_, SymbolKind::Scope { id, .. })) => self.find_in(*id, &part.text),
                    Some((_, SymbolKind::Type { id, .. })) => self.literal_of(*id, &part.text),
                    _ => None,
                };
            }
            match &found {
                None => return self.unknown(scope, name, part, what, &place),
                Some((known, _)) if *known != part.text => {
                    let message = format!("`{}` is spelled `{known}` where it is defined", part.text);
                    self.say(
                        Diagnostic::error(part.span, message).hint("names have the same case everywhere"),
                    );
                }
                Some((_, SymbolKind::Broken)) => return Err(Missing::Failed),
                Some((_, SymbolKind::LeftOut(why) | SymbolKind::ForwardInterface(why))) => {
                    return Err(Missing::LeftOut(Arc::clone(why)));
                }
                Some(_) => {}
            }
            previous = part;
        }
        found.map(|(_, kind)| kind).ok_or(Missing::Failed)
    }

    fn unknown(
        &mut self,
        scope: ScopeId,
        name: &ScopedName,
        part: &Name,
        what: &str,
        place: &str,
    ) -> Resolved<SymbolKind> {
        let message = if name.parts.len() > 1 {
            format!("there is no `{}`{place}: the {what} `{}` is unknown", part.text, name.text())
        } else {
            format!("the {what} `{}` is unknown", part.text)
        };
        let said = Diagnostic::error(part.span, message);
        // Nobody sees the hints of more errors, each of which takes a look at all names.
        let many = self.diagnostics.errors() >= DIAGNOSTICS_MAX;
        let known = if many { Vec::new() } else { self.visible(scope) };
        let meant = closest(&part.text, known.iter().map(|known| &**known));
        let foreign = match &*part.text {
            "int" => Some("long"),
            "bool" => Some("boolean"),
            "byte" => Some("octet"),
            _ => None,
        };
        self.fail(match (foreign, meant) {
            (Some(meant), _) => said.hint(format!("in IDL this type is `{meant}`")),
            (None, Some(meant)) => said.hint(format!("did you mean `{meant}`?")),
            (None, None) => said.hint("define it before it is used, or include the file that does"),
        })
    }

    /// All names that can be used here without scope.
    fn visible(&self, scope: ScopeId) -> Vec<Arc<str>> {
        let scopes = std::iter::successors(Some(scope), |at| self.scopes[at.0].parent);
        scopes.flat_map(|at| self.scopes[at.0].symbols.values().map(|it| Arc::clone(&it.name))).collect()
    }

    /// Looks from inside to outside.
    pub(super) fn find(&self, scope: ScopeId, name: &str) -> Option<(Arc<str>, SymbolKind)> {
        std::iter::successors(Some(scope), |at| self.scopes[at.0].parent)
            .find_map(|at| self.find_in(at, name))
    }

    fn find_in(&self, scope: ScopeId, name: &str) -> Option<(Arc<str>, SymbolKind)> {
        if let Some(symbol) = self.symbol(scope, name) {
            return Some((Arc::clone(&symbol.name), symbol.kind.clone()));
        }
        // Interfaces inherit from those that are complete, so that this ends.
        self.scopes[scope.0].inherited.iter().find_map(|base| self.find_in(*base, name))
    }

    /// The bit of a flag, of the bitmask that is expected here.
    pub(super) fn flag_of(&self, id: DefinitionId, name: &str) -> Option<u32> {
        let named = Type::Named(id);
        let Type::Named(id) = self.underlying(&named) else { return None };
        match &self.slots[id.0].as_ref()?.kind {
            DefinitionKind::Bitmask(bitmask) => {
                bitmask.flags.iter().find(|flag| *flag.name == *name).map(|flag| flag.position)
            }
            _ => None,
        }
    }

    /// `Color::RED`: IDL has literals in the scope around; other compilers take both.
    pub(super) fn literal_of(&self, id: DefinitionId, name: &str) -> Option<(Arc<str>, SymbolKind)> {
        let id = self.enumeration_of(id)?;
        match &self.slots[id.0].as_ref()?.kind {
            DefinitionKind::Enumeration(enumeration) => {
                let index = enumeration.literals.iter().position(|it| it.name.eq_ignore_ascii_case(name))?;
                Some((Arc::clone(&enumeration.literals[index].name), SymbolKind::Literal(id, index)))
            }
            _ => None,
        }
    }

    /// The enumeration that a name stands for, aliases aside.
    pub(super) fn enumeration_of(&self, mut id: DefinitionId) -> Option<DefinitionId> {
        loop {
            match &self.slots[id.0].as_ref()?.kind {
                DefinitionKind::Enumeration(_) => return Some(id),
                DefinitionKind::Alias(Type::Named(next)) => id = *next,
                _ => return None,
            }
        }
    }
}
