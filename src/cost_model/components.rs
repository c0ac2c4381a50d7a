//! What step time and memory consist of: one list each, from which tables, JSON documents,
//! schemas and comparisons derive. A new component is one line here and its use.

use crate::framework::LoggedMemory;
use crate::quantity::{Bytes, Seconds};

/// Declares the components of a whole, in the order of printing, and the amounts of all of them.
macro_rules! components {
    (
        $(#[$doc:meta])* $component:ident,
        $(#[$whole_doc:meta])* $whole:ident of $amount:ident {
            $(#[doc = $text:literal] $variant:ident = $key:literal, $label:literal $(, short: $short:literal)? $(=> $of:ident)?;)+
        }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $component {
            $(#[doc = $text] $variant,)+
        }

        impl $component {
            /// Every component, in the order of printing.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
            /// How many there are.
            pub const COUNT: usize = Self::ALL.len();

            /// The key in JSON, without its unit.
            #[must_use]
            pub const fn key(self) -> &'static str {
                match self {
                    $(Self::$variant => $key,)+
                }
            }

            /// Whether only a mixture of experts has it.
            #[must_use]
            pub const fn is_of_experts(self) -> bool {
                match self {
                    $(Self::$variant => stringify!($($of)?).len() > 0,)+
                }
            }

            /// The name in tables.
            #[must_use]
            pub const fn label(self) -> &'static str {
                match self {
                    $(Self::$variant => $label,)+
                }
            }

            /// The name in a narrow column: the key where no shorter one is given.
            #[must_use]
            pub const fn short_label(self) -> &'static str {
                match self {
                    $(Self::$variant => [$($short,)? $key][0],)+
                }
            }

            /// What it is, in a sentence.
            #[must_use]
            pub const fn description(self) -> &'static str {
                match self {
                    $(Self::$variant => $text.trim_ascii(),)+
                }
            }
        }

        $(#[$whole_doc])*
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub struct $whole([$amount; $component::COUNT]);

        impl $whole {
            /// No amount of any component.
            pub const ZERO: Self = Self([$amount::ZERO; $component::COUNT]);

            /// These amounts, and nothing of the other components.
            #[must_use]
            #[inline]
            pub fn of<const N: usize>(amounts: [($component, $amount); N]) -> Self {
                let mut whole = Self::ZERO;
                for (component, amount) in amounts {
                    whole[component] = amount;
                }
                whole
            }

            /// Components and amounts in the order of printing.
            pub fn components(&self) -> impl Iterator<Item = ($component, $amount)> + Clone + '_ {
                $component::ALL.iter().copied().zip(self.0)
            }

            /// Sum of all components.
            #[must_use]
            #[inline]
            pub fn total(&self) -> $amount {
                self.0.iter().copied().sum()
            }

            /// Every component times `factor`.
            #[must_use]
            #[inline]
            pub fn scaled(mut self, factor: f64) -> Self {
                for amount in &mut self.0 {
                    *amount = *amount * factor;
                }
                self
            }
        }

        impl Default for $whole {
            fn default() -> Self {
                Self::ZERO
            }
        }

        impl std::ops::Index<$component> for $whole {
            type Output = $amount;
            fn index(&self, component: $component) -> &$amount {
                &self.0[component as usize]
            }
        }

        impl std::ops::IndexMut<$component> for $whole {
            fn index_mut(&mut self, component: $component) -> &mut $amount {
                &mut self.0[component as usize]
            }
        }
    };
}

components!(
    /// A part of the step time.
    TimeComponent,
    /// Time by component: of an optimizer step (work over all micro-batches, the mean of the pipeline
    /// stages, then what the pipeline, the network between replicas and the optimizer add), or of
    /// one layer and micro-batch.
    StepTime of Seconds {
        /// Matrix products of the layers.
        Gemm = "gemm", "matrix products";
        /// Matrix products of routed experts.
        Experts = "experts", "experts" => experts;
        /// Attention itself.
        Attention = "attention", "attention";
        /// Elementwise operators of the layers.
        Elementwise = "elementwise", "elementwise";
        /// Norms that no kernel fuses.
        RmsNorm = "rmsnorm", "RMSNorm";
        /// Collectives of tensor parallelism.
        TensorParallel = "tensor_parallel", "tensor-parallel traffic";
        /// Tokens sent to their experts and back.
        AllToAll = "all_to_all", "all-to-all of experts" => experts;
        /// Exchange of keys and values in context parallelism.
        ContextParallel = "context_parallel", "context-parallel traffic";
        /// Gathering of sharded weights (ZeRO-3).
        WeightGathering = "weight_gathering", "weight gathering";
        /// Host time to launch kernels, as far as it does not hide.
        Launch = "launch", "launch";
        /// Recomputation of checkpointed layers.
        Recompute = "recompute", "recompute";
        /// Output layer and loss.
        Head = "head", "output layer and loss";
        /// Transfers between pipeline stages.
        PipelineTransfer = "pipeline_transfer", "pipeline transfer";
        /// Host time of micro-batches and of the step.
        Overhead = "overhead", "overhead";
        /// Waiting while the pipeline fills, drains or runs uneven stages.
        Bubble = "bubble", "bubble";
        /// Reduction of gradients and gathering of weights among replicas.
        DataParallel = "data_parallel", "data-parallel traffic";
        /// The optimizer's own work.
        Optimizer = "optimizer", "optimizer";
    }
);

components!(
    /// A part of the memory of a GPU.
    MemoryComponent,
    /// Peak memory of one GPU of a pipeline stage, by component.
    StageMemory of Bytes {
        /// Weights, in the format of the matrix products.
        Weights = "weights", "weights";
        /// Gradients.
        Gradients = "gradients", "gradients", short: "grads";
        /// Master weights and moments.
        OptimizerStates = "optimizer_states", "optimizer states", short: "optim.";
        /// Activations kept for the backward pass, over all micro-batches in flight.
        Activations = "activations", "activations", short: "activ.";
        /// Activations of the one layer that is being recomputed.
        RecomputeWorkspace = "recompute_workspace", "recompute workspace", short: "worksp.";
        /// Logits and their gradients on the last stage.
        Logits = "logits", "logits";
        /// Workspaces, working buffers, gathered weights, activations between stages that stay allocated.
        Buffers = "buffers", "buffers";
        /// What a process takes beside its tensors: context, communicators and fragmentation.
        Fixed = "fixed", "context and communicators";
    }
);

impl StageMemory {
    /// Sum of all components.
    #[must_use]
    pub fn peak(&self) -> Bytes {
        self.total()
    }

    /// What of it a log of this kind counts.
    #[must_use]
    pub fn logged(&self, memory: LoggedMemory) -> Bytes {
        match memory {
            LoggedMemory::All => self.total(),
            LoggedMemory::Allocated => self.total() - self[MemoryComponent::Fixed],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_kept_by_component() {
        let time = StepTime::of([
            (TimeComponent::Gemm, Seconds::new(2.0)),
            (TimeComponent::Bubble, Seconds::new(0.5)),
        ]);
        assert_eq!(time[TimeComponent::Gemm], Seconds::new(2.0));
        assert_eq!(time[TimeComponent::Head], Seconds::ZERO);
        assert_eq!(time.scaled(2.0).total(), Seconds::new(5.0));
    }
}
