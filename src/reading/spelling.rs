//! "Did you mean": the nearest of the words that would have been right.

/// Names that other tools give to our keys.
const SYNONYMS: &[(&str, &[&str])] = &[
    (
        "layers",
        &[
            "num_hidden_layers",
            "num_layers",
            "n_layer",
            "n_layers",
            "depth",
        ],
    ),
    (
        "hidden",
        &["hidden_size", "n_embd", "d_model", "dim", "hidden_dim"],
    ),
    (
        "heads",
        &["num_attention_heads", "n_head", "n_heads", "num_heads"],
    ),
    (
        "key_value_heads",
        &[
            "num_key_value_heads",
            "num_query_groups",
            "n_kv_heads",
            "kv_heads",
        ],
    ),
    ("head_width", &["head_dim", "kv_channels"]),
    (
        "feed_forward_width",
        &[
            "intermediate_size",
            "ffn_hidden_size",
            "ffn",
            "n_inner",
            "ffn_dim",
        ],
    ),
    ("vocabulary", &["vocab_size", "vocab", "n_vocab"]),
    ("embeddings", &["tie_word_embeddings", "tied_embeddings"]),
    (
        "gpus",
        &["num_gpus", "n_gpus", "world_size", "total_gpus", "devices"],
    ),
    (
        "gpus_per_node",
        &["num_gpus_per_node", "nproc_per_node", "gpus_a_node"],
    ),
    (
        "sequence_length",
        &[
            "seq_length",
            "seq_len",
            "sequence",
            "context_length",
            "max_seq_len",
        ],
    ),
    (
        "global_batch",
        &["global_batch_size", "gbs", "batch_size", "train_batch_size"],
    ),
    (
        "micro_batch",
        &[
            "micro_batch_size",
            "mbs",
            "local_batch_size",
            "train_micro_batch_size_per_gpu",
        ],
    ),
    (
        "tensor_parallel",
        &[
            "tp",
            "tp_size",
            "tensor_model_parallel_size",
            "tensor_parallel_degree",
        ],
    ),
    (
        "pipeline_parallel",
        &[
            "pp",
            "pp_size",
            "pipeline_model_parallel_size",
            "pipeline_parallel_degree",
        ],
    ),
    ("data_parallel", &["dp", "dp_size", "data_parallel_size"]),
    (
        "context_parallel",
        &["cp", "cp_size", "context_parallel_size"],
    ),
    (
        "expert_parallel",
        &["ep", "ep_size", "expert_model_parallel_size"],
    ),
    (
        "virtual_stages",
        &["vp", "vpp", "virtual_pipeline_model_parallel_size"],
    ),
    ("sharding", &["zero", "zero_stage", "fsdp"]),
    (
        "checkpointing",
        &[
            "recompute",
            "activation_checkpointing",
            "recompute_granularity",
        ],
    ),
    ("precision", &["dtype", "mixed_precision", "torch_dtype"]),
    ("memory", &["usable_memory", "gpu_memory"]),
    (
        "inter_node_bandwidth",
        &["network", "nic", "internode_bandwidth"],
    ),
    ("intra_node_bandwidth", &["nvlink", "intranode_bandwidth"]),
    ("accelerator", &["gpu_type", "gpu_name", "device"]),
];

/// The candidates that `word` most likely stands for, equally near; none if none is near.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Vec<&'a str> {
    const MOST: usize = 3;
    let word = normal(word);
    let meant = synonym(&word);
    let mut best = 0.6;
    let mut nearest = Vec::new();
    for candidate in candidates {
        let plain = normal(candidate);
        let starts = word.len() >= 3 && (plain.starts_with(&word) || word.starts_with(&plain));
        let near = strsim::normalized_damerau_levenshtein(&word, &plain);
        let within = word.len() >= 5 && plain.contains(&word);
        let likeness = if meant == Some(candidate) || plain == word {
            2.0
        } else if starts {
            1.0 + near
        } else if within {
            near.max(0.8)
        } else {
            near
        };
        if likeness > best {
            best = likeness;
            nearest.clear();
        }
        if likeness >= best && nearest.len() < MOST {
            nearest.push(candidate);
        }
    }
    nearest
}

/// Our key for what another tool calls `word`.
pub(crate) fn synonym(word: &str) -> Option<&'static str> {
    SYNONYMS
        .iter()
        .find(|(_, others)| others.contains(&word))
        .map(|(key, _)| *key)
}

/// A question after the candidates that `word` most likely stands for.
pub(crate) fn did_you_mean<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    let quoted: Vec<String> = nearest(word, candidates)
        .into_iter()
        .map(|candidate| format!("`{candidate}`"))
        .collect();
    (!quoted.is_empty()).then(|| format!("did you mean {}?", quoted.join(" or ")))
}

/// A text that lists the words in backticks.
pub(crate) fn list<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = words.into_iter().map(|word| format!("`{word}`")).collect();
    quoted.join(", ")
}

/// Spelling without the differences that people do not see; long words are cut, for speed.
fn normal(word: &str) -> String {
    word.chars()
        .take(64)
        .map(|c| {
            if c == '-' {
                '_'
            } else {
                c.to_ascii_lowercase()
            }
        })
        .collect()
}
