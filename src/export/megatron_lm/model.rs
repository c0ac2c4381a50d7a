//! The network as flags.

use super::Flags;
use crate::job::Job;
use crate::transformer::{
    Activation, Biases, Embeddings, FeedForward, Normalization, Positions, QueryKeyNorms,
    RopeScaling, Transformer,
};

/// What Megatron-LM pads the vocabulary to by default, times the tensor-parallel degree.
const USUAL_MULTIPLE: u64 = 128;

pub(super) fn flags(job: &Job, tensor_parallel: u32, flags: &mut Flags) {
    let transformer = &job.transformer;
    flags.value("num-layers", transformer.layers);
    flags.value("hidden-size", transformer.hidden);
    flags.value("ffn-hidden-size", transformer.feed_forward_width);
    flags.value("num-attention-heads", transformer.heads);
    if transformer.key_value_heads != transformer.heads {
        flags.switch("group-query-attention");
        flags.value("num-query-groups", transformer.key_value_heads);
    }
    flags.value("kv-channels", transformer.head_width);
    activation(transformer, flags);
    if transformer.embeddings == Embeddings::Untied {
        flags.switch("untie-embeddings-and-output-weights");
    }
    match transformer.normalization {
        Normalization::RmsNorm => flags.value("normalization", "RMSNorm"),
        Normalization::LayerNorm => flags.value("normalization", "LayerNorm"),
        Normalization::LayerNormWithoutBias | Normalization::LayerNormWithoutParameters => {
            flags.value("normalization", "LayerNorm");
            flags.comment("LayerNorm has a bias here, which the model's own has not.");
        }
    }
    match transformer.biases {
        Biases::None => flags.switch("disable-bias-linear"),
        Biases::QueryKeyValue => {
            flags.switch("disable-bias-linear");
            flags.switch("add-qkv-bias");
        }
        Biases::All => {}
        Biases::FeedForward
        | Biases::Attention
        | Biases::AllButQueryKeyValue
        | Biases::AllButAttentionOutput => {
            flags.comment("All linear layers have a bias here; not all of the model's own have.");
        }
    }
    let parts = &transformer.small_parts;
    if parts.query_key_norms != QueryKeyNorms::None {
        flags.switch("qk-layernorm");
    }
    if (parts.layer_norms, parts.outer_norms) != (2, 1) {
        flags.comment(format!(
            "A layer has two norms here, and one follows the last; the model's own have {} and {}.",
            parts.layer_norms, parts.outer_norms
        ));
    }
    positions(transformer, job.workload.sequence_length, flags);
    let numerics = &transformer.numerics;
    flags.number("norm-epsilon", numerics.norm_epsilon, 1e-5);
    flags.number("hidden-dropout", numerics.hidden_dropout, 0.1);
    flags.number("attention-dropout", numerics.attention_dropout, 0.1);
    flags.value("vocab-size", transformer.vocabulary);
    let multiple = job.framework.memory.vocabulary_multiple;
    let multiple = u64::from(multiple).max(USUAL_MULTIPLE);
    flags.value("make-vocab-size-divisible-by", multiple);
    let multiple = multiple * u64::from(tensor_parallel);
    let padded = transformer.vocabulary.next_multiple_of(multiple);
    if padded != transformer.vocabulary {
        flags.comment(format!(
            "The vocabulary is padded from {} to {padded} entries.",
            transformer.vocabulary
        ));
    }
}

/// The feed-forward block: plain with `GeLU` unless told otherwise.
fn activation(transformer: &Transformer, flags: &mut Flags) {
    let own = transformer.numerics.activation;
    let written = match (transformer.feed_forward, own) {
        (FeedForward::Gated, _) => {
            flags.switch("swiglu");
            Activation::Silu
        }
        (FeedForward::Plain, Activation::SquaredRelu) => {
            flags.switch("squared-relu");
            Activation::SquaredRelu
        }
        (FeedForward::Plain, _) => Activation::Gelu,
    };
    if written != own {
        flags.comment(format!(
            "The activation function is {written} here; the model's own is {own}."
        ));
    }
}

/// How positions enter.
fn positions(transformer: &Transformer, sequence_length: u64, flags: &mut Flags) {
    if transformer.learned_positions > 0 {
        flags.value("position-embedding-type", "learned_absolute");
        flags.value("max-position-embeddings", transformer.learned_positions);
        return;
    }
    let numerics = &transformer.numerics;
    if numerics.positions == Positions::Alibi {
        flags.value("position-embedding-type", "none");
        flags.value("max-position-embeddings", sequence_length);
        flags.comment("There is no ALiBi: the network has no positions here.");
        return;
    }
    flags.value("position-embedding-type", "rope");
    flags.value("max-position-embeddings", sequence_length);
    let base = numerics.rotary_base;
    flags.number("rotary-base", base.round(), 1e4);
    if base.fract() != 0.0 {
        flags.comment(format!(
            "`--rotary-base` takes whole numbers only: {} stands for the model's own {base}.",
            base.round()
        ));
    }
    if numerics.rotary_share < 1.0 {
        flags.number("rotary-percent", numerics.rotary_share, 1.0);
    }
    let factor = numerics.rope_factor;
    match numerics.rope_scaling {
        RopeScaling::None => {}
        RopeScaling::Llama3 => {
            flags.switch("use-rope-scaling");
            flags.value("rope-scaling-factor", factor);
            flags.comment("`--use-rope-scaling`: the default is off.");
        }
        RopeScaling::Linear if factor.fract() == 0.0 => {
            flags.value("rotary-seq-len-interpolation-factor", factor);
            flags.comment(format!(
                "`--rotary-seq-len-interpolation-factor {factor}`: the default is none."
            ));
        }
        other => flags.comment(format!(
            "The model's rope scaling, {other} by {factor}, is not written: without it the network \
             is another beyond its original length."
        )),
    }
}
