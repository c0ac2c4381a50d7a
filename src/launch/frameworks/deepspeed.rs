//! DeepSpeed's JSON (`deepspeed/runtime/config.py`, `runtime/zero/config.py`, 0.17). Pipelines are made in
//! the program, not here.

use crate::framework::CheckpointRule;
use crate::launch::dialect::{
    Dialect, Launcher, Limits, Row, Syntax, number, release, switch, words,
};
use crate::launch::facts::{Facts, Problem};
use crate::launch::settings::Settings;
use crate::rules::Rule;

pub(super) const LIMITS: Limits = Limits {
    values: &[
        ("pipeline_parallel", "1"),
        ("virtual_stages", "1"),
        ("context_parallel", "1"),
        ("sequence_parallel", "off"),
        ("checkpointing", "none full"),
        ("schedule", "1f1b"),
    ],
    checkpointing: Some(CheckpointRule::AllOrNothing),
    ..Limits::NONE
};

/// Its stages of ZeRO.
pub(super) const ZERO_STAGES: &[(&str, &str)] = &[
    ("zero-0", "0"),
    ("zero-1", "1"),
    ("zero-2", "2"),
    ("zero-3", "3"),
];

pub(super) const DIALECT: Dialect = Dialect {
    name: "deepspeed",
    title: "DeepSpeed",
    releases: &[release("0.17"), release("0.16"), release("0.15")],
    framework: "deepspeed",
    // AutoTP comes with ZeRO up to stage 2.
    limits: &[
        LIMITS,
        LIMITS.further(&[("tensor_parallel", "1")]),
        LIMITS.further(&[("sharding", "zero-0 zero-1 zero-2")]),
    ],
    syntax: Syntax::Json,
    signs: "train_micro_batch_size_per_gpu|zero_optimization.stage|train_batch_size",
    rows: ROWS,
    own,
    neutral,
    remarks: |facts| {
        let mut remarks = vec![format!(
            "The program has to build {} itself, with `model.gradient_checkpointing_enable()` where layers are \
             recomputed.",
            facts.text("model").unwrap_or("the network")
        )];
        if facts.one("tensor_parallel") > 1 {
            remarks.push("Tensor parallelism is DeepSpeed's AutoTP for training.".to_owned());
        }
        remarks
    },
    launcher: Launcher::Command(
        "deepspeed --num_nodes {nodes} --num_gpus {per_node} PROGRAM.py --deepspeed_config {file}",
    ),
    source: "DeepSpeed, `runtime/config.py`, `runtime/zero/config.py`",
};

const ROWS: &[Row] = &[
    number("train_batch_size", "global_batch"),
    number("train_micro_batch_size_per_gpu", "micro_batch"),
    number("gradient_accumulation_steps", "accumulation"),
    words("zero_optimization.stage", "sharding", ZERO_STAGES).or("0"),
    switch("zero_optimization.overlap_comm", "deepspeed_overlap"),
    number("tensor_parallel.autotp_size", "deepspeed_tensor").or("1"),
    number("sequence_parallel_size", "deepspeed_ulysses").or("1"),
    number(
        "activation_checkpointing.number_checkpoints",
        "deepspeed_checkpoints",
    ),
    switch("bf16.enabled", "deepspeed_bf16"),
    switch("fp16.enabled", "deepspeed_fp16"),
    words(
        "data_types.grad_accum_dtype",
        "deepspeed_gradients",
        &[("2", "bf16"), ("2.0", "fp16"), ("4", "fp32")],
    ),
];

fn own(facts: &mut Facts) -> Result<(), String> {
    let tensor = facts.one("tensor_parallel");
    if tensor > 1 {
        if facts.text("sharding") == Some("zero-3") {
            return Err("DeepSpeed's AutoTP comes with ZeRO up to stage 2".to_owned());
        }
        facts.set("deepspeed_tensor", tensor);
    }
    facts.set(
        "deepspeed_overlap",
        facts.text("sharding") != Some("zero-0"),
    );
    match facts.text("checkpointing") {
        Some("none") => {}
        Some("full") => facts.set("deepspeed_checkpoints", facts.one("layers")),
        _ => return Err("DeepSpeed recomputes whole layers, all of them or none".to_owned()),
    }
    let precision = facts.text("precision").unwrap_or("bf16").to_owned();
    if precision == "fp8" {
        return Err("DeepSpeed's file has no fp8".to_owned());
    }
    facts.set("deepspeed_bf16", precision == "bf16");
    facts.set("deepspeed_fp16", precision == "fp16");
    let bytes = facts
        .text("gradient_bytes")
        .and_then(|text| text.parse::<f64>().ok());
    let width = match bytes {
        Some(bytes) if bytes > 2.0 => "4",
        _ if precision == "fp16" => "2.0",
        _ => "2",
    };
    facts.set("deepspeed_gradients", width);
    Ok(())
}

/// `stage` of an "auto" is left to the trainer.
fn neutral(settings: &Settings, facts: &mut Facts) {
    facts.note(
        "tensor_parallel",
        facts.number("deepspeed_tensor").or(Some(1)),
    );
    let is_full = settings.below("activation_checkpointing.").next().is_some();
    facts.note("checkpointing", Some(if is_full { "full" } else { "none" }));
    for column in ["pipeline_parallel", "context_parallel", "virtual_stages"] {
        facts.note(column, Some(1));
    }
    facts.note("sequence_parallel", Some(false));
    let precision = match () {
        () if facts.is_on("deepspeed_bf16") => Some("bf16"),
        () if facts.is_on("deepspeed_fp16") => Some("fp16"),
        () => None,
    };
    facts.note("precision", precision);
    let bytes = facts
        .text("deepspeed_gradients")
        .map(|width| width.trim_end_matches(".0").to_owned());
    facts.note("gradient_bytes", bytes);
    batches(facts);
}

/// The batch is the product of replicas, micro-batch and accumulation: two of them and the replicas say the third.
pub(super) fn batches(facts: &mut Facts) {
    if facts
        .number("deepspeed_ulysses")
        .is_some_and(|degree| degree > 1)
    {
        facts.problems.push(Problem {
            rule: "not_modelled",
            message: "Ulysses sequence parallelism is not modelled".to_owned(),
            repair: "predictions are for sequence_parallel_size = 1".to_owned(),
            source: "DeepSpeed, `runtime/config.py`",
            column: "deepspeed_ulysses",
        });
    }
    let [batch, micro, accumulation] =
        ["global_batch", "micro_batch", "accumulation"].map(|column| facts.number(column));
    let each = micro
        .zip(accumulation)
        .map(|(micro, accumulation)| micro.saturating_mul(accumulation));
    if let Some((batch, each)) = batch.zip(each).filter(|(_, each)| *each > 0) {
        if batch.is_multiple_of(each) {
            facts.note("data_parallel", Some(batch / each));
        } else {
            facts.problems.push(Problem {
                rule: Rule::GlobalBatchDivisible.as_str(),
                message: format!(
                    "a batch of {batch} is not a multiple of micro-batch x accumulation, {each}"
                ),
                repair: format!("train_batch_size = {}", batch.next_multiple_of(each)),
                source: "DeepSpeed, `runtime/config.py`: `_batch_assertion`",
                column: "global_batch",
            });
        }
    }
}
