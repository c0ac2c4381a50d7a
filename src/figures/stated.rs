//! What a file states of a group of figures.

use std::marker::PhantomData;

use serde_json::{Value as Json, json};

use super::cluster::Cluster;
use super::framework::Framework;
use super::{Figure, Group, Kind, Value};
use crate::quantity::{Bytes, BytesPerSecond, FlopsPerSecond, Measured, Seconds};
use crate::reading::section::{Part, check_keys, described, object_schema, table_of};
use crate::reading::values::read_name;
use crate::reading::{self, Field, Node, Origin, Problems, Table, join, shown};

/// What a file states of the figures of `G`.
#[derive(Debug, Clone)]
pub(crate) struct Stated<G> {
    /// One per figure of the group.
    fields: Vec<Field<Value>>,
    group: PhantomData<G>,
}

impl<G: Group> Default for Stated<G> {
    fn default() -> Self {
        Self {
            fields: vec![Field::Absent; G::FIGURES.len()],
            group: PhantomData,
        }
    }
}

impl<G: Group> Part for Stated<G> {
    fn keys() -> Vec<&'static str> {
        G::FIGURES.iter().map(Figure::leaf).collect()
    }

    fn of_table(table: &Table, path: &str, meant: &[&str], problems: &mut Problems) -> Self {
        let fields = G::FIGURES.iter().map(|figure| {
            let key = figure.leaf();
            Field::read_by(table, key, meant, |node| {
                figure.read(node, &join(path, key), problems)
            })
        });
        Self {
            fields: fields.collect(),
            group: PhantomData,
        }
    }

    fn properties() -> Vec<(&'static str, Json)> {
        let described = |figure: &Figure| (figure.leaf(), described(figure.schema(), figure.doc));
        G::FIGURES.iter().map(described).collect()
    }

    fn over(mut self, base: &Self) -> Self {
        for (own, below) in self.fields.iter_mut().zip(&base.fields) {
            if own.is_absent() {
                *own = below.clone();
            }
        }
        self
    }
}

/// A section that has these figures and nothing else.
impl<G: Group> reading::Value for Stated<G> {
    fn read(node: &Node, path: &str, problems: &mut Problems) -> Option<Self> {
        let table = table_of(node, path, problems)?;
        let meant = check_keys(table, path, &Self::keys(), problems);
        Some(Self::of_table(table, path, &meant, problems))
    }

    fn schema() -> Json {
        object_schema(G::DOC, Self::properties())
    }

    fn over(self, base: &Self) -> Self {
        Part::over(self, base)
    }
}

impl<G: Group> Stated<G> {
    fn entries(&self) -> impl Iterator<Item = (&'static Figure, &Field<Value>)> {
        G::FIGURES.iter().zip(&self.fields)
    }

    /// The figures that the file states.
    pub(crate) fn given(&self) -> impl Iterator<Item = &'static Figure> {
        let given = self.entries().filter(|(_, field)| !field.is_absent());
        given.map(|(figure, _)| figure)
    }

    /// Takes back the figures that the other states.
    pub(crate) fn forget(&mut self, other: &Self) {
        for (own, stated) in self.fields.iter_mut().zip(&other.fields) {
            if !stated.is_absent() {
                *own = Field::Absent;
            }
        }
    }

    /// The figures without which the group is not complete and that the file does not state.
    pub(crate) fn missing(&self) -> impl Iterator<Item = &'static Figure> {
        let terms = self.entries().filter(|(figure, field)| {
            field.is_absent() && figure.terms.default.is_none() && !figure.terms.optional
        });
        terms.map(|(figure, _)| figure)
    }

    /// The stated value of the figure whose key ends in `leaf`.
    pub(crate) fn value(&self, leaf: &str) -> Option<Value> {
        let mut entries = self.entries();
        let (_, field) = entries.find(|(figure, _)| figure.leaf() == leaf)?;
        field.value().copied()
    }

    /// Gives cluster and framework the stated figures, and those that need not be stated their
    /// defaults; `None` if one is missing or broken.
    pub(crate) fn apply(&self, cluster: &mut Cluster, framework: &mut Framework) -> Option<()> {
        for (figure, field) in self.entries() {
            let value = match field {
                Field::Given(value, _) => Some(*value),
                Field::Absent => figure.terms.default,
                Field::Broken => return None,
            };
            match value {
                Some(value) => figure.set(cluster, framework, value),
                None if figure.terms.optional => {}
                None => return None,
            }
        }
        Some(())
    }

    /// Reports every missing figure of the section that stands at `section`.
    pub(crate) fn report_missing(&self, section: Option<&Origin>, problems: &mut Problems) {
        for figure in self.missing() {
            let hint = format!("write it with its unit: {}", figure.example());
            let path = figure.path();
            Field::<Value>::Absent.required(&path, section, &hint, problems);
        }
    }
}

impl Figure {
    /// Its key in an instance file.
    #[must_use]
    pub fn path(&self) -> String {
        if self.key.starts_with("framework.") {
            self.key.to_owned()
        } else {
            format!("cluster.{}", self.key)
        }
    }

    /// A line that states it.
    fn example(&self) -> String {
        let number = match self.kind {
            Kind::Bytes => 85,
            Kind::BytesPerSecond => 240,
            Kind::FlopsPerSecond => 312,
            _ => 8,
        };
        format!("`{} = \"{number} {}\"`", self.leaf(), self.terms.unit)
    }

    fn read(&self, node: &Node, path: &str, problems: &mut Problems) -> Option<Value> {
        use reading::Value as _;
        let number = match self.kind {
            Kind::Number => f64::read(node, path, problems)?,
            Kind::Count => u64::read(node, path, problems)? as f64,
            Kind::Bytes => Bytes::read(node, path, problems)?.value(),
            Kind::BytesPerSecond => BytesPerSecond::read(node, path, problems)?.value(),
            Kind::FlopsPerSecond => FlopsPerSecond::read(node, path, problems)?.value(),
            Kind::Seconds => Seconds::read(node, path, problems)?.value(),
            Kind::Choice { noun, names } => {
                return read_name(node, path, (noun, names), problems).map(Value::Name);
            }
        };
        let (least, most) = self.terms.range;
        if least <= number && number <= most {
            return Some(Value::Number(number));
        }
        let written = shown(node.written());
        let (text, hint) = match self.kind {
            Kind::Count => (
                format!("`{path}` is at most {most}, not `{written}`"),
                "check the number of digits".to_owned(),
            ),
            Kind::Seconds => (
                format!("`{path}` is longer than {most} s"),
                "check the unit: `us`, `ms` or `s`".to_owned(),
            ),
            Kind::Bytes => self.not_valid::<Bytes>(path),
            Kind::BytesPerSecond => self.not_valid::<BytesPerSecond>(path),
            Kind::FlopsPerSecond => self.not_valid::<FlopsPerSecond>(path),
            Kind::Number | Kind::Choice { .. } => (
                format!("`{path}` is between {least} and {most}, not `{written}`"),
                "see its unit in docs/figures.md".to_owned(),
            ),
        };
        problems.add(&node.origin, text, hint);
        None
    }

    fn not_valid<Q: Measured>(&self, path: &str) -> (String, String) {
        (
            format!("`{path}` is not a valid {}", Q::NOUN),
            format!("write it with its unit: {}", self.example()),
        )
    }

    fn schema(&self) -> Json {
        use reading::Value as _;
        let (least, most) = self.terms.range;
        match self.kind {
            Kind::Number => json!({ "type": "number", "minimum": least, "maximum": most }),
            Kind::Count => json!({ "type": "integer", "minimum": least, "maximum": most }),
            Kind::Bytes => Bytes::schema(),
            Kind::BytesPerSecond => BytesPerSecond::schema(),
            Kind::FlopsPerSecond => FlopsPerSecond::schema(),
            Kind::Seconds => Seconds::schema(),
            Kind::Choice { names, .. } => json!({ "type": "string", "enum": names }),
        }
    }
}
