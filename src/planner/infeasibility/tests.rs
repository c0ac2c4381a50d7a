//! Clashes of small instances.

use std::path::Path;

use super::*;
use crate::axis::{Axis, AxisSet};
use crate::instance::{self, Overrides};
use crate::layout::RmsNormKernel;
use crate::plan::Formulation;

fn instance(sets: &[&str]) -> Instance {
    let text = r#"
[model]
preset = "llama-13b"
[cluster]
preset = "a100-80gb-one-nic"
gpus = 16
[training]
sequence_length = 2048
global_batch = 64
"#;
    let mut overrides = Overrides::none();
    for set in sets {
        overrides.set(set);
    }
    instance::from_text("small", text, Path::new(""), &overrides).expect("a valid instance")
}

fn check(sets: &[&str], expected: &[&[&str]]) {
    let instance = instance(sets);
    let analysis = analyse(&instance, Formulation::Staged, Deadline::NEVER)
        .expect("the solver gives an answer");
    let names =
        |clash: &RuleSet| -> Vec<String> { clash.iter().map(|it| it.name(&instance)).collect() };
    let found: Vec<Vec<String>> = analysis.clashes.iter().map(names).collect();
    assert_eq!(found, expected, "{sets:?}");
}

#[test]
fn a_feasible_instance_has_no_clash() {
    check(&[], &[]);
    assert!(may_have_layout(&instance(&[]), Deadline::NEVER).expect("no limit"));
}

#[test]
fn clashes_name_what_was_listed_and_the_rule() {
    check(
        &[
            "model.heads=52",
            "search.tensor_parallel=8",
            "model.head_width=128",
        ],
        &[&["search.tensor_parallel", "heads_divisible"]],
    );
    check(
        &["search.micro_batch=5"],
        &[&["search.micro_batch", "global_batch_divisible"]],
    );
    check(
        &["cluster.memory=10 GB"],
        &[&["gpu_count", "memory_capacity"]],
    );
}

/// The least peak of every combination is not below the lower limit, whatever is known of it.
#[test]
fn no_layout_is_below_the_lower_limit_of_memory() {
    let all_open = [
        "search.sharding=[\"zero-0\", \"zero-1\", \"zero-2\", \"zero-3\", \"hsdp\"]",
        "search.context_parallel=[1, 2, 4]",
        "search.attention_kernel=[\"torch\", \"flash-attention-2\"]",
        "search.checkpointing=[\"none\", \"full\", \"feed-forward\"]",
    ];
    for framework in [
        "unrestricted",
        "megatron-lm",
        "nanotron",
        "aleph-alpha-scaling",
    ] {
        let framework = format!("framework.preset={framework}");
        let mut sets = all_open.to_vec();
        sets.push(&framework);
        let instance = instance(&sets);
        let values = values::all_values(&instance);
        let table =
            crate::planner::cost_table::CostTable::new(&instance, crate::plan::Formulation::Staged);
        let mut checked = 0;
        for entry in table.entries.iter().filter(|entry| entry.units.is_some()) {
            let combination = entry.candidate.combination;
            let mut alone = instance.clone();
            for axis in Axis::ALL
                .into_iter()
                .filter(|&axis| axis != Axis::Checkpointing)
            {
                let code = FlaggedCombination::plain(combination).code(axis);
                alone.space.restrict(axis, vec![code]);
            }
            alone.job.cluster.accelerator.usable_memory = Bytes::new(1e6);
            let least = least_shortage(&alone, Deadline::NEVER).expect("no limit");
            let Some(least) = least else { continue };
            let needed = rules::admissible(&alone) + least;
            let needed = (needed.value() / KIB).round() as i64;
            let lean = memory_bound::leanest(&values, &combination);
            let mut open = AxisSet::EMPTY;
            let order = [Axis::Sharding, Axis::MicroBatch, Axis::DataParallel];
            for axis in [None]
                .into_iter()
                .chain(order.map(Some))
                .chain([Some(Axis::ContextParallel)])
            {
                open = axis.map_or(open, |axis| open.with(axis));
                let may_fit = |capacity: i64| {
                    memory_bound::may_fit(&instance, &values, &lean, open, capacity)
                };
                assert!(may_fit(needed + 1), "{framework} {combination:?} {open:?}");
                let far = needed / 4;
                // Fused kernels exclude checkpointing, of which the bound does not know.
                let is_tight = open.is_empty() && combination.rmsnorm_kernel == RmsNormKernel::Unfused;
                assert!(!is_tight || !may_fit(far), "{framework} {combination:?}");
            }
            checked += 1;
        }
        assert!(checked > 100, "{framework}: {checked}");
    }
}
