//! Interfaces of ROS 2 to an [`ast`](crate::ast): `.msg`, `.srv` and `.action` files. A message `Pose` of the
//! package `geometry_msgs` is `geometry_msgs::msg::Pose`, final, and peers know it by the name that ROS 2
//! puts on the wire: `geometry_msgs::msg::dds_::Pose_`.

mod line;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::ast::{
    Annotation, Declarator, Definition, DefinitionKind, Expression, Member, Name, Primitive, ScopedName,
    Structure, TypeKind, TypeSpec,
};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::limits::{INCLUDE_DEPTH_MAX, ROS_FIELDS_MAX};
use crate::source::{FileId, Files, SourceMap, Span, Unread};

use line::{Field, Line, Shape, Told};

/// The definitions of one input file and of the messages that it uses; none if it cannot be read.
pub(crate) fn read(
    path: &Path,
    files: &dyn Files,
    include_directories: &[PathBuf],
    sources: &mut SourceMap,
    diagnostics: &mut Diagnostics,
) -> Option<(FileId, Vec<Definition>)> {
    let file = diagnostics.input(sources, files, path)?;
    let whole = files.identity(path);
    let Some(interface) = Interface::of(path).or_else(|| Interface::of(&whole)) else {
        let start = Span { file, start: 0, end: 0 };
        let said = Diagnostic::error(start, format!("{} is in no package", path.display()));
        diagnostics
            .push(said.hint("interfaces are PACKAGE/msg/Name.msg, …/srv/Name.srv, …/action/Name.action"));
        return None;
    };
    let mut reader =
        Reader { files, include_directories, sources, diagnostics, seen: HashSet::new(), open: Vec::new() };
    let mut definitions = Vec::new();
    reader.interface(file, path, &interface, &mut definitions);
    Some((file, definitions))
}

/// What a path says of the interface in it.
struct Interface {
    package: Arc<str>,
    kind: &'static str,
    name: Arc<str>,
}

impl Interface {
    fn of(path: &Path) -> Option<Self> {
        let name = path.file_stem()?.to_str()?;
        let kind = match path.extension()?.to_str()? {
            "msg" => "msg",
            "srv" => "srv",
            "action" => "action",
            _ => return None,
        };
        let package = path.parent()?.parent()?.file_name()?.to_str()?;
        let good = line::is_name(name) && line::is_name(package);
        good.then(|| Self { package: package.into(), kind, name: name.into() })
    }
}

struct Reader<'a> {
    files: &'a dyn Files,
    include_directories: &'a [PathBuf],
    sources: &'a mut SourceMap,
    diagnostics: &'a mut Diagnostics,
    /// Files whose definitions are there.
    seen: HashSet<FileId>,
    /// Files that use one another, the input first.
    open: Vec<FileId>,
}

/// The messages that each goal, result and feedback of an action comes with.
const OF_ACTIONS: [(&str, &str); 2] = [("unique_identifier_msgs", "UUID"), ("builtin_interfaces", "Time")];

impl Reader<'_> {
    fn interface(&mut self, file: FileId, path: &Path, interface: &Interface, to: &mut Vec<Definition>) {
        if !self.seen.insert(file) {
            return;
        }
        self.open.push(file);
        let text = self.sources.text(file);
        let start = Span { file, start: 0, end: 0 };
        let wanted: &[&str] = match interface.kind {
            "msg" => &[""],
            "srv" => &["_Request", "_Response"],
            _ => &["_Goal", "_Result", "_Feedback"],
        };
        let mut parts = vec![Part::default()];
        for line in line::lines(file, &text, self.diagnostics) {
            match line {
                Line::Separator(span) if parts.len() == wanted.len() => {
                    let message = format!("a .{} file has {} parts", interface.kind, wanted.len());
                    self.diagnostics.push(Diagnostic::error(span, message));
                    break;
                }
                Line::Separator(_) => parts.push(Part::default()),
                Line::Comment(text) if parts.len() == 1 => {
                    if let Some(part) = parts.last_mut() {
                        part.comment = text;
                    }
                }
                Line::Comment(_) => {}
                Line::Field(field) => {
                    if let Some(part) = parts.last_mut() {
                        part.fields.push(*field);
                    }
                }
            }
        }
        if parts.iter().map(|part| part.fields.len()).sum::<usize>() > ROS_FIELDS_MAX {
            let message = format!("the file has more than {ROS_FIELDS_MAX} fields");
            self.diagnostics.push(Diagnostic::error(start, message));
            parts.clear();
        }
        if parts.len() < wanted.len() && !parts.is_empty() {
            let message = format!("a .{} file has {} parts", interface.kind, wanted.len());
            let said = Diagnostic::error(start, message);
            self.diagnostics.push(said.hint("a line `---` stands between them"));
        }
        let used = parts.iter().flat_map(|part| &part.fields);
        let used = used.filter_map(|field| Some((field.message(&interface.package)?, field.ty.span)));
        let more = OF_ACTIONS.iter().filter(|_| interface.kind == "action");
        let more = more.map(|(package, name)| (((*package).into(), (*name).into()), start));
        for ((package, name), span) in used.chain(more).collect::<Vec<(_, Span)>>() {
            self.message(path, interface, &package, &name, span, to);
        }
        let mut own = Vec::new();
        for (part, suffix) in parts.iter().zip(wanted) {
            self.part(interface, part, suffix, start, &mut own);
        }
        if interface.kind == "action" {
            own.extend(of_action(interface, start));
        }
        to.push(module(&interface.package, start, vec![module(interface.kind, start, own)]));
        self.open.pop();
    }

    /// A message that another interface uses.
    fn message(
        &mut self,
        path: &Path,
        user: &Interface,
        package: &str,
        name: &str,
        span: Span,
        to: &mut Vec<Definition>,
    ) {
        let relative = Path::new(package).join("msg").join(format!("{name}.msg"));
        // Beside the package of the user, and in the directories of -I.
        let own = path.parent().and_then(Path::parent);
        let beside = own.map(|own| match own.parent().filter(|_| own.file_name().is_some()) {
            _ if *package == *user.package => own.join("msg").join(format!("{name}.msg")),
            Some(root) => root.join(&relative),
            None => own.join("..").join(&relative),
        });
        let told = self.include_directories.iter().map(|directory| directory.join(&relative));
        let candidates = beside.into_iter().chain(told).collect::<Vec<_>>();
        for candidate in &candidates {
            match self.sources.load(self.files, candidate, Some(span)) {
                Ok(file) if self.open.contains(&file) => {
                    let message = format!("`{package}/{name}` contains itself");
                    self.diagnostics.push(Diagnostic::error(span, message));
                    return;
                }
                Ok(_) if self.open.len() >= INCLUDE_DEPTH_MAX => {
                    let message = format!("more than {INCLUDE_DEPTH_MAX} messages stand within one another");
                    self.diagnostics.push(Diagnostic::error(span, message));
                    return;
                }
                Ok(file) => {
                    let used = Interface { package: package.into(), kind: "msg", name: name.into() };
                    self.interface(file, candidate, &used, to);
                    return;
                }
                Err(Unread::Missing) => {}
                Err(Unread::Because(reason)) => {
                    let message = format!("cannot read {}: {reason}", candidate.display());
                    self.diagnostics.push(Diagnostic::error(span, message));
                    return;
                }
            }
        }
        let said = Diagnostic::error(span, format!("there is no message `{package}/{name}`"));
        let looked = candidates.iter().map(|it| it.display().to_string()).collect::<Vec<_>>().join(", ");
        self.diagnostics.push(said.hint(format!(
            "looked for {looked}; -I DIRECTORY, which has the package `{package}`, adds a place to look"
        )));
    }

    fn part(
        &mut self,
        interface: &Interface,
        part: &Part,
        suffix: &str,
        start: Span,
        to: &mut Vec<Definition>,
    ) {
        let name: Arc<str> = format!("{}{suffix}", interface.name).into();
        let (mut constants, mut members) = (Vec::new(), Vec::new());
        for field in &part.fields {
            let annotations = comment(&field.comment, field.name.span);
            match &field.told {
                Told::Constant(value) => {
                    let ty = type_of(field, &interface.package);
                    let kind =
                        DefinitionKind::Constant { ty, name: field.name.clone(), value: value.clone() };
                    constants.push(Definition { annotations, kind });
                }
                told => members.push(self.member(field, told, annotations, &interface.package)),
            }
        }
        if !constants.is_empty() {
            to.push(module(&format!("{name}_Constants"), start, constants));
        }
        if members.is_empty() {
            members.push(placeholder(start));
        }
        let mut annotations = comment(&part.comment, start);
        annotations.extend(annotations_of(interface, &name, start));
        let structure = Structure { name: Name { text: name, span: start }, base: None, members };
        to.push(Definition { annotations, kind: DefinitionKind::Structure(structure) });
    }

    fn member(
        &mut self,
        field: &Field,
        told: &Told,
        mut annotations: Vec<Annotation>,
        package: &str,
    ) -> Member {
        match told {
            Told::Default(value) => {
                annotations.push(Annotation::one(Name::new("default", field.name.span), value.clone()));
            }
            Told::Collection(span) => {
                let said = Diagnostic::warning(*span, "the default of a collection is not kept");
                self.diagnostics.push_once("ros default", said.hint("set it where the message is made"));
            }
            Told::Nothing | Told::Constant(_) => {}
        }
        let dimensions = match &field.ty.shape {
            Shape::Array(size) => vec![size.clone()],
            _ => Vec::new(),
        };
        let declarators = vec![Declarator { name: field.name.clone(), annotations: Vec::new(), dimensions }];
        Member { annotations, ty: type_of(field, package), declarators }
    }
}

/// A message, or one of the parts of a service or action.
#[derive(Default)]
struct Part {
    comment: String,
    fields: Vec<Field>,
}

/// What ROS 2 puts into structures without members.
fn placeholder(span: Span) -> Member {
    let ty = TypeSpec { annotations: Vec::new(), kind: TypeKind::Primitive(Primitive::UInt8), span };
    member("structure_needs_at_least_one_member", ty, span)
}

fn member(name: &str, ty: TypeSpec, span: Span) -> Member {
    let name = Name::new(name, span);
    Member {
        annotations: Vec::new(),
        ty,
        declarators: vec![Declarator { name, annotations: Vec::new(), dimensions: Vec::new() }],
    }
}

/// The messages by which a goal is sent, a result asked for, and feedback given.
fn of_action(interface: &Interface, span: Span) -> Vec<Definition> {
    let named = |path: [&str; 3]| {
        let parts = path.map(|part| Name::new(part, span)).to_vec();
        let kind = TypeKind::Named(ScopedName { absolute: true, parts, span });
        TypeSpec { annotations: Vec::new(), kind, span }
    };
    let basic = |primitive| TypeSpec { annotations: Vec::new(), kind: TypeKind::Primitive(primitive), span };
    let own = |suffix: &str| named([&interface.package, "action", &format!("{}{suffix}", interface.name)]);
    let id = || member("goal_id", named(["unique_identifier_msgs", "msg", "UUID"]), span);
    let stamp = || member("stamp", named(["builtin_interfaces", "msg", "Time"]), span);
    let all = [
        ("_SendGoal_Request", vec![id(), member("goal", own("_Goal"), span)]),
        ("_SendGoal_Response", vec![member("accepted", basic(Primitive::Boolean), span), stamp()]),
        ("_GetResult_Request", vec![id()]),
        (
            "_GetResult_Response",
            vec![member("status", basic(Primitive::Int8), span), member("result", own("_Result"), span)],
        ),
        ("_FeedbackMessage", vec![id(), member("feedback", own("_Feedback"), span)]),
    ];
    let all = all.into_iter().map(|(suffix, members)| {
        let name: Arc<str> = format!("{}{suffix}", interface.name).into();
        let annotations = annotations_of(interface, &name, span);
        let structure = Structure { name: Name { text: name, span }, base: None, members };
        Definition { annotations, kind: DefinitionKind::Structure(structure) }
    });
    all.collect()
}

/// What all messages are: final, with the name that ROS 2 gives them on the wire.
fn annotations_of(interface: &Interface, name: &str, span: Span) -> Vec<Annotation> {
    let told = format!("{}::{}::dds_::{name}_", interface.package, interface.kind);
    let told = Expression::text(&told, span);
    vec![
        Annotation::with(Name::new("final", span), std::iter::empty()),
        Annotation::one(Name::new("dds_name", span), told),
    ]
}

fn module(name: &str, span: Span, definitions: Vec<Definition>) -> Definition {
    let kind = DefinitionKind::Module { name: Name::new(name, span), definitions };
    Definition { annotations: Vec::new(), kind }
}

fn comment(text: &str, span: Span) -> Vec<Annotation> {
    if text.is_empty() {
        return Vec::new();
    }
    let parameters = [("language", "comment"), ("text", text)];
    let parameters = parameters.map(|(name, text)| (name, Expression::text(text, span)));
    vec![Annotation::with(Name::new("verbatim", span), parameters)]
}

fn type_of(field: &Field, package: &str) -> TypeSpec {
    let span = field.ty.span;
    let spec = |kind| TypeSpec { annotations: Vec::new(), kind, span };
    let kind = match &field.ty.kind {
        line::Kind::Basic(primitive) => TypeKind::Primitive(*primitive),
        line::Kind::String { wide, bound } => TypeKind::String { wide: *wide, bound: bound.clone() },
        line::Kind::Message { package: other, name } => {
            let parts = [other.as_deref().unwrap_or(package), "msg", name];
            let parts = parts.map(|part| Name::new(part, span)).to_vec();
            TypeKind::Named(ScopedName { absolute: true, parts, span })
        }
    };
    match &field.ty.shape {
        Shape::Sequence(bound) => {
            spec(TypeKind::Sequence { element: Box::new(spec(kind)), bound: bound.clone() })
        }
        Shape::Array(_) | Shape::Single => spec(kind),
    }
}
