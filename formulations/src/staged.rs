//! Staged: select one combination, and distribute layers and recomputation over its stages, for the least time.
//!
//! A *min-max distribution* problem (the bottleneck apportionment of Ibaraki and Katoh, *Resource
//! Allocation Problems*, 1988, chapter 5) with a multiple-choice selection on top and a knapsack inside
//! every stage.
//!
//! # Sets
//! * `C`: combinations, of which one is selected: *groups* with stages of their own, and those that break a
//!   rule. `S_c`: stages of a group, `0..S`; `M_c`: its recompute modes.
//! * `0..L`: layers in their order, `kind(j)` the kind of each: layers of a kind cost the same.
//!
//! # Parameters
//! All integers. For each group, its index left out:
//! * `a, b, w`: weights of the objective, `constant` added to it; `capacity`: memory of a stage.
//! * `t_κ, d_κ, P_κ, A_κ`: time, delta, memory, and memory for each unit in flight, of a layer of a kind.
//! * `e_s, dx_s, m_s, f_s`: extra time, extra delta, fixed memory and units in flight of a stage;
//!   `lower_s, upper_s`: its fewest and most layers.
//! * `r_m, C_m, W_m`: extra time of a layer recomputed by a mode, what it keeps for each unit in flight,
//!   and the workspace of a stage that uses the mode (the largest in use counts once).
//! * `amount(c, rule)`: by how much a combination breaks a rule.
//!
//! # Variables
//! * `x(c) in {0,1}`: the combination is selected; `axis(v) in [0,1]`: it has the value `v` on an axis.
//! * `boundary(c,s,j) in {0,1}`: layer `j` lies on a stage up to `s`. Only `lo(c,s) <= j < hi(c,s)` are
//!   columns; below it reads `x(c)`, above 0. So a stage has
//!   `n(c,s,κ) = sum_{j of kind κ} boundary(c,s,j) - boundary(c,s-1,j)` layers of a kind.
//! * `recomputed(c,s,κ,m)` integer: layers recomputed by a mode; `workspace(c,s,W) in {0,1}`: the largest
//!   workspace in use is at least `W`.
//! * `excess_time(c), excess_delta(c) >= 0`: what the two maxima are above `tau* x` and `delta* x`.
//!
//! # Objective
//! With `T_s = sum_κ t n + sum_m r recomputed + e_s` and `D_s = sum_κ d n + dx_s`, for the selected group
//!
//! `step_time: minimise a max_s T_s + b sum_s T_s + w max_s D_s + constant`,
//!
//! which in the columns is the sum over the groups of
//!
//! `(a tau* + b (sum_j t + sum_s e_s) + w delta* + constant) x`
//! `+ a excess_time + w excess_delta + b sum_s sum_m r recomputed`.
//!
//! Of equal objective the group of the lowest rank wins, then the first; of its plans the one with the least
//! `sum_s T_s`, then the most even, then the one with the earliest layers ([`optimum`]).
//!
//! # Constraints
//! * `select_one`: `sum_c x(c) = 1`. `link_axis(v)`: `sum_{c with v} x(c) = axis(v)`.
//! * a row a rule, under its name: `sum_c amount(c, rule) x(c) <= 0`.
//! * `ordered(c,s,j)`: `boundary(s,j) <= boundary(s,j-1)`, the first `<= x`.
//! * `at_most(c,s,i)`: `boundary(s,E_s(i)) <= boundary(s-1,i)`: a stage that starts at `i` or before ends at
//!   `E_s(i)` at the latest. `at_least(c,s,i)`: `boundary(s-1,i) <= boundary(s,F_s(i+1)-1)`: one that starts
//!   after `i` ends at `F_s(i+1)` at the earliest.
//! * `capacity(c,s)`, under the caller's name for it, where it can bind: with `load = sum_κ (P + f A) n`,
//!   `load - sum_m f (A - C) recomputed + sum_W (W - W_before) workspace + m_s x <= capacity x`.
//! * `at_most_all(c,s,κ)`: `sum_m recomputed <= n`. `uses(c,s,m)`: `recomputed <= most workspace(W_m)`;
//!   `nested`: a larger workspace is also a smaller one.
//! * `stage_time(c,s)`: `T_s - tau* x <= excess_time`. `stage_delta(c,s)`: `D_s - delta* x <= excess_delta`.
//! * Restrictions of a group: fewest and most layers of a stage are deleted intervals; `equal_middle(c,s)`:
//!   `n_s = n_{s+1}`; `recompute_all`, `same_count`: the recomputation that its rule prescribes.
//! * one row a side row, under its own name.
//!
//! Cuts: `recompute_floor(c,s,i)`: `sum_m r recomputed >= slope load - intercept x`,
//! the edges of the lower hull of extra times over loads; `least_objective(c)`: the objective of the group is
//! at least its lower bound; the excesses are not negative.
//!
//! The program sees the groups and the intervals of layers that may be part of a plan as good as the best
//! known (`presolve`: interval fixing): windows, `E` and `F`, hulls and the least maxima come from these.
//!
//! # Exactness
//! What the solver returns is rounded, its memory, time and rows computed anew in integers, and its
//! objective required to be the solver's. [`optimum`] answers for one group by dynamic programming.
//!
//! # Reference
//! The dynamic program for chains of stages is that of Bokhari, *Partitioning problems in parallel,
//! pipelined, and distributed computing*, IEEE Transactions on Computers 37 (1988).

use crate::solve::SolveError;

pub mod bounds;
mod check;
mod columns;
pub mod data;
mod equal_middle;
mod exact;
mod extra;
mod hull;
mod lexicographic;
mod limits;
mod plan;
mod presolve;
mod program;
pub mod recompute;
mod relaxation;
mod rows;
mod search;
mod shortage;
mod side_rows;
mod tables;
#[cfg(test)]
mod tests;
mod top;

pub use bounds::near_even;
pub use data::{
    Axis, Counts, Data, Excluded, Group, Kind, Layers, MAX_KINDS, MAX_MODES, Names, Partition,
    RecomputeMode, RecomputeRule, SideRow, Stage, StageIndex, StageTerm, Units, Weights,
};
pub use exact::{optimum, optimum_within};
pub use plan::{Plan, check_plan, plan_of};
pub use search::{Pruning, Report, solve};
pub use shortage::{Shortage, fits, shortage};
pub use side_rows::greatest_common_divisor;
pub use top::{Wanted, top};

/// Why there is no outcome.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StagedError {
    /// The data is not what the program takes for granted.
    #[error("`{place}` cannot be used: {cause}")]
    Data {
        /// Which group or row.
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
