//! Writes clusters and frameworks in the keys of files.

use std::ops::Div;

use serde_json::{Map, Value as Json, json};

use crate::cluster::{Accelerator, Cluster, Discrepancy};
use crate::figures::{self, Figure, Group as _, Kind, Value};
use crate::framework::Framework;
use crate::quantity::{self, Bytes, BytesPerSecond, FlopsPerSecond, Measured, Seconds};

/// A table of a file as JSON.
pub type Section = Map<String, Json>;

/// How exactly numbers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Digits {
    /// So that reading gives the same number.
    All,
    /// Six, but for those of a data sheet.
    Six,
}

/// `[cluster]` without a name and the number of GPUs.
pub(crate) fn cluster(cluster: &Cluster, digits: Digits) -> Section {
    let none = Framework::default();
    let gpu = &cluster.accelerator.name;
    let mut written = Section::new();
    if super::accelerator(gpu).is_ok() {
        written.insert("accelerator".to_owned(), json!(gpu));
    }
    written.extend(section("", cluster, &none, digits));
    let source = json!(cluster.calibration.source);
    let mut calibration = section("calibration", cluster, &none, digits);
    calibration.insert("source".to_owned(), source.clone());
    written.insert("source".to_owned(), source);
    let efficiency = section("efficiency", cluster, &none, digits);
    written.insert("efficiency".to_owned(), efficiency.into());
    written.insert("calibration".to_owned(), calibration.into());
    if let Some(learned) = &cluster.discrepancy {
        let discrepancy = discrepancy(learned, digits);
        written.insert("discrepancy".to_owned(), discrepancy);
    }
    if !cluster.seen_to_fit.is_empty() {
        written.insert("seen_to_fit".to_owned(), json!(cluster.seen_to_fit));
    }
    written
}

/// The figures of a GPU alone.
pub(super) fn accelerator(accelerator: &Accelerator) -> Section {
    let cluster = Cluster {
        accelerator: accelerator.clone(),
        ..Cluster::default()
    };
    let mut written = section("", &cluster, &Framework::default(), Digits::All);
    let own = Accelerator::FIGURES.iter().map(Figure::leaf);
    let own: Vec<&str> = own.collect();
    written.retain(|key, _| own.contains(&key.as_str()));
    written
}

/// `[framework]` without a name.
pub(crate) fn framework(framework: &Framework, digits: Digits) -> Section {
    let none = Cluster::default();
    let section = |name: &str| section(name, &none, framework, digits);
    let mut written = section("framework");
    if !framework.source.is_empty() {
        written.insert("source".to_owned(), json!(framework.source));
    }
    written.insert("memory".to_owned(), section("framework.memory").into());
    written.insert("speed".to_owned(), section("framework.speed").into());
    written
}

/// The text of a cluster file with all figures of the cluster, and those of the framework that it
/// was fitted with. Numbers are written with six digits, those of a data sheet as they are.
///
/// # Panics
///
/// Never: sections are valid TOML.
#[must_use]
pub fn cluster_file(cluster: &Cluster, framework: &Framework) -> String {
    let mut fitted = Section::new();
    fitted.insert("preset".to_owned(), json!(framework.name));
    fitted.extend(self::framework(framework, Digits::Six));
    let mut file = self::cluster(cluster, Digits::Six);
    file.insert("framework".to_owned(), fitted.into());
    let text = toml::to_string(&file).expect("sections are valid TOML");
    // One line per point of the discrepancy.
    text.replace("], [", "],\n  [")
}

/// The figures of a section of a cluster file.
fn section(name: &str, cluster: &Cluster, framework: &Framework, digits: Digits) -> Section {
    let figures = figures::all().filter(|figure| figure.section() == name);
    let written = figures.filter_map(|figure| {
        let value = figure.get(cluster, framework)?;
        Some((figure.leaf().to_owned(), figure.written(value, digits)))
    });
    written.collect()
}

fn discrepancy(learned: &Discrepancy, digits: Digits) -> Json {
    let number = |number: &f64| digits.of(*number);
    let numbers = |list: &[f64]| list.iter().map(number).collect::<Vec<f64>>();
    let points = learned.points.iter().map(|point| numbers(point));
    json!({
        "amplitude": number(&learned.amplitude),
        "length_scale": number(&learned.length_scale),
        "noise": number(&learned.noise),
        "weights": numbers(&learned.weights),
        "points": points.collect::<Vec<_>>(),
    })
}

impl Digits {
    /// The nearest number with these digits.
    fn of(self, value: f64) -> f64 {
        const DIGITS: i32 = 6;
        if self == Self::All || value == 0.0 || !value.is_finite() {
            return value;
        }
        let exponent = DIGITS - 1 - value.abs().log10().floor() as i32;
        // Dividing by a power of ten keeps short decimals short where multiplying would not.
        if exponent >= 0 {
            let power = 10_f64.powi(exponent);
            (value * power).round() / power
        } else {
            let power = 10_f64.powi(-exponent);
            (value / power).round() * power
        }
    }
}

impl Figure {
    /// A value as files write it.
    fn written(&self, value: Value, digits: Digits) -> Json {
        let base = match value {
            Value::Number(number) => number,
            Value::Name(name) => return json!(name),
        };
        match self.kind {
            Kind::Number | Kind::Choice { .. } => json!(digits.of(base)),
            Kind::Count => json!(base as u64),
            Kind::Bytes => self.quantity::<Bytes>(base, digits),
            Kind::BytesPerSecond => self.quantity::<BytesPerSecond>(base, digits),
            Kind::FlopsPerSecond => self.quantity::<FlopsPerSecond>(base, digits),
            Kind::Seconds => self.quantity::<Seconds>(base, digits),
        }
    }

    fn quantity<Q: Measured + Copy + PartialEq + Div<Output = f64>>(
        &self,
        base: f64,
        digits: Digits,
    ) -> Json {
        if digits == Digits::All || self.terms.learning.is_none() {
            return exactly::<Q>(base).into();
        }
        let unit = self.terms.unit;
        let mut units = Q::UNITS.iter();
        let factor = units
            .find(|(name, _)| *name == unit)
            .map_or(1.0, |(_, factor)| *factor);
        format!("{} {unit}", digits.of(base / factor)).into()
    }
}

/// The shortest text that is read as exactly this quantity.
fn exactly<Q: Measured + Copy + PartialEq>(base: f64) -> String {
    let texts = Q::UNITS
        .iter()
        .map(|(unit, factor)| format!("{} {unit}", base / factor));
    let exact = texts.filter(|text| quantity::parse::<Q>(text) == Ok(Q::from_base(base)));
    let shortest = exact.min_by_key(String::len);
    shortest.unwrap_or_else(|| {
        let mut units = Q::UNITS.iter();
        let unit = units.find(|(_, factor)| (factor - 1.0).abs() < f64::EPSILON);
        format!("{base:e} {}", unit.map_or("", |(unit, _)| unit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_six_digits() {
        let check = |value: f64, text: &str| assert_eq!(format!("{}", Digits::Six.of(value)), text);
        check(0.0, "0");
        check(1.0 / 3.0, "0.333333");
        check(123_456_789.0, "123457000");
        check(1.73, "1.73");
        check(-2.5e-7, "-0.00000025");
        check(0.1 + 0.2, "0.3");
    }

    #[test]
    fn quantities_are_short_where_they_can_be_and_exact_always() {
        assert_eq!(exactly::<Bytes>(85e9), "85 GB");
        assert_eq!(exactly::<Seconds>(1.5e-3), "1.5 ms");
        for value in [0.0, 1.0 / 3.0, 1e-300, 0.1 + 0.2, 123_456_789.123_456_79] {
            let text = exactly::<Seconds>(value);
            assert_eq!(quantity::parse(&text), Ok(Seconds::new(value)), "{text}");
        }
    }
}
