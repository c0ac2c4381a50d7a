//! The machine: accelerators, nodes, networks, and how efficiently software uses them.

use crate::cost_model::discrepancy::DIMENSIONS;
use crate::layout::AttentionKernel;
use crate::quantity::{Bytes, BytesPerSecond, FlopsPerSecond, Seconds};
use crate::workload::Precision;

/// One kind of GPU, from its data sheet.
#[derive(Debug, Clone, PartialEq)]
pub struct Accelerator {
    /// Catalog name, such as `a100-80gb`.
    pub name: String,
    /// Memory that a training process can use.
    pub usable_memory: Bytes,
    /// Bandwidth of the device memory.
    pub memory_bandwidth: BytesPerSecond,
    /// Dense peak at bf16 (and fp16).
    pub peak_bf16: FlopsPerSecond,
    /// Dense peak at fp8, where the GPU has it.
    pub peak_fp8: Option<FlopsPerSecond>,
}

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

/// Equal nodes of equal GPUs, with what is known of their speed.
#[derive(Debug, Clone, PartialEq)]
pub struct Cluster {
    /// Catalog name or the user's.
    pub name: String,
    /// The GPU of every node.
    pub accelerator: Accelerator,
    /// GPUs of the job, `G`.
    pub gpus: u32,
    /// GPUs a node, `g_node`.
    pub gpus_per_node: u32,
    /// Bus bandwidth of collectives within a node, a GPU.
    pub intra_node_bandwidth: BytesPerSecond,
    /// Bandwidth that a node's GPUs share towards other nodes.
    pub inter_node_bandwidth: BytesPerSecond,
    /// What software reaches of the hardware's peaks.
    pub efficiency: Efficiency,
    /// Where the figures come from.
    pub calibration: Calibration,
    /// What measured runs say beyond the formulas, where that was learned.
    pub discrepancy: Option<Discrepancy>,
}

/// Fitted or assumed parameters of the cost model that belong to GPU and network.
#[derive(Debug, Clone, PartialEq)]
pub struct Efficiency {
    /// Share of the peak that matrix products reach, `eta_gemm`.
    pub gemm: f64,
    /// Share of the peak of FlashAttention 1 on causal FLOP, `eta_flash1`.
    pub flash_attention_1: f64,
    /// Share of the peak of FlashAttention 2 on causal FLOP, `eta_flash2`.
    pub flash_attention_2: f64,
    /// Share of the device-memory bandwidth that streaming kernels reach.
    pub memory_bandwidth: f64,
    /// Time of a ring hop for 1e6 parameters, `alpha`.
    pub ring_hop: Seconds,
    /// Exponent of network congestion over GPUs, `gamma`.
    pub congestion: f64,
    /// Latency of one rank-to-rank hop of a tensor-parallel collective, `lat_coll`.
    pub collective_latency: Seconds,
    /// Latency of one transfer between pipeline stages, `lat_hop`.
    pub pipeline_hop_latency: Seconds,
    /// Factor on every duration, `rho`: clocks below the nominal ones, stragglers, whatever slows all
    /// work alike. 1 unless it was measured.
    pub slowdown: f64,
}

impl Efficiency {
    /// Share of the peak that flash attention reaches on causal FLOP; `gemm`'s without it.
    #[must_use]
    pub const fn attention(&self, kernel: AttentionKernel) -> f64 {
        match kernel {
            AttentionKernel::Flash1 => self.flash_attention_1,
            AttentionKernel::Flash2 => self.flash_attention_2,
            AttentionKernel::MegatronFused | AttentionKernel::Torch => self.gemm,
        }
    }
}

/// Where a cluster's figures come from, and how far to trust what follows from them.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibration {
    /// Whether speeds were fitted to measured runs.
    pub kind: CalibrationKind,
    /// Typical relative error of a predicted step time (a share).
    pub time_error: f64,
    /// How peak memory is wrong: see [`MemoryError`].
    pub memory: MemoryError,
    /// Source of the figures.
    pub source: String,
}

/// How a cluster's speeds were obtained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CalibrationKind {
    /// Fitted to measured runs on this cluster.
    Measured,
    /// Data-sheet hardware, software efficiencies of a similar cluster.
    DataSheet,
}

/// Distribution of the logarithm of (memory needed at run time / predicted peak): logistic.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MemoryError {
    /// Its median: above 0 where the prediction is too high.
    pub shift: f64,
    /// Its scale (standard deviation times `sqrt(3) / pi`).
    pub scale: f64,
}

/// Residuals of measured runs as a Gaussian process over layouts: see
/// [`discrepancy`](crate::cost_model::discrepancy).
#[derive(Debug, Clone, PartialEq)]
pub struct Discrepancy {
    /// Where the runs lie, by [`features`](crate::cost_model::discrepancy::features).
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
