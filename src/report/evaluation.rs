//! One layout term by term, and every rule that it breaks, for people.

use super::document::EvaluationDocument;
use super::layout_text::line;
use super::notes::trust_notes;
use super::number::{duration, gib, mfu};
use super::solution::{broken_rules, facts, job_line, layout_table, warnings};
use super::style::{Meaning, Style, paragraph, wrap};
use super::{Answer, components, joined};

impl Answer for EvaluationDocument {
    /// Memory of every distinct stage and step time, by component; broken rules first.
    fn text(&self, style: &Style) -> String {
        let prediction = &self.prediction;
        let (meaning, verdict) = match self.violations.len() {
            0 => (Meaning::Good, "no rule".to_owned()),
            1 => (Meaning::Bad, "1 rule".to_owned()),
            count => (Meaning::Bad, format!("{count} rules")),
        };
        let verdict = format!("{}: the layout breaks {verdict}", self.instance);
        let mut head = vec![
            style.wrapped(meaning, &verdict),
            wrap(&line(&self.layout.layout()), 2),
            wrap(&job_line(&self.job), 2),
        ];
        head.extend(broken_rules(&self.violations));
        let headline = format!(
            "{} MFU, {} a step",
            mfu(prediction.mfu),
            duration(prediction.step_time_s)
        );
        head.push(style.paint(Meaning::Heading, &headline));
        head.push(facts(prediction));
        let capacity = gib(prediction.memory.capacity_gib);
        let heading = format!("Memory by stage in GiB, of {capacity} per GPU:");
        let notes = trust_notes(&self.job, &self.trust, prediction);
        let mut blocks = vec![
            head.join("\n"),
            layout_table(&self.layout, style),
            format!(
                "{}\n{}",
                style.paint(Meaning::Heading, &heading),
                components::memory_by_stage(&prediction.memory, &self.layout)
            ),
            components::time(prediction, style),
            paragraph(notes),
        ];
        blocks.extend(warnings(&self.warnings, style));
        joined(&blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::instance::Instance;
    use crate::plan::{Evaluated, Violation};
    use crate::report::style::{WIDTH, columns};

    fn check(name: &str, instance: &Instance, evaluated: &Evaluated, violations: &[Violation]) {
        let document = EvaluationDocument::new(instance, evaluated, violations);
        let text = document.text(&Style::default());
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
