//! A model as text in the CPLEX LP format.

#![expect(
    clippy::float_cmp,
    reason = "numbers are compared as they were given, not computed"
)]

use std::fmt::{self, Display, Formatter};

use super::names::{legal, unique};
use super::{ColumnId, Direction, Domain, Model, number};

/// Lines are wrapped at this many characters; some readers refuse lines beyond 255.
const WIDTH: usize = 78;

impl Display for Model {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let columns = unique(self.columns.iter().map(|column| column.name.as_str()));
        let rows = unique(self.rows.iter().map(|row| row.name.as_str()));
        writeln!(f, "\\ {}", self.name.replace(['\n', '\r'], " "))?;
        writeln!(
            f,
            "{}",
            match self.direction {
                Direction::Minimise => "minimize",
                Direction::Maximise => "maximize",
            }
        )?;
        self.write_objective(f, &columns)?;
        writeln!(f, "subject to")?;
        for (row, name) in self.rows.iter().zip(&rows) {
            let end = format!("{} {}", row.sense.symbol(), number(row.right));
            if row.terms.is_empty() && columns.is_empty() {
                writeln!(f, "\\ {name}: 0 {end}")?;
                continue;
            }
            let mut words = words(&row.terms, &columns);
            if words.is_empty() {
                words.push(format!("0 {}", columns[0]));
            }
            words.push(end);
            write_wrapped(f, &format!(" {name}:"), &words)?;
        }
        self.write_bounds(f, &columns)?;
        self.write_domain(f, &columns, Domain::Integer, "general")?;
        self.write_domain(f, &columns, Domain::Binary, "binary")?;
        writeln!(f, "end")
    }
}

impl Model {
    fn write_objective(&self, f: &mut Formatter<'_>, columns: &[String]) -> fmt::Result {
        let mut words = words(&self.objective, columns);
        // A column that appears nowhere else would be lost to the reader.
        for unused in self.columns_in_nothing() {
            words.push(format!("+ 0 {}", columns[unused]));
        }
        if self.constant != 0.0 {
            words.push(signed(self.constant));
        }
        if words.is_empty() {
            words.push("0".into());
        }
        write_wrapped(f, &format!(" {}:", legal(&self.objective_name)), &words)
    }

    pub(super) fn columns_in_nothing(&self) -> impl Iterator<Item = usize> {
        let mut used = vec![false; self.columns.len()];
        let in_rows = self.rows.iter().flat_map(|row| &row.terms);
        for term in self.objective.iter().chain(in_rows) {
            used[term.0.index()] = true;
        }
        (0..used.len()).filter(move |&column| !used[column])
    }

    fn write_bounds(&self, f: &mut Formatter<'_>, columns: &[String]) -> fmt::Result {
        let bounded: Vec<_> = (self.columns.iter().zip(columns))
            .filter(|(column, _)| match column.domain {
                Domain::Binary => column.lower != 0.0 || column.upper != 1.0,
                _ => column.lower != 0.0 || column.upper != f64::INFINITY,
            })
            .collect();
        if bounded.is_empty() {
            return Ok(());
        }
        writeln!(f, "bounds")?;
        for (column, name) in bounded {
            if column.lower == f64::NEG_INFINITY && column.upper == f64::INFINITY {
                writeln!(f, " {name} free")?;
            } else if column.lower == column.upper {
                writeln!(f, " {name} = {}", number(column.lower))?;
            } else {
                let (lower, upper) = (number(column.lower), number(column.upper));
                writeln!(f, " {lower} <= {name} <= {upper}")?;
            }
        }
        Ok(())
    }

    fn write_domain(
        &self,
        f: &mut Formatter<'_>,
        columns: &[String],
        domain: Domain,
        section: &str,
    ) -> fmt::Result {
        let words: Vec<String> = (self.columns.iter().zip(columns))
            .filter(|(column, _)| column.domain == domain)
            .map(|(_, name)| name.clone())
            .collect();
        if words.is_empty() {
            return Ok(());
        }
        writeln!(f, "{section}")?;
        write_wrapped(f, "", &words)
    }
}

fn words(terms: &[(ColumnId, f64)], columns: &[String]) -> Vec<String> {
    (terms.iter().enumerate())
        .map(|(position, &(column, coefficient))| {
            let name = &columns[column.index()];
            let sign = match (position, coefficient < 0.0) {
                (0, false) => "",
                (_, false) => "+ ",
                (_, true) => "- ",
            };
            if coefficient.abs() == 1.0 {
                format!("{sign}{name}")
            } else {
                format!("{sign}{} {name}", number(coefficient.abs()))
            }
        })
        .collect()
}

fn signed(value: f64) -> String {
    let sign = if value < 0.0 { '-' } else { '+' };
    format!("{sign} {}", number(value.abs()))
}

fn write_wrapped(f: &mut Formatter<'_>, start: &str, words: &[String]) -> fmt::Result {
    write!(f, "{start}")?;
    let mut width = start.len();
    for word in words {
        if width > 2 && width + 1 + word.len() > WIDTH {
            write!(f, "\n  {word}")?;
            width = 2 + word.len();
        } else {
            write!(f, " {word}")?;
            width += 1 + word.len();
        }
    }
    writeln!(f)
}
