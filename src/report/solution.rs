//! The answer to an instance, for people: one screen at 80 columns.

use tabled::builder::Builder;
use tabled::settings::object::Columns;
use tabled::settings::{Alignment, Span, Style as Borders};

use super::document::{
    JobDocument, LayoutDocument, NeighbourDocument, PredictionDocument, SolutionDocument,
};
use super::infeasible::infeasible_blocks;
use super::layout_text::{axis_label, checkpointing, difference, layers, layers_by_chunk, line};
use super::notes::{proof_note, safer_note, trust_notes};
use super::number::{count, duration, gib, grouped, mfu, percent, points, risk};
use super::style::{Meaning, Style, WIDTH, columns, paragraph, printable, wrap, wrap_within};
use super::table::{Table, headed, render};
use super::{Answer, components, counts, joined};
use crate::axis::{Axis, FlaggedCombination};
use crate::cost_model::components::TimeComponent;
use crate::count::counted;
use crate::export::Target;
use crate::layout::Layout;
use crate::plan::{Status, Violation};

impl Answer for SolutionDocument {
    /// Layout, memory, time, neighbours, proof and trust; or why there is no layout.
    fn text(&self, style: &Style) -> String {
        let mut blocks = counts::blocks(self, style);
        match (self.choice(), &self.infeasibility) {
            (Some((layout, prediction)), _) => {
                blocks.extend(plan_blocks(self, layout, prediction, style));
            }
            (None, Some(infeasibility)) => {
                blocks.extend(infeasible_blocks(self, infeasibility, style));
            }
            (None, None) => blocks.push(unknown_block(self, style)),
        }
        let mut notes = Vec::new();
        notes.extend(self.prediction.as_ref().map(|it| safer_note(self, it)));
        notes.push(proof_note(&self.proof));
        if let Some(prediction) = &self.prediction {
            notes.extend(trust_notes(&self.job, &self.trust, prediction));
        }
        blocks.push(paragraph(notes));
        blocks.extend(warnings(&self.warnings, style));
        let framework = self.job.framework.as_str();
        let mut targets = Target::ALL.iter().filter(|_| self.layout.is_some());
        if let Some(target) = targets.find(|target| target.runs(framework)) {
            blocks.push(next_command(style, "export", &format!(" --to {target}")));
        }
        joined(&blocks)
    }
}

/// The network and the machine in one line.
pub(super) fn job_line(job: &JobDocument) -> String {
    let active = job.active_parameters;
    let active = active.map_or_else(String::new, |it| format!(", {} active", count(it)));
    format!(
        "{} ({} parameters{active}) on {} x {} ({}), sequence {}, batch {}; {}, gradients of {} bytes",
        job.model,
        count(job.parameters),
        grouped(u64::from(job.gpus)),
        job.accelerator,
        job.cluster,
        grouped(job.sequence_length),
        grouped(job.global_batch),
        job.framework,
        job.gradient_bytes,
    )
}

/// The layout as a table, with its layers and checkpointing by stage.
pub(super) fn layout_table(document: &LayoutDocument, style: &Style) -> String {
    let layout = document.layout();
    let plain = FlaggedCombination::plain(document.combination);
    let value = |axis: Axis| (axis_label(axis), axis.show(plain.code(axis)));
    let named = |name: &str, value: String| (name.to_owned(), value);
    let has_experts = document.combination.expert_ranks() > 1;
    let is_said = |axis: &&Axis| {
        has_experts || !matches!(axis, Axis::ExpertParallel | Axis::ExpertTensorParallel)
    };
    let left = Axis::ALL[..=Axis::MicroBatch as usize].iter();
    let left: Vec<Axis> = left.filter(is_said).copied().collect();
    let mut right = vec![
        named("micro-batches", grouped(document.micro_batches)),
        value(Axis::Sharding),
        value(Axis::SequenceParallel),
        value(Axis::AttentionKernel),
        value(Axis::RmsNormKernel),
        value(Axis::Schedule),
    ];
    right.resize(left.len(), named("", String::new()));
    let mut wide = vec![named("layers by stage", layers(&layout))];
    wide.extend(layers_by_chunk(&layout).map(|text| named("layers by chunk", text)));
    wide.push(named("checkpointing", checkpointing(&layout)));
    let mut table = Builder::default();
    table.push_record(["layout", "", "", ""]);
    for (axis, (choice, chosen)) in left.into_iter().zip(right) {
        let (degree, size) = value(axis);
        table.push_record([degree, size, choice, chosen]);
    }
    let first_wide = table.count_records();
    for (choice, chosen) in wide {
        let chosen = wrap_within(&chosen, 0, WIDTH - 22);
        table.push_record([choice, chosen, String::new(), String::new()]);
    }
    let mut table = table.build();
    table.with(Borders::psql());
    table.modify(Columns::one(1), Alignment::right());
    for row in first_wide..table.count_rows() {
        table.modify((row, 1), (Span::column(3), Alignment::left()));
    }
    headed(&render(table), style)
}

/// What else is worth knowing at first sight.
pub(super) fn facts(prediction: &PredictionDocument) -> String {
    let first = format!(
        "{} tokens/s/GPU, {} bubble, {} risk of running out of memory",
        grouped(prediction.tokens_per_s_per_gpu.round() as u64),
        percent(prediction.bubble()),
        risk(prediction.oom_probability),
    );
    let mut lines = vec![first, conventions(prediction)];
    lines.extend(experts(prediction));
    let lines: Vec<String> = lines.iter().map(|line| wrap(line, 2)).collect();
    lines.join("\n")
}

/// How routed experts are used, where there are some.
fn experts(prediction: &PredictionDocument) -> Option<String> {
    let experts = prediction.experts?;
    let share = |seconds: f64| percent(seconds / prediction.step_time_s);
    let imbalance = if experts.load_imbalance > 1.0 {
        let costs = share(experts.imbalance_s);
        format!(
            "; a load imbalance of {} costs {costs}",
            experts.load_imbalance
        )
    } else {
        "; balanced routing".to_owned()
    };
    Some(format!(
        "{} of each layer per GPU, {} tokens per expert and micro-batch; all-to-all {} of the \
         step{imbalance}",
        counted(experts.per_gpu as u32, "expert"),
        grouped(experts.tokens_each.round() as u64),
        share(prediction.time[TimeComponent::AllToAll]),
    ))
}

/// The arithmetic of a GPU, its utilisation by the conventions that reports use, and why that may be
/// above the peak.
fn conventions(prediction: &PredictionDocument) -> String {
    let [paper, causal] = [prediction.mfu_paper, prediction.mfu_causal];
    let above = match (paper > 1.0, causal > 1.0) {
        (_, true) => "; above 100 %, as fp8 products outrun the bf16 peak that MFU refers to",
        (true, false) => {
            "; above 100 %, as the paper's counts the whole square of attention and the input embedding"
        }
        (false, false) => "",
    };
    format!(
        "{} TFLOP/s per GPU, MFU {} by the paper's convention and {} causal{above}",
        grouped(prediction.tflops_per_gpu.round() as u64),
        mfu(paper),
        mfu(causal),
    )
}

/// What the reader should know, though it is not an error.
pub(super) fn warnings(warnings: &[String], style: &Style) -> Option<String> {
    let lines = warnings
        .iter()
        .map(|warning| style.wrapped(Meaning::Warning, &format!("warning: {warning}")));
    let lines: Vec<String> = lines.collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Broken rules, one a line.
pub(super) fn broken_rules(violations: &[Violation]) -> Vec<String> {
    let lines = violations
        .iter()
        .map(|Violation { rule, message }| wrap(&format!("- {rule}: {message}"), 2));
    lines.collect()
}

fn plan_blocks(
    answer: &SolutionDocument,
    layout: &LayoutDocument,
    prediction: &PredictionDocument,
    style: &Style,
) -> Vec<String> {
    let (meaning, status) = if answer.status == Status::Optimal {
        (Meaning::Good, "optimal".to_owned())
    } else {
        let gap = match answer.proof.gap.unwrap_or(f64::INFINITY) {
            gap if gap < 5e-4 => "0.1 %".to_owned(),
            gap => percent(gap),
        };
        let status = format!("feasible (at most {gap} better is possible)");
        (Meaning::Warning, status)
    };
    let status = format!(
        "{}: {status}, {} MFU, {} a step",
        answer.instance,
        mfu(prediction.mfu),
        duration(prediction.step_time_s)
    );
    let head = [
        style.wrapped(meaning, &status),
        style.wrapped(Meaning::Heading, &line(&layout.layout())),
        wrap(&job_line(&answer.job), 2),
        facts(prediction),
    ];
    let mut blocks = vec![
        head.join("\n"),
        layout_table(layout, style),
        components::memory(&prediction.memory, style),
        components::time(prediction, style),
    ];
    if !answer.alternatives.is_empty() {
        blocks.push(alternatives(&answer.alternatives, &layout.layout(), style));
    }
    blocks
}

/// The next-best layouts: what differs, and by how much MFU, memory and risk change.
fn alternatives(others: &[NeighbourDocument], choice: &Layout, style: &Style) -> String {
    let mut table =
        Table::new(["next best, where it differs", "MFU", "peak GiB", "OOM risk"]).right(1..);
    for other in others {
        let prediction = &other.evaluated.prediction;
        let peak = gib(prediction.memory.peak_gib);
        let risk = risk(prediction.oom_probability);
        let points_of_risk = other.oom_probability_distance * 100.0;
        table.push([
            wrap_within(
                &difference(choice, &other.evaluated.layout.layout()),
                0,
                WIDTH - 48,
            ),
            format!("{} ({})", mfu(prediction.mfu), points(other.mfu_distance)),
            if other.peak_distance_gib.abs() < 0.05 {
                peak
            } else {
                format!("{peak} ({:+.1})", other.peak_distance_gib)
            },
            if points_of_risk.abs() < 0.5 {
                risk
            } else {
                format!("{risk} ({points_of_risk:+.0})")
            },
        ]);
    }
    table.text(style)
}

fn unknown_block(answer: &SolutionDocument, style: &Style) -> String {
    let headline = format!(
        "{}: unknown: the limit ended the search before any layout was found",
        answer.instance
    );
    [
        style.wrapped(Meaning::Warning, &headline),
        wrap(&job_line(&answer.job), 2),
        "Try: a longer `--time-limit`, or fewer values in `[search]`.".to_owned(),
    ]
    .join("\n")
}

/// The command that comes next, over several lines where one is too narrow; arguments that do not
/// fit at all are named instead.
pub(super) fn next_command(style: &Style, name: &str, options: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::FlaggedCombination;
    use crate::fixture;
    use crate::instance::Instance;
    use crate::layout::Checkpointing;
    use crate::plan::{Infeasibility, Nearest, Outcome};
    use crate::report::Colour;

    fn check(name: &str, instance: &Instance, outcome: &Outcome) {
        let text = SolutionDocument::new(instance, outcome).text(&Style::default());
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
    fn a_utilisation_above_the_peak_is_explained() {
        let told = |mfu| {
            let prediction =
                fixture::prediction(mfu, 10.0, &[fixture::stage(1.0, 1.0, 1.0, 1.0, 1.0)]);
            facts(&PredictionDocument::new(&prediction)).replace("\n  ", " ")
        };
        assert!(!told(0.99).contains("above 100 %"));
        let square = "above 100 %, as the paper's counts the whole square of attention";
        assert!(told(1.05).contains(square), "{}", told(1.05));
        let products = "above 100 %, as fp8 products outrun the bf16 peak";
        assert!(told(1.2).contains(products), "{}", told(1.2));
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
                recomputed: [layers, layers / 2, 0, 0],
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
        assert_narrow(&SolutionDocument::new(&instance, &Outcome::Optimal(plan)).text(&style));
        assert_narrow(&SolutionDocument::new(&instance, &infeasible()).text(&style));
    }

    #[test]
    fn colour_changes_nothing_but_colour() {
        let (instance, outcome) = (
            fixture::llama_13b(),
            Outcome::Optimal(fixture::llama_13b_plan()),
        );
        let answer = SolutionDocument::new(&instance, &outcome);
        let plain = answer.text(&Style::default());
        let style = Style {
            colour: Colour::Always,
            ..Style::default()
        };
        let coloured = answer.text(&style);
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
