//! The registry of figures: every parameter of GPU, cluster and framework, as one table.
//!
//! A figure is declared once, by an entry of `figures!` in [`cluster`] or [`framework`]: its field,
//! unit, range, meaning, and whether measured runs can teach it. Sections of instance and catalog
//! files, their JSON Schema, the writer of cluster files, calibration and `docs/figures.md` follow
//! from that entry. Its values are in `catalog/`.

use std::ops::RangeInclusive;

pub mod cluster;
pub mod framework;
mod kind;
pub(crate) mod stated;
pub mod support;
mod table;

use cluster::{Accelerator, Calibration, Cluster, Efficiency, MemoryError};
use framework::{Framework, MemoryProfile, SpeedProfile};

pub use kind::{Figured, Kind, Value};
use table::figures;

/// One parameter of cluster or framework.
#[derive(Debug)]
pub struct Figure {
    /// Its key in a cluster file, such as `efficiency.gemm` or `framework.speed.launch`.
    pub key: &'static str,
    /// What it says, in a sentence.
    pub doc: &'static str,
    /// The kind of its value.
    pub kind: Kind,
    /// Unit, range, default, and what teaches it.
    pub terms: Terms,
    get: fn(Owners<'_>) -> Option<Value>,
    set: fn(OwnersMut<'_>, Value),
}

/// What is said of a figure beside its field and meaning.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    /// The unit in which it is written; of a plain number what it counts.
    pub unit: &'static str,
    /// Smallest and largest value, in base units.
    pub range: (f64, f64),
    /// Its value where nothing states one.
    pub default: Option<Value>,
    /// Whether it may have no value at all.
    pub optional: bool,
    /// How runs teach it; `None` if they cannot.
    pub learning: Option<Learning>,
}

/// How measured runs teach a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Learning {
    /// What it is seen in.
    pub seen: Seen,
    /// Smallest and largest value that a fit may give it.
    pub bounds: (f64, f64),
}

/// What a figure is seen in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// Step times.
    InTime,
    /// Memory: peaks, and which runs fit.
    InMemory,
}

/// A number between two bounds. `unit` says what it counts.
const fn number(unit: &'static str, range: RangeInclusive<f64>) -> Terms {
    Terms {
        unit,
        range: (*range.start(), *range.end()),
        default: None,
        optional: false,
        learning: None,
    }
}

/// A quantity between two bounds in base units, written in `unit`.
const fn quantity(unit: &'static str, range: RangeInclusive<f64>) -> Terms {
    number(unit, range)
}

/// A whole number between two bounds.
const fn count(range: RangeInclusive<u32>) -> Terms {
    number("", *range.start() as f64..=*range.end() as f64)
}

/// One of several names.
const fn one_of() -> Terms {
    number("", 0.0..=0.0)
}

impl Terms {
    /// A figure that need not be stated.
    const fn or(self, default: Value) -> Self {
        Self {
            default: Some(default),
            ..self
        }
    }

    /// A figure that may have no value.
    const fn optional(self) -> Self {
        Self {
            optional: true,
            ..self
        }
    }

    /// A figure that step times teach.
    const fn seen_in_time(self) -> Self {
        self.learned(Seen::InTime)
    }

    /// A figure that peaks of memory teach.
    const fn seen_in_memory(self) -> Self {
        self.learned(Seen::InMemory)
    }

    const fn learned(self, seen: Seen) -> Self {
        Self {
            learning: Some(Learning {
                seen,
                bounds: self.range,
            }),
            ..self
        }
    }

    /// Narrower bounds for a fit.
    const fn fitted_within(self, bounds: RangeInclusive<f64>) -> Self {
        let Some(learning) = self.learning else {
            return self;
        };
        Self {
            learning: Some(Learning {
                bounds: (*bounds.start(), *bounds.end()),
                ..learning
            }),
            ..self
        }
    }
}

/// A struct of figures.
pub(crate) trait Group: Clone + 'static {
    /// What it is.
    const DOC: &'static str;
    /// Its figures.
    const FIGURES: &'static [Figure];

    /// Where it lives.
    fn of(owners: Owners<'_>) -> &Self;
    /// Where it lives, to write it.
    fn of_mut(owners: OwnersMut<'_>) -> &mut Self;
}

/// Every figure, in the order of cluster files.
pub fn all() -> impl Iterator<Item = &'static Figure> + Clone {
    [
        Accelerator::FIGURES,
        Cluster::FIGURES,
        Efficiency::FIGURES,
        Calibration::FIGURES,
        MemoryError::FIGURES,
        Framework::FIGURES,
        MemoryProfile::FIGURES,
        SpeedProfile::FIGURES,
    ]
    .into_iter()
    .flatten()
}

impl Figure {
    /// The figure with this key.
    #[must_use]
    pub fn named(key: &str) -> Option<&'static Self> {
        all().find(|figure| figure.key == key)
    }

    /// The last part of its key.
    #[must_use]
    pub fn leaf(&self) -> &'static str {
        self.key.rsplit('.').next().unwrap_or(self.key)
    }

    /// The section of a cluster file that has it; empty for its top.
    #[must_use]
    pub fn section(&self) -> &'static str {
        self.key.rsplit_once('.').map_or("", |(section, _)| section)
    }

    /// Its value; `None` where there is none, such as an fp8 peak of a GPU without fp8.
    #[must_use]
    pub fn get(&self, cluster: &Cluster, framework: &Framework) -> Option<Value> {
        (self.get)(Owners { cluster, framework })
    }

    /// Its value as a number in base units; not a number where it has none.
    #[must_use]
    pub fn number(&self, cluster: &Cluster, framework: &Framework) -> f64 {
        match self.get(cluster, framework) {
            Some(Value::Number(number)) => number,
            _ => f64::NAN,
        }
    }

    /// Gives it a value.
    pub fn set(&self, cluster: &mut Cluster, framework: &mut Framework, value: impl Into<Value>) {
        (self.set)(OwnersMut { cluster, framework }, value.into());
    }

    /// Whether runs teach it by what is seen in `seen`.
    #[must_use]
    pub fn is_seen(&self, seen: Seen) -> bool {
        let learning = self.terms.learning;
        learning.is_some_and(|learning| learning.seen == seen)
    }

    /// Whether it may be 0 and is added to others, so that its prior is normal instead of log-normal.
    #[must_use]
    pub fn is_additive(&self) -> bool {
        self.kind == Kind::Bytes
    }
}

/// Where figures live.
#[derive(Clone, Copy)]
pub(crate) struct Owners<'a> {
    cluster: &'a Cluster,
    framework: &'a Framework,
}

/// Where figures live, to write them.
pub(crate) struct OwnersMut<'a> {
    cluster: &'a mut Cluster,
    framework: &'a mut Framework,
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::fmt::Write as _;

    use super::*;

    #[test]
    fn keys_are_unique_and_values_come_back() {
        let (mut cluster, mut framework) = (Cluster::default(), Framework::default());
        let mut keys = HashSet::new();
        for figure in all() {
            assert!(keys.insert(figure.key), "{} is declared twice", figure.key);
            let value = match figure.kind {
                Kind::Choice { names, .. } => Value::Name(names[names.len() - 1]),
                _ => Value::Number(figure.terms.range.1),
            };
            figure.set(&mut cluster, &mut framework, value);
            assert_eq!(
                figure.get(&cluster, &framework),
                Some(value),
                "{}",
                figure.key
            );
        }
        assert!(keys.len() > 60);
    }

    #[test]
    fn bounds_of_fits_lie_within_the_range() {
        for figure in all() {
            let (least, most) = figure.terms.range;
            assert!(least <= most, "{}", figure.key);
            if let Some(learning) = figure.terms.learning {
                let (lower, upper) = learning.bounds;
                assert!(least <= lower && upper <= most, "{}", figure.key);
            }
        }
    }

    /// The page of all figures.
    fn page() -> String {
        let mut page = "# Figures\n\nEvery parameter of GPU, cluster and framework: its key in a cluster file, the unit in \
             which it is written, the values that it may have, and whether `parlayout calibrate` fits it to step times or \
             to memory. In an instance file the keys stand below `cluster`, but for those of `framework`. This page is \
             generated from the registry (src/figures), from which the reader, the JSON Schema and calibration follow too; \
             values are in `catalog/`.\n"
            .to_owned();
        let mut section = None;
        for figure in all() {
            if section != Some(figure.section()) {
                section = Some(figure.section());
                let title = match figure.section() {
                    "" => "GPU and network",
                    other => other,
                };
                write!(
                    page,
                    "\n## {title}\n\n| key | unit | values | fitted to | meaning |\n|---|---|---|---|---|\n"
                )
                .expect("a text takes all lines");
            }
            let fitted = figure
                .terms
                .learning
                .map_or("", |learning| match learning.seen {
                    Seen::InTime => "step times",
                    Seen::InMemory => "memory",
                });
            writeln!(
                page,
                "| `{}` | {} | {} | {fitted} | {} |",
                figure.leaf(),
                figure.terms.unit,
                values(figure),
                figure.doc
            )
            .expect("a text takes all lines");
        }
        page
    }

    /// The values that a figure may have, and its default.
    fn values(figure: &Figure) -> String {
        let (least, most) = figure.terms.range;
        let values = match figure.kind {
            Kind::Choice { names, .. } => format!("`{}`", names.join("`, `")),
            Kind::Number | Kind::Count => format!("{least} to {most}"),
            Kind::Seconds => format!("up to {most} s"),
            Kind::Bytes | Kind::BytesPerSecond | Kind::FlopsPerSecond => String::new(),
        };
        match figure.terms.default {
            Some(Value::Number(number)) => format!("{values}; {number} unless stated"),
            Some(Value::Name(name)) => format!("{values}; `{name}` unless stated"),
            None => values,
        }
    }

    #[test]
    fn the_shipped_page_is_that_of_the_registry() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/figures.md");
        let page = page();
        if std::env::var_os("PARLAYOUT_WRITE_SCHEMA").is_some() {
            std::fs::write(path, &page).expect("the folder is writable");
        }
        let shipped = std::fs::read_to_string(path).expect("it is shipped");
        assert_eq!(
            shipped, page,
            "run the tests with PARLAYOUT_WRITE_SCHEMA=1 and commit the page"
        );
    }
}
