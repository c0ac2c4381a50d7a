//! The best layout of one combination, by a dynamic program over its stages.
//!
//! The stages are filled one after the other. For each number of layers spent so far the program keeps
//! the partial layouts of which none is at least as good as another in every respect: slowest stage,
//! largest delta, and sum of times with the tie rule. A partial layout that cannot reach the best known
//! objective, however the rest turns out, is dropped.

use crate::constraint::Comparison;

use super::bounds::{slowest, within};
use super::budget::{Budget, TooLarge};
use super::problem::{Problem, Way};
use super::tables::{Table, tables};

/// The best layout of a combination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Best {
    /// Its objective.
    pub(super) objective: i64,
    /// Layers of each stage, and those recomputed by each mode.
    pub(super) stages: Vec<(i64, [i64; 3])>,
}

/// What decides between layouts of equal objective, smaller first: the sum of the stages' times, then
/// `sum_s (S n_s - L)^2`, then `sum_s s n_s`, then the layers of the first stage that differs.
type Tie = (i64, i128, i64);

/// The best layout of a combination; of equal ones that of the first way, then of the smallest tie.
/// `None` if none fits.
pub(super) fn best(problem: &Problem, budget: &Budget) -> Result<Option<Best>, TooLarge> {
    let mut best: Option<Best> = None;
    for way in problem.ways() {
        // Another way has to be better, not as good.
        let limit = best.as_ref().map_or(i64::MAX, |best| best.objective - 1);
        if let Some(found) = best_by(problem, way, limit, budget)? {
            best = Some(found);
        }
    }
    Ok(best)
}

/// The best layout by one way of recomputing, if its objective is at most `limit`.
fn best_by(
    problem: &Problem,
    way: Way,
    limit: i64,
    budget: &Budget,
) -> Result<Option<Best>, TooLarge> {
    let tables = tables(problem, way, budget)?;
    let most: Vec<i64> = tables.iter().map(Table::most).collect();
    if !problem.can_spread(&most) {
        return Ok(None);
    }
    let layers = if problem.equal_middle {
        equal_middle(problem, &tables, budget)?
    } else {
        search(problem, &tables, limit, budget)?
    };
    let Some(layers) = layers else {
        return Ok(None);
    };
    let objective = cost(problem, &tables, &layers);
    Ok((objective <= limit).then(|| Best {
        objective,
        stages: with_counts(&tables, &layers),
    }))
}

/// Layers and recomputed layers of each stage.
fn with_counts(tables: &[Table], layers: &[i64]) -> Vec<(i64, [i64; 3])> {
    let stages = layers.iter().zip(tables);
    stages
        .map(|(&layers, table)| (layers, table.row(layers).recomputed.counts))
        .collect()
}

/// The best distribution, if its objective is at most `limit`: searched for below a known one, or below
/// one limit after the other where rows leave none known.
fn search(
    problem: &Problem,
    tables: &[Table],
    limit: i64,
    budget: &Budget,
) -> Result<Option<Vec<i64>>, TooLarge> {
    let slowest = slowest(problem, tables);
    let known = spread_within(problem, tables, slowest);
    let known = known.filter(|known| problem.keeps_rows(&with_counts(tables, known)));
    if let Some(known) = known {
        let limit = limit.min(cost(problem, tables, &known));
        return Search::new(problem, tables, slowest, limit).run(budget);
    }
    let floor = problem.objective(slowest, problem.work(), 0);
    let slacks = [
        floor / 1000,
        floor / 100,
        floor / 10,
        floor,
        i64::MAX - floor,
    ];
    for slack in slacks {
        let within = limit.min(floor + slack);
        let found = Search::new(problem, tables, slowest, within).run(budget)?;
        if found.is_some() || within == limit {
            return Ok(found);
        }
    }
    Ok(None)
}

/// Some distribution whose slowest stage takes no longer than `slowest`.
fn spread_within(problem: &Problem, tables: &[Table], slowest: i64) -> Option<Vec<i64>> {
    if problem.equal_middle {
        return None;
    }
    let mut layers = within(tables, slowest);
    let mut surplus = layers.iter().sum::<i64>() - problem.layers;
    while surplus > 0 {
        // The stage that is longest at work gives a layer back.
        let spare = (0..layers.len()).filter(|&stage| layers[stage] > tables[stage].fewest);
        let stage = spare.max_by_key(|&stage| tables[stage].row(layers[stage]).time)?;
        layers[stage] -= 1;
        surplus -= 1;
    }
    (surplus == 0).then_some(layers)
}

/// The objective of a distribution.
fn cost(problem: &Problem, tables: &[Table], layers: &[i64]) -> i64 {
    let rows = || {
        tables
            .iter()
            .zip(layers)
            .map(|(table, &own)| table.row(own))
    };
    problem.objective(
        rows().map(|row| row.time).max().unwrap_or(0),
        rows().map(|row| row.time).sum(),
        rows().map(|row| row.delta).max().unwrap_or(0),
    )
}

/// What a stage with so many layers adds to the tie.
fn tie(problem: &Problem, stage: usize, layers: i64, time: i64) -> Tie {
    let uneven = i128::from(problem.stages() as i64 * layers - problem.layers);
    (time, uneven * uneven, stage as i64 * layers)
}

const fn add(a: Tie, b: Tie) -> Tie {
    (a.0 + b.0, a.1 + b.1, a.2 + b.2)
}

/// The best distribution with an equal middle: there are few enough to try each.
fn equal_middle(
    problem: &Problem,
    tables: &[Table],
    budget: &Budget,
) -> Result<Option<Vec<i64>>, TooLarge> {
    let last = problem.stages() - 1;
    let most: Vec<i64> = tables.iter().map(Table::most).collect();
    let mut best: Option<(i64, Tie, Vec<i64>)> = None;
    for middle in problem.middles(&most) {
        let both = problem.layers - middle * (last as i64 - 1);
        let first = problem.windows[0].0.max(both - most[last]);
        for first in first..=most[0].min(both - problem.windows[last].0) {
            budget.spend(last as u64 + 1)?;
            let mut layers = vec![middle; last + 1];
            (layers[0], layers[last]) = (first, both - first);
            if !problem.keeps_rows(&with_counts(tables, &layers)) {
                continue;
            }
            let ties = layers
                .iter()
                .enumerate()
                .map(|(stage, &own)| tie(problem, stage, own, tables[stage].row(own).time));
            let found = (
                cost(problem, tables, &layers),
                ties.fold((0, 0, 0), add),
                layers,
            );
            if best.as_ref().is_none_or(|best| found < *best) {
                best = Some(found);
            }
        }
    }
    Ok(best.map(|best| best.2))
}

/// A partial layout.
#[derive(Debug, Clone)]
struct Label {
    slowest: i64,
    delta: i64,
    tie: Tie,
    /// Layers of the last stage so far.
    layers: i64,
    /// The partial layout without that stage: its number among those of the stage before.
    before: usize,
    /// Differences of the rows so far.
    rows: Vec<i64>,
}

struct Search<'a> {
    problem: &'a Problem<'a>,
    tables: &'a [Table],
    /// No layout has a faster slowest stage.
    slowest: i64,
    /// Layouts above this objective do not matter.
    limit: i64,
    /// For the stages from each on: fewest layers, most layers, least time.
    rest: Vec<(i64, i64, i64)>,
    /// The labels that were kept, by stage, each with its layers so far.
    kept: Vec<Vec<(i64, Label)>>,
}

impl<'a> Search<'a> {
    fn new(problem: &'a Problem, tables: &'a [Table], slowest: i64, limit: i64) -> Self {
        let mut rest = vec![(0, 0, 0)];
        for (stage, table) in tables.iter().enumerate().rev() {
            let (fewest, most, time) = rest[rest.len() - 1];
            // Without its layers, which are counted apart.
            let row = &table.rows[0];
            let own = problem.time(stage, 0, row.recomputed.extra);
            rest.push((fewest + table.fewest, most + table.most(), time + own));
        }
        rest.reverse();
        Self {
            problem,
            tables,
            slowest,
            limit,
            rest,
            kept: Vec::with_capacity(tables.len()),
        }
    }

    /// Layers of each stage of the best layout within the limit.
    fn run(mut self, budget: &Budget) -> Result<Option<Vec<i64>>, TooLarge> {
        let start = Label {
            slowest: 0,
            delta: 0,
            tie: (0, 0, 0),
            layers: 0,
            before: 0,
            rows: self.problem.rows.iter().map(|row| row.base).collect(),
        };
        let mut labels = vec![(0, start)];
        for stage in 0..self.tables.len() {
            let mut fronts: Vec<Vec<Label>> = vec![Vec::new(); self.problem.layers as usize + 1];
            for (before, (spent, label)) in labels.iter().enumerate() {
                self.extend(stage, *spent, (before, label), &mut fronts, budget)?;
            }
            labels = (0..)
                .zip(fronts)
                .flat_map(|(spent, front)| front.into_iter().map(move |label| (spent, label)))
                .collect();
            self.kept.push(labels.clone());
        }
        let objective = |label: &Label| {
            self.problem
                .objective(label.slowest, label.tie.0, label.delta)
        };
        let last = self.tables.len() - 1;
        let keeps = |index: &usize| {
            let mut rows = self.problem.rows.iter().zip(&labels[*index].1.rows);
            rows.all(|(row, &difference)| row.holds(difference))
        };
        let ends = (0..labels.len()).filter(keeps).map(|index| {
            let label = &labels[index].1;
            (objective(label), label.tie, self.path(last, index))
        });
        Ok(ends.min().map(|best| best.2))
    }

    /// Adds a stage to a partial layout in every way that may lead to the best.
    fn extend(
        &self,
        stage: usize,
        spent: i64,
        (before, label): (usize, &Label),
        fronts: &mut [Vec<Label>],
        budget: &Budget,
    ) -> Result<(), TooLarge> {
        let (problem, table) = (self.problem, &self.tables[stage]);
        let (fewest, most, rest_time) = self.rest[stage + 1];
        let left = problem.layers - spent;
        let from = table.fewest.max(left - most);
        for own in from..=table.most().min(left - fewest) {
            let row = table.row(own);
            let extended = Label {
                slowest: label.slowest.max(row.time),
                delta: label.delta.max(row.delta),
                tie: add(label.tie, tie(problem, stage, own, row.time)),
                layers: own,
                before,
                rows: self.rows_with(label, stage, own),
            };
            let time = extended.tie.0 + rest_time + (left - own) * problem.units.layer_time;
            let reaches =
                problem.objective(extended.slowest.max(self.slowest), time, extended.delta);
            if reaches > self.limit {
                // Times do not decrease with layers, but the rest has fewer then.
                if extended.slowest > self.slowest && reaches_never(problem, &extended, self.limit)
                {
                    break;
                }
                continue;
            }
            let front = &mut fronts[(spent + own) as usize];
            budget.spend(front.len() as u64 + 1)?;
            if front
                .iter()
                .any(|other| self.dominates(stage, other, &extended))
            {
                continue;
            }
            front.retain(|other| !self.dominates(stage, &extended, other));
            front.push(extended);
        }
        Ok(())
    }

    /// The differences of the rows with one stage more.
    fn rows_with(&self, label: &Label, stage: usize, own: i64) -> Vec<i64> {
        let counts = self.tables[stage].row(own).recomputed.counts;
        let rows = self.problem.rows.iter().zip(&label.rows);
        rows.map(|(row, &so_far)| so_far + row.of_stage(stage, own, counts))
            .collect()
    }

    /// Whether rows that hold with `b` hold with `a`, whatever follows.
    fn keeps_more(&self, a: &Label, b: &Label) -> bool {
        let differences = a.rows.iter().zip(&b.rows);
        let mut rows = self.problem.rows.iter().zip(differences);
        rows.all(|(row, (a, b))| match row.comparison {
            Comparison::AtMost => a <= b,
            Comparison::AtLeast => a >= b,
            Comparison::Equals => a == b,
        })
    }

    /// Whether whatever follows, `a` leads to a layout at least as good as `b` does.
    fn dominates(&self, stage: usize, a: &Label, b: &Label) -> bool {
        if a.slowest > b.slowest || a.delta > b.delta || a.tie > b.tie || !self.keeps_more(a, b) {
            return false;
        }
        // The sum of times counts in the objective, so it has to be no larger by itself: it is, as the
        // first part of the tie.
        a.tie < b.tie || self.extended_path(stage, a) <= self.extended_path(stage, b)
    }

    /// Layers of the stages of a kept label, first to last.
    fn path(&self, stage: usize, index: usize) -> Vec<i64> {
        let mut layers = Vec::with_capacity(stage + 1);
        let mut index = index;
        for stage in (0..=stage).rev() {
            let label = &self.kept[stage][index].1;
            layers.push(label.layers);
            index = label.before;
        }
        layers.reverse();
        layers
    }

    /// The same of a label that is not kept yet.
    fn extended_path(&self, stage: usize, label: &Label) -> Vec<i64> {
        let mut layers = match stage.checked_sub(1) {
            Some(before) => self.path(before, label.before),
            None => Vec::new(),
        };
        layers.push(label.layers);
        layers
    }
}

/// Whether the slowest stage alone exceeds the limit.
fn reaches_never(problem: &Problem, label: &Label, limit: i64) -> bool {
    problem.objective(label.slowest, problem.work(), label.delta) > limit
}
