//! What Axolotl and Accelerate have in common: PyTorch's FSDP2 in a mesh of replicas, shards, context and
//! tensor parallelism (Accelerate, `parallelism_config.py`).

use crate::framework::CheckpointRule;
use crate::launch::dialect::Limits;
use crate::launch::facts::{Facts, Problem};
use crate::rules::Rule;

const SOURCE: &str = "Accelerate, `parallelism_config.py`";

/// Replicas without shards come alone.
pub(super) const LIMITS: &[Limits] = &[LIMITED, LIMITED.further(&[("sharding", "zero-2 zero-3")])];
const LIMITED: Limits = Limits {
    values: &[
        ("pipeline_parallel", "1"),
        ("virtual_stages", "1"),
        ("sequence_parallel", "off"),
        ("checkpointing", "none full"),
        ("schedule", "1f1b"),
        (
            "attention_kernel",
            "torch flash-attention-2 flash-attention-3",
        ),
    ],
    checkpointing: Some(CheckpointRule::AllOrNothing),
    ..Limits::NONE
};

/// Adds the degrees of the mesh, and whether weights are gathered again for the backward pass.
pub(super) fn own(facts: &mut Facts) -> Result<(), String> {
    let replicas = facts.one("data_parallel");
    let (copies, shards, reshard) = match facts.text("sharding") {
        Some("zero-0") => (replicas, 1, None),
        Some("zero-2") => (1, replicas, Some(false)),
        Some("zero-3") => (1, replicas, Some(true)),
        Some("hsdp") => {
            let copies = facts.one("copies");
            (copies, replicas / copies, Some(true))
        }
        other => {
            return Err(format!(
                "FSDP2 has no {}: it shards weights, gradients and optimizer states (`zero-3`, `hsdp`), keeps \
                 weights gathered (`zero-2`), or shards nothing (`zero-0`)",
                other.unwrap_or("such sharding")
            ));
        }
    };
    let others = facts.one("tensor_parallel") * facts.one("context_parallel");
    if copies > 1 && shards == 1 && others > 1 {
        return Err(
            "replicas without shards come without tensor and context parallelism".to_owned(),
        );
    }
    facts.set("fsdp_copies", copies);
    facts.set("fsdp_shards", shards);
    facts.note("fsdp_reshard", reshard);
    facts.set("fsdp_is_on", shards > 1);
    match facts.text("checkpointing") {
        Some("none") => facts.set("fsdp_checkpointing", false),
        Some("full") => facts.set("fsdp_checkpointing", true),
        _ => return Err("it recomputes whole layers, all of them or none".to_owned()),
    }
    if facts.text("precision") == Some("fp8") {
        return Err("fp8 is not written".to_owned());
    }
    Ok(())
}

/// Adds what the mesh says of a layout.
pub(super) fn neutral(facts: &mut Facts) {
    let [copies, shards] = ["fsdp_copies", "fsdp_shards"].map(|column| facts.number(column));
    let gpus = facts.number("gpus");
    let others = facts.one("tensor_parallel") * facts.one("context_parallel");
    let sharding = match (copies.unwrap_or(1), shards, facts.text("fsdp_reshard")) {
        (_, Some(1), _) => "zero-0",
        (1, None, None) if !facts.is_on("fsdp_is_on") => "zero-0",
        (1, _, Some("false")) => "zero-2",
        (1, ..) => "zero-3",
        _ => "hsdp",
    };
    facts.note("sharding", Some(sharding));
    let replicas = shards.map(|shards| shards.saturating_mul(copies.unwrap_or(1)));
    facts.note("data_parallel", replicas);
    facts.note(
        "gpus",
        replicas.map(|replicas| replicas.saturating_mul(others)),
    );
    if copies.unwrap_or(1) > 1 && shards == Some(1) && others > 1 {
        facts.problems.push(Problem {
            rule: Rule::FrameworkSupports.as_str(),
            message: "tensor or context parallelism with replicas needs several shards".to_owned(),
            repair: "set the shard size to 2 or more, or tensor and context parallelism to 1"
                .to_owned(),
            source: SOURCE,
            column: "fsdp_shards",
        });
    }
    let mesh = replicas.map(|replicas| replicas.saturating_mul(others));
    if let Some((gpus, mesh)) = gpus.zip(mesh).filter(|(gpus, mesh)| gpus != mesh) {
        facts.problems.push(Problem {
            rule: Rule::GpuCount.as_str(),
            message: format!("the sizes of the mesh multiply to {mesh}, the job has {gpus} GPUs"),
            repair: format!("make replicas x shards x context x tensor {gpus}"),
            source: SOURCE,
            column: "fsdp_shards",
        });
    }
    let checkpointing = facts.is_on("fsdp_checkpointing");
    facts.note(
        "checkpointing",
        Some(if checkpointing { "full" } else { "none" }),
    );
    for column in ["pipeline_parallel", "virtual_stages"] {
        facts.note(column, Some(1));
    }
    facts.note("sequence_parallel", Some(false));
}
