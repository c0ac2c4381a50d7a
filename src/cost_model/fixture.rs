//! A job of round numbers, for the unit tests of the formulas.

use crate::catalog;
use crate::job::Job;
use crate::layout::{
    AttentionKernel, Combination, RmsNormKernel, Schedule, SequenceParallel, Sharding,
};
use crate::quantity::{Bytes, BytesPerSecond, FlopsPerSecond, Seconds};
use crate::transformer::{
    Biases, Embeddings, FeedForward, Normalization, Numerics, SmallParts, Transformer,
};
use crate::workload::{FlopConvention, Optimizer, Precision, Workload};

/// Hidden size 8, two heads of width 4 that share a key-value head, feed-forward width 16, 32 tokens
/// of vocabulary; sequences of 4 tokens; 16 GPUs, 4 a node; every bandwidth and peak 1,000.
pub(super) fn job() -> Job {
    let transformer = Transformer {
        name: "example".to_owned(),
        layers: 4,
        hidden: 8,
        heads: 2,
        key_value_heads: 1,
        head_width: 4,
        feed_forward_width: 16,
        feed_forward: FeedForward::Gated,
        vocabulary: 32,
        embeddings: Embeddings::Untied,
        normalization: Normalization::RmsNorm,
        biases: Biases::None,
        learned_positions: 0,
        experts: None,
        latent_attention: None,
        windows: None,
        prediction_layers: 0,
        small_parts: SmallParts::default(),
        numerics: Numerics::USUAL,
    };
    let mut cluster = catalog::cluster("dgx-a100-80gb").expect("it is in the catalog");
    (cluster.gpus, cluster.gpus_per_node) = (16, 4);
    cluster.intra_node_bandwidth = BytesPerSecond::new(1e3);
    cluster.inter_node_bandwidth = BytesPerSecond::new(1e3);
    cluster.accelerator.memory_bandwidth = BytesPerSecond::new(1e3);
    cluster.accelerator.peak_bf16 = FlopsPerSecond::new(1e3);
    let efficiency = &mut cluster.efficiency;
    (efficiency.gemm, efficiency.memory_bandwidth) = (1.0, 1.0);
    (efficiency.flash_attention_2, efficiency.slowdown) = (1.0, 1.0);
    (
        efficiency.collective_latency,
        efficiency.pipeline_hop_latency,
    ) = (Seconds::ZERO, Seconds::ZERO);
    (efficiency.ring_hop, efficiency.congestion) = (Seconds::ZERO, 0.0);
    efficiency.collective_latency_across = Seconds::ZERO;

    let mut framework = catalog::framework("aleph-alpha-scaling").expect("it is in the catalog");
    let memory = &mut framework.memory;
    (
        memory.hidden_bytes,
        memory.gathered_bytes,
        memory.norm_bytes,
    ) = (12.0, 4.0, 16.0);
    (memory.attention_bytes, memory.feed_forward_bytes) = (8.0, 8.0);
    (memory.logit_bytes, memory.logit_bytes_gathered) = (18.0, 6.0);
    (memory.gradient_bytes, memory.activation_factor) = (4.0, 1.0);
    memory.working_bytes = 0.0;
    (memory.fixed, memory.communicator) = (Bytes::new(1e3), Bytes::new(10.0));
    let speed = &mut framework.speed;
    (speed.elementwise, speed.rmsnorm_bytes) = (1.0, 100.0);
    (speed.softmax_bytes_torch, speed.logit_bytes) = (10.0, 30.0);
    (speed.launch, speed.launch_unfused) = (Seconds::new(0.6), Seconds::new(0.3));
    (speed.launch_recompute, speed.launch_norm) = (0.0, 1.0);
    (speed.reduction_bytes, speed.sharded_bytes) = (4.0, 6.0);
    (speed.sharded_latency, speed.transfer_exposed) = (Seconds::ZERO, 1.0);
    Job {
        transformer,
        cluster,
        framework,
        workload: Workload {
            sequence_length: 4,
            global_batch: 8,
            precision: Precision::Bf16,
            optimizer: Optimizer::Adam,
            mfu_convention: FlopConvention::Paper,
            load_imbalance: crate::workload::USUAL_IMBALANCE,
        },
    }
}

/// Tensor parallel 2, pipeline parallel 2, data parallel 4, micro-batches of one sequence.
pub(super) fn combination() -> Combination {
    Combination {
        tensor_parallel: 2,
        pipeline_parallel: 2,
        data_parallel: 4,
        context_parallel: 1,
        expert_parallel: 1,
        expert_tensor_parallel: 1,
        virtual_stages: 1,
        micro_batch: 1,
        sequence_parallel: SequenceParallel::Off,
        sharding: Sharding::OptimizerStates,
        attention_kernel: AttentionKernel::Flash2,
        rmsnorm_kernel: RmsNormKernel::Unfused,
        schedule: Schedule::OneForwardOneBackward,
    }
}

/// Whether two numbers are equal but for rounding.
pub(super) fn close(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-12 * other.abs()
}
