//! Every change of a certificate is found out.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use parlayout::axis::Axis;
use parlayout::rule::Rule;
use rayon::prelude::*;
use serde_json::{Value, json};

use super::*;

/// A step into a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    Key(String),
    Index(usize),
}

pub(super) type Path = Vec<Step>;

pub(super) fn shown(path: &[Step]) -> String {
    let steps = path.iter().map(|step| match step {
        Step::Key(key) => format!(".{key}"),
        Step::Index(index) => format!("[{index}]"),
    });
    steps.collect::<String>().trim_start_matches('.').to_owned()
}

/// The kind of a place: its path without the numbers of entries.
fn kind(path: &[Step]) -> String {
    let steps = path.iter().map(|step| match step {
        Step::Key(key) => format!(".{key}"),
        Step::Index(_) => "[]".to_owned(),
    });
    steps.collect()
}

fn places(value: &Value, path: &mut Path, found: &mut Vec<Path>) {
    found.push(path.clone());
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                path.push(Step::Index(index));
                places(item, path, found);
                path.pop();
            }
        }
        Value::Object(fields) => {
            for (key, field) in fields {
                path.push(Step::Key(key.clone()));
                places(field, path, found);
                path.pop();
            }
        }
        _ => {}
    }
}

/// The places of a document by kind.
pub(super) fn places_by_kind(document: &Value) -> BTreeMap<String, Vec<Path>> {
    let mut all = Vec::new();
    places(document, &mut Vec::new(), &mut all);
    let mut kinds: BTreeMap<String, Vec<Path>> = BTreeMap::new();
    for path in all {
        kinds.entry(kind(&path)).or_default().push(path);
    }
    kinds
}

/// What the value at a place may be changed into.
pub(super) fn changes_at(document: &Value, path: &[Step]) -> Vec<Value> {
    let mut document = document.clone();
    let original = at(&mut document, path);
    let changed = replacements(original, &WORDS).into_iter();
    changed.filter(|changed| !same(changed, original)).collect()
}

/// The text of a document with another value at a place.
pub(super) fn replaced(document: &Value, path: &[Step], changed: &Value) -> String {
    let mut document = document.clone();
    *at(&mut document, path) = changed.clone();
    document.to_string()
}

/// Every text that is legal somewhere in a certificate.
static WORDS: LazyLock<Vec<String>> = LazyLock::new(vocabulary);

/// The value at a place.
pub(super) fn value_at<'a>(document: &'a Value, path: &[Step]) -> &'a Value {
    path.iter().fold(document, |value, step| match step {
        Step::Key(key) => &value[key.as_str()],
        Step::Index(index) => &value[*index],
    })
}

fn at<'a>(document: &'a mut Value, path: &[Step]) -> &'a mut Value {
    path.iter().fold(document, |value, step| match step {
        Step::Key(key) => &mut value[key.as_str()],
        Step::Index(index) => &mut value[*index],
    })
}

fn vocabulary() -> Vec<String> {
    let mut words: Vec<String> = [
        "optimal",
        "feasible",
        "infeasible",
        "unknown",
        "staged",
        "layout-choice",
        "gated",
        "plain",
        "bf16",
        "fp16",
        "fp8",
        "adam",
        "adam-bf16",
        "sgd-momentum",
        "embedding-and-head",
        "equal",
        "even",
        "first-and-last",
        "free",
        "all-or-nothing",
        "same-count",
        "excludes-checkpointing",
        "allows-checkpointing",
        "sharded",
        "gathered",
        "replicated",
    ]
    .map(str::to_owned)
    .to_vec();
    words.extend(Axis::ALL.iter().map(ToString::to_string));
    words.extend(
        Axis::ALL
            .iter()
            .filter_map(|axis| axis.names())
            .flatten()
            .map(str::to_owned),
    );
    words.extend(Rule::ALL.iter().map(ToString::to_string));
    words
}

/// What a value may be changed into.
fn replacements(value: &Value, words: &[String]) -> Vec<Value> {
    match value {
        Value::Null => vec![json!(0), json!(1), json!({})],
        Value::Bool(on) => vec![json!(!on)],
        Value::String(text) => {
            let others = words.iter().filter(|&word| word != text);
            others
                .map(|word| json!(word))
                .chain([json!(1), json!("")])
                .collect()
        }
        Value::Number(number) => {
            let mut changed = vec![Value::Null, json!("1")];
            if let Some(number) = number.as_i64() {
                let values = [
                    number + 1,
                    number - 1,
                    number * 2 + 7,
                    -number,
                    i64::MAX,
                    i64::MIN,
                ];
                changed.extend(
                    values
                        .iter()
                        .filter(|&&value| value != number)
                        .map(|v| json!(v)),
                );
            } else if let Some(number) = number.as_f64() {
                let factors = [1.01, 0.99, 1.1, 0.9, 2.0, 0.5, 1000.0, -1.0, 0.0];
                changed.extend(factors.iter().map(|factor| json!(number * factor)));
                changed.extend([number + 1.0, number - 1.0].map(|value| json!(value)));
            }
            changed
        }
        Value::Array(items) => {
            let indices: Vec<usize> = (0..items.len()).collect();
            let mut lists = vec![Value::Null];
            for index in spread(&indices, MOST_ENTRIES) {
                let mut changed = [items.clone(), items.clone(), items.clone()];
                changed[0].remove(index);
                changed[1].insert(index, items[index].clone());
                changed[2].swap(index.saturating_sub(1), index);
                let changed = changed.into_iter().filter(|changed| changed != items);
                lists.extend(changed.map(Value::Array));
            }
            lists
        }
        Value::Object(fields) => {
            let without = fields.keys().map(|key| {
                let mut fields = fields.clone();
                fields.shift_remove(key);
                Value::Object(fields)
            });
            let mut with = fields.clone();
            with.insert("more".to_owned(), json!(1));
            without.chain([Value::Object(with), Value::Null]).collect()
        }
    }
}

/// Entries of one list that are removed, doubled or moved.
const MOST_ENTRIES: usize = 100;

/// Up to `most` entries, spread evenly.
fn spread<T: Clone>(entries: &[T], most: usize) -> Vec<T> {
    let count = entries.len().min(most);
    (0..count)
        .map(|index| entries[index * (entries.len() - 1) / (count - 1).max(1)].clone())
        .collect()
}

/// Whether two values mean the same: `0` and `0.0` do.
pub(super) fn same(a: &Value, b: &Value) -> bool {
    a == b || a.as_f64().is_some_and(|a| b.as_f64() == Some(a))
}

/// Which places of each kind are changed, and in which ways.
#[derive(Debug, Clone, Copy)]
enum Extent {
    /// Up to so many places of each kind in up to so many ways, spread evenly.
    Spread(usize, usize),
    /// One place of one in so many kinds in one way, chosen by the number of the certificate.
    Sample(usize, usize),
}

/// Changes the certificate one field at a time. Returns what was accepted nevertheless, and how many
/// changes were tried.
fn tamper(text: &str, extent: Extent) -> (Vec<String>, usize) {
    let document: Value = serde_json::from_str(text).expect("a certificate is JSON");
    let (mut missed, mut tried) = (Vec::new(), 0);
    let mut attempt = |path: &Path, changed: &Value| {
        tried += 1;
        let tampered = replaced(&document, path, changed);
        if matches!(verify(&tampered), Ok(Verdict::Accepted(_))) {
            missed.push(format!("{} -> {changed}", shown(path)));
        }
    };
    for (number, paths) in places_by_kind(&document).values().enumerate() {
        match extent {
            Extent::Spread(places, ways) => {
                for path in spread(paths, places) {
                    for changed in spread(&changes_at(&document, &path), ways) {
                        attempt(&path, &changed);
                    }
                }
            }
            Extent::Sample(one_in, seed) if (number + seed).is_multiple_of(one_in) => {
                let chosen = seed * 7919 + number * 104_729;
                let path = &paths[chosen % paths.len()];
                let changes = changes_at(&document, path);
                if let Some(changed) = changes.get(chosen % changes.len().max(1)) {
                    attempt(path, changed);
                }
            }
            Extent::Sample(..) => {}
        }
    }
    (missed, tried)
}

/// Changes everything at one place of a document, and below it, in every way. Returns what was accepted
/// nevertheless.
pub(super) fn tampered_at(document: &Value, start: &Path) -> Vec<String> {
    let mut missed = Vec::new();
    for path in places_by_kind(document).into_values().flatten() {
        if !path.starts_with(start) {
            continue;
        }
        for changed in changes_at(document, &path) {
            let tampered = replaced(document, &path, &changed);
            if matches!(verify(&tampered), Ok(Verdict::Accepted(_))) {
                missed.push(format!("{} -> {changed}", shown(&path)));
            }
        }
    }
    missed
}

/// A figure that was left out may not be added.
fn add_figures(text: &str) -> Vec<String> {
    let mut document: Value = serde_json::from_str(text).expect("a certificate is JSON");
    let mut missed = Vec::new();
    for key in ALL_FIGURES {
        if document["job"].get(key).is_some() {
            continue;
        }
        for value in [0.0, 0.5, 1.0, 3.0] {
            document["job"][key] = json!(value);
            if matches!(verify(&document.to_string()), Ok(Verdict::Accepted(_))) {
                missed.push(format!("{key} = {value}"));
            }
        }
        let fields = document["job"]
            .as_object_mut()
            .expect("the job is an object");
        fields.shift_remove(key);
    }
    missed
}

/// Figures that certificates leave out where they have no effect.
const ALL_FIGURES: [&str; 8] = [
    "cluster.peak_fp8_tflops",
    "cluster.efficiency.flash_attention_1",
    "framework.memory.norm_bytes",
    "framework.speed.softmax_bytes_torch",
    "framework.speed.bubble_zero_1p",
    "framework.speed.sharded_norm",
    "framework.speed.tensor_parallel_across",
    "framework.speed.launch_unfused_s",
];

/// Certificates of this size are changed in every place.
const SMALL: usize = 16_000;
/// Certificates from this size on are changed in a few places of each kind.
const LARGE: usize = 80_000;

/// Where every field is changed rather than a sample.
fn all_fields() -> bool {
    std::env::var_os("PARLAYOUT_TAMPER").is_some_and(|value| value == "all")
}

/// How much of a certificate is changed.
fn extent(size: usize, number: usize) -> Extent {
    match (size, all_fields()) {
        (0..SMALL, true) => Extent::Spread(usize::MAX, usize::MAX),
        (SMALL..LARGE, true) => Extent::Spread(8, 12),
        (_, true) => Extent::Spread(3, 3),
        (0..LARGE, false) => Extent::Sample(1, number),
        (_, false) => Extent::Sample(10, number),
    }
}

#[test]
fn no_change_is_accepted() {
    let cases: Vec<(Instance, Formulation)> = instances()
        .flat_map(|instance| FORMULATIONS.map(|formulation| (instance.clone(), formulation)))
        .collect();
    let cases = cases.par_iter().enumerate();
    let results = cases.map(|(number, (instance, formulation))| {
        let text = certificate(instance, &solved(instance, &options(*formulation)));
        let (mut missed, tried) = tamper(&text, extent(text.len(), number));
        if text.len() < LARGE {
            missed.extend(add_figures(&text));
        }
        let named = missed.into_iter();
        let named = named.map(|change| format!("{} {formulation:?} {change}", instance.name));
        (named.collect::<Vec<String>>(), tried)
    });
    let (missed, tried): (Vec<Vec<String>>, Vec<usize>) = results.unzip();
    let (missed, tried) = (missed.concat(), tried.iter().sum::<usize>());
    assert!(missed.is_empty(), "{}", missed.join("\n"));
    let fewest = if all_fields() { 100_000 } else { 3_000 };
    assert!(tried >= fewest, "only {tried} changes");
}
