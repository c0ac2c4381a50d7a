//! The layouts of one combination: what the framework permits, and what each costs.

use crate::framework::{CheckpointRule, Partition};
use crate::instance::Instance;
use crate::layout::{Checkpointing, Recompute};
use crate::plan::Formulation;
use crate::planner::quantise::CellUnits;

use super::cut;
use super::rows::{self, Row};
use super::space::Open;

/// Sums of one combination stay below this, so that no arithmetic overflows.
const LARGEST: i128 = 1 << 60;

/// How the layers of a combination are recomputed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Any layers by any permitted mode.
    Mix,
    /// None.
    None,
    /// So many on every stage that has as many, by one mode.
    Count(usize, i64),
    /// Every layer by one mode.
    All(usize),
}

/// One combination with its coefficients and rules.
#[derive(Debug)]
pub(super) struct Problem<'a> {
    /// The coefficients.
    pub(super) units: &'a CellUnits,
    /// Layers of the network, `L`.
    pub(super) layers: i64,
    /// Memory of a stage that the accepted risk leaves.
    pub(super) capacity: i64,
    /// Fewest and most layers of each stage.
    pub(super) windows: Vec<(i64, i64)>,
    /// Whether all stages but the first and the last have the same number of layers.
    pub(super) equal_middle: bool,
    /// Recompute modes of use, ascending.
    pub(super) modes: Vec<usize>,
    /// Rows of the user's own over layers.
    pub(super) rows: Vec<Row>,
    /// What the framework permits of them, the preferred first.
    rule: WayRule,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WayRule {
    Mix,
    /// None if `none`, equal counts if `counts`, and all by each mode.
    Choose {
        none: bool,
        counts: bool,
    },
}

impl<'a> Problem<'a> {
    /// The layouts of an open combination.
    pub(super) fn new(
        instance: &Instance,
        formulation: Formulation,
        open: &Open,
        units: &'a CellUnits,
        capacity: i64,
    ) -> Self {
        let none = open.flags.contains(&Checkpointing::None);
        let layout_choice = formulation == Formulation::LayoutChoice;
        let rule = match instance.job.framework.checkpoint_rule {
            _ if layout_choice => WayRule::Choose {
                none,
                counts: false,
            },
            CheckpointRule::Free if none => WayRule::Mix,
            rule => WayRule::Choose {
                none,
                counts: none && rule == CheckpointRule::SameCount,
            },
        };
        // Where layers need not be recomputed, a mode that saves nothing is of no use.
        let is_of_use = |&mode: &usize| !none || units.kept[mode] < units.activations;
        let flags = open.flags.iter().filter_map(|flag| flag.recompute());
        let layers = i64::from(instance.job.transformer.layers);
        let (windows, equal_middle) = windows(instance, open, layers, layout_choice);
        Self {
            units,
            layers,
            capacity,
            windows,
            equal_middle,
            rows: rows::rows(instance, &open.cell),
            modes: flags.map(|mode| mode as usize).filter(is_of_use).collect(),
            rule,
        }
    }

    /// Every permitted way to recompute, the preferred first.
    pub(super) fn ways(&self) -> Vec<Way> {
        let WayRule::Choose { none, counts } = self.rule else {
            return vec![Way::Mix];
        };
        let mut ways = Vec::new();
        if none {
            ways.push(Way::None);
        }
        for &mode in &self.modes {
            if counts && mode == Recompute::Full as usize {
                let most = self.windows.iter().map(|window| window.1).max();
                let counts = 1..most.unwrap_or(0);
                ways.extend(counts.map(|count| Way::Count(mode, count)));
            }
            ways.push(Way::All(mode));
        }
        ways
    }

    /// The first row that no distribution of the layers keeps, and by how much it is missed at least,
    /// whatever memory says.
    pub(super) fn missed_row(&self) -> Option<(u32, i64)> {
        self.rows.iter().find_map(|row| {
            let (least, most) = self.range(row);
            let missed = rows::missed(row.comparison, least, most);
            (missed > 0).then_some((row.index, missed))
        })
    }

    /// The least and the most that the sides of a row can differ by, by the fewest and the most layers of
    /// each stage and of all that are recomputed.
    pub(super) fn range(&self, row: &Row) -> (i64, i64) {
        let fewest = match self.rule {
            WayRule::Choose { none: false, .. } => self.layers,
            _ => 0,
        };
        let most = if self.modes.is_empty() {
            0
        } else {
            self.layers
        };
        row.range(&self.windows, (fewest, most))
    }

    /// Whether every row holds with these layers and recomputed layers of the stages.
    pub(super) fn keeps_rows(&self, stages: &[(i64, [i64; 3])]) -> bool {
        self.rows.iter().all(|row| {
            let own = stages.iter().enumerate();
            let sum: i64 = own
                .map(|(stage, &(layers, counts))| row.of_stage(stage, layers, counts))
                .sum();
            row.holds(row.base + sum)
        })
    }

    /// The ways of which one needs the least memory on every stage: recomputing all layers needs no
    /// more than recomputing some, since workspace is paid once.
    pub(super) fn lightest_ways(&self) -> Vec<Way> {
        match self.rule {
            WayRule::Mix => vec![Way::Mix],
            WayRule::Choose { none, .. } => {
                let all = self.modes.iter().map(|&mode| Way::All(mode));
                none.then_some(Way::None).into_iter().chain(all).collect()
            }
        }
    }

    /// Number of stages, `S`.
    pub(super) fn stages(&self) -> usize {
        self.windows.len()
    }

    /// `T_s(n)` with so much extra time.
    pub(super) fn time(&self, stage: usize, layers: i64, extra: i64) -> i64 {
        layers * self.units.layer_time + self.units.stages[stage].extra_time + extra
    }

    /// `D_s(n)`.
    pub(super) fn delta(&self, stage: usize, layers: i64) -> i64 {
        layers * self.units.layer_delta + self.units.stages[stage].extra_delta
    }

    /// `a tau + b sum + w delta + constant`.
    pub(super) fn objective(&self, slowest: i64, sum: i64, delta: i64) -> i64 {
        self.units.max_weight * slowest
            + self.units.sum_weight * sum
            + self.units.delta_weight * delta
            + self.units.constant
    }

    /// `L t + sum_s e_s`: time of all stages without recomputation.
    pub(super) fn work(&self) -> i64 {
        let extra: i64 = self.units.stages.iter().map(|stage| stage.extra_time).sum();
        self.layers * self.units.layer_time + extra
    }

    /// Memory of a stage of which `counts` layers are recomputed by each mode.
    pub(super) fn memory(&self, stage: usize, layers: i64, counts: [i64; 3]) -> i64 {
        let (units, own) = (self.units, &self.units.stages[stage]);
        let mut activations = layers * units.activations;
        let mut workspace = 0;
        for (mode, &count) in counts.iter().enumerate() {
            activations += count * (units.kept[mode] - units.activations);
            if count > 0 {
                workspace = workspace.max(units.workspace[mode]);
            }
        }
        layers * units.layer_memory + own.in_flight * activations + workspace + own.fixed_memory
    }
}

/// Fewest and most layers of each stage, and whether those in the middle are equal.
fn windows(
    instance: &Instance,
    open: &Open,
    layers: i64,
    layout_choice: bool,
) -> (Vec<(i64, i64)>, bool) {
    let partition = instance.job.framework.partition;
    let stages = i64::from(open.cell.pipeline_parallel);
    let chunks = i64::from(open.cell.virtual_stages);
    let free = matches!(partition, Partition::Free | Partition::FirstAndLast);
    if chunks == 1 && free && !layout_choice {
        let windows = vec![(1, layers - (stages - 1)); stages as usize];
        return (windows, partition == Partition::FirstAndLast && stages > 2);
    }
    let cut = if chunks > 1 {
        cut::interleaved(layers, stages, chunks)
    } else {
        cut::own(partition, layers, stages)
    };
    (cut.into_iter().map(|count| (count, count)).collect(), false)
}

/// Whether every sum over the combination stays within 60 bits.
pub(super) fn within_limits(units: &CellUnits, layers: u32, capacity: i64) -> bool {
    let layers = i128::from(layers) + 1;
    let most = |values: &[i64]| {
        let values = values.iter().map(|&value| i128::from(value));
        values.max().unwrap_or(0)
    };
    let of_stages = |of: fn(&crate::planner::quantise::StageUnits) -> i64| {
        let values = units.stages.iter().map(|stage| i128::from(of(stage)));
        values.max().unwrap_or(0)
    };
    let not_negative = units
        .recompute_time
        .iter()
        .chain(&units.kept)
        .chain(&units.workspace)
        .chain([
            &units.max_weight,
            &units.sum_weight,
            &units.delta_weight,
            &units.constant,
            &units.layer_time,
            &units.layer_delta,
            &units.layer_memory,
            &units.activations,
        ])
        .chain(units.stages.iter().flat_map(|stage| {
            [
                &stage.extra_time,
                &stage.extra_delta,
                &stage.fixed_memory,
                &stage.in_flight,
            ]
        }))
        .all(|&value| (0..=LARGEST as i64).contains(&value));
    if !not_negative {
        return false;
    }
    let stages = units.stages.len() as i128;
    let time = layers * (i128::from(units.layer_time) + most(&units.recompute_time))
        + of_stages(|stage| stage.extra_time);
    let delta = layers * i128::from(units.layer_delta) + of_stages(|stage| stage.extra_delta);
    let activations = i128::from(units.activations) + most(&units.kept);
    let memory = (of_stages(|stage| stage.in_flight)).saturating_mul(layers * activations)
        + layers * i128::from(units.layer_memory)
        + most(&units.workspace)
        + of_stages(|stage| stage.fixed_memory)
        + i128::from(capacity).abs();
    let weights = i128::from(units.max_weight) + i128::from(units.sum_weight);
    let objective = weights
        .saturating_mul(time * stages)
        .saturating_add(i128::from(units.delta_weight).saturating_mul(delta))
        .saturating_add(i128::from(units.constant));
    memory < LARGEST && objective < LARGEST
}
