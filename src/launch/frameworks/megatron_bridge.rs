//! Megatron-Bridge and `NeMo`: assignments to a recipe's configuration (`megatron/bridge/training/config.py`,
//! `models/gpt_provider.py`).

use super::{megatron, megatron_lm};
use crate::launch::dialect::{Dialect, Launcher, Syntax, number, release, switch, text, words};
use crate::launch::facts::Facts;

pub(super) const DIALECT: Dialect = Dialect {
    name: "megatron-bridge",
    title: "Megatron-Bridge",
    releases: &[release("main"), release("v0.2.0"), release("v0.1.0")],
    framework: "megatron-lm",
    limits: megatron_lm::LIMITS,
    syntax: Syntax::Overrides,
    signs: "model.tensor_model_parallel_size|model.pipeline_model_parallel_size|train.micro_batch_size|\
        model.context_parallel_size|model.recompute_granularity",
    rows: &[
        number("model.tensor_model_parallel_size", "tensor_parallel"),
        number("model.pipeline_model_parallel_size", "pipeline_parallel"),
        number(
            "model.virtual_pipeline_model_parallel_size",
            "megatron_chunks",
        ),
        number("model.context_parallel_size", "context_parallel"),
        number("model.expert_model_parallel_size", "expert_parallel"),
        switch("model.sequence_parallel", "sequence_parallel"),
        text("model.pipeline_model_parallel_layout", "megatron_layout"),
        number("model.num_layers_in_first_pipeline_stage", "megatron_first"),
        number("model.num_layers_in_last_pipeline_stage", "megatron_last"),
        switch(
            "model.account_for_embedding_in_pipeline_split",
            "megatron_embedding_counts",
        ),
        switch(
            "model.account_for_loss_in_pipeline_split",
            "megatron_loss_counts",
        ),
        number("model.microbatch_group_size_per_vp_stage", "megatron_group"),
        words(
            "model.recompute_granularity",
            "megatron_granularity",
            &[("full", "full"), ("selective", "selective")],
        ),
        text(
            "model.recompute_modules|model.recompute_modules.0",
            "megatron_modules",
        ),
        text("model.recompute_method", "megatron_method"),
        number("model.recompute_num_layers", "megatron_recompute_layers"),
        number("model.seq_length", "seq_len"),
        number("train.micro_batch_size", "micro_batch"),
        number("train.global_batch_size", "global_batch"),
        switch("ddp.use_distributed_optimizer", "megatron_distributed").or("true"),
        switch("ddp.overlap_grad_reduce", "megatron_overlap_reduce").or("true"),
        switch("ddp.overlap_param_gather", "megatron_overlap_gather").or("true"),
        switch("ddp.use_megatron_fsdp", "megatron_fsdp"),
        text("ddp.data_parallel_sharding_strategy", "megatron_strategy"),
        number("ddp.num_distributed_optimizer_instances", "copies"),
        text("ddp.outer_dp_sharding_strategy", "megatron_outer"),
        switch("ddp.grad_reduce_in_fp32", "bridge_wide")
            .or("true")
            .numeric(),
        words(
            "mixed_precision",
            "precision",
            &[
                ("bf16", "bf16_mixed"),
                ("fp16", "fp16_mixed"),
                ("fp8", "bf16_with_fp8_delayed_scaling_mixed"),
            ],
        )
        .or("bf16_mixed")
        .numeric(),
        switch("model.cross_entropy_loss_fusion", "fused_loss")
            .or("true")
            .numeric(),
        text("model.hidden_dropout", "hidden_dropout")
            .or("0")
            .numeric(),
        text("model.attention_dropout", "attention_dropout")
            .or("0")
            .numeric(),
        number("model.make_vocab_size_divisible_by", "vocabulary_multiple").or("128"),
    ],
    own,
    neutral: |_, facts| {
        if let Some(wide) = facts.text("bridge_wide") {
            let bytes = if wide == "true" { 4 } else { 2 };
            facts.note("gradient_bytes", Some(bytes));
        }
        megatron::neutral(facts);
    },
    remarks: |facts| {
        vec![format!(
            "Put these after the recipe of {}, whose shape, rotary embedding and norms they leave as they are.",
            facts.text("model").unwrap_or("the network")
        )]
    },
    launcher: Launcher::Torchrun("RECIPE.py"),
    source: "Megatron-Bridge, `training/config.py`, `models/gpt_provider.py`",
};

fn own(facts: &mut Facts) -> Result<(), String> {
    let narrow = facts
        .text("gradient_bytes")
        .and_then(|text| text.parse::<f64>().ok());
    facts.set("bridge_wide", narrow.is_none_or(|bytes| bytes > 2.0));
    megatron::own(facts)?;
    let chunks = facts.number("virtual_stages").filter(|&chunks| chunks > 1);
    // A layout string needs them too.
    if facts.text("megatron_layout").is_some() {
        facts.note("megatron_chunks", chunks);
    }
    Ok(())
}
