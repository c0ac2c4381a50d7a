//! What must be known of a job before its log is a run.

use crate::launch::Facts;

/// The flags that state virtual stages.
const VIRTUAL_STAGES: &str = "virtual_pipeline_model_parallel_size \
     num_virtual_stages_per_pipeline_rank num_layers_per_virtual_pipeline_stage";

/// What must be known, the columns that say it, and the flags of scripts that do, without sections.
const NEEDED: [(&str, &str, &str); 12] = [
    (
        "the network",
        "layers hidden heads ffn",
        "num_layers hidden_size ffn_hidden_size num_attention_heads",
    ),
    ("the key-value heads", "kv_heads", "num_query_groups"),
    (
        "the number of GPUs",
        "gpus",
        "world_size nnodes nodes nproc_per_node gpus_per_node",
    ),
    ("the sequence length", "seq_len", "seq_length seq_len"),
    (
        "the global batch",
        "global_batch",
        "global_batch_size local_batch_size",
    ),
    (
        "the micro-batch",
        "micro_batch",
        "micro_batch_size local_batch_size",
    ),
    (
        "the tensor-parallel degree",
        "tensor_parallel",
        "tensor_model_parallel_size tensor_parallel_degree",
    ),
    (
        "the pipeline stages",
        "pipeline_parallel",
        "pipeline_model_parallel_size pipeline_parallel_degree",
    ),
    (
        "the context-parallel degree",
        "context_parallel",
        "context_parallel_size context_parallel_degree",
    ),
    (
        "the expert-parallel degree",
        "expert_parallel",
        "expert_model_parallel_size",
    ),
    ("the virtual stages", "virtual_stages", VIRTUAL_STAGES),
    (
        "what is recomputed",
        "checkpointing",
        "recompute_granularity mode",
    ),
];

/// The argument of the command line that states a column.
fn flag(columns: &str) -> String {
    match columns {
        "layers hidden heads ffn" | "kv_heads" => "`--model`".to_owned(),
        "gpus" => "`--gpus`".to_owned(),
        "seq_len" => "`--sequence-length`".to_owned(),
        "global_batch" => "`--global-batch`".to_owned(),
        column => format!("`--layout {column}=…`"),
    }
}

/// Columns for which the usual value stands in unless a script states another.
const USUAL: [&str; 5] = [
    "kv_heads",
    "context_parallel",
    "expert_parallel",
    "virtual_stages",
    "checkpointing",
];

/// The flag among these, without sections, whose value a script does not state, with what it says.
fn unknown<'a>(facts: &'a Facts, flags: &str) -> Option<(&'a String, &'a String)> {
    facts.unset.iter().find(|(name, _)| {
        let name = name.rsplit('.').next();
        flags.split(' ').any(|flag| Some(flag) == name)
    })
}

/// What must be known of the job and is not, with the arguments of the command line that state it. A
/// flag of a script whose value nobody knows is named.
pub(super) fn missing(facts: &Facts) -> Option<(String, String)> {
    let absent = NEEDED.iter().filter(|(_, columns, ..)| {
        let mut columns = columns.split(' ');
        columns.any(|column| facts.text(column).is_none())
    });
    let missing = absent.filter_map(|&(what, columns, arguments)| {
        let stated = unknown(facts, arguments);
        if stated.is_none() && USUAL.contains(&columns) {
            return None;
        }
        let because = stated.map_or(String::new(), |(name, value)| {
            let name = name.replace('_', "-");
            format!(" (the launch file has `--{name} {value}`, whose value it does not state)")
        });
        Some((format!("{what}{because}"), flag(columns)))
    });
    let (whats, mut flags): (Vec<String>, Vec<String>) = missing.unzip();
    flags.dedup();
    (!whats.is_empty()).then(|| (whats.join(", "), flags.join(", ")))
}
