//! What is known of a job, from whatever source.

use std::collections::BTreeMap;

/// What is known of a job; `None` where a source does not say.
#[derive(Debug, Clone, PartialEq, Default)]
#[expect(missing_docs, reason = "the fields are those of a row of runs")]
pub struct Facts {
    pub model: Option<String>,
    pub layers: Option<u32>,
    pub hidden: Option<u64>,
    pub feed_forward_width: Option<u64>,
    pub heads: Option<u64>,
    pub key_value_heads: Option<u64>,
    pub mlp_matrices: Option<u32>,
    pub vocabulary: Option<u64>,
    pub experts: Option<u32>,
    pub gpus: Option<u32>,
    /// The number of GPUs as far as rounded figures tell.
    pub gpus_about: Option<u32>,
    pub gpus_per_node: Option<u32>,
    pub sequence_length: Option<u64>,
    pub global_batch: Option<u64>,
    /// Micro-batches of a step and replica, where the global batch is stated by them.
    pub accumulation: Option<u64>,
    pub micro_batch: Option<u32>,
    pub tensor_parallel: Option<u32>,
    pub pipeline_parallel: Option<u32>,
    pub data_parallel: Option<u32>,
    pub context_parallel: Option<u32>,
    pub expert_parallel: Option<u32>,
    pub virtual_stages: Option<u32>,
    /// Layers of one model chunk, where the virtual stages are stated by them.
    pub chunk_layers: Option<u32>,
    pub schedule: Option<String>,
    pub sequence_parallel: Option<bool>,
    pub checkpointing: Option<String>,
    pub sharding: Option<String>,
    pub precision: Option<String>,
    pub gradient_bytes: Option<f64>,
    pub attention_kernel: Option<String>,
    pub rmsnorm_kernel: Option<bool>,
    /// What of the job no row of runs can say.
    pub refused: Option<String>,
    /// Flags of a script whose values nobody knows before it runs, with what was written.
    pub unset: Option<BTreeMap<String, String>>,
}

impl Facts {
    /// These facts, and `others` where they do not say.
    #[must_use]
    pub fn or(self, others: Self) -> Self {
        macro_rules! each {
            ($($field:ident,)+) => {
                Self {
                    $($field: self.$field.or(others.$field),)+
                }
            };
        }
        each! {
            model, layers, hidden, feed_forward_width, heads, key_value_heads, mlp_matrices,
            vocabulary, experts, gpus, gpus_about, gpus_per_node, sequence_length, global_batch,
            accumulation, micro_batch, tensor_parallel, pipeline_parallel, data_parallel,
            context_parallel, expert_parallel, virtual_stages, chunk_layers, schedule,
            sequence_parallel, checkpointing, sharding, precision, gradient_bytes,
            attention_kernel, rmsnorm_kernel, refused, unset,
        }
    }
}
