//! What must be known of a job before its log is a run.

use std::collections::BTreeMap;

use super::facts::Facts;

/// Something that must be known and is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// What it is, and why it is unknown, for people.
    pub what: String,
    /// The argument of the command line that states it.
    pub flag: &'static str,
}

/// Something that must be known.
struct Need {
    what: &'static str,
    /// Whether it is unknown.
    absent: bool,
    /// Whether it is missed at all where no script states it.
    strictness: Strictness,
    flag: &'static str,
    /// The flags of scripts that state it, without sections.
    arguments: &'static [&'static str],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Strictness {
    /// Nothing stands in for it.
    Always,
    /// The usual value stands in unless a script states another.
    WhereStated,
}

/// What must be known of the job and is not. A flag of a script whose value nobody knows is named.
pub(super) fn missing(facts: &Facts) -> Vec<Missing> {
    let none = BTreeMap::new();
    let unset = facts.unset.as_ref().unwrap_or(&none);
    let absent = needs(facts).into_iter().filter(|need| need.absent);
    absent
        .filter_map(|need| {
            let is_of = |name: &str| name.rsplit('.').next().unwrap_or(name).to_owned();
            let stated = unset
                .iter()
                .find(|(name, _)| need.arguments.contains(&is_of(name).as_str()));
            if stated.is_none() && need.strictness == Strictness::WhereStated {
                return None;
            }
            let because = stated.map_or(String::new(), |(name, value)| {
                let name = name.replace('_', "-");
                format!(" (the launch file has `--{name} {value}`, whose value it does not state)")
            });
            Some(Missing {
                what: format!("{}{because}", need.what),
                flag: need.flag,
            })
        })
        .collect()
}

fn needs(facts: &Facts) -> [Need; 10] {
    let need = |what, absent, flag, arguments| Need {
        what,
        absent,
        strictness: Strictness::Always,
        flag,
        arguments,
    };
    let optional = |what, absent, flag, arguments| Need {
        strictness: Strictness::WhereStated,
        ..need(what, absent, flag, arguments)
    };
    let network = facts.layers.is_none()
        || facts.hidden.is_none()
        || facts.heads.is_none()
        || facts.feed_forward_width.is_none();
    [
        need("the network", network, "`--model`", &SHAPE),
        optional(
            "the key-value heads",
            facts.key_value_heads.is_none() && !network,
            "`--model`",
            &["num_query_groups"],
        ),
        need(
            "the number of GPUs",
            facts.gpus.is_none(),
            "`--gpus`",
            &GPUS,
        ),
        need(
            "the sequence length",
            facts.sequence_length.is_none(),
            "`--sequence-length`",
            &["seq_length", "seq_len"],
        ),
        need(
            "the global batch",
            facts.global_batch.is_none(),
            "`--global-batch`",
            &["global_batch_size", "local_batch_size"],
        ),
        need(
            "the micro-batch",
            facts.micro_batch.is_none(),
            "`--layout micro_batch=…`",
            &["micro_batch_size", "local_batch_size"],
        ),
        need(
            "the tensor-parallel degree",
            facts.tensor_parallel.is_none(),
            "`--layout tensor_parallel=…`",
            &["tensor_model_parallel_size", "tensor_parallel_degree"],
        ),
        need(
            "the pipeline stages",
            facts.pipeline_parallel.is_none(),
            "`--layout pipeline_parallel=…`",
            &["pipeline_model_parallel_size", "pipeline_parallel_degree"],
        ),
        optional(
            "the context-parallel degree",
            facts.context_parallel.is_none(),
            "`--layout context_parallel=…`",
            &["context_parallel_size", "context_parallel_degree"],
        ),
        optional(
            "what is recomputed",
            facts.checkpointing.is_none(),
            "`--layout checkpointing=…`",
            &["recompute_granularity", "mode"],
        ),
    ]
}

/// Flags that state the shape of a network.
const SHAPE: [&str; 4] = [
    "num_layers",
    "hidden_size",
    "ffn_hidden_size",
    "num_attention_heads",
];

/// Flags that state the number of GPUs.
const GPUS: [&str; 5] = [
    "world_size",
    "nnodes",
    "nodes",
    "nproc_per_node",
    "gpus_per_node",
];
