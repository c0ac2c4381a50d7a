//! One layout term by term, and every rule that it breaks, for people.

use super::components;
use super::layout_text::line;
use super::number::{duration, gib};
use super::style::{Meaning, Style, wrap};
use super::table::{facts, job_line, layout_table, warnings, with_heading};
use super::trust;
use crate::instance::Instance;
use crate::plan::{Evaluated, Violation};

/// Memory of every distinct stage and step time, by component; broken rules first.
#[must_use]
pub fn evaluation(
    instance: &Instance,
    evaluated: &Evaluated,
    violations: &[Violation],
    style: &Style,
) -> String {
    let Evaluated { layout, prediction } = evaluated;
    let verdict = match violations.len() {
        0 => style.paint(
            Meaning::Good,
            &wrap(&format!("{}: the layout breaks no rule", instance.name), 2),
        ),
        count => {
            let rules = if count == 1 {
                "1 rule"
            } else {
                &format!("{count} rules")
            };
            let text = format!("{}: the layout breaks {rules}", instance.name);
            style.paint(Meaning::Bad, &wrap(&text, 2))
        }
    };
    let mut head = vec![verdict, wrap(&line(layout), 2), job_line(instance)];
    head.extend(
        violations
            .iter()
            .map(|Violation { rule, message }| wrap(&format!("- {rule}: {message}"), 2)),
    );
    let headline = format!(
        "{} MFU, {} a step",
        prediction.mfu,
        duration(prediction.step_time)
    );
    head.push(style.paint(Meaning::Heading, &headline));
    head.push(wrap(&facts(prediction), 2));
    let global_batch = instance.job.workload.global_batch;
    let micro_batches = layout.combination.micro_batches(global_batch);
    let layers: Vec<(u32, u32)> = layout
        .stages
        .iter()
        .map(|stage| (stage.layers, stage.checkpointed_layers()))
        .collect();
    let by_stage = components::memory_by_stage(&prediction.memory, &layers);
    let capacity = gib(prediction.memory.capacity);
    let memory = format!(
        "{}\n{}",
        style.paint(
            Meaning::Heading,
            &format!("Memory by stage in GiB, of {capacity} on a GPU:")
        ),
        by_stage
    );
    let mut blocks = vec![
        head.join("\n"),
        with_heading(style, &layout_table(layout, micro_batches)),
        memory,
        with_heading(style, &components::time(&prediction.time)),
        trust::notes(&instance.job, layout, prediction.mfu),
    ];
    blocks.extend(warnings(instance, style));
    let mut text = blocks.join("\n\n");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;
    use crate::report::style::{WIDTH, columns};

    fn check(name: &str, instance: &Instance, evaluated: &Evaluated, violations: &[Violation]) {
        let text = evaluation(instance, evaluated, violations, &Style::default());
        for line in text.lines() {
            assert!(columns(line) <= WIDTH, "{line}");
        }
        fixture::assert_snapshot(name, &text);
    }

    #[test]
    fn a_legal_layout_is_told_term_by_term() {
        let evaluated = fixture::llama_405b_plan().choice;
        check(
            "report_evaluation_405b",
            &fixture::llama_405b(),
            &evaluated,
            &[],
        );
    }

    #[test]
    fn broken_rules_come_first() {
        let violations = [
            Violation {
                rule: "heads_divisible".to_owned(),
                message: "52 heads do not divide by 8: tensor_parallel may be 1, 2, 4, 13, 26, 52"
                    .to_owned(),
            },
            Violation {
                rule: "memory_capacity(0)".to_owned(),
                message: "82.3 GiB of 79.2 GiB".to_owned(),
            },
        ];
        let evaluated = fixture::llama_13b_plan().choice;
        check(
            "report_evaluation_broken",
            &fixture::llama_13b(),
            &evaluated,
            &violations,
        );
    }
}
