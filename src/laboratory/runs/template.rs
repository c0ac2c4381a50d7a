//! A file of runs to fill in.

/// Columns that describe a run, with those of a made-up one. Without an end and measurements it teaches
/// nothing where it is left in.
const COLUMNS: [(&str, &str); 23] = [
    ("run", "example"),
    ("framework", "megatron-lm"),
    ("model", "llama-3.1-8b"),
    ("gpu", "h100-80gb"),
    ("gpus", "16"),
    ("gpus_per_node", "8"),
    ("seq_len", "8192"),
    ("global_batch", "128"),
    ("micro_batch", "1"),
    ("tensor_parallel", "2"),
    ("pipeline_parallel", "2"),
    ("data_parallel", "4"),
    ("context_parallel", "1"),
    ("virtual_stages", "1"),
    ("sequence_parallel", "true"),
    ("checkpointing", "none"),
    ("sharding", "zero-1"),
    ("precision", "bf16"),
    ("gradient_bytes", "4"),
    ("attention_kernel", "flash-attention-2"),
    ("status", ""),
    ("step_time_s", ""),
    ("peak_memory_gib", ""),
];

/// A header and one row, as comma-separated values: the columns that a calibration reads. The name of
/// a preset in `model` stands for the shape of the network.
#[must_use]
pub fn template() -> String {
    let names = COLUMNS.map(|(name, _)| name).join(",");
    let example = COLUMNS.map(|(_, value)| value).join(",");
    format!("{names}\n{example}\n")
}
