//! Memory and time by component, as tables.

use super::document::{
    LayoutDocument, MemoryDocument, PredictionDocument, StageDocument, StageMemoryDocument,
};
use super::number::{gib, percent, unit_of_time};
use super::style::Style;
use super::table::Table;
use crate::cost_model::components::{MemoryComponent, TimeComponent};

/// Memory of the fullest stage, and of the first and the last where they differ, against the
/// capacity of a GPU.
pub(crate) fn memory(memory: &MemoryDocument, style: &Style) -> String {
    let fullest = memory.fullest();
    let shown = stages_to_show(memory, fullest);
    let mut header = vec!["memory per GPU".to_owned()];
    for &position in &shown {
        header.push(match (memory.stages.len(), position == fullest) {
            (1, _) => "GiB".to_owned(),
            (_, true) => format!("stage {position} (fullest), GiB"),
            (_, false) => format!("stage {position}"),
        });
        if position == fullest {
            header.push("share".to_owned());
        }
    }
    let mut table = Table::new(header).right(1..);
    let mut row = |label: &str, amount: &dyn Fn(usize) -> f64| {
        let mut record = vec![label.to_owned()];
        for &position in &shown {
            record.push(gib(amount(position)));
            if position == fullest {
                record.push(percent(amount(position) / memory.capacity_gib));
            }
        }
        table.push(record);
    };
    for &component in MemoryComponent::ALL {
        let amount = |position: usize| memory.stages[position].components[component];
        if shown.iter().any(|&position| amount(position) > 0.0) {
            row(component.label(), &amount);
        }
    }
    row("peak", &|position| memory.stages[position].peak_gib);
    row("capacity", &|_| memory.capacity_gib);
    table.text(style)
}

/// Step time by component with its share of the total, of a mean stage. Components that take no time
/// are omitted, but for the bubble, whose absence is worth knowing.
pub(crate) fn time(prediction: &PredictionDocument, style: &Style) -> String {
    let total = prediction.step_time_s;
    let (unit, factor) = unit_of_time(total);
    let amount = |seconds: f64| format!("{:.2}", seconds * factor);
    let stages = prediction.memory.stages.len();
    let (title, bubble) = if stages > 1 {
        let slowest = prediction.slowest_stage;
        (
            format!("step time, mean of {stages} stages"),
            format!(" (stage {slowest} is the slowest)"),
        )
    } else {
        ("step time".to_owned(), String::new())
    };
    let mut table = Table::new([title.as_str(), unit, "share"]).right(1..);
    for (component, seconds) in prediction.time.components() {
        if seconds > 0.0 || component == TimeComponent::Bubble {
            let mut label = component.label().to_owned();
            if component == TimeComponent::Bubble {
                label += &bubble;
            }
            table.push([label, amount(seconds), percent(seconds / total)]);
        }
    }
    table.push(["total".to_owned(), amount(total), percent(1.0)]);
    table.text(style)
}

/// Memory of every stage by component; neighbours that are alike as far as is shown share a line.
pub(crate) fn memory_by_stage(memory: &MemoryDocument, layout: &LayoutDocument) -> String {
    let is_used = |component: &&MemoryComponent| {
        let mut stages = memory.stages.iter();
        stages.any(|stage| stage.components[**component] > 0.0)
    };
    let used: Vec<&MemoryComponent> = MemoryComponent::ALL.iter().filter(is_used).collect();
    let mut header = vec!["stage", "layers", "recomp."];
    header.extend(used.iter().map(|component| component.short_label()));
    header.push("peak");
    let mut table = Table::new(header).right(1..).narrow();
    let record = |(stage, layers): (&StageMemoryDocument, &StageDocument)| {
        let mut record = vec![
            layers.layers.to_string(),
            layers.checkpointed_layers.to_string(),
        ];
        let amounts = used
            .iter()
            .map(|&&component| gib(stage.components[component]));
        record.extend(amounts);
        record.push(gib(stage.peak_gib));
        record
    };
    let all: Vec<Vec<String>> = memory
        .stages
        .iter()
        .zip(&layout.stages)
        .map(record)
        .collect();
    let mut first = 0;
    for alike in all.chunk_by(|one, other| one == other) {
        let last = first + alike.len() - 1;
        let stages = if first == last {
            first.to_string()
        } else {
            format!("{first}-{last}")
        };
        table.push([vec![stages], alike[0].clone()].concat());
        first = last + 1;
    }
    table.plain()
}

/// The fullest stage, then first and last unless one shown before is alike.
fn stages_to_show(memory: &MemoryDocument, fullest: usize) -> Vec<usize> {
    let stages = &memory.stages;
    let mut shown: Vec<usize> = Vec::new();
    for position in [fullest, 0, stages.len().saturating_sub(1)] {
        let is_new =
            |stage: &StageMemoryDocument| shown.iter().all(|&other| stages[other] != *stage);
        if stages.get(position).is_some_and(is_new) {
            shown.push(position);
        }
    }
    shown
}

/// The name for people of the component with this key.
pub(crate) fn label(key: &str) -> &str {
    let of_time = TimeComponent::ALL.iter().find(|it| it.key() == key);
    let of_memory = MemoryComponent::ALL.iter().find(|it| it.key() == key);
    let label = of_time
        .map(|it| it.label())
        .or(of_memory.map(|it| it.label()));
    label.unwrap_or(key)
}
