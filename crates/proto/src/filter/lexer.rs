//! Text of an expression into tokens (DCPS 1.4 Annex B).

use super::FilterError;

/// What is written in an expression, and where: the place is an offset in octets.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token<'t> {
    pub(super) kind: TokenKind<'t>,
    pub(super) at: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum TokenKind<'t> {
    /// A member, `a.b.c`.
    Name(&'t str),
    Literal(Literal),
    /// `%0` to `%99`.
    Parameter(usize),
    Relation(Relation),
    Keyword(Keyword),
    Open,
    Close,
    Comma,
    Star,
    End,
}

/// A value written out.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Literal {
    Integer(i128),
    Float(f64),
    Boolean(bool),
    /// In quotes: a string, a character or the name of an enumeration literal.
    Text(String),
}

/// How two values are to compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keyword {
    And,
    Or,
    Not,
    Between,
    Like,
    Match,
    Order,
    By,
}

/// `%` and two digits.
const PARAMETERS_MAX: usize = 100;

/// Reads tokens one after the other.
pub(super) struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Lexer<'t> {
    pub(super) const fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    /// The whole text, which is one literal: the value of a parameter.
    pub(super) fn literal(text: &'t str) -> Option<Literal> {
        let mut lexer = Self::new(text);
        let TokenKind::Literal(literal) = lexer.next().ok()?.kind else { return None };
        (lexer.next().ok()?.kind == TokenKind::End).then_some(literal)
    }

    /// An error at offset `at`.
    pub(super) fn error(&self, at: usize, message: impl Into<String>) -> FilterError {
        let before = self.text.get(..at).unwrap_or(self.text);
        FilterError { column: before.chars().count() + 1, message: message.into() }
    }

    pub(super) fn next(&mut self) -> Result<Token<'t>, FilterError> {
        let rest = self.rest().trim_start();
        self.at = self.text.len() - rest.len();
        let at = self.at;
        let Some(first) = rest.chars().next() else { return Ok(Token { kind: TokenKind::End, at }) };
        let signed = rest.strip_prefix(['+', '-']).unwrap_or(rest);
        let kind = match first {
            '(' => self.take(1, TokenKind::Open),
            ')' => self.take(1, TokenKind::Close),
            ',' => self.take(1, TokenKind::Comma),
            '*' => self.take(1, TokenKind::Star),
            '\'' | '`' => TokenKind::Literal(Literal::Text(self.quoted(first)?)),
            '%' => self.parameter()?,
            '=' | '<' | '>' | '!' => self.relation()?,
            _ if signed.starts_with(|next: char| next.is_ascii_digit() || next == '.') => {
                TokenKind::Literal(self.number()?)
            }
            _ if first.is_alphabetic() || first == '_' => self.word(),
            _ => return Err(self.error(at, format!("'{first}' has no meaning here"))),
        };
        Ok(Token { kind, at })
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn take(&mut self, octets: usize, kind: TokenKind<'t>) -> TokenKind<'t> {
        self.at += octets;
        kind
    }

    /// Takes characters as long as `more` likes them.
    fn take_while(&mut self, more: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let end = rest.find(|next| !more(next)).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    /// A string opens with a left or right quote and closes with a right one; two of them stand for one.
    /// What a left quote opened, a left quote may close.
    fn quoted(&mut self, open: char) -> Result<String, FilterError> {
        let start = self.at;
        self.at += open.len_utf8();
        let mut text = String::new();
        loop {
            text.push_str(self.take_while(|next| next != '\'' && next != open && next != '\n'));
            let mut rest = self.rest().chars();
            match (rest.next(), rest.next()) {
                (Some('\''), Some('\'')) => {
                    text.push('\'');
                    self.at += 2;
                }
                (Some('\'' | '`'), _) => {
                    self.at += 1;
                    return Ok(text);
                }
                _ => return Err(self.error(start, "the string that begins here has no closing quote")),
            }
        }
    }

    fn parameter(&mut self) -> Result<TokenKind<'t>, FilterError> {
        let start = self.at;
        self.at += 1;
        let digits = self.take_while(|next| next.is_ascii_digit());
        match digits.parse() {
            Ok(index) if index < PARAMETERS_MAX => Ok(TokenKind::Parameter(index)),
            _ => Err(self.error(start, format!("'%{digits}' is no parameter: those are %0 to %99"))),
        }
    }

    fn relation(&mut self) -> Result<TokenKind<'t>, FilterError> {
        let start = self.at;
        let relation = match self.take_while(|next| matches!(next, '=' | '<' | '>' | '!')) {
            "=" => Relation::Equal,
            "<>" | "!=" => Relation::NotEqual,
            "<" => Relation::Less,
            "<=" => Relation::LessOrEqual,
            ">" => Relation::Greater,
            ">=" => Relation::GreaterOrEqual,
            other => {
                let message = format!("'{other}' is no comparison; there are =, <>, !=, <, <=, > and >=");
                return Err(self.error(start, message));
            }
        };
        Ok(TokenKind::Relation(relation))
    }

    /// `12`, `-12`, `0x1f`, `1.5`, `-.5e-3`.
    fn number(&mut self) -> Result<Literal, FilterError> {
        let start = self.at;
        let negative = self.rest().starts_with('-');
        self.at += usize::from(self.rest().starts_with(['+', '-']));
        let rest = self.rest();
        if rest.starts_with("0x") || rest.starts_with("0X") {
            self.at += 2;
            let digits = self.take_while(|next| next.is_ascii_alphanumeric());
            let value = u64::from_str_radix(digits, 16).map(i128::from);
            return value
                .map(|value| Literal::Integer(if negative { -value } else { value }))
                .map_err(|_| self.error(start, "a hexadecimal number is 0x and 1 to 16 digits"));
        }
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let mut end = digits(rest);
        let mut whole = true;
        if rest.get(end..).is_some_and(|rest| rest.starts_with('.')) {
            end += 1 + rest.get(end + 1..).map_or(0, digits);
            whole = false;
        }
        if let Some(exponent) = rest.get(end..).and_then(|rest| rest.strip_prefix(['e', 'E'])) {
            let sign = usize::from(exponent.starts_with(['+', '-']));
            end += 1 + sign + exponent.get(sign..).map_or(0, digits);
            whole = false;
        }
        self.at += end;
        let glued = self.take_while(|next| next.is_alphanumeric() || next == '_' || next == '.');
        let text = self.text.get(start..self.at).unwrap_or_default();
        let value = if glued.is_empty() {
            if whole {
                text.parse().ok().map(Literal::Integer)
            } else {
                text.parse().ok().map(Literal::Float)
            }
        } else {
            None
        };
        value.ok_or_else(|| self.error(start, format!("'{text}' is no number")))
    }

    /// A keyword, TRUE, FALSE or a name. Case matters only for names.
    fn word(&mut self) -> TokenKind<'t> {
        let word = self.take_while(|next| next.is_alphanumeric() || next == '_' || next == '.');
        const WORDS: [(&str, Keyword); 8] = [
            ("AND", Keyword::And),
            ("OR", Keyword::Or),
            ("NOT", Keyword::Not),
            ("BETWEEN", Keyword::Between),
            ("LIKE", Keyword::Like),
            ("MATCH", Keyword::Match),
            ("ORDER", Keyword::Order),
            ("BY", Keyword::By),
        ];
        if let Some((_, keyword)) = WORDS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)) {
            return TokenKind::Keyword(*keyword);
        }
        for value in [true, false] {
            if word.eq_ignore_ascii_case(if value { "TRUE" } else { "FALSE" }) {
                return TokenKind::Literal(Literal::Boolean(value));
            }
        }
        TokenKind::Name(word)
    }
}

impl TokenKind<'_> {
    /// For people.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Name(name) => format!("'{name}'"),
            Self::Literal(Literal::Text(text)) => format!("the string '{text}'"),
            Self::Literal(Literal::Integer(value)) => format!("the number {value}"),
            Self::Literal(Literal::Float(value)) => format!("the number {value}"),
            Self::Literal(Literal::Boolean(value)) => (if *value { "TRUE" } else { "FALSE" }).to_owned(),
            Self::Parameter(index) => format!("%{index}"),
            Self::Relation(_) => "a comparison".to_owned(),
            Self::Keyword(keyword) => format!("{keyword:?}").to_ascii_uppercase(),
            Self::Open => "'('".to_owned(),
            Self::Close => "')'".to_owned(),
            Self::Comma => "','".to_owned(),
            Self::Star => "'*'".to_owned(),
            Self::End => "the end".to_owned(),
        }
    }
}
