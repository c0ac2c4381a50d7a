//! Command-line flags of Megatron-LM.
//!
//! Names and rules are those of `megatron/training/arguments.py` and
//! `megatron/core/transformer/transformer_config.py` on the main branch of August 2026.

mod model;
mod pipeline;
mod recompute;

use super::{ExportError, Target, comment, instance_on};
use crate::axis::Axis;
use crate::cost_model::rank::Rank;
use crate::framework::CrossEntropy;
use crate::instance::Instance;
use crate::layout::{
    AttentionKernel, Combination, Layout, RmsNormKernel, SequenceParallel, Sharding,
};
use crate::rules::{self, MEGATRON_LM};
use crate::transformer::Normalization;
use crate::workload::{Optimizer, Precision, Workload};

/// Flags under construction, and what they cannot say.
#[derive(Debug, Default)]
struct Flags {
    lines: Vec<String>,
    comments: Vec<String>,
}

/// The flags of the layout, one a line, ready for a shell; before them, as comments, what
/// Megatron-LM does otherwise than the prediction assumes.
///
/// # Errors
///
/// If Megatron-LM cannot run the layout; with every reason and what would be right.
pub fn megatron_lm(instance: &Instance, layout: &Layout) -> Result<String, ExportError> {
    let there = instance_on(Target::MegatronLm, &MEGATRON_LM, instance, layout)?;
    let mut flags = Flags::default();
    let combination = &layout.combination;
    flags.planned_for(&instance.job.framework.name);
    flags.environment(combination);
    flags.comments.extend(rules::advice(&there, layout));
    flags.degrees(combination);
    let micro_batches = combination.micro_batches(instance.job.workload.global_batch);
    pipeline::flags(layout, micro_batches, &mut flags);
    flags.batch(combination, &instance.job.workload);
    recompute::flags(layout, &mut flags);
    flags.sharding(instance, combination);
    flags.precision(instance);
    flags.kernels(instance, combination);
    model::flags(&instance.job, combination.tensor_parallel, &mut flags);
    Ok(flags.finish(instance))
}

impl Flags {
    fn switch(&mut self, name: &str) {
        self.lines.push(format!("--{name}"));
    }

    fn value(&mut self, name: &str, value: impl std::fmt::Display) {
        self.lines.push(format!("--{name} {value}"));
    }

    fn comment(&mut self, text: impl Into<String>) {
        self.comments.push(text.into());
    }

    /// A number of which Megatron-LM has a default, which is named where it is another.
    fn number(&mut self, name: &str, number: f64, default: f64) {
        self.value(name, number);
        if number.to_bits() != default.to_bits() {
            self.comment(format!("`--{name} {number}`: the default is {default}."));
        }
    }

    fn degrees(&mut self, combination: &Combination) {
        self.value("tensor-model-parallel-size", combination.tensor_parallel);
        self.value(
            "pipeline-model-parallel-size",
            combination.pipeline_parallel,
        );
        self.value("context-parallel-size", combination.context_parallel);
        if combination.sequence_parallel == SequenceParallel::On {
            self.switch("sequence-parallel");
        }
    }

    fn batch(&mut self, combination: &Combination, workload: &Workload) {
        self.value("micro-batch-size", combination.micro_batch);
        self.value("global-batch-size", workload.global_batch);
        self.value("seq-length", workload.sequence_length);
    }

    fn sharding(&mut self, instance: &Instance, combination: &Combination) {
        let strategy = match combination.sharding {
            Sharding::None => {
                self.switch("overlap-grad-reduce");
                return;
            }
            Sharding::OptimizerStates => None,
            Sharding::Gradients => Some("optim_grads"),
            Sharding::Parameters | Sharding::Hybrid => Some("optim_grads_params"),
        };
        self.switch("use-distributed-optimizer");
        self.switch("overlap-grad-reduce");
        self.switch("overlap-param-gather");
        let Some(strategy) = strategy else { return };
        self.switch("use-megatron-fsdp");
        self.value("data-parallel-sharding-strategy", strategy);
        self.value("ckpt-format", "fsdp_dtensor");
        if combination.sharding == Sharding::Hybrid {
            let rank = Rank::new(&instance.job, combination);
            let replicas = rank.replicas();
            let instances = replicas.all / replicas.in_domain;
            self.value("num-distributed-optimizer-instances", instances);
            self.value("outer-dp-sharding-strategy", "no_shard");
        }
    }

    fn precision(&mut self, instance: &Instance) {
        match instance.job.workload.precision {
            Precision::Bf16 => self.switch("bf16"),
            Precision::Fp16 => self.switch("fp16"),
            Precision::Fp8 => {
                self.switch("bf16");
                self.value("fp8-format", "hybrid");
            }
        }
        self.gradients(instance);
        match instance.job.workload.optimizer {
            Optimizer::Adam => self.value("optimizer", "adam"),
            Optimizer::SgdMomentum => self.value("optimizer", "sgd"),
            optimizer @ (Optimizer::AdamBf16 | Optimizer::AdamBf16Moments) => {
                self.value("optimizer", "adam");
                self.switch("use-precision-aware-optimizer");
                if optimizer == Optimizer::AdamBf16 {
                    self.value("main-params-dtype", "fp16");
                    self.comment("The master weights are kept in fp16: there is no bf16 for them.");
                }
                self.value("exp-avg-dtype", "bf16");
                self.value("exp-avg-sq-dtype", "bf16");
            }
        }
    }

    /// The width in which gradients are accumulated and reduced.
    fn gradients(&mut self, instance: &Instance) {
        let precision = instance.job.workload.precision;
        let bytes = instance.job.framework.memory.gradients(precision);
        let is_fp16 = precision == Precision::Fp16;
        match (bytes <= 2.0, is_fp16) {
            (true, true) => self.comment("Gradients are reduced in fp16, the default with fp16."),
            (true, false) => {
                self.switch("grad-reduce-in-bf16");
                self.comment("`--grad-reduce-in-bf16`: the default is fp32.");
            }
            (false, true) => {
                self.switch("accumulate-allreduce-grads-in-fp32");
                self.comment("`--accumulate-allreduce-grads-in-fp32`: the default is fp16.");
            }
            (false, false) => self.comment("Gradients are reduced in fp32, the default."),
        }
        if bytes > 4.0 {
            self.comment(format!(
                "A gradient has 4 bytes, not the {bytes} of the plan."
            ));
        }
    }

    /// Attention is left to Transformer Engine unless the job lists its kernels.
    fn kernels(&mut self, instance: &Instance, combination: &Combination) {
        self.value("transformer-impl", "transformer_engine");
        let backend = match combination.attention_kernel {
            AttentionKernel::Flash1 | AttentionKernel::Flash2 | AttentionKernel::Flash3 => "flash",
            AttentionKernel::Cudnn => "fused",
            AttentionKernel::MegatronFused | AttentionKernel::Torch => "unfused",
        };
        if backend == "unfused" || instance.space.is_listed(Axis::AttentionKernel) {
            self.value("attention-backend", backend);
            self.comment(format!(
                "`--attention-backend {backend}`: the default is auto."
            ));
        }
        if combination.attention_kernel == AttentionKernel::Torch {
            self.switch("no-masked-softmax-fusion");
            self.comment("`--no-masked-softmax-fusion`: the default is a fused softmax.");
        }
        if instance.job.framework.memory.cross_entropy == CrossEntropy::Fused {
            self.switch("cross-entropy-loss-fusion");
            self.comment("`--cross-entropy-loss-fusion`: the default is off.");
        }
        let rms_norm = instance.job.transformer.normalization == Normalization::RmsNorm;
        if rms_norm && combination.rmsnorm_kernel == RmsNormKernel::Unfused {
            self.comment(
                "RMSNorm is always one fused kernel, which is faster and needs less memory than \
                 predicted.",
            );
        }
    }

    /// A layout of another framework: it runs here, but not as predicted.
    fn planned_for(&mut self, framework: &str) {
        if !Target::MegatronLm.runs(framework) {
            self.comment(format!(
                "The layout was planned for {framework}, whose memory and speed are others than \
                 Megatron-LM's: plan with `--framework megatron-lm` for its own."
            ));
        }
    }

    /// An environment variable that Megatron-LM insists on before the Blackwell generation.
    fn environment(&mut self, combination: &Combination) {
        if is_fsdp(combination) {
            self.comment("The environment must not set `CUDA_DEVICE_MAX_CONNECTIONS=1`.");
        } else if combination.tensor_parallel > 1 || combination.context_parallel > 1 {
            self.comment(
                "Before Blackwell, the environment needs `CUDA_DEVICE_MAX_CONNECTIONS=1`.",
            );
        }
    }

    /// The flags with a backslash after each but the last, comments before them.
    fn finish(self, instance: &Instance) -> String {
        let cluster = &instance.job.cluster;
        let per_node = cluster.gpus_per_node.min(cluster.gpus);
        let mut text = comment(&format!(
            "Megatron-LM flags of {}. Run `torchrun --nnodes {} --nproc-per-node {per_node} \
             pretrain_gpt.py` with them and with your data, tokenizer, learning rate and \
             checkpoints.",
            instance.name,
            cluster.gpus / per_node,
        ));
        text.extend(self.comments.iter().map(|text| comment(text)));
        text.push_str(&self.lines.join(" \\\n"));
        text.push('\n');
        text
    }
}

/// Whether more than the optimizer states is split, which Megatron-FSDP does.
const fn is_fsdp(combination: &Combination) -> bool {
    combination.sharding.state().gradients.splits()
}

#[cfg(test)]
mod tests;
