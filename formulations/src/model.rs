//! A mixed-integer linear program with names.
//!
//! A [`Model`] is what every formulation builds: columns (variables) and rows (constraints) in the
//! order of their creation, each with a name. Its [`Display`](std::fmt::Display) is the CPLEX LP
//! format, [`Model::to_mps`] the free MPS format; both are deterministic, so that they serve
//! snapshots and files alike.
//!
//! `minimise or maximise  sum_j c_j x_j + constant`, subject to `sum_j a_ij x_j (<=, =, >=) b_i`,
//! `lower_j <= x_j <= upper_j`, and `x_j` integer where the column says so.

mod expression;
mod lp_text;
mod mps_text;
mod names;
#[cfg(test)]
mod tests;

pub use expression::Expression;

/// Whether the objective is to be made small or large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// The least objective is the best.
    Minimise,
    /// The largest objective is the best.
    Maximise,
}

/// How the left side of a row compares to its right side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sense {
    /// `<=`
    AtMost,
    /// `=`
    Equal,
    /// `>=`
    AtLeast,
}

impl Sense {
    /// The sign as it is written in an LP file.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            Self::AtMost => "<=",
            Self::Equal => "=",
            Self::AtLeast => ">=",
        }
    }

    /// Whether the left side may be by so much above the right side.
    #[must_use]
    pub fn admits(self, difference: i64) -> bool {
        match self {
            Self::AtMost => difference <= 0,
            Self::Equal => difference == 0,
            Self::AtLeast => difference >= 0,
        }
    }
}

/// Which values a column may take between its bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Domain {
    /// Every real number.
    Continuous,
    /// Every whole number.
    Integer,
    /// 0 or 1.
    Binary,
}

/// Handle of a column of the [`Model`] that made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ColumnId(usize);

impl ColumnId {
    /// Position in the order of creation, and so in the values of a solution.
    #[must_use]
    pub fn index(self) -> usize {
        self.0
    }
}

/// A variable: `lower <= x <= upper`, in its domain.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Name as given; made legal and unique only when written.
    pub name: String,
    /// Which values it may take.
    pub domain: Domain,
    /// Least value, possibly negative infinity.
    pub lower: f64,
    /// Largest value, possibly infinity.
    pub upper: f64,
}

/// A constraint `sum_j a_j x_j  sense  right`.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Name as given; made legal and unique only when written.
    pub name: String,
    /// Non-zero coefficients in the order of the columns, each column once.
    pub terms: Vec<(ColumnId, f64)>,
    /// How the sides compare.
    pub sense: Sense,
    /// The right side.
    pub right: f64,
}

/// A mixed-integer linear program; see the module.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    name: String,
    direction: Direction,
    objective_name: String,
    objective: Vec<(ColumnId, f64)>,
    constant: f64,
    columns: Vec<Column>,
    rows: Vec<Row>,
}

impl Model {
    /// A model without columns, rows and objective.
    #[must_use]
    pub fn new(name: impl Into<String>, direction: Direction) -> Self {
        Self {
            name: name.into(),
            direction,
            objective_name: "objective".into(),
            objective: Vec::new(),
            constant: 0.0,
            columns: Vec::new(),
            rows: Vec::new(),
        }
    }

    /// Adds a column that takes the real numbers from `lower` to `upper`.
    pub fn add_continuous(&mut self, name: impl Into<String>, lower: f64, upper: f64) -> ColumnId {
        self.add_column(name, Domain::Continuous, lower, upper)
    }

    /// Adds a column that takes the whole numbers from `lower` to `upper`.
    pub fn add_integer(&mut self, name: impl Into<String>, lower: f64, upper: f64) -> ColumnId {
        self.add_column(name, Domain::Integer, lower, upper)
    }

    /// Adds a column that is 0 or 1.
    pub fn add_binary(&mut self, name: impl Into<String>) -> ColumnId {
        self.add_column(name, Domain::Binary, 0.0, 1.0)
    }

    fn add_column(
        &mut self,
        name: impl Into<String>,
        domain: Domain,
        lower: f64,
        upper: f64,
    ) -> ColumnId {
        self.columns.push(Column {
            name: name.into(),
            domain,
            lower,
            upper,
        });
        ColumnId(self.columns.len() - 1)
    }

    /// Adds the row `sum terms  sense  right`. Terms of one column are summed, zeros dropped.
    pub fn add_row(
        &mut self,
        name: impl Into<String>,
        terms: impl IntoIterator<Item = (ColumnId, f64)>,
        sense: Sense,
        right: f64,
    ) {
        self.rows.push(Row {
            name: name.into(),
            terms: in_column_order(terms.into_iter().collect()),
            sense,
            right,
        });
    }

    /// Adds the row `left  sense  right`.
    pub fn row(
        &mut self,
        name: impl Into<String>,
        left: impl Into<Expression>,
        sense: Sense,
        right: impl Into<Expression>,
    ) {
        let difference = left.into() - right.into();
        self.add_row(name, difference.terms, sense, -difference.constant + 0.0);
    }

    /// Sets the objective.
    pub fn objective_is(&mut self, name: impl Into<String>, objective: Expression) {
        self.set_objective(name, objective.terms, objective.constant);
    }

    /// Sets the objective `sum terms + constant`. Terms of one column are summed, zeros dropped.
    pub fn set_objective(
        &mut self,
        name: impl Into<String>,
        terms: impl IntoIterator<Item = (ColumnId, f64)>,
        constant: f64,
    ) {
        self.objective_name = name.into();
        self.objective = in_column_order(terms.into_iter().collect());
        self.constant = constant;
    }

    /// The same columns and rows with the objective zero: asks for any feasible point.
    #[must_use]
    pub fn without_objective(&self) -> Self {
        let mut model = self.clone();
        model.objective.clear();
        model.constant = 0.0;
        model
    }

    /// What the model is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the objective is minimised or maximised.
    #[must_use]
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// Terms of the objective in the order of the columns.
    #[must_use]
    pub fn objective(&self) -> &[(ColumnId, f64)] {
        &self.objective
    }

    /// What the objective adds to its terms.
    #[must_use]
    pub fn constant(&self) -> f64 {
        self.constant
    }

    /// The columns in the order of creation.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The rows in the order of creation.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }
}

fn in_column_order(mut terms: Vec<(ColumnId, f64)>) -> Vec<(ColumnId, f64)> {
    if !terms.is_sorted_by(|a, b| a.0 < b.0) {
        terms.sort_by_key(|term| term.0);
        terms.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            if same {
                earlier.1 += later.1;
            }
            same
        });
    }
    terms.retain(|term| term.1 != 0.0);
    terms
}

/// The shortest decimal that reads back as the same number.
fn number(value: f64) -> String {
    if value == f64::INFINITY {
        "inf".into()
    } else if value == f64::NEG_INFINITY {
        "-inf".into()
    } else if value != 0.0 && !(1e-5..1e15).contains(&value.abs()) {
        format!("{value:e}")
    } else {
        // Adding zero turns -0 into 0.
        format!("{}", value + 0.0)
    }
}
