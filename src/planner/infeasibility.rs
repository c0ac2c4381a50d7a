//! Why no combination of a space is possible.

use crate::plan::{Infeasibility, Nearest, Proof};
use crate::rule::{Rule, RuleSet};

use super::cost_table::{CostTable, Entry};
use super::{candidates, constraints, evaluate};
use crate::feasibility;

/// The smallest set of rules that excludes every combination, and the combination nearest to
/// being possible.
pub(super) fn explain(table: &CostTable, proof: Proof) -> Infeasibility {
    let broken: Vec<RuleSet> = table
        .entries
        .iter()
        .map(|entry| all_broken(table, entry))
        .collect();
    Infeasibility {
        clashing_rules: clash(&broken)
            .into_iter()
            .map(|rule| rule.to_string())
            .collect(),
        nearest: nearest(table, &broken),
        proof,
    }
}

/// The broken rules of an entry, memory included.
fn all_broken(table: &CostTable, entry: &Entry) -> RuleSet {
    let mut broken = entry.broken;
    let over = table
        .exact(entry)
        .is_some_and(|(_, cost)| !CostTable::fits(&cost, table.capacity));
    broken.insert_if(Rule::MemoryCapacity, over);
    let keeps = |(layout, _): &(_, _)| constraints::keeps(table.instance, layout);
    let kept = table.exact(entry).as_ref().is_none_or(keeps);
    broken.insert_if(Rule::Constraint, !kept);
    broken
}

/// A smallest set of rules of which every combination breaks one, by trying sets in order of size.
/// With seventeen rules there are at most 131,072 sets.
fn clash(broken: &[RuleSet]) -> Vec<Rule> {
    let mut masks: Vec<u64> = broken.iter().map(|rules| rules.bits()).collect();
    masks.sort_unstable();
    masks.dedup();
    let mut sets: Vec<u64> = (0..1 << Rule::ALL.len()).collect();
    sets.sort_by_key(|set| (set.count_ones(), std::cmp::Reverse(*set)));
    let found = sets
        .into_iter()
        .find(|set| masks.iter().all(|mask| mask & set != 0));
    let set = found.unwrap_or(0);
    Rule::ALL
        .into_iter()
        .filter(|&rule| set & (1 << rule as u64) != 0)
        .collect()
}

/// The combination that breaks the fewest rules, then exceeds the capacity by the least.
fn nearest(table: &CostTable, broken: &[RuleSet]) -> Option<Nearest> {
    let excess = |entry: &Entry| {
        let memory = table.exact(entry).map(|(_, cost)| cost.memory);
        memory
            .and_then(|stages| stages.into_iter().max())
            .unwrap_or(i64::MAX)
    };
    let index = (0..broken.len()).min_by_key(|&index| {
        (
            broken[index].iter().count(),
            excess(&table.entries[index]),
            index,
        )
    })?;
    let candidate = table.entries[index].candidate;
    let evaluated = candidates::layout(table.instance, &candidate)
        .map(|layout| evaluate(table.instance, layout));
    let violations = evaluated.as_ref().map_or_else(Vec::new, |evaluated| {
        feasibility::check(table.instance, &evaluated.layout)
    });
    Some(Nearest {
        candidate,
        evaluated,
        violations,
    })
}
