//! What the cost model says of a measured run.

use crate::cluster::Cluster;
use crate::cost_model::pipeline::even_partition;
use crate::cost_model::prediction::Prediction;
use crate::cost_model::{self, Costs, Vocabulary};
use crate::framework::{Framework, Partition};
use crate::job::Job;
use crate::layout::{
    AttentionKernel, Combination, Layout, Recompute, RmsNormKernel, Schedule, SequenceParallel,
    Sharding, Stage,
};
use crate::quantity::BytesPerSecond;
use crate::transformer::{Biases, Embeddings, FeedForward, Normalization, SmallParts, Transformer};
use crate::workload::{FlopConvention, Optimizer, Precision, Workload};

use super::record::Run;
use super::setups::Setup;

/// A run as the cost model sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Modelled {
    /// The job.
    pub job: Job,
    /// Its layout.
    pub layout: Layout,
    /// Which stages hold embedding and head.
    pub vocabulary: Vocabulary,
    /// Time and memory that the cost model predicts.
    pub prediction: Prediction,
}

/// Why a row cannot be modelled, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skip(pub String);

/// Whether a run will fit, with room for doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Out of memory with a probability of at most 5 %.
    Yes,
    /// In between.
    Borderline,
    /// Out of memory with a probability of at least 95 %.
    No,
}

impl Verdict {
    /// The verdict at this probability of running out of memory.
    #[must_use]
    pub fn of(oom_probability: f64) -> Self {
        if oom_probability <= 0.05 {
            Self::Yes
        } else if oom_probability < 0.95 {
            Self::Borderline
        } else {
            Self::No
        }
    }

    /// The spelling in output.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::Borderline => "borderline",
            Self::No => "no",
        }
    }
}

/// More layers than any network has: a mistake.
const MOST_LAYERS: u32 = 1024;

/// Vocabulary assumed where a source names none: that of GPT-2, padded.
const USUAL_VOCABULARY: u64 = 50_304;

/// A run as the cost model sees it, before it says anything.
#[derive(Debug, Clone, PartialEq)]
pub struct Shape {
    /// The job.
    pub job: Job,
    /// Its layout.
    pub layout: Layout,
    /// Which stages hold embedding and head.
    pub vocabulary: Vocabulary,
}

/// Figures of cluster and framework that a row states for itself.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Stated {
    /// Measured bus bandwidth within a node.
    pub intra_node: Option<BytesPerSecond>,
    /// Measured bus bandwidth between nodes.
    pub inter_node: Option<BytesPerSecond>,
    /// Bytes of a gradient.
    pub gradient_bytes: Option<f64>,
}

impl Stated {
    /// What the row states.
    #[must_use]
    pub fn of(run: &Run) -> Self {
        let bandwidth = |measured: Option<f64>| {
            let gigabytes = measured.filter(|&gigabytes| gigabytes > 0.0)?;
            Some(BytesPerSecond::new(gigabytes * 1e9))
        };
        Self {
            intra_node: bandwidth(run.intranode_allreduce),
            inter_node: bandwidth(run.internode_allreduce),
            gradient_bytes: run.gradient_bytes,
        }
    }

    /// Puts what the row states in the place of the figures of cluster and framework. Training
    /// reaches a share of a measured bandwidth, which the framework knows.
    pub fn apply(&self, cluster: &mut Cluster, framework: &mut Framework) {
        if let Some(bandwidth) = self.intra_node {
            cluster.intra_node_bandwidth = bandwidth * framework.speed.measured_intra_node;
        }
        if let Some(bandwidth) = self.inter_node {
            cluster.inter_node_bandwidth = bandwidth * framework.speed.measured_inter_node;
        }
        if let Some(bytes) = self.gradient_bytes {
            framework.memory.gradient_bytes = bytes;
        }
    }
}

/// Predicts the run on a cluster under a framework, whose GPUs, GPUs a node, measured bandwidths and
/// gradient bytes give way to those that the row states.
///
/// # Errors
///
/// The reason why the row cannot be modelled.
pub fn model(run: &Run, setup: &Setup) -> Result<Modelled, Skip> {
    readable(run)?;
    let Shape {
        job,
        layout,
        vocabulary,
    } = shape(run, setup)?;
    let costs = Costs::exact(&job, &layout.combination).with_vocabulary(vocabulary);
    let prediction = cost_model::evaluate(&job, &costs, &layout.stages);
    Ok(Modelled {
        job,
        layout,
        vocabulary,
        prediction,
    })
}

/// Job and layout of the run: see [`model`].
///
/// # Errors
///
/// The reason why the row cannot be modelled.
pub fn shape(run: &Run, setup: &Setup) -> Result<Shape, Skip> {
    let (mut cluster, mut framework) = (sized(run, &setup.cluster)?, setup.framework.clone());
    Stated::of(run).apply(&mut cluster, &mut framework);
    let job = Job {
        transformer: transformer(run)?,
        cluster,
        framework,
        workload: workload(run)?,
    };
    let vocabulary = match run.variant.as_str() {
        "vocab" | "synctwice" | "interlaced" => Vocabulary::Spread,
        _ => Vocabulary::Ends,
    };
    Ok(Shape {
        layout: layout(run, &job)?,
        job,
        vocabulary,
    })
}

/// Refuses a row with a fault.
pub(super) fn readable(run: &Run) -> Result<(), Skip> {
    match &run.fault {
        Some(fault) => Err(Skip(format!("{}: {fault}", run.place()))),
        None => Ok(()),
    }
}

fn missing(column: &str) -> Skip {
    Skip(format!("no {column} stated"))
}

/// A number that must be stated and not be zero.
fn stated<N: Copy + PartialEq + Default>(value: Option<N>, column: &str) -> Result<N, Skip> {
    value
        .filter(|number| *number != N::default())
        .ok_or_else(|| missing(column))
}

fn transformer(run: &Run) -> Result<Transformer, Skip> {
    if run.experts.is_some_and(|experts| experts > 1) {
        return Err(Skip("mixtures of experts are not modelled".to_owned()));
    }
    let heads = stated(run.heads, "heads")?;
    let hidden = stated(run.hidden, "hidden size")?;
    let key_value_heads = run
        .key_value_heads
        .filter(|&count| count > 0)
        .unwrap_or(heads);
    let layers = stated(run.layers, "layers")?;
    let broken = if layers > MOST_LAYERS {
        Some(format!("{layers} layers are more than {MOST_LAYERS}"))
    } else if !hidden.is_multiple_of(heads) {
        Some(format!(
            "{heads} heads do not divide a hidden size of {hidden}"
        ))
    } else if !heads.is_multiple_of(key_value_heads) {
        Some(format!(
            "{key_value_heads} key-value heads do not divide {heads} heads"
        ))
    } else {
        None
    };
    if let Some(reason) = broken {
        return Err(Skip(reason));
    }
    Ok(Transformer {
        name: run.model.clone(),
        layers,
        hidden,
        heads,
        key_value_heads,
        head_width: hidden / heads,
        feed_forward_width: stated(run.feed_forward_width, "feed-forward width")?,
        feed_forward: match run.mlp_matrices {
            Some(2) => FeedForward::Plain,
            None | Some(0 | 3) => FeedForward::Gated,
            Some(other) => {
                return Err(Skip(format!(
                    "{other} feed-forward matrices are not modelled"
                )));
            }
        },
        vocabulary: run
            .vocabulary
            .filter(|&size| size > 0)
            .unwrap_or(USUAL_VOCABULARY),
        embeddings: Embeddings::Untied,
        normalization: Normalization::RmsNorm,
        biases: Biases::None,
        learned_positions: 0,
        small_parts: SmallParts::default(),
    })
}

/// The cluster with the row's number of GPUs.
fn sized(run: &Run, cluster: &Cluster) -> Result<Cluster, Skip> {
    if run.gpus_per_node == Some(0) {
        return Err(Skip("a node has 0 GPUs".to_owned()));
    }
    Ok(Cluster {
        gpus: stated(run.gpus, "GPU count")?,
        gpus_per_node: run.gpus_per_node.unwrap_or(cluster.gpus_per_node),
        ..cluster.clone()
    })
}

fn workload(run: &Run) -> Result<Workload, Skip> {
    let precision = match run.precision.as_str() {
        "" | "bf16" => Precision::Bf16,
        "fp16" => Precision::Fp16,
        "fp8" | "mxfp8" => Precision::Fp8,
        other => return Err(Skip(format!("precision {other} is not modelled"))),
    };
    Ok(Workload {
        sequence_length: stated(run.sequence_length, "sequence length")?,
        global_batch: stated(run.global_batch, "global batch")?,
        precision,
        optimizer: Optimizer::Adam,
        mfu_convention: FlopConvention::Paper,
    })
}

fn layout(run: &Run, job: &Job) -> Result<Layout, Skip> {
    let mut cell = cell(run, &job.framework)?;
    if cell.expert_parallel > 1 {
        return Err(Skip("expert parallelism is not modelled".to_owned()));
    }
    if cell.gpus() != u64::from(job.cluster.gpus) {
        return Err(Skip(format!(
            "degrees multiply to {}, not to {} GPUs",
            cell.gpus(),
            job.cluster.gpus
        )));
    }
    let micro_batches = cell.micro_batches(job.workload.global_batch);
    if micro_batches == 0 {
        return Err(Skip(
            "the global batch is smaller than one micro-batch a replica".to_owned(),
        ));
    }
    let (batch, replicas) = (job.workload.global_batch, u64::from(cell.data_parallel));
    let at_once = replicas * u64::from(cell.micro_batch);
    if !batch.is_multiple_of(at_once) {
        return Err(Skip(format!(
            "{replicas} replicas with micro-batches of {} do not divide a global batch of {batch}",
            cell.micro_batch
        )));
    }
    let layers = job.transformer.layers;
    if cell.pipeline_parallel > layers {
        return Err(Skip(format!(
            "{layers} layers cannot fill {} stages",
            cell.pipeline_parallel
        )));
    }
    let stages = cell.pipeline_parallel;
    let cut = even_partition(job.framework.partition, layers, stages)
        .or_else(|| even_partition(Partition::Even, layers, stages))
        .ok_or_else(|| {
            Skip(format!(
                "{layers} layers cannot be cut into {stages} stages"
            ))
        })?;
    if run.schedule == "1f1b-i" && run.virtual_stages.is_none() {
        // Interleaved as finely as the layers allow, where the source does not say.
        cell.virtual_stages = cut.iter().copied().max().unwrap_or(1);
    }
    let recompute = match run.checkpointing.as_str() {
        "" | "none" => None,
        "full" => Some(Recompute::Full),
        "selective" => Some(Recompute::AttentionCore),
        other => return Err(Skip(format!("checkpointing {other} is not modelled"))),
    };
    let stage = |layers: u32| {
        let mut stage = Stage {
            layers,
            recomputed: [0; 3],
        };
        if let Some(mode) = recompute {
            stage.recomputed[mode as usize] = layers;
        }
        stage
    };
    Ok(Layout {
        combination: cell,
        stages: cut.into_iter().map(stage).collect(),
    })
}

fn cell(run: &Run, framework: &Framework) -> Result<Combination, Skip> {
    let tensor_parallel = stated(run.tensor_parallel, "tensor-parallel degree")?;
    let schedule = match run.schedule.as_str() {
        "" | "1f1b-i" => Schedule::OneForwardOneBackward,
        named => Schedule::parse(named)
            .ok_or_else(|| Skip(format!("schedule {named} is not modelled")))?,
    };
    let attention_kernel = match run.attention_kernel.as_str() {
        "" => framework.usual_attention,
        "flash-attention" => AttentionKernel::Flash2,
        named => AttentionKernel::parse(named)
            .ok_or_else(|| Skip(format!("attention kernel {named} is not modelled")))?,
    };
    let sharding = match run.sharding.as_str() {
        "" => Sharding::OptimizerStates,
        named => Sharding::parse(named)
            .ok_or_else(|| Skip(format!("sharding {named} is not modelled")))?,
    };
    let split = run
        .sequence_parallel
        .unwrap_or(framework.usual_sequence_parallel == SequenceParallel::On)
        && tensor_parallel > 1;
    Ok(Combination {
        tensor_parallel,
        pipeline_parallel: stated(run.pipeline_parallel, "pipeline-parallel degree")?,
        data_parallel: stated(run.data_parallel, "data-parallel degree")?,
        context_parallel: run.context_parallel.unwrap_or(1).max(1),
        expert_parallel: run.expert_parallel.unwrap_or(1).max(1),
        virtual_stages: run.virtual_stages.unwrap_or(1).max(1),
        micro_batch: stated(run.micro_batch, "micro-batch")?,
        sequence_parallel: if split {
            SequenceParallel::On
        } else {
            SequenceParallel::Off
        },
        sharding,
        attention_kernel,
        rmsnorm_kernel: match run.rmsnorm_kernel {
            Some(true) => RmsNormKernel::Fused,
            Some(false) => RmsNormKernel::Unfused,
            None => framework.usual_rmsnorm,
        },
        schedule,
    })
}
