//! Definitions: modules, constants and types, and what is left out.

use super::{Failed, Parsed, Parser};
use crate::ast::{
    Bitfield, Bitmask, Bitset, Case, Definition, DefinitionKind, Enumeration, Forward, Literal, Member,
    Structure, Union,
};
use crate::diagnostic::{Diagnostic, closest};
use crate::lex::{Token, TokenKind};

impl Parser<'_> {
    /// One definition, or what can be made of it.
    pub(super) fn definition(&mut self, definitions: &mut Vec<Definition>) {
        if let Some(TokenKind::Pragma(pragma)) = self.token().map(|token| &token.kind) {
            let kind = DefinitionKind::Pragma(pragma.clone(), self.span());
            definitions.push(Definition { annotations: Vec::new(), kind });
            self.at += 1;
            return;
        }
        if self.is_mark(";") {
            let said = Diagnostic::warning(self.span(), "this `;` ends nothing");
            self.diagnostics.push_once("stray ;", said);
            self.at += 1;
            return;
        }
        let before = self.at;
        match self.nested(Self::one_definition) {
            Ok(definition) => definitions.push(definition),
            Err(Failed) => {
                self.recover();
                if self.at == before {
                    self.at += 1;
                }
            }
        }
    }

    fn one_definition(&mut self) -> Parsed<Definition> {
        if let Some(kind) = self.annotation_declaration()? {
            self.expect_semicolon("an annotation");
            return Ok(Definition { annotations: Vec::new(), kind });
        }
        let mut annotations = self.annotations()?;
        let kind = self.definition_kind()?;
        // As some compilers take it: `typedef @external long x;`.
        if let DefinitionKind::Typedef { ty, .. } = &kind {
            annotations.extend(ty.annotations.iter().cloned());
        }
        Ok(Definition { annotations, kind })
    }

    fn definition_kind(&mut self) -> Parsed<DefinitionKind> {
        let span = self.span();
        let Some(word) = self.token().and_then(Token::word) else {
            let message = format!("expected a definition, found {}", self.described());
            return self.fail(Diagnostic::error(span, message));
        };
        let kind = match &**word {
            "module" => self.module()?,
            "const" => self.constant()?,
            "typedef" => self.typedef()?,
            "struct" | "union" | "enum" | "bitmask" | "bitset" => self.constructed()?,
            "interface" => self.interface()?,
            "abstract" | "local" | "custom" => {
                self.at += 1;
                return self.definition_kind();
            }
            "native" => {
                self.at += 1;
                DefinitionKind::Other { what: "native type", name: self.name("a native type")? }
            }
            "exception" => self.other("exception")?,
            "valuetype" => self.other("valuetype")?,
            "eventtype" => self.other("eventtype")?,
            "component" => self.other("component")?,
            "home" => self.other("home")?,
            "porttype" => self.other("porttype")?,
            "connector" => self.other("connector")?,
            "import" | "typeid" | "typeprefix" => {
                while !self.is_at_end() && !self.is_mark(";") {
                    self.at += 1;
                }
                self.at += 1;
                return self.definition_kind_after_import(span);
            }
            other => {
                const KNOWN: [&str; 9] = [
                    "module",
                    "const",
                    "typedef",
                    "struct",
                    "union",
                    "enum",
                    "bitmask",
                    "bitset",
                    "interface",
                ];
                let message = format!("expected a definition, found `{other}`");
                let said = Diagnostic::error(span, message);
                return self.fail(match closest(other, KNOWN.into_iter()) {
                    Some(meant) => said.hint(format!("did you mean `{meant}`?")),
                    None => said.hint(
                        "definitions start with `module`, `struct`, `union`, `enum`, `typedef`, `const` …",
                    ),
                });
            }
        };
        let after = match &kind {
            DefinitionKind::Module { .. } => "a module",
            DefinitionKind::Constant { .. } => "a constant",
            DefinitionKind::Typedef { .. } => "a typedef",
            _ => "a definition",
        };
        self.expect_semicolon(after);
        Ok(kind)
    }

    /// What follows an `import`, which has no effect.
    fn definition_kind_after_import(&mut self, span: crate::source::Span) -> Parsed<DefinitionKind> {
        let said = Diagnostic::warning(span, "`import`, `typeid` and `typeprefix` have no effect");
        self.diagnostics.push_once("import", said.hint("include files by `#include`"));
        if self.is_at_end() || self.is_mark("}") {
            let name = crate::ast::Name { text: "".into(), span };
            return Ok(DefinitionKind::Other { what: "import", name });
        }
        self.definition_kind()
    }

    fn module(&mut self) -> Parsed<DefinitionKind> {
        self.at += 1;
        let name = self.name("a module")?;
        if self.is_mark("<") {
            let said = Diagnostic::error(self.span(), "modules with parameters are not supported");
            return self.fail(said.hint("write the module once for each type"));
        }
        let definitions = self.definitions("the module")?;
        Ok(DefinitionKind::Module { name, definitions })
    }

    fn definitions(&mut self, what: &str) -> Parsed<Vec<Definition>> {
        let mut definitions = Vec::new();
        self.body(what, |parser| {
            parser.definition(&mut definitions);
            Ok(())
        })?;
        Ok(definitions)
    }

    fn constant(&mut self) -> Parsed<DefinitionKind> {
        self.at += 1;
        let ty = self.type_spec("a constant")?;
        let name = self.name("a constant")?;
        self.expect_mark("=", "the name of a constant")?;
        Ok(DefinitionKind::Constant { ty, name, value: self.expression()? })
    }

    fn typedef(&mut self) -> Parsed<DefinitionKind> {
        self.at += 1;
        let ty = self.type_spec("a typedef")?;
        Ok(DefinitionKind::Typedef { ty, declarators: self.declarators("a typedef")? })
    }

    /// A structure, union, enumeration, bitmask or bitset, without the `;`.
    pub(super) fn constructed(&mut self) -> Parsed<DefinitionKind> {
        let word = self.token().and_then(Token::word).cloned();
        self.at += 1;
        match word.as_deref().unwrap_or_default() {
            "struct" => self.structure(),
            "union" => self.union(),
            "enum" => {
                let name = self.name("an enumeration")?;
                let literals = self.literals("the enumeration")?;
                Ok(DefinitionKind::Enumeration(Enumeration { name, literals, scoped: false }))
            }
            "bitmask" => {
                let name = self.name("a bitmask")?;
                let flags = self.literals("the bitmask")?;
                Ok(DefinitionKind::Bitmask(Bitmask { name, flags }))
            }
            _ => self.bitset(),
        }
    }

    fn structure(&mut self) -> Parsed<DefinitionKind> {
        let name = self.name("a structure")?;
        if self.is_mark(";") {
            return Ok(DefinitionKind::Forward(Forward::Structure, name));
        }
        let base =
            if self.take_mark(":") { Some(self.scoped_name("the base of the structure")?) } else { None };
        let mut members = Vec::new();
        self.body("the structure", |parser| {
            if let Some(TokenKind::Pragma(_)) = parser.token().map(|token| &token.kind) {
                let said = Diagnostic::warning(parser.span(), "a pragma within a structure has no effect");
                parser.say(said.hint("put it after the structure"));
                parser.at += 1;
                return Ok(());
            }
            members.push(parser.member()?);
            Ok(())
        })?;
        Ok(DefinitionKind::Structure(Structure { name, base, members }))
    }

    fn member(&mut self) -> Parsed<Member> {
        let annotations = self.annotations()?;
        let ty = self.type_spec("a member")?;
        let declarators = self.declarators("a member")?;
        self.expect_semicolon("a member");
        Ok(Member { annotations, ty, declarators })
    }

    fn union(&mut self) -> Parsed<DefinitionKind> {
        let name = self.name("a union")?;
        if self.is_mark(";") {
            return Ok(DefinitionKind::Forward(Forward::Union, name));
        }
        if !self.take_word("switch") {
            let message =
                format!("expected `switch` after the name of the union, found {}", self.described());
            let said = Diagnostic::error(self.span(), message);
            return self.fail(said.hint("write `union U switch (long) { case 0: long a; };`"));
        }
        self.expect_mark("(", "`switch`")?;
        let discriminator = self.type_spec("the discriminator")?;
        self.expect_mark(")", "the type of the discriminator")?;
        let mut cases = Vec::new();
        self.body("the union", |parser| {
            cases.push(parser.case()?);
            Ok(())
        })?;
        Ok(DefinitionKind::Union(Union { name, discriminator, cases }))
    }

    fn case(&mut self) -> Parsed<Case> {
        let mut annotations = self.annotations()?;
        let (mut labels, mut default) = (Vec::new(), None);
        loop {
            let span = self.span();
            if self.take_word("default") {
                default = Some(span);
            } else if self.take_word("case") {
                labels.push(self.expression()?);
            } else {
                break;
            }
            self.expect_mark(":", "a case label")?;
            annotations.extend(self.annotations()?);
        }
        if labels.is_empty() && default.is_none() {
            let message = format!("expected `case` or `default`, found {}", self.described());
            let said = Diagnostic::error(self.span(), message);
            return self.fail(said.hint("a union has one member for each case"));
        }
        let ty = self.type_spec("a member")?;
        let declarator = self.declarator("a member")?;
        self.expect_semicolon("a member");
        Ok(Case { labels, default, annotations, ty, declarator })
    }

    /// Names with commas between them: of an enumeration or bitmask.
    fn literals(&mut self, what: &str) -> Parsed<Vec<Literal>> {
        let mut literals = Vec::new();
        self.body(what, |parser| {
            let annotations = parser.annotations()?;
            let name = parser.name("a literal")?;
            let value = if parser.take_mark("=") { Some(parser.expression()?) } else { None };
            literals.push(Literal { annotations, name, value });
            if !parser.take_mark(",") && !parser.is_mark("}") {
                let message = format!("expected `,` after a literal, found {}", parser.described());
                return parser.fail(Diagnostic::error(parser.span(), message));
            }
            Ok(())
        })?;
        Ok(literals)
    }

    fn bitset(&mut self) -> Parsed<DefinitionKind> {
        let name = self.name("a bitset")?;
        let base = if self.take_mark(":") { Some(self.scoped_name("the base of the bitset")?) } else { None };
        let mut fields = Vec::new();
        self.body("the bitset", |parser| {
            let annotations = parser.annotations()?;
            if !parser.take_word("bitfield") {
                let message = format!("expected `bitfield`, found {}", parser.described());
                return parser.fail(Diagnostic::error(parser.span(), message));
            }
            parser.expect_mark("<", "`bitfield`")?;
            let width = parser.template_expression()?;
            let ty = if parser.take_mark(",") { Some(parser.type_spec("a bitfield")?) } else { None };
            parser.close_template("the width of a bitfield")?;
            let mut names = Vec::new();
            if !parser.is_mark(";") {
                names.push(parser.name("a bitfield")?);
                while parser.take_mark(",") {
                    names.push(parser.name("a bitfield")?);
                }
            }
            parser.expect_semicolon("a bitfield");
            fields.push(Bitfield { annotations, width, ty, names });
            Ok(())
        })?;
        Ok(DefinitionKind::Bitset(Bitset { name, base, fields }))
    }

    fn interface(&mut self) -> Parsed<DefinitionKind> {
        self.at += 1;
        let name = self.name("an interface")?;
        if self.is_mark(";") {
            return Ok(DefinitionKind::Forward(Forward::Interface, name));
        }
        let mut bases = Vec::new();
        if self.take_mark(":") {
            bases.push(self.scoped_name("the base of the interface")?);
            while self.take_mark(",") {
                bases.push(self.scoped_name("the base of the interface")?);
            }
        }
        let mut definitions = Vec::new();
        self.body("the interface", |parser| {
            if parser.is_operation() {
                parser.recover();
            } else {
                parser.definition(&mut definitions);
            }
            Ok(())
        })?;
        Ok(DefinitionKind::Interface { name, bases, definitions })
    }

    /// Whether no type or constant is defined here. Annotations may stand before either.
    fn is_operation(&self) -> bool {
        let mut at = self.at;
        let token = |at: usize| self.tokens.get(at);
        while token(at).is_some_and(|it| it.is_mark("@")) {
            at += 2;
            while token(at).is_some_and(|it| it.is_mark("::")) {
                at += 2;
            }
            if token(at).is_some_and(|it| it.is_mark("(")) {
                let mut depth = 0_usize;
                while let Some(it) = token(at) {
                    depth += usize::from(it.is_mark("("));
                    depth -= usize::from(it.is_mark(")"));
                    at += 1;
                    if depth == 0 {
                        break;
                    }
                }
            }
        }
        let Some(first) = token(at) else { return false };
        match &first.kind {
            TokenKind::Word(word) => !matches!(
                &**word,
                "const"
                    | "typedef"
                    | "struct"
                    | "union"
                    | "enum"
                    | "bitmask"
                    | "bitset"
                    | "native"
                    | "exception"
            ),
            TokenKind::Pragma(_) => false,
            TokenKind::Mark(mark) => *mark == "::",
            _ => true,
        }
    }

    /// A definition that is no data: its name, and nothing of what is in it.
    fn other(&mut self, what: &'static str) -> Parsed<DefinitionKind> {
        self.at += 1;
        let name = self.name("a definition")?;
        let mut depth = 0_usize;
        while let Some(token) = self.token() {
            match token.kind {
                TokenKind::Mark("{") => depth += 1,
                TokenKind::Mark("}") if depth <= 1 => {
                    self.at += usize::from(depth == 1);
                    break;
                }
                TokenKind::Mark("}") => depth -= 1,
                TokenKind::Mark(";") if depth == 0 => break,
                _ => {}
            }
            self.at += 1;
        }
        Ok(DefinitionKind::Other { what, name })
    }
}
