//! The coefficients of one combination: all that the step time and memory of its layouts depend on.

use smallvec::SmallVec;

use crate::cluster::Discrepancy;
use crate::job::Job;
use crate::layout::{Checkpointing, Combination, Recompute, Schedule};
use crate::quantity::{Bytes, Seconds};
use crate::transformer::Embeddings;

use super::components::{MemoryComponent, StageMemory};
use super::layer::LayerCosts;
use super::memory::{self, StateBytes};
use super::rank::Rank;
use super::{communication, compute, discrepancy, embedding, head, pipeline};

/// What a stage holds and does besides its layers.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StageExtra {
    /// Parameters of embedding and head on one GPU, and what leading layers of another kind hold more
    /// than other layers.
    pub parameters: f64,
    /// The same of routed experts.
    pub expert_parameters: f64,
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
    #[inline]
    pub fn time(&self) -> Seconds {
        self.head + self.transfer + self.overhead
    }
}

/// Which pipeline stages hold embedding and head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vocabulary {
    /// The first holds the embedding, the last the head.
    Ends,
    /// Every stage holds an equal share of both (vocabulary parallelism, "Vocab-2": Yeung et al.,
    /// arXiv 2411.05288, section 5.2) and keeps a micro-batch more in flight, for the pass between.
    Spread,
    /// The same with two synchronisations ("Vocab-1"), and two micro-batches more.
    SpreadSyncedTwice,
    /// The same in an interlaced pipeline (Lin et al., nnScaler, OSDI 2024), which keeps half as many again.
    Interlaced,
}

impl Vocabulary {
    /// What a stage keeps in flight where it keeps `chunks` with embedding and head at the ends.
    const fn in_flight(self, chunks: u64) -> u64 {
        match self {
            Self::Ends => chunks,
            Self::Spread => chunks + 1,
            Self::SpreadSyncedTwice => chunks + 2,
            Self::Interlaced => (3 * chunks).div_ceil(2),
        }
    }
}

/// A combination but for the cut and the schedule of its pipeline: what the layers, the replicas and the
/// embedding depend on.
pub(super) const fn unpiped(combination: &Combination) -> Combination {
    Combination {
        pipeline_parallel: 1,
        virtual_stages: 1,
        schedule: Schedule::OneForwardOneBackward,
        ..*combination
    }
}

/// The coefficients of one combination.
#[derive(Debug, Clone, PartialEq)]
pub struct Costs {
    /// The combination.
    pub combination: Combination,
    /// Micro-batches a step, `M`.
    pub micro_batches: u64,
    /// Layers by kind, in the order of [`Transformer::kinds`].
    ///
    /// [`Transformer::kinds`]: crate::transformer::Transformer::kinds
    pub kinds: SmallVec<[LayerCosts; 1]>,
    /// Leading layers of the second kind, all on the first stage, in its first model chunk.
    pub leading: u32,
    /// State bytes a parameter.
    pub state: StateBytes,
    /// State bytes a parameter of routed experts.
    pub expert_state: StateBytes,
    /// Parameters of the embedding and of its matrix alone on one GPU.
    embedding_parameters: f64,
    vocabulary_matrix: f64,
    /// Whether a stage that holds embedding and head keeps one matrix for both.
    embeddings: Embeddings,
    head_extra: StageExtra,
    transfer: Seconds,
    overhead: Seconds,
    /// Which stages hold embedding and head.
    pub vocabulary: Vocabulary,
    /// Memory that does not depend on the layers: of tensors, and beside them.
    buffers: Bytes,
    fixed: Bytes,
    /// Share of a pipeline fill that a step pays.
    pub fill_share: f64,
    /// Exposed gradient and weight traffic, seconds a parameter of the largest stage.
    pub data_parallel: Seconds,
    /// Optimizer time, seconds a parameter of the largest stage.
    pub optimizer: Seconds,
    /// The same two of parameters of routed experts.
    pub expert_data_parallel: Seconds,
    /// See [`Self::expert_data_parallel`].
    pub expert_optimizer: Seconds,
    /// Host time of a step.
    pub step_overhead: Seconds,
}

impl Costs {
    /// Derives the coefficients of a combination for the programs: fills are counted in twentieths.
    #[must_use]
    pub fn new(job: &Job, combination: &Combination) -> Self {
        Self::exact(job, combination).countable()
    }

    /// Derives the coefficients of a combination.
    #[must_use]
    pub fn exact(job: &Job, combination: &Combination) -> Self {
        Self::without_pipeline(job, &unpiped(combination)).in_pipeline(job, combination)
    }

    /// The coefficients with fills in twentieths.
    pub(super) fn countable(mut self) -> Self {
        self.fill_share = pipeline::countable_fills(self.fill_share, &self.combination);
        self
    }

    /// The coefficients of a combination from those of the same [`unpiped`]: what the cut and the
    /// schedule of the pipeline decide, then what runs say of all.
    pub(super) fn in_pipeline(&self, job: &Job, combination: &Combination) -> Self {
        let rank = Rank::new(job, combination);
        let held = |layer: &LayerCosts| layer.parameters + layer.expert_parameters;
        let largest = self.kinds.iter().map(held).fold(0.0, f64::max);
        // A step of few micro-batches has no more fills than those.
        let most_fills = self.micro_batches as f64;
        let mut costs = Self {
            combination: *combination,
            kinds: SmallVec::from_slice(&self.kinds),
            head_extra: head::extra(&rank, &self.kinds[0]),
            transfer: communication::pipeline_transfer(&rank),
            buffers: memory::buffers(&rank, largest),
            fixed: memory::fixed(&rank),
            fill_share: pipeline::fill_share(job, combination).min(most_fills),
            ..*self
        };
        if let Some(discrepancy) = &job.cluster.discrepancy {
            costs.correct(job, discrepancy);
        }
        costs.slow_down(job.cluster.efficiency.slowdown);
        costs
    }

    /// The coefficients of an [`unpiped`] combination by the formulas alone, but for what the pipeline decides.
    pub(super) fn without_pipeline(job: &Job, combination: &Combination) -> Self {
        let rank = Rank::new(job, combination);
        let tp = rank.tensor_parallel;
        let micro_batches = combination.micro_batches(job.workload.global_batch).max(1);
        let kinds = job.transformer.kinds().iter();
        let kinds: SmallVec<[LayerCosts; 1]> =
            kinds.map(|&kind| LayerCosts::new(&rank, kind)).collect();
        let (replicas, of_experts) = (rank.replicas(), rank.replicas_of_experts());
        Self {
            combination: *combination,
            micro_batches,
            leading: job.transformer.order().leading,
            state: StateBytes::new(&rank, replicas),
            expert_state: StateBytes::new(&rank, of_experts),
            embedding_parameters: embedding::parameters(&rank).on_rank(tp),
            vocabulary_matrix: embedding::parameters(&rank).split / tp,
            embeddings: job.transformer.embeddings,
            head_extra: StageExtra::default(),
            transfer: Seconds::ZERO,
            overhead: job.framework.speed.micro_batch_overhead,
            vocabulary: Vocabulary::Ends,
            buffers: Bytes::ZERO,
            fixed: Bytes::ZERO,
            fill_share: 0.0,
            data_parallel: communication::data_parallel(&rank, replicas),
            optimizer: compute::optimizer(&rank, replicas),
            expert_data_parallel: communication::data_parallel(&rank, of_experts),
            expert_optimizer: compute::optimizer(&rank, of_experts),
            step_overhead: job.framework.speed.step_overhead,
            kinds,
        }
    }

    /// Multiplies every duration by `exp(g)`, `g` learned from runs like this combination; a layer
    /// that is recomputed whole takes the `g` of recomputed runs.
    fn correct(&mut self, job: &Job, learned: &Discrepancy) {
        let g = |again| learned.logarithm(&discrepancy::features(job, &self.combination, again));
        let (kept, again) = (g(Checkpointing::None).exp(), g(Checkpointing::Full).exp());
        for layer in &mut self.kinds {
            let once = layer.time.total();
            let full = (once + layer.recompute[Recompute::Full as usize]) * again - once * kept;
            layer.slow_down(kept);
            layer.recompute[Recompute::Full as usize] = full.max(Seconds::ZERO);
        }
        self.slow_down_beside_layers(kept);
    }

    /// Multiplies every duration by `factor`.
    fn slow_down(&mut self, factor: f64) {
        for layer in &mut self.kinds {
            layer.slow_down(factor);
        }
        self.slow_down_beside_layers(factor);
    }

    /// Multiplies the durations of all but the layers by `factor`.
    fn slow_down_beside_layers(&mut self, factor: f64) {
        for duration in [
            &mut self.head_extra.head,
            &mut self.transfer,
            &mut self.overhead,
            &mut self.data_parallel,
            &mut self.optimizer,
            &mut self.expert_data_parallel,
            &mut self.expert_optimizer,
            &mut self.step_overhead,
        ] {
            *duration = *duration * factor;
        }
    }

    /// A layer of the first kind.
    #[must_use]
    pub fn layer(&self) -> &LayerCosts {
        &self.kinds[0]
    }

    /// Leading layers of the second kind on stage `stage`, and what such a layer costs.
    #[must_use]
    #[inline]
    pub fn others(&self, stage: u32) -> Option<(f64, &LayerCosts)> {
        let other = self.kinds.get(1).filter(|_| stage == 0)?;
        Some((f64::from(self.leading), other))
    }

    /// Micro-batches that the first model chunk of the first stage keeps.
    #[must_use]
    pub fn in_flight_of_leading(&self) -> u64 {
        let one = &self.combination;
        let later = u64::from(one.virtual_stages - 1) * u64::from(one.pipeline_parallel);
        let chunks = self.chunks_in_flight(0).saturating_sub(later);
        chunks.min(self.micro_batches)
    }

    /// Time of reduction and optimizer for a stage with these parameters, apart from each other.
    #[must_use]
    #[inline]
    pub fn of_parameters(&self, parameters: f64, of_experts: f64) -> [Seconds; 2] {
        [
            self.data_parallel * parameters + self.expert_data_parallel * of_experts,
            self.optimizer * parameters + self.expert_optimizer * of_experts,
        ]
    }

    /// The same combination with embedding and head on these stages.
    #[must_use]
    pub fn with_vocabulary(self, vocabulary: Vocabulary) -> Self {
        Self { vocabulary, ..self }
    }

    /// Extras of stage `stage`: embedding on the first, head on the last, transfers and host time on all.
    #[must_use]
    #[inline]
    pub fn extra(&self, stage: u32) -> StageExtra {
        let mut extra = StageExtra {
            transfer: self.transfer,
            overhead: self.overhead,
            ..StageExtra::default()
        };
        let (embedding, head) = self.vocabulary_shares(stage);
        extra.parameters = self.vocabulary_parameters(embedding, head);
        extra.expert_parameters = self.head_extra.expert_parameters * head;
        if let Some((count, other)) = self.others(stage) {
            let layer = self.layer();
            extra.parameters += count * (other.parameters - layer.parameters);
            extra.expert_parameters += count * (other.expert_parameters - layer.expert_parameters);
        }
        extra.head = self.head_extra.head * head;
        extra.logits = self.head_extra.logits * head;
        extra
    }

    /// Memory of a stage with these extras beside the state and activations of its layers.
    #[must_use]
    #[inline]
    pub fn beside_layers(&self, extra: &StageExtra) -> StageMemory {
        StageMemory::of([
            (MemoryComponent::Logits, extra.logits),
            (MemoryComponent::Buffers, self.buffers),
            (MemoryComponent::Fixed, self.fixed),
        ])
    }

    /// Parameters of these shares of embedding and head. A tied matrix is one on a stage that holds
    /// both; with the two on different stages each keeps a copy, its gradients and its optimizer
    /// states (Megatron-LM, `models/common/language_module/language_module.py`).
    fn vocabulary_parameters(&self, embedding: f64, head: f64) -> f64 {
        let shared = match self.embeddings {
            Embeddings::Tied => self.vocabulary_matrix * embedding.min(head),
            Embeddings::Untied => 0.0,
        };
        self.embedding_parameters * embedding + self.head_extra.parameters * head - shared
    }

    /// Shares of the embedding and of the head that stage `stage` holds.
    fn vocabulary_shares(&self, stage: u32) -> (f64, f64) {
        let stages = self.combination.pipeline_parallel;
        match self.vocabulary {
            Vocabulary::Ends => (
                f64::from(u8::from(stage == 0)),
                f64::from(u8::from(stage + 1 == stages)),
            ),
            Vocabulary::Spread | Vocabulary::SpreadSyncedTwice | Vocabulary::Interlaced => {
                (1.0 / f64::from(stages), 1.0 / f64::from(stages))
            }
        }
    }

    /// Model chunks whose activations stage `stage` keeps.
    #[must_use]
    pub fn chunks_in_flight(&self, stage: u32) -> u64 {
        let chunks = pipeline::chunks_in_flight(&self.combination, stage, self.micro_batches);
        let most = self.micro_batches * u64::from(self.combination.virtual_stages);
        self.vocabulary.in_flight(chunks).min(most)
    }

    /// Micro-batches whose activations stage `stage` keeps: chunks in flight over `v`.
    #[must_use]
    pub fn in_flight(&self, stage: u32) -> f64 {
        self.chunks_in_flight(stage) as f64 / f64::from(self.combination.virtual_stages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog;
    use crate::cost_model::fixture;

    #[test]
    fn a_stage_keeps_one_matrix_for_tied_embedding_and_head() {
        let check = |embeddings, stages: u32, expected: &[f64]| {
            let (mut job, mut combination) = (fixture::job(), fixture::combination());
            job.transformer.embeddings = embeddings;
            combination.pipeline_parallel = stages;
            let costs = Costs::exact(&job, &combination);
            let parameters: Vec<f64> = (0..stages).map(|it| costs.extra(it).parameters).collect();
            assert_eq!(parameters, expected);
        };
        // A matrix of 32 x 8 on two ranks, and the norm before the head.
        check(Embeddings::Untied, 1, &[256.0 + 8.0]);
        check(Embeddings::Tied, 1, &[128.0 + 8.0]);
        check(Embeddings::Tied, 3, &[128.0, 0.0, 128.0 + 8.0]);
    }

    #[test]
    fn spread_vocabularies_keep_more_in_flight() {
        let (job, mut combination) = (fixture::job(), fixture::combination());
        (combination.pipeline_parallel, combination.data_parallel) = (4, 1);
        let costs = Costs::exact(&job, &combination);
        let kept = |vocabulary| {
            costs
                .clone()
                .with_vocabulary(vocabulary)
                .chunks_in_flight(0)
        };
        assert_eq!(kept(Vocabulary::Ends), 4);
        assert_eq!(kept(Vocabulary::Spread), 5);
        assert_eq!(kept(Vocabulary::SpreadSyncedTwice), 6);
        assert_eq!(kept(Vocabulary::Interlaced), 6);
    }

    #[test]
    fn weights_of_an_8b_model_are_counted_once_where_embedding_and_head_are_tied() {
        let weights = |embeddings| {
            let (mut job, mut combination) = (fixture::job(), fixture::combination());
            job.transformer = catalog::model("llama-3.1-8b").expect("it is in the catalog");
            job.transformer.embeddings = embeddings;
            (combination.tensor_parallel, combination.pipeline_parallel) = (1, 1);
            let costs = Costs::exact(&job, &combination);
            let parameters = 32.0 * costs.layer().parameters + costs.extra(0).parameters;
            Bytes::new(parameters * costs.state.weights).gib()
        };
        // 8,030,261,248 parameters, of which 128,256 x 4,096 are the second matrix.
        assert!((weights(Embeddings::Untied) - 14.9575).abs() < 5e-4);
        assert!((weights(Embeddings::Tied) - 13.979).abs() < 5e-4);
    }
}
