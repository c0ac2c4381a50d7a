//! LLaMA-Factory's YAML with DeepSpeed's settings in it (`src/llamafactory/hparams/`, 0.9). It recomputes
//! unless told otherwise.

use super::deepspeed;
use crate::launch::dialect::{
    Dialect, Launcher, Limits, Syntax, always, number, release, switch, text, words,
};
use crate::launch::facts::Facts;

const LIMITS: Limits = deepspeed::LIMITS.further(&[
    ("tensor_parallel", "1"),
    ("attention_kernel", "torch flash-attention-2"),
]);

pub(super) const DIALECT: Dialect = Dialect {
    name: "llama-factory",
    title: "LLaMA-Factory",
    releases: &[release("0.9.4"), release("0.9.3"), release("main")],
    framework: "deepspeed",
    limits: &[LIMITS],
    syntax: Syntax::Yaml,
    signs: "model_name_or_path|cutoff_len|finetuning_type|per_device_train_batch_size",
    rows: &[
        text("model_name_or_path", "model"),
        always("stage", "sft"),
        text("finetuning_type", "factory_tuning").or("lora"),
        number("per_device_train_batch_size", "micro_batch").or("8"),
        number("gradient_accumulation_steps", "accumulation").or("1"),
        number("cutoff_len", "seq_len").or("2048"),
        switch("packing", "factory_packing"),
        switch("disable_gradient_checkpointing", "factory_keeps"),
        words(
            "flash_attn",
            "factory_attention",
            &[
                ("flash", "fa2"),
                ("torch", "disabled"),
                ("sdpa", "sdpa"),
                ("auto", "auto"),
            ],
        )
        .or("auto"),
        switch("bf16", "factory_bf16"),
        switch("fp16", "factory_fp16"),
        words(
            "deepspeed.zero_optimization.stage",
            "sharding",
            deepspeed::ZERO_STAGES,
        ),
        text("deepspeed.train_batch_size", "factory_batch"),
        text("deepspeed.train_micro_batch_size_per_gpu", "factory_micro"),
        text(
            "deepspeed.gradient_accumulation_steps",
            "factory_accumulation",
        ),
        switch("deepspeed.bf16.enabled", "factory_engine_bf16"),
        switch("deepspeed.fp16.enabled", "factory_engine_fp16"),
        text("deepspeed", "factory_file"),
    ],
    own,
    neutral: |_, facts| {
        let file = facts.text("factory_file").unwrap_or_default().to_owned();
        let stages = [
            ("z0", "zero-0"),
            ("z1", "zero-1"),
            ("z2", "zero-2"),
            ("z3", "zero-3"),
        ];
        let stage = stages.iter().find(|(name, _)| file.contains(name));
        facts.note("sharding", stage.map(|(_, stage)| *stage));
        if facts
            .text("factory_tuning")
            .is_some_and(|kind| kind != "full")
        {
            facts.note("adapter", facts.text("factory_tuning").map(str::to_owned));
        }
        let keeps = facts.is_on("factory_keeps");
        facts.note("checkpointing", Some(if keeps { "none" } else { "full" }));
        for column in [
            "tensor_parallel",
            "pipeline_parallel",
            "context_parallel",
            "virtual_stages",
        ] {
            facts.note(column, Some(1));
        }
        facts.note("sequence_parallel", Some(false));
        let kernel = match facts.text("factory_attention") {
            Some("flash") => Some("flash-attention-2"),
            Some("torch") => Some("torch"),
            _ => None,
        };
        facts.note("attention_kernel", kernel);
        let precision = match () {
            () if facts.is_on("factory_bf16") => "bf16",
            () if facts.is_on("factory_fp16") => "fp16",
            () => "fp32",
        };
        facts.note("precision", Some(precision));
    },
    remarks: |_| {
        vec![
            "Put the path of the model in place of `model_name_or_path`, and add your data set, template and \
             learning rate. Dropout and rotary embedding come with the model; gradients are reduced in the \
             format of the weights."
                .to_owned(),
        ]
    },
    launcher: Launcher::Command(
        "FORCE_TORCHRUN=1 NNODES={nodes} NPROC_PER_NODE={per_node} NODE_RANK=${NODE_RANK:-0} llamafactory-cli train {file}",
    ),
    source: "LLaMA-Factory, `hparams/model_args.py`, `hparams/finetuning_args.py`",
};

fn own(facts: &mut Facts) -> Result<(), String> {
    facts.set("factory_tuning", "full");
    facts.set("factory_packing", true);
    match facts.text("checkpointing") {
        Some("none") => facts.set("factory_keeps", true),
        Some("full") => facts.set("factory_keeps", false),
        _ => return Err("LLaMA-Factory recomputes whole layers, all of them or none".to_owned()),
    }
    let kernel = match facts.text("attention_kernel") {
        Some("flash-attention-2") => "flash",
        _ => "torch",
    };
    facts.set("factory_attention", kernel);
    let precision = facts.text("precision").unwrap_or("bf16").to_owned();
    if precision == "fp8" {
        return Err("fp8 is not written for LLaMA-Factory".to_owned());
    }
    for column in ["factory_bf16", "factory_engine_bf16"] {
        facts.set(column, precision == "bf16");
    }
    for column in ["factory_fp16", "factory_engine_fp16"] {
        facts.set(column, precision == "fp16");
    }
    for column in ["factory_batch", "factory_micro", "factory_accumulation"] {
        facts.set(column, "auto");
    }
    Ok(())
}
