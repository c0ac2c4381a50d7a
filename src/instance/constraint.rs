//! `[[constraint]]`: rows of the user's own.

use serde_json::{Map, Value as Json, json};

use super::constraint_terms::{LARGEST_COEFFICIENT, NAMES, numeric_axes, read_integer, read_terms};
use crate::axis::Axis;
use crate::constraint::{Comparison, Constraint, Decision, Term};
use crate::framework::CheckpointRule;
use crate::job::Job;
use crate::layout::{AttentionKernel, Checkpointing};
use crate::layout_space::LayoutSpace;
use crate::reading::{Node, Origin, Problems, Table, Tree, Value, shown, spelling};

/// What the `[[constraint]]` tables say.
#[derive(Debug, Clone, Default)]
pub(crate) struct ConstraintList(pub(crate) Vec<Written>);

/// A row and where its parts stand.
#[derive(Debug, Clone)]
pub(crate) struct Written {
    /// The row.
    pub(crate) constraint: Constraint,
    /// The key of each term.
    terms: Vec<Origin>,
}

/// Keys of one table.
const KEYS: [&str; 5] = ["name", "terms", "at_most", "at_least", "equals"];

/// Largest right side.
const LARGEST_RIGHT: i128 = 1_000_000_000_000;
/// Longest name.
const LONGEST_NAME: usize = 60;

impl Value for ConstraintList {
    fn read(node: &Node, path: &str, problems: &mut Problems) -> Option<Self> {
        let hint = "write `[[constraint]]` and below it `name`, `terms` and `at_most`";
        let tables: Option<Vec<(&Table, &Origin)>> = match &node.value {
            Tree::List(items) => items.iter().map(table_of).collect(),
            Tree::Table(_) => table_of(node).map(|table| vec![table]),
            _ => None,
        };
        let Some(tables) = tables else {
            let text = format!("`{path}` must be a list of tables");
            problems.add(&node.origin, text, hint);
            return None;
        };
        let mut list: Vec<Written> = Vec::new();
        for (table, origin) in tables {
            let Some(written) = read_row(table, origin, problems) else {
                continue;
            };
            let name = &written.constraint.name;
            if list.iter().any(|other| other.constraint.name == *name) {
                let text = format!("`constraint.name`: `{name}` is written twice");
                let at = table.get("name").map_or(origin, |node| &node.origin);
                problems.add(at, text, "give each constraint a name of its own");
            }
            list.push(written);
        }
        Some(Self(list))
    }

    fn schema() -> Json {
        let coefficient = json!({
            "type": "integer",
            "minimum": -(LARGEST_COEFFICIENT as i64),
            "maximum": LARGEST_COEFFICIENT as i64,
        });
        let right = |text: &str| {
            json!({
                "type": "integer",
                "minimum": -(LARGEST_RIGHT as i64),
                "maximum": LARGEST_RIGHT as i64,
                "description": text,
            })
        };
        let mut terms = Map::new();
        let fixed = NAMES.into_iter().filter(|name| !name.contains('['));
        for name in numeric_axes().chain(fixed) {
            terms.insert(name.to_owned(), coefficient.clone());
        }
        json!({
            "type": "array",
            "description": "Rows of your own: linear in what a layout decides.",
            "items": {
                "type": "object",
                "required": ["name", "terms"],
                "oneOf": [
                    { "required": ["at_most"] },
                    { "required": ["at_least"] },
                    { "required": ["equals"] },
                ],
                "properties": {
                    "name": {
                        "type": "string",
                        "pattern": "^[A-Za-z][A-Za-z0-9_]*$",
                        "maxLength": LONGEST_NAME,
                        "description": "Name of the row in programs and messages.",
                    },
                    "terms": {
                        "type": "object",
                        "description": "Whole coefficients of degrees, `micro_batches`, \
                                        `layers_first`, `layers_last`, `layers[i]`, \
                                        `checkpointed_layers`, and of values written `axis=value`.",
                        "minProperties": 1,
                        "properties": terms,
                        "patternProperties": {
                            "^layers\\[[0-9]+\\]$": coefficient,
                            "^[a-z_]+ *= *[a-z0-9-]+$": coefficient,
                        },
                        "additionalProperties": false,
                    },
                    "at_most": right("The left side is at most this."),
                    "at_least": right("The left side is at least this."),
                    "equals": right("The left side is this."),
                },
                "additionalProperties": false,
            },
        })
    }
}

fn table_of(node: &Node) -> Option<(&Table, &Origin)> {
    match &node.value {
        Tree::Table(table) => Some((table, &node.origin)),
        _ => None,
    }
}

fn read_row(table: &Table, origin: &Origin, problems: &mut Problems) -> Option<Written> {
    let mut misspelt = false;
    for entry in &table.entries {
        if !KEYS.contains(&entry.key.as_str()) {
            let hint = spelling::did_you_mean(&entry.key, KEYS)
                .unwrap_or_else(|| format!("known keys here: {}", spelling::list(KEYS)));
            let text = format!("unknown key `constraint.{}`", shown(&entry.key));
            problems.add(&entry.key_origin, text, hint);
            misspelt = true;
        }
    }
    if misspelt {
        // What seems to be missing may be what was misspelt.
        return None;
    }
    let name = read_name(table, origin, problems);
    let terms = read_terms(table, origin, problems);
    let (comparison, right) = read_comparison(table, origin, problems)?;
    let (name, terms) = (name?, terms?);
    Some(Written {
        terms: terms.iter().map(|(_, origin)| origin.clone()).collect(),
        constraint: Constraint {
            name,
            terms: terms.into_iter().map(|(term, _)| term).collect(),
            comparison,
            right,
        },
    })
}

/// A name that can stand in the row of a program.
fn read_name(table: &Table, origin: &Origin, problems: &mut Problems) -> Option<String> {
    let hint = "write `name = \"few_stages\"`: letters, digits and underscores, a letter first";
    let Some(node) = table.get("name") else {
        problems.add(origin, "`constraint.name` is missing", hint);
        return None;
    };
    let legal = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && name.len() <= LONGEST_NAME
    };
    match &node.value {
        Tree::Text(name) if legal(name) => Some(name.clone()),
        _ => {
            let text = format!(
                "`constraint.name` cannot be `{}`",
                shown(node.written().trim_matches('"'))
            );
            problems.add(&node.origin, text, hint);
            None
        }
    }
}

fn read_comparison(
    table: &Table,
    origin: &Origin,
    problems: &mut Problems,
) -> Option<(Comparison, i64)> {
    let all = [Comparison::AtMost, Comparison::AtLeast, Comparison::Equals];
    let given: Vec<(Comparison, &Node)> = all
        .into_iter()
        .filter_map(|comparison| Some((comparison, table.get(comparison.as_str())?)))
        .collect();
    let hint = "write one of `at_most`, `at_least` and `equals`; a range takes two constraints";
    match given.as_slice() {
        [(comparison, node)] => {
            let path = format!("constraint.{}", comparison.as_str());
            let right = read_integer(node, &path, LARGEST_RIGHT, problems)?;
            Some((*comparison, right))
        }
        [] => {
            problems.add(origin, "the constraint has no right side", hint);
            None
        }
        [_, (_, second), ..] => {
            problems.add(
                &second.origin,
                "the constraint has more than one right side",
                hint,
            );
            None
        }
    }
}

impl ConstraintList {
    /// The rows, once it is known that the programs can keep them.
    pub(crate) fn check(
        &self,
        job: &Job,
        space: &LayoutSpace,
        problems: &mut Problems,
    ) -> Vec<Constraint> {
        for written in &self.0 {
            for (term, origin) in written.constraint.terms.iter().zip(&written.terms) {
                check_term(&written.constraint, *term, origin, job, space, problems);
            }
        }
        self.0
            .iter()
            .map(|written| written.constraint.clone())
            .collect()
    }
}

fn check_term(
    row: &Constraint,
    term: Term,
    origin: &Origin,
    job: &Job,
    space: &LayoutSpace,
    problems: &mut Problems,
) {
    if let Decision::Layers(index) = term.decision {
        let deepest = space.values(Axis::PipelineParallel).last().copied();
        let deepest = deepest.unwrap_or(1).min(job.transformer.layers);
        if index >= deepest {
            let text = format!("no pipeline has a stage {index}");
            let hint = format!("stages are counted from 0, and there are at most {deepest}");
            problems.add(origin, text, hint);
        }
    }
    if term.decision != Decision::CheckpointedLayers
        || job.framework.checkpoint_rule != CheckpointRule::Free
        || !space
            .values(Axis::Checkpointing)
            .contains(&(Checkpointing::None as u32))
    {
        return;
    }
    // A stage checkpoints no more layers than it must, the way that takes the least time.
    let limits_from_above = match row.comparison {
        Comparison::AtMost => term.coefficient >= 0,
        Comparison::AtLeast => term.coefficient <= 0,
        Comparison::Equals => term.coefficient == 0,
    };
    if !limits_from_above {
        let text = "`checkpointed_layers` can only be limited from above where each stage decides \
                    on its own";
        let hint = "write it with `at_most`, or give `framework.checkpointing = \"same-count\"` or \
                    `\"all-or-nothing\"`";
        problems.add(origin, text, hint);
    } else if useful_modes(space) > 1 {
        let text = "`checkpointed_layers` cannot be limited where a stage may mix several ways to \
                    checkpoint";
        let hint = "add `checkpointing = [\"none\", \"full\"]` to `[search]`";
        problems.add(origin, text, hint);
    }
}

/// Recompute modes that save memory with some listed kernel.
fn useful_modes(space: &LayoutSpace) -> usize {
    let flash = |&code: &u32| {
        let kernel = AttentionKernel::ALL.get(code as usize);
        kernel.is_some_and(|kernel| kernel.is_flash())
    };
    let only_flash = space.values(Axis::AttentionKernel).iter().all(flash);
    let useful = |&&code: &&u32| match Checkpointing::ALL.get(code as usize) {
        None | Some(Checkpointing::None) => false,
        Some(Checkpointing::AttentionCore) => !only_flash,
        Some(_) => true,
    };
    space
        .values(Axis::Checkpointing)
        .iter()
        .filter(useful)
        .count()
}
