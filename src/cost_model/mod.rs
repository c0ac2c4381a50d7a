//! The cost model: memory and step time of one layout. Pure functions, no input or output.
//!
//! Symbols, as in Hagemann et al. (arXiv 2311.05610) where they have one: `L` layers, `h` hidden
//! size, `a` heads, `f` feed-forward width, `V` vocabulary, `s` sequence length, `b` micro-batch,
//! `tp`, `pp`, `dp`, `cp` degrees, `v` virtual stages, `G` GPUs, `t = b s / cp` tokens of a
//! micro-batch on one rank, `M` micro-batches a step, `u` = `tp` with sequence parallelism and
//! 1 without. Bytes, FLOP and seconds throughout.
//!
//! For a fixed cell everything is linear in the layers of each stage, apart from two maxima:
//! [`Costs`] holds the coefficients, [`evaluate`] adds them up for given stages, and the
//! staged program decides the layers with the same coefficients.

mod coefficients;
pub mod communication;
pub mod compute;
pub mod discrepancy;
pub mod flops;
pub mod memory;
pub mod pipeline;
pub mod prediction;
mod step_time;

pub use coefficients::{Costs, LayerTime, StageExtra, Vocabulary};
pub use step_time::{duration, evaluate, stage_peak};
