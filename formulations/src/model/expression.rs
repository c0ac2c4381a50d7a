//! Linear expressions, so that rows read as formulas: `memory * layers - saved * recomputed`.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Neg, Sub, SubAssign};

use super::ColumnId;

/// `sum_j a_j x_j + constant`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Expression {
    pub(super) terms: Vec<(ColumnId, f64)>,
    pub(super) constant: f64,
}

impl Expression {
    /// The expression without terms.
    pub const ZERO: Self = Self {
        terms: Vec::new(),
        constant: 0.0,
    };

    /// Its terms in the order of the columns, each column once, without zeros.
    #[must_use]
    pub fn terms(&self) -> Vec<(ColumnId, f64)> {
        super::in_column_order(self.terms.clone())
    }
}

impl From<ColumnId> for Expression {
    fn from(column: ColumnId) -> Self {
        Self {
            terms: vec![(column, 1.0)],
            constant: 0.0,
        }
    }
}

impl From<f64> for Expression {
    fn from(constant: f64) -> Self {
        Self {
            terms: Vec::new(),
            constant,
        }
    }
}

impl<E: Into<Self>> AddAssign<E> for Expression {
    fn add_assign(&mut self, other: E) {
        let other = other.into();
        self.terms.extend(other.terms);
        self.constant += other.constant;
    }
}

impl<E: Into<Self>> SubAssign<E> for Expression {
    fn sub_assign(&mut self, other: E) {
        *self += -other.into();
    }
}

impl<E: Into<Self>> Add<E> for Expression {
    type Output = Self;
    fn add(mut self, other: E) -> Self {
        self += other;
        self
    }
}

impl<E: Into<Self>> Sub<E> for Expression {
    type Output = Self;
    fn sub(mut self, other: E) -> Self {
        self -= other;
        self
    }
}

impl Neg for Expression {
    type Output = Self;
    fn neg(self) -> Self {
        -1.0 * self
    }
}

impl Mul<Expression> for f64 {
    type Output = Expression;
    fn mul(self, mut expression: Expression) -> Expression {
        for term in &mut expression.terms {
            term.1 *= self;
        }
        expression.constant *= self;
        expression
    }
}

impl Mul<&Expression> for f64 {
    type Output = Expression;
    fn mul(self, expression: &Expression) -> Expression {
        self * expression.clone()
    }
}

impl Mul<ColumnId> for f64 {
    type Output = Expression;
    fn mul(self, column: ColumnId) -> Expression {
        self * Expression::from(column)
    }
}

impl Sum for Expression {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::ZERO, |sum, part| sum + part)
    }
}
