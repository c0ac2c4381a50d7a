//! What files state of networks, GPUs, clusters and frameworks, before it is checked.

use super::axes::AxesSection;
use super::discrepancy::{Numbers, Points};
use super::seen_to_fit::SeenToFit;
use crate::cluster::{Accelerator, Calibration, Cluster, Efficiency, MemoryError};
use crate::figures::stated::Stated;
use crate::framework::{Framework, MemoryProfile, SpeedProfile};
use crate::reading::OrNone;
use crate::reading::section::section;
use crate::transformer::{
    Activation, Biases, Embeddings, FeedForward, Normalization, OutputBias, Positions,
    QueryKeyNorms, RopeScaling,
};

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
        layers: u64,
        /// Hidden size.
        hidden: u64,
        /// Attention heads.
        heads: u64,
        /// Heads of keys and values; default: as many as `heads`.
        key_value_heads: u64,
        /// Width of one head; default: `hidden / heads`.
        head_width: u64,
        /// Width of the dense feed-forward block; not where every layer has experts.
        feed_forward_width: u64,
        /// Structure of the feed-forward block: three matrices (gated, default) or two (plain).
        feed_forward: FeedForward,
        /// Entries of the vocabulary, with padding if the framework pads it.
        vocabulary: u64,
        /// Whether the output layer shares the embedding's weights; default: untied.
        embeddings: Embeddings,
        /// Normalization of each block's input; default: rmsnorm.
        normalization: Normalization,
        /// Which linear layers carry a bias; default: none.
        biases: Biases,
        /// Entries of a learned position embedding; default: rotary, no entries.
        learned_positions: u64,
        /// Norms of the hidden size in one layer; default: 2.
        layer_norms: u64,
        /// Norms of the hidden size outside the layers; default: 1, the last one.
        outer_norms: u64,
        /// Norms of queries and keys: one for all heads, or as wide as all heads; default: none.
        query_key_norms: QueryKeyNorms,
        /// Whether the output layer has a bias; default: none.
        output_bias: OutputBias,
        /// Learned numbers in the activation function of one layer; default: none.
        activation_parameters: u64,
        /// Learned numbers for each head that join its softmax (1 with attention sinks); default: none.
        attention_sinks: OrNone,
        /// Routed experts of a layer; default: the network is dense.
        experts: u64,
        /// Experts that work on a token.
        experts_per_token: u64,
        /// Width of a routed expert.
        expert_width: u64,
        /// Width of all shared experts together; default: none.
        shared_expert_width: OrNone,
        /// Leading layers with a dense feed-forward block; default: none.
        dense_layers: OrNone,
        /// Of the layers after those, every so many-th has experts; default: 1, all.
        expert_interval: u64,
        /// Numbers for each expert beside its row of the router (1: a bias or correction); default: none.
        router_biases: OrNone,
        /// Rows of the hidden size that gate the shared experts; default: none.
        shared_expert_gates: OrNone,
        /// Rank of the queries' projection in latent attention; default: they are projected at once.
        query_rank: OrNone,
        /// Rank of the keys' and values' projection; default: attention is not latent.
        key_value_rank: u64,
        /// Width of a head's part that is not rotated, in latent attention.
        unrotated_width: u64,
        /// Width of a head's rotated part, in latent attention.
        rotated_width: u64,
        /// Width of a head's values, in latent attention.
        value_width: u64,
        /// Tokens that attention sees where it has a window; default: all.
        window: OrNone,
        /// Every so many-th layer sees the whole sequence beside layers of windows; default: none does.
        window_interval: OrNone,
        /// Layers that predict further tokens, after the last; default: none.
        prediction_layers: OrNone,
        /// How positions enter where they are not learned; default: rotary.
        positions: Positions,
        /// Base of rotary embeddings; default: 10000.
        rotary_base: f64,
        /// Share of a head's width that is rotated; default: 1.
        rotary_share: f64,
        /// How rotary embeddings are stretched for longer sequences; default: none.
        rope_scaling: RopeScaling,
        /// By how much they are stretched; default: 1.
        rope_factor: f64,
        /// What norms add to the variance; default: 1e-5.
        norm_epsilon: f64,
        /// Activation function of the feed-forward block; default: silu where it is gated, else gelu.
        activation: Activation,
        /// Dropout of each block's output; default: 0.
        hidden_dropout: f64,
        /// Dropout of attention weights; default: 0.
        attention_dropout: f64,
        /// Where the figures come from.
        source: String,
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
        gpus: u64,
        /// A GPU of the catalog.
        accelerator: String,
        /// What software reaches of the hardware's peaks.
        efficiency: Stated<Efficiency>,
        /// How far to trust the figures.
        calibration: CalibrationSection,
        /// What measured runs say beyond the formulas.
        discrepancy: DiscrepancySection,
        /// Layouts that runs have shown to fit, and by how much the median of their memory error is
        /// raised for it, as `parlayout calibrate` writes them.
        seen_to_fit: SeenToFit,
        /// The framework that the cluster's figures were fitted with, and its own fitted figures.
        framework: FrameworkSection,
        /// Where the figures come from.
        source: String,
    }
    parts {
        /// The GPU's figures.
        gpu: Stated<Accelerator>,
        /// Nodes and networks.
        network: Stated<Cluster>,
    }
}

section! {
    /// How far to trust a cluster's figures.
    struct CalibrationSection {
        /// Where the figures come from.
        source: String,
    }
    parts {
        /// Origin and error of the speeds.
        speeds: Stated<Calibration>,
        /// Error of predicted peaks.
        memory: Stated<MemoryError>,
    }
}

section! {
    /// What measured runs say beyond the formulas: a Gaussian process on the logarithm of
    /// (measured / predicted step time), as `parlayout calibrate --learn-residuals` writes it.
    struct DiscrepancySection {
        /// Standard deviation of the residuals before any run is seen.
        amplitude: f64,
        /// Distance over which residuals are alike.
        length_scale: f64,
        /// Standard deviation of a run's own residual.
        noise: f64,
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
        /// The values of every axis that it has.
        axes: AxesSection,
        /// Memory habits.
        memory: Stated<MemoryProfile>,
        /// Speed of the software.
        speed: Stated<SpeedProfile>,
        /// Where the figures come from.
        source: String,
    }
    parts {
        /// Rules and habits.
        rules: Stated<Framework>,
    }
}

section! {
    /// One GPU of the catalog.
    struct AcceleratorSection {
        /// The GPU of the catalog that it derives from: same generation, same kernels.
        preset: String,
        /// What kernels reach of the GPU's peaks.
        efficiency: Stated<Efficiency>,
        /// Where the figures come from.
        source: String,
    }
    parts {
        /// Its figures.
        gpu: Stated<Accelerator>,
    }
}
