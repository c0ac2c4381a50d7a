//! Staged: select one cell, and distribute layers and recomputation over its stages, for the least time.
//!
//! A *min-max distribution* problem (the bottleneck apportionment of Ibaraki and Katoh, *Resource
//! Allocation Problems*, 1988, chapter 5) with a multiple-choice selection on top and a knapsack inside
//! every stage. The dynamic program for chains of stages is that of Bokhari, *Partitioning problems in
//! parallel, pipelined, and distributed computing*, IEEE Transactions on Computers 37 (1988).
//!
//! # Sets
//! * `C`: cells, of which one is selected; `S_c`: stages of a cell, `0..S`; `M_c`: its recompute modes.
//!
//! # Parameters
//! All integers. `L`: layers. For each cell, its index left out:
//! * `a, b, w`: weights of the objective, `constant` added to it; `capacity`: memory of a stage.
//! * `t, d, P, A`: time, delta, memory, and memory for each unit in flight, of a layer.
//! * `e_s, dx_s, m_s, f_s`: extra time, extra delta, fixed memory and units in flight of a stage;
//!   `lower_s, upper_s`: its fewest and most layers.
//! * `r_m, C_m, W_m`: extra time of a layer recomputed by a mode, what it keeps for each unit in flight,
//!   and the workspace of a stage that uses the mode.
//!
//! # Variables
//! * `x_c in {0,1}`: the cell is selected.
//! * `n_cs`: layers of a stage, and `k_csm` of them recomputed. `k` is the least that fits, so it is a
//!   function of `n` and left out of the program ([`recompute`]).
//! * `layer(c,s,j) in {0,1}`: stage `s` has at least `j` layers, `j` above the lower end `lo` of its
//!   window; `n_cs = lo x_c + sum_j layer(c,s,j)`.
//! * `excess_time(c), excess_delta(c) >= 0`: what the two maxima are above `tau* x_c` and `delta* x_c`.
//!
//! # Objective
//! With `T_s(n) = n t + sum_m k_m r_m + e_s` and `D_s(n) = n d + dx_s`, for the selected cell
//!
//! `objective: minimise a max_s T_s + b sum_s T_s + w max_s D_s + constant`,
//!
//! which in the columns is the sum over the cells of
//!
//! `(a tau* + b (L t + sum_s e_s) + w delta* + constant) x_c`
//! `+ a excess_time(c) + w excess_delta(c) + b sum_s R_s(n_cs)`.
//!
//! `R_s(n)` is the extra time of recomputing; a table `v(n)` of values is written
//! `v(lo) x_c + sum_j (v(j) - v(j-1)) layer(c,s,j)`. Of equal objective the cell of the lowest rank wins,
//! then the first; of its plans the one with the least `sum_s T_s`, then the most even, then the one with
//! the earliest layers ([`cell_optimum`]).
//!
//! # Constraints
//! * `select_one`: `sum_c x_c = 1`.
//! * `all_layers(c)`: `sum_s n_cs = L x_c`.
//! * `ladder(c,s,j)`: `layer(c,s,j+1) <= layer(c,s,j)`, the first `<= x_c`.
//! * `stage_time(c,s)`: `T_s(n_cs) - tau* x_c <= excess_time(c)`.
//! * `stage_delta(c,s)`: `D_s(n_cs) - delta* x_c <= excess_delta(c)`.
//! * `equal_middle(c,s)`: `n_cs = n_c,s+1` in the middle, where the cell asks for it.
//! * one row a side row, under its own name.
//!
//! `tau*` and `delta*` are the floors of [`bounds`]: that the excess is not negative is the cut that
//! closes nearly all of the gap. The program sees only the cells that survive the screening ([`CellBound`]),
//! in groups with the best bounds first, and windows of `n` that the best known plan leaves; memory is within
//! the tables.
//!
//! # Exactness
//! What the solver returns is rounded, its memory, time and rows computed anew in integers, and its
//! objective required to be the solver's to half a unit. Without side rows the winning cell's optimum is
//! computed a second time by dynamic programming and required to be the same. [`oracle`] enumerates.

use crate::solve::SolveError;

pub mod bounds;
mod check;
pub mod data;
mod dynamic;
mod equal_middle;
mod extra;
mod lexicographic;
mod limits;
mod oracle;
mod plan;
mod program;
pub mod recompute;
mod relaxation;
mod screen;
mod search;
mod shortage;
mod side_rows;
mod tables;
#[cfg(test)]
mod tests;
mod top;

pub use bounds::near_even;
pub use data::{
    Cell, Counts, Data, Layer, MAX_MODES, Partition, RecomputeMode, RecomputeRule, Scope, SideRow,
    Stage, StageIndex, StageTerm, Weights,
};
pub use dynamic::{cell_optimum, cell_optimum_within};
pub use oracle::oracle;
pub use plan::{Plan, check_plan, plan_of};
pub use screen::CellBound;
pub use search::{CellCounts, Report, bound_cells, build, solve};
pub use shortage::{Shortage, fits, shortage};
pub use top::top;

/// Why there is no outcome.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StagedError {
    /// The data is not what the program takes for granted.
    #[error("`{place}` cannot be used: {cause}")]
    Data {
        /// Which cell or row.
        place: String,
        /// What is wrong with it.
        cause: &'static str,
    },
    /// The solver gave no outcome.
    #[error(transparent)]
    Solve(#[from] SolveError),
    /// The solver's answer does not stand up to the check in integers.
    #[error("the solver's answer fails the exact check: {cause}")]
    Inexact {
        /// What the check found.
        cause: String,
    },
}
