//! `[[constraint]]`: rows of the user's own.

use serde_json::{Value as Json, json};

use super::constraint_terms::{Terms, read_integer, whole_numbers};
use crate::axis::Axis;
use crate::constraint::{Comparison, Constraint, Decision, Term};
use crate::framework::CheckpointRule;
use crate::job::Job;
use crate::layout::{AttentionKernel, Checkpointing};
use crate::layout_space::LayoutSpace;
use crate::reading::section::{section, tables_of};
use crate::reading::{Field, Node, Origin, Problems, Table, Tree, Value, shown};

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

section! {
    /// A row of your own: linear in what a layout decides.
    struct RowSection {
        /// Name of the row in programs and messages.
        name: RowName,
        /// Whole coefficients of degrees, `micro_batches`, `layers_first`, `layers_last`, `layers[i]`,
        /// `checkpointed_layers`, and of values written `axis=value`.
        terms: Terms,
        /// The left side is at most this.
        at_most: RightSide,
        /// The left side is at least this.
        at_least: RightSide,
        /// The left side is this.
        equals: RightSide,
    }
}

/// A name that can stand in the row of a program.
#[derive(Debug, Clone)]
pub(crate) struct RowName(String);

/// The right side of a row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RightSide(i64);

/// Largest right side.
const LARGEST_RIGHT: i128 = 1_000_000_000_000;
/// Longest name.
const LONGEST_NAME: usize = 60;

impl Value for ConstraintList {
    fn read(node: &Node, path: &str, problems: &mut Problems) -> Option<Self> {
        let hint = "write `[[constraint]]` and below it `name`, `terms` and `at_most`";
        let tables = tables_of(node, path, hint, problems)?;
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
        let mut row = RowSection::schema();
        row["required"] = json!(["name", "terms"]);
        row["oneOf"] = json!([
            { "required": ["at_most"] },
            { "required": ["at_least"] },
            { "required": ["equals"] },
        ]);
        json!({
            "type": "array",
            "description": "Rows of your own: linear in what a layout decides.",
            "items": row,
        })
    }
}

fn read_row(table: &Table, origin: &Origin, problems: &mut Problems) -> Option<Written> {
    let row = RowSection::of_table(table, "constraint", problems);
    let sides = [
        (Comparison::AtMost, row.at_most),
        (Comparison::AtLeast, row.at_least),
        (Comparison::Equals, row.equals),
    ];
    let name = (row.name).required("constraint.name", Some(origin), NAME_HINT, problems);
    let terms = (row.terms).required("constraint.terms", Some(origin), Terms::HINT, problems);
    let mut given = sides.into_iter().filter(|(_, side)| !side.is_absent());
    let hint = "write one of `at_most`, `at_least` and `equals`; a range takes two constraints";
    let Some((comparison, right)) = given.next() else {
        problems.add(origin, "the constraint has no right side", hint);
        return None;
    };
    if let Some((_, Field::Given(_, second))) = given.next() {
        problems.add(&second, "the constraint has more than one right side", hint);
        return None;
    }
    let (RowName(name), Terms(terms)) = (name?, terms?);
    let (terms, origins) = terms.into_iter().unzip();
    Some(Written {
        terms: origins,
        constraint: Constraint {
            name,
            terms,
            comparison,
            right: right.value()?.0,
        },
    })
}

const NAME_HINT: &str =
    "write `name = \"few_stages\"`: letters, digits and underscores, a letter first";

impl Value for RowName {
    fn read(node: &Node, path: &str, problems: &mut Problems) -> Option<Self> {
        let legal = |name: &str| {
            name.starts_with(|c: char| c.is_ascii_alphabetic())
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
                && name.len() <= LONGEST_NAME
        };
        if let Tree::Text(name) = &node.value
            && legal(name)
        {
            return Some(Self(name.clone()));
        }
        let written = shown(node.written().trim_matches('"'));
        problems.add(
            &node.origin,
            format!("`{path}` cannot be `{written}`"),
            NAME_HINT,
        );
        None
    }

    fn schema() -> Json {
        json!({
            "type": "string",
            "pattern": "^[A-Za-z][A-Za-z0-9_]*$",
            "maxLength": LONGEST_NAME,
        })
    }
}

impl Value for RightSide {
    fn read(node: &Node, path: &str, problems: &mut Problems) -> Option<Self> {
        read_integer(node, path, LARGEST_RIGHT, problems).map(Self)
    }

    fn schema() -> Json {
        whole_numbers(LARGEST_RIGHT)
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
