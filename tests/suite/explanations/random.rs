//! Explanations of random jobs.

use parlayout::explain::{Explanation, TimeLimits, explain};
use parlayout::plan::Formulation;
use parlayout::planner::Deadline;
use parlayout::planner::infeasibility::{analyse, may_have_layout};
use parlayout::planner::{self, PlanOptions};
use proptest::prelude::*;

use super::{check_analysis, is_solved};
use crate::support::{parse, random_text};

/// A random job that is likely to be infeasible: little memory, or values that clash.
fn random_case() -> impl Strategy<Value = (String, Vec<String>)> {
    let pin = |key: &'static str, values: &'static [u32]| {
        proptest::option::weighted(0.3, proptest::sample::select(values))
            .prop_map(move |value| value.map(|value| format!("{key}={value}")))
    };
    (
        random_text(),
        pin("search.tensor_parallel", &[1, 3, 5, 8]),
        pin("search.pipeline_parallel", &[1, 2, 4, 7]),
        pin("search.micro_batch", &[1, 3, 4]),
        pin("search.data_parallel", &[1, 2, 8]),
        proptest::option::weighted(0.7, 1_u32..12),
        proptest::option::weighted(0.3, random_row()),
    )
        .prop_map(|(text, tensor, pipeline, batch, data, memory, row)| {
            let memory = memory.map(|gigabytes| format!("cluster.memory={gigabytes} GB"));
            let sets = [tensor, pipeline, batch, data, memory, row];
            (text, sets.into_iter().flatten().collect())
        })
}

/// A row over discrete choices that excludes many of them.
fn random_row() -> impl Strategy<Value = String> {
    let sense = proptest::sample::select(&["at_most", "at_least", "equals"]);
    (1_i64..3, -1_i64..3, sense, 1_i64..12).prop_map(|(tensor, batch, sense, right)| {
        let terms = format!("tensor_parallel = {tensor}, micro_batch = {batch}");
        format!("constraint=[{{name = \"own\", terms = {{{terms}}}, {sense} = {right}}}]")
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// The walk and the planner agree on what is feasible; corrections solve, and nothing smaller
    /// does; every repair solves.
    #[test]
    fn random_clashes_are_minimal((text, sets) in random_case()) {
        let instance = parse(&text, &sets);
        let options = PlanOptions { alternatives: 0, ..PlanOptions::default() };
        let best = planner::best(&instance, &options).expect("an answer").into_layout();
        prop_assert_eq!(may_have_layout(&instance, Deadline::NEVER).expect("no limit"), best.is_some());
        if best.is_some() {
            return Ok(());
        }
        let analysis = analyse(&instance, Formulation::Staged, Deadline::NEVER).expect("an answer");
        check_analysis(&instance, &analysis);
        let reread = |further: &[String]| {
            Some(parse(&text, &[sets.clone(), further.to_vec()].concat()))
        };
        let explained = explain(&instance, None, &reread, &TimeLimits::NONE).expect("an answer");
        let Explanation::Infeasible(reasons) = explained else {
            return Err(TestCaseError::fail("an infeasible instance has a plan"));
        };
        for repair in &reasons.repairs {
            let assignments: Vec<String> = repair.assignments().collect();
            let changed = reread(&assignments).expect("valid");
            prop_assert!(is_solved(&changed), "{assignments:?}");
        }
    }
}
