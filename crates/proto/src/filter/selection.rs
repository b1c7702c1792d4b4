//! What a multi-topic subscribes to: `SELECT aggregation FROM selection {WHERE condition}` (DCPS 1.4 Annex
//! B).

use super::lexer::{Lexer, Literal, Token, TokenKind};
use super::{EXPRESSION_BYTES_MAX, Filter, FilterError};
use crate::cdr::DdsType;

/// Topics of one expression at most.
pub const TOPICS_MAX: usize = 8;
/// Members it names at most.
const COLUMNS_MAX: usize = 256;

/// A subscription expression, whose names have not been looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicExpression {
    /// Which members to fill; `None`: all, by their names (`*`).
    pub columns: Option<Vec<Column>>,
    /// The topics that are joined, in the order of the expression.
    pub topics: Vec<String>,
    /// What is after WHERE, and how many characters are before it.
    condition: Option<(String, usize)>,
}

/// A member of the result, and where its value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// The member of one of the topics.
    pub from: String,
    /// The member of the result: the same name unless AS says another.
    pub to: String,
}

struct Parser<'t> {
    lexer: Lexer<'t>,
    token: Token<'t>,
}

impl TopicExpression {
    /// Reads an expression. The names of topics may be quoted.
    ///
    /// # Errors
    /// [`FilterError`].
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        let end = text.trim_end();
        let text = end.strip_suffix(';').unwrap_or(end);
        let mut lexer = Lexer::new(text);
        if text.len() > EXPRESSION_BYTES_MAX {
            let message = format!("the expression has more than {EXPRESSION_BYTES_MAX} octets");
            return Err(lexer.error(EXPRESSION_BYTES_MAX, message));
        }
        let token = lexer.next()?;
        let mut parser = Parser { lexer, token };
        parser.expect("SELECT")?;
        let columns = parser.aggregation()?;
        parser.expect("FROM")?;
        let topics = parser.selection()?;
        let mut condition = None;
        if parser.at("WHERE") {
            let from = parser.token.at + "WHERE".len();
            let (before, rest) = text.split_at_checked(from).unwrap_or((text, ""));
            condition = Some((rest.to_owned(), before.chars().count()));
        } else if parser.token.kind != TokenKind::End {
            return Err(parser.expected("NATURAL JOIN, WHERE or the end"));
        }
        Ok(Self { columns, topics, condition })
    }

    /// The condition of WHERE on the members of the result, `T`; without WHERE there is none.
    ///
    /// # Errors
    /// [`FilterError`].
    pub fn condition<T: DdsType>(&self, parameters: &[String]) -> Result<Option<Filter<T>>, FilterError> {
        let Some((condition, before)) = &self.condition else { return Ok(None) };
        let moved = |error: FilterError| FilterError { column: error.column + before, ..error };
        Filter::condition(condition, parameters).map(Some).map_err(moved)
    }
}

impl<'t> Parser<'t> {
    /// `*`, or members with commas between them, each perhaps with a new name.
    fn aggregation(&mut self) -> Result<Option<Vec<Column>>, FilterError> {
        if self.token.kind == TokenKind::Star {
            self.advance()?;
            return Ok(None);
        }
        let mut columns = Vec::new();
        loop {
            if columns.len() >= COLUMNS_MAX {
                return Err(self.error(format!("SELECT names more than {COLUMNS_MAX} members")));
            }
            let from = self.name("a member or '*'")?.to_owned();
            let renamed = self.at("AS");
            if renamed {
                self.advance()?;
            }
            let to = if renamed || matches!(self.token.kind, TokenKind::Name(_)) && !self.at("FROM") {
                self.name("the member's new name")?.to_owned()
            } else {
                from.clone()
            };
            columns.push(Column { from, to });
            if self.token.kind != TokenKind::Comma {
                return Ok(Some(columns));
            }
            self.advance()?;
        }
    }

    /// Topics with joins between them. Joins of the natural kind mean the same however they are nested.
    fn selection(&mut self) -> Result<Vec<String>, FilterError> {
        let mut topics = vec![self.topic()?];
        let mut open = 0;
        while self.at("NATURAL") || self.at("INNER") {
            let inner = self.at("INNER");
            self.advance()?;
            if inner {
                self.expect("NATURAL")?;
            } else if self.at("INNER") {
                self.advance()?;
            }
            self.expect("JOIN")?;
            if topics.len() >= TOPICS_MAX {
                return Err(self.error(format!("more than {TOPICS_MAX} topics are joined")));
            }
            if self.token.kind == TokenKind::Open {
                open += 1;
                self.advance()?;
            }
            topics.push(self.topic()?);
        }
        for _ in 0..open {
            if self.token.kind != TokenKind::Close {
                return Err(self.expected("')'"));
            }
            self.advance()?;
        }
        Ok(topics)
    }

    fn topic(&mut self) -> Result<String, FilterError> {
        if let TokenKind::Literal(Literal::Text(text)) = &self.token.kind {
            let text = text.clone();
            self.advance()?;
            return Ok(text);
        }
        self.name("the name of a topic").map(str::to_owned)
    }

    fn name(&mut self, wanted: &str) -> Result<&'t str, FilterError> {
        let TokenKind::Name(name) = self.token.kind else { return Err(self.expected(wanted)) };
        self.advance()?;
        Ok(name)
    }

    /// Whether a word comes that is a keyword only here: members may be called so elsewhere.
    fn at(&self, word: &str) -> bool {
        matches!(self.token.kind, TokenKind::Name(name) if name.eq_ignore_ascii_case(word))
    }

    fn expect(&mut self, word: &str) -> Result<(), FilterError> {
        if self.at(word) { self.advance() } else { Err(self.expected(word)) }
    }

    fn advance(&mut self) -> Result<(), FilterError> {
        self.token = self.lexer.next()?;
        Ok(())
    }

    fn error(&self, message: String) -> FilterError {
        self.lexer.error(self.token.at, message)
    }

    fn expected(&self, wanted: &str) -> FilterError {
        self.error(format!("expected {wanted}, found {}", self.token.kind.describe()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(pairs: &[(&str, &str)]) -> Option<Vec<Column>> {
        let column = |(from, to): &(&str, &str)| Column { from: (*from).into(), to: (*to).into() };
        Some(pairs.iter().map(column).collect())
    }

    #[test]
    fn the_example_of_the_standard_is_read() {
        let text = "SELECT flight_name, x, y, z AS height FROM 'Location' NATURAL JOIN 'FlightPlan' \
                    WHERE height < 1000 AND x <23;";
        let expression = TopicExpression::parse(text).unwrap();
        let expected = [("flight_name", "flight_name"), ("x", "x"), ("y", "y"), ("z", "height")];
        assert_eq!(expression.columns, columns(&expected));
        assert_eq!(expression.topics, ["Location", "FlightPlan"]);
        assert_eq!(expression.condition.unwrap().0, " height < 1000 AND x <23");
    }

    #[test]
    fn joins_have_three_names_and_may_be_nested() {
        let text = "select * from a inner natural join (b NATURAL INNER JOIN (c natural join d))";
        let expression = TopicExpression::parse(text).unwrap();
        assert_eq!(expression.topics, ["a", "b", "c", "d"]);
        assert_eq!((expression.columns, expression.condition), (None, None));
        let expression = TopicExpression::parse("SELECT a.b c, d FROM T").unwrap();
        assert_eq!(expression.columns, columns(&[("a.b", "c"), ("d", "d")]));
    }

    #[test]
    fn errors_say_where_and_what() {
        let refusal = |text: &str| TopicExpression::parse(text).unwrap_err().to_string();
        for (text, expected) in [
            ("x = 1", "at column 1: expected SELECT, found 'x'"),
            ("SELECT FROM T", "expected FROM, found the end"),
            ("SELECT x, FROM T", "expected FROM"),
            ("SELECT * T", "at column 10: expected FROM, found 'T'"),
            ("SELECT * FROM T JOIN U", "expected NATURAL JOIN, WHERE or the end, found 'JOIN'"),
            ("SELECT * FROM T NATURAL U", "expected JOIN"),
            ("SELECT * FROM T NATURAL JOIN (U", "expected ')', found the end"),
        ] {
            assert!(refusal(text).contains(expected), "{text}: {}", refusal(text));
        }
        let many = ["T"; 9].join(" NATURAL JOIN ");
        assert!(refusal(&format!("SELECT * FROM {many}")).contains("more than 8 topics"));
        let names = vec!["x"; 257].join(",");
        assert!(refusal(&format!("SELECT {names} FROM T")).contains("more than 256 members"));
        assert!(refusal(&" ".repeat(5_000).replace("  ", " x")).contains("more than 4096 octets"));
    }
}
