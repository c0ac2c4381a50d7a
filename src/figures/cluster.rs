//! The machine: accelerators, nodes, networks, and how efficiently software uses them.

use std::collections::BTreeMap;

use super::{Value, count, figures, number, one_of, quantity};
use crate::choice::choice;
use crate::layout::AttentionKernel;
use crate::quantity::{Bytes, BytesPerSecond, FlopsPerSecond, Seconds};
use crate::workload::Precision;

/// Longest latency.
const LONGEST: f64 = 10.0;

figures! {
    /// One kind of GPU, from its data sheet.
    #[derive(Debug, Clone, PartialEq, Default)]
    pub struct Accelerator in "" at cluster.accelerator {
        /// Catalog name, such as `a100-80gb`.
        name: String,
    }
    figures {
        /// Memory of each GPU that a training process can use, as PyTorch reports it.
        usable_memory as "memory": Bytes = quantity("GB", SMALLEST..=LARGEST_MEMORY);
        /// Bandwidth of the GPU's memory.
        memory_bandwidth: BytesPerSecond = quantity("GB/s", SMALLEST..=LARGEST);
        /// Dense peak of the GPU at bf16 and fp16.
        peak_bf16: FlopsPerSecond = quantity("TFLOP/s", SMALLEST..=LARGEST);
        /// Dense peak of the GPU at fp8; absent where it has none.
        peak_fp8: Option<FlopsPerSecond> = quantity("TFLOP/s", SMALLEST..=LARGEST).optional();
        /// Memory that libraries of matrix products keep as workspace.
        workspace: Bytes = quantity("MiB", 0.0..=LARGEST_MEMORY).or(Value::Number(0.0));
        /// What products of groups of experts keep beyond that: four workspaces of Transformer Engine, of 32 MiB from
        /// Hopper on and 4 MiB before (functional tests of Megatron-LM).
        workspace_experts: Bytes =
            quantity("MiB", 0.0..=LARGEST_MEMORY).or(Value::Number(134_217_728.0));
    }
}

/// Least bandwidth, memory or throughput of a machine in base units: a slow disk has more.
const SMALLEST: f64 = 1e6;
/// Largest bandwidth or throughput in base units, a hundred times what machines have.
const LARGEST: f64 = 1e18;
/// Largest memory in bytes: a PB, a thousand times what a GPU has.
pub(super) const LARGEST_MEMORY: f64 = 1e15;

impl Accelerator {
    /// Peak of matrix products at `precision`; bf16's where the GPU has no faster unit.
    #[must_use]
    pub fn peak(&self, precision: Precision) -> FlopsPerSecond {
        match precision {
            Precision::Bf16 | Precision::Fp16 => self.peak_bf16,
            Precision::Fp8 => self.peak_fp8.unwrap_or(self.peak_bf16),
        }
    }
}

figures! {
    /// Equal nodes of equal GPUs, with what is known of their speed.
    #[derive(Debug, Clone, PartialEq, Default)]
    pub struct Cluster in "" at cluster {
        /// Catalog name or the user's.
        name: String,
        /// The GPU of every node.
        accelerator: Accelerator,
        /// GPUs of the job, `G`.
        gpus: u32,
        /// What software reaches of the hardware's peaks.
        efficiency: Efficiency,
        /// Where the figures come from.
        calibration: Calibration,
        /// What measured runs say beyond the formulas, where that was learned.
        discrepancy: Option<Discrepancy>,
        /// Combinations that were seen to fit though their predicted peaks say otherwise, and by how much
        /// the median of their memory error is raised for it, as a logarithm.
        seen_to_fit: BTreeMap<String, f64>,
    }
    figures {
        /// GPUs of one host, which share its network ports.
        gpus_per_node: u32 = count(1..=1024).or(Value::Number(8.0));
        /// GPUs that `NVLink` or its like joins: whole nodes; those of one node unless stated.
        nvlink_domain: Option<u32> = count(1..=4096).optional();
        /// Bus bandwidth that collectives reach within an `NVLink` domain, per GPU.
        intra_node_bandwidth: BytesPerSecond = quantity("GB/s", SMALLEST..=LARGEST).seen_in_time();
        /// Bandwidth that all GPUs of a node share towards other nodes.
        inter_node_bandwidth: BytesPerSecond = quantity("GB/s", SMALLEST..=LARGEST).seen_in_time();
    }
}

impl Cluster {
    /// GPUs of one `NVLink` domain.
    #[must_use]
    pub fn domain(&self) -> u32 {
        self.nvlink_domain.unwrap_or(self.gpus_per_node)
    }

    /// Whether every group of `ranks` neighbours lies within a domain. Nodes are used in full, so
    /// that a group must divide one where it is the domain; of a domain of several nodes a job may
    /// use a part.
    #[must_use]
    pub fn is_within_domain(&self, ranks: u32) -> bool {
        let domain = self.domain();
        let fits = domain > self.gpus_per_node || domain.is_multiple_of(ranks.max(1));
        self.gpus <= domain || ranks <= domain && fits
    }

    /// Bandwidth of a ring across domains, of which `neighbours` ranks lie in each: their share of
    /// the ports of their nodes, at most what they reach among themselves.
    #[must_use]
    pub fn across_domains(&self, neighbours: f64) -> BytesPerSecond {
        let ports = self.inter_node_bandwidth * (neighbours / f64::from(self.gpus_per_node));
        self.intra_node_bandwidth.min(ports)
    }
}

/// The most of `ranks` that lie in one domain with room for `most`, where all domains have as many.
#[must_use]
pub fn even_share(ranks: u32, most: u32) -> u32 {
    let divides = |share: &u32| ranks.is_multiple_of(*share);
    (1..=most.min(ranks)).rev().find(divides).unwrap_or(1)
}

figures! {
    /// What software reaches of the hardware's peaks. Absent keys come from preset or file, else
    /// from a cluster with the same GPU.
    #[derive(Debug, Clone, PartialEq, Default)]
    pub struct Efficiency in "efficiency." at cluster.efficiency {}
    figures {
        /// Share of the peak that matrix products reach (`eta_gemm`).
        gemm: f64 = number("share", 0.01..=1.0).seen_in_time().fitted_within(0.3..=0.95);
        /// What products in 8 bits reach of their peak over what others reach of theirs (`eta_8`):
        /// conversions are not hidden.
        fp8: f64 = number("share", 0.01..=1.0)
            .or(Value::Number(0.85)).seen_in_time().fitted_within(0.5..=1.0);
        /// Share of the peak of `FlashAttention` 1, on causal FLOP (`eta_flash1`).
        flash_attention_1: f64 =
            number("share", 0.01..=1.0).seen_in_time().fitted_within(0.1..=0.7);
        /// Share of the peak of `FlashAttention` 2, on causal FLOP (`eta_flash2`).
        flash_attention_2: f64 =
            number("share", 0.01..=1.0).seen_in_time().fitted_within(0.05..=0.95);
        /// Share of the peak of `FlashAttention` 3 or later, on causal FLOP; of what runs instead where
        /// it does not.
        flash_attention_3: f64 =
            number("share", 0.01..=1.0).seen_in_time().fitted_within(0.1..=0.95);
        /// Share of the peak of the vendor's fused attention (cuDNN's), on causal FLOP.
        cudnn_attention: f64 =
            number("share", 0.01..=1.0).seen_in_time().fitted_within(0.1..=0.95);
        /// Share of the memory bandwidth that streaming kernels reach.
        memory_bandwidth: f64 = number("share", 0.01..=1.0);
        /// Time of a ring hop for a million parameters (`alpha`).
        ring_hop: Seconds = quantity("us", 0.0..=LONGEST).seen_in_time();
        /// Exponent of network congestion over the number of GPUs (`gamma`).
        congestion: f64 =
            number("exponent", 0.0..=2.0).seen_in_time().fitted_within(0.001..=1.2);
        /// Latency of one rank-to-rank hop of a tensor-parallel collective (`lat_coll`).
        collective_latency: Seconds = quantity("us", 0.0..=LONGEST).seen_in_time();
        /// The same of a collective whose ranks do not share an `NVLink` domain.
        collective_latency_across: Seconds = quantity("us", 0.0..=LONGEST)
            .or(Value::Number(16e-6)).seen_in_time();
        /// Latency of one transfer between pipeline stages (`lat_hop`).
        pipeline_hop_latency: Seconds = quantity("us", 0.0..=LONGEST).seen_in_time();
        /// Time of its hosts to launch kernels over that of A100 and H100 nodes (`host`).
        host: f64 = number("factor", 0.0..=10.0)
            .or(Value::Number(1.0)).seen_in_time().fitted_within(0.1..=4.0);
        /// What products of experts with many tokens reach over what others reach (`ge`).
        expert_gemm: f64 = number("factor", 0.01..=2.0).or(Value::Number(1.0));
        /// Tokens of an expert with which its products reach half of that (`M0`): 280 on Hopper, twice
        /// that on Blackwell, which computes twice as fast.
        expert_tokens: f64 = number("tokens", 0.0..=1e5).or(Value::Number(280.0));
        /// What products of experts in 8 bits reach over what others in 8 bits reach.
        expert_fp8: f64 = number("factor", 0.01..=2.0).or(Value::Number(0.88));
        /// Bandwidth of an all-to-all within an `NVLink` domain over that of rings.
        all_to_all_within: f64 = number("factor", 0.01..=10.0).or(Value::Number(1.24));
        /// Bandwidth of an all-to-all across domains over the share of a GPU in the ports of its node.
        all_to_all_across: f64 = number("factor", 0.01..=10.0).or(Value::Number(1.07));
        /// Latency of an all-to-all within a domain.
        all_to_all_latency: Seconds = quantity("us", 0.0..=LONGEST).or(Value::Number(40e-6));
        /// The same across domains.
        all_to_all_latency_across: Seconds =
            quantity("us", 0.0..=LONGEST).or(Value::Number(83e-6));
        /// Factor on every duration (`rho`): clocks below the nominal ones, stragglers, whatever
        /// slows all work alike.
        slowdown: f64 = number("factor", 0.1..=10.0)
            .or(Value::Number(1.0)).seen_in_time().fitted_within(0.5..=2.0);
    }
}

impl Efficiency {
    /// Share of the peak that flash attention reaches on causal FLOP; `gemm`'s without it.
    #[must_use]
    pub const fn attention(&self, kernel: AttentionKernel) -> f64 {
        match kernel {
            AttentionKernel::Flash1 => self.flash_attention_1,
            AttentionKernel::Flash2 => self.flash_attention_2,
            AttentionKernel::Flash3 => self.flash_attention_3,
            AttentionKernel::Cudnn => self.cudnn_attention,
            AttentionKernel::MegatronFused | AttentionKernel::Torch => self.gemm,
        }
    }
}

figures! {
    /// How far to trust a cluster's figures.
    #[derive(Debug, Clone, PartialEq, Default)]
    pub struct Calibration in "calibration." at cluster.calibration {
        /// How peak memory is wrong: see [`MemoryError`].
        memory: MemoryError,
        /// Source of the figures.
        source: String,
        /// The framework that speeds were fitted with, where the cluster names one.
        framework: Option<String>,
    }
    figures {
        /// Whether speeds were fitted to runs on this cluster, or come from data sheets.
        kind: CalibrationKind = one_of().or(Value::Name("data-sheet"));
        /// Typical relative error of a predicted step time; else what `catalog/evidence.toml` says.
        time_error: Option<f64> = number("share", 0.0..=10.0).optional();
    }
}

figures! {
    /// Distribution of the logarithm of (memory needed at run time / predicted peak): logistic.
    #[derive(Debug, Clone, Copy, PartialEq, Default)]
    pub struct MemoryError in "calibration.memory_" at cluster.calibration.memory {}
    figures {
        /// Scale of the logistic error of the logarithm of peak memory (its standard deviation times
        /// `sqrt(3) / pi`).
        scale: f64 = number("share", 1e-6..=10.0);
        /// Median of that error: above 0 where predicted peaks are too high.
        shift: f64 = number("share", -1.0..=1.0);
    }
}

choice!(
    /// How a cluster's speeds were obtained.
    CalibrationKind, "a kind of calibration" {
        /// Data-sheet hardware, kernels of the GPU's generation.
        DataSheet = "data-sheet",
        /// Fitted to measured runs on this cluster.
        Measured = "measured",
    }
);

/// Coordinates of a layout among others, as a [`Discrepancy`] sees them.
pub const DIMENSIONS: usize = 11;

/// Residuals of measured runs as a Gaussian process over layouts, of which the cost model has the
/// formulas.
#[derive(Debug, Clone, PartialEq)]
pub struct Discrepancy {
    /// Where the runs lie, by the cost model's features of a layout.
    pub points: Vec<[f64; DIMENSIONS]>,
    /// Weight of each run, `(K + noise^2 I)^-1 r`.
    pub weights: Vec<f64>,
    /// Standard deviation of the residuals before any run is seen.
    pub amplitude: f64,
    /// Distance over which residuals are alike.
    pub length_scale: f64,
    /// Standard deviation of a run's own residual.
    pub noise: f64,
}
