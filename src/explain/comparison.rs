//! Two layouts side by side, term by term.

use crate::cost_model::components::StageMemory;

use crate::instance::Instance;
use crate::plan::{Evaluated, Violation};
use crate::quantity::{Bytes, Mfu, Seconds};

/// What a layout was chosen for, as far as it is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Name of the instance.
    pub instance: String,
    /// Name of the network.
    pub model: String,
    /// Name of the cluster.
    pub cluster: String,
    /// GPUs of the job.
    pub gpus: u32,
    /// The framework.
    pub framework: String,
    /// Tokens of one sequence.
    pub sequence_length: u64,
    /// Sequences of one optimizer step.
    pub global_batch: u64,
}

/// One of the layouts.
#[derive(Debug, Clone, PartialEq)]
pub struct Side {
    /// What it was chosen for.
    pub setting: Setting,
    /// Layout and prediction.
    pub evaluated: Evaluated,
    /// Rules that it breaks; none is known of a layout that was read from a document.
    pub violations: Vec<Violation>,
}

/// Two layouts and where their time and memory differ.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The first layout, from which differences are counted.
    pub left: Side,
    /// The second.
    pub right: Side,
    /// Components of the step time, the largest difference first.
    pub time: Vec<Term<Seconds>>,
    /// Components of the memory of each side's fullest stage, the largest difference first.
    pub memory: Vec<Term<Bytes>>,
}

/// One component on both sides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Term<T> {
    /// The component, as in JSON.
    pub name: &'static str,
    /// The component, in tables.
    pub label: &'static str,
    /// On the first side.
    pub left: T,
    /// On the second.
    pub right: T,
    /// The component's share of the difference in utilisation, in proportion to its share of the
    /// difference in time; `None` where the sides' utilisations are not of the same work.
    pub mfu: Option<Mfu>,
}

impl Setting {
    /// The setting of an instance.
    #[must_use]
    pub fn new(instance: &Instance) -> Self {
        let job = &instance.job;
        Self {
            instance: instance.name.clone(),
            model: job.transformer.name.clone(),
            cluster: job.cluster.name.clone(),
            gpus: job.cluster.gpus,
            framework: job.framework.name.clone(),
            sequence_length: job.workload.sequence_length,
            global_batch: job.workload.global_batch,
        }
    }
}

/// Relative difference up to which the utilisations of two sides are of the same work; documents
/// round to six digits.
const SAME_WORK: f64 = 1e-4;

/// Compares two layouts.
#[must_use]
pub fn compare(left: Side, right: Side) -> Comparison {
    let (one, other) = (&left.evaluated.prediction, &right.evaluated.prediction);
    let work = |prediction: &crate::cost_model::prediction::Prediction| {
        prediction.mfu.value() * prediction.step_time.value()
    };
    let same_work = (work(one) / work(other) - 1.0).abs() < SAME_WORK;
    let change = other.step_time - one.step_time;
    let gained = other.mfu - one.mfu;
    let points = |difference: Seconds| {
        let share = if change == Seconds::ZERO {
            0.0
        } else {
            difference / change
        };
        same_work.then(|| gained * share)
    };
    let pairs = one.time.components().zip(other.time.components());
    let mut time: Vec<Term<Seconds>> = pairs
        .map(|((component, left), (_, right))| Term {
            name: component.key(),
            label: component.label(),
            left,
            right,
            mfu: points(right - left),
        })
        .collect();
    time.sort_by(|one, other| {
        by_size(
            one.right - one.left,
            other.right - other.left,
            Seconds::value,
        )
    });
    let (one, other) = (fullest(&left.evaluated), fullest(&right.evaluated));
    let pairs = one.components().zip(other.components());
    let mut memory: Vec<Term<Bytes>> = pairs
        .map(|((component, left), (_, right))| Term {
            name: component.key(),
            label: component.label(),
            left,
            right,
            mfu: None,
        })
        .collect();
    memory.sort_by(|one, other| {
        by_size(one.right - one.left, other.right - other.left, Bytes::value)
    });
    Comparison {
        left,
        right,
        time,
        memory,
    }
}

fn by_size<T>(one: T, other: T, value: impl Fn(T) -> f64) -> std::cmp::Ordering {
    value(other).abs().total_cmp(&value(one).abs())
}

/// Memory of the stage with the highest peak, the first of equals.
#[must_use]
pub fn fullest(evaluated: &Evaluated) -> StageMemory {
    let mut fullest = StageMemory::default();
    for stage in &evaluated.prediction.memory.stages {
        if stage.peak() > fullest.peak() {
            fullest = *stage;
        }
    }
    fullest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;

    fn side(step_time: f64) -> Side {
        let instance = fixture::llama_13b();
        let mut evaluated = fixture::llama_13b_plan().choice;
        let mfu = 0.705 * 26.53 / step_time;
        evaluated.prediction = fixture::prediction(
            mfu,
            step_time,
            &[fixture::stage(26.1, 26.1, 2.4, 18.4, 1.3)],
        );
        Side {
            setting: Setting::new(&instance),
            evaluated,
            violations: Vec::new(),
        }
    }

    #[test]
    fn terms_sum_to_the_difference() {
        let comparison = compare(side(26.53), side(30.0));
        let seconds: f64 = comparison
            .time
            .iter()
            .map(|term| (term.right - term.left).value())
            .sum();
        assert!((seconds - 3.47).abs() < 1e-9);
        let points: f64 = comparison
            .time
            .iter()
            .map(|term| term.mfu.expect("the work is the same").value())
            .sum();
        let gained =
            comparison.right.evaluated.prediction.mfu - comparison.left.evaluated.prediction.mfu;
        assert!((points - gained.value()).abs() < 1e-12);
        assert_eq!(comparison.time[0].name, "gemm");
    }

    #[test]
    fn equal_sides_differ_nowhere() {
        let comparison = compare(side(26.53), side(26.53));
        assert!(comparison.time.iter().all(|term| term.left == term.right));
        assert!(
            comparison
                .time
                .iter()
                .all(|term| term.mfu == Some(Mfu::ZERO))
        );
    }

    #[test]
    fn other_work_has_no_common_utilisation() {
        let mut other = side(30.0);
        other.evaluated.prediction.mfu = Mfu::new(0.3);
        let comparison = compare(side(26.53), other);
        assert!(comparison.time.iter().all(|term| term.mfu.is_none()));
    }
}
