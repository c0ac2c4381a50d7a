//! The figures and named choices of a job by key: what a certificate says of it.
//!
//! Names, sources and what the cost model does not read are not among them.

use crate::cost_model::flops::FlopConvention;
use crate::framework::{CheckpointRule, FusedRmsNorm, Logits, OptimizerWork, Partition};
use crate::instance::Choice;
use crate::job::Job;
use crate::quantity::{Bytes, BytesPerSecond, FlopsPerSecond, Seconds};
use crate::rule::Rule;
use crate::transformer::FeedForward;
use crate::workload::{Optimizer, Precision};

/// A figure of the job.
pub(crate) struct Parameter {
    /// The key.
    pub(crate) key: &'static str,
    /// What it may be.
    pub(crate) range: Range,
    /// The rules that it decides, where it may be left out.
    pub(crate) rules: &'static [Rule],
    /// The figure, in the unit that the key ends with.
    pub(crate) get: fn(&Job) -> f64,
    /// Replaces it.
    pub(crate) set: fn(&mut Job, f64),
}

/// What a figure may be. The limits are far beyond any job, so that no arithmetic overflows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Range {
    /// A whole number from 1; always stated.
    Count(u32),
    /// A whole number from 1 that may be left out.
    Size(u32),
    /// The same, and of some numbers alike the smallest is stated.
    Whole(u32),
    /// Above 0, such as what costs are divided by.
    Positive,
    /// At least 0.
    NotNegative,
    /// Between -1 and 1.
    Signed,
    /// Seconds, at least 0.
    Duration,
    /// An exponent of a norm: at least 1.
    Norm,
}

impl Range {
    /// Largest figure.
    const LARGEST: f64 = 1e24;
    /// Smallest figure above 0.
    const SMALLEST: f64 = 1e-24;

    /// Whether `value` lies in the range.
    pub(crate) fn contains(self, value: f64) -> bool {
        match self {
            Self::Count(most) | Self::Size(most) | Self::Whole(most) => {
                value.fract() == 0.0 && (1.0..=f64::from(most)).contains(&value)
            }
            Self::Positive => (Self::SMALLEST..=Self::LARGEST).contains(&value),
            Self::NotNegative => (0.0..=Self::LARGEST).contains(&value),
            Self::Signed => (-1.0..=1.0).contains(&value),
            Self::Duration => (0.0..=1000.0).contains(&value),
            Self::Norm => (1.0..=Self::LARGEST).contains(&value),
        }
    }

    /// The figure with the same effect that lies in the range: exponents below 1 count as 1.
    pub(crate) const fn effective(self, value: f64) -> f64 {
        match self {
            Self::Norm => value.max(1.0),
            _ => value,
        }
    }

    /// Whether the figure is always stated.
    pub(crate) const fn is_required(self) -> bool {
        matches!(self, Self::Count(_))
    }

    /// Whether the figure is a whole number.
    pub(crate) const fn is_whole(self) -> bool {
        matches!(self, Self::Count(_) | Self::Size(_) | Self::Whole(_))
    }
}

/// A named choice of the job.
pub(crate) struct Named {
    /// The key.
    pub(crate) key: &'static str,
    /// Whether it changes costs or rules.
    pub(crate) scope: Scope,
    /// The rules with a table that it decides.
    pub(crate) rules: &'static [Rule],
    /// The names, in order.
    pub(crate) names: fn() -> Vec<&'static str>,
    /// Position of the job's name.
    pub(crate) get: fn(&Job) -> usize,
    /// Chooses the name at a position.
    pub(crate) set: fn(&mut Job, usize),
}

/// What a named choice changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Coefficients of cells.
    Costs,
    /// Which layouts are permitted.
    Rules,
}

/// A field that holds a figure.
trait Figure {
    fn figure(&self) -> f64;
    fn replace(&mut self, value: f64);
}

impl Figure for f64 {
    fn figure(&self) -> f64 {
        *self
    }
    fn replace(&mut self, value: f64) {
        *self = value;
    }
}

impl Figure for u32 {
    fn figure(&self) -> f64 {
        f64::from(*self)
    }
    fn replace(&mut self, value: f64) {
        *self = value as Self;
    }
}

impl Figure for u64 {
    fn figure(&self) -> f64 {
        *self as f64
    }
    fn replace(&mut self, value: f64) {
        *self = value as Self;
    }
}

macro_rules! quantities {
    ($($quantity:ident),+) => {
        $(impl Figure for $quantity {
            fn figure(&self) -> f64 {
                self.value()
            }
            fn replace(&mut self, value: f64) {
                *self = $quantity::new(value);
            }
        })+
    };
}

quantities!(Bytes, BytesPerSecond, FlopsPerSecond, Seconds);

macro_rules! parameters {
    ($($key:literal $range:expr => $($place:ident).+ $(, $unit:ident)?;)+) => {
        /// Every figure, in the order of the document.
        pub(crate) const PARAMETERS: &[Parameter] = &[
            $(Parameter {
                key: $key,
                range: $range,
                rules: if matches!($range, Whole(_)) { &[Rule::TensorParallelWithinNode] } else { &[] },
                get: |job| $range.effective(job.$($place).+.figure() $(/ $unit)?),
                set: |job, value| job.$($place).+.replace(value $(* $unit)?),
            },)+
            // Where the GPU has no fp8 units, its peak at fp8 is that at bf16.
            Parameter {
                key: "cluster.peak_fp8_tflops",
                range: Positive,
                rules: &[],
                get: |job| {
                    let accelerator = &job.cluster.accelerator;
                    accelerator.peak_fp8.unwrap_or(accelerator.peak_bf16).value() / TERA
                },
                set: |job, value| {
                    let peak = FlopsPerSecond::new(value * TERA);
                    job.cluster.accelerator.peak_fp8 = Some(peak);
                },
            },
        ];
    };
}

macro_rules! named {
    ($($key:literal $scope:ident $([$($rule:ident),*])? $kind:ident => $($place:ident).+;)+) => {
        /// Every named choice, in the order of the document.
        pub(crate) const NAMED: &[Named] = &[
            $(Named {
                key: $key,
                scope: Scope::$scope,
                rules: &[$($(Rule::$rule),*)?],
                names: || $kind::named().into_iter().map(|(name, _)| name).collect(),
                get: |job| {
                    let mut variants = $kind::named().into_iter();
                    variants
                        .position(|(_, variant)| variant == job.$($place).+)
                        .unwrap_or(0)
                },
                set: |job, index| {
                    if let Some(&(_, variant)) = $kind::named().get(index) {
                        job.$($place).+ = variant;
                    }
                },
            },)+
        ];
    };
}

use Range::{Count, Duration, Norm, NotNegative, Positive, Signed, Size, Whole};

/// Bytes of a GB, bytes a second of a GB/s.
const GIGA: f64 = 1e9;
/// FLOP a second of a TFLOP/s.
const TERA: f64 = 1e12;

parameters! {
    "transformer.layers" Count(100_000) => transformer.layers;
    "transformer.hidden" Size(1 << 20) => transformer.hidden;
    "transformer.heads" Count(1 << 20) => transformer.heads;
    "transformer.key_value_heads" Count(1 << 20) => transformer.key_value_heads;
    "transformer.head_width" Size(1 << 22) => transformer.head_width;
    "transformer.feed_forward_width" Size(1 << 22) => transformer.feed_forward_width;
    "transformer.vocabulary" Size(1 << 26) => transformer.vocabulary;
    "workload.sequence_length" Count(1 << 27) => workload.sequence_length;
    "workload.global_batch" Count(1 << 30) => workload.global_batch;
    "cluster.gpus" Count(1 << 20) => cluster.gpus;
    "cluster.gpus_per_node" Whole(1 << 14) => cluster.gpus_per_node;
    "cluster.usable_memory_gb" Positive => cluster.accelerator.usable_memory, GIGA;
    "cluster.memory_bandwidth_gb_per_s" Positive => cluster.accelerator.memory_bandwidth, GIGA;
    "cluster.peak_bf16_tflops" Positive => cluster.accelerator.peak_bf16, TERA;
    "cluster.intra_node_bandwidth_gb_per_s" Positive => cluster.intra_node_bandwidth, GIGA;
    "cluster.inter_node_bandwidth_gb_per_s" Positive => cluster.inter_node_bandwidth, GIGA;
    "cluster.memory_error.shift" Signed => cluster.calibration.memory.shift;
    "cluster.memory_error.scale" Positive => cluster.calibration.memory.scale;
    "cluster.efficiency.gemm" Positive => cluster.efficiency.gemm;
    "cluster.efficiency.flash_attention_1" Positive => cluster.efficiency.flash_attention_1;
    "cluster.efficiency.flash_attention_2" Positive => cluster.efficiency.flash_attention_2;
    "cluster.efficiency.memory_bandwidth" Positive => cluster.efficiency.memory_bandwidth;
    "cluster.efficiency.ring_hop_s" Duration => cluster.efficiency.ring_hop;
    "cluster.efficiency.congestion" NotNegative => cluster.efficiency.congestion;
    "cluster.efficiency.collective_latency_s" Duration =>
        cluster.efficiency.collective_latency;
    "cluster.efficiency.pipeline_hop_latency_s" Duration =>
        cluster.efficiency.pipeline_hop_latency;
    "cluster.efficiency.slowdown" Positive => cluster.efficiency.slowdown;
    "framework.memory.gradient_bytes" NotNegative => framework.memory.gradient_bytes;
    "framework.memory.logit_bytes" NotNegative => framework.memory.logit_bytes;
    "framework.memory.logit_bytes_gathered" NotNegative => framework.memory.logit_bytes_gathered;
    "framework.memory.norm_bytes" NotNegative => framework.memory.norm_bytes;
    "framework.memory.hidden_bytes" NotNegative => framework.memory.hidden_bytes;
    "framework.memory.gathered_bytes" NotNegative => framework.memory.gathered_bytes;
    "framework.memory.attention_bytes" NotNegative => framework.memory.attention_bytes;
    "framework.memory.feed_forward_bytes" NotNegative => framework.memory.feed_forward_bytes;
    "framework.memory.working_bytes" NotNegative => framework.memory.working_bytes;
    "framework.memory.activation_factor" NotNegative => framework.memory.activation_factor;
    "framework.memory.fixed_gb" NotNegative => framework.memory.fixed, GIGA;
    "framework.memory.communicator_gb" NotNegative => framework.memory.communicator, GIGA;
    "framework.speed.elementwise" NotNegative => framework.speed.elementwise;
    "framework.speed.rmsnorm_bytes" NotNegative => framework.speed.rmsnorm_bytes;
    "framework.speed.softmax_bytes_fused" NotNegative => framework.speed.softmax_bytes_fused;
    "framework.speed.softmax_bytes_torch" NotNegative => framework.speed.softmax_bytes_torch;
    "framework.speed.logit_bytes" NotNegative => framework.speed.logit_bytes;
    "framework.speed.launch_s" Duration => framework.speed.launch;
    "framework.speed.launch_unfused_s" Duration => framework.speed.launch_unfused;
    "framework.speed.launch_recompute" NotNegative => framework.speed.launch_recompute;
    "framework.speed.launch_norm" Norm => framework.speed.launch_norm;
    "framework.speed.micro_batch_overhead_s" Duration => framework.speed.micro_batch_overhead;
    "framework.speed.step_overhead_s" Duration => framework.speed.step_overhead;
    "framework.speed.transfer_exposed" NotNegative => framework.speed.transfer_exposed;
    "framework.speed.bubble" NotNegative => framework.speed.bubble;
    "framework.speed.bubble_zero_1p" NotNegative => framework.speed.bubble_zero_1p;
    "framework.speed.bubble_zero_2p" NotNegative => framework.speed.bubble_zero_2p;
    "framework.speed.bubble_interleaved" NotNegative => framework.speed.bubble_interleaved;
    "framework.speed.reduction_bytes" NotNegative => framework.speed.reduction_bytes;
    "framework.speed.sharded_bytes" NotNegative => framework.speed.sharded_bytes;
    "framework.speed.sharded_latency_s" Duration => framework.speed.sharded_latency;
    "framework.speed.sharded_norm" Norm => framework.speed.sharded_norm;
    "framework.speed.tensor_parallel_across" Positive => framework.speed.tensor_parallel_across;
}

named! {
    "transformer.feed_forward" Costs FeedForward => transformer.feed_forward;
    "workload.mfu_convention" Costs FlopConvention => workload.mfu_convention;
    "workload.precision" Costs Precision => workload.precision;
    "workload.optimizer" Costs Optimizer => workload.optimizer;
    "framework.partition" Rules [LayersCoverStages] Partition => framework.partition;
    "framework.checkpoint_rule" Rules CheckpointRule => framework.checkpoint_rule;
    "framework.fused_rmsnorm" Rules [RmsNormKernelExcludesCheckpointing] FusedRmsNorm => framework.fused_rmsnorm;
    "framework.memory.logits" Costs Logits => framework.memory.logits;
    "framework.speed.optimizer_work" Costs OptimizerWork => framework.speed.optimizer_work;
}
