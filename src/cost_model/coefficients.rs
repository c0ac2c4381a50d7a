//! The coefficients of one cell: all that the step time and memory of its layouts depend on.

use crate::cluster::Discrepancy;
use crate::job::Job;
use crate::layout::{Checkpointing, Combination};
use crate::quantity::{Bytes, Seconds};

use super::compute::{self, Passes};
use super::memory::{self, LayerMemory, StateBytes};
use super::{communication, discrepancy, pipeline};

/// Time of one layer for one micro-batch, forward and backward, by component.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LayerTime {
    /// Matrix products.
    pub gemm: Seconds,
    /// Attention itself.
    pub attention: Seconds,
    /// Elementwise operators.
    pub elementwise: Seconds,
    /// Norms that no kernel fuses.
    pub rmsnorm: Seconds,
    /// Tensor-parallel collectives.
    pub tensor_parallel: Seconds,
    /// Exposed exchange of keys and values.
    pub context_parallel: Seconds,
    /// Exposed traffic of sharded weights.
    pub weight_gathering: Seconds,
    /// Host time that the device's work does not hide.
    pub launch: Seconds,
}

impl LayerTime {
    /// Work of the device and the host together, by `passes`.
    fn new(job: &Job, cell: &Combination, passes: Passes) -> Self {
        let attention = compute::attention(job, cell, passes);
        let mut layer = Self {
            gemm: compute::gemm(job, cell, passes),
            attention,
            elementwise: compute::elementwise(job, cell, passes),
            rmsnorm: compute::rmsnorm(job, cell, passes),
            tensor_parallel: communication::tensor_parallel(job, cell, passes),
            context_parallel: communication::context_parallel(job, cell, attention),
            weight_gathering: Seconds::ZERO,
            launch: Seconds::ZERO,
        };
        let launch = compute::launch(job, cell, passes);
        let speed = &job.framework.speed;
        layer.launch = exposed(layer.total(), launch, speed.launch_norm);
        let sharded = communication::sharded_traffic(job, cell);
        layer.weight_gathering = exposed(layer.total(), sharded, speed.sharded_norm);
        layer
    }

    /// Sum of all components.
    #[must_use]
    pub fn total(&self) -> Seconds {
        self.gemm
            + self.attention
            + self.elementwise
            + self.rmsnorm
            + self.tensor_parallel
            + self.context_parallel
            + self.weight_gathering
            + self.launch
    }

    /// Every component times `factor`.
    fn scaled(self, factor: f64) -> Self {
        Self {
            gemm: self.gemm * factor,
            attention: self.attention * factor,
            elementwise: self.elementwise * factor,
            rmsnorm: self.rmsnorm * factor,
            tensor_parallel: self.tensor_parallel * factor,
            context_parallel: self.context_parallel * factor,
            weight_gathering: self.weight_gathering * factor,
            launch: self.launch * factor,
        }
    }
}

/// What `other` adds to `work` when the two overlap as a `p`-norm, `(w^p + o^p)^(1/p) - w`: all of
/// it with `p = 1`; with a large `p` only what exceeds the work.
fn exposed(work: Seconds, other: Seconds, norm: f64) -> Seconds {
    let (longer, shorter) = (work.max(other), if work > other { other } else { work });
    if norm <= 1.0 || longer == Seconds::ZERO {
        return other;
    }
    let ratio = shorter / longer;
    longer * (1.0 + ratio.powf(norm)).powf(1.0 / norm) - work
}

/// What a stage holds and does besides its layers.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StageExtra {
    /// Parameters of embedding and head on one GPU.
    pub parameters: f64,
    /// Output layer and loss of a micro-batch.
    pub head: Seconds,
    /// Transfers to the neighbours for a micro-batch.
    pub transfer: Seconds,
    /// Host time for a micro-batch.
    pub overhead: Seconds,
    /// Logits and their gradients.
    pub logits: Bytes,
}

impl StageExtra {
    /// Time of the extras for a micro-batch.
    #[must_use]
    pub fn time(&self) -> Seconds {
        self.head + self.transfer + self.overhead
    }
}

/// Which pipeline stages hold embedding and head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vocabulary {
    /// The first holds the embedding, the last the head.
    Ends,
    /// Every stage holds an equal share of both (vocabulary parallelism: Yeung et al.,
    /// arXiv 2411.05288).
    Spread,
}

/// The coefficients of one cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Costs {
    /// The cell.
    pub combination: Combination,
    /// Micro-batches a step, `M`.
    pub micro_batches: u64,
    /// Time of one layer and micro-batch.
    pub layer: LayerTime,
    /// Extra time of a layer and micro-batch under each mode of `Recompute::ALL`.
    pub recompute: [Seconds; 3],
    /// Parameters of one layer on one GPU.
    pub layer_parameters: f64,
    /// Activations of one layer and micro-batch.
    pub layer_memory: LayerMemory,
    /// State bytes a parameter.
    pub state: StateBytes,
    /// Parameters of the embedding and of the head on one GPU.
    embedding_parameters: f64,
    head_extra: StageExtra,
    transfer: Seconds,
    overhead: Seconds,
    /// Which stages hold embedding and head.
    pub vocabulary: Vocabulary,
    /// Memory that does not depend on the layers.
    pub fixed: Bytes,
    /// Share of a pipeline fill that a step pays.
    pub fill_share: f64,
    /// Exposed gradient and weight traffic, seconds a parameter of the largest stage.
    pub data_parallel: Seconds,
    /// Optimizer time, seconds a parameter of the largest stage.
    pub optimizer: Seconds,
    /// Host time of a step.
    pub step_overhead: Seconds,
}

impl Costs {
    /// Derives the coefficients of `cell` for the programs: fills are counted in twentieths.
    #[must_use]
    pub fn new(job: &Job, cell: &Combination) -> Self {
        let mut costs = Self::exact(job, cell);
        costs.fill_share = pipeline::countable_fills(costs.fill_share, cell);
        costs
    }

    /// Derives the coefficients of `cell`.
    #[must_use]
    pub fn exact(job: &Job, cell: &Combination) -> Self {
        let mut costs = Self::physical(job, cell);
        if let Some(discrepancy) = &job.cluster.discrepancy {
            costs.correct(job, discrepancy);
        }
        costs.slow_down(job.cluster.efficiency.slowdown);
        costs
    }

    /// The coefficients by the formulas alone.
    fn physical(job: &Job, cell: &Combination) -> Self {
        let tp = f64::from(cell.tensor_parallel);
        let micro_batches = cell.micro_batches(job.workload.global_batch).max(1);
        let layer = LayerTime::new(job, cell, Passes::TRAINING);
        let again = LayerTime::new(job, cell, Passes::RECOMPUTED).total() - layer.total();
        let embedding_parameters = job.transformer.embedding_weights() as f64 / tp;
        Self {
            combination: *cell,
            micro_batches,
            layer,
            recompute: [
                again,
                compute::feed_forward_again(job, cell),
                compute::attention_core_again(job, cell),
            ],
            layer_parameters: job.transformer.layer_weights() as f64 / tp,
            layer_memory: memory::layer(job, cell),
            state: memory::state_bytes(job, cell),
            embedding_parameters,
            head_extra: StageExtra {
                parameters: embedding_parameters,
                head: compute::head(job, cell) + communication::head(job, cell),
                logits: memory::logits(job, cell),
                ..StageExtra::default()
            },
            transfer: communication::pipeline_transfer(job, cell),
            overhead: job.framework.speed.micro_batch_overhead,
            vocabulary: Vocabulary::Ends,
            fixed: memory::fixed(job, cell),
            // A step of few micro-batches has no more fills than those.
            fill_share: pipeline::fill_share(job, cell).min(micro_batches as f64),
            data_parallel: communication::data_parallel(job, cell),
            optimizer: compute::optimizer(job, cell),
            step_overhead: job.framework.speed.step_overhead,
        }
    }

    /// Multiplies every duration by `exp(g)`, `g` learned from runs like this cell; a layer that
    /// is recomputed whole takes the `g` of recomputed runs.
    fn correct(&mut self, job: &Job, learned: &Discrepancy) {
        let g = |again| learned.logarithm(&discrepancy::features(job, &self.combination, again));
        let (kept, again) = (g(Checkpointing::None).exp(), g(Checkpointing::Full).exp());
        let layer = self.layer.total();
        let full = (layer + self.recompute[0]) * again - layer * kept;
        self.recompute = self.recompute.map(|extra| extra * kept);
        self.recompute[0] = full.max(Seconds::ZERO);
        self.layer = self.layer.scaled(kept);
        self.scale_beside_layers(kept);
    }

    /// Multiplies every duration by `factor`.
    fn slow_down(&mut self, factor: f64) {
        self.recompute = self.recompute.map(|extra| extra * factor);
        self.layer = self.layer.scaled(factor);
        self.scale_beside_layers(factor);
    }

    /// Multiplies the durations of all but the layers by `factor`.
    fn scale_beside_layers(&mut self, factor: f64) {
        for duration in [
            &mut self.head_extra.head,
            &mut self.transfer,
            &mut self.overhead,
            &mut self.data_parallel,
            &mut self.optimizer,
            &mut self.step_overhead,
        ] {
            *duration = *duration * factor;
        }
    }

    /// The same cell with embedding and head on these stages.
    #[must_use]
    pub fn with_vocabulary(self, vocabulary: Vocabulary) -> Self {
        Self { vocabulary, ..self }
    }

    /// Extras of stage `stage`: embedding on the first, head on the last, transfers and host time on all.
    #[must_use]
    pub fn extra(&self, stage: u32) -> StageExtra {
        let mut extra = StageExtra {
            transfer: self.transfer,
            overhead: self.overhead,
            ..StageExtra::default()
        };
        let (embedding, head) = self.vocabulary_shares(stage);
        extra.parameters = self.embedding_parameters * embedding;
        extra.parameters += self.head_extra.parameters * head;
        extra.head = self.head_extra.head * head;
        extra.logits = self.head_extra.logits * head;
        extra
    }

    /// Shares of the embedding and of the head that stage `stage` holds.
    fn vocabulary_shares(&self, stage: u32) -> (f64, f64) {
        let stages = self.combination.pipeline_parallel;
        match self.vocabulary {
            Vocabulary::Ends => (
                f64::from(u8::from(stage == 0)),
                f64::from(u8::from(stage + 1 == stages)),
            ),
            Vocabulary::Spread => (1.0 / f64::from(stages), 1.0 / f64::from(stages)),
        }
    }

    /// Micro-batches whose activations stage `stage` keeps: chunks in flight over `v`.
    #[must_use]
    pub fn in_flight(&self, stage: u32) -> f64 {
        let chunks = pipeline::chunks_in_flight(&self.combination, stage, self.micro_batches);
        chunks as f64 / f64::from(self.combination.virtual_stages)
    }
}
