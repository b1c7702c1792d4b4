//! Tokens into predicates and the steps that combine them.
//!
//! The parser keeps the operators it waits with on a stack of its own (Dijkstra's shunting yard) and gives
//! the steps in postfix order: nothing here calls itself, so no expression can exhaust the stack.

use super::lexer::{Keyword, Lexer, Literal, Relation, Token, TokenKind};
use super::{DEPTH_MAX, EXPRESSION_BYTES_MAX, FilterError, TERMS_MAX};

/// An expression whose names have not been looked up.
#[derive(Debug, Default)]
pub(super) struct Expression<'t> {
    pub(super) predicates: Vec<Predicate<'t>>,
    /// Empty when there is no condition.
    pub(super) steps: Vec<Step>,
    pub(super) order: Vec<Located<&'t str>>,
}

/// Something and its offset in the text.
#[derive(Debug, Clone)]
pub(super) struct Located<V> {
    pub(super) value: V,
    pub(super) at: usize,
}

/// In postfix order: works on a stack of truth values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Pushes the truth of the predicate with this index.
    Test(usize),
    Not,
    And,
    Or,
}

#[derive(Debug)]
pub(super) enum Predicate<'t> {
    Relation { left: Located<Operand<'t>>, relation: Relation, right: Located<Operand<'t>> },
    Between { field: Located<&'t str>, low: Located<Operand<'t>>, high: Located<Operand<'t>> },
    Pattern { field: Located<&'t str>, pattern: Located<Operand<'t>>, kind: PatternKind },
}

#[derive(Debug, Clone)]
pub(super) enum Operand<'t> {
    Field(&'t str),
    Literal(Literal),
    Parameter(usize),
}

/// LIKE of the standard, MATCH as other products have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PatternKind {
    Like,
    Match,
}

/// What the parser waits with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pending {
    Open,
    Or,
    And,
    Not,
}

struct Parser<'t> {
    lexer: Lexer<'t>,
    token: Token<'t>,
    expression: Expression<'t>,
    pending: Vec<Pending>,
    /// Parentheses and NOTs in `pending`.
    depth: usize,
}

/// Reads `{condition} {ORDER BY names}`.
pub(super) fn parse(text: &str) -> Result<Expression<'_>, FilterError> {
    let mut lexer = Lexer::new(text);
    if text.len() > EXPRESSION_BYTES_MAX {
        let message = format!("the expression has more than {EXPRESSION_BYTES_MAX} octets");
        return Err(lexer.error(EXPRESSION_BYTES_MAX, message));
    }
    let token = lexer.next()?;
    let mut parser =
        Parser { lexer, token, expression: Expression::default(), pending: Vec::new(), depth: 0 };
    if !parser.at_keyword(Keyword::Order) && parser.token.kind != TokenKind::End {
        parser.condition()?;
    }
    if parser.at_keyword(Keyword::Order) {
        parser.order()?;
    }
    parser.expect_end()?;
    Ok(parser.expression)
}

impl<'t> Parser<'t> {
    fn condition(&mut self) -> Result<(), FilterError> {
        loop {
            while self.opens()? {}
            let predicate = self.predicate()?;
            self.add(predicate)?;
            loop {
                match self.token.kind {
                    TokenKind::Close if self.pending.contains(&Pending::Open) => {
                        self.reduce(|_| true);
                        self.pending.pop();
                        self.depth -= 1;
                        self.advance()?;
                    }
                    TokenKind::Keyword(Keyword::And) => {
                        self.reduce(|pending| matches!(pending, Pending::And | Pending::Not));
                        self.pending.push(Pending::And);
                        break;
                    }
                    TokenKind::Keyword(Keyword::Or) => {
                        self.reduce(|_| true);
                        self.pending.push(Pending::Or);
                        break;
                    }
                    _ if self.pending.contains(&Pending::Open) => return Err(self.expected("AND, OR or ')'")),
                    _ => {
                        self.reduce(|_| true);
                        return Ok(());
                    }
                }
            }
            self.advance()?;
        }
    }

    /// Takes a NOT or a parenthesis; false when a predicate comes.
    fn opens(&mut self) -> Result<bool, FilterError> {
        let pending = match self.token.kind {
            TokenKind::Open => Pending::Open,
            TokenKind::Keyword(Keyword::Not) => Pending::Not,
            _ => return Ok(false),
        };
        if self.depth >= DEPTH_MAX {
            let message = format!("parentheses and NOTs are nested deeper than {DEPTH_MAX}");
            return Err(self.lexer.error(self.token.at, message));
        }
        self.depth += 1;
        self.pending.push(pending);
        self.advance()?;
        Ok(true)
    }

    /// Emits what is pending down to the last parenthesis, as long as it binds as strongly as `binds` asks.
    fn reduce(&mut self, binds: impl Fn(Pending) -> bool) {
        while let Some(step) = self.pending.pop_if(|top| *top != Pending::Open && binds(*top)) {
            let step = match step {
                Pending::Not => {
                    self.depth -= 1;
                    Step::Not
                }
                Pending::And => Step::And,
                Pending::Or | Pending::Open => Step::Or,
            };
            self.expression.steps.push(step);
        }
    }

    fn add(&mut self, (predicate, negated): (Predicate<'t>, bool)) -> Result<(), FilterError> {
        if self.expression.predicates.len() >= TERMS_MAX {
            let message = format!("the expression has more than {TERMS_MAX} comparisons");
            return Err(self.lexer.error(self.token.at, message));
        }
        self.expression.steps.push(Step::Test(self.expression.predicates.len()));
        self.expression.predicates.push(predicate);
        if negated {
            self.expression.steps.push(Step::Not);
        }
        Ok(())
    }

    /// A comparison, and whether a NOT stands before its operator.
    fn predicate(&mut self) -> Result<(Predicate<'t>, bool), FilterError> {
        let left = self.operand("a member, a value, a parameter, NOT or '('")?;
        if let TokenKind::Relation(relation) = self.token.kind {
            self.advance()?;
            let right = self.operand("a member, a value or a parameter")?;
            return Ok((Predicate::Relation { left, relation, right }, false));
        }
        let negated = self.at_keyword(Keyword::Not);
        if negated {
            self.advance()?;
        }
        let TokenKind::Keyword(keyword @ (Keyword::Between | Keyword::Like | Keyword::Match)) =
            self.token.kind
        else {
            let wanted = if negated { "BETWEEN, LIKE or MATCH" } else { "a comparison, as in x = 1" };
            return Err(self.expected(wanted));
        };
        let Operand::Field(field) = left.value else {
            let message = format!("{} needs the name of a member before it", self.token.kind.describe());
            return Err(self.lexer.error(left.at, message));
        };
        let field = Located { value: field, at: left.at };
        self.advance()?;
        let first = self.constant()?;
        let kind = match keyword {
            Keyword::Like => PatternKind::Like,
            Keyword::Match => PatternKind::Match,
            _ => {
                if !self.at_keyword(Keyword::And) {
                    return Err(self.expected("AND and the upper bound of BETWEEN"));
                }
                self.advance()?;
                let high = self.constant()?;
                return Ok((Predicate::Between { field, low: first, high }, negated));
            }
        };
        Ok((Predicate::Pattern { field, pattern: first, kind }, negated))
    }

    fn operand(&mut self, wanted: &str) -> Result<Located<Operand<'t>>, FilterError> {
        let value = match &self.token.kind {
            TokenKind::Name(name) => Operand::Field(name),
            TokenKind::Literal(literal) => Operand::Literal(literal.clone()),
            TokenKind::Parameter(index) => Operand::Parameter(*index),
            _ => return Err(self.expected(wanted)),
        };
        let at = self.token.at;
        self.advance()?;
        Ok(Located { value, at })
    }

    fn constant(&mut self) -> Result<Located<Operand<'t>>, FilterError> {
        if matches!(self.token.kind, TokenKind::Name(_)) {
            return Err(self.expected("a value or a parameter"));
        }
        self.operand("a value or a parameter")
    }

    fn order(&mut self) -> Result<(), FilterError> {
        self.advance()?;
        if !self.at_keyword(Keyword::By) {
            return Err(self.expected("BY"));
        }
        loop {
            self.advance()?;
            let TokenKind::Name(name) = self.token.kind else { return Err(self.expected("a member")) };
            if self.expression.order.len() >= TERMS_MAX {
                let message = format!("ORDER BY has more than {TERMS_MAX} members");
                return Err(self.lexer.error(self.token.at, message));
            }
            self.expression.order.push(Located { value: name, at: self.token.at });
            self.advance()?;
            if self.token.kind != TokenKind::Comma {
                return Ok(());
            }
        }
    }

    fn expect_end(&self) -> Result<(), FilterError> {
        match self.token.kind {
            TokenKind::End => Ok(()),
            _ => Err(self.expected("AND, OR, ORDER BY or the end")),
        }
    }

    fn at_keyword(&self, keyword: Keyword) -> bool {
        self.token.kind == TokenKind::Keyword(keyword)
    }

    fn advance(&mut self) -> Result<(), FilterError> {
        self.token = self.lexer.next()?;
        Ok(())
    }

    fn expected(&self, wanted: &str) -> FilterError {
        self.lexer.error(self.token.at, format!("expected {wanted}, found {}", self.token.kind.describe()))
    }
}
