//! The answer to an instance, for people: one screen at 80 columns.

use tabled::builder::Builder;
use tabled::settings::object::Columns;
use tabled::settings::{Alignment, Span};

use super::layout_text::{checkpointing, difference, line, run_lengths};
use super::number::{duration, gib, grouped, mfu_distance, mfu_points, percent, risk};
use super::style::{Meaning, Style, WIDTH, bare, columns, printable, render, wrap, wrap_within};
use super::trust;
use super::{components, infeasible};
use crate::cluster::Cluster;
use crate::cost_model::components::TimeComponent;
use crate::cost_model::prediction::Prediction;
use crate::instance::Instance;
use crate::layout::Layout;
use crate::plan::{Evaluated, Extent, Outcome, Plan, Proof};
use crate::planner::layout_choice::NEGLIGIBLE_RISK;

/// The whole answer: layout, memory, time, neighbours, proof and trust; or why there is none.
#[must_use]
pub fn solution(instance: &Instance, outcome: &Outcome, style: &Style) -> String {
    let mut blocks = match outcome {
        Outcome::Optimal(plan) | Outcome::Feasible(plan) => {
            plan_blocks(instance, outcome, plan, style)
        }
        Outcome::Infeasible(infeasibility) => infeasible::blocks(instance, infeasibility, style),
        Outcome::Unknown(_) => vec![unknown_headline(instance, style)],
    };
    let mut notes = Vec::new();
    if let Some(plan) = outcome.plan() {
        notes.push(safer_note(plan));
    }
    notes.push(proof_note(outcome.proof(), outcome.plan().is_some()));
    if let Some(plan) = outcome.plan() {
        let choice = &plan.choice;
        notes.push(trust::notes(
            &instance.job,
            &choice.layout,
            choice.prediction.mfu,
        ));
    }
    blocks.push(notes.join("\n"));
    blocks.extend(warnings(instance, style));
    if outcome.plan().is_some() {
        blocks.push(next_command(style, "export", " --to megatron-lm"));
    }
    let mut text = blocks.join("\n\n");
    text.push('\n');
    text
}

/// The network and the machine in one line.
pub(crate) fn job_line(instance: &Instance) -> String {
    let job = &instance.job;
    let Cluster {
        gpus,
        accelerator,
        name,
        ..
    } = &job.cluster;
    wrap(
        &format!(
            "{} on {} x {} ({name}), sequence {}, batch {}",
            job.transformer.name,
            grouped(u64::from(*gpus)),
            accelerator.name,
            grouped(job.workload.sequence_length),
            grouped(job.workload.global_batch),
        ),
        2,
    )
}

/// The layout as a table, with its layers and checkpointing by stage.
pub(crate) fn layout_table(layout: &Layout, micro_batches: u64) -> String {
    let cell = &layout.combination;
    let left = [
        ("tensor parallel", cell.tensor_parallel.to_string()),
        ("pipeline parallel", cell.pipeline_parallel.to_string()),
        ("data parallel", cell.data_parallel.to_string()),
        ("context parallel", cell.context_parallel.to_string()),
        ("expert parallel", cell.expert_parallel.to_string()),
        ("virtual stages", cell.virtual_stages.to_string()),
    ];
    let right = [
        ("micro-batch", cell.micro_batch.to_string()),
        ("micro-batches", grouped(micro_batches)),
        ("sharding", cell.sharding.to_string()),
        ("sequence parallel", cell.sequence_parallel.to_string()),
        ("attention kernel", cell.attention_kernel.to_string()),
        ("RMSNorm kernel", cell.rmsnorm_kernel.to_string()),
    ];
    let layers = run_lengths(layout.stages.iter().map(|stage| stage.layers));
    let wide = [
        ("layers by stage", layers),
        ("checkpointing", checkpointing(layout)),
        ("schedule", cell.schedule.to_string()),
    ];
    let mut table = Builder::default();
    table.push_record(["layout", "", "", ""]);
    for ((degree, value), (choice, chosen)) in left.into_iter().zip(right) {
        table.push_record([degree, &value, choice, &chosen]);
    }
    let first_wide = table.count_records();
    for (choice, chosen) in wide {
        table.push_record([choice, &wrap_within(&chosen, 0, WIDTH - 22), "", ""]);
    }
    let mut table = bare(table.build());
    table.modify(Columns::one(1), Alignment::right());
    for row in first_wide..table.count_rows() {
        table.modify((row, 1), (Span::column(3), Alignment::left()));
    }
    render(table)
}

/// What else is worth knowing at first sight.
pub(crate) fn facts(prediction: &Prediction) -> String {
    format!(
        "{} tokens/s/GPU, {} bubble, {} risk of running out of memory",
        grouped(prediction.tokens_per_second_per_gpu.round() as u64),
        percent(prediction.time[TimeComponent::Bubble] / prediction.time.total()),
        risk(prediction.oom_probability),
    )
}

/// What the reader should know, though it is not an error.
pub(crate) fn warnings(instance: &Instance, style: &Style) -> Option<String> {
    if instance.warnings.is_empty() {
        return None;
    }
    let lines: Vec<String> = instance
        .warnings
        .iter()
        .map(|warning| style.paint(Meaning::Warning, &wrap(&format!("warning: {warning}"), 2)))
        .collect();
    Some(lines.join("\n"))
}

/// The table under its header in the colour of headings.
pub(crate) fn with_heading(style: &Style, table: &str) -> String {
    match table.split_once('\n') {
        Some((header, rest)) => format!("{}\n{rest}", style.paint(Meaning::Heading, header)),
        None => table.to_owned(),
    }
}

fn plan_blocks(instance: &Instance, outcome: &Outcome, plan: &Plan, style: &Style) -> Vec<String> {
    let Evaluated { layout, prediction } = &plan.choice;
    let micro_batches = layout
        .combination
        .micro_batches(instance.job.workload.global_batch);
    let (meaning, status) = if matches!(outcome, Outcome::Optimal(_)) {
        (Meaning::Good, "optimal".to_owned())
    } else {
        let gap = percent(plan.proof.gap);
        let status = format!("feasible (at most {gap} better is possible)");
        (Meaning::Warning, status)
    };
    let status = format!(
        "{}: {status}, {} MFU, {} a step",
        instance.name,
        prediction.mfu,
        duration(prediction.step_time)
    );
    let status = style.paint(meaning, &wrap(&status, 2));
    let headline = style.paint(Meaning::Heading, &wrap(&line(layout), 2));
    let facts = wrap(&facts(prediction), 2);
    let mut blocks = vec![
        [status, headline, job_line(instance), facts].join("\n"),
        with_heading(style, &layout_table(layout, micro_batches)),
        with_heading(style, &components::memory(&prediction.memory)),
        with_heading(style, &components::time(&prediction.time)),
    ];
    if !plan.alternatives.is_empty() {
        blocks.push(with_heading(style, &alternatives(plan)));
    }
    blocks
}

/// The next-best layouts: what differs, and by how much MFU, memory and risk change.
fn alternatives(plan: &Plan) -> String {
    let choice = &plan.choice;
    let mut table = Builder::default();
    table.push_record(["next best, where it differs", "MFU", "peak GiB", "OOM risk"]);
    for Evaluated { layout, prediction } in &plan.alternatives {
        let peak = prediction.memory.peak();
        let change = peak.gib() - choice.prediction.memory.peak().gib();
        table.push_record([
            wrap_within(&difference(&choice.layout, layout), 0, WIDTH - 48),
            format!(
                "{} ({})",
                prediction.mfu,
                mfu_distance(choice.prediction.mfu, prediction.mfu)
            ),
            if change.abs() < 0.05 {
                gib(peak)
            } else {
                format!("{} ({change:+.1})", gib(peak))
            },
            risk_and_distance(
                choice.prediction.oom_probability,
                prediction.oom_probability,
            ),
        ]);
    }
    let mut table = bare(table.build());
    table.modify(Columns::new(1..), Alignment::right());
    render(table)
}

/// A risk, and by how many points it differs from the chosen layout's where that shows.
fn risk_and_distance(choice: f64, other: f64) -> String {
    let points = (other - choice) * 100.0;
    if points.abs() < 0.5 {
        risk(other)
    } else {
        format!("{} ({points:+.0})", risk(other))
    }
}

/// The next safer layout with its cost, or why there is none.
fn safer_note(plan: &Plan) -> String {
    let choice = &plan.choice;
    let is_proven = plan.gap_is_closed() && plan.proof.extent == Extent::Whole;
    let text = match &plan.safer {
        Some(safer) => format!(
            "Safer: {}: risk {} instead of {}, MFU {} ({}).",
            difference(&choice.layout, &safer.layout),
            risk(safer.prediction.oom_probability),
            risk(choice.prediction.oom_probability),
            mfu_points(choice.prediction.mfu, safer.prediction.mfu),
            safer.prediction.mfu,
        ),
        None if choice.prediction.oom_probability < NEGLIGIBLE_RISK => format!(
            "Safer: not looked for below a risk of {}.",
            risk(NEGLIGIBLE_RISK)
        ),
        // A search for one that the time limit stopped leaves none as well.
        None if is_proven => "Safer: none, no layout has at most half the risk.".to_owned(),
        None => "Safer: none with at most half the risk was found in the time.".to_owned(),
    };
    wrap(&text, 2)
}

fn proof_note(proof: &Proof, has_plan: bool) -> String {
    let bound = if has_plan && proof.gap.is_finite() {
        format!(
            "no layout exceeds {} MFU, gap {}; ",
            proof.bound_mfu,
            percent(proof.gap)
        )
    } else {
        String::new()
    };
    let cut = match proof.extent {
        Extent::Whole => "",
        Extent::Cut => "the time was over before all combinations were listed; ",
    };
    let before = if proof.applied_before.is_empty() {
        String::new()
    } else {
        format!(
            "; {} rules on discrete choices applied before that",
            proof.applied_before.len()
        )
    };
    if proof.cells == 0 && proof.extent == Extent::Whole {
        let rules = proof.applied_before.len();
        let text = format!("Proof: no combination keeps the {rules} rules on discrete choices.");
        return wrap(&text, 2);
    }
    wrap(
        &format!(
            "Proof: {bound}{cut}of {} combinations, {} break a rule, {} are excluded by a bound, {} \
             are in the program {} ({}){before}.",
            grouped(proof.cells),
            grouped(proof.cells_infeasible),
            grouped(proof.cells_pruned),
            grouped(proof.cells_solved),
            proof.formulation.as_str(),
            proof.solver,
        ),
        2,
    )
}

/// The command that comes next, over several lines where one is too narrow; arguments that do not
/// fit at all are named instead.
pub(crate) fn next_command(style: &Style, name: &str, options: &str) -> String {
    let short = format!("parlayout {name} FILE{options}");
    if style.instance_arguments.chars().any(|c| printable(c) != c) {
        return format!("Next: {}", style.paint(Meaning::Command, &short));
    }
    let whole = format!("parlayout {name} {}{options}", style.instance_arguments);
    if columns(&whole) + columns("Next: ") <= WIDTH {
        return format!("Next: {}", style.paint(Meaning::Command, &whole));
    }
    let mut lines: Vec<String> = Vec::new();
    for (index, part) in whole.split(" --").enumerate() {
        let part = if index == 0 {
            part.to_owned()
        } else {
            format!("--{part}")
        };
        match lines.last_mut() {
            Some(line) if columns(line) + columns(&part) + 3 <= WIDTH => {
                line.push(' ');
                line.push_str(&part);
            }
            Some(_) => lines.push(format!("  {part}")),
            None => lines.push(part),
        }
    }
    if lines.iter().any(|line| columns(line) + 2 > WIDTH) {
        return format!("Next: {}", style.paint(Meaning::Command, &short));
    }
    format!(
        "Next:\n{}",
        style.paint(Meaning::Command, &lines.join(" \\\n"))
    )
}

fn unknown_headline(instance: &Instance, style: &Style) -> String {
    let headline = wrap(
        &format!(
            "{}: unknown: the limit ended the search before any layout was found",
            instance.name
        ),
        2,
    );
    [
        style.paint(Meaning::Warning, &headline),
        job_line(instance),
        wrap(
            "Try: a longer `--time-limit`, or fewer values in `[search]`.",
            2,
        ),
    ]
    .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::FlaggedCombination;
    use crate::layout::Checkpointing;
    use crate::plan::{Infeasibility, Nearest, Violation};
    use crate::report::{Colour, fixture};

    fn check(name: &str, instance: &Instance, outcome: &Outcome) {
        let text = solution(instance, outcome, &Style::default());
        assert_narrow(&text);
        assert!(!text.contains('\u{1b}'));
        fixture::assert_snapshot(name, &text);
    }

    fn assert_narrow(text: &str) {
        for line in text.lines() {
            assert!(columns(line) <= WIDTH, "{} columns: {line}", columns(line));
        }
    }

    fn infeasible() -> Outcome {
        let nearest = Nearest {
            candidate: FlaggedCombination {
                combination: fixture::llama_13b_layout().combination,
                checkpointing: Checkpointing::Full,
            },
            evaluated: Some(fixture::llama_13b_plan().choice),
            violations: vec![Violation {
                rule: "memory_capacity(0)".to_owned(),
                message: "stage 0 needs 82.3 GiB of 79.2 GiB: 3.1 GiB too much".to_owned(),
            }],
        };
        Outcome::Infeasible(Infeasibility {
            clashing_rules: vec!["memory_capacity".to_owned(), "gpu_count".to_owned()],
            nearest: Some(nearest),
            proof: fixture::proof(0.0),
        })
    }

    #[test]
    fn an_optimal_plan_fits_a_screen() {
        let plan = fixture::llama_13b_plan();
        check(
            "report_solution_13b",
            &fixture::llama_13b(),
            &Outcome::Optimal(plan),
        );
    }

    #[test]
    fn uneven_stages_and_an_open_gap_are_told() {
        let mut instance = fixture::llama_405b();
        instance.warnings = vec!["`rope_scaling` of the model is ignored: no effect".to_owned()];
        let plan = fixture::llama_405b_plan();
        check("report_solution_405b", &instance, &Outcome::Feasible(plan));
    }

    #[test]
    fn an_infeasible_instance_says_what_misses() {
        check("report_infeasible", &fixture::llama_13b(), &infeasible());
    }

    #[test]
    fn an_unknown_outcome_says_what_to_try() {
        let outcome = Outcome::Unknown(fixture::proof(0.8));
        check("report_unknown", &fixture::llama_13b(), &outcome);
    }

    #[test]
    fn long_names_stay_within_the_width() {
        let mut instance = fixture::llama_405b();
        instance.name = "x".repeat(300);
        instance.job.transformer.name = "long name ".repeat(30);
        instance.job.cluster.name = "ü".repeat(200);
        instance.job.cluster.calibration.source = "y".repeat(200);
        instance.warnings = vec!["z".repeat(200)];
        let mut plan = fixture::llama_405b_plan();
        plan.choice.layout.stages = (0..64)
            .map(|layers| crate::layout::Stage {
                layers,
                recomputed: [layers, layers / 2, 0],
            })
            .collect();
        plan.alternatives = vec![
            fixture::llama_405b_plan().choice,
            fixture::llama_13b_plan().choice,
        ];
        plan.choice.prediction.step_time = crate::quantity::Seconds::new(123_456.7);
        let style = Style {
            colour: Colour::Never,
            instance_arguments: "w/".repeat(100),
        };
        assert_narrow(&solution(&instance, &Outcome::Optimal(plan), &style));
        assert_narrow(&solution(&instance, &infeasible(), &style));
    }

    #[test]
    fn colour_changes_nothing_but_colour() {
        let (instance, outcome) = (
            fixture::llama_13b(),
            Outcome::Optimal(fixture::llama_13b_plan()),
        );
        let plain = solution(&instance, &outcome, &Style::default());
        let style = Style {
            colour: Colour::Always,
            ..Style::default()
        };
        let coloured = solution(&instance, &outcome, &style);
        assert!(coloured.contains("\u{1b}[1;32m"));
        let mut stripped = String::new();
        let mut rest = coloured.as_str();
        while let Some((before, after)) = rest.split_once('\u{1b}') {
            stripped.push_str(before);
            rest = after.split_once('m').map_or("", |(_, text)| text);
        }
        stripped.push_str(rest);
        assert_eq!(stripped, plain);
    }
}
