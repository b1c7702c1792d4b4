//! Rust: what a person would have written with `#[derive(DdsType)]`.

mod aggregate;
mod lacking;
mod names;
mod recursion;
mod simple;
mod types;

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use crate::backend::{Backend, GeneratedFile, Options};
use crate::diagnostic::{Diagnostic, Diagnostics, Severity};
use crate::model::{Bitfield, Bitset, DefinitionId, DefinitionKind, Member, Model, Structure, Verbatim};

use lacking::Lacking;
use names::{camel, screaming, snake, unique, unique_module};
use recursion::Circles;

/// Writes one file of Rust, with a module for each module of IDL.
///
/// What the derive cannot say is an error; see `docs/idl.md`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rust {
    /// Leaves out types that the derive cannot say, and those that use them, with a warning instead of an
    /// error.
    pub leave_out: bool,
}

impl Backend for Rust {
    fn generate(
        &self,
        model: &Model,
        options: &Options,
        diagnostics: &mut Diagnostics,
    ) -> Vec<GeneratedFile> {
        let mut names = Names::of(model);
        let root = std::mem::take(&mut names.root);
        let circles = Circles::of(model);
        let lacking = Lacking::of(model);
        lacking.say(model, self.leave_out, diagnostics);
        let mut writer = Writer {
            model,
            names: &names,
            circles: &circles,
            lacking: &lacking,
            floats: simple::floats(model),
            diagnostics,
            text: String::new(),
            depth: 0,
        };
        writer.line("// Written by `plainsong idl`; changes are lost when it runs again.");
        writer.module_body(&root);
        let path = format!("{}.rs", if options.name.is_empty() { "types" } else { &options.name });
        vec![GeneratedFile { path: path.into(), text: writer.text }]
    }
}

/// A module and what is in it.
#[derive(Default)]
struct Module {
    name: String,
    items: Vec<DefinitionId>,
    modules: Vec<Self>,
    /// Names of its types.
    types: HashSet<String>,
}

/// What everything is called in Rust.
struct Names {
    root: Module,
    /// Names of types, by module.
    types: HashMap<Vec<String>, HashSet<String>>,
    /// By definition: the modules around it, and its name.
    paths: Vec<(Vec<String>, String)>,
    /// By definition: the names of members, variants, flags or fields, in their order. The name of the base
    /// of a structure that says one comes first.
    members: Vec<Vec<String>>,
}

impl Names {
    fn of(model: &Model) -> Self {
        let mut names =
            Self { root: Module::default(), types: HashMap::new(), paths: Vec::new(), members: Vec::new() };
        let mut modules = HashMap::<Vec<String>, String>::new();
        let mut taken = HashMap::<Vec<String>, HashSet<String>>::new();
        let mut taken_constants = HashMap::<Vec<String>, HashSet<String>>::new();
        for (id, definition) in model.definitions() {
            let (mut idl_path, mut path) = (Vec::new(), Vec::new());
            for scope in &definition.scope {
                idl_path.push(scope.to_string());
                let taken = taken.entry(path.clone()).or_default();
                let name = modules
                    .entry(idl_path.clone())
                    .or_insert_with(|| unique_module(snake(scope), taken))
                    .clone();
                path.push(name);
            }
            let constant = matches!(definition.kind, DefinitionKind::Constant { .. });
            let name = if constant {
                unique(screaming(&definition.name), taken_constants.entry(path.clone()).or_default())
            } else {
                unique(camel(&definition.name), taken.entry(path.clone()).or_default())
            };
            let module = names.root.at(&path);
            module.items.push(id);
            if !constant {
                module.types.insert(name.clone());
                names.types.entry(path.clone()).or_default().insert(name.clone());
            }
            names.paths.push((path, name));
            names.members.push(members(model, id));
        }
        names
    }
}

impl Module {
    fn at(&mut self, path: &[String]) -> &mut Self {
        let Some((first, rest)) = path.split_first() else { return self };
        let place = self.modules.iter().position(|module| module.name == *first).unwrap_or_else(|| {
            self.modules.push(Self { name: first.clone(), ..Self::default() });
            self.modules.len() - 1
        });
        self.modules[place].at(rest)
    }
}

/// The base of a structure, and the members that it does not have. A base that may evolve in another way is
/// none for the derive: there all members are its own.
fn parts<'m>(model: &'m Model, structure: &'m Structure) -> (Option<DefinitionId>, Vec<&'m Member>) {
    let extensibility = |id: DefinitionId| match &model.definition(id).kind {
        DefinitionKind::Structure(base) => Some(base.aggregate.extensibility),
        _ => None,
    };
    let alike = |id: &DefinitionId| extensibility(*id) == Some(structure.aggregate.extensibility);
    match structure.base.filter(alike) {
        Some(base) => (Some(base), structure.members.iter().collect()),
        None => (None, model.all_members(structure)),
    }
}

/// The fields of a bitset, those of its bases first.
fn fields<'m>(model: &'m Model, bitset: &'m Bitset) -> Vec<&'m Bitfield> {
    let mut chain = vec![bitset];
    while let Some(base) = chain.last().and_then(|it| it.base)
        && let DefinitionKind::Bitset(base) = &model.definition(base).kind
    {
        chain.push(base);
    }
    chain.into_iter().rev().flat_map(|it| &it.fields).collect()
}

/// The names of the parts of a type.
fn members(model: &Model, id: DefinitionId) -> Vec<String> {
    let mut taken = HashSet::new();
    match &model.definition(id).kind {
        DefinitionKind::Structure(structure) => {
            let (base, members) = parts(model, structure);
            let base = base.map(|base| snake(&model.definition(base).name));
            let members = members.iter().map(|it| snake(&it.name));
            base.into_iter().chain(members).map(|name| unique(name, &mut taken)).collect()
        }
        DefinitionKind::Union(union) => {
            union.cases.iter().map(|it| unique(camel(&it.member.name), &mut taken)).collect()
        }
        DefinitionKind::Enumeration(enumeration) => {
            enumeration.literals.iter().map(|it| unique(camel(&it.name), &mut taken)).collect()
        }
        DefinitionKind::Bitmask(bitmask) => {
            bitmask.flags.iter().map(|it| unique(screaming(&it.name), &mut taken)).collect()
        }
        DefinitionKind::Bitset(bitset) => {
            fields(model, bitset).iter().map(|it| unique(snake(&it.name), &mut taken)).collect()
        }
        _ => Vec::new(),
    }
}

struct Writer<'a> {
    model: &'a Model,
    names: &'a Names,
    circles: &'a Circles,
    lacking: &'a Lacking,
    floats: HashMap<DefinitionId, Option<DefinitionId>>,
    diagnostics: &'a mut Diagnostics,
    text: String,
    depth: usize,
}

impl Writer<'_> {
    fn line(&mut self, line: &str) {
        if !line.is_empty() {
            let _ = write!(self.text, "{:width$}", "", width = self.depth * 4);
        }
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn module_body(&mut self, module: &Module) {
        let derives = module.items.iter().any(|id| {
            !self.lacking.has(*id)
                && matches!(
                    self.model.definition(*id).kind,
                    DefinitionKind::Structure(_)
                        | DefinitionKind::Union(_)
                        | DefinitionKind::Enumeration(_)
                        | DefinitionKind::Bitmask(_)
                        | DefinitionKind::Bitset(_)
                )
        });
        // The name of the derive would be that of a type of the module.
        let import = derives && !module.types.contains("DdsType");
        if import {
            if self.depth == 0 {
                self.line("");
            }
            self.line("use plainsong::types::DdsType;");
        }
        let mut first = self.depth > 0 && !import;
        for id in &module.items {
            let before = self.text.len();
            if !first {
                self.line("");
            }
            let start = self.text.len();
            self.definition(*id, module);
            if self.text.len() == start {
                self.text.truncate(before);
            } else {
                first = false;
            }
        }
        for inner in &module.modules {
            if !first {
                self.line("");
            }
            first = false;
            if self.depth == 0 {
                self.line("#[allow(missing_docs, clippy::all)]");
            }
            self.line(&format!("pub mod {} {{", inner.name));
            self.depth += 1;
            self.module_body(inner);
            self.depth -= 1;
            self.line("}");
        }
    }

    fn definition(&mut self, id: DefinitionId, module: &Module) {
        if self.lacking.has(id) {
            return;
        }
        let derive = if module.types.contains("DdsType") { "plainsong::types::DdsType" } else { "DdsType" };
        let definition = self.model.definition(id);
        match &definition.kind {
            DefinitionKind::Constant { ty, value } => self.constant(id, ty, value),
            DefinitionKind::Structure(structure) => self.structure(id, structure, derive),
            DefinitionKind::Union(union) => self.union(id, union, derive),
            DefinitionKind::Enumeration(enumeration) => self.enumeration(id, enumeration, derive),
            DefinitionKind::Bitmask(bitmask) => self.bitmask(id, bitmask, derive),
            DefinitionKind::Bitset(bitset) => self.bitset(id, bitset, derive),
            DefinitionKind::Alias(ty) => self.alias(id, ty),
        }
    }

    /// Comments that the input wants before a declaration.
    fn documentation(&mut self, verbatim: &[Verbatim], more: &[String]) {
        for text in verbatim {
            let comment = text.language.eq_ignore_ascii_case("comment");
            if comment && !text.placement.contains("AFTER") && !text.placement.contains("END") {
                for line in text.text.trim_end().lines() {
                    let line = format!("/// {line}");
                    self.line(line.trim_end());
                }
            }
        }
        for line in more {
            self.line(&format!("/// {line}"));
        }
    }

    /// A warning that is given once for each kind.
    fn weaker(&mut self, id: DefinitionId, kind: &str, message: String, hint: &str) {
        let span = self.model.span(id);
        let said = Diagnostic {
            severity: Severity::Warning,
            message,
            span,
            notes: Vec::new(),
            hint: Some(hint.into()),
        };
        self.diagnostics.push_once(&format!("rust {kind}"), said);
    }
}
