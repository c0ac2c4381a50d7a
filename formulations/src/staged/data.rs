//! What a staged problem consists of. Every number is an integer, quantised once by the caller.

use std::sync::Arc;

use crate::model::Sense;

/// Most kinds of layers.
pub const MAX_KINDS: usize = 4;

/// Most recompute modes a group may have, over all kinds.
pub const MAX_MODES: usize = 8;

/// Layers of each kind; zero beyond the kinds.
pub type KindCounts = [i64; MAX_KINDS];

/// Layers recomputed by each mode of the group; zero beyond its modes.
pub type Counts = [i64; MAX_MODES];

/// Layers of one kind.
#[must_use]
pub const fn alike(count: i64) -> KindCounts {
    let mut counts = [0; MAX_KINDS];
    counts[0] = count;
    counts
}

/// A staged problem; see the module.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Data {
    /// The layers to distribute over the stages.
    pub layers: Layers,
    /// `C`: combinations with what their stages cost, of which one is selected.
    pub groups: Vec<Group>,
    /// Combinations that break a rule: `x(c)` alone.
    pub excluded: Vec<Excluded>,
    /// The axes of the combinations; every combination has a value on each.
    pub axes: Vec<Axis>,
    /// Names of the rules that combinations break.
    pub rules: Vec<String>,
    /// Further rows that the selected group and its layers must satisfy.
    pub side_rows: Vec<SideRow>,
    /// What the caller calls the two rules on stages.
    pub names: Names,
    /// In which units the solver sees the numbers.
    pub units: Units,
}

/// `kind(j)` of each layer in its order, with the layers of each kind before each position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layers {
    kinds: Vec<usize>,
    before: Vec<KindCounts>,
}

impl Default for Layers {
    fn default() -> Self {
        Self::of_kinds(Vec::new())
    }
}

impl Layers {
    /// Layers of one kind.
    #[must_use]
    pub fn alike(count: i64) -> Self {
        Self::of_kinds(vec![0; usize::try_from(count).unwrap_or(0)])
    }

    /// Layers of these kinds, in this order; kinds count from zero and stay below [`MAX_KINDS`].
    #[must_use]
    pub fn of_kinds(kinds: Vec<usize>) -> Self {
        let mut counts = [0; MAX_KINDS];
        let mut before = vec![counts];
        for &kind in &kinds {
            counts[kind] += 1;
            before.push(counts);
        }
        Self { kinds, before }
    }

    /// `L`.
    #[must_use]
    pub fn count(&self) -> i64 {
        self.kinds.len() as i64
    }

    /// Kind of a layer.
    pub(super) fn kind(&self, layer: usize) -> usize {
        self.kinds[layer]
    }

    /// Layers of each kind from one position up to before another.
    pub(super) fn between(&self, start: usize, end: usize) -> KindCounts {
        std::array::from_fn(|kind| self.before[end][kind] - self.before[start][kind])
    }

    /// Layers of each kind.
    pub(super) fn all(&self) -> KindCounts {
        self.between(0, self.kinds.len())
    }

    /// Whether all layers are of the first kind.
    pub(super) fn are_alike(&self) -> bool {
        self.all()[1..].iter().all(|&count| count == 0)
    }
}

/// A combination that breaks rules, and by how much.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excluded {
    /// Index of its value on each axis.
    pub values: Vec<usize>,
    /// Each rule that it breaks, and the amount, not zero.
    pub broken: Vec<(usize, u64)>,
}

/// An axis: a name and the values of which one is selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Axis {
    /// Name, as it is to stand in columns and rows.
    pub name: String,
    /// Names of the values; value 1 of axis `width` becomes the column `width(1)`.
    pub values: Vec<String>,
}

/// The rules on stages, as they are to stand in rows. Where [`Data::rules`] has them, the rows of the same
/// names exclude the groups that have no stages by them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    /// No stage exceeds the capacity.
    pub memory: String,
    /// The stages share all layers within their bounds.
    pub layers: String,
}

impl Default for Names {
    fn default() -> Self {
        Self {
            memory: "capacity".into(),
            layers: "all_layers".into(),
        }
    }
}

/// The solver's units for one unit of the data.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Units {
    /// Of times and deltas of stages.
    pub time: f64,
    /// Of memory.
    pub memory: f64,
    /// Of the objective.
    pub objective: f64,
}

impl Default for Units {
    fn default() -> Self {
        Self {
            time: 1.0,
            memory: 1.0,
            objective: 1.0,
        }
    }
}

/// A combination of everything but layers and recomputation.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// Index of its value on each axis.
    pub values: Vec<usize>,
    /// `S`: the stages in their order, at least one.
    pub stages: Arc<[Stage]>,
    /// `a, b, w`: weights of the objective.
    pub weights: Weights,
    /// What the combination adds to the objective.
    pub constant: i64,
    /// What one layer of each kind costs.
    pub kinds: Vec<Kind>,
    /// `M`: the ways to recompute a layer.
    pub modes: Vec<RecomputeMode>,
    /// Which numbers of recomputed layers are permitted.
    pub recompute: RecomputeRule,
    /// Which distributions of the layers are permitted.
    pub partition: Partition,
    /// Largest memory of a stage.
    pub capacity: i64,
    /// Of equal objective the group of the lowest rank wins, then the first.
    pub rank: i64,
}

impl Group {
    /// What a layer costs where all are of one kind.
    pub(super) fn layer(&self) -> &Kind {
        &self.kinds[0]
    }
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

/// What one layer of a kind costs on whichever stage it lies, not negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
    /// `κ`: the kind of layers that it recomputes.
    pub kind: usize,
    /// `r`: time it adds to a layer, positive.
    pub extra_time: i64,
    /// `C`: memory that the layer keeps for each unit in flight, in place of the activation.
    pub activation: i64,
    /// `W`: memory that a stage needs once, if it recomputes any layer by this mode.
    pub workspace: i64,
}

/// Which numbers of recomputed layers a group permits. The last two are for layers of one kind.
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

/// Which distributions of the layers a group permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Partition {
    /// Any that keeps to the bounds of the stages.
    Free,
    /// Every stage but the first and the last has the same number of layers.
    EqualMiddle,
}

/// A named row `sum_c g_c x_c + sum_s h_s n_s + k K  (<=, =, >=)  right`, where `n_s` are the layers of a
/// stage of the selected group (zero where it has no such stage) and `K` all its recomputed layers.
#[derive(Debug, Clone, PartialEq)]
pub struct SideRow {
    /// Name of the row.
    pub name: String,
    /// `g`: coefficient of each group, or empty for none.
    pub groups: Vec<i64>,
    /// `h`: coefficients of layers.
    pub layers: Vec<StageTerm>,
    /// `k`: coefficient of the recomputed layers. Since a stage recomputes no more layers than it
    /// must, this may only limit them from above where the group decides their number.
    pub recomputed: i64,
    /// How the sides compare.
    pub sense: Sense,
    /// The right side.
    pub right: i64,
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
    /// The stage of a group with so many stages, if it has one there.
    #[must_use]
    pub fn of(self, stages: usize) -> Option<usize> {
        match self {
            Self::FromFirst(index) => (index < stages).then_some(index),
            Self::FromLast(index) => stages.checked_sub(index + 1),
        }
    }
}
