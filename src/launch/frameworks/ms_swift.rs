//! `megatron sft` and `megatron pt` of ms-swift: Megatron-LM's names with underscores, each with a value
//! (`docs/source_en/Megatron-SWIFT/Command-line-parameters.md`, 3.11). The shape of the network comes with
//! `--model`.

use super::megatron;
use crate::framework::CheckpointRule;
use crate::launch::dialect::{
    Dialect, Launcher, Limits, Syntax, always, number, release, switch, text, words,
};
use crate::launch::facts::Facts;

/// Megatron-FSDP is not among its arguments.
const LIMITS: &[Limits] = &[
    LIMITED,
    Limits {
        checkpointing: Some(CheckpointRule::AllOrNothing),
        ..LIMITED
    },
];
const LIMITED: Limits = Limits {
    values: &[("rmsnorm_kernel", "fused"), ("sharding", "zero-0 zero-1")],
    ..Limits::NONE
};

pub(super) const DIALECT: Dialect = Dialect {
    name: "ms-swift",
    title: "ms-swift",
    releases: &[release("3.11"), release("3.10"), release("3.9")],
    framework: "megatron-lm",
    limits: LIMITS,
    syntax: Syntax::ValuedFlags,
    signs: "max_length|load_safetensors|mcore_model|padding_free",
    rows: &[
        text("model|load", "model"),
        number("tensor_model_parallel_size", "tensor_parallel").or("1"),
        number("pipeline_model_parallel_size", "pipeline_parallel").or("1"),
        number("context_parallel_size", "context_parallel").or("1"),
        number("expert_model_parallel_size", "expert_parallel").or("1"),
        switch("sequence_parallel", "sequence_parallel"),
        text("pipeline_model_parallel_layout", "megatron_layout"),
        number("virtual_pipeline_model_parallel_size", "megatron_chunks"),
        number("num_layers_per_virtual_pipeline_stage", "chunk_layers"),
        number("decoder_first_pipeline_num_layers", "megatron_first"),
        number("decoder_last_pipeline_num_layers", "megatron_last"),
        switch(
            "account_for_embedding_in_pipeline_split",
            "megatron_embedding_counts",
        ),
        switch("account_for_loss_in_pipeline_split", "megatron_loss_counts"),
        number("microbatch_group_size_per_vp_stage", "megatron_group"),
        number("micro_batch_size", "micro_batch").or("1"),
        number("global_batch_size", "global_batch").or("16"),
        number("max_length", "seq_len"),
        // Its default is selective, Megatron-LM's is none.
        words(
            "recompute_granularity",
            "megatron_granularity",
            &[
                ("full", "full"),
                ("selective", "selective"),
                ("none", "none"),
            ],
        )
        .or("selective"),
        text("recompute_modules", "megatron_modules"),
        text("recompute_method", "megatron_method"),
        number("recompute_num_layers", "megatron_recompute_layers"),
        switch("use_distributed_optimizer", "megatron_distributed").or("true"),
        switch("overlap_grad_reduce", "megatron_overlap_reduce"),
        switch("overlap_param_gather", "megatron_overlap_gather"),
        words(
            "torch_dtype",
            "precision",
            &[
                ("bf16", "bfloat16"),
                ("fp16", "float16"),
                ("fp32", "float32"),
            ],
        )
        .or("bfloat16"),
        switch("accumulate_allreduce_grads_in_fp32", "swift_wide")
            .or("true")
            .numeric(),
        switch("grad_reduce_in_bf16", "swift_narrow").numeric(),
        switch("cross_entropy_loss_fusion", "fused_loss").numeric(),
        text("attention_dropout", "attention_dropout")
            .or("0")
            .numeric(),
        text("hidden_dropout", "hidden_dropout").or("0").numeric(),
        always("padding_free", "false"),
    ],
    own,
    neutral: |_, facts| {
        let bytes = if facts.is_on("swift_narrow") { 2 } else { 4 };
        facts.note("gradient_bytes", Some(bytes));
        megatron::neutral(facts);
    },
    remarks: |facts| {
        vec![format!(
            "Put the path of {} in place of `--model`: its shape and numbers come with it. Add your data.",
            facts.text("model").unwrap_or("the network")
        )]
    },
    launcher: Launcher::Command(
        "NNODES={nodes} NPROC_PER_NODE={per_node} NODE_RANK=${NODE_RANK:-0} megatron sft",
    ),
    source: "ms-swift 3.11, `Megatron-SWIFT/Command-line-parameters.md`",
};

fn own(facts: &mut Facts) -> Result<(), String> {
    if !matches!(facts.text("sharding"), Some("zero-0" | "zero-1")) {
        return Err("ms-swift shards optimizer states (`zero-1`) or nothing".to_owned());
    }
    let bytes = facts
        .text("gradient_bytes")
        .and_then(|text| text.parse::<f64>().ok());
    let is_wide = bytes.is_none_or(|bytes| bytes > 2.0);
    facts.set("swift_wide", is_wide);
    facts.set("swift_narrow", !is_wide);
    megatron::own(facts)?;
    facts.note("megatron_granularity", Some("none"));
    Ok(())
}
