//! The kinds of values that figures have.

use crate::choice::Choice;
use crate::quantity::{Bytes, BytesPerSecond, FlopsPerSecond, Seconds};

/// The kind of a figure's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A plain number.
    Number,
    /// A whole number.
    Count,
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// Floating-point operations per second.
    FlopsPerSecond,
    /// Seconds.
    Seconds,
    /// One of several names.
    Choice {
        /// What it is a choice of, with its article.
        noun: &'static str,
        /// The names.
        names: &'static [&'static str],
    },
}

/// A value of a figure.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
#[serde(untagged)]
pub enum Value {
    /// A number in base units.
    Number(f64),
    /// The name of a choice.
    Name(&'static str),
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl Value {
    /// The number in base units; not a number for a choice.
    #[must_use]
    pub const fn number(self) -> f64 {
        match self {
            Self::Number(number) => number,
            Self::Name(_) => f64::NAN,
        }
    }
}

/// The type of a field that is a figure.
pub trait Figured: Copy {
    /// The kind of its values.
    const KIND: Kind;
    /// Its value, if it has one.
    fn value(self) -> Option<Value>;
    /// The field of a value of its kind.
    fn of(value: Value) -> Option<Self>;
}

impl Figured for f64 {
    const KIND: Kind = Kind::Number;
    fn value(self) -> Option<Value> {
        Some(Value::Number(self))
    }
    fn of(value: Value) -> Option<Self> {
        Some(value.number())
    }
}

impl Figured for u32 {
    const KIND: Kind = Kind::Count;
    fn value(self) -> Option<Value> {
        Some(Value::Number(f64::from(self)))
    }
    fn of(value: Value) -> Option<Self> {
        Some(value.number() as Self)
    }
}

macro_rules! quantities {
    ($($quantity:ident)+) => {
        $(impl Figured for $quantity {
            const KIND: Kind = Kind::$quantity;
            fn value(self) -> Option<Value> {
                Some(Value::Number(self.value()))
            }
            fn of(value: Value) -> Option<Self> {
                Some(Self::new(value.number()))
            }
        })+
    };
}
quantities! { Bytes BytesPerSecond FlopsPerSecond Seconds }

impl<F: Figured> Figured for Option<F> {
    const KIND: Kind = F::KIND;
    fn value(self) -> Option<Value> {
        self.and_then(F::value)
    }
    fn of(value: Value) -> Option<Self> {
        F::of(value).map(Some)
    }
}

impl<C: Choice> Figured for C {
    const KIND: Kind = Kind::Choice {
        noun: C::NOUN,
        names: C::NAMES,
    };
    fn value(self) -> Option<Value> {
        Some(Value::Name(self.name()))
    }
    fn of(value: Value) -> Option<Self> {
        match value {
            Value::Name(name) => C::of_name(name),
            Value::Number(_) => None,
        }
    }
}
