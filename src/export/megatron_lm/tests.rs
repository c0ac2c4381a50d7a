//! Golden flags.

use super::*;
use crate::fixture;
use crate::layout::{Schedule, Stage};
use crate::transformer::{Biases, Embeddings, FeedForward};

fn check(name: &str, instance: &Instance, layout: &Layout) {
    let text = megatron_lm(instance, layout).expect("Megatron-LM can run the layout");
    let flags: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let (last, others) = flags.split_last().expect("there are flags");
    assert!(others.iter().all(|line| line.ends_with(" \\")));
    assert!(!last.ends_with('\\'));
    fixture::assert_snapshot(name, &text);
}

#[test]
fn one_stage_needs_no_pipeline_flags() {
    check(
        "export_13b",
        &fixture::llama_13b(),
        &fixture::llama_13b_layout(),
    );
}

#[test]
fn first_and_last_counts_say_what_meta_ran() {
    let mut layout = fixture::llama_405b_layout();
    for stage in &mut layout.stages {
        stage.recomputed = [0; 3];
    }
    check("export_405b", &fixture::llama_405b(), &layout);
}

#[test]
fn other_splits_become_a_layout_string() {
    let mut layout = fixture::llama_405b_layout();
    layout.stages[3].layers = 9;
    layout.stages[7].layers = 7;
    for stage in &mut layout.stages {
        stage.recomputed = [2, 0, 0];
    }
    check("export_405b_layout_string", &fixture::llama_405b(), &layout);
}

#[test]
fn what_cannot_be_said_is_a_comment() {
    let mut layout = fixture::llama_13b_layout();
    layout.combination.attention_kernel = AttentionKernel::Flash1;
    layout.combination.rmsnorm_kernel = RmsNormKernel::Unfused;
    layout.combination.pipeline_parallel = 4;
    layout.combination.data_parallel = 16;
    layout.combination.virtual_stages = 2;
    layout.stages = [[4, 0, 0], [2, 1, 0], [0, 0, 0], [0, 0, 0]]
        .map(|recomputed| Stage {
            layers: 10,
            recomputed,
        })
        .to_vec();
    let mut instance = fixture::llama_13b();
    instance.name = "two\nlines".to_owned();
    instance.job.workload.precision = Precision::Fp8;
    instance.job.workload.optimizer = Optimizer::AdamBf16;
    instance.job.transformer.vocabulary = 151_669;
    check("export_comments", &instance, &layout);
}

#[test]
fn full_sharding_is_megatron_fsdp() {
    let mut instance = fixture::llama_13b();
    let transformer = &mut instance.job.transformer;
    transformer.feed_forward = FeedForward::Plain;
    transformer.embeddings = Embeddings::Tied;
    transformer.normalization = Normalization::LayerNorm;
    transformer.biases = Biases::All;
    transformer.learned_positions = 2048;
    instance.job.framework.memory.gradient_bytes = 4.0;
    let mut layout = fixture::llama_13b_layout();
    layout.combination.sharding = Sharding::Hybrid;
    layout.combination.attention_kernel = AttentionKernel::Torch;
    layout.stages[0].recomputed = [0, 0, 40];
    check("export_hybrid", &instance, &layout);
}

#[test]
fn an_odd_number_of_micro_batches_sets_the_group() {
    let mut instance = fixture::llama_13b();
    let mut layout = fixture::llama_13b_layout();
    layout.combination.virtual_stages = 2;
    layout.combination.pipeline_parallel = 4;
    layout.stages = vec![
        Stage {
            layers: 10,
            recomputed: [0; 3]
        };
        4
    ];
    let group = |instance: &Instance| {
        let text = megatron_lm(instance, &layout).expect("Megatron-LM can run the layout");
        let flag = "--microbatch-group-size-per-virtual-pipeline-stage ";
        text.split_once(flag).map(|(_, rest)| {
            rest.chars()
                .take_while(char::is_ascii_digit)
                .collect::<String>()
        })
    };
    assert_eq!(group(&instance), None);
    instance.job.workload.global_batch = 64 * 10;
    assert_eq!(group(&instance), Some("5".to_owned()));
}

#[test]
fn refusals_say_what_would_be_right() {
    let check = |edit: &dyn Fn(&mut Instance, &mut Layout), part: &str| {
        let (mut instance, mut layout) = (fixture::llama_13b(), fixture::llama_13b_layout());
        edit(&mut instance, &mut layout);
        let error = megatron_lm(&instance, &layout).expect_err("must be refused");
        assert!(error.to_string().contains(part), "{error}");
    };
    check(
        &|_, layout| layout.combination.schedule = Schedule::ZeroBubble1p,
        "`schedule = \"zb-1p\"` does not exist there: use `1f1b`",
    );
    check(
        &|_, layout| layout.combination.expert_parallel = 2,
        "needs a mixture of experts",
    );
    check(
        &|_, layout| layout.combination.virtual_stages = 2,
        "needs several pipeline stages under schedule 1f1b, not 1",
    );
    check(
        &|instance, layout| {
            layout.combination.virtual_stages = 2;
            layout.combination.pipeline_parallel = 6;
            instance.job.workload.global_batch = 192;
        },
        "use a global batch of at least 384",
    );
    check(
        &|_, layout| {
            layout.combination.sharding = Sharding::Parameters;
            layout.combination.pipeline_parallel = 2;
        },
        "zero-3 does not go with 2 pipeline stages: use zero-1",
    );
    check(
        &|instance, layout| {
            instance.job.transformer.key_value_heads = 5;
            layout.combination.tensor_parallel = 4;
        },
        "5 key-value heads are neither",
    );
    check(
        &|instance, layout| {
            instance.job.transformer.heads = 52;
            layout.combination.tensor_parallel = 8;
        },
        "52 attention heads cannot be split among 8",
    );
    check(
        &|instance, layout| {
            instance.job.workload.sequence_length = 2049;
            layout.combination.context_parallel = 2;
        },
        "is not a multiple of 2 x",
    );
}
