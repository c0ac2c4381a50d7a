use super::*;
use crate::cost_model::Costs;
use crate::fixture;
use crate::instance::Instance;
use crate::plan::{Outcome, Plan};

fn page_of(instance: &Instance, plan: Plan) -> String {
    let costs = Costs::new(&instance.job, &plan.choice.layout.combination);
    let timeline = Timeline::of(&costs, &plan.choice.layout);
    assert!(timeline.is_some());
    let answer = SolutionDocument::new(instance, &Outcome::Optimal(plan));
    let page = Page {
        answer: &answer,
        cluster: &instance.job.cluster,
        timeline,
        degrees: None,
        prices: None,
        launch: Some(Launch {
            framework: "Megatron-LM",
            command: "parlayout export answer.json --to megatron-lm".to_owned(),
            settings: Ok("--a-setting <1>".to_owned()),
        }),
    };
    page.html()
}

#[test]
fn a_page_needs_nothing_else_and_says_what_to_run() {
    let html = page_of(&fixture::llama_405b(), fixture::llama_405b_plan());
    assert!(html.len() < 1_000_000, "{} bytes", html.len());
    for outside in ["http:", "https:", "<script", "src=", "@import", "url("] {
        assert!(!html.contains(outside), "{outside}");
    }
    for text in [
        "TP 8, PP 16, DP 64",
        "--a-setting &lt;1&gt;",
        "stage 0, 7 layers",
        "leaves out the middle of the step",
        "Left out: this page was written with --quick",
    ] {
        assert!(html.contains(text), "{text}");
    }
}

#[test]
fn the_same_answer_makes_the_same_page() {
    let page = || page_of(&fixture::llama_13b(), fixture::llama_13b_plan());
    assert_eq!(page(), page());
}

#[test]
fn names_are_escaped() {
    let mut instance = fixture::llama_13b();
    instance.job.transformer.name = "<b>&".to_owned();
    let html = page_of(&instance, fixture::llama_13b_plan());
    assert!(html.contains("&lt;b&gt;&amp;") && !html.contains("<b>&"));
}
