//! Memory and time by component, as tables.

use tabled::builder::Builder;
use tabled::settings::Alignment;
use tabled::settings::object::Columns;

use super::number::{gib, percent};
use super::style::{bare, render};
use crate::cost_model::components::{MemoryComponent, StageMemory, StepTime, TimeComponent};
use crate::cost_model::prediction::MemoryUse;
use crate::quantity::{Bytes, Seconds};

/// Memory of the fullest stage, and of the first and the last where they differ, against what
/// a GPU has.
pub(crate) fn memory(memory: &MemoryUse) -> String {
    let fullest = fullest(memory);
    let shown = stages_to_show(memory, fullest);
    let mut table = Builder::default();
    let mut header = vec!["memory of a GPU".to_owned()];
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
    table.push_record(header);
    let mut row = |label: &str, amount: &dyn Fn(&StageMemory) -> Bytes| {
        let mut record = vec![label.to_owned()];
        for &position in &shown {
            let amount = amount(&memory.stages[position]);
            record.push(gib(amount));
            if position == fullest {
                record.push(percent(amount / memory.capacity));
            }
        }
        table.push_record(record);
    };
    for &component in MemoryComponent::ALL {
        let amount = |stage: &StageMemory| stage[component];
        if shown
            .iter()
            .any(|&position| amount(&memory.stages[position]) > Bytes::ZERO)
        {
            row(component.label(), &amount);
        }
    }
    row("peak", &StageMemory::peak);
    row("capacity", &|_| memory.capacity);
    let mut table = bare(table.build());
    table.modify(Columns::new(1..), Alignment::right());
    render(table)
}

/// Step time by component with its share of the total. Components that take no time are left
/// out, but for the bubble, whose absence is worth knowing.
pub(crate) fn time(time: &StepTime) -> String {
    let total = time.total();
    let mut table = Builder::default();
    let (unit, factor) = if total < Seconds::new(1.0) {
        ("ms", 1e3)
    } else {
        ("s", 1.0)
    };
    let amount = |duration: Seconds| format!("{:.2}", duration.value() * factor);
    table.push_record(["step time", unit, "share"]);
    for (component, duration) in time.components() {
        if duration > Seconds::ZERO || component == TimeComponent::Bubble {
            let label = component.label().to_owned();
            table.push_record([label, amount(duration), percent(duration / total)]);
        }
    }
    table.push_record(["total".to_owned(), amount(total), percent(1.0)]);
    let mut table = bare(table.build());
    table.modify(Columns::new(1..), Alignment::right());
    render(table)
}

/// Memory of every stage by component; neighbours that are alike share a line.
pub(crate) fn memory_by_stage(memory: &MemoryUse, layers: &[(u32, u32)]) -> String {
    let used = MemoryComponent::ALL.iter().filter(|&&component| {
        let mut stages = memory.stages.iter();
        stages.any(|stage| stage[component] > Bytes::ZERO)
    });
    let mut table = Builder::default();
    let mut header = vec!["stage", "layers", "recomp."];
    header.extend(used.clone().map(|component| component.short_label()));
    header.push("peak");
    table.push_record(header);
    let mut first = 0;
    for position in 0..memory.stages.len() {
        let alike = |other: usize| {
            memory.stages.get(other) == Some(&memory.stages[first])
                && layers.get(other) == layers.get(first)
        };
        if alike(position + 1) {
            continue;
        }
        let stage = &memory.stages[first];
        let (count, checkpointed) = layers.get(first).copied().unwrap_or_default();
        let mut record = vec![
            if first == position {
                first.to_string()
            } else {
                format!("{first}-{position}")
            },
            count.to_string(),
            checkpointed.to_string(),
        ];
        record.extend(used.clone().map(|&component| gib(stage[component])));
        record.push(gib(stage.peak()));
        table.push_record(record);
        first = position + 1;
    }
    let mut table = bare(table.build());
    table
        .with(tabled::settings::Style::blank())
        .with(tabled::settings::Padding::new(0, 0, 0, 0))
        .modify(Columns::new(1..), Alignment::right());
    render(table)
}

/// Position of the stage with the highest peak, the first of equals.
fn fullest(memory: &MemoryUse) -> usize {
    let mut fullest = 0;
    for (position, stage) in memory.stages.iter().enumerate() {
        if stage.peak() > memory.stages[fullest].peak() {
            fullest = position;
        }
    }
    fullest
}

/// The fullest stage, then first and last unless one shown before is alike.
fn stages_to_show(memory: &MemoryUse, fullest: usize) -> Vec<usize> {
    let mut shown = Vec::new();
    for position in [fullest, 0, memory.stages.len().saturating_sub(1)] {
        let Some(stage) = memory.stages.get(position) else {
            continue;
        };
        if !shown
            .iter()
            .any(|&other: &usize| memory.stages[other] == *stage)
        {
            shown.push(position);
        }
    }
    shown
}
