//! What a training framework fixes differently from others: rules, memory habits, software speed.

use super::cluster::LARGEST_MEMORY;
pub use super::support;
use super::support::Support;
use super::{Value, count, figures, number, one_of, quantity};
use crate::choice::choice;
use crate::layout::{AttentionKernel, RmsNormKernel, SequenceParallel};
use crate::quantity::{Bytes, Seconds};
use crate::workload::Precision;

/// Longest host time.
const LONGEST: f64 = 100.0;

figures! {
    /// A profile of one training framework.
    #[derive(Debug, Clone, PartialEq, Default)]
    pub struct Framework in "framework." at framework {
        /// Catalog name.
        name: String,
        /// The values of every axis that it has.
        axes: Support,
        /// Memory habits.
        memory: MemoryProfile,
        /// Speed of the software.
        speed: SpeedProfile,
        /// Where the figures come from.
        source: String,
    }
    figures {
        /// How layers may be spread over pipeline stages.
        partition: Partition = one_of();
        /// Which layers of a stage may be checkpointed.
        checkpoint_rule as "checkpointing": CheckpointRule = one_of();
        /// Whether the fused `RMSNorm` works in a checkpointed layer.
        fused_rmsnorm: FusedRmsNorm = one_of();
        /// How far a tensor-parallel group may reach.
        tensor_parallel_reach: TensorParallelReach = one_of().or(Value::Name("anywhere"));
        /// Attention kernel where a measured run states none.
        usual_attention: AttentionKernel = one_of();
        /// The `RMSNorm` that its speed was fitted with, and that runs where nothing else is said.
        usual_rmsnorm: RmsNormKernel = one_of();
        /// Sequence parallelism where a measured run does not say.
        usual_sequence_parallel: SequenceParallel = one_of();
        /// Number format where a measured run does not say.
        usual_precision: Precision = one_of().or(Value::Name("bf16"));
        /// Dropout of a network with plain feed-forward blocks, as GPT has, where a measured run does not
        /// say; with gated ones there is none.
        usual_dropout: f64 = number("share", 0.0..=1.0).or(Value::Number(0.0));
        /// Ranks that share each expert where a measured run does not say.
        usual_expert_tensor_parallel: ExpertSplit = one_of().or(Value::Name("one"));
        /// Virtual stages where a measured run with a pipeline does not state them.
        usual_interleaving: Interleaving = one_of().or(Value::Name("off"));
    }
}

figures! {
    /// Memory habits of a framework.
    #[derive(Debug, Clone, PartialEq, Default)]
    pub struct MemoryProfile in "framework.memory." at framework.memory {}
    figures {
        /// Bytes of a gradient: 2 (bf16), 4 (fp32), 6 (bf16 with an fp32 accumulator).
        gradient_bytes: f64 = number("bytes", 1.0..=16.0).seen_in_memory();
        /// The same with fp16 weights.
        gradient_bytes_fp16: f64 = number("bytes", 1.0..=16.0).or(Value::Number(2.0));
        /// What the optimizer reads where gradients are narrower than fp32.
        main_gradients: MainGradients = one_of().or(Value::Name("as-kept"));
        /// The vocabulary is padded to a multiple of this times the tensor-parallel degree; 1: it is not.
        vocabulary_multiple: u32 = count(1..=65536).or(Value::Number(1.0));
        /// Multiplier of the counted activations, without the attention matrix.
        activation_factor: f64 =
            number("factor", 0.01..=100.0).seen_in_memory().fitted_within(0.05..=20.0);
        /// What a layer's unfused norms keep, 16 in the paper's framework.
        norm_bytes: f64 =
            number("bytes per token and hidden element", 0.0..=100.0).seen_in_memory();
        /// Whether a tensor-parallel rank holds its share of the logits or all.
        logits: Logits = one_of();
        /// How the loss is computed.
        cross_entropy: CrossEntropy = one_of().or(Value::Name("unfused"));
        /// Kept on the last stage with one tensor-parallel rank and the unfused loss.
        logit_bytes: f64 = number("bytes per logit", 0.0..=100.0).seen_in_memory();
        /// The same with the fused loss: 10 in Megatron-LM on H100 and GB200, 15 on A100, read off runs.
        logit_bytes_fused: f64 =
            number("bytes per logit", 0.0..=100.0).or(Value::Number(10.0));
        /// Kept beyond that where several tensor-parallel ranks gather the logits.
        logit_bytes_gathered: f64 = number("bytes per logit", 0.0..=100.0);
        /// Kept between the tensor-parallel blocks of a layer: inputs of norms and blocks, residuals.
        hidden_bytes: f64 = number("bytes per token and hidden element", 0.0..=100.0);
        /// Of `hidden_bytes`, what every rank keeps whole in spite of sequence parallelism.
        gathered_bytes: f64 = number("bytes per token and hidden element", 0.0..=100.0);
        /// Kept of query and attention output; keys and values take 4 per pair.
        attention_bytes: f64 = number("bytes per token and element", 0.0..=100.0);
        /// Kept by a gated feed-forward block, 8 when each tensor is kept once, 6 where one kernel gates.
        feed_forward_bytes: f64 = number("bytes per token and element", 0.0..=100.0);
        /// Kept by a plain feed-forward block: input and output of the activation function.
        feed_forward_bytes_plain: f64 =
            number("bytes per token and element", 0.0..=100.0).or(Value::Number(4.0));
        /// Kept of the attention matrix by Megatron's fused softmax: its output. Attention dropout adds 3.
        matrix_bytes_fused: f64 =
            number("bytes per attention element", 0.0..=100.0).or(Value::Number(2.0));
        /// The same by unfused operators.
        matrix_bytes_torch: f64 =
            number("bytes per attention element", 0.0..=100.0).or(Value::Number(8.0));
        /// What a layer keeps that recomputes selectively.
        selective: Selective = one_of().or(Value::Name("all-but-attention"));
        /// Buffers that are live on every stage.
        working_bytes: f64 =
            number("bytes per token and hidden element", 0.0..=1000.0).seen_in_memory();
        /// Activations between stages that stay allocated on each stage of a pipeline.
        retained_boundaries: f64 =
            number("tensors per stage", 0.0..=100.0).or(Value::Number(0.0));
        /// The same in an interleaved pipeline.
        retained_boundaries_interleaved: f64 =
            number("tensors per model chunk", 0.0..=100.0).or(Value::Number(0.0));
        /// Memory that a process takes beside its tensors, whatever the layout (context, fragmentation).
        fixed: Bytes = quantity("GB", 0.0..=LARGEST_MEMORY).seen_in_memory().fitted_within(0.0..=40e9);
        /// Memory of each communicator with several ranks.
        communicator: Bytes = quantity("GB", 0.0..=LARGEST_MEMORY);
        /// The pipeline stage whose peak the framework's log states: calibration compares that one.
        logged_peak: LoggedPeak = one_of();
        /// What that peak counts.
        logged_memory: LoggedMemory = one_of().or(Value::Name("all"));
    }
}

impl MemoryProfile {
    /// Bytes of a gradient beside weights of this format.
    #[must_use]
    pub const fn gradients(&self, precision: Precision) -> f64 {
        match precision {
            Precision::Fp16 => self.gradient_bytes_fp16,
            Precision::Bf16 | Precision::Fp8 => self.gradient_bytes,
        }
    }

    /// Gives gradients another width, whatever the weights are.
    pub const fn set_gradients(&mut self, bytes: f64) {
        (self.gradient_bytes, self.gradient_bytes_fp16) = (bytes, bytes);
    }

    /// What the loss keeps of a logit.
    #[must_use]
    pub const fn loss_bytes(&self) -> f64 {
        match self.cross_entropy {
            CrossEntropy::Unfused => self.logit_bytes,
            CrossEntropy::Fused => self.logit_bytes_fused,
        }
    }
}

figures! {
    /// Speed of a framework's software.
    #[derive(Debug, Clone, PartialEq, Default)]
    pub struct SpeedProfile in "framework.speed." at framework.speed {}
    figures {
        /// Multiplier of the counted elementwise traffic (`k_elem`).
        elementwise: f64 = number("factor", 0.0..=100.0).seen_in_time();
        /// Traffic of one unfused `RMSNorm` (`by_rms`).
        rmsnorm_bytes: f64 =
            number("bytes per token and hidden element", 0.0..=1e4).seen_in_time();
        /// Softmax traffic of Megatron's fused kernel, forward and backward.
        softmax_bytes_fused: f64 = number("bytes per attention element", 0.0..=1e4).seen_in_time();
        /// Softmax traffic of unfused operators, forward and backward.
        softmax_bytes_torch: f64 = number("bytes per attention element", 0.0..=1e4).seen_in_time();
        /// Traffic of the loss (`by_logit`).
        logit_bytes: f64 = number("bytes per logit", 0.0..=1e4).seen_in_time();
        /// Host time per layer and micro-batch (`t_launch`).
        launch: Seconds = quantity("ms", 0.0..=LONGEST).seen_in_time();
        /// Further host time without the `RMSNorm` kernel (`t_unfused`).
        launch_unfused: Seconds = quantity("ms", 0.0..=LONGEST).seen_in_time();
        /// Share of a forward and backward pass's launches that a recomputed layer pays beyond its
        /// part of the work (`rc_launch`).
        launch_recompute: f64 = number("share", 0.0..=10.0).seen_in_time();
        /// Exponent `p` with which host time and the device's work combine, `(w^p + l^p)^(1/p)`:
        /// 1 adds them, a large one takes the longer.
        launch_norm: f64 =
            number("exponent", 1.0..=64.0).seen_in_time().fitted_within(1.0..=12.0);
        /// Host time per stage and micro-batch (`t_mb`).
        micro_batch_overhead: Seconds = quantity("ms", 0.0..=LONGEST).seen_in_time();
        /// Host time per step (`t_step`).
        step_overhead: Seconds = quantity("ms", 0.0..=LONGEST).seen_in_time();
        /// Multiplier of the time of pipeline transfers: below 1 hidden, above 1 blocking.
        transfer_exposed: f64 = number("factor", 0.0..=100.0).seen_in_time();
        /// Multiplier of a pipeline fill under 1F1B (`beta`).
        bubble: f64 = number("factor", 0.0..=10.0).seen_in_time().fitted_within(1.0..=4.0);
        /// Multiplier of a pipeline fill under the zero-bubble schedule 1p.
        bubble_zero_1p: f64 = number("factor", 0.0..=10.0).seen_in_time().fitted_within(0.0..=4.0);
        /// Multiplier of a pipeline fill under the zero-bubble schedule 2p.
        bubble_zero_2p: f64 = number("factor", 0.0..=10.0).seen_in_time().fitted_within(0.0..=4.0);
        /// Least share `i` of a fill that interleaving leaves: `beta max(1/v, i)`.
        bubble_interleaved: f64 = number("share", 0.0..=1.0).seen_in_time();
        /// What replicas exchange in a step (4: 16-bit gradients and weights).
        reduction_bytes: f64 = number("bytes per parameter", 0.0..=100.0);
        /// Share of that exchange that does not hide behind the backward pass.
        reduction_exposed: f64 = number("share", 0.0..=1.0)
            .or(Value::Number(1.0)).seen_in_time().fitted_within(0.1..=1.0);
        /// Whether replicas share the optimizer's work.
        optimizer_work: OptimizerWork = one_of();
        /// What fully sharded replicas exchange.
        sharded_bytes: f64 = number("bytes per parameter and micro-batch", 0.0..=100.0);
        /// Latency of that exchange, times the binary logarithm of the replicas.
        sharded_latency: Seconds = quantity("us", 0.0..=LONGEST).seen_in_time();
        /// Exponent with which that exchange and a layer's work combine: 1 adds them, a large one
        /// takes the longer.
        sharded_norm: f64 =
            number("exponent", 1.0..=64.0).seen_in_time().fitted_within(1.0..=12.0);
        /// Training's share of a bandwidth within an `NVLink` domain that was measured beside the run.
        measured_intra_node: f64 = number("factor", 0.01..=100.0).seen_in_time();
        /// Training's share of a bandwidth between nodes that was measured beside the run.
        measured_inter_node: f64 = number("factor", 0.01..=100.0).seen_in_time();
        /// Share of the transfers of sequence-parallel collectives that does not hide behind matrix
        /// products.
        tensor_parallel_exposed: f64 = number("share", 0.0..=1.0)
            .or(Value::Number(1.0)).seen_in_time().fitted_within(0.1..=1.0);
        /// Host time of a layer with experts and a micro-batch beyond that of a dense one.
        launch_experts: Seconds = quantity("ms", 0.0..=LONGEST).or(Value::Number(2.5e-3));
        /// Further host time for each expert on the GPU.
        launch_expert: Seconds = quantity("us", 0.0..=LONGEST).or(Value::Number(50e-6));
        /// Multiplier of the counted traffic of router, permutation and activation of experts.
        permutation: f64 = number("factor", 0.0..=100.0).or(Value::Number(0.44));
        /// Share of the counted traffic of the products of experts that does not hide behind them.
        expert_traffic: f64 = number("share", 0.0..=1.0).or(Value::Number(0.55));
        /// How tokens are sent to experts on several nodes.
        dispatcher: Dispatcher = one_of().or(Value::Name("all-to-all"));
        /// Share of the all-to-all that does not hide behind computation.
        all_to_all_exposed: f64 = number("share", 0.0..=1.0).or(Value::Number(1.0));
        /// Time of tensor-parallel traffic across `NVLink` domains over that of the network's bandwidth.
        tensor_parallel_across: f64 = number("factor", 0.01..=100.0).seen_in_time();
    }
}

choice!(
    /// How a framework spreads layers over pipeline stages.
    Partition, "a partition" {
        /// The list [embedding, layers, head] is cut evenly, the remainder to the early stages.
        EmbeddingAndHead = "embedding-and-head",
        /// The same number of layers on every stage.
        Equal = "equal",
        /// The same number on every stage; where only that divides, one fewer on the first and the last.
        EqualOrEndsLess = "equal-or-ends-less",
        /// By the cost of what each stage holds: a layer counts its matrix weights, the head its own.
        ByCost = "by-cost",
        /// The layers are cut evenly, the remainder to the early stages.
        Even = "even",
        /// First and last stage freely, the same number on those between.
        FirstAndLast = "first-and-last",
        /// Any number of layers on each stage.
        Free = "free",
    }
);

choice!(
    /// Among how many ranks a framework usually splits each expert.
    ExpertSplit, "a split of experts" {
        /// Whole experts.
        One = "one",
        /// As many as are tensor-parallel.
        TensorParallel = "tensor-parallel",
    }
);

choice!(
    /// How tokens are sent to experts.
    Dispatcher, "a dispatcher" {
        /// A copy to each expert (NCCL).
        AllToAll = "all-to-all",
        /// A copy to each `NVLink` domain with an expert, passed on within it (`DeepEP`, `HybridEP`).
        Deduplicated = "deduplicated",
    }
);

choice!(
    /// How far a tensor-parallel group may reach.
    TensorParallelReach, "a reach of tensor parallelism" {
        /// Across `NVLink` domains, where it is slow.
        Anywhere = "anywhere",
        /// Within one `NVLink` domain.
        Domain = "nvlink-domain",
    }
);

choice!(
    /// How finely a framework usually interleaves a pipeline.
    Interleaving, "a fineness of interleaving" {
        /// One model chunk per stage.
        Off = "off",
        /// A layer in each model chunk.
        Finest = "finest",
    }
);

choice!(
    /// Which layers of a stage a framework can checkpoint.
    CheckpointRule, "a checkpointing rule" {
        /// All layers of the network or none.
        AllOrNothing = "all-or-nothing",
        /// The same number of layers on every stage, by one mode.
        SameCount = "same-count",
        /// Any number on each stage, by any mixture of modes.
        Free = "free",
    }
);

choice!(
    /// Whether a framework's fused `RMSNorm` works in a checkpointed layer.
    FusedRmsNorm, "a rule for the fused kernel" {
        /// The kernel and checkpointing exclude each other (Hagemann et al., section 4.2).
        ExcludesCheckpointing = "excludes-checkpointing",
        /// They work together.
        AllowsCheckpointing = "allows-checkpointing",
    }
);

choice!(
    /// Where the logits of a tensor-parallel head live.
    Logits, "a place of logits" {
        /// Each rank holds `V / tp` of them.
        Sharded = "sharded",
        /// Each rank holds all `V`.
        Gathered = "gathered",
    }
);

choice!(
    /// The pipeline stage whose peak memory a framework's log states.
    LoggedPeak, "a logged stage" {
        /// The stage with the largest peak (or all of them, of which the reader took the largest).
        FullestStage = "fullest-stage",
        /// The first stage.
        FirstStage = "first-stage",
    }
);

choice!(
    /// What a framework's log of peak memory counts.
    LoggedMemory, "a kind of logged memory" {
        /// All that the process takes.
        All = "all",
        /// What the allocator gave to tensors (`torch.cuda.max_memory_allocated`): neither context nor
        /// communicators.
        Allocated = "allocated",
    }
);

choice!(
    /// What an optimizer reads where gradients are narrower than fp32.
    MainGradients, "a kind of main gradients" {
        /// The gradients as they are kept.
        AsKept = "as-kept",
        /// A copy in fp32, split as the optimizer's states (Megatron-LM, `optimizer/optimizer.py`:
        /// `_copy_model_grads_to_main_grads`), unless the optimizer is precision-aware.
        Copied = "fp32-copy",
    }
);

choice!(
    /// What a layer keeps that recomputes selectively.
    Selective, "a kind of selective recomputation" {
        /// All but softmax and dropout of attention (Korthikanti et al., arXiv 2205.05198, section 5).
        AllButAttention = "all-but-attention",
        /// Its input, attention's output, and every second matrix product: of query, value, gate and down
        /// projection (torchtitan, `distributed/activation_checkpoint.py`, op-level).
        EverySecondProduct = "every-second-product",
    }
);

choice!(
    /// How the loss is computed.
    CrossEntropy, "a kind of cross entropy" {
        /// By single operators (Megatron-LM, `tensor_parallel/cross_entropy.py`).
        Unfused = "unfused",
        /// By one kernel (Megatron-LM, `--cross-entropy-loss-fusion`).
        Fused = "fused",
    }
);

choice!(
    /// Who runs the optimizer on a parameter.
    OptimizerWork, "a way to run the optimizer" {
        /// Every replica on all (or counted so: the paper's framework).
        Replicated = "replicated",
        /// Each replica on its shard, wherever optimizer states are sharded.
        Sharded = "sharded",
    }
);
