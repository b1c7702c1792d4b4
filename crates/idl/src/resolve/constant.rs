//! Constant expressions: their values, and whether those fit a type.

use std::sync::Arc;

use super::scope::{ScopeId, SymbolKind};
use super::{Missing, Resolved, Resolver};
use crate::ast::{Expression, ExpressionKind, ScopedName};
use crate::diagnostic::Diagnostic;
use crate::model::{DefinitionKind, Primitive, Type, Value};
use crate::source::Span;

/// The least and greatest value of an integer type.
pub(crate) const fn range(primitive: Primitive) -> Option<(i128, i128)> {
    Some(match primitive {
        Primitive::Int8 => (i8::MIN as i128, i8::MAX as i128),
        Primitive::Octet | Primitive::UInt8 => (0, u8::MAX as i128),
        Primitive::Int16 => (i16::MIN as i128, i16::MAX as i128),
        Primitive::UInt16 => (0, u16::MAX as i128),
        Primitive::Int32 => (i32::MIN as i128, i32::MAX as i128),
        Primitive::UInt32 => (0, u32::MAX as i128),
        Primitive::Int64 => (i64::MIN as i128, i64::MAX as i128),
        Primitive::UInt64 => (0, u64::MAX as i128),
        _ => return None,
    })
}

/// The type as IDL writes it.
pub(crate) const fn keyword(primitive: Primitive) -> &'static str {
    match primitive {
        Primitive::Boolean => "boolean",
        Primitive::Octet => "octet",
        Primitive::Char => "char",
        Primitive::WChar => "wchar",
        Primitive::Int8 => "int8",
        Primitive::UInt8 => "uint8",
        Primitive::Int16 => "int16",
        Primitive::UInt16 => "uint16",
        Primitive::Int32 => "int32",
        Primitive::UInt32 => "uint32",
        Primitive::Int64 => "int64",
        Primitive::UInt64 => "uint64",
        Primitive::Float32 => "float",
        Primitive::Float64 => "double",
        Primitive::Float128 => "long double",
    }
}

impl Resolver<'_> {
    /// The value of an expression that must have this type.
    pub(super) fn value(&mut self, scope: ScopeId, expression: &Expression, ty: &Type) -> Resolved<Value> {
        let ty = self.underlying(ty).clone();
        if let Type::Named(id) = ty {
            // A literal needs no scope where its enumeration is known.
            if let ExpressionKind::Name(name) = &expression.kind
                && let [only] = name.parts.as_slice()
                && let Some((_, SymbolKind::Literal(of, index))) = self.literal_of(id, &only.text)
            {
                return Ok(Value::Literal { of, index });
            }
            let before = self.flags_of.replace(id);
            let value = self.evaluate(scope, expression);
            self.flags_of = before;
            let value = value?;
            return match value {
                Value::Literal { of, .. } if of == id => Ok(value),
                // Bitmasks have numbers as defaults.
                Value::Integer(_) if self.enumeration_of(id).is_none() => Ok(value),
                _ => {
                    let name = self.name_of(id);
                    let said = Diagnostic::error(expression.span, format!("this is no value of `{name}`"));
                    self.fail(said.hint("use one of the literals of the enumeration"))
                }
            };
        }
        let value = self.evaluate(scope, expression)?;
        self.coerce(value, &ty, expression.span)
    }

    fn coerce(&mut self, value: Value, ty: &Type, span: Span) -> Resolved<Value> {
        let fitting = match (ty, &value) {
            (Type::Primitive(primitive), Value::Integer(number)) if range(*primitive).is_some() => {
                let (least, greatest) = range(*primitive).unwrap_or_default();
                if *number < least || *number > greatest {
                    let name = keyword(*primitive);
                    let message = format!("{number} does not fit `{name}`, which is {least} to {greatest}");
                    return self.fail(Diagnostic::error(span, message));
                }
                Some(value.clone())
            }
            (Type::Primitive(Primitive::Float32 | Primitive::Float64 | Primitive::Float128), number) => {
                match number {
                    Value::Integer(number) => Some(Value::Float(*number as f64)),
                    Value::Float(_) => Some(value.clone()),
                    Value::Fixed(text) => text.parse().ok().map(Value::Float),
                    _ => None,
                }
            }
            (Type::Primitive(Primitive::Boolean), Value::Boolean(_)) => Some(value.clone()),
            (Type::Primitive(Primitive::Boolean), Value::Integer(number @ (0 | 1))) => {
                Some(Value::Boolean(*number == 1))
            }
            (Type::Primitive(Primitive::Char), Value::Character(letter)) if u32::from(*letter) > 0xff => {
                let said =
                    Diagnostic::error(span, format!("{letter:?} does not fit `char`, which has 8 bits"));
                return self.fail(said.hint("use `wchar`"));
            }
            (Type::Primitive(Primitive::Char | Primitive::WChar), Value::Character(_)) => Some(value.clone()),
            // As in C: characters are small numbers.
            (Type::Primitive(Primitive::Char), Value::Integer(number @ 0..=0xff)) => {
                char::from_u32(*number as u32).map(Value::Character)
            }
            (Type::Primitive(Primitive::Octet | Primitive::UInt8), Value::Character(letter))
                if u32::from(*letter) <= 0xff =>
            {
                Some(Value::Integer(i128::from(u32::from(*letter))))
            }
            (Type::String { bound, .. }, Value::Text(text)) => {
                if bound.is_some_and(|bound| text.chars().count() > bound as usize) {
                    let said = Diagnostic::error(span, "this string is longer than the bound of its type");
                    return self.fail(said);
                }
                Some(value.clone())
            }
            (Type::Fixed { .. }, Value::Fixed(_)) => Some(value.clone()),
            (Type::Fixed { .. }, Value::Integer(number)) => Some(Value::Fixed(number.to_string().into())),
            _ => None,
        };
        match fitting {
            Some(value) => Ok(value),
            None => {
                let (found, wanted) = (describe(&value), self.describe_type(ty));
                self.fail(Diagnostic::error(span, format!("{found} is no value of {wanted}")))
            }
        }
    }

    /// A number that counts something: from 1, of 32 bits.
    pub(super) fn count(&mut self, scope: ScopeId, expression: &Expression, what: &str) -> Resolved<u32> {
        match self.evaluate(scope, expression)? {
            Value::Integer(number) if number >= 1 => u32::try_from(number).or_else(|_| {
                self.fail(Diagnostic::error(expression.span, format!("{what} is at most {}", u32::MAX)))
            }),
            Value::Integer(number) => self.fail(Diagnostic::error(
                expression.span,
                format!("{what} is at least 1, and this is {number}"),
            )),
            other => {
                let message = format!("{what} is an integer, and this is {}", describe(&other));
                self.fail(Diagnostic::error(expression.span, message))
            }
        }
    }

    pub(super) fn evaluate(&mut self, scope: ScopeId, expression: &Expression) -> Resolved<Value> {
        match &expression.kind {
            ExpressionKind::Number(text) => match number(text) {
                Ok(value) => Ok(value),
                Err(why) => self.fail(Diagnostic::error(expression.span, why)),
            },
            ExpressionKind::Character(value) => Ok(Value::Character(*value)),
            ExpressionKind::Text(value) => Ok(Value::Text(Arc::clone(value))),
            ExpressionKind::Boolean(value) => Ok(Value::Boolean(*value)),
            ExpressionKind::Name(name) => self.named_value(scope, name),
            ExpressionKind::Unary(mark, operand) => {
                let value = self.evaluate(scope, operand)?;
                self.unary(mark, value, expression.span)
            }
            ExpressionKind::Binary(mark, left, right) => {
                let left = self.evaluate(scope, left)?;
                let right = self.evaluate(scope, right)?;
                self.binary(mark, &left, &right, expression.span)
            }
        }
    }

    fn named_value(&mut self, scope: ScopeId, name: &ScopedName) -> Resolved<Value> {
        if let (Some(id), Some(last)) = (self.flags_of, name.parts.last())
            && let Some(position) = self.flag_of(id, &last.text)
        {
            return Ok(Value::Integer(1 << position));
        }
        match self.look_up(scope, name, "constant")? {
            SymbolKind::Constant(id) => match self.slots[id.0].as_ref().map(|it| &it.kind) {
                Some(DefinitionKind::Constant { value, .. }) => Ok(value.clone()),
                _ => {
                    let message = format!("`{}` is defined by itself", name.text());
                    self.fail(Diagnostic::error(name.span, message))
                }
            },
            SymbolKind::Literal(of, index) => Ok(Value::Literal { of, index }),
            _ => {
                let message = format!("`{}` is a type or module, and a value is wanted here", name.text());
                self.fail(Diagnostic::error(name.span, message))
            }
        }
    }

    fn unary(&mut self, mark: &str, value: Value, span: Span) -> Resolved<Value> {
        Ok(match (mark, value) {
            ("+", value @ (Value::Integer(_) | Value::Float(_) | Value::Fixed(_))) => value,
            ("-", Value::Integer(value)) => Value::Integer(-value),
            ("-", Value::Float(value)) => Value::Float(-value),
            ("-", Value::Fixed(text)) => Value::Fixed(match text.strip_prefix('-') {
                Some(positive) => positive.into(),
                None => format!("-{text}").into(),
            }),
            ("~", Value::Integer(value)) => Value::Integer(!value),
            (_, value) => {
                let message = format!("`{mark}` is not for {}", describe(&value));
                return self.fail(Diagnostic::error(span, message));
            }
        })
    }

    fn binary(&mut self, mark: &str, left: &Value, right: &Value, span: Span) -> Resolved<Value> {
        let float = |value: &Value| match value {
            Value::Integer(value) => Some(*value as f64),
            Value::Float(value) => Some(*value),
            _ => None,
        };
        if let (Value::Integer(left), Value::Integer(right)) = (left, right) {
            return match integers(mark, *left, *right) {
                Ok(value) => Ok(Value::Integer(value)),
                Err(why) => self.fail(Diagnostic::error(span, why)),
            };
        }
        if let (Some(left), Some(right)) = (float(left), float(right)) {
            return Ok(Value::Float(match mark {
                "+" => left + right,
                "-" => left - right,
                "*" => left * right,
                "/" => left / right,
                _ => return self.fail(Diagnostic::error(span, format!("`{mark}` is for integers"))),
            }));
        }
        let message = format!("`{mark}` is not for {} and {}", describe(left), describe(right));
        self.fail(Diagnostic::error(span, message))
    }

    pub(super) fn describe_type(&self, ty: &Type) -> String {
        match ty {
            Type::Primitive(primitive) => format!("`{}`", keyword(*primitive)),
            Type::String { wide, .. } => if *wide { "`wstring`" } else { "`string`" }.to_owned(),
            Type::Sequence { .. } => "a sequence".to_owned(),
            Type::Array { .. } => "an array".to_owned(),
            Type::Map { .. } => "a map".to_owned(),
            Type::Fixed { .. } => "`fixed`".to_owned(),
            Type::Named(id) => format!("`{}`", self.name_of(*id)),
        }
    }

    pub(super) fn name_of(&self, id: crate::model::DefinitionId) -> String {
        self.slots[id.0]
            .as_ref()
            .map_or_else(|| "an unknown type".to_owned(), crate::model::Definition::full_name)
    }

    /// What a type is, aliases aside.
    pub(super) fn underlying<'t>(&'t self, mut ty: &'t Type) -> &'t Type {
        while let Type::Named(id) = ty
            && let Some(definition) = &self.slots[id.0]
            && let DefinitionKind::Alias(aliased) = &definition.kind
        {
            ty = aliased;
        }
        ty
    }

    /// The number of a discriminator value.
    pub(super) fn discriminant(&mut self, value: &Value, span: Span) -> Resolved<i64> {
        let number = match value {
            Value::Integer(number) => *number,
            Value::Boolean(value) => i128::from(*value),
            Value::Character(letter) => i128::from(u32::from(*letter)),
            Value::Literal { of, index } => match self.slots[of.0].as_ref().map(|it| &it.kind) {
                Some(DefinitionKind::Enumeration(enumeration)) => {
                    i128::from(enumeration.literals[*index].value)
                }
                _ => return Err(Missing::Failed),
            },
            other => {
                let message = format!("{} selects no member of a union", describe(other));
                return self.fail(Diagnostic::error(span, message));
            }
        };
        i64::try_from(number)
            .or_else(|_| self.fail(Diagnostic::error(span, "labels above 2^63 - 1 are not supported")))
    }
}

fn integers(mark: &str, left: i128, right: i128) -> Result<i128, String> {
    let shift = || match u32::try_from(right) {
        Ok(bits @ 0..=63) => Ok(bits),
        _ => Err(format!("a shift is by 0 to 63 bits, and this is {right}")),
    };
    let fits = |value: Option<i128>| {
        let value = value.filter(|value| value.unsigned_abs() <= u128::from(u64::MAX));
        value.ok_or_else(|| "the value has more than 64 bits".to_owned())
    };
    match mark {
        "|" => Ok(left | right),
        "^" => Ok(left ^ right),
        "&" => Ok(left & right),
        "<<" => fits(left.checked_shl(shift()?)),
        ">>" => Ok(left >> shift()?),
        "+" => fits(left.checked_add(right)),
        "-" => fits(left.checked_sub(right)),
        "*" => fits(left.checked_mul(right)),
        _ if right == 0 => Err("this divides by zero".to_owned()),
        "/" => Ok(left / right),
        _ => Ok(left % right),
    }
}

/// The value of a number as it is written (IDL 4.2 §7.2.6).
fn number(text: &str) -> Result<Value, String> {
    let integer = |digits: &str, radix: u32, what: &str| match u64::from_str_radix(digits, radix) {
        Ok(value) => Ok(Value::Integer(i128::from(value))),
        Err(error) if *error.kind() == std::num::IntErrorKind::PosOverflow => {
            Err(format!("`{text}` has more than 64 bits"))
        }
        Err(_) => Err(format!("`{text}` is no {what} number")),
    };
    let lower = text.to_ascii_lowercase();
    if let Some(digits) = lower.strip_prefix("0x") {
        return integer(digits, 16, "hexadecimal");
    }
    if let Some(fixed) = lower.strip_suffix('d') {
        let is_fixed = fixed.bytes().all(|octet| octet.is_ascii_digit() || octet == b'.')
            && fixed.bytes().filter(|octet| *octet == b'.').count() <= 1
            && fixed.bytes().filter(u8::is_ascii_digit).count() <= 31;
        return if is_fixed {
            Ok(Value::Fixed(fixed.into()))
        } else {
            Err(format!("`{text}` is no fixed-point number of at most 31 digits"))
        };
    }
    if lower.contains(['.', 'e']) {
        return match lower.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(Value::Float(value)),
            _ if lower.ends_with(['f', 'l']) => Err(format!("`{text}`: numbers of IDL have no suffix")),
            _ => Err(format!("`{text}` is no floating-point number of 64 bits")),
        };
    }
    if lower.ends_with(['u', 'l']) {
        return Err(format!("`{text}`: numbers of IDL have no suffix"));
    }
    match lower.strip_prefix('0') {
        Some(digits) if !digits.is_empty() => integer(digits, 8, "octal"),
        _ => integer(&lower, 10, "decimal"),
    }
}

pub(super) fn describe(value: &Value) -> String {
    match value {
        Value::Integer(value) => value.to_string(),
        Value::Float(value) => format!("the number {value}"),
        Value::Boolean(value) => if *value { "TRUE" } else { "FALSE" }.to_owned(),
        Value::Character(value) => format!("the character {value:?}"),
        Value::Text(_) => "a string".to_owned(),
        Value::Fixed(text) => format!("{text}d"),
        Value::Literal { .. } => "a literal of an enumeration".to_owned(),
    }
}
