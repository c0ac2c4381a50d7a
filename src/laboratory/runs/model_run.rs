//! What the cost model says of a measured run.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::cluster::Cluster;
use crate::cost_model::pipeline::{even_partition, framework_cut};
use crate::cost_model::prediction::Prediction;
use crate::cost_model::{self, Costs, Vocabulary};
use crate::framework::{Dispatcher, ExpertSplit, Framework, Interleaving, LoggedPeak, Partition};
use crate::job::Job;
use crate::layout::{
    AttentionKernel, Checkpointing, Combination, Layout, Recompute, RmsNormKernel, Schedule,
    SequenceParallel, Sharding, Stage,
};
use crate::quantity::BytesPerSecond;
use crate::transformer::FeedForward;
use crate::workload::{FlopConvention, Optimizer, Precision, USUAL_IMBALANCE, Workload};

use super::network::{demand_modelled, has_experts, transformer};
use super::record::{Run, Status};
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
    /// What a verdict on its memory needs and the row does not state: then there is none.
    pub unstated: Option<&'static str>,
}

impl Modelled {
    /// Predicted probability of running out of memory; `None` where the row does not state what
    /// decides it.
    #[must_use]
    pub const fn oom_probability(&self) -> Option<f64> {
        match self.unstated {
            None => Some(self.prediction.oom_probability),
            Some(_) => None,
        }
    }

    /// The stage (from 0) that a measured peak of the run is of: the stated one, or the one that the
    /// framework logs; `None` for the fullest.
    #[must_use]
    pub fn measured_stage(&self, run: &Run) -> Option<u32> {
        run.peak_stage
            .or(match self.job.framework.memory.logged_peak {
                LoggedPeak::FullestStage => None,
                LoggedPeak::FirstStage => Some(0),
            })
    }
}

/// Why a row cannot be modelled, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skip(pub String);

/// Runs left out for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Skipped {
    /// The reason.
    pub because: String,
    /// How many.
    pub runs: usize,
}

impl Skipped {
    /// How often each reason holds, most frequent first.
    #[must_use]
    pub fn by_reason(skips: impl IntoIterator<Item = Skip>) -> Vec<Self> {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for Skip(reason) in skips {
            *counts.entry(reason).or_default() += 1;
        }
        let counts = counts.into_iter();
        let mut skipped: Vec<Self> = counts
            .map(|(because, runs)| Self { because, runs })
            .collect();
        skipped.sort_by_key(|it| Reverse(it.runs));
        skipped
    }
}

/// Refuses what does not hold.
pub(super) fn demand(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), Skip> {
    if holds {
        Ok(())
    } else {
        Err(Skip(otherwise()))
    }
}

/// Whether a run will fit at this probability of running out of memory, with room for doubt.
#[must_use]
pub fn fits(oom_probability: f64) -> &'static str {
    if oom_probability <= 0.05 {
        "yes"
    } else if oom_probability < 0.95 {
        "borderline"
    } else {
        "no"
    }
}

/// Share of the line rate of its ports that training reaches between nodes: the least that was seen
/// on nodes with as many ports as GPUs (`catalog/clusters.toml`).
const LINE_RATE_REACHED: f64 = 0.7;

/// What training reaches of `gigabytes` per second, the line rate of a node's ports.
pub(super) fn reached_of_line_rate(gigabytes: f64) -> BytesPerSecond {
    BytesPerSecond::new(gigabytes * 1e9 * LINE_RATE_REACHED)
}

/// Figures of cluster and framework that a row states for itself.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Stated {
    /// Measured bus bandwidth within a node.
    pub intra_node: Option<BytesPerSecond>,
    /// Measured bus bandwidth between nodes.
    pub inter_node: Option<BytesPerSecond>,
    /// Line rate of a node's network ports.
    pub line_rate: Option<BytesPerSecond>,
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
            line_rate: bandwidth(run.node_bandwidth),
            gradient_bytes: run.gradient_bytes,
        }
    }

    /// Puts what the row states in the place of the figures of cluster and framework. Training
    /// reaches a share of a measured bandwidth, which the framework knows.
    pub fn apply(&self, cluster: &mut Cluster, framework: &mut Framework) {
        if let Some(bandwidth) = self.intra_node {
            cluster.intra_node_bandwidth = bandwidth * framework.speed.measured_intra_node;
        }
        if let Some(rate) = self.line_rate {
            cluster.inter_node_bandwidth = rate * LINE_RATE_REACHED;
        }
        if let Some(bandwidth) = self.inter_node {
            cluster.inter_node_bandwidth = bandwidth * framework.speed.measured_inter_node;
        }
        if let Some(bytes) = self.gradient_bytes {
            framework.memory.set_gradients(bytes);
        }
    }
}

/// Predicts the run on a cluster under a framework, whose GPUs, nodes, bandwidths and gradient bytes
/// give way to those that the row states.
///
/// # Errors
///
/// The reason why the row cannot be modelled.
pub fn model(run: &Run, setup: &Setup) -> Result<Modelled, Skip> {
    readable(run)?;
    demand_modelled(run)?;
    let (mut cluster, mut framework) = (sized(run, &setup.cluster)?, setup.framework.clone());
    Stated::of(run).apply(&mut cluster, &mut framework);
    if let Some(dispatcher) = dispatcher(run)? {
        framework.speed.dispatcher = dispatcher;
    }
    if run.variant.contains("EP overlap on") {
        framework.speed.all_to_all_exposed = OVERLAPPED;
    }
    let mut transformer = transformer(run)?;
    if transformer.feed_forward == FeedForward::Plain {
        transformer.numerics.hidden_dropout = framework.usual_dropout;
        transformer.numerics.attention_dropout = framework.usual_dropout;
    }
    let job = Job {
        transformer,
        cluster,
        workload: workload(run, &framework)?,
        framework,
    };
    let vocabulary = match run.variant.as_str() {
        "vocab" => Vocabulary::Spread,
        "synctwice" => Vocabulary::SpreadSyncedTwice,
        "interlaced" => Vocabulary::Interlaced,
        _ => Vocabulary::Ends,
    };
    let mut layout = layout(run, &job)?;
    let costs = Costs::exact(&job, &layout.combination).with_vocabulary(vocabulary);
    let mut prediction = cost_model::evaluate(&job, &costs, &layout.stages);
    if must_recompute(run, &prediction) {
        for stage in &mut layout.stages {
            stage.recomputed[Recompute::Full as usize] = stage.layers;
        }
        prediction = cost_model::evaluate(&job, &costs, &layout.stages);
    }
    Ok(Modelled {
        job,
        layout,
        vocabulary,
        prediction,
        unstated: unstated(run, &setup.framework),
    })
}

/// Share of the all-to-all that shows where the framework runs it beside other micro-batches' products
/// (Megatron-LM, `--overlap-moe-expert-parallel-comm`): what pairs of measured runs with and without it showed.
const OVERLAPPED: f64 = 0.41;

/// The dispatcher of a run that states one.
fn dispatcher(run: &Run) -> Result<Option<Dispatcher>, Skip> {
    choice("dispatcher", &run.dispatcher, |name| match name {
        "alltoall" | "allgather" => Some(Dispatcher::AllToAll),
        _ if name.starts_with("deepep") || name == "hybridep" => Some(Dispatcher::Deduplicated),
        _ => None,
    })
}

/// A run that trained without saying how it checkpointed, and needed this many times its memory
/// without, recomputed its layers.
const HOPELESS: f64 = 1.5;

fn must_recompute(run: &Run, prediction: &Prediction) -> bool {
    let memory = &prediction.memory;
    run.checkpointing.is_empty()
        && run.status == Status::Ok
        && memory.peak() > memory.capacity * HOPELESS
}

/// What a verdict on memory needs and the row does not state.
fn unstated(run: &Run, framework: &Framework) -> Option<&'static str> {
    if run.checkpointing.is_empty() {
        return Some("checkpointing");
    }
    is_finely_interleaved(run, framework).then_some("virtual stages")
}

/// Whether a run with a pipeline that does not state its virtual stages is taken for one with a layer
/// in each: it was interleaved, or the framework usually does so.
fn is_finely_interleaved(run: &Run, framework: &Framework) -> bool {
    let has_pipeline = run.pipeline_parallel.is_some_and(|stages| stages > 1);
    let usual = framework.usual_interleaving == Interleaving::Finest && run.schedule.is_empty();
    has_pipeline && run.virtual_stages.is_none() && (run.schedule == "1f1b-i" || usual)
}

/// Refuses a row with a fault.
pub(super) fn readable(run: &Run) -> Result<(), Skip> {
    let fault = run.fault.as_deref();
    demand(fault.is_none(), || {
        format!("{}: {}", run.place(), fault.unwrap_or_default())
    })
}

/// A number that must be stated and not be zero.
pub(super) fn stated<N: Copy + PartialEq + Default>(
    value: Option<N>,
    column: &str,
) -> Result<N, Skip> {
    let stated = value.filter(|number| *number != N::default());
    stated.ok_or_else(|| Skip(format!("no {column} stated")))
}

/// A choice by its name; `None` where the row does not say.
fn choice<T>(what: &str, name: &str, parse: impl Fn(&str) -> Option<T>) -> Result<Option<T>, Skip> {
    let chosen = parse(name).filter(|_| !name.is_empty());
    demand(chosen.is_some() || name.is_empty(), || {
        format!("{what} {name} is not modelled")
    })?;
    Ok(chosen)
}

/// The cluster with the row's number of GPUs.
fn sized(run: &Run, cluster: &Cluster) -> Result<Cluster, Skip> {
    let node = run.gpus_per_node.unwrap_or(cluster.gpus_per_node);
    demand(node > 0, || "a node has 0 GPUs".to_owned())?;
    let stated_domain = run.nvlink_domain.filter(|&domain| domain > 0);
    let domain = stated_domain.or(cluster.nvlink_domain).unwrap_or(node);
    demand(domain.is_multiple_of(node), || {
        format!("an NVLink domain of {domain} GPUs is no whole number of nodes of {node}")
    })?;
    Ok(Cluster {
        gpus: stated(run.gpus, "GPU count")?,
        gpus_per_node: node,
        nvlink_domain: (domain != node).then_some(domain),
        ..cluster.clone()
    })
}

fn workload(run: &Run, framework: &Framework) -> Result<Workload, Skip> {
    let precision = choice("precision", &run.precision, |name| match name {
        "bf16" => Some(Precision::Bf16),
        "fp16" => Some(Precision::Fp16),
        "fp8" | "mxfp8" => Some(Precision::Fp8),
        _ => None,
    })?;
    Ok(Workload {
        sequence_length: stated(run.sequence_length, "sequence length")?,
        global_batch: stated(run.global_batch, "global batch")?,
        precision: precision.unwrap_or(framework.usual_precision),
        optimizer: Optimizer::Adam,
        mfu_convention: FlopConvention::Paper,
        // Published speeds are of balanced routing unless they say otherwise.
        load_imbalance: match run.load_balance.as_str() {
            "natural" => USUAL_IMBALANCE,
            _ => 1.0,
        },
    })
}

fn layout(run: &Run, job: &Job) -> Result<Layout, Skip> {
    let mut cell = cell(run, &job.framework)?;
    demand(job.transformer.order().interval == 1, || {
        "alternating layers of experts are not modelled".to_owned()
    })?;
    let (ranks, spread) = (cell.stage_ranks(), cell.expert_ranks());
    demand(ranks.is_multiple_of(spread), || {
        format!("experts on {spread} ranks do not divide the {ranks} of a pipeline stage")
    })?;
    let (degrees, gpus) = (cell.gpus(), job.cluster.gpus);
    demand(degrees == u64::from(gpus), || {
        format!("degrees multiply to {degrees}, not to {gpus} GPUs")
    })?;
    let batch = job.workload.global_batch;
    demand(cell.micro_batches(batch) > 0, || {
        "the global batch is smaller than one micro-batch a replica".to_owned()
    })?;
    let (replicas, size) = (u64::from(cell.data_parallel), cell.micro_batch);
    demand(batch.is_multiple_of(replicas * u64::from(size)), || {
        format!(
            "{replicas} replicas with micro-batches of {size} do not divide a global batch of \
             {batch}"
        )
    })?;
    let (layers, stages) = (job.transformer.layers, cell.pipeline_parallel);
    demand(stages <= layers, || {
        format!("{layers} layers cannot fill {stages} stages")
    })?;
    let evenly = cell.micro_batches(batch).is_multiple_of(stages.into());
    if evenly && is_finely_interleaved(run, &job.framework) {
        // A layer in each chunk of the fullest stage.
        cell.virtual_stages = own_cut(job, &cell)?.into_iter().max().unwrap_or(1);
    }
    let cut = match run.variant.as_str() {
        "redis" => redistributed(job, stages),
        _ => own_cut(job, &cell)?,
    };
    let checkpointing = choice("checkpointing", &run.checkpointing, |name| match name {
        "selective" => Some(selective(run)),
        _ => Checkpointing::parse(name),
    })?;
    let recompute = checkpointing.and_then(Checkpointing::recompute);
    let stage = |layers: u32| {
        let mut stage = Stage {
            layers,
            ..Stage::default()
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

/// What Megatron-LM's modules that are recomputed free; attention's core where none is stated.
fn selective(run: &Run) -> Checkpointing {
    let modules: Vec<&str> = run.recompute_modules.split_whitespace().collect();
    let has = |names: &[&str]| modules.iter().any(|module| names.contains(module));
    if has(&["moe", "mlp"]) {
        Checkpointing::FeedForward
    } else if has(&["layernorm", "moe_act", "mla_up_proj"]) {
        Checkpointing::Light
    } else {
        Checkpointing::AttentionCore
    }
}

/// The layers of each stage as the framework cuts them, which a run that was measured had; evenly where its
/// rule allows no cut.
fn own_cut(job: &Job, cell: &Combination) -> Result<Vec<u32>, Skip> {
    let (network, stages) = (&job.transformer, cell.pipeline_parallel);
    framework_cut(job.framework.partition, network, cell)
        .or_else(|| even_partition(job.framework.partition, network, stages))
        .or_else(|| even_partition(Partition::Even, network, stages))
        .ok_or_else(|| {
            let layers = network.layers;
            Skip(format!(
                "{layers} layers cannot be cut into {stages} stages"
            ))
        })
}

/// Layers of each stage where those of the last make room for the head, so that the slowest stage has
/// least to do by FLOP (Yeung et al., arXiv 2411.05288, section 6.2: layer redistribution).
fn redistributed(job: &Job, stages: u32) -> Vec<u32> {
    let network = &job.transformer;
    let attention = job.workload.sequence_length * network.attention_width();
    let weights = network.attention_weights() + network.feed_forward_weights();
    let head = network.embedding_weights() as f64 / (weights + attention) as f64;
    let others = stages.saturating_sub(1).max(1);
    let slowest = |last: u32| {
        let most = (network.layers - last).div_ceil(others);
        f64::from(most).max(f64::from(last) + head)
    };
    let last = (0..=network.layers).min_by(|&one, &two| slowest(one).total_cmp(&slowest(two)));
    let last = last.unwrap_or(0);
    let (share, larger) = (
        (network.layers - last) / others,
        (network.layers - last) % others,
    );
    let mut cut: Vec<u32> = (0..others)
        .map(|stage| share + u32::from(stage < larger))
        .collect();
    cut.push(last);
    cut
}

fn cell(run: &Run, framework: &Framework) -> Result<Combination, Skip> {
    let tensor_parallel = stated(run.tensor_parallel, "tensor-parallel degree")?;
    let schedule = choice("schedule", &run.schedule, |name| match name {
        "1f1b-i" => Some(Schedule::OneForwardOneBackward),
        _ => Schedule::parse(name),
    })?;
    let attention = choice(
        "attention kernel",
        &run.attention_kernel,
        |name| match name {
            "flash-attention" => Some(AttentionKernel::Flash2),
            _ => AttentionKernel::parse(name),
        },
    )?;
    // A source names the algorithm; which kernel runs it is its framework's choice: Transformer Engine's
    // (`pytorch/attention/dot_product_attention/utils.py`) is cuDNN.
    let is_named = |kernel: &AttentionKernel| *kernel != AttentionKernel::Flash2;
    let usual = framework.usual_attention;
    let attention = attention.filter(|kernel| is_named(kernel) || !usual.is_flash());
    let sharding = choice("sharding", &run.sharding, Sharding::parse)?;
    let usually_split = framework.usual_sequence_parallel == SequenceParallel::On;
    let split = run.sequence_parallel.unwrap_or(usually_split) && tensor_parallel > 1;
    let usually_one = |degree: Option<u32>| degree.unwrap_or(1).max(1);
    // A dense network has none to spread, whatever the default of its framework.
    let of_experts = |degree: u32| if has_experts(run) { degree } else { 1 };
    Ok(Combination {
        tensor_parallel,
        pipeline_parallel: stated(run.pipeline_parallel, "pipeline-parallel degree")?,
        data_parallel: stated(run.data_parallel, "data-parallel degree")?,
        context_parallel: usually_one(run.context_parallel),
        expert_parallel: of_experts(usually_one(run.expert_parallel)),
        expert_tensor_parallel: of_experts(run.expert_tensor_parallel.unwrap_or({
            match framework.usual_expert_tensor_parallel {
                ExpertSplit::One => 1,
                ExpertSplit::TensorParallel => tensor_parallel,
            }
        })),
        virtual_stages: usually_one(run.virtual_stages),
        micro_batch: stated(run.micro_batch, "micro-batch")?,
        sequence_parallel: if split {
            SequenceParallel::On
        } else {
            SequenceParallel::Off
        },
        sharding: sharding.unwrap_or(Sharding::OptimizerStates),
        attention_kernel: attention.unwrap_or(framework.usual_attention),
        rmsnorm_kernel: match run.rmsnorm_kernel {
            Some(true) => RmsNormKernel::Fused,
            Some(false) => RmsNormKernel::Unfused,
            None => framework.usual_rmsnorm,
        },
        schedule: schedule.unwrap_or(Schedule::OneForwardOneBackward),
    })
}
