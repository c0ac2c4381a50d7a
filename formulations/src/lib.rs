//! Mixed-integer programs for layout choice, in operations-research terms.
//!
//! The crate talks of items, axes, cells, stages and capacity and knows nothing of what they stand
//! for. Each formulation is a file that states its problem in mathematics, builds a [`model::Model`]
//! with named columns and rows, and has an exact oracle beside it that shares no code with the solver.
//!
//! * [`hitting_set`]: the lightest elements of which every set has one; explains why nothing is feasible.
//! * [`layout_choice`]: choose one item of a product of axes under linear rows (multiple choice).
//! * [`staged`]: choose a cell and distribute layers and recomputation over its stages (min-max).
//!
//! [`model`] writes a model as LP or MPS text, [`solve`] hands it to `HiGHS`.

pub mod hitting_set;
pub mod layout_choice;
pub mod model;
pub mod solve;
pub mod staged;
