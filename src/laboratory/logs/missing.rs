//! What must be known of a job before its log is a run.

use super::facts::Facts;

/// Something that must be known and is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// What it is, and why it is unknown, for people.
    pub what: String,
    /// The argument of the command line that states it.
    pub flag: &'static str,
}

/// What must be known, the columns that say it, the argument of the command line that states it, and
/// the flags of scripts that do, without sections.
const NEEDED: [(&str, &str, &str, &str); 10] = [
    (
        "the network",
        "layers hidden heads ffn",
        "`--model`",
        "num_layers hidden_size ffn_hidden_size num_attention_heads",
    ),
    (
        "the key-value heads",
        "kv_heads",
        "`--model`",
        "num_query_groups",
    ),
    (
        "the number of GPUs",
        "gpus",
        "`--gpus`",
        "world_size nnodes nodes nproc_per_node gpus_per_node",
    ),
    (
        "the sequence length",
        "seq_len",
        "`--sequence-length`",
        "seq_length seq_len",
    ),
    (
        "the global batch",
        "global_batch",
        "`--global-batch`",
        "global_batch_size local_batch_size",
    ),
    (
        "the micro-batch",
        "micro_batch",
        "`--layout micro_batch=…`",
        "micro_batch_size local_batch_size",
    ),
    (
        "the tensor-parallel degree",
        "tensor_parallel",
        "`--layout tensor_parallel=…`",
        "tensor_model_parallel_size tensor_parallel_degree",
    ),
    (
        "the pipeline stages",
        "pipeline_parallel",
        "`--layout pipeline_parallel=…`",
        "pipeline_model_parallel_size pipeline_parallel_degree",
    ),
    (
        "the context-parallel degree",
        "context_parallel",
        "`--layout context_parallel=…`",
        "context_parallel_size context_parallel_degree",
    ),
    (
        "what is recomputed",
        "checkpointing",
        "`--layout checkpointing=…`",
        "recompute_granularity mode",
    ),
];

/// Columns for which the usual value stands in unless a script states another.
const USUAL: [&str; 3] = ["kv_heads", "context_parallel", "checkpointing"];

/// What must be known of the job and is not. A flag of a script whose value nobody knows is named.
pub(super) fn missing(facts: &Facts) -> Vec<Missing> {
    let absent = NEEDED.iter().filter(|(_, columns, ..)| {
        let mut columns = columns.split(' ');
        columns.any(|column| facts.text(column).is_none())
    });
    let missing = absent.filter_map(|&(what, columns, flag, arguments)| {
        let stated = facts.unset.iter().find(|(name, _)| {
            let name = name.rsplit('.').next();
            arguments.split(' ').any(|argument| Some(argument) == name)
        });
        if stated.is_none() && USUAL.contains(&columns) {
            return None;
        }
        let because = stated.map_or(String::new(), |(name, value)| {
            let name = name.replace('_', "-");
            format!(" (the launch file has `--{name} {value}`, whose value it does not state)")
        });
        Some(Missing {
            what: format!("{what}{because}"),
            flag,
        })
    });
    missing.collect()
}
