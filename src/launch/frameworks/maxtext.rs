//! `MaxText`'s YAML, which is laid over `base.yml` (`src/MaxText/configs/base.yml`, 2026). `ici_*` is what lies within a
//! node or slice, `dcn_*` what goes across. Its circular pipeline is not modelled.

use crate::framework::CheckpointRule;
use crate::launch::dialect::{
    Dialect, Launcher, Limits, Syntax, always, number, release, text, words,
};
use crate::launch::facts::Facts;
use crate::launch::settings::Settings;

pub(super) const DIALECT: Dialect = Dialect {
    name: "maxtext",
    title: "MaxText",
    releases: &[release("main")],
    framework: "fsdp",
    limits: &[Limits {
        values: &[
            ("pipeline_parallel", "1"),
            ("virtual_stages", "1"),
            ("sequence_parallel", "off"),
            ("sharding", "zero-0 zero-3 hsdp"),
            ("checkpointing", "none full"),
            ("schedule", "1f1b"),
            ("attention_kernel", "cudnn"),
        ],
        checkpointing: Some(CheckpointRule::AllOrNothing),
        ..Limits::NONE
    }],
    syntax: Syntax::Yaml,
    signs: "ici_fsdp_parallelism|ici_tensor_parallelism|ici_data_parallelism|dcn_data_parallelism|dcn_fsdp_parallelism",
    rows: &[
        number("ici_data_parallelism", "max_data_inside").or("1"),
        number("ici_fsdp_parallelism", "max_shards_inside"),
        number("ici_tensor_parallelism", "max_tensor_inside").or("1"),
        number("ici_context_parallelism", "max_context_inside").or("1"),
        number("ici_pipeline_parallelism", "pipeline_parallel").or("1"),
        number("dcn_data_parallelism", "max_data_across"),
        number("dcn_fsdp_parallelism", "max_shards_across").or("1"),
        number("dcn_tensor_parallelism", "max_tensor_across").or("1"),
        number("dcn_context_parallelism", "max_context_across").or("1"),
        text("per_device_batch_size", "max_batch").or("12"),
        number("gradient_accumulation_steps", "accumulation").or("1"),
        number("max_target_length", "seq_len").or("2048"),
        words(
            "remat_policy",
            "checkpointing",
            &[
                ("full", "full"),
                ("none", "none"),
                ("other", "minimal"),
                ("other", "save_qkv_proj"),
            ],
        )
        .or("full"),
        words(
            "dtype",
            "precision",
            &[("bf16", "bfloat16"), ("fp32", "float32")],
        )
        .or("bfloat16"),
        words(
            "attention",
            "attention_kernel",
            &[("cudnn", "cudnn_flash_te")],
        ),
        text("model_name", "model").or("default"),
        text("dropout_rate", "hidden_dropout").or("0").numeric(),
        always("hardware", "gpu"),
    ],
    own,
    neutral,
    remarks: |_| {
        vec![
            "Put MaxText's own name of the network in place of `model_name`: it sets shape, norms and rotary \
             embedding. Memory and speed are predicted with the figures of PyTorch's FSDP, not with XLA's."
                .to_owned(),
        ]
    },
    launcher: Launcher::Command(
        "python3 -m MaxText.train {file} run_name=layout base_output_directory=OUTPUT",
    ),
    source: "MaxText, `configs/base.yml`",
};

/// A degree's part within a node and its part across, where the node holds `room` more.
fn split(degree: u64, room: &mut u64) -> (u64, u64) {
    let inside = (1..=degree.min(*room))
        .rev()
        .find(|part| degree.is_multiple_of(*part) && room.is_multiple_of(*part));
    let inside = inside.unwrap_or(1);
    *room /= inside;
    (inside, degree / inside)
}

fn own(facts: &mut Facts) -> Result<(), String> {
    let mut room = facts.one("gpus_per_node");
    let replicas = facts.one("data_parallel");
    let (copies, shards) = match facts.text("sharding") {
        Some("zero-0") => (replicas, 1),
        Some("zero-3") => (1, replicas),
        Some("hsdp") => (facts.one("copies"), replicas / facts.one("copies")),
        _ => {
            return Err(
                "MaxText shards everything (`zero-3`, `hsdp`) or nothing (`zero-0`)".to_owned(),
            );
        }
    };
    let tensor = split(facts.one("tensor_parallel"), &mut room);
    let context = split(facts.one("context_parallel"), &mut room);
    let shards = split(shards, &mut room);
    let copies = split(copies, &mut room);
    let columns = [
        ("max_tensor_inside", "max_tensor_across", tensor),
        ("max_context_inside", "max_context_across", context),
        ("max_shards_inside", "max_shards_across", shards),
        ("max_data_inside", "max_data_across", copies),
    ];
    for (inside, across, degrees) in columns {
        facts.set(inside, degrees.0);
        facts.set(across, degrees.1);
    }
    // The batch of a device is that of a replica over the ranks that share it.
    let sharing = facts.one("tensor_parallel") * facts.one("context_parallel");
    facts.set(
        "max_batch",
        facts.one("micro_batch") as f64 / sharing as f64,
    );
    Ok(())
}

fn neutral(_: &Settings, facts: &mut Facts) {
    let product = |inside: &str, across: &str| facts.one(inside).saturating_mul(facts.one(across));
    let tensor = product("max_tensor_inside", "max_tensor_across");
    let context = product("max_context_inside", "max_context_across");
    let is_given = facts.number("max_shards_inside").is_some();
    let shards = product("max_shards_inside", "max_shards_across");
    let copies = product("max_data_inside", "max_data_across");
    facts.note("tensor_parallel", Some(tensor));
    facts.note("context_parallel", Some(context));
    let sharding = match (copies, shards) {
        (_, 1) if is_given => "zero-0",
        (1, _) => "zero-3",
        _ => "hsdp",
    };
    facts.note("sharding", Some(sharding));
    let replicas = copies.saturating_mul(shards);
    facts.note("data_parallel", is_given.then_some(replicas));
    facts.note(
        "gpus",
        is_given.then(|| replicas.saturating_mul(tensor).saturating_mul(context)),
    );
    let batch = facts
        .text("max_batch")
        .and_then(|text| text.parse::<f64>().ok());
    let sharing = tensor.saturating_mul(context) as f64;
    let micro = batch
        .map(|batch| (batch * sharing).round() as u64)
        .filter(|&micro| micro > 0);
    facts.note("micro_batch", micro);
    facts.note("virtual_stages", Some(1));
    facts.note("sequence_parallel", Some(false));
}
