//! Plans with the program: the combination, the layers of every stage and how many of them are
//! checkpointed, together.
//!
//! Combinations are screened by bounds on the objective alone; what is left is one program. Its costs are
//! rounded to quanta, so that plans within the rounding of the best are compared by the cost model before
//! one is named; what the rounding leaves open is the tolerance of the proof.

use formulations::model::Model;
use formulations::solve::{Outcome as Solved, SolverOptions};
use formulations::staged::bounds::{Scratch, balance_bound, bottleneck_bound};
use formulations::staged::{
    self as program, Axis as ProgramAxis, Data, Excluded, Names, Plan as ProgramPlan,
    RecomputeRule, Report, Wanted,
};

use crate::axis::{Axis, AxisSet, FlaggedCombination};
use crate::instance::Instance;
use crate::layout::{Checkpointing, Combination, Layout};
use crate::plan::{Evaluated, Extent, Outcome, Plan, Proof};
use crate::quantity::Mfu;
use crate::rules::{self, Requirement, Rule};

use super::classes::{self, Thresholds};
use super::cost_table::CostTable;
use super::groups::{Choice, Variant, choices, quick_objective, relaxed, variants};
use super::objective::least_step_time;
use super::{
    Best, Deadline, NEGLIGIBLE_RISK, PlanError, PlanOptions, Pruning, SOLVER, constraints,
    infeasibility, verify,
};

/// What is proven of a choice before the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChoiceBound {
    /// No distribution of the layers fits.
    Infeasible,
    /// It takes at least so many units of time, which is more than a known plan.
    Pruned(i64),
    /// It may be the best.
    Open(i64),
}

/// The choices of a table, screened.
#[derive(Debug)]
pub struct Screening {
    /// The choices.
    pub choices: Vec<Choice>,
    /// What is proven of each.
    pub bounds: Vec<ChoiceBound>,
    /// The class of each: an answer lists the best layouts of different classes.
    classes: Vec<usize>,
    /// Units by which rounding may exchange two plans of open choices, at most.
    slack: i64,
}

/// Bounds every choice. Those that may be the best of one of the `count` best classes stay open: classes
/// are told apart by `axes`, without any every choice is its own.
///
/// Choices are visited in order of the first bound (perfect balance, no recomputation). The second
/// bound and a quick plan are computed only for those that the plans known so far leave open. Of every
/// bound the rounding is taken off, and added to every plan.
#[must_use]
pub fn screen(table: &CostTable, count: usize, axes: AxisSet, pruning: Pruning) -> Screening {
    let layers = table.layers.count();
    let choices = choices(table);
    let candidates = choices.iter().map(|it| it.candidate(table.formulation));
    let classes = classes::classes(candidates, axes);
    let first: Vec<i64> = choices
        .iter()
        .map(|choice| balance_bound(&relaxed(table, choice).group, layers))
        .collect();
    let mut order: Vec<usize> = (0..choices.len()).collect();
    order.sort_by_key(|&index| (first[index], index));
    let rounding = |index: usize, limit: i64| {
        let units: &super::quantise::CellUnits = &table.cells[choices[index].units];
        units.rounding(limit, layers)
    };
    let exceeds = |index: usize, bound: i64, limit: i64| {
        limit < i64::MAX && bound.saturating_sub(rounding(index, limit)) > limit
    };
    let mut bounds: Vec<ChoiceBound> = first.into_iter().map(ChoiceBound::Pruned).collect();
    let mut scratch = Scratch::default();
    let mut known = Thresholds::new(count, classes.iter().max().map_or(0, |last| last + 1));
    for index in order {
        let ChoiceBound::Pruned(bound) = bounds[index] else {
            continue;
        };
        if pruning == Pruning::ByBounds && exceeds(index, bound, known.limit_of(classes[index])) {
            continue;
        }
        let relaxed = relaxed(table, &choices[index]).group;
        let Some(bound) = bottleneck_bound(&relaxed, layers, &mut scratch) else {
            bounds[index] = ChoiceBound::Infeasible;
            continue;
        };
        bounds[index] = ChoiceBound::Open(bound);
        if bound <= known.limit_of(classes[index])
            && let Some(objective) = quick_objective(table, &choices[index])
        {
            known.offer(objective + rounding(index, objective), classes[index]);
        }
    }
    let mut slack = 0;
    for (index, bound) in bounds.iter_mut().enumerate() {
        let ChoiceBound::Open(value) = *bound else {
            continue;
        };
        let limit = known.limit_of(classes[index]);
        if pruning == Pruning::ByBounds && exceeds(index, value, limit) {
            *bound = ChoiceBound::Pruned(value);
        } else if limit < i64::MAX {
            slack = slack.max(2 * rounding(index, limit));
        }
    }
    Screening {
        choices,
        bounds,
        classes,
        slack,
    }
}

/// The program over the open choices.
#[derive(Debug)]
pub struct Encoded {
    /// Data of the program.
    pub data: Data,
    /// The choice and variant of each group of the program.
    variants: Vec<(usize, Variant)>,
}

/// Which combinations that break a rule the program carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Excluding {
    /// All that are listed: the program shows every rule.
    Shown,
    /// None: for answers of which no program is shown.
    LeftOut,
}

/// Encodes the open choices with the variants that the framework's rules allow.
#[must_use]
pub fn encode(table: &CostTable, screening: &Screening, excluding: Excluding) -> Encoded {
    let wanted = |bound: &ChoiceBound| match bound {
        ChoiceBound::Open(_) => true,
        ChoiceBound::Infeasible => excluding == Excluding::Shown && table.applied_before.is_empty(),
        ChoiceBound::Pruned(_) => false,
    };
    let bounds = screening.bounds.iter().enumerate();
    let open = bounds.filter(|(_, bound)| wanted(bound)).map(|it| it.0);
    let variants: Vec<(usize, Variant)> = open
        .flat_map(|index| {
            let of_choice = variants(table, &screening.choices[index]);
            of_choice.into_iter().map(move |variant| (index, variant))
        })
        .collect();
    let combinations: Vec<Combination> = variants
        .iter()
        .map(|(index, _)| screening.choices[*index].combination)
        .collect();
    let mut axes = Axes::of(table.instance);
    let groups = variants.iter().zip(&combinations);
    let groups = groups.map(|((_, variant), combination)| program::Group {
        values: axes.values(combination, &checkpointing(variant)),
        ..variant.group.clone()
    });
    let mut data = Data {
        layers: table.layers.clone(),
        groups: groups.collect(),
        side_rows: constraints::side_rows(table.instance, &combinations),
        names: Names {
            memory: Rule::MemoryCapacity.as_str().to_owned(),
            layers: Rule::LayersCoverStages.as_str().to_owned(),
        },
        units: table.quantum.solver_units(),
        ..Data::default()
    };
    if excluding == Excluding::Shown {
        exclude(table, &mut axes, &mut data);
    }
    data.axes = axes.axes;
    Encoded { data, variants }
}

/// Adds the rules and the combinations that break them. The rows over layers are rules too, for groups in
/// which they cannot hold.
fn exclude(table: &CostTable, axes: &mut Axes<'_>, data: &mut Data) {
    let instance = table.instance;
    let requirements: Vec<Requirement> = rules::requirements(instance).collect();
    let names = requirements.iter();
    let names = names.map(|it| it.rule.part_name(instance, it.part));
    data.rules = names.collect();
    let broken = table.entries.iter().filter(|it| !it.broken.is_empty());
    let excluded = broken.map(|entry| {
        let amounts = requirements.iter().enumerate();
        let amounts = amounts.map(|(index, it)| {
            let amount = it.rule.amount(instance, &entry.candidate, it.part);
            (index, amount)
        });
        let flag = entry.candidate.code(Axis::Checkpointing);
        let flag = Axis::Checkpointing.show(flag);
        Excluded {
            values: axes.values(&entry.candidate.combination, &flag),
            broken: amounts.filter(|&(_, amount)| amount > 0).collect(),
        }
    });
    data.excluded = excluded.collect();
}

/// The axes of the program: those of the space, with what stages may do of their own.
struct Axes<'a> {
    instance: &'a Instance,
    axes: Vec<ProgramAxis>,
}

impl<'a> Axes<'a> {
    fn of(instance: &'a Instance) -> Self {
        let axes = Axis::ALL.map(|axis| ProgramAxis {
            name: axis.as_str().to_owned(),
            values: (instance.space.values(axis).iter())
                .map(|&code| axis.show(code))
                .collect(),
        });
        Self {
            instance,
            axes: axes.to_vec(),
        }
    }

    /// The position of each value; a new value of checkpointing is added.
    fn values(&mut self, combination: &Combination, checkpointing: &str) -> Vec<usize> {
        let candidate = FlaggedCombination {
            combination: *combination,
            checkpointing: Checkpointing::None,
        };
        let position = |axis: Axis| {
            if axis == Axis::Checkpointing {
                let values = &mut self.axes[axis as usize].values;
                let known = values.iter().position(|value| value == checkpointing);
                return known.unwrap_or_else(|| {
                    values.push(checkpointing.to_owned());
                    values.len() - 1
                });
            }
            let code = candidate.code(axis);
            let values = self.instance.space.values(axis).iter();
            values.take_while(|&&value| value != code).count()
        };
        Axis::ALL.map(position).to_vec()
    }
}

/// The value of a group on the axis of checkpointing.
fn checkpointing(variant: &Variant) -> String {
    let mode = match variant.group.recompute {
        RecomputeRule::Free => return "by-stage".to_owned(),
        RecomputeRule::Uniform { count, .. } => return format!("{count}-a-stage"),
        RecomputeRule::None => None,
        RecomputeRule::AllLayers { mode } => Some(variant.modes[mode]),
    };
    let mut flags = Checkpointing::ALL.iter();
    let flag = flags.find(|flag| flag.recompute() == mode);
    flag.map_or_else(String::new, |&flag| Axis::Checkpointing.show(flag as u32))
}

impl Encoded {
    /// The layout of a plan of the program.
    fn layout(&self, screening: &Screening, plan: &ProgramPlan) -> Layout {
        let (choice, variant) = &self.variants[plan.group];
        variant.layout(&screening.choices[*choice], plan)
    }

    /// The class of a group of the program.
    fn class(&self, screening: &Screening, group: usize) -> usize {
        screening.classes[self.variants[group].0]
    }
}

/// One solution of the program and what it was made from.
struct Solution<'a> {
    table: &'a CostTable<'a>,
    screening: Screening,
    encoded: Encoded,
    report: Report,
}

impl<'a> Solution<'a> {
    fn of(
        table: &'a CostTable<'a>,
        count: usize,
        options: &PlanOptions,
        excluding: Excluding,
        deadline: Deadline,
    ) -> Result<Self, PlanError> {
        let screening = screen(table, count, options.diverse, options.pruning);
        let encoded = encode(table, &screening, excluding);
        let pruning = match options.pruning {
            Pruning::ByBounds => program::Pruning::ByBounds,
            Pruning::None => program::Pruning::None,
        };
        let report = program::solve(&encoded.data, &solver(deadline), pruning)?;
        Ok(Self {
            table,
            screening,
            encoded,
            report,
        })
    }

    /// The best layouts of `count` classes by the exact costs, the best first, beginning with that of the
    /// program's plan if nothing within the rounding of it is better.
    fn ranked(
        &self,
        best: &ProgramPlan,
        count: usize,
        deadline: Deadline,
    ) -> Result<Vec<Evaluated>, PlanError> {
        let (data, table) = (&self.encoded.data, self.table);
        let class = |group: usize| self.encoded.class(&self.screening, group);
        let wanted = Wanted {
            classes: count,
            slack: self.screening.slack,
        };
        let outcome = program::top(data, wanted, class, &solver(deadline))?;
        let mut plans = outcome.solution().cloned().unwrap_or_default();
        if plans.iter().all(|plan| plan != best) {
            plans.push(best.clone());
        }
        let mut ranked: Vec<(Evaluated, i64, usize)> = Vec::with_capacity(plans.len());
        for plan in &plans {
            let layout = self.encoded.layout(&self.screening, plan);
            let claimed = |units| table.quantum.parts_per_billion(&table.instance.job, units);
            let evaluated = verify(table.instance, layout, claimed(plan.objective))?;
            ranked.push((evaluated, data.groups[plan.group].rank, class(plan.group)));
        }
        ranked.sort_by(|(one, first, _), (other, second, _)| {
            let (one, other) = (one.prediction.step_time, other.prediction.step_time);
            // What the last digits of a sum tell apart is equal.
            let equal = (one / other - 1.0).abs() < 1e-12;
            let order = one.value().total_cmp(&other.value());
            if equal { first.cmp(second) } else { order }
        });
        let mut seen = Vec::new();
        ranked.retain(|(_, _, class)| {
            let new = !seen.contains(class);
            seen.push(*class);
            new
        });
        ranked.truncate(count);
        Ok(ranked.into_iter().map(|it| it.0).collect())
    }

    /// What the answer over the listed combinations says of all: where the time was over before all were
    /// listed, the matrix products alone bound the rest.
    fn within_all(&self) -> Solved<ProgramPlan> {
        let (table, outcome) = (self.table, self.report.outcome.clone());
        if table.extent == Extent::Whole {
            return outcome;
        }
        let least = least_step_time(&table.instance.job);
        let of_all = table.quantum.units_within(least) as f64;
        match outcome {
            Solved::Optimal {
                solution,
                statistics,
            }
            | Solved::Feasible {
                solution,
                statistics,
                ..
            } => {
                let objective = solution.objective as f64;
                let bound = of_all.min(objective);
                Solved::Feasible {
                    solution,
                    bound,
                    gap: objective - bound,
                    statistics,
                }
            }
            Solved::Infeasible { statistics } | Solved::Unknown { statistics, .. } => {
                Solved::Unknown {
                    bound: Some(of_all),
                    statistics,
                }
            }
        }
    }

    fn proof(&self) -> Proof {
        let (table, screening) = (self.table, &self.screening);
        let count = |wanted: fn(&ChoiceBound) -> bool| {
            let bounds = screening.bounds.iter();
            bounds.filter(|bound| wanted(bound)).count() as u64
        };
        let entries = table.entries.iter();
        let broken = entries.filter(|it| !it.broken.is_empty()).count() as u64;
        let infeasible = count(|bound| matches!(bound, ChoiceBound::Infeasible));
        Proof {
            formulation: table.formulation,
            bound_mfu: Mfu::ZERO,
            bound_parts: 0,
            gap: 0.0,
            tolerance: 0.0,
            cells: screening.choices.len() as u64 + broken,
            cells_infeasible: infeasible + broken,
            cells_pruned: count(|bound| matches!(bound, ChoiceBound::Pruned(_))),
            cells_solved: count(|bound| matches!(bound, ChoiceBound::Open(_))),
            extent: table.extent,
            applied_before: table.applied_before.iter().map(|it| it.as_str()).collect(),
            solver: SOLVER.to_owned(),
        }
    }

    /// The plan whose program's answer is `best`, proven not to be above `bound` units.
    fn plan(
        &self,
        best: &ProgramPlan,
        bound: i64,
        count: usize,
        deadline: Deadline,
    ) -> Result<Plan, PlanError> {
        let table = self.table;
        let mut ranked = self.ranked(best, count, deadline)?.into_iter();
        let Some(choice) = ranked.next() else {
            let cause = "the program's plan is not among the best".to_owned();
            return Err(PlanError::Verification { cause });
        };
        // Without a bound both are infinite.
        let beyond = best.objective as f64 / bound.max(0) as f64;
        // Rounding may hide what is faster by half the slack than the program's best.
        let least = (best.objective - self.screening.slack / 2) as f64;
        let exact = table.quantum.units(choice.prediction.step_time);
        let proof = Proof {
            bound_mfu: choice.prediction.mfu * beyond,
            bound_parts: table.quantum.parts_per_billion(&table.instance.job, bound),
            gap: beyond - 1.0,
            tolerance: (exact / least - 1.0).max(0.0),
            ..self.proof()
        };
        Ok(Plan {
            choice,
            alternatives: ranked.collect(),
            safer: None,
            proof,
        })
    }
}

fn solver(deadline: Deadline) -> SolverOptions {
    SolverOptions {
        time_limit: deadline.left(),
        ..SolverOptions::default()
    }
}

/// Finds the best layout of the instance over all cuts and checkpointings that the framework takes, or, as
/// `layout choice`, by its own cut and one flag.
///
/// # Errors
///
/// When the solver fails, or its answer fails the verification.
pub fn plan(instance: &Instance, options: &PlanOptions) -> Result<Outcome, PlanError> {
    let deadline = Deadline::after(options.time_limit);
    let table = CostTable::within(instance, options.formulation, options.time_limit);
    let count = options.alternatives + 1;
    let solution = Solution::of(&table, count, options, Excluding::Shown, deadline)?;
    let outcome = match solution.within_all() {
        Solved::Optimal { solution: best, .. } => {
            Outcome::Optimal(solution.plan(&best, best.objective, count, deadline)?)
        }
        Solved::Feasible {
            solution: best,
            bound,
            ..
        } => {
            let plan = solution.plan(&best, bound.floor() as i64, count, deadline)?;
            // A limit that comes when nothing better is left changes nothing.
            if plan.gap_is_closed() {
                Outcome::Optimal(plan)
            } else {
                Outcome::Feasible(plan)
            }
        }
        Solved::Infeasible { .. } => {
            let proof = solution.proof();
            Outcome::Infeasible(infeasibility::explain(instance, proof, deadline)?)
        }
        Solved::Unknown { .. } => Outcome::Unknown(solution.proof()),
    };
    drop(solution);
    with_safer(outcome, table, options, deadline)
}

/// The outcome with a safer layout beside the chosen one, where that has a risk and there is time.
fn with_safer(
    mut outcome: Outcome,
    table: CostTable,
    options: &PlanOptions,
    deadline: Deadline,
) -> Result<Outcome, PlanError> {
    // Beside a plan that was proven in time, none has to mean that there is none: it takes about as long.
    let (plan, deadline) = match &mut outcome {
        Outcome::Optimal(plan) => (plan, Deadline::NEVER),
        Outcome::Feasible(plan) => (plan, deadline),
        Outcome::Infeasible(_) | Outcome::Unknown(_) => return Ok(outcome),
    };
    let risk = plan.choice.prediction.oom_probability;
    if risk < NEGLIGIBLE_RISK || deadline.is_over() {
        return Ok(outcome);
    }
    // Of the table only the capacity differs.
    let cautious = Instance {
        max_oom_risk: risk / 2.0,
        ..table.instance.clone()
    };
    let options = PlanOptions {
        pruning: Pruning::ByBounds,
        ..*options
    };
    plan.safer = best_of(&table.at_risk_of(&cautious), &options, deadline)?.into_layout();
    Ok(outcome)
}

/// The program that gives the answer, as it is written to a file, and which combinations it has.
///
/// # Errors
///
/// When the solver fails.
pub fn written_program(
    instance: &Instance,
    options: &PlanOptions,
) -> Result<(Option<Model>, String), PlanError> {
    let deadline = Deadline::after(options.time_limit);
    let table = CostTable::within(instance, options.formulation, options.time_limit);
    let solution = Solution::of(&table, 1, options, Excluding::Shown, deadline)?;
    let proof = solution.proof();
    let scope = format!(
        "what was solved: of {} combinations, those that no bound on the step time excludes; step time in \
         ms, memory in MiB",
        proof.cells
    );
    Ok((solution.report.model, scope))
}

/// The best layout alone.
pub(super) fn best(instance: &Instance, options: &PlanOptions) -> Result<Best, PlanError> {
    let deadline = Deadline::after(options.time_limit);
    let table = CostTable::within(instance, options.formulation, options.time_limit);
    best_of(&table, options, deadline)
}

/// The best layout of a table alone.
fn best_of(
    table: &CostTable,
    options: &PlanOptions,
    deadline: Deadline,
) -> Result<Best, PlanError> {
    let options = PlanOptions {
        diverse: AxisSet::EMPTY,
        ..*options
    };
    let solution = Solution::of(table, 1, &options, Excluding::LeftOut, deadline)?;
    let decoded = |plan: &ProgramPlan| -> Result<Evaluated, PlanError> {
        let bound = plan.objective;
        Ok(solution.plan(plan, bound, 1, deadline)?.choice)
    };
    Ok(match solution.within_all() {
        Solved::Optimal { solution, .. } => Best::Optimal(decoded(&solution)?),
        Solved::Feasible { solution, .. } => Best::Feasible(decoded(&solution)?),
        Solved::Infeasible { .. } => Best::Infeasible,
        Solved::Unknown { .. } => Best::Unknown,
    })
}
