//! The document, as it is written and read; see `docs/certificate.md`.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::verify::statement::Settlement;

/// A certificate. Integers unless a key says otherwise: objectives and bounds in units of the
/// objective (a twentieth of `quantum_s`), memory in KiB.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    /// Name and version of the format.
    pub schema: String,
    /// The program whose answer this is: `staged` or `layout-choice`.
    pub formulation: String,
    /// How the search ended.
    pub status: String,
    /// Figures and named choices of the job by key; figures on which no statement depends are left
    /// out.
    pub job: Map<String, Value>,
    /// Largest accepted probability of running out of memory.
    pub max_oom_risk: f64,
    /// Values of each axis, the slowest axis first.
    pub space: Vec<AxisValues>,
    /// Combinations that the instance rules out.
    pub forbidden: Vec<Forbidden>,
    /// Rows of the user's own, in order.
    pub constraints: Vec<ConstraintRow>,
    /// Unit of the time of a stage, in seconds.
    pub quantum_s: f64,
    /// Memory of a stage that the accepted risk leaves.
    pub capacity_kib: i64,
    /// What layouts cost: for each value of each axis the first combination that breaks no rule and has
    /// it; if there is none, the first of all that has it.
    pub costs: Vec<StatedCosts>,
    /// By how much each combination of values breaks each rule.
    pub rules: Vec<RuleTable>,
    /// How the combinations are settled.
    pub combinations: Combinations,
    /// No layout has a smaller objective; null where there is no layout.
    #[serde(deserialize_with = "nullable")]
    pub bound: Option<i64>,
    /// The layout; null where there is none.
    #[serde(deserialize_with = "nullable")]
    pub winner: Option<Winner>,
}

/// The values of one axis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AxisValues {
    /// The axis.
    pub axis: String,
    /// Its values: numbers ascending, names in the order of the axis.
    pub values: Vec<Value>,
}

/// Values that may not come together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forbidden {
    /// Values by axis.
    pub values: Map<String, Value>,
    /// Combinations that have them and that no rule of the tables, row over discrete choices or earlier
    /// entry excludes; at least one.
    pub excludes: u64,
    /// Position of the first of them.
    pub first: u64,
}

/// A row of the user's own: linear in what a layout decides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConstraintRow {
    /// Coefficients and decisions, in order of the latter.
    pub terms: Vec<(i64, String)>,
    /// How the sides compare: `at_most`, `at_least` or `equals`.
    pub comparison: String,
    /// The right side.
    pub right: i64,
    /// Left side minus right side. Of a row over discrete choices alone: for each combination of the
    /// values of its axes, the last axis fastest. Of another: for each combination of `costs` that breaks
    /// no rule the least and the most, by the fewest and the most layers of each stage.
    pub differences: Vec<i64>,
}

/// What the cost model says of a combination, before it is rounded to units. Every figure has nine digits.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatedCosts {
    /// The combination.
    pub position: u64,
    /// Micro-batches of a step.
    pub micro_batches: u64,
    /// Pipeline fills that a step pays.
    pub fills: f64,
    /// Of a layer and micro-batch: matrix products, attention, elementwise operators, norms,
    /// tensor-parallel and context-parallel traffic; last everything, with what else there is.
    pub layer_s: [f64; 7],
    /// Of a recomputed layer by flag: further time, kept activations, workspace.
    pub recompute: BTreeMap<String, [f64; 3]>,
    /// Parameters of a layer on one GPU, and bytes of its activations.
    pub layer: [f64; 2],
    /// Bytes a parameter: weights, gradients, optimizer.
    pub state_bytes: [f64; 3],
    /// Seconds a parameter: gradient and weight traffic, optimizer. Last of a step whatever its layout.
    pub step_s: [f64; 3],
    /// Memory that does not depend on the layers.
    pub fixed_bytes: f64,
    /// Of the first and the last stage: time, parameters, logits and chunks in flight beside their layers.
    pub stages: [[f64; 4]; 2],
    /// All layers and stages, for one micro-batch.
    pub network_s: f64,
    /// What measured runs add to the logarithm of the time of a layer, and of one that is recomputed.
    pub residual: [f64; 2],
}

/// The amounts by which a rule is broken.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleTable {
    /// Name of the rule.
    pub rule: String,
    /// The axes that decide it.
    pub axes: Vec<String>,
    /// One amount for each combination of their values, the last axis fastest.
    pub amounts: Vec<i64>,
}

/// How every combination is settled. Each entry starts with the combination's position; positions
/// ascend.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Combinations {
    /// All combinations of the space.
    pub total: u64,
    /// Those that break a rule of the tables, are forbidden, or break a row over discrete choices.
    pub broken: u64,
    /// Combinations of the values of all axes, each checkpointing flag on its own, that do none of it.
    pub permitted: u64,
    /// No layout fits: the stage that is short, and by how much at least.
    pub infeasible: Vec<(u64, u32, i64)>,
    /// No layout keeps a row: its place among the constraints, and by how much it is missed at least.
    pub excluded: Vec<(u64, u32, i64)>,
    /// No layout that fits keeps all rows: the bound of the slowest stage.
    pub blocked: Vec<(u64, i64)>,
    /// No layout is as fast as the winner, by the bound of perfect balance.
    pub balance: Vec<(u64, i64)>,
    /// No layout is as fast as the winner, by the bound of the slowest stage.
    pub bottleneck: Vec<(u64, i64)>,
    /// The objective of the best layout.
    pub solved: Vec<(u64, i64)>,
    /// A lower bound of the objective, where the search was stopped.
    pub open: Vec<(u64, i64)>,
}

/// The layout and what it costs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Winner {
    /// Its value on each axis that the program decides once for the job.
    pub values: Map<String, Value>,
    /// The pipeline stages, first to last.
    pub stages: Vec<WinnerStage>,
    /// Its objective.
    pub objective: i64,
    /// Utilisation that the objective stands for, in parts per billion.
    pub mfu_ppb: i64,
    /// Peak memory of each stage.
    pub memory_kib: Vec<i64>,
    /// Probability that a GPU runs out of memory, in parts per billion.
    pub oom_probability_ppb: i64,
}

/// Layers of one stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WinnerStage {
    /// Layers.
    pub layers: u32,
    /// Layers that recompute themselves whole, their feed-forward block, their attention core.
    pub recomputed: [u32; 3],
}

/// Reads what may be null but not missing.
fn nullable<'a, T: Deserialize<'a>, D: Deserializer<'a>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Option::deserialize(deserializer)
}

impl Combinations {
    /// Adds how a combination is settled.
    pub(crate) fn add(&mut self, position: u64, settlement: Settlement) {
        match settlement {
            Settlement::Infeasible(stage, short) => self.infeasible.push((position, stage, short)),
            Settlement::Excluded(row, missed) => self.excluded.push((position, row, missed)),
            Settlement::Blocked(bound) => self.blocked.push((position, bound)),
            Settlement::Balance(bound) => self.balance.push((position, bound)),
            Settlement::Bottleneck(bound) => self.bottleneck.push((position, bound)),
            Settlement::Solved(objective) => self.solved.push((position, objective)),
            Settlement::Open(bound) => self.open.push((position, bound)),
        }
    }
}

impl Certificate {
    /// The document as text: one key a line.
    ///
    /// # Panics
    ///
    /// Never: its keys are strings and its numbers finite.
    #[must_use]
    pub fn to_text(&self) -> String {
        let value =
            serde_json::to_value(self).expect("a certificate has string keys and finite numbers");
        let Value::Object(fields) = value else {
            return value.to_string();
        };
        let lines: Vec<String> = fields
            .iter()
            .map(|(key, value)| format!("\"{key}\":{value}"))
            .collect();
        format!("{{\n{}\n}}\n", lines.join(",\n"))
    }
}
