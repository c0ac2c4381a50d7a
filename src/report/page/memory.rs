//! Memory of each pipeline stage against what a GPU has.

use maud::{Markup, html};

use super::super::document::{StageDocument, StageMemoryDocument};
use super::super::number::gib;
use super::{Choice, Part, bar, legend, span};
use crate::cost_model::components::MemoryComponent;
use crate::layout::Schedule;

/// Lines up to which all groups of stages are drawn.
const MOST: usize = 24;

pub(super) fn section(choice: &Choice) -> Markup {
    let memory = &choice.prediction.memory;
    let capacity = memory.capacity_gib;
    let scale = memory.peak_gib.max(capacity) * 1.02;
    let groups = groups(&choice.document.stages, &memory.stages);
    let middle = groups.len().saturating_sub(MOST);
    let shown = |at: usize| middle == 0 || at < MOST / 2 || at >= MOST / 2 + middle;
    let figure = html! {
        (legend(components(&memory.stages).map(|it| (class(it), it.label())).chain([("capacity".to_owned(), "what a GPU has")])))
        @for (at, group) in groups.iter().enumerate() {
            @if shown(at) { (group.bar(&memory.stages[group.first], scale, capacity)) }
            @else if at == MOST / 2 {
                p.small { (left_out(&groups[MOST / 2..MOST / 2 + middle], &memory.stages)) }
            }
        }
    };
    let more = match choice.document.combination.schedule {
        Schedule::OneForwardOneBackward if memory.stages.len() > 1 => {
            " Early stages keep the activations of more micro-batches than late ones."
        }
        _ => "",
    };
    super::section(
        "Memory of each GPU",
        &format!(
            "Each bar is the peak of one GPU of a pipeline stage, part by part; alike neighbours share a bar. The red \
             line is the {} GiB that a training process can use.{}",
            gib(capacity),
            more
        ),
        &figure,
    )
}

/// What stands for the groups that are not drawn.
fn left_out(groups: &[Group], memory: &[StageMemoryDocument]) -> String {
    let peaks = groups.iter().map(|group| memory[group.first].peak_gib);
    let (least, most) = peaks.fold((f64::INFINITY, 0.0_f64), |(least, most), peak| {
        (least.min(peak), most.max(peak))
    });
    format!(
        "\u{2026} {} further groups of stages, with peaks from {} to {} GiB \u{2026}",
        groups.len(),
        gib(least),
        gib(most)
    )
}

/// Stages one after another that are alike.
struct Group {
    first: usize,
    last: usize,
    layers: u32,
}

impl Group {
    fn bar(&self, memory: &StageMemoryDocument, scale: f64, capacity: f64) -> Markup {
        let stages = if self.first == self.last {
            "stage"
        } else {
            "stages"
        };
        let parts = memory.components.components().filter(|it| it.1 > 0.0);
        let parts: Vec<Part> = parts
            .map(|(component, amount)| Part {
                class: class(component),
                share: amount / scale,
                title: format!("{}: {} GiB", component.label(), gib(amount)),
            })
            .collect();
        let layers = if self.layers == 1 { "layer" } else { "layers" };
        bar(
            &format!(
                "{stages} {}, {} {layers}",
                span(self.first as u64, self.last as u64),
                self.layers
            ),
            &parts,
            &format!(
                "{} GiB, {:.0} %",
                gib(memory.peak_gib),
                memory.peak_gib / capacity * 100.0
            ),
            Some(capacity / scale),
        )
    }
}

/// Neighbours with the same layers, and the same memory as far as it is shown.
fn groups(stages: &[StageDocument], memory: &[StageMemoryDocument]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (index, stage) in stages.iter().enumerate() {
        let is_alike = |group: &Group| {
            let pair = [group.first, index].map(|at| &memory[at].components);
            let mut parts = pair[0].components().zip(pair[1].components());
            stages[group.first] == *stage && parts.all(|(one, other)| gib(one.1) == gib(other.1))
        };
        match groups.last_mut() {
            Some(group) if is_alike(group) => group.last = index,
            _ => groups.push(Group {
                first: index,
                last: index,
                layers: stage.layers,
            }),
        }
    }
    groups
}

/// The components that some stage has.
fn components(stages: &[StageMemoryDocument]) -> impl Iterator<Item = MemoryComponent> {
    let all = MemoryComponent::ALL.iter().copied();
    all.filter(|&it| stages.iter().any(|stage| stage.components[it] > 0.0))
}

fn class(component: MemoryComponent) -> String {
    format!("c{}", component as usize)
}
