//! The legal layout that differs in the fewest choices.

use std::path::Path;

use super::findings::columns;
use super::{CheckError, Edit, RepairDocument};
use crate::axis::{Axis, FlaggedCombination};
use crate::files::{self, Content};
use crate::instance::Instance;
use crate::launch::Facts;
use crate::layout::Layout;
use crate::plan::Evaluated;
use crate::planner::{self, Deadline, PlanOptions};
use crate::report::layout_text;

/// What may be changed, the least first. Replicas follow from the rest.
const CHANGED: [Axis; 8] = [
    Axis::MicroBatch,
    Axis::Checkpointing,
    Axis::SequenceParallel,
    Axis::VirtualStages,
    Axis::Sharding,
    Axis::PipelineParallel,
    Axis::TensorParallel,
    Axis::ContextParallel,
];

/// The fastest legal layout that differs in one choice, else in two, with its stages cut anew.
pub(super) fn nearest(
    there: &Instance,
    layout: &Layout,
    deadline: Deadline,
) -> Result<Option<Evaluated>, CheckError> {
    let singles = CHANGED.iter().map(|&axis| vec![axis]);
    let pairs = (0..CHANGED.len()).flat_map(|first| {
        (first + 1..CHANGED.len()).map(move |second| vec![CHANGED[first], CHANGED[second]])
    });
    // Other stages alone may do.
    let sets = std::iter::once(Vec::new()).chain(singles).chain(pairs);
    let mut found: Option<(usize, Evaluated)> = None;
    for freed in sets {
        if found
            .as_ref()
            .is_some_and(|(count, _)| freed.len() > *count)
            || deadline.is_over()
        {
            break;
        }
        let instance = pinned(there, layout, &freed);
        let options = PlanOptions {
            alternatives: 0,
            deadline,
            ..PlanOptions::default()
        };
        if let Some(better) = planner::best(&instance, &options)?.into_layout() {
            let time = better.prediction.step_time;
            if found
                .as_ref()
                .is_none_or(|(_, known)| time < known.prediction.step_time)
            {
                found = Some((freed.len(), better));
            }
        }
    }
    Ok(found.map(|(_, better)| better))
}

/// The instance that may change some axes only.
fn pinned(there: &Instance, layout: &Layout, freed: &[Axis]) -> Instance {
    let own = FlaggedCombination {
        combination: layout.combination,
        checkpointing: layout.checkpointing(),
    };
    let is_mixed = layout.flags().len() > 1;
    let mut instance = there.clone();
    for axis in Axis::ALL {
        let is_free = match axis {
            Axis::DataParallel => true,
            Axis::Checkpointing if is_mixed => true,
            axis => freed.contains(&axis),
        };
        if !is_free {
            instance.space.restrict(axis, vec![own.code(axis)]);
        }
    }
    instance
}

/// The repair in words, and as edits of the lines that state what changes.
pub(super) fn document(
    facts: &Facts,
    path: &Path,
    own: &Layout,
    better: &Evaluated,
) -> RepairDocument {
    let bytes = files::read(path, Content::Settings).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let changed = Axis::ALL.into_iter().filter_map(|axis| {
        let [old, new] = [own, &better.layout].map(|layout| code(layout, axis));
        (old != new).then_some((axis, old, new))
    });
    let edits = changed.filter_map(|(axis, old, new)| {
        let place = columns(axis)
            .iter()
            .find_map(|column| facts.place(column))?;
        let line = text.lines().nth(place.line.checked_sub(1)? as usize)?;
        let new_line = replaced(line, &place.key, &axis.show(old), &axis.show(new))?;
        Some(Edit {
            line: place.line,
            old: line.to_owned(),
            new: new_line,
        })
    });
    let difference = layout_text::difference(own, &better.layout);
    RepairDocument::new(difference, edits.collect(), better)
}

fn code(layout: &Layout, axis: Axis) -> u32 {
    let combination = layout.combination;
    FlaggedCombination {
        combination,
        checkpointing: layout.checkpointing(),
    }
    .code(axis)
}

/// A line with another number after its key; `None` where it has a variable, or no number.
fn replaced(line: &str, key: &str, old: &str, new: &str) -> Option<String> {
    let name = key.rsplit('.').next().unwrap_or(key);
    let key = [name.to_owned(), name.replace('_', "-")]
        .into_iter()
        .find(|key| line.contains(key))?;
    let at = line.find(&key)? + key.len();
    let (before, after) = line.split_at(at);
    let start = after.find(|c: char| c.is_ascii_alphanumeric() || c == '$')?;
    let rest = after[start..].strip_prefix(old)?;
    let ends = !rest.starts_with(|c: char| c.is_ascii_alphanumeric());
    ends.then(|| format!("{before}{}{new}{rest}", &after[..start]))
}
