//! The network as flags.

use super::Flags;
use crate::job::Job;
use crate::transformer::{Biases, Embeddings, FeedForward, Normalization, QueryKeyNorms};

/// Megatron-LM pads the vocabulary to a multiple of this and the tensor-parallel degree.
const VOCABULARY_MULTIPLE: u64 = 128;

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
    if transformer.feed_forward == FeedForward::Gated {
        flags.switch("swiglu");
    }
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
    if transformer.learned_positions > 0 {
        flags.value("position-embedding-type", "learned_absolute");
        flags.value("max-position-embeddings", transformer.learned_positions);
    } else {
        flags.value("position-embedding-type", "rope");
        flags.value("max-position-embeddings", job.workload.sequence_length);
    }
    flags.value("vocab-size", transformer.vocabulary);
    flags.value("make-vocab-size-divisible-by", VOCABULARY_MULTIPLE);
    let multiple = VOCABULARY_MULTIPLE * u64::from(tensor_parallel);
    let padded = transformer.vocabulary.next_multiple_of(multiple);
    if padded != transformer.vocabulary {
        flags.comment(format!(
            "The vocabulary is padded from {} to {padded} entries.",
            transformer.vocabulary
        ));
    }
}
