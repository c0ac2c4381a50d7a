//! Arguments of Megatron-LM: from a launch script or from the dump at the start of a log.

use std::collections::BTreeMap;

use super::facts::Facts;

/// Where arguments come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin<'a> {
    /// A script states what differs from the defaults.
    Script {
        /// Arguments that it states with values that nobody knows.
        unset: &'a BTreeMap<String, String>,
    },
    /// A dump states all.
    Dump,
}

/// The arguments that say something of layout, network or workload.
const KNOWN: [&str; 37] = [
    "num_layers",
    "hidden_size",
    "ffn_hidden_size",
    "num_attention_heads",
    "num_query_groups",
    "group_query_attention",
    "swiglu",
    "padded_vocab_size",
    "vocab_size",
    "num_experts",
    "world_size",
    "seq_length",
    "global_batch_size",
    "micro_batch_size",
    "tensor_model_parallel_size",
    "pipeline_model_parallel_size",
    "context_parallel_size",
    "expert_model_parallel_size",
    "num_layers_per_virtual_pipeline_stage",
    "num_virtual_stages_per_pipeline_rank",
    "virtual_pipeline_model_parallel_size",
    "sequence_parallel",
    "recompute_granularity",
    "recompute_activations",
    "recompute_num_layers",
    "recompute_method",
    "use_distributed_optimizer",
    "bf16",
    "fp16",
    "fp8_format",
    "fp8",
    "accumulate_allreduce_grads_in_fp32",
    "grad_reduce_in_bf16",
    "nproc_per_node",
    "nnodes",
    "nodes",
    "gpus_per_node",
];

/// Arguments that spread layers unevenly over pipeline stages.
const UNEVEN: [&str; 4] = [
    "decoder_first_pipeline_num_layers",
    "decoder_last_pipeline_num_layers",
    "num_layers_in_first_pipeline_stage",
    "pipeline_model_parallel_layout",
];

/// Whether an argument says something of layout, network or workload.
pub(super) fn is_known(name: &str) -> bool {
    KNOWN.contains(&name) || UNEVEN.contains(&name)
}

/// What the arguments say.
pub(super) fn facts(arguments: &BTreeMap<String, String>, origin: Origin) -> Facts {
    let arguments = Arguments { arguments, origin };
    network(&arguments)
        .or(degrees(&arguments))
        .or(training(&arguments))
}

/// Arguments by name.
struct Arguments<'a> {
    arguments: &'a BTreeMap<String, String>,
    origin: Origin<'a>,
}

impl<'a> Arguments<'a> {
    fn text(&self, name: &str) -> Option<&'a str> {
        let value = self.arguments.get(name)?;
        (value != "None").then_some(value.as_str())
    }

    /// Whether an argument is stated with a value that nobody knows.
    fn is_unset(&self, name: &str) -> bool {
        matches!(self.origin, Origin::Script { unset } if unset.contains_key(name))
    }

    /// Whether a switch is on; a script says only what is on, whatever follows it.
    fn on(&self, name: &str) -> Option<bool> {
        match self.text(name) {
            Some("" | "True" | "true") => Some(true),
            Some(_) => Some(false),
            None => matches!(self.origin, Origin::Script { .. }).then(|| self.is_unset(name)),
        }
    }

    fn size(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }

    fn degree(&self, name: &str) -> Option<u32> {
        self.text(name)?.parse().ok()
    }

    /// A degree that is 1 where a script does not state it.
    fn parallel(&self, name: &str) -> Option<u32> {
        let unstated = matches!(self.origin, Origin::Script { .. }) && !self.is_unset(name);
        self.degree(name).or(unstated.then_some(1))
    }
}

fn network(arguments: &Arguments) -> Facts {
    let hidden = arguments.size("hidden_size");
    let gated = arguments.on("swiglu");
    let usual_width = hidden.map(|hidden| match gated {
        // Megatron-LM keeps the parameters of a plain block: 8 h / 3, in steps of 64.
        Some(true) => (4 * hidden * 2 / 3) / 64 * 64,
        _ => 4 * hidden,
    });
    let usual_width = usual_width.filter(|_| !arguments.is_unset("ffn_hidden_size"));
    let heads = arguments.size("num_attention_heads");
    Facts {
        layers: arguments.degree("num_layers"),
        hidden,
        feed_forward_width: arguments.size("ffn_hidden_size").or(usual_width),
        heads,
        key_value_heads: match arguments.on("group_query_attention") {
            Some(true) => arguments.size("num_query_groups"),
            _ => heads,
        },
        mlp_matrices: gated.map(|gated| if gated { 3 } else { 2 }),
        vocabulary: arguments
            .size("padded_vocab_size")
            .or(arguments.size("vocab_size")),
        experts: arguments.degree("num_experts"),
        ..Facts::default()
    }
}

fn degrees(arguments: &Arguments) -> Facts {
    let degree = |name: &str| arguments.degree(name);
    let per_node = degree("nproc_per_node").or(degree("gpus_per_node"));
    let nodes = degree("nnodes").or(degree("nodes"));
    let uneven = UNEVEN.iter().find(|name| arguments.text(name).is_some());
    Facts {
        gpus: degree("world_size").or_else(|| Some(nodes? * per_node?)),
        gpus_per_node: per_node,
        tensor_parallel: arguments.parallel("tensor_model_parallel_size"),
        pipeline_parallel: arguments.parallel("pipeline_model_parallel_size"),
        context_parallel: arguments.parallel("context_parallel_size"),
        expert_parallel: arguments.parallel("expert_model_parallel_size"),
        virtual_stages: degree("virtual_pipeline_model_parallel_size")
            .or(degree("num_virtual_stages_per_pipeline_rank")),
        chunk_layers: degree("num_layers_per_virtual_pipeline_stage"),
        refused: uneven.map(|name| {
            let flag = name.replace('_', "-");
            format!("`--{flag}` spreads layers unevenly, which a row of runs cannot say")
        }),
        ..Facts::default()
    }
}

fn training(arguments: &Arguments) -> Facts {
    Facts {
        sequence_length: arguments.size("seq_length"),
        global_batch: arguments.size("global_batch_size"),
        micro_batch: arguments.degree("micro_batch_size"),
        sequence_parallel: arguments.on("sequence_parallel"),
        checkpointing: (!arguments.is_unset("recompute_granularity"))
            .then(|| checkpointing(arguments)),
        sharding: arguments.on("use_distributed_optimizer").map(|sharded| {
            let name = if sharded { "zero-1" } else { "zero-0" };
            name.to_owned()
        }),
        precision: Some(precision(arguments).to_owned()),
        gradient_bytes: gradient_bytes(arguments),
        ..Facts::default()
    }
}

/// `full`, `selective` or `none`; a number of layers is named too, which no row can say.
fn checkpointing(arguments: &Arguments) -> String {
    let granularity = match arguments.text("recompute_granularity") {
        Some(granularity) => granularity,
        None if arguments.on("recompute_activations") == Some(true) => "selective",
        None => "none",
    };
    let some_layers = granularity == "full" && arguments.text("recompute_method") == Some("block");
    match arguments.text("recompute_num_layers") {
        Some(count) if some_layers => format!("full in {count} layers a stage"),
        _ => granularity.to_owned(),
    }
}

/// Without another format Megatron-LM computes in 32 bits.
fn precision(arguments: &Arguments) -> &'static str {
    if arguments
        .text("fp8_format")
        .or(arguments.text("fp8"))
        .is_some()
    {
        "fp8"
    } else if arguments.on("bf16") == Some(true) {
        "bf16"
    } else if arguments.on("fp16") == Some(true) {
        "fp16"
    } else {
        "fp32"
    }
}

/// With bf16 Megatron-LM accumulates gradients in 32 bits unless told otherwise.
fn gradient_bytes(arguments: &Arguments) -> Option<f64> {
    let on = |name: &str| arguments.on(name) == Some(true);
    if on("grad_reduce_in_bf16") {
        Some(2.0)
    } else if on("accumulate_allreduce_grads_in_fp32") || on("bf16") {
        Some(4.0)
    } else {
        None
    }
}
