//! The combinations whose costs a document states, from the planner's table.

use std::collections::{BTreeMap, BTreeSet};

use crate::axis::{Axis, Candidate};
use crate::cost_model::CellCosts;
use crate::plan::Formulation;
use crate::planner::cost_table::CostTable;
use crate::planner::quantise::Quantum;
use crate::verify::statement::{Times, quantum};

use super::costs;
use super::document::StatedCosts;
use super::format::ORDER;
use super::writer::position;

/// Costs of the first combination with each value of each axis, and the unit of time.
pub(super) fn stated_costs(
    table: &CostTable,
    formulation: Formulation,
) -> (Vec<StatedCosts>, Quantum) {
    let job = &table.instance.job;
    let (mut stated, seen) = of_open(table, formulation);
    let broken = first_of_others(table, seen);
    let quantum = if stated.is_empty() {
        let costs = broken
            .iter()
            .map(|candidate| CellCosts::new(job, &candidate.cell));
        let times: Vec<Times> = costs
            .map(|costs| Times::new(table.instance, &costs))
            .collect();
        quantum(&times)
    } else {
        table.quantum
    };
    for candidate in broken {
        let at = position(table.instance, &candidate);
        let costs = CellCosts::new(job, &candidate.cell);
        stated.push(costs::stated(job, at, &[candidate.checkpointing], &costs));
    }
    stated.sort_by_key(|costs| costs.position);
    (stated, quantum)
}

/// Of the combinations that break no rule, and the values that these have.
fn of_open(
    table: &CostTable,
    formulation: Formulation,
) -> (Vec<StatedCosts>, BTreeSet<(Axis, u32)>) {
    let open = || {
        let entries = table.entries.iter();
        entries.filter_map(|entry| Some((&entry.candidate, entry.cell?)))
    };
    let own: Vec<u64> = open()
        .map(|(candidate, _)| position(table.instance, candidate))
        .collect();
    // Of `staged`, combinations of one cell are one.
    let mut of_cell = vec![u64::MAX; table.cells.len()];
    for ((_, cell), &own) in open().zip(&own) {
        of_cell[cell] = of_cell[cell].min(own);
    }
    let place = |cell: usize, own: u64| match formulation {
        Formulation::Staged => (of_cell[cell], cell),
        Formulation::LayoutChoice => (own, cell),
    };
    let mut first: BTreeMap<(Axis, u32), (u64, usize)> = BTreeMap::new();
    for ((candidate, cell), &own) in open().zip(&own) {
        for axis in Axis::ALL {
            let known = first.entry((axis, candidate.code(axis)));
            let known = known.or_insert((u64::MAX, 0));
            *known = (*known).min(place(cell, own));
        }
    }
    let seen = first.keys().copied().collect();
    let mut chosen: BTreeMap<(u64, usize), Vec<&Candidate>> = first
        .into_values()
        .map(|chosen| (chosen, Vec::new()))
        .collect();
    for ((candidate, cell), &own) in open().zip(&own) {
        if let Some(all) = chosen.get_mut(&place(cell, own)) {
            all.push(candidate);
        }
    }
    let stated = chosen.into_iter().map(|((at, _), all)| {
        let mut flags: Vec<_> = all
            .iter()
            .map(|candidate| candidate.checkpointing)
            .collect();
        flags.sort_unstable();
        let job = &table.instance.job;
        costs::stated(job, at, &flags, &CellCosts::new(job, &all[0].cell))
    });
    (stated.collect(), seen)
}

/// For each further value the first combination of all that has it.
fn first_of_others(table: &CostTable, mut seen: BTreeSet<(Axis, u32)>) -> Vec<Candidate> {
    let space = &table.instance.space;
    let mut found = Vec::new();
    for axis in ORDER {
        for &code in space.values(axis) {
            if seen.contains(&(axis, code)) {
                continue;
            }
            let mut codes = Axis::ALL.map(|axis| space.values(axis)[0]);
            codes[axis as usize] = code;
            let candidate = Candidate::from_codes(&codes);
            seen.extend(Axis::ALL.map(|axis| (axis, candidate.code(axis))));
            found.push(candidate);
        }
    }
    found
}
