//! The physical parameters of the cost model that runs can teach, as one table.
//!
//! A parameter is named by its key in a cluster file (`efficiency.gemm`), which is where its fitted
//! value is written.

use crate::cluster::Cluster;
use crate::framework::Framework;
use crate::quantity::{Bytes, BytesPerSecond, Seconds};

/// What a parameter is seen in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// Step times.
    InTime,
    /// Memory: peaks, and which runs fit.
    InMemory,
}

/// The unit of a parameter's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A plain number.
    Number,
    /// A whole number.
    Count,
    /// Bytes.
    Bytes,
    /// Bytes a second.
    BytesPerSecond,
    /// Seconds.
    Seconds,
}

/// One physical parameter.
#[derive(Debug)]
pub struct Parameter {
    /// Its key in a cluster file.
    pub key: &'static str,
    /// Unit of its value.
    pub unit: Unit,
    /// What it is seen in.
    pub seen: Seen,
    /// Bounds whatever the prior; those of the prior lie within.
    pub bounds: (f64, f64),
    get: fn(&Cluster, &Framework) -> f64,
    set: fn(&mut Cluster, &mut Framework, f64),
}

impl Parameter {
    /// The parameter with this key.
    #[must_use]
    pub fn named(key: &str) -> Option<&'static Self> {
        PARAMETERS.iter().find(|parameter| parameter.key == key)
    }

    /// Its value.
    #[must_use]
    pub fn get(&self, cluster: &Cluster, framework: &Framework) -> f64 {
        (self.get)(cluster, framework)
    }

    /// Gives it a value.
    pub fn set(&self, cluster: &mut Cluster, framework: &mut Framework, value: f64) {
        (self.set)(cluster, framework, value);
    }

    /// Whether it may be 0, so that its prior is normal instead of log-normal.
    #[must_use]
    pub fn is_additive(&self) -> bool {
        self.unit == Unit::Bytes
    }
}

macro_rules! parameters {
    ($($seen:ident { $($key:literal: $unit:ident $owner:ident.$($field:ident).+ in $bounds:expr,)+ })+) => {
        /// Every parameter that can be fitted, in the order of reports.
        pub static PARAMETERS: &[Parameter] = &[$($(Parameter {
            key: $key,
            unit: Unit::$unit,
            seen: Seen::$seen,
            bounds: $bounds,
            get: |cluster, framework| {
                let owners = Owners { cluster, framework };
                read!($unit owners.$owner.$($field).+)
            },
            set: |cluster, framework, value| {
                let owners = OwnersMut { cluster, framework };
                owners.$owner.$($field).+ = write!($unit value);
            },
        },)+)+];
    };
}

macro_rules! read {
    (Number $place:expr) => {
        $place
    };
    ($unit:ident $place:expr) => {
        $place.value()
    };
}

macro_rules! write {
    (Number $value:expr) => {
        $value
    };
    ($unit:ident $value:expr) => {
        $unit::new($value)
    };
}

/// GPUs a node: never fitted, but runs may state it.
pub(super) static GPUS_PER_NODE: Parameter = Parameter {
    key: "gpus_per_node",
    unit: Unit::Count,
    seen: Seen::InTime,
    bounds: (1.0, f64::INFINITY),
    get: |cluster, _| f64::from(cluster.gpus_per_node),
    set: |cluster, _, value| cluster.gpus_per_node = value as u32,
};

/// Where parameters live.
struct Owners<'a> {
    cluster: &'a Cluster,
    framework: &'a Framework,
}

/// Where parameters live, to write them.
struct OwnersMut<'a> {
    cluster: &'a mut Cluster,
    framework: &'a mut Framework,
}

/// No bound but those of the prior.
const ANY: (f64, f64) = (0.0, f64::INFINITY);

parameters! {
    InTime {
        "intra_node_bandwidth": BytesPerSecond cluster.intra_node_bandwidth in ANY,
        "inter_node_bandwidth": BytesPerSecond cluster.inter_node_bandwidth in ANY,
        "efficiency.gemm": Number cluster.efficiency.gemm in (0.3, 0.95),
        "efficiency.flash_attention_1": Number cluster.efficiency.flash_attention_1 in (0.1, 0.7),
        "efficiency.flash_attention_2": Number cluster.efficiency.flash_attention_2 in (0.1, 0.95),
        "efficiency.ring_hop": Seconds cluster.efficiency.ring_hop in ANY,
        "efficiency.congestion": Number cluster.efficiency.congestion in (0.001, 1.2),
        "efficiency.collective_latency": Seconds cluster.efficiency.collective_latency in ANY,
        "efficiency.pipeline_hop_latency": Seconds cluster.efficiency.pipeline_hop_latency in ANY,
        "efficiency.slowdown": Number cluster.efficiency.slowdown in (0.5, 2.0),
        "framework.speed.elementwise": Number framework.speed.elementwise in (0.0, 100.0),
        "framework.speed.rmsnorm_bytes": Number framework.speed.rmsnorm_bytes in (0.0, 1e4),
        "framework.speed.softmax_bytes_fused": Number framework.speed.softmax_bytes_fused in (0.0, 1e4),
        "framework.speed.softmax_bytes_torch": Number framework.speed.softmax_bytes_torch in (0.0, 1e4),
        "framework.speed.logit_bytes": Number framework.speed.logit_bytes in (0.0, 1e4),
        "framework.speed.launch": Seconds framework.speed.launch in ANY,
        "framework.speed.launch_unfused": Seconds framework.speed.launch_unfused in ANY,
        "framework.speed.launch_recompute": Number framework.speed.launch_recompute in (0.0, 10.0),
        "framework.speed.launch_norm": Number framework.speed.launch_norm in (1.0, 12.0),
        "framework.speed.micro_batch_overhead": Seconds framework.speed.micro_batch_overhead in ANY,
        "framework.speed.step_overhead": Seconds framework.speed.step_overhead in ANY,
        "framework.speed.transfer_exposed": Number framework.speed.transfer_exposed in (0.0, 100.0),
        "framework.speed.bubble": Number framework.speed.bubble in (0.5, 4.0),
        "framework.speed.bubble_zero_1p": Number framework.speed.bubble_zero_1p in (0.0, 4.0),
        "framework.speed.bubble_zero_2p": Number framework.speed.bubble_zero_2p in (0.0, 4.0),
        "framework.speed.bubble_interleaved": Number framework.speed.bubble_interleaved in (0.0, 1.0),
        "framework.speed.sharded_latency": Seconds framework.speed.sharded_latency in ANY,
        "framework.speed.sharded_norm": Number framework.speed.sharded_norm in (1.0, 12.0),
        "framework.speed.measured_intra_node": Number framework.speed.measured_intra_node in (0.01, 100.0),
        "framework.speed.measured_inter_node": Number framework.speed.measured_inter_node in (0.01, 100.0),
        "framework.speed.tensor_parallel_across": Number framework.speed.tensor_parallel_across in (0.01, 100.0),
    }
    InMemory {
        "framework.memory.gradient_bytes": Number framework.memory.gradient_bytes in (1.0, 16.0),
        "framework.memory.activation_factor": Number framework.memory.activation_factor in (0.05, 20.0),
        "framework.memory.norm_bytes": Number framework.memory.norm_bytes in (0.0, 100.0),
        "framework.memory.logit_bytes": Number framework.memory.logit_bytes in (0.0, 100.0),
        "framework.memory.working_bytes": Number framework.memory.working_bytes in (0.0, 1000.0),
        "framework.memory.fixed": Bytes framework.memory.fixed in (0.0, 40e9),
    }
}
