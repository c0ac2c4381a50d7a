//! Mixed-integer programs for layout choice, in operations-research terms.
//!
//! The crate talks of combinations, axes, groups, stages and capacity and knows nothing of what they stand
//! for. Each formulation is a module that states its problem in mathematics, builds a [`model::Model`]
//! with named columns and rows, and has an exact oracle beside it that shares no code with the solver.
//!
//! * [`hitting_set`]: the fewest elements of which every set has one; explains why nothing is feasible.
//! * [`staged`]: choose a combination under named rules, and distribute layers and recomputation over its stages (min-max).
//!
//! [`model`] writes a model as LP or MPS text, [`solve`] hands it to `HiGHS`.

pub mod deadline;
pub mod hitting_set;
pub mod model;
pub mod solve;
pub mod staged;
