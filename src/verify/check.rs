//! The check, from the instance to the last number.

use crate::axis::Axis;
use crate::certificate::document::{Certificate, Combinations, StatedCosts};
use crate::certificate::format::{RULES, SCHEMA};
use crate::certificate::parameters::PARAMETERS;
use crate::instance::Instance;
use crate::plan::Formulation;
use crate::planner::quantise;
use crate::rule::Rule;

use super::budget::{Budget, TooLarge};
use super::canonical::faults;
use super::reason::Reasons;
use super::runs;
use super::slack::{self, LEAVE_OUT, differences};
use super::space::{Walked, amounts, walk};
use super::statement::{Claim, Statement};
use super::{Accepted, Counts, Proven, header, winner};

/// Accepts the certificate, or says what is wrong with it.
pub(super) fn check(certificate: &Certificate) -> Result<Accepted, Reasons> {
    let mut reasons = Reasons::default();
    let checked = check_parts(certificate, &mut reasons);
    if checked.is_err() {
        reasons.add("document", "states more than this checker works through");
    }
    match checked {
        Ok(Some(accepted)) if reasons.is_empty() => Ok(accepted),
        _ => Err(reasons),
    }
}

const FORMULATIONS: [Formulation; 2] = [Formulation::Staged, Formulation::LayoutChoice];
const STATUSES: [&str; 4] = ["optimal", "feasible", "infeasible", "unknown"];

fn check_parts(
    certificate: &Certificate,
    reasons: &mut Reasons,
) -> Result<Option<Accepted>, TooLarge> {
    let formulation = FORMULATIONS
        .into_iter()
        .find(|formulation| formulation.as_str() == certificate.formulation);
    let status = STATUSES
        .into_iter()
        .find(|&status| status == certificate.status);
    if certificate.schema != SCHEMA {
        reasons.add("schema", format!("is not `{SCHEMA}`"));
    }
    if formulation.is_none() {
        reasons.add("formulation", "is none that the checker knows");
    }
    if status.is_none() {
        reasons.add("status", "is none that the checker knows");
    }
    let instance = header::instance(certificate, reasons);
    let (Some(formulation), Some(status), Some(instance)) = (formulation, status, instance) else {
        return Ok(None);
    };
    check_rules(certificate, &instance, reasons);
    if !reasons.is_empty() {
        return Ok(None);
    }
    let budget = Budget::new();
    let walked = walk(&instance, formulation, &budget)?;
    check_walk(certificate, &instance, &walked, reasons);
    let layout = winner::layout(certificate, &instance, formulation, reasons);
    if layout.is_some() != matches!(status, "optimal" | "feasible") {
        let cause = format!("has to be there where a layout is, and the status is `{status}`");
        reasons.add("winner", cause);
    }
    if !reasons.is_empty() {
        return Ok(None);
    }
    let claim = Claim {
        instance: &instance,
        formulation,
        complete: matches!(status, "optimal" | "infeasible"),
        winner: layout.as_ref(),
    };
    let mut statement = Statement::new(claim, walked.open, &budget)?;
    check_statement(certificate, status, &mut statement, reasons, &budget)?;
    if !reasons.is_empty() {
        return Ok(None);
    }
    let stated = PARAMETERS
        .iter()
        .map(|parameter| certificate.job.contains_key(parameter.key));
    for (key, cause) in faults(&statement, &stated.collect::<Vec<_>>(), &budget)? {
        reasons.add(format!("job.{key}"), cause);
    }
    for place in runs::faults(&statement) {
        reasons.add(place, "differs from where no combination tells it apart");
    }
    for (place, cause) in slack::faults(&statement, &budget)? {
        reasons.add(place, cause);
    }
    Ok(Some(accepted(certificate, status, &statement)))
}

/// The tables of the rules are complete and right.
fn check_rules(certificate: &Certificate, instance: &Instance, reasons: &mut Reasons) {
    let named: Vec<&str> = certificate
        .rules
        .iter()
        .map(|table| table.rule.as_str())
        .collect();
    if named != RULES.map(|(rule, _)| Rule::as_str(rule)) {
        reasons.add("rules", "does not list the rules in their order");
        return;
    }
    for ((rule, axes), table) in RULES.into_iter().zip(&certificate.rules) {
        let axis_names: Vec<&str> = axes.iter().map(|&axis| Axis::as_str(axis)).collect();
        if table.axes != axis_names {
            reasons.add(format!("rules.{rule}.axes"), "are not those of the rule");
        }
        let place = format!("rules.{rule}.amounts");
        match amounts(instance, rule, axes, table.amounts.len()) {
            Some(amounts) => reasons.compare_lists(&place, &table.amounts, &amounts),
            None => reasons.add(place, "has too few entries"),
        }
    }
}

/// The differences of the rows of the user's own are right.
fn check_rows(certificate: &Certificate, statement: &Statement, reasons: &mut Reasons) {
    let rows = statement.claim.instance.space.constraints.iter();
    for (index, (stated, row)) in certificate.constraints.iter().zip(rows).enumerate() {
        let place = format!("constraints[{index}].differences");
        match differences(statement, row, stated.differences.len()) {
            Some(found) => reasons.compare_lists(&place, &stated.differences, &found),
            None => reasons.add(place, "has too few entries"),
        }
    }
}

/// The counts of the combinations are right, and every forbidden combination has an effect.
fn check_walk(
    certificate: &Certificate,
    instance: &Instance,
    walked: &Walked,
    reasons: &mut Reasons,
) {
    let stated = &certificate.combinations;
    reasons.compare("combinations.total", &stated.total, &walked.total);
    let broken = walked.total - walked.open.len() as u64;
    reasons.compare("combinations.broken", &stated.broken, &broken);
    let permitted: usize = walked.open.iter().map(|open| open.flags.len()).sum();
    let place = "combinations.permitted";
    reasons.compare(place, &stated.permitted, &(permitted as u64));
    let assignments = instance.space.forbidden.iter().zip(&walked.excluded);
    for (index, (stated, (assignment, excluded))) in
        certificate.forbidden.iter().zip(assignments).enumerate()
    {
        let place = format!("forbidden[{index}]");
        let Some(first) = excluded.first else {
            reasons.add(place, LEAVE_OUT);
            continue;
        };
        reasons.compare(
            &format!("{place}.excludes"),
            &stated.excludes,
            &excluded.count,
        );
        reasons.compare(&format!("{place}.first"), &stated.first, &first);
        if assignment.0.len() > 1 {
            let values = assignment.0.iter().zip(&excluded.matters);
            for ((axis, _), _) in values.filter(|(_, matters)| !**matters) {
                reasons.add(format!("{place}.values.{axis}"), LEAVE_OUT);
            }
        }
    }
}

/// The unit, the capacity, the winner and how every combination is settled are right.
fn check_statement(
    certificate: &Certificate,
    status: &str,
    statement: &mut Statement,
    reasons: &mut Reasons,
    budget: &Budget,
) -> Result<(), TooLarge> {
    let quantum = statement.quantum_seconds();
    reasons.compare("quantum_s", &certificate.quantum_s, &quantum);
    reasons.compare(
        "capacity_kib",
        &certificate.capacity_kib,
        &statement.capacity,
    );
    let examples = statement.examples.iter();
    let costs: Vec<StatedCosts> = examples.map(|example| example.costs.clone()).collect();
    reasons.compare_lists("costs", &certificate.costs, &costs);
    check_rows(certificate, statement, reasons);
    if let Some(stated) = &certificate.winner {
        winner::compare(stated, statement, reasons);
    }
    if !reasons.is_empty() {
        return Ok(());
    }
    statement.settle_all(budget)?;
    let found = combinations(statement, certificate.combinations.total);
    compare_combinations(&certificate.combinations, &found, reasons);
    if status == "optimal" {
        winner::is_best(statement, reasons, budget)?;
    }
    let possible = found.balance.len() + found.bottleneck.len() + found.solved.len();
    if status == "infeasible" && possible + found.open.len() > 0 {
        reasons.add(
            "status",
            "is not `infeasible`: some combinations have layouts",
        );
    }
    if status == "unknown" && found.open.is_empty() {
        reasons.add("status", "is not `unknown`: every combination is settled");
    }
    reasons.compare(
        "bound",
        &certificate.bound,
        &bound(status, statement, &found),
    );
    Ok(())
}

/// How the combinations are settled, as a document says it.
fn combinations(statement: &Statement, total: u64) -> Combinations {
    let permitted: usize = statement.open.iter().map(|open| open.flags.len()).sum();
    let mut found = Combinations {
        total,
        broken: total - statement.open.len() as u64,
        permitted: permitted as u64,
        ..Combinations::default()
    };
    for (open, settlement) in statement.open.iter().zip(&statement.settlements) {
        found.add(open.position, *settlement);
    }
    found
}

fn compare_combinations(stated: &Combinations, found: &Combinations, reasons: &mut Reasons) {
    let place = "combinations.infeasible";
    reasons.compare_lists(place, &stated.infeasible, &found.infeasible);
    let place = "combinations.excluded";
    reasons.compare_lists(place, &stated.excluded, &found.excluded);
    reasons.compare_lists("combinations.blocked", &stated.blocked, &found.blocked);
    reasons.compare_lists("combinations.balance", &stated.balance, &found.balance);
    reasons.compare_lists(
        "combinations.bottleneck",
        &stated.bottleneck,
        &found.bottleneck,
    );
    reasons.compare_lists("combinations.solved", &stated.solved, &found.solved);
    reasons.compare_lists("combinations.open", &stated.open, &found.open);
}

/// What the combinations prove: no layout has a smaller objective.
fn bound(status: &str, statement: &Statement, found: &Combinations) -> Option<i64> {
    let known = statement.numbers.as_ref().map(|numbers| numbers.objective);
    let open = found.open.iter().map(|entry| entry.1);
    match status {
        "infeasible" => None,
        "optimal" => known,
        _ => known.into_iter().chain(open).min(),
    }
}

fn accepted(certificate: &Certificate, status: &'static str, statement: &Statement) -> Accepted {
    let stated = &certificate.combinations;
    let without = stated.infeasible.len() + stated.excluded.len() + stated.blocked.len();
    let counts = Counts {
        total: stated.total,
        broken: stated.broken,
        infeasible: without as u64,
        pruned: (stated.balance.len() + stated.bottleneck.len()) as u64,
        solved: stated.solved.len() as u64,
        open: stated.open.len() as u64,
    };
    let winner = statement.claim.winner.zip(statement.numbers.as_ref());
    let winner = winner.map(|(layout, numbers)| Proven {
        layout: layout.clone(),
        global_batch: statement.claim.instance.job.workload.global_batch,
        mfu: quantise::utilisation(numbers.mfu_ppb),
        oom_probability: numbers.oom_probability_ppb as f64 / 1e9,
        gap: certificate.bound.map_or(f64::INFINITY, |bound| {
            (numbers.objective - bound) as f64 / bound.max(1) as f64
        }),
    });
    Accepted {
        status,
        formulation: statement.claim.formulation,
        counts,
        winner,
    }
}
