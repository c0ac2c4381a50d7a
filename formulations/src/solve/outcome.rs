//! What a solution gives: an answer, what is proven of it, and what it took.

use std::time::Duration;

use crate::model::ColumnId;

/// What the solver did.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Statistics {
    /// Runs of the solver.
    pub runs: u64,
    /// Simplex iterations. (Nodes are counted in 64 bits, which the binding cannot read.)
    pub iterations: u64,
    /// Time within the solver, without building the problem or reading the answer.
    pub time: Duration,
}

impl Statistics {
    /// Adds the work of further runs.
    pub fn add(&mut self, other: Self) {
        self.runs += other.runs;
        self.iterations += other.iterations;
        self.time += other.time;
    }
}

/// An answer and what is proven of it. Infeasible is a result, not an error.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome<S> {
    /// Proven: nothing is better (by more than the absolute gap).
    Optimal {
        /// The answer.
        solution: S,
        /// What the solver did.
        statistics: Statistics,
    },
    /// The best that was found before a limit.
    Feasible {
        /// The answer.
        solution: S,
        /// Proven: nothing has a better objective than this.
        bound: f64,
        /// Distance between the objective and the bound, not negative.
        gap: f64,
        /// What the solver did.
        statistics: Statistics,
    },
    /// Proven: there is no answer.
    Infeasible {
        /// What the solver did.
        statistics: Statistics,
    },
    /// A limit came before any answer.
    Unknown {
        /// Proven, if anything is: nothing has a better objective than this.
        bound: Option<f64>,
        /// What the solver did.
        statistics: Statistics,
    },
}

impl<S> Outcome<S> {
    /// The answer, if there is one.
    pub fn solution(&self) -> Option<&S> {
        match self {
            Self::Optimal { solution, .. } | Self::Feasible { solution, .. } => Some(solution),
            Self::Infeasible { .. } | Self::Unknown { .. } => None,
        }
    }

    /// What the solver did.
    pub fn statistics(&self) -> Statistics {
        match self {
            Self::Optimal { statistics, .. }
            | Self::Feasible { statistics, .. }
            | Self::Infeasible { statistics }
            | Self::Unknown { statistics, .. } => *statistics,
        }
    }
}

/// Values of all columns.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Value of each column in the order of creation; whole where the column's domain is.
    pub values: Vec<f64>,
    /// Objective as the solver reports it, with the model's constant.
    pub objective: f64,
}

impl Point {
    /// Value of a column.
    #[must_use]
    pub fn value(&self, column: ColumnId) -> f64 {
        self.values[column.index()]
    }

    /// Value of a column with a whole domain.
    #[must_use]
    pub fn integer(&self, column: ColumnId) -> i64 {
        self.value(column).round() as i64
    }
}
