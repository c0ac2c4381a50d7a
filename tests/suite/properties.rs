//! What must hold for every instance.

use parlayout::instance::Instance;
use parlayout::plan::Outcome;
use parlayout::planner::{self, PlanOptions};
use parlayout::quantity::{Bytes, Mfu};
use parlayout::report::Document;
use parlayout::report::document::SolutionDocument;
use parlayout::rules;
use parlayout::transformer::Embeddings;
use proptest::prelude::*;

use crate::support::random_instance;

fn plan(instance: &Instance) -> Outcome {
    planner::plan(instance, &PlanOptions::default()).expect("the planner answers")
}

fn mfu(instance: &Instance) -> Mfu {
    plan(instance)
        .plan()
        .map_or(Mfu::ZERO, |plan| plan.choice.prediction.mfu)
}

/// The cost model's MFU and the program's differ by rounding.
const ROUNDING: f64 = 1.0 - 2e-4;

proptest! {
    #![proptest_config(crate::support::cases(48))]

    #[test]
    fn more_memory_never_lowers_mfu(instance in random_instance(), factor in 1.0..3.0_f64) {
        let mut larger = instance.clone();
        let memory = instance.job.cluster.accelerator.usable_memory;
        larger.job.cluster.accelerator.usable_memory = Bytes::new(memory.value() * factor);
        prop_assert!(mfu(&larger).value() >= mfu(&instance).value() * ROUNDING);
    }

    #[test]
    fn more_accepted_risk_never_lowers_mfu(instance in random_instance(), risk in 0.05..0.9_f64) {
        let mut bolder = instance.clone();
        bolder.max_oom_risk = instance.max_oom_risk.max(risk);
        prop_assert!(mfu(&bolder).value() >= mfu(&instance).value() * ROUNDING);
    }

    #[test]
    fn a_returned_layout_breaks_no_rule(instance in random_instance()) {
        if let Some(plan) = plan(&instance).plan() {
            let all = std::iter::once(&plan.choice).chain(&plan.alternatives).chain(&plan.safer);
            for evaluated in all {
                prop_assert_eq!(rules::violations(&instance, &evaluated.layout), vec![]);
                let components = evaluated.prediction.time.total();
                prop_assert_eq!(components, evaluated.prediction.step_time);
                prop_assert!(evaluated.prediction.oom_probability <= instance.max_oom_risk + 1e-9);
            }
            let choice = plan.choice.prediction.mfu.value();
            for other in &plan.alternatives {
                prop_assert!(other.prediction.mfu.value() * ROUNDING <= choice);
            }
        }
    }

    #[test]
    fn tied_embeddings_never_take_more_memory_or_time(instance in random_instance()) {
        let predict = |embeddings, layout| {
            let mut instance = instance.clone();
            instance.job.transformer.embeddings = embeddings;
            planner::evaluate(&instance, layout).prediction
        };
        if let Some(plan) = plan(&instance).plan() {
            let layout = &plan.choice.layout;
            let [tied, untied] = [Embeddings::Tied, Embeddings::Untied]
                .map(|embeddings| predict(embeddings, layout.clone()));
            let one_stage = layout.combination.pipeline_parallel == 1;
            prop_assert!(tied.step_time <= untied.step_time);
            for (tied, untied) in tied.memory.stages.iter().zip(&untied.memory.stages) {
                // With several stages the first and the last keep a copy each.
                prop_assert_eq!(tied.peak() < untied.peak(), one_stage);
                prop_assert!(tied.peak() <= untied.peak());
            }
        }
    }

    #[test]
    fn solving_twice_gives_the_same_bytes(instance in random_instance()) {
        let once = SolutionDocument::new(&instance, &plan(&instance)).json();
        let twice = SolutionDocument::new(&instance, &plan(&instance)).json();
        prop_assert_eq!(once, twice);
    }
}
