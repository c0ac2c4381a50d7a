//! Golden flags of Megatron-LM, and what cannot be said.

use super::*;
use crate::catalog;
use crate::fixture;
use crate::layout::{AttentionKernel, RmsNormKernel, Schedule, Sharding, Stage};
use crate::transformer::{Biases, Embeddings, FeedForward, Normalization};
use crate::workload::{Optimizer, Precision};

/// The flags of Megatron-LM.
fn megatron_lm(instance: &Instance, layout: &Layout) -> Result<String, ExportError> {
    export(Target::MegatronLm, instance, layout)
}

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
        stage.recomputed = [0; 4];
    }
    check("export_405b", &fixture::llama_405b(), &layout);
}

#[test]
fn other_splits_become_a_layout_string() {
    let mut layout = fixture::llama_405b_layout();
    layout.stages[3].layers = 9;
    layout.stages[7].layers = 7;
    for stage in &mut layout.stages {
        stage.recomputed = [2, 0, 0, 0];
    }
    check("export_405b_layout_string", &fixture::llama_405b(), &layout);
}

#[test]
fn narrow_formats_have_flags() {
    let mut layout = fixture::llama_13b_layout();
    layout.combination.attention_kernel = AttentionKernel::MegatronFused;
    layout.combination.pipeline_parallel = 4;
    layout.combination.data_parallel = 16;
    layout.combination.virtual_stages = 2;
    layout.stages = [Stage {
        layers: 10,
        recomputed: [4, 0, 0, 0],
    }; 4]
        .to_vec();
    let mut instance = fixture::llama_13b();
    instance.name = "two\nlines".to_owned();
    instance.job.workload.precision = Precision::Fp8;
    instance.job.workload.optimizer = Optimizer::AdamBf16;
    instance.job.transformer.vocabulary = 151_669;
    check("export_narrow_formats", &instance, &layout);
}

#[test]
fn what_cannot_be_said_is_an_error() {
    let check = |edit: &dyn Fn(&mut Layout), part: &str| {
        let mut layout = fixture::llama_13b_layout();
        layout.combination.pipeline_parallel = 4;
        layout.combination.data_parallel = 16;
        layout.stages = vec![
            Stage {
                layers: 10,
                recomputed: [0; 4]
            };
            4
        ];
        edit(&mut layout);
        let error = megatron_lm(&fixture::llama_13b(), &layout).expect_err("it cannot be said");
        assert!(error.to_string().contains(part), "{error}");
    };
    let layers = "it recomputes whole layers, the same number at the start";
    check(&|layout| layout.stages[0].recomputed = [4, 0, 0, 0], layers);
    check(&|layout| layout.stages[1].recomputed = [2, 1, 0, 0], layers);
    check(&|layout| layout.stages[0].recomputed = [0, 3, 0, 0], layers);
    check(
        &|layout| layout.combination.rmsnorm_kernel = RmsNormKernel::Unfused,
        "rmsnorm_kernel = unfused",
    );
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
    layout.stages[0].recomputed = [0, 0, 40, 0];
    check("export_hybrid", &instance, &layout);
}

#[test]
fn an_odd_number_of_micro_batches_sets_the_group() {
    let mut instance = fixture::llama_13b();
    let mut layout = fixture::llama_13b_layout();
    layout.combination.virtual_stages = 2;
    layout.combination.pipeline_parallel = 4;
    layout.combination.data_parallel = 16;
    layout.stages = vec![
        Stage {
            layers: 10,
            recomputed: [0; 4]
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
    instance.job.workload.global_batch = 16 * 10;
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
        "megatron-lm has no `schedule = zb-1p`: it has 1f1b",
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
        "megatron-lm has no zero-3 with 2 pipeline stages: it has zero-0 or zero-1 with a pipeline",
    );
    check(
        &|_, layout| layout.combination.attention_kernel = AttentionKernel::Flash1,
        "megatron-lm has no `attention_kernel = flash-attention-1`",
    );
    check(
        &|instance, layout| {
            instance.job.cluster.gpus = 60;
            layout.combination.data_parallel = 60;
        },
        "60 GPUs do not fill nodes of 8: 4 are left over",
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

/// The flags of an edited job without comments, one a line.
fn flags(edit: impl Fn(&mut Instance, &mut Layout)) -> (Vec<String>, String) {
    let (mut instance, mut layout) = (fixture::llama_13b(), fixture::llama_13b_layout());
    edit(&mut instance, &mut layout);
    let text = megatron_lm(&instance, &layout).expect("Megatron-LM can run the layout");
    let (comments, flags): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| line.starts_with('#'));
    let flags = flags
        .iter()
        .map(|line| line.trim_end_matches(" \\").to_owned());
    let comments: Vec<&str> = comments
        .iter()
        .map(|line| line.trim_start_matches("# "))
        .collect();
    (flags.collect(), comments.join(" "))
}

#[test]
fn what_changes_the_numbers_is_taken_from_the_model() {
    let (flags, comments) = flags(|instance, layout| {
        instance.job.transformer = catalog::model("llama-3.1-8b").expect("it is in the catalog");
        layout.stages[0].layers = 32;
    });
    for flag in [
        "--hidden-dropout 0",
        "--attention-dropout 0",
        "--rotary-base 500000",
        "--use-rope-scaling",
        "--rope-scaling-factor 8",
        "--norm-epsilon 0.00001",
    ] {
        assert!(flags.iter().any(|line| line == flag), "{flag}");
    }
    for said in [
        "`--hidden-dropout 0`: the default is 0.1.",
        "`--rotary-base 500000`: the default is 10000.",
        "`--use-rope-scaling`: the default is off.",
    ] {
        assert!(comments.contains(said), "{comments}");
    }
    assert!(!comments.contains("norm-epsilon"), "{comments}");
}

#[test]
fn gradients_have_the_width_of_the_plan() {
    let check = |bytes: f64, precision: Precision, flag: &str, said: &str| {
        let (flags, comments) = flags(|instance, _| {
            instance.job.framework.memory.set_gradients(bytes);
            instance.job.workload.precision = precision;
        });
        let found: Vec<&String> = flags.iter().filter(|line| line.contains("grad")).collect();
        let expected = ["--overlap-grad-reduce", flag];
        let expected: Vec<&str> = expected.into_iter().filter(|it| !it.is_empty()).collect();
        let mut found: Vec<&str> = found.into_iter().map(String::as_str).collect();
        found.sort_unstable_by_key(|line| *line == flag);
        assert_eq!(found, expected);
        assert!(comments.contains(said), "{comments}");
    };
    let in_bf16 = "`--grad-reduce-in-bf16`: the default is fp32.";
    check(2.0, Precision::Bf16, "--grad-reduce-in-bf16", in_bf16);
    check(
        4.0,
        Precision::Bf16,
        "",
        "Gradients are reduced in fp32, the default.",
    );
    check(
        2.0,
        Precision::Fp16,
        "",
        "Gradients are reduced in fp16, the default with fp16.",
    );
    let flag = "--accumulate-allreduce-grads-in-fp32";
    check(4.0, Precision::Fp16, flag, "the default is fp16.");
    check(
        6.0,
        Precision::Bf16,
        "",
        "A gradient has 4 bytes, not the 6 of the plan.",
    );
}

#[test]
fn the_attention_backend_is_the_jobs_choice() {
    let backend = |edit: &dyn Fn(&mut Instance)| {
        let (flags, _) = flags(|instance, _| edit(instance));
        assert!(!flags.iter().any(|line| line == "--use-flash-attn"));
        let found = flags
            .into_iter()
            .find(|line| line.starts_with("--attention-backend"));
        found.unwrap_or_default()
    };
    assert_eq!(backend(&|_| {}), "");
    let listed = backend(&|instance| {
        let flash = vec![AttentionKernel::Flash2 as u32];
        instance.space.restrict(Axis::AttentionKernel, flash);
    });
    assert_eq!(listed, "--attention-backend flash");
}

#[test]
fn the_launch_starts_the_jobs_ranks() {
    let launch = |gpus: u32, replicas: u32| {
        let (_, comments) = flags(|instance, layout| {
            instance.job.cluster.gpus = gpus;
            layout.combination.data_parallel = replicas;
        });
        let words = comments.split("torchrun ").nth(1).expect("it is launched");
        words
            .split(" pretrain")
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    assert_eq!(launch(64, 64), "--nnodes 8 --nproc-per-node 8");
    assert_eq!(launch(6, 6), "--nnodes 1 --nproc-per-node 6");
}

#[test]
fn the_frameworks_own_advice_is_repeated() {
    let (_, comments) = flags(|_, layout| {
        layout.combination.sharding = Sharding::Parameters;
        layout.combination.tensor_parallel = 2;
        layout.combination.data_parallel = 32;
    });
    assert!(
        comments.contains("Megatron-LM advises against zero-3 with tensor"),
        "{comments}"
    );
}

#[test]
fn a_rotary_base_is_a_whole_number() {
    let mut instance = fixture::llama_13b();
    instance.job.transformer.numerics.rotary_base = 500_000.4;
    let text = megatron_lm(&instance, &fixture::llama_13b_layout()).expect("it can run");
    assert!(text.contains("--rotary-base 500000 "), "{text}");
    let words = text.replace("\n# ", " ");
    assert!(
        words.contains("500000 stands for the model's own 500000.4."),
        "{text}"
    );
}
