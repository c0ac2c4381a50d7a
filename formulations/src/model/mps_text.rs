//! A model as text in the free MPS format.

#![expect(
    clippy::float_cmp,
    reason = "numbers are compared as they were given, not computed"
)]

use super::names::{legal, unique};
use super::{Column, Direction, Domain, Model, Sense, number};

impl Model {
    /// The model in the free MPS format, with the same names as the LP text.
    #[must_use]
    pub fn to_mps(&self) -> String {
        let columns = unique(self.columns.iter().map(|column| column.name.as_str()));
        let objective = legal(&self.objective_name);
        // The objective is a row of an MPS file, so its name is taken first.
        let names = std::iter::once(objective.as_str());
        let rows = unique(names.chain(self.rows.iter().map(|row| row.name.as_str())));
        let mut lines = vec![
            format!("NAME {}", legal(&self.name)),
            "OBJSENSE".into(),
            match self.direction {
                Direction::Minimise => " MIN".into(),
                Direction::Maximise => " MAX".into(),
            },
            "ROWS".into(),
            format!(" N {}", rows[0]),
        ];
        for (row, name) in self.rows.iter().zip(&rows[1..]) {
            let kind = match row.sense {
                Sense::AtMost => 'L',
                Sense::Equal => 'E',
                Sense::AtLeast => 'G',
            };
            lines.push(format!(" {kind} {name}"));
        }
        self.push_columns(&mut lines, &columns, &rows);
        lines.push("RHS".into());
        if self.constant != 0.0 {
            // By convention the right side of the objective is minus its constant.
            lines.push(format!(" RHS {} {}", rows[0], number(-self.constant)));
        }
        for (row, name) in self.rows.iter().zip(&rows[1..]) {
            if row.right != 0.0 {
                lines.push(format!(" RHS {name} {}", number(row.right)));
            }
        }
        lines.push("BOUNDS".into());
        for (column, name) in self.columns.iter().zip(&columns) {
            push_bounds(&mut lines, column, name);
        }
        lines.push("ENDATA\n".into());
        lines.join("\n")
    }

    fn push_columns(&self, lines: &mut Vec<String>, columns: &[String], rows: &[String]) {
        let mut entries = vec![Vec::new(); columns.len()];
        for &(column, coefficient) in &self.objective {
            entries[column.index()].push((0, coefficient));
        }
        for (row, index) in self.rows.iter().zip(1..) {
            for &(column, coefficient) in &row.terms {
                entries[column.index()].push((index, coefficient));
            }
        }
        lines.push("COLUMNS".into());
        let mut integer = false;
        for ((column, name), entries) in self.columns.iter().zip(columns).zip(&mut entries) {
            if integer != (column.domain != Domain::Continuous) {
                integer = !integer;
                lines.push(marker(integer));
            }
            if entries.is_empty() {
                entries.push((0, 0.0));
            }
            for &(row, coefficient) in &*entries {
                lines.push(format!(" {name} {} {}", rows[row], number(coefficient)));
            }
        }
        if integer {
            lines.push(marker(false));
        }
    }
}

fn marker(start: bool) -> String {
    let word = if start { "INTORG" } else { "INTEND" };
    format!(" MARKER 'MARKER' '{word}'")
}

fn push_bounds(lines: &mut Vec<String>, column: &Column, name: &str) {
    let mut bound = |kind: &str, value: Option<f64>| {
        let value = value.map_or(String::new(), |value| format!(" {}", number(value)));
        lines.push(format!(" {kind} BND {name}{value}"));
    };
    let (lower, upper) = (column.lower, column.upper);
    match column.domain {
        Domain::Binary if lower == 0.0 && upper == 1.0 => bound("BV", None),
        _ if lower == upper => bound("FX", Some(lower)),
        _ if lower == f64::NEG_INFINITY && upper == f64::INFINITY => bound("FR", None),
        domain => {
            if lower == f64::NEG_INFINITY {
                bound("MI", None);
            } else if lower != 0.0 {
                bound("LO", Some(lower));
            }
            if upper < f64::INFINITY {
                bound("UP", Some(upper));
            } else if domain == Domain::Integer {
                // Without it some readers take 1 as the bound of an integer column.
                bound("PL", None);
            }
        }
    }
}
