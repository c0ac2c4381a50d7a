//! How the choices of an instance file are spelled.

use super::values::Choice;
use crate::cluster::CalibrationKind;
use crate::cost_model::flops::FlopConvention;
use crate::framework::{
    CheckpointRule, FusedRmsNorm, LoggedPeak, Logits, OptimizerWork, Partition,
};
use crate::layout::{AttentionKernel, RmsNormKernel, SequenceParallel};
use crate::transformer::{Biases, Embeddings, FeedForward, Normalization};
use crate::workload::{Optimizer, Precision};

macro_rules! choices {
    ($($type:ident, $noun:literal: $($name:literal = $variant:ident,)+;)+) => {
        $(impl Choice for $type {
            const NOUN: &'static str = $noun;
            fn named() -> Vec<(&'static str, Self)> {
                vec![$(($name, Self::$variant)),+]
            }
        })+
    };
}

choices! {
    FeedForward, "a feed-forward block": "gated" = Gated, "plain" = Plain,;
    Embeddings, "a kind of embeddings": "untied" = Untied, "tied" = Tied,;
    Normalization, "a normalization": "rmsnorm" = RmsNorm, "layernorm" = LayerNorm,;
    Biases, "a set of biases": "none" = None, "query-key-value" = QueryKeyValue, "all" = All,;
    Precision, "a precision": "bf16" = Bf16, "fp16" = Fp16, "fp8" = Fp8,;
    Optimizer, "an optimizer":
        "adam" = Adam, "adam-bf16" = AdamBf16, "sgd-momentum" = SgdMomentum,;
    Partition, "a partition":
        "embedding-and-head" = EmbeddingAndHead, "equal" = Equal, "even" = Even,
        "first-and-last" = FirstAndLast, "free" = Free,;
    CheckpointRule, "a checkpointing rule":
        "all-or-nothing" = AllOrNothing, "same-count" = SameCount, "free" = Free,;
    FusedRmsNorm, "a rule for the fused kernel":
        "excludes-checkpointing" = ExcludesCheckpointing,
        "allows-checkpointing" = AllowsCheckpointing,;
    Logits, "a place of logits": "sharded" = Sharded, "gathered" = Gathered,;
    LoggedPeak, "a logged stage":
        "fullest-stage" = FullestStage, "first-stage" = FirstStage,;
    OptimizerWork, "a way to run the optimizer":
        "replicated" = Replicated, "sharded" = Sharded,;
    AttentionKernel, "an attention kernel":
        "torch" = Torch, "megatron-fused" = MegatronFused,
        "flash-attention-1" = Flash1, "flash-attention-2" = Flash2,;
    RmsNormKernel, "an RMSNorm": "unfused" = Unfused, "fused" = Fused,;
    SequenceParallel, "a kind of sequence parallelism": "off" = Off, "on" = On,;
    FlopConvention, "a convention of the MFU":
        "paper" = Paper, "without-input-embedding" = WithoutInputEmbedding, "causal" = Causal,;
    CalibrationKind, "a kind of calibration": "measured" = Measured, "data-sheet" = DataSheet,;
}
