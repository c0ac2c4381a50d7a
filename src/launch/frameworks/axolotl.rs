//! Axolotl's YAML (`src/axolotl/utils/schemas/`, 0.13). The shape of the network comes with `base_model`.

use super::fsdp;
use crate::launch::dialect::{Dialect, Launcher, Syntax, always, number, release, switch, text};
use crate::launch::facts::Facts;

pub(super) const DIALECT: Dialect = Dialect {
    name: "axolotl",
    title: "Axolotl",
    releases: &[release("0.13"), release("0.12"), release("main")],
    framework: "fsdp",
    limits: fsdp::LIMITS,
    syntax: Syntax::Yaml,
    signs: "base_model|dp_shard_size|sequence_len",
    rows: &[
        text("base_model", "model"),
        number("dp_shard_size", "fsdp_shards"),
        number("dp_replicate_size", "fsdp_copies").or("1"),
        number("tensor_parallel_size", "tensor_parallel").or("1"),
        number(
            "context_parallel_size|sequence_parallel_degree",
            "context_parallel",
        )
        .or("1"),
        number("expert_parallel_size", "experts_apart"),
        number("fsdp_version", "axolotl_version"),
        switch(
            "fsdp_config.reshard_after_forward|fsdp_config.fsdp_reshard_after_forward",
            "fsdp_reshard",
        )
        .or("true"),
        text(
            "fsdp_config.auto_wrap_policy|fsdp_config.fsdp_auto_wrap_policy",
            "axolotl_wrap",
        ),
        number("micro_batch_size", "micro_batch").or("1"),
        number("gradient_accumulation_steps", "accumulation").or("1"),
        number("sequence_len", "seq_len").or("512"),
        switch("sample_packing", "axolotl_packing"),
        switch("pad_to_sequence_len", "axolotl_padded"),
        switch("gradient_checkpointing", "fsdp_checkpointing"),
        switch("bf16|bfloat16", "axolotl_bf16"),
        switch("fp16|float16", "axolotl_fp16"),
        switch("flash_attention", "axolotl_flash"),
        text("adapter", "adapter"),
        text("deepspeed", "axolotl_deepspeed"),
        always("strict", "false"),
    ],
    own,
    neutral: |_, facts| {
        let precision = match () {
            () if facts.is_on("axolotl_bf16") || facts.text("axolotl_bf16").is_none() => "bf16",
            () if facts.is_on("axolotl_fp16") => "fp16",
            () => "fp32",
        };
        facts.note("precision", Some(precision));
        let file = facts
            .text("axolotl_deepspeed")
            .unwrap_or_default()
            .to_owned();
        let stages = ["zero1", "zero2", "zero3"]
            .into_iter()
            .zip(["zero-1", "zero-2", "zero-3"]);
        let stage = stages.into_iter().find(|(name, _)| file.contains(name));
        facts.note("sharding", stage.map(|(_, stage)| stage));
        if facts.number("axolotl_version").is_some() || facts.text("axolotl_wrap").is_some() {
            facts.note("fsdp_is_on", Some(true));
        }
        facts.note(
            "attention_kernel",
            facts.is_on("axolotl_flash").then_some("flash-attention-2"),
        );
        fsdp::neutral(facts);
    },
    remarks: |_| {
        vec![
            "Put the path of the model in place of `base_model`, and add your data and learning rate. Dropout \
             and rotary embedding come with the model; gradients are reduced in the format of the weights."
                .to_owned(),
        ]
    },
    launcher: Launcher::Torchrun("-m axolotl.cli.train {file}"),
    source: "Axolotl, `utils/schemas/config.py`, `utils/schemas/validation.py`",
};

fn own(facts: &mut Facts) -> Result<(), String> {
    fsdp::own(facts)?;
    if facts.is_on("fsdp_is_on") {
        facts.set("axolotl_version", 2);
        facts.set("axolotl_wrap", "TRANSFORMER_BASED_WRAP");
    }
    facts.set("axolotl_packing", true);
    facts.set("axolotl_padded", true);
    let is_fp16 = facts.text("precision") == Some("fp16");
    facts.set("axolotl_bf16", !is_fp16);
    facts.set("axolotl_fp16", is_fp16);
    facts.set(
        "axolotl_flash",
        facts.text("attention_kernel") == Some("flash-attention-2"),
    );
    Ok(())
}
