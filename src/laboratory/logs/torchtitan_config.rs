//! torchtitan's configuration by dotted path; older versions name batches and degrees otherwise.

use super::facts::Facts;
use super::settings::Settings;

const LOCAL_BATCH: &str = "training.local_batch_size|training.batch_size";
const STAGES: &str = "pipeline_parallel_degree";
const SHARDS: &str = "data_parallel_shard_degree";

/// What the configuration says; nothing where it is none.
pub(super) fn facts(settings: &Settings) -> Facts {
    let degree = |name: &str| settings.number(&in_sections(name));
    if settings.text(LOCAL_BATCH).is_none() && degree(STAGES).or(degree(SHARDS)).is_none() {
        return Facts::default();
    }
    let local = settings.number(LOCAL_BATCH);
    let micro_batch = match degree(STAGES) {
        Some(2..) => degree("pipeline_parallel_microbatch_size").or(Some(1)),
        _ => local,
    };
    let model = settings.text("model.flavor").map(|flavor| {
        let family = settings.text("model.name").unwrap_or_default();
        format!("{family} {flavor}")
    });
    let recomputed = settings.text("activation_checkpoint.mode");
    let recomputed = recomputed.or_else(|| {
        let usual = settings.is_usual("activation_checkpoint.mode");
        usual.then_some("none")
    });
    let usually_one = |name: &str| settings.usually(&in_sections(name), 1);
    Facts::default()
        .with("model", model)
        .with("tensor_parallel", usually_one("tensor_parallel_degree"))
        .with("pipeline_parallel", usually_one(STAGES))
        .with("context_parallel", usually_one("context_parallel_degree"))
        // Tensor parallelism always splits the sequence.
        .with("sequence_parallel", Some(true))
        .with("sharding", Some(sharding(settings)))
        .with("seq_len", settings.number("training.seq_len"))
        .with(
            "global_batch",
            settings.number("training.global_batch_size"),
        )
        // Without a global batch a step is one local batch on each replica.
        .with(
            "accumulation",
            local
                .zip(micro_batch)
                .and_then(|(local, micro)| Some(local.checked_div(micro)?.max(1))),
        )
        .with("micro_batch", micro_batch)
        .with("checkpointing", recomputed.map(str::to_ascii_lowercase))
        .with("precision", Some("bf16"))
}

/// The keys of a degree in the sections that versions keep it in.
fn in_sections(name: &str) -> String {
    ["parallelism", "training", "experimental"]
        .map(|section| format!("{section}.{name}"))
        .join("|")
}

/// -1 shards ("the rest") are no number.
fn sharding(settings: &Settings) -> &'static str {
    let degree = |name: &str| settings.number(&in_sections(name));
    let replicas = degree("data_parallel_replicate_degree").unwrap_or(1);
    let gathered_once = settings.text("parallelism.fsdp_reshard_after_forward") == Some("never");
    match (replicas, degree(SHARDS)) {
        (_, Some(1)) => "zero-0",
        (1, _) if gathered_once => "zero-2",
        (1, _) => "zero-3",
        _ => "hsdp",
    }
}
