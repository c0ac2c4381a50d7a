//! What is written reads back as what was meant.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;

use super::names::legal;
use super::*;

fn snapshot(name: &str, text: &str) {
    insta::with_settings!({ snapshot_path => "../../../snapshots", prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!(format!("formulations__{name}"), text);
    });
}

fn every_feature() -> Model {
    let mut model = Model::new("every feature", Direction::Maximise);
    let x = model.add_binary("x(0)");
    let y = model.add_integer("workers", 1.0, 12.0);
    let z = model.add_continuous("free word", f64::NEG_INFINITY, f64::INFINITY);
    let u = model.add_continuous("u", 0.0, 1.0);
    let fixed = model.add_continuous("free", 2.5, 2.5);
    model.add_continuous("in nothing", 0.0, f64::INFINITY);
    model.add_integer("debt", f64::NEG_INFINITY, 3.0);
    model.set_objective("profit", [(y, -2.0), (x, 1e9), (z, 0.125)], 7.0);
    model.add_row(
        "memory_capacity(0)",
        [(x, 3e8), (y, 1.0)],
        Sense::AtMost,
        2e8,
    );
    model.add_row("link[1]=a", [(x, 1.0), (u, -1.0)], Sense::Equal, 0.0);
    model.add_row(
        "3 at least",
        [(z, 1.0), (fixed, 1e-7)],
        Sense::AtLeast,
        -1.5,
    );
    model.add_row(
        "twice",
        [(x, 1.0), (y, 1.0), (x, 1.0), (u, 0.0)],
        Sense::AtMost,
        9.0,
    );
    model.add_row("empty", [], Sense::AtMost, 1.0);
    model.add_row("twice", [(u, 1.0)], Sense::AtMost, 1.0);
    model
}

/// Rows (name to terms, sign and right side), objective with its constant, bounds, domains.
#[derive(Debug, Default, PartialEq)]
struct Read {
    direction: String,
    rows: BTreeMap<String, (BTreeMap<String, f64>, String, f64)>,
    bounds: BTreeMap<String, (f64, f64)>,
    general: Vec<String>,
    binary: Vec<String>,
}

/// Reads the LP format as far as this crate writes it.
fn read(text: &str) -> Read {
    let mut read = Read::default();
    let mut section = "";
    let joined = text.replace("\n  ", " ");
    let lines = joined.lines().filter(|line| !line.starts_with('\\'));
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        if !line.starts_with(' ') {
            section = line;
            if section.ends_with("imize") {
                read.direction = section.into();
            }
            continue;
        }
        match section {
            "general" => read.general.extend(words.iter().map(ToString::to_string)),
            "binary" => read.binary.extend(words.iter().map(ToString::to_string)),
            "bounds" => {
                let number = |word: &str| word.parse::<f64>().unwrap();
                let (name, bounds) = match words[..] {
                    [name, "free"] => (name, (f64::NEG_INFINITY, f64::INFINITY)),
                    [name, "=", value] => (name, (number(value), number(value))),
                    [low, "<=", name, "<=", high] => (name, (number(low), number(high))),
                    _ => panic!("bound `{line}`"),
                };
                read.bounds.insert(name.into(), bounds);
            }
            _ => read_row(&mut read, &words),
        }
    }
    read
}

fn read_row(read: &mut Read, words: &[&str]) {
    let name = words[0].strip_suffix(':').unwrap();
    let comparison = words
        .iter()
        .position(|word| ["<=", "=", ">="].contains(word));
    let end = comparison.unwrap_or(words.len());
    let mut terms = BTreeMap::new();
    let (mut sign, mut coefficient) = (1.0, None);
    for word in &words[1..end] {
        match (*word, word.parse::<f64>()) {
            ("+" | "-", _) => {
                if let Some(constant) = coefficient.take() {
                    terms.insert("constant".into(), sign * constant);
                }
                sign = if *word == "+" { 1.0 } else { -1.0 };
            }
            (_, Ok(value)) => coefficient = Some(value),
            (column, Err(_)) => {
                let value = sign * coefficient.take().unwrap_or(1.0);
                assert_eq!(terms.insert(column.into(), value), None);
            }
        }
    }
    if let Some(constant) = coefficient {
        terms.insert("constant".into(), sign * constant);
    }
    let (sense, right) = comparison.map_or((String::new(), 0.0), |at| {
        (words[at].into(), words[at + 1].parse().unwrap())
    });
    assert_eq!(read.rows.insert(name.into(), (terms, sense, right)), None);
}

/// The same, straight from the model.
fn expected(model: &Model) -> Read {
    let names = super::names::unique(model.columns.iter().map(|column| column.name.as_str()));
    let rows = super::names::unique(model.rows.iter().map(|row| row.name.as_str()));
    let terms = |terms: &[(ColumnId, f64)]| -> BTreeMap<String, f64> {
        (terms.iter())
            .map(|&(column, value)| (names[column.index()].clone(), value))
            .collect()
    };
    let mut read = Read {
        direction: match model.direction {
            Direction::Minimise => "minimize".into(),
            Direction::Maximise => "maximize".into(),
        },
        ..Read::default()
    };
    for (row, name) in model.rows.iter().zip(&rows) {
        let mut left = terms(&row.terms);
        if left.is_empty() {
            left.insert(names[0].clone(), 0.0);
        }
        let entry = (left, row.sense.symbol().to_string(), row.right);
        read.rows.insert(name.clone(), entry);
    }
    let mut objective = terms(&model.objective);
    for column in model.columns_in_nothing() {
        objective.insert(names[column].clone(), 0.0);
    }
    if model.constant != 0.0 {
        objective.insert("constant".into(), model.constant);
    }
    let entry = (objective, String::new(), 0.0);
    read.rows.insert(legal(&model.objective_name), entry);
    for (column, name) in model.columns.iter().zip(names.clone()) {
        let usual = match column.domain {
            Domain::Binary => (0.0, 1.0),
            _ => (0.0, f64::INFINITY),
        };
        if (column.lower, column.upper) != usual {
            read.bounds
                .insert(name.clone(), (column.lower, column.upper));
        }
        match column.domain {
            Domain::Continuous => {}
            Domain::Integer => read.general.push(name),
            Domain::Binary => read.binary.push(name),
        }
    }
    read
}

#[test]
fn lp_text_of_every_feature() {
    snapshot("every_feature.lp", &every_feature().to_string());
}

#[test]
fn mps_text_of_every_feature() {
    snapshot("every_feature.mps", &every_feature().to_mps());
}

#[test]
fn lp_text_reads_back() {
    let model = every_feature();
    assert_eq!(read(&model.to_string()), expected(&model));
}

#[test]
fn long_rows_are_wrapped_and_read_back() {
    let mut model = Model::new("long", Direction::Minimise);
    let columns: Vec<_> = (0..300)
        .map(|i| model.add_binary(format!("x({i})")))
        .collect();
    model.set_objective("cost", columns.iter().map(|&x| (x, 3.0)), -1.0);
    model.add_row("one", columns.iter().map(|&x| (x, 1.0)), Sense::Equal, 1.0);
    let text = model.to_string();
    assert!(text.lines().all(|line| line.len() < 100));
    assert_eq!(read(&text), expected(&model));
}

#[test]
fn names_are_made_legal() {
    let check = |given: &str, written: &str| assert_eq!(legal(given), written);
    check("tensor_parallel(2)", "tensor_parallel(2)");
    check("tensor_parallel=2", "tensor_parallel_2");
    check("memory[0]", "memory_0_");
    check("micro-batch limit", "micro_batch_limit");
    check("2nd", "_2nd");
    check("e10", "_e10");
    check("every", "every");
    check("Bounds", "Bounds_");
    check("", "_");
    check("größe", "gr__e");
}

#[test]
fn empty_models_are_written() {
    let mut model = Model::new("empty", Direction::Minimise);
    model.add_row("never", [], Sense::AtLeast, 1.0);
    assert_eq!(
        model.to_string(),
        "\\ empty\nminimize\n objective: 0\nsubject to\n\\ never: 0 >= 1\nend\n"
    );
}
