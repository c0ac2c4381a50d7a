//! The YAML of `accelerate launch`, which TRL uses (`parallelism_config.py`, `commands/config/`, 1.10). Micro-batch
//! and accumulation are arguments of the trainer.

use super::deepspeed;
use super::fsdp;
use crate::launch::dialect::{
    Dialect, Launcher, Syntax, always, number, release, switch, text, words,
};
use crate::launch::facts::Facts;

pub(super) const DIALECT: Dialect = Dialect {
    name: "accelerate",
    title: "Accelerate",
    releases: &[release("1.10"), release("1.11"), release("main")],
    framework: "fsdp",
    limits: fsdp::LIMITS,
    syntax: Syntax::Yaml,
    signs: "distributed_type|fsdp_config.fsdp_version|parallelism_config.parallelism_config_tp_size|num_processes",
    rows: &[
        always("compute_environment", "LOCAL_MACHINE"),
        text("distributed_type", "accelerate_type"),
        number("num_machines", "nodes"),
        number("num_processes", "gpus"),
        words(
            "mixed_precision",
            "precision",
            &[("bf16", "bf16"), ("fp16", "fp16"), ("fp32", "no")],
        )
        .or("no"),
        number(
            "parallelism_config.parallelism_config_dp_replicate_size",
            "fsdp_copies",
        )
        .or("1"),
        number(
            "parallelism_config.parallelism_config_dp_shard_size",
            "fsdp_shards",
        ),
        number(
            "parallelism_config.parallelism_config_cp_size",
            "context_parallel",
        )
        .or("1"),
        number(
            "parallelism_config.parallelism_config_tp_size",
            "tensor_parallel",
        )
        .or("1"),
        number("fsdp_config.fsdp_version", "accelerate_version"),
        text("fsdp_config.fsdp_reshard_after_forward", "fsdp_reshard"),
        text("fsdp_config.fsdp_sharding_strategy", "accelerate_strategy"),
        switch(
            "fsdp_config.fsdp_activation_checkpointing",
            "fsdp_checkpointing",
        ),
        text("fsdp_config.fsdp_auto_wrap_policy", "accelerate_wrap"),
        text("fsdp_config.fsdp_offload_params", "accelerate_offload"),
        words(
            "deepspeed_config.zero_stage",
            "sharding",
            deepspeed::ZERO_STAGES,
        ),
        number(
            "deepspeed_config.gradient_accumulation_steps",
            "accumulation",
        ),
        always("use_cpu", "false"),
    ],
    own,
    neutral: |_, facts| {
        let strategy = facts
            .text("accelerate_strategy")
            .unwrap_or_default()
            .to_owned();
        match strategy.as_str() {
            "FULL_SHARD" | "1" => facts.note("sharding", Some("zero-3")),
            "SHARD_GRAD_OP" | "2" => facts.note("sharding", Some("zero-2")),
            "HYBRID_SHARD" | "4" => facts.note("sharding", Some("hsdp")),
            "NO_SHARD" | "3" => facts.note("sharding", Some("zero-0")),
            _ => {}
        }
        if facts
            .text("accelerate_type")
            .is_some_and(|kind| kind.contains("FSDP"))
        {
            facts.note("fsdp_is_on", Some(true));
        }
        if let (Some(gpus), Some(nodes)) = (facts.number("gpus"), facts.number("nodes")) {
            facts.note("gpus_per_node", gpus.checked_div(nodes));
        }
        fsdp::neutral(facts);
    },
    remarks: |facts| {
        vec![format!(
            "The trainer takes `--per_device_train_batch_size {} --gradient_accumulation_steps {} --max_length {}`, \
             and the model with its dropout and rotary embedding.",
            facts.one("micro_batch"),
            facts.one("accumulation"),
            facts.one("seq_len"),
        )]
    },
    launcher: Launcher::Command(
        "accelerate launch --config_file {file} --machine_rank ${NODE_RANK:-0} --main_process_ip $MASTER_ADDR \
         PROGRAM.py --per_device_train_batch_size {micro_batch} --gradient_accumulation_steps {accumulation} \
         --max_length {sequence}",
    ),
    source: "Accelerate, `parallelism_config.py`, `utils/dataclasses.py`",
};

fn own(facts: &mut Facts) -> Result<(), String> {
    fsdp::own(facts)?;
    // An accumulation of its own belongs to DeepSpeed.
    for column in ["accumulation", "sharding"] {
        facts.take(column);
    }
    if facts.is_on("fsdp_is_on") {
        facts.set("accelerate_type", "FSDP");
        facts.set("accelerate_version", 2);
        facts.set("accelerate_wrap", "TRANSFORMER_BASED_WRAP");
        facts.set("accelerate_offload", false);
    } else {
        facts.set("accelerate_type", "MULTI_GPU");
        if facts.is_on("fsdp_checkpointing") {
            return Err("without FSDP its file turns no recomputation on".to_owned());
        }
        facts.take("fsdp_checkpointing");
    }
    Ok(())
}
