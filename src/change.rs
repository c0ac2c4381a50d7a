//! Changes of an instance: what they set, what the instance is then, and what they ask of the user.

use serde_json::Value as Json;

use crate::axis::{Assignment, Axis};
use crate::constraint::{Comparison, Constraint};
use crate::instance::{Instance, resolved};
use crate::job::Job;
use crate::quantity::{Bytes, BytesPerSecond};
use crate::rules::FrameworkChange;
use crate::workload::Optimizer;

/// One change, from what the instance says.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Other values of an axis.
    Values {
        /// The axis.
        axis: Axis,
        /// Codes listed so far.
        from: Vec<u32>,
        /// Codes to list.
        to: Vec<u32>,
    },
    /// Fewer forbidden combinations.
    Permit {
        /// Those that are no longer forbidden.
        permitted: Vec<Assignment>,
        /// Those that stay.
        kept: Vec<Assignment>,
    },
    /// The user's own constraints, moved or dropped.
    Rows {
        /// What becomes of those.
        changed: Vec<RowChange>,
        /// All constraints then.
        rows: Vec<Constraint>,
    },
    /// A larger accepted probability of running out of memory.
    OomRisk {
        /// So far.
        from: f64,
        /// Then.
        to: f64,
    },
    /// A framework that can do more.
    Framework(FrameworkChange),
    /// Another number of sequences a step.
    GlobalBatch {
        /// So far.
        from: u64,
        /// Then.
        to: u64,
    },
    /// Another number of tokens a sequence.
    SequenceLength {
        /// So far.
        from: u64,
        /// Then.
        to: u64,
    },
    /// bf16 optimizer states instead of fp32.
    SmallerOptimizer,
    /// Another number of GPUs.
    Gpus {
        /// So far.
        from: u32,
        /// Then.
        to: u32,
    },
    /// GPUs with more memory.
    Memory {
        /// What a process can use so far.
        from: Bytes,
        /// Then.
        to: Bytes,
    },
    /// Another bandwidth between nodes.
    InterNodeBandwidth {
        /// So far.
        from: BytesPerSecond,
        /// Then.
        to: BytesPerSecond,
    },
    /// Another bandwidth within a node.
    IntraNodeBandwidth {
        /// So far.
        from: BytesPerSecond,
        /// Then.
        to: BytesPerSecond,
    },
}

/// What becomes of a constraint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowChange {
    /// Its name.
    pub name: String,
    /// Another right side; `None` where the constraint is dropped.
    pub right: Option<Side>,
}

/// A right side that is moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Side {
    /// How the sides compare.
    pub comparison: Comparison,
    /// So far.
    pub from: i64,
    /// Then.
    pub to: i64,
}

impl Change {
    /// The changed instance; what the user lists stays, all else is what is legal then.
    #[must_use]
    pub fn apply(&self, instance: &Instance) -> Instance {
        let mut after = instance.clone();
        match self {
            Self::Values { axis, to, .. } => after.space.restrict(*axis, to.clone()),
            Self::Permit { kept, .. } => after.space.forbidden.clone_from(kept),
            Self::Rows { rows, .. } => after.space.constraints.clone_from(rows),
            Self::OomRisk { to, .. } => after.max_oom_risk = *to,
            _ => {
                self.apply_to_job(&mut after.job);
                return instance.with_job(after.job);
            }
        }
        after
    }

    fn apply_to_job(&self, job: &mut Job) {
        let (cluster, workload) = (&mut job.cluster, &mut job.workload);
        match *self {
            Self::Framework(change) => (change.set)(&mut job.framework),
            Self::GlobalBatch { to, .. } => workload.global_batch = to,
            Self::SequenceLength { to, .. } => workload.sequence_length = to,
            Self::SmallerOptimizer => workload.optimizer = Optimizer::AdamBf16,
            Self::Gpus { to, .. } => cluster.gpus = to,
            Self::Memory { to, .. } => cluster.accelerator.usable_memory = to,
            Self::InterNodeBandwidth { to, .. } => cluster.inter_node_bandwidth = to,
            Self::IntraNodeBandwidth { to, .. } => cluster.intra_node_bandwidth = to,
            Self::Values { .. }
            | Self::Permit { .. }
            | Self::Rows { .. }
            | Self::OomRisk { .. } => {}
        }
    }

    /// The assignment that `--set` takes.
    #[must_use]
    pub fn assignment(&self) -> String {
        match self {
            Self::Values { axis, to, .. } => match to.as_slice() {
                &[only] => format!("search.{axis}={}", axis.show(only)),
                several => {
                    let list = several.iter().map(|&code| resolved::value(*axis, code));
                    format!("search.{axis}={}", inline(&list.collect()))
                }
            },
            Self::Permit { kept, .. } => {
                let tables = kept.iter().map(resolved::forbidden);
                format!("search.forbid={}", inline(&tables.collect()))
            }
            Self::Rows { rows, .. } => {
                let tables = rows.iter().map(resolved::constraint);
                format!("constraint={}", inline(&tables.collect()))
            }
            Self::OomRisk { to, .. } => format!("limits.max_oom_risk={to}"),
            Self::Framework(FrameworkChange { key, to, .. }) => format!("framework.{key}={to}"),
            Self::GlobalBatch { to, .. } => format!("training.global_batch={to}"),
            Self::SequenceLength { to, .. } => format!("training.sequence_length={to}"),
            Self::SmallerOptimizer => "training.optimizer=adam-bf16".to_owned(),
            Self::Gpus { to, .. } => format!("cluster.gpus={to}"),
            Self::Memory { to, .. } => format!("cluster.memory={:.1} GB", to.value() / 1e9),
            Self::InterNodeBandwidth { to, .. } => bandwidth("inter_node", *to),
            Self::IntraNodeBandwidth { to, .. } => bandwidth("intra_node", *to),
        }
    }

    /// How much the change asks of the user, so that repairs can be ordered: first what only the
    /// layout notices, then what the software, the training and at last the machine has to give.
    ///
    /// | change | cost |
    /// |---|---|
    /// | values of an axis, a forbidden combination | 1 |
    /// | a row of one's own | 1.25 where it is moved, 1.5 where it is dropped |
    /// | accepted risk | 2 + the risk |
    /// | framework | 3 |
    /// | global batch | 4 + its relative change |
    /// | sequence length | 5 + its relative change |
    /// | optimizer | 5.5 |
    /// | GPUs, memory | 6 + their relative change |
    /// | network | 7 |
    #[must_use]
    pub fn cost(&self) -> f64 {
        let relative = |from: f64, to: f64| (to / from - 1.0).abs();
        match *self {
            Self::Values { .. } | Self::Permit { .. } => 1.0,
            Self::Rows { ref changed, .. } => {
                let cost = |change: &RowChange| change.right.map_or(1.5, |_| 1.25);
                changed.iter().map(cost).sum()
            }
            Self::OomRisk { to, .. } => 2.0 + to,
            Self::Framework(_) => 3.0,
            Self::GlobalBatch { from, to } => 4.0 + relative(from as f64, to as f64),
            Self::SequenceLength { from, to } => 5.0 + relative(from as f64, to as f64),
            Self::SmallerOptimizer => 5.5,
            Self::Gpus { from, to } => 6.0 + relative(f64::from(from), f64::from(to)),
            Self::Memory { from, to } => 6.0 + relative(from.value(), to.value()),
            Self::InterNodeBandwidth { .. } | Self::IntraNodeBandwidth { .. } => 7.0,
        }
    }
}

/// A value of JSON as TOML has it on one line.
fn inline(json: &Json) -> String {
    let is_bare = |key: &str| key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    match json {
        Json::Array(items) => {
            let items: Vec<String> = items.iter().map(inline).collect();
            format!("[{}]", items.join(", "))
        }
        Json::Object(table) => {
            let entries = table.iter().map(|(key, value)| {
                let quote = if is_bare(key) { "" } else { "\"" };
                format!("{quote}{key}{quote} = {}", inline(value))
            });
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        scalar => scalar.to_string(),
    }
}

fn bandwidth(span: &str, to: BytesPerSecond) -> String {
    format!("cluster.{span}_bandwidth={:.1} GB/s", to.value() / 1e9)
}

/// Most rows that are named.
const MOST_NAMED: usize = 4;

/// The changes in words, with their amounts.
pub(crate) fn words(changes: &[RowChange]) -> String {
    let word = |change: &RowChange| match &change.right {
        None => format!("drop row `{}`", change.name),
        Some(Side {
            comparison,
            from,
            to,
        }) => format!(
            "row `{}` {} {to} instead of {from}",
            change.name,
            comparison.words()
        ),
    };
    let mut all: Vec<String> = changes.iter().take(MOST_NAMED).map(word).collect();
    match changes.len().saturating_sub(MOST_NAMED) {
        0 => {}
        further => all.push(format!("and {further} further rows likewise")),
    }
    all.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(change: &Change, expected: &str) {
        assert_eq!(change.assignment(), expected);
    }

    #[test]
    fn changes_are_what_set_takes() {
        let values = |axis, to: &[u32]| Change::Values {
            axis,
            from: vec![1],
            to: to.to_vec(),
        };
        check(
            &values(Axis::TensorParallel, &[4]),
            "search.tensor_parallel=4",
        );
        check(
            &values(Axis::Checkpointing, &[0, 1]),
            "search.checkpointing=[\"none\", \"full\"]",
        );
        check(&values(Axis::Sharding, &[3]), "search.sharding=zero-3");
        let kept = vec![Assignment(vec![
            (Axis::RmsNormKernel, 1),
            (Axis::TensorParallel, 2),
        ])];
        let permit = Change::Permit {
            permitted: Vec::new(),
            kept,
        };
        check(
            &permit,
            "search.forbid=[{rmsnorm_kernel = \"fused\", tensor_parallel = 2}]",
        );
        let memory = Change::Memory {
            from: Bytes::new(24e9),
            to: Bytes::new(51.3e9),
        };
        check(&memory, "cluster.memory=51.3 GB");
    }

    #[test]
    fn what_the_layout_notices_is_cheaper_than_a_machine() {
        let gpus = |to| Change::Gpus { from: 16, to };
        assert!(Change::SmallerOptimizer.cost() < gpus(24).cost());
        assert!(gpus(24).cost() < gpus(64).cost());
    }
}
