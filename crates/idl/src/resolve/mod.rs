//! Names to what they mean, expressions to values, annotations to what they say: an [`ast`](crate::ast) to a
//! [`Model`].

mod annotation;
mod constant;
mod enumeration;
mod finish;
mod keys;
mod scope;
mod structure;
mod types;
mod union;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::ast;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::lex::Pragma;
use crate::limits::{DDS_NAME_BYTES_MAX, TYPE_DEPTH_MAX};
use crate::model::{Definition, DefinitionId, DefinitionKind, Extensibility, Model, Value, Verbatim};
use crate::source::{FileId, Span};

use annotation::{Annotations, Target};
pub(crate) use constant::keyword;
#[cfg(feature = "described")]
pub(crate) use constant::range;
use scope::{Declared, Scope, ScopeId, SymbolKind};
pub(crate) use structure::hash_id;

/// Why something is not in the model.
#[derive(Debug, Clone)]
enum Missing {
    /// What is wrong has been said.
    Failed,
    /// It is no data, for this reason.
    LeftOut(Arc<str>),
}

type Resolved<T> = Result<T, Missing>;

/// What modules say of the types in them.
#[derive(Debug, Clone, Copy, Default)]
struct Defaults {
    nested: bool,
    hash_ids: bool,
}

/// Resolves one input after the other; types of files that several of them include are the same.
pub(crate) struct Resolver<'a> {
    diagnostics: &'a mut Diagnostics,
    extensibility: Extensibility,
    scopes: Vec<Scope>,
    /// Definitions get an id when their name is known, and are there when all of it is.
    slots: Vec<Option<Definition>>,
    spans: Vec<Span>,
    /// Of each, how many types stand within it at most.
    depths: Vec<u32>,
    /// The order in which they were completed.
    order: Vec<DefinitionId>,
    /// Those that were declared and turned out to be no data, and why.
    left_out: HashMap<DefinitionId, Missing>,
    /// Where a declaration without definition was used first.
    used_early: HashMap<DefinitionId, Span>,
    /// Of each member, by structure: where it stands.
    member_spans: HashMap<DefinitionId, Vec<Span>>,
    declared_annotations: HashSet<String>,
    inputs: HashSet<FileId>,
    /// Pragmas that may stand before the type they are about.
    early: Vec<(ScopeId, Pragma, Span)>,
    /// The bitmask whose flags an expression may name without scope.
    flags_of: Option<DefinitionId>,
}

impl<'a> Resolver<'a> {
    pub(crate) fn new(extensibility: Extensibility, diagnostics: &'a mut Diagnostics) -> Self {
        Self {
            diagnostics,
            extensibility,
            scopes: vec![Scope::root()],
            slots: Vec::new(),
            spans: Vec::new(),
            depths: Vec::new(),
            order: Vec::new(),
            left_out: HashMap::new(),
            used_early: HashMap::new(),
            member_spans: HashMap::new(),
            declared_annotations: HashSet::new(),
            inputs: HashSet::new(),
            early: Vec::new(),
            flags_of: None,
        }
    }

    /// Takes the definitions of one input.
    pub(crate) fn input(&mut self, file: FileId, definitions: &[ast::Definition]) {
        self.inputs.insert(file);
        self.definitions(ScopeId::ROOT, definitions, Defaults::default());
        for (scope, pragma, span) in std::mem::take(&mut self.early) {
            match pragma {
                Pragma::Keys { of, paths, .. } => self.keys(scope, &of, &paths, span),
                Pragma::Topic(of) => self.topic(scope, &of, span),
            }
        }
    }

    /// All types, if nothing was wrong; what was is among the diagnostics.
    pub(crate) fn finish(self) -> Model {
        finish::finish(self)
    }

    fn say(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    fn fail<T>(&mut self, diagnostic: Diagnostic) -> Resolved<T> {
        self.say(diagnostic);
        Err(Missing::Failed)
    }

    fn definitions(&mut self, scope: ScopeId, definitions: &[ast::Definition], defaults: Defaults) {
        for definition in definitions {
            self.definition(scope, definition, defaults);
        }
    }

    fn definition(&mut self, scope: ScopeId, definition: &ast::Definition, defaults: Defaults) {
        let annotations = &definition.annotations;
        match &definition.kind {
            ast::DefinitionKind::Module { name, definitions } => {
                let told = self.annotations(annotations, Target::MODULE);
                let defaults = Defaults {
                    nested: self.flag(&told, "default_nested").unwrap_or(defaults.nested),
                    hash_ids: self.hash_ids(&told).unwrap_or(defaults.hash_ids),
                };
                if let Some(inner) = self.open_scope(scope, name, false) {
                    self.definitions(inner, definitions, defaults);
                }
            }
            ast::DefinitionKind::Interface { name, bases, definitions } => {
                self.annotations(annotations, Target::INTERFACE);
                self.interface(scope, name, bases, definitions, defaults);
            }
            ast::DefinitionKind::Constant { ty, name, value } => {
                let told = self.annotations(annotations, Target::CONSTANT);
                self.constant(scope, &told, ty, name, value);
            }
            ast::DefinitionKind::Typedef { ty, declarators } => {
                let told = self.annotations(annotations, Target::ALIAS);
                self.typedef(scope, &told, ty, declarators, defaults);
            }
            ast::DefinitionKind::Structure(_)
            | ast::DefinitionKind::Union(_)
            | ast::DefinitionKind::Enumeration(_)
            | ast::DefinitionKind::Bitmask(_)
            | ast::DefinitionKind::Bitset(_) => {
                let _ = self.constructed(scope, definition, defaults);
            }
            ast::DefinitionKind::Forward(kind, name) => self.forward(scope, *kind, name),
            ast::DefinitionKind::Annotation(name) => {
                self.declared_annotations.insert(name.text.to_string());
            }
            ast::DefinitionKind::Other { what, name } => {
                if !name.text.is_empty() {
                    let why = format!("`{}` is {} {what}", name.text, article(what));
                    self.declare(scope, name, SymbolKind::LeftOut(why.into()));
                }
            }
            ast::DefinitionKind::Pragma(pragma, span) => match &**pragma {
                Pragma::Keys { of, paths, early: false } => self.keys(scope, of, paths, *span),
                early => self.early.push((scope, early.clone(), *span)),
            },
        }
    }

    /// An interface holds types, and is none itself.
    fn interface(
        &mut self,
        scope: ScopeId,
        name: &ast::Name,
        bases: &[ast::ScopedName],
        definitions: &[ast::Definition],
        defaults: Defaults,
    ) {
        let mut inherited = Vec::new();
        for base in bases {
            if let Ok(SymbolKind::Scope { id, .. }) = self.look_up(scope, base, "interface") {
                inherited.push(id);
            }
        }
        let Some(inner) = self.open_scope(scope, name, true) else { return };
        self.scopes[inner.0].inherited = inherited;
        let said = Diagnostic::warning(name.span, "interfaces are no data and are left out");
        self.diagnostics.push_once("interface", said.hint("types that are defined in them are kept"));
        self.definitions(inner, definitions, defaults);
    }

    fn forward(&mut self, scope: ScopeId, kind: ast::Forward, name: &ast::Name) {
        match kind {
            ast::Forward::Interface => {
                let why = format!("`{}` is an interface", name.text);
                self.declare(scope, name, SymbolKind::ForwardInterface(why.into()));
            }
            ast::Forward::Structure | ast::Forward::Union => {
                if self.forward_declared(scope, name).is_none() {
                    let id = self.reserve(name.span);
                    self.declare(scope, name, SymbolKind::Type { id, defined: false });
                }
            }
        }
    }

    fn reserve(&mut self, span: Span) -> DefinitionId {
        self.slots.push(None);
        self.spans.push(span);
        self.depths.push(0);
        DefinitionId(self.slots.len() - 1)
    }

    /// Gives a new type its name. None: it is defined twice, or known from a file that was read before.
    fn begin(&mut self, scope: ScopeId, name: &ast::Name) -> Option<DefinitionId> {
        if let Some(id) = self.forward_declared(scope, name) {
            if self.is_defined(scope, name) {
                self.declare(scope, name, SymbolKind::Type { id, defined: true });
                return None;
            }
            self.spans[id.0] = name.span;
            self.redeclare(scope, name, SymbolKind::Type { id, defined: true });
            return Some(id);
        }
        let id = self.reserve(name.span);
        match self.declare(scope, name, SymbolKind::Type { id, defined: true }) {
            Declared::New => Some(id),
            Declared::Known | Declared::Twice => None,
        }
    }

    /// Puts a definition into the model, or notes why it is not there.
    fn complete(
        &mut self,
        scope: ScopeId,
        id: DefinitionId,
        name: &ast::Name,
        told: &Annotations<'_>,
        kind: Resolved<DefinitionKind>,
    ) -> Resolved<DefinitionId> {
        match kind.and_then(|kind| self.measure(id, name, kind)) {
            Ok(kind) => {
                let verbatim = self.verbatim(told);
                let dds_name = self.dds_name(told);
                let (modules, name) = self.path_of(scope, name);
                self.slots[id.0] = Some(Definition { scope: modules, name, dds_name, verbatim, kind });
                self.order.push(id);
                Ok(id)
            }
            Err(missing) => {
                let symbol = match &missing {
                    Missing::Failed => SymbolKind::Broken,
                    Missing::LeftOut(why) => {
                        let said =
                            Diagnostic::warning(name.span, format!("`{}` is left out: {why}", name.text));
                        self.say(said);
                        SymbolKind::LeftOut(format!("`{}` is left out", name.text).into())
                    }
                };
                self.redeclare(scope, name, symbol);
                self.left_out.insert(id, missing.clone());
                Err(missing)
            }
        }
    }

    /// Refuses a type in which too many others stand.
    fn measure(
        &mut self,
        id: DefinitionId,
        name: &ast::Name,
        mut kind: DefinitionKind,
    ) -> Resolved<DefinitionKind> {
        let mut depth = 0;
        finish::each_reference(&mut kind, &mut |reference| depth = depth.max(self.depths[reference.0] + 1));
        self.depths[id.0] = depth;
        if depth <= TYPE_DEPTH_MAX {
            return Ok(kind);
        }
        let message =
            format!("`{}` is made of more than {TYPE_DEPTH_MAX} types within one another", name.text);
        self.fail(Diagnostic::error(name.span, message))
    }

    fn constructed(
        &mut self,
        scope: ScopeId,
        definition: &ast::Definition,
        defaults: Defaults,
    ) -> Resolved<DefinitionId> {
        let (name, target) = match &definition.kind {
            ast::DefinitionKind::Structure(it) => (&it.name, Target::STRUCTURE),
            ast::DefinitionKind::Union(it) => (&it.name, Target::UNION),
            ast::DefinitionKind::Enumeration(it) => (&it.name, Target::ENUMERATION),
            ast::DefinitionKind::Bitmask(it) => (&it.name, Target::BITMASK),
            ast::DefinitionKind::Bitset(it) => (&it.name, Target::BITSET),
            _ => return Err(Missing::Failed),
        };
        let Some(id) = self.begin(scope, name) else { return Err(Missing::Failed) };
        let told = self.annotations(&definition.annotations, target);
        let kind = match &definition.kind {
            ast::DefinitionKind::Structure(it) => self.structure(scope, id, &told, it, defaults),
            ast::DefinitionKind::Union(it) => self.union(scope, id, &told, it, defaults),
            ast::DefinitionKind::Enumeration(it) => self.enumeration(scope, id, &told, it),
            ast::DefinitionKind::Bitmask(it) => self.bitmask(&told, it),
            ast::DefinitionKind::Bitset(it) => self.bitset(scope, it),
            _ => Err(Missing::Failed),
        };
        self.complete(scope, id, name, &told, kind)
    }

    fn constant(
        &mut self,
        scope: ScopeId,
        told: &Annotations<'_>,
        ty: &ast::TypeSpec,
        name: &ast::Name,
        value: &ast::Expression,
    ) {
        let id = self.reserve(name.span);
        if !matches!(self.declare(scope, name, SymbolKind::Constant(id)), Declared::New) {
            return;
        }
        let kind = self.constant_kind(scope, ty, value);
        let _ = self.complete(scope, id, name, told, kind);
    }

    fn constant_kind(
        &mut self,
        scope: ScopeId,
        ty: &ast::TypeSpec,
        value: &ast::Expression,
    ) -> Resolved<DefinitionKind> {
        // The digits of a fixed constant are those of its value.
        if matches!(ty.kind, ast::TypeKind::Fixed(None)) {
            return match self.evaluate(scope, value)? {
                Value::Fixed(text) => {
                    let digits = text.trim_start_matches('-').replace('.', "");
                    let scale = text.split_once('.').map_or(0, |(_, after)| after.len());
                    let ty = crate::model::Type::Fixed { digits: digits.len() as u32, scale: scale as u32 };
                    Ok(DefinitionKind::Constant { ty, value: Value::Fixed(text) })
                }
                _ => {
                    let said = Diagnostic::error(value.span, "a fixed constant ends with `d`");
                    self.fail(said.hint("write `3.14d`"))
                }
            };
        }
        let ty = self.ty(scope, ty, Defaults::default())?;
        let value = self.value(scope, value, &ty)?;
        Ok(DefinitionKind::Constant { ty, value })
    }

    fn typedef(
        &mut self,
        scope: ScopeId,
        told: &Annotations<'_>,
        ty: &ast::TypeSpec,
        declarators: &[ast::Declarator],
        defaults: Defaults,
    ) {
        // A type that is defined here must not be defined once more for a file that is read again.
        if declarators.iter().all(|declarator| self.is_known(scope, &declarator.name)) {
            return;
        }
        let ty = self.ty(scope, ty, defaults);
        for declarator in declarators {
            let id = self.reserve(declarator.name.span);
            let symbol = SymbolKind::Type { id, defined: true };
            // As in C: `typedef struct T { … } T;`.
            if let Ok(crate::model::Type::Named(defined)) = ty
                && self.forward_declared(scope, &declarator.name) == Some(defined)
            {
                continue;
            }
            if !matches!(self.declare(scope, &declarator.name, symbol), Declared::New) {
                continue;
            }
            let ty = ty.clone().and_then(|ty| self.array(scope, ty, declarator));
            let _ = self.complete(scope, id, &declarator.name, told, ty.map(DefinitionKind::Alias));
        }
    }

    fn dds_name(&mut self, told: &Annotations<'_>) -> Option<Arc<str>> {
        let annotation = told.find("dds_name")?;
        let name = self.annotated_text(told, "dds_name", "value").unwrap_or_default();
        if (1..=DDS_NAME_BYTES_MAX).contains(&name.len()) && !name.contains(char::is_control) {
            return Some(name);
        }
        let message = format!("the name of a type has 1 to {DDS_NAME_BYTES_MAX} octets");
        self.say(Diagnostic::error(annotation.span, message).hint("write `@dds_name(\"module::Type\")`"));
        None
    }

    fn verbatim(&mut self, told: &Annotations<'_>) -> Vec<Verbatim> {
        let mut texts = Vec::new();
        for annotation in told.all("verbatim") {
            let text = |name: &str, default: &str| -> Arc<str> {
                let parameter = annotation
                    .parameters
                    .iter()
                    .find(|it| it.name.as_ref().is_some_and(|it| *it.text == *name));
                match parameter.map(|it| &it.value.kind) {
                    Some(ast::ExpressionKind::Text(text)) => Arc::clone(text),
                    Some(ast::ExpressionKind::Name(word)) => word.text().into(),
                    _ => default.into(),
                }
            };
            let language = text("language", "*");
            let placement = text("placement", "BEFORE_DECLARATION");
            texts.push(Verbatim { language, placement, text: text("text", "") });
        }
        texts
    }
}

/// The article of a word.
fn article(word: &str) -> &'static str {
    if word.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
}
