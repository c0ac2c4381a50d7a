//! Changes of an instance that a repair consists of: what they set and what they cost.

use std::fmt::Write as _;

use crate::axis::{Assignment, Axis};
use crate::constraint::Constraint;
use crate::quantity::Bytes;

use super::rows::{self, RowChange};

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
    /// Rows of the user's own that are moved or dropped.
    Rows {
        /// What becomes of those.
        changed: Vec<RowChange>,
        /// All rows then.
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
    Framework {
        /// Key in `[framework]`.
        key: &'static str,
        /// Its value then.
        to: &'static str,
    },
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
    /// Nodes of another size.
    NodeSize {
        /// GPUs of a node so far.
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
}

impl Change {
    /// The assignment that `--set` takes.
    #[must_use]
    pub fn assignment(&self) -> String {
        match self {
            Self::Values { axis, to, .. } => format!("search.{axis}={}", values(*axis, to)),
            Self::Permit { kept, .. } => {
                let tables: Vec<String> = kept.iter().map(inline_table).collect();
                format!("search.forbid=[{}]", tables.join(", "))
            }
            Self::Rows { rows, .. } => {
                let tables: Vec<String> = rows.iter().map(rows::inline_table).collect();
                format!("constraint=[{}]", tables.join(", "))
            }
            Self::OomRisk { to, .. } => format!("limits.max_oom_risk={to}"),
            Self::Framework { key, to } => format!("framework.{key}={to}"),
            Self::GlobalBatch { to, .. } => format!("training.global_batch={to}"),
            Self::SequenceLength { to, .. } => format!("training.sequence_length={to}"),
            Self::SmallerOptimizer => "training.optimizer=adam-bf16".to_owned(),
            Self::Gpus { to, .. } => format!("cluster.gpus={to}"),
            Self::NodeSize { to, .. } => format!("cluster.gpus_per_node={to}"),
            Self::Memory { to, .. } => format!("cluster.memory={:.1} GB", to.value() / 1e9),
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
    /// | GPUs, size of a node, memory | 6 + their relative change |
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
            Self::Framework { .. } => 3.0,
            Self::GlobalBatch { from, to } => 4.0 + relative(from as f64, to as f64),
            Self::SequenceLength { from, to } => 5.0 + relative(from as f64, to as f64),
            Self::SmallerOptimizer => 5.5,
            Self::Gpus { from, to } | Self::NodeSize { from, to } => {
                6.0 + relative(f64::from(from), f64::from(to))
            }
            Self::Memory { from, to } => 6.0 + relative(from.value(), to.value()),
        }
    }
}

/// One value, or a list of them, as TOML.
fn values(axis: Axis, codes: &[u32]) -> String {
    match codes {
        &[only] => axis.show(only),
        several => {
            let list: Vec<String> = several.iter().map(|&code| toml_value(axis, code)).collect();
            format!("[{}]", list.join(", "))
        }
    }
}

fn toml_value(axis: Axis, code: u32) -> String {
    if axis.names().is_some() {
        format!("\"{}\"", axis.show(code))
    } else {
        axis.show(code)
    }
}

fn inline_table(assignment: &Assignment) -> String {
    let mut text = String::from("{");
    for (position, &(axis, code)) in assignment.0.iter().enumerate() {
        let comma = if position == 0 { "" } else { ", " };
        // Writing to a string cannot fail.
        let _ = write!(text, "{comma}{axis} = {}", toml_value(axis, code));
    }
    text.push('}');
    text
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
