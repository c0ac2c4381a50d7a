//! What a staged problem consists of. Every number is an integer, quantised once by the caller.

use crate::model::Sense;

/// Most recompute modes a cell may have.
pub const MAX_MODES: usize = 3;

/// Layers recomputed by each mode of the cell; zero beyond its modes.
pub type Counts = [i64; MAX_MODES];

/// A staged problem; see the module.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Data {
    /// `L`: layers to distribute over the stages.
    pub layers: i64,
    /// `C`: the cells, of which one is selected.
    pub cells: Vec<Cell>,
    /// Further rows that the selected cell and its layers must satisfy.
    pub side_rows: Vec<SideRow>,
}

/// A combination of everything but layers and recomputation.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// `S`: the stages in their order, at least one.
    pub stages: Vec<Stage>,
    /// `a, b, w`: weights of the objective.
    pub weights: Weights,
    /// What the cell adds to the objective.
    pub constant: i64,
    /// What one layer costs.
    pub layer: Layer,
    /// `M`: the ways to recompute a layer.
    pub modes: Vec<RecomputeMode>,
    /// Which numbers of recomputed layers are permitted.
    pub recompute: RecomputeRule,
    /// Which distributions of the layers are permitted.
    pub partition: Partition,
    /// Largest memory of a stage.
    pub capacity: i64,
    /// Of equal objective the cell of the lowest rank wins, then the first.
    pub rank: i64,
}

/// Weights of the objective `a max_s T_s + b sum_s T_s + w max_s D_s + constant`, not negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Weights {
    /// `a`: weight of the slowest stage.
    pub slowest: i64,
    /// `b`: weight of the sum over the stages.
    pub total: i64,
    /// `w`: weight of the largest delta.
    pub delta: i64,
}

/// What one layer costs on whichever stage it lies, not negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layer {
    /// `t`: time.
    pub time: i64,
    /// `d`: delta.
    pub delta: i64,
    /// `P`: memory, however many units are in flight.
    pub memory: i64,
    /// `A`: memory for each unit in flight.
    pub activation: i64,
}

/// A stage without its layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stage {
    /// `e`: time beside the layers.
    pub extra_time: i64,
    /// `dx`: delta beside the layers.
    pub extra_delta: i64,
    /// `m`: memory beside the layers.
    pub fixed_memory: i64,
    /// `f`: units in flight, not negative.
    pub in_flight: i64,
    /// Fewest layers permitted.
    pub lower_layers: i64,
    /// Most layers permitted.
    pub upper_layers: i64,
}

/// A way to recompute a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecomputeMode {
    /// `r`: time it adds to a layer, positive.
    pub extra_time: i64,
    /// `C`: memory that the layer keeps for each unit in flight, in place of the activation.
    pub activation: i64,
    /// `W`: memory that a stage needs once, if it recomputes any layer by this mode.
    pub workspace: i64,
}

/// Which numbers of recomputed layers a cell permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecomputeRule {
    /// No layer is recomputed.
    None,
    /// Any number by any mode on any stage.
    Free,
    /// Every stage recomputes `min(count, n_s)` layers by one mode.
    Uniform {
        /// Index of the mode.
        mode: usize,
        /// Layers recomputed on a stage that has as many.
        count: i64,
    },
    /// Every layer is recomputed by one mode.
    AllLayers {
        /// Index of the mode.
        mode: usize,
    },
}

/// Which distributions of the layers a cell permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Partition {
    /// Any that keeps to the bounds of the stages.
    Free,
    /// Every stage but the first and the last has the same number of layers.
    EqualMiddle,
}

/// A named row `sum_c g_c x_c + sum_s h_s n_s + k K  (<=, =, >=)  right`, where `n_s` are the layers of a
/// stage of the selected cell (zero where it has no such stage) and `K` all its recomputed layers.
#[derive(Debug, Clone, PartialEq)]
pub struct SideRow {
    /// Name of the row.
    pub name: String,
    /// The cells to which it applies.
    pub scope: Scope,
    /// `g`: coefficient of each cell, or empty for none.
    pub cells: Vec<i64>,
    /// `h`: coefficients of layers.
    pub layers: Vec<StageTerm>,
    /// `k`: coefficient of the recomputed layers. Since a stage recomputes no more layers than it
    /// must, this may only limit them from above where the cell decides their number.
    pub recomputed: i64,
    /// How the sides compare.
    pub sense: Sense,
    /// The right side.
    pub right: i64,
}

/// The cells to which a row applies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// All of them.
    Every,
    /// Those whose entry is true: one entry for each cell.
    Only(Vec<bool>),
}

impl Scope {
    /// Whether the row applies to a cell.
    #[must_use]
    pub fn contains(&self, cell: usize) -> bool {
        match self {
            Self::Every => true,
            Self::Only(cells) => cells[cell],
        }
    }
}

/// `coefficient * n_stage`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StageTerm {
    /// Which stage.
    pub stage: StageIndex,
    /// The coefficient.
    pub coefficient: i64,
}

/// A stage counted from one of the ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StageIndex {
    /// 0 is the first stage.
    FromFirst(usize),
    /// 0 is the last stage.
    FromLast(usize),
}

impl StageIndex {
    /// The stage of a cell with so many stages, if it has one there.
    #[must_use]
    pub fn of(self, stages: usize) -> Option<usize> {
        match self {
            Self::FromFirst(index) => (index < stages).then_some(index),
            Self::FromLast(index) => stages.checked_sub(index + 1),
        }
    }
}
