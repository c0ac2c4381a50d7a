//! The cost model: memory and step time of one layout. Pure functions, no input or output.
//!
//! Symbols, as in Hagemann et al. (arXiv 2311.05610) where they have one: `L` layers, `h` hidden
//! size, `a` heads, `f` feed-forward width, `V` vocabulary, `s` sequence length, `b` micro-batch,
//! `tp`, `pp`, `dp`, `cp` degrees, `v` virtual stages, `G` GPUs, `t = b s / cp` tokens of a
//! micro-batch on one rank, `M` micro-batches a step, `u` = `tp` with sequence parallelism and
//! 1 without, `w` bytes of a weight or activation. Bytes, FLOP and seconds throughout.
//!
//! A layer is a list of blocks ([`attention`], [`feed_forward`], [`experts`]); with [`embedding`] and [`head`] each
//! counts, in a file of its own, its parameters by shard class, its FLOP, traffic and saved
//! activations on one GPU ([`block`], [`rank`]). Mechanisms turn that into time and memory:
//! [`compute`], [`communication`], [`memory`], [`pipeline`]. For a fixed combination everything is
//! linear in the layers of each stage, apart from two maxima: [`Costs`] holds the coefficients,
//! [`evaluate`] adds them up for given stages, and the program decides the layers with the same
//! coefficients.

pub mod attention;
pub mod block;
mod coefficients;
pub mod communication;
pub mod components;
pub mod compute;
pub mod discrepancy;
pub mod embedding;
pub mod expert_parallel;
pub mod experts;
pub mod feed_forward;
#[cfg(test)]
mod fixture;
pub mod flops;
pub mod head;
mod layer;
pub mod memory;
mod model;
pub mod pipeline;
pub mod prediction;
pub mod rank;
pub mod seen_to_fit;
pub(crate) mod step_time;

pub use coefficients::{Costs, StageExtra, Vocabulary};
pub use layer::{LayerCosts, LayerMemory};
pub use model::CostModel;
pub use step_time::{StageWork, duration, evaluate, memory_use, stage_works};
