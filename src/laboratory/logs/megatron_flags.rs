//! Arguments of Megatron-LM: from a launch script or from the dump at the start of a log.

use super::facts::Facts;
use super::settings::Settings;

/// Columns and the arguments that state them.
const COPIED: [(&str, &str); 12] = [
    ("layers", "num_layers"),
    ("hidden", "hidden_size"),
    ("heads", "num_attention_heads"),
    ("vocab", "padded_vocab_size|vocab_size"),
    ("experts", "num_experts"),
    ("gpus", "world_size"),
    ("gpus_per_node", "nproc_per_node|gpus_per_node"),
    (
        "virtual_stages",
        "virtual_pipeline_model_parallel_size|num_virtual_stages_per_pipeline_rank",
    ),
    ("chunk_layers", "num_layers_per_virtual_pipeline_stage"),
    ("seq_len", "seq_length"),
    ("global_batch", "global_batch_size"),
    ("micro_batch", "micro_batch_size"),
];

/// The same of degrees, which are 1 where a script does not state them.
const DEGREES: [(&str, &str); 4] = [
    ("tensor_parallel", "tensor_model_parallel_size"),
    ("pipeline_parallel", "pipeline_model_parallel_size"),
    ("context_parallel", "context_parallel_size"),
    ("expert_parallel", "expert_model_parallel_size"),
];

/// Other arguments that say something of layout, network or workload.
const OTHERS: &str = "ffn_hidden_size|num_query_groups|group_query_attention|swiglu|nnodes|nodes|\
    sequence_parallel|recompute_granularity|recompute_activations|recompute_num_layers|\
    recompute_method|use_distributed_optimizer|bf16|fp16|fp8_format|fp8|\
    accumulate_allreduce_grads_in_fp32|grad_reduce_in_bf16";

/// Arguments that spread layers unevenly over pipeline stages.
const UNEVEN: [&str; 4] = [
    "decoder_first_pipeline_num_layers",
    "decoder_last_pipeline_num_layers",
    "num_layers_in_first_pipeline_stage",
    "pipeline_model_parallel_layout",
];

/// Whether an argument says something of layout, network or workload.
pub(super) fn is_known(name: &str) -> bool {
    let columns = COPIED.iter().chain(&DEGREES).map(|(_, keys)| *keys);
    let mut known = columns.chain([OTHERS]).flat_map(|keys| keys.split('|'));
    known.any(|known| known == name) || UNEVEN.contains(&name)
}

/// What the arguments say.
pub(super) fn facts(arguments: &Settings) -> Facts {
    let hidden = arguments.number("hidden_size");
    let gated = arguments.switch("swiglu");
    let usual_width = hidden.map(|hidden| match gated {
        // Megatron-LM keeps the parameters of a plain block: 8 h / 3, in steps of 64.
        Some(true) => hidden.saturating_mul(8) / 3 / 64 * 64,
        _ => hidden.saturating_mul(4),
    });
    let usual_width = usual_width.filter(|_| !arguments.unset.contains_key("ffn_hidden_size"));
    let key_value_heads = if arguments.is_on("group_query_attention") {
        "num_query_groups"
    } else {
        "num_attention_heads"
    };
    let [nodes, per_node] =
        ["nnodes|nodes", "nproc_per_node|gpus_per_node"].map(|keys| arguments.number(keys));
    let sharded = arguments.switch("use_distributed_optimizer");
    let uneven = UNEVEN.iter().find(|name| arguments.text(name).is_some());
    let recomputed = !arguments.unset.contains_key("recompute_granularity");
    let mut facts = Facts::copied(&COPIED, arguments)
        .with("ffn", arguments.number("ffn_hidden_size").or(usual_width))
        .with("kv_heads", arguments.number(key_value_heads))
        .with("mlp_matrices", gated.map(|gated| if gated { 3 } else { 2 }))
        .with(
            "gpus",
            nodes
                .zip(per_node)
                .map(|(nodes, each)| nodes.saturating_mul(each)),
        )
        .with("sequence_parallel", arguments.switch("sequence_parallel"))
        .with(
            "checkpointing",
            recomputed.then(|| checkpointing(arguments)),
        )
        .with(
            "sharding",
            sharded.map(|it| if it { "zero-1" } else { "zero-0" }),
        )
        .with("precision", Some(precision(arguments)))
        .with("gradient_bytes", gradient_bytes(arguments))
        .with(
            "refused",
            uneven.map(|name| {
                let flag = name.replace('_', "-");
                format!("`--{flag}` spreads layers unevenly, which a row of runs cannot say")
            }),
        );
    for (column, key) in DEGREES {
        facts.note(column, arguments.usually(key, 1));
        if let Some(text) = arguments
            .text(key)
            .filter(|_| arguments.number(key).is_none())
        {
            facts.unset.insert(key.to_owned(), text.to_owned());
        }
    }
    facts
}

/// `full`, `selective` or `none`; a number of layers is named too, which no row can say.
fn checkpointing(arguments: &Settings) -> String {
    let granularity = match arguments.text("recompute_granularity") {
        Some(granularity) => granularity,
        None if arguments.is_on("recompute_activations") => "selective",
        None => "none",
    };
    let some_layers = granularity == "full" && arguments.text("recompute_method") == Some("block");
    match arguments.text("recompute_num_layers") {
        Some(count) if some_layers => format!("full in {count} layers a stage"),
        _ => granularity.to_owned(),
    }
}

/// Without another format Megatron-LM computes in 32 bits.
fn precision(arguments: &Settings) -> &'static str {
    if arguments.text("fp8_format|fp8").is_some() {
        "fp8"
    } else if arguments.is_on("bf16") {
        "bf16"
    } else if arguments.is_on("fp16") {
        "fp16"
    } else {
        "fp32"
    }
}

/// With bf16 Megatron-LM accumulates gradients in 32 bits unless told otherwise.
fn gradient_bytes(arguments: &Settings) -> Option<u64> {
    if arguments.is_on("grad_reduce_in_bf16") {
        return Some(2);
    }
    let wide = arguments.is_on("accumulate_allreduce_grads_in_fp32") || arguments.is_on("bf16");
    wide.then_some(4)
}
