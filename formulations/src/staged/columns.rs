//! The columns of a group, and what is written in them: see the module [`staged`](super) for the mathematics.

use super::data::{Counts, Data, Group, Kind, RecomputeRule, SideRow};
use super::plan::value;
use super::presolve::Presolved;
use super::recompute::saved;
use crate::model::{ColumnId, Expression, Model};

/// The columns of a group.
#[derive(Debug)]
pub(super) struct Columns<'a> {
    pub(super) data: &'a Data,
    pub(super) group: &'a Group,
    pub(super) presolved: &'a Presolved,
    pub(super) selected: ColumnId,
    pub(super) excess_time: Option<ColumnId>,
    pub(super) excess_delta: Option<ColumnId>,
    pub(super) stages: Vec<StageColumns>,
}

/// The columns of a stage.
#[derive(Debug, Default)]
pub(super) struct StageColumns {
    /// First position at which the stage may end, and one beyond the layers of [`Self::boundary`].
    pub(super) ends: (usize, usize),
    /// `boundary(c,s,j)` from the first position on.
    pub(super) boundary: Vec<ColumnId>,
    /// `recomputed(c,s,m)` and its upper bound, where the mode is of use.
    pub(super) recomputed: Vec<Option<(ColumnId, i64)>>,
    /// Sizes of workspaces, ascending, with their columns.
    pub(super) workspaces: Vec<(i64, ColumnId)>,
}

/// Adds the columns of a group.
pub(super) fn add_columns<'a>(
    model: &mut Model,
    data: &'a Data,
    presolved: &'a Presolved,
) -> Columns<'a> {
    let (c, group) = (presolved.group, &data.groups[presolved.group]);
    let selected = model.add_binary(format!("x({c})"));
    let mut excess = |weight: i64, name: &str| {
        (weight != 0).then(|| model.add_continuous(format!("{name}({c})"), 0.0, f64::INFINITY))
    };
    let excess_time = excess(group.weights.slowest, "excess_time");
    let excess_delta = excess(group.weights.delta, "excess_delta");
    let stages = (0..group.stages.len()).map(|s| {
        let ends = presolved.intervals[s].iter().map(|it| it.end);
        let first = ends.clone().min().unwrap_or(0);
        let last = ends.max().unwrap_or(0);
        let boundary = first..if s + 1 < group.stages.len() {
            last
        } else {
            first
        };
        let boundary = boundary.map(|j| model.add_binary(format!("boundary({c},{s},{j})")));
        let boundary = boundary.collect();
        let recomputed = most_recomputed(data, group, presolved, s);
        let mut recomputed_columns = Vec::new();
        let mut sizes = Vec::new();
        for (m, (mode, &most)) in group.modes.iter().zip(&recomputed).enumerate() {
            recomputed_columns.push((most > 0).then(|| {
                let name = format!("recomputed({c},{s},{},{m})", mode.kind);
                sizes.push(mode.workspace);
                (model.add_integer(name, 0.0, most as f64), most)
            }));
        }
        sizes.retain(|&size| size > 0);
        sizes.sort_unstable();
        sizes.dedup();
        let workspaces = sizes
            .into_iter()
            .map(|size| (size, model.add_binary(format!("workspace({c},{s},{size})"))));
        StageColumns {
            ends: (first, last),
            boundary,
            recomputed: recomputed_columns,
            workspaces: workspaces.collect(),
        }
    });
    let stages = stages.collect();
    Columns {
        data,
        group,
        presolved,
        selected,
        excess_time,
        excess_delta,
        stages,
    }
}

/// Most layers that a stage may recompute by each mode: none unless some interval left must.
fn most_recomputed(data: &Data, group: &Group, presolved: &Presolved, stage: usize) -> Counts {
    let mut most = Counts::default();
    let intervals = &presolved.intervals[stage];
    if group.recompute == RecomputeRule::None || intervals.iter().all(|it| it.extra == 0) {
        return most;
    }
    for (index, mode) in group.modes.iter().enumerate() {
        let used = match group.recompute {
            RecomputeRule::Uniform { mode, .. } | RecomputeRule::AllLayers { mode } => {
                mode == index
            }
            RecomputeRule::Free | RecomputeRule::None => saved(group, mode) > 0,
        };
        let counts = intervals.iter().map(|it| match group.modes.len() {
            // The least that fits, which is the only mode's share of the extra time.
            1 => it.extra / mode.extra_time,
            _ => data.layers.between(it.start, it.end)[mode.kind],
        });
        most[index] = if used { counts.max().unwrap_or(0) } else { 0 };
    }
    most
}

impl Columns<'_> {
    /// `boundary(c,s,j)`: whether layer `j` lies on a stage up to `stage`, counted from one.
    pub(super) fn boundary(&self, stage: usize, layer: usize) -> Expression {
        let Some(stage) = stage.checked_sub(1) else {
            return Expression::ZERO;
        };
        let columns = &self.stages[stage];
        match layer.checked_sub(columns.ends.0) {
            None => self.selected.into(),
            Some(place) => columns
                .boundary
                .get(place)
                .map_or(Expression::ZERO, |&column| column.into()),
        }
    }

    /// `sum_j weight(j) (boundary(c,s,j) - boundary(c,s-1,j))`.
    pub(super) fn on_stage(&self, stage: usize, weight: impl Fn(usize) -> f64) -> Expression {
        let from = stage
            .checked_sub(1)
            .map_or(0, |before| self.stages[before].ends.0);
        let mut left = Expression::ZERO;
        let mut fixed = 0.0;
        for layer in from..self.stages[stage].ends.1 {
            let weight = weight(layer);
            if layer < self.stages[stage].ends.0 {
                fixed += weight;
            } else {
                left += weight * self.boundary(stage + 1, layer);
            }
            left -= weight * self.boundary(stage, layer);
        }
        left + fixed * self.selected
    }

    pub(super) fn recomputed(&self, stage: usize, weight: impl Fn(usize) -> f64) -> Expression {
        let columns = self.stages[stage].recomputed.iter().enumerate();
        let used = columns.filter_map(|(mode, column)| Some((mode, column.as_ref()?.0)));
        used.map(|(mode, column)| weight(mode) * column).sum()
    }

    pub(super) fn kind(&self, layer: usize) -> &Kind {
        &self.group.kinds[self.data.layers.kind(layer)]
    }

    /// `sum_κ (P + f A) n`.
    pub(super) fn load(&self, stage: usize) -> Expression {
        let (unit, in_flight) = (self.data.units.memory, self.group.stages[stage].in_flight);
        self.on_stage(stage, |j| {
            unit * (self.kind(j).memory + in_flight * self.kind(j).activation) as f64
        })
    }

    pub(super) fn extra_time(&self, stage: usize) -> Expression {
        let unit = self.data.units.time;
        self.recomputed(stage, |m| unit * self.group.modes[m].extra_time as f64)
    }

    pub(super) fn name(&self, row: &str, stage: usize) -> String {
        format!("{row}({},{stage})", self.presolved.group)
    }

    /// What the group adds to the objective, without the constant of the model.
    pub(super) fn objective(&self) -> Expression {
        let (group, units) = (self.group, &self.data.units);
        let weights = &group.weights;
        let all = self.data.layers.all();
        let layers: i64 = (group.kinds.iter().zip(all))
            .map(|(it, n)| it.time * n)
            .sum();
        let stages: i64 = group.stages.iter().map(|stage| stage.extra_time).sum();
        let presolved = self.presolved;
        let fixed = value(group, presolved.slowest, layers + stages, presolved.delta);
        let mut objective = units.objective * fixed as f64 * self.selected;
        let per_time = units.objective / units.time;
        for (weight, excess) in [
            (weights.slowest, self.excess_time),
            (weights.delta, self.excess_delta),
        ] {
            if let Some(excess) = excess {
                objective += per_time * weight as f64 * excess;
            }
        }
        let extra: Expression = (0..group.stages.len()).map(|s| self.extra_time(s)).sum();
        objective + per_time * weights.total as f64 * extra
    }

    /// What the group adds to the left side of a row of the caller.
    pub(super) fn side_row(&self, row: &SideRow) -> Expression {
        let own = row.groups.get(self.presolved.group).copied().unwrap_or(0);
        let mut left = own as f64 * self.selected;
        for term in &row.layers {
            if let Some(stage) = term.stage.of(self.stages.len()) {
                left += term.coefficient as f64 * self.on_stage(stage, |_| 1.0);
            }
        }
        for stage in 0..self.stages.len() {
            left += self.recomputed(stage, |_| row.recomputed as f64);
        }
        left
    }
}
