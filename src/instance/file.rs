//! The keys of an instance file: what was typed, before it is checked.
//!
//! Catalog entries and cluster files are written in the same keys.

use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::constraint::ConstraintList;
use super::document::{Node, Table};
use super::error::Problems;
use super::learned::{Numbers, Points};
use super::reader::{Field, Section, Value, check_keys, section, table_of};
use super::search::SearchSection;
use super::values::{Count, Number, OneOf, Quantity, Signed};
use crate::cluster::CalibrationKind;
use crate::framework::{
    CheckpointRule, FusedRmsNorm, LoggedPeak, Logits, OptimizerWork, Partition,
};
use crate::layout::{AttentionKernel, RmsNormKernel, SequenceParallel};
use crate::quantity::{Bytes, BytesPerSecond, FlopsPerSecond, Seconds};
use crate::transformer::{Biases, Embeddings, FeedForward, Normalization};
use crate::workload::{FlopConvention, Optimizer, Precision};

section! {
    /// A training job, the machine it runs on, and the layouts that may be tried.
    struct InstanceFile {
        /// The network.
        model: ModelSection,
        /// The machine.
        cluster: ClusterSection,
        /// The training framework.
        framework: FrameworkSection,
        /// What one optimizer step has to do.
        training: TrainingSection,
        /// What the layout must respect.
        limits: LimitsSection,
        /// The layouts that may be tried.
        search: SearchSection,
        /// Rows of your own.
        constraint: ConstraintList,
    }
    reserved {
        "clusters": "several clusters",
        "job": "several jobs on one cluster",
        "jobs": "several jobs on one cluster",
    }
}

section! {
    /// The network: a preset, a Hugging Face config, or its shape. Keys of the shape override
    /// preset and config.
    struct ModelSection {
        /// A model of the catalog.
        preset: String,
        /// Path of a Hugging Face `config.json`, relative to this file.
        config: String,
        /// What to call the model.
        name: String,
        /// Transformer layers.
        layers: Count,
        /// Hidden size.
        hidden: Count,
        /// Attention heads.
        heads: Count,
        /// Heads of keys and values; default: as many as `heads`.
        key_value_heads: Count,
        /// Width of one head; default: `hidden / heads`.
        head_width: Count,
        /// Width of the feed-forward block.
        feed_forward_width: Count,
        /// Structure of the feed-forward block: three matrices (gated, default) or two (plain).
        feed_forward: OneOf<FeedForward>,
        /// Entries of the vocabulary, with padding if the framework pads it.
        vocabulary: Count,
        /// Whether the output layer shares the embedding's weights; default: untied.
        embeddings: OneOf<Embeddings>,
        /// Normalization of each block's input; default: rmsnorm.
        normalization: OneOf<Normalization>,
        /// Which linear layers carry a bias; default: none.
        biases: OneOf<Biases>,
        /// Entries of a learned position embedding; default: rotary, no entries.
        learned_positions: Count,
        /// Where the figures come from.
        source: String,
    }
    reserved {
        "experts": "mixtures of experts",
        "experts_per_token": "mixtures of experts",
        "expert_width": "mixtures of experts",
        "shared_experts": "mixtures of experts",
        "prediction_layers": "multi-token prediction",
        "window": "sliding-window attention",
    }
}

section! {
    /// The machine: a preset, a cluster file, or its figures. Figures override preset and file.
    struct ClusterSection {
        /// A cluster of the catalog.
        preset: String,
        /// Path of a cluster file, relative to this file: the keys of this section at its top.
        file: String,
        /// What to call the cluster.
        name: String,
        /// GPUs of the job.
        gpus: Count,
        /// GPUs of one node.
        gpus_per_node: Count,
        /// A GPU of the catalog.
        accelerator: String,
        /// Memory of each GPU that a training process can use.
        memory: Quantity<Bytes>,
        /// Bandwidth of the GPU's memory.
        memory_bandwidth: Quantity<BytesPerSecond>,
        /// Dense peak of the GPU at bf16 and fp16.
        peak_bf16: Quantity<FlopsPerSecond>,
        /// Dense peak of the GPU at fp8; absent where it has none.
        peak_fp8: Quantity<FlopsPerSecond>,
        /// Bus bandwidth that collectives reach within a node, per GPU.
        intra_node_bandwidth: Quantity<BytesPerSecond>,
        /// Bandwidth that all GPUs of a node share towards other nodes.
        inter_node_bandwidth: Quantity<BytesPerSecond>,
        /// What software reaches of the hardware's peaks.
        efficiency: EfficiencySection,
        /// How far to trust the figures.
        calibration: CalibrationSection,
        /// What measured runs say beyond the formulas.
        discrepancy: DiscrepancySection,
        /// The framework that the cluster's figures were fitted with, and its own fitted figures.
        framework: FrameworkSection,
        /// Where the figures come from.
        source: String,
    }
    reserved {
        "groups": "clusters of several kinds of GPU",
        "accelerators": "clusters of several kinds of GPU",
    }
}

section! {
    /// What software reaches of the hardware's peaks. Absent keys come from preset or file, else
    /// from a cluster with the same GPU.
    struct EfficiencySection {
        /// Share of the peak that matrix products reach (`eta_gemm`).
        gemm: Number,
        /// Share of the peak of `FlashAttention` 1, on causal FLOP (`eta_flash1`).
        flash_attention_1: Number,
        /// Share of the peak of `FlashAttention` 2 or later, on causal FLOP (`eta_flash2`).
        flash_attention_2: Number,
        /// Share of the memory bandwidth that streaming kernels reach.
        memory_bandwidth: Number,
        /// Time of a ring hop for a million parameters (`alpha`).
        ring_hop: Quantity<Seconds>,
        /// Exponent of network congestion over the number of GPUs (`gamma`).
        congestion: Number,
        /// Latency of one hop of a tensor-parallel collective.
        collective_latency: Quantity<Seconds>,
        /// Latency of one transfer between pipeline stages.
        pipeline_hop_latency: Quantity<Seconds>,
        /// Factor on every duration: what slows all work alike (1 unless measured).
        slowdown: Number,
    }
}

section! {
    /// How far to trust a cluster's figures.
    struct CalibrationSection {
        /// Fitted to runs on this cluster, or from data sheets.
        kind: OneOf<CalibrationKind>,
        /// Typical relative error of a predicted step time (a share).
        time_error: Number,
        /// Scale of the logistic error of the logarithm of peak memory.
        memory_scale: Number,
        /// Median of that error: above 0 where predicted peaks are too high.
        memory_shift: Signed,
        /// Where the figures come from.
        source: String,
    }
}

section! {
    /// What measured runs say beyond the formulas: a Gaussian process on the logarithm of
    /// (measured / predicted step time), as `parlayout calibrate --learn-residuals` writes it.
    struct DiscrepancySection {
        /// Standard deviation of the residuals before any run is seen.
        amplitude: Number,
        /// Distance over which residuals are alike.
        length_scale: Number,
        /// Standard deviation of a run's own residual.
        noise: Number,
        /// Weight of each run.
        weights: Numbers,
        /// Coordinates of each run.
        points: Points,
    }
}

section! {
    /// The training framework: a preset (default: the cluster's, else `megatron-lm`), and what
    /// differs from it.
    struct FrameworkSection {
        /// A framework of the catalog.
        preset: String,
        /// What to call the framework.
        name: String,
        /// How layers may be spread over pipeline stages.
        partition: OneOf<Partition>,
        /// Which layers of a stage may be checkpointed.
        checkpointing: OneOf<CheckpointRule>,
        /// Whether the fused `RMSNorm` works in a checkpointed layer.
        fused_rmsnorm: OneOf<FusedRmsNorm>,
        /// Attention kernel where a measured run states none.
        usual_attention: OneOf<AttentionKernel>,
        /// The RMSNorm that its speed was fitted with, and that runs where nothing else is said.
        usual_rmsnorm: OneOf<RmsNormKernel>,
        /// Sequence parallelism where a measured run does not say.
        usual_sequence_parallel: OneOf<SequenceParallel>,
        /// Memory habits.
        memory: MemorySection,
        /// Speed of the software.
        speed: SpeedSection,
        /// Where the figures come from.
        source: String,
    }
}

section! {
    /// Memory habits of a framework.
    struct MemorySection {
        /// Bytes of a gradient: 2 (bf16), 4 (fp32), 6 (bf16 with an fp32 accumulator).
        gradient_bytes: Number,
        /// Whether a tensor-parallel rank holds its share of the logits or all.
        logits: OneOf<Logits>,
        /// Bytes a logit on the last stage.
        logit_bytes: Number,
        /// Further bytes a logit where several tensor-parallel ranks gather them.
        logit_bytes_gathered: Number,
        /// Bytes a token and hidden element kept between the tensor-parallel blocks of a layer.
        hidden_bytes: Number,
        /// Of those, what every rank keeps whole in spite of sequence parallelism.
        gathered_bytes: Number,
        /// Bytes a token and element of query and attention output.
        attention_bytes: Number,
        /// Bytes a token and hidden element that a layer's unfused norms keep.
        norm_bytes: Number,
        /// Bytes a token and element that a gated feed-forward block keeps; a plain one keeps half.
        feed_forward_bytes: Number,
        /// Bytes a token and hidden element of buffers that are live on every stage.
        working_bytes: Number,
        /// Multiplier of the counted activations.
        activation_factor: Number,
        /// Memory taken whatever the layout (context, fragmentation).
        fixed: Quantity<Bytes>,
        /// Memory of each communicator with several ranks.
        communicator: Quantity<Bytes>,
        /// The pipeline stage whose peak the framework's log states.
        logged_peak: OneOf<LoggedPeak>,
    }
}

section! {
    /// Speed of a framework's software.
    struct SpeedSection {
        /// Multiplier of the counted elementwise traffic (`k_elem`).
        elementwise: Number,
        /// Traffic of an unfused `RMSNorm`, bytes a token and hidden element (`by_rms`).
        rmsnorm_bytes: Number,
        /// Softmax traffic of Megatron's fused kernel, bytes an attention element.
        softmax_bytes_fused: Number,
        /// Softmax traffic of unfused operators, bytes an attention element.
        softmax_bytes_torch: Number,
        /// Traffic of the loss, bytes a logit (`by_logit`).
        logit_bytes: Number,
        /// Host time a layer and micro-batch (`t_launch`).
        launch: Quantity<Seconds>,
        /// Further host time without the `RMSNorm` kernel (`t_unfused`).
        launch_unfused: Quantity<Seconds>,
        /// Share of the launches that a recomputed layer pays beyond its part of the work.
        launch_recompute: Number,
        /// How host launch time and device work combine: 1 adds them, more takes the longer.
        launch_norm: Number,
        /// Host time a stage and micro-batch (`t_mb`).
        micro_batch_overhead: Quantity<Seconds>,
        /// Host time a step (`t_step`).
        step_overhead: Quantity<Seconds>,
        /// Multiplier of the time of pipeline transfers: below 1 hidden, above 1 blocking.
        transfer_exposed: Number,
        /// Multiplier of a pipeline fill under 1F1B (`beta`).
        bubble: Number,
        /// Multiplier of a pipeline fill under the zero-bubble schedule 1p.
        bubble_zero_1p: Number,
        /// Multiplier of a pipeline fill under the zero-bubble schedule 2p.
        bubble_zero_2p: Number,
        /// Share of a fill that interleaving cannot remove.
        bubble_interleaved: Number,
        /// Bytes a parameter that replicas exchange a step.
        reduction_bytes: Number,
        /// Whether replicas share the optimizer's work.
        optimizer_work: OneOf<OptimizerWork>,
        /// Bytes a parameter and micro-batch that fully sharded replicas exchange.
        sharded_bytes: Number,
        /// Latency of that exchange, times the binary logarithm of the replicas.
        sharded_latency: Quantity<Seconds>,
        /// How that exchange and a layer's work combine: 1 adds them, more takes the longer.
        sharded_norm: Number,
        /// Training's share of a bandwidth within a node measured beside the run.
        measured_intra_node: Number,
        /// Training's share of a bandwidth between nodes measured beside the run.
        measured_inter_node: Number,
        /// Time of tensor-parallel traffic across nodes over that of the network's bandwidth.
        tensor_parallel_across: Number,
    }
}

section! {
    /// What one optimizer step has to do.
    struct TrainingSection {
        /// Tokens of one sequence.
        sequence_length: Count,
        /// Sequences of one optimizer step.
        global_batch: Count,
        /// Number format of the matrix products; default: bf16.
        precision: OneOf<Precision>,
        /// What is kept for every parameter; default: adam.
        optimizer: OneOf<Optimizer>,
        /// Which arithmetic the MFU counts; default: paper.
        mfu_convention: OneOf<FlopConvention>,
    }
    reserved {
        "offload": "offload of optimizer states or activations to the host",
        "optimizer_offload": "offload of optimizer states to the host",
        "activation_offload": "offload of activations to the host",
        "fp8_recipe": "recipes of fp8 training",
        "lora": "adapters",
    }
}

section! {
    /// What the layout must respect.
    struct LimitsSection {
        /// Largest accepted probability that the layout runs out of memory; default: 0.05.
        max_oom_risk: Number,
    }
    reserved {
        "deadline": "a limit of the training time",
        "min_mfu": "a lower limit of the utilisation",
    }
}

section! {
    /// One GPU of the catalog.
    struct AcceleratorSection {
        /// Memory that a training process can use.
        memory: Quantity<Bytes>,
        /// Bandwidth of the memory.
        memory_bandwidth: Quantity<BytesPerSecond>,
        /// Dense peak at bf16 and fp16.
        peak_bf16: Quantity<FlopsPerSecond>,
        /// Dense peak at fp8.
        peak_fp8: Quantity<FlopsPerSecond>,
        /// Where the figures come from.
        source: String,
    }
}
