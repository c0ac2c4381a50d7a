//! The combinations of an instance, in one order.
//!
//! One [`Walk`] serves the search for the best layout, its verification and the reasons where there
//! is none. It decides one axis after the other and judges every rule as soon as the axes that it
//! reads are decided, so that what is broken early is not walked further.

mod walk;

use formulations::deadline::Deadline;

pub use walk::{Node, Step, Walk};

use crate::axis::{Axis, FlaggedCombination};
use crate::instance::Instance;
use crate::layout::{Layout, Stage};
use crate::rules::{self, Rule, RuleSet};

/// The axes from the outermost loop to the innermost, and so the rule that breaks ties: less tensor,
/// then pipeline, then context parallelism, fewer virtual stages, smaller micro-batch, fewer
/// checkpointed layers, then the remaining axes in order of their codes. Data parallelism comes
/// early: with the GPU count it cuts most.
pub const ORDER: [Axis; Axis::COUNT] = [
    Axis::TensorParallel,
    Axis::PipelineParallel,
    Axis::ContextParallel,
    Axis::DataParallel,
    Axis::ExpertParallel,
    Axis::ExpertTensorParallel,
    Axis::VirtualStages,
    Axis::MicroBatch,
    Axis::Checkpointing,
    Axis::SequenceParallel,
    Axis::Sharding,
    Axis::RmsNormKernel,
    Axis::AttentionKernel,
    Axis::Schedule,
];

/// Combinations up to which the program carries those that break a rule as columns too.
pub const LITERAL_LIMIT: u64 = 20_000;

/// Steps of the walk between two looks at the clock.
const STEPS_UNTIMED: u64 = 1 << 8;

/// The combinations that a program decides among.
#[derive(Debug, Clone)]
pub struct Listing {
    /// In the order of the walk: earlier wins among equals. With the rules that each breaks.
    pub combinations: Vec<(FlaggedCombination, RuleSet)>,
    /// Rules whose violators were left out.
    pub applied_before: Vec<Rule>,
    /// Whether the time was over before all were listed.
    pub is_cut: bool,
}

/// Lists the combinations of the space. A space of up to [`LITERAL_LIMIT`] is listed whole, so
/// that the program itself excludes what breaks a rule; of a larger one, only the combinations
/// that break none of the rules on discrete choices.
#[must_use]
pub fn list(instance: &Instance) -> Listing {
    list_until(instance, Deadline::NEVER)
}

/// The same, as far as it gets until `deadline`.
#[must_use]
pub fn list_until(instance: &Instance, deadline: Deadline) -> Listing {
    let literal = instance.space.combinations() <= LITERAL_LIMIT;
    let values = Axis::ALL.map(|axis| instance.space.values(axis).to_vec());
    let mut walk = Walk::new(instance, &ORDER, values);
    let mut combinations = Vec::new();
    let (mut steps, mut is_cut) = (0_u64, false);
    walk.run(&mut |node| {
        steps += 1;
        is_cut |= steps.is_multiple_of(STEPS_UNTIMED) && deadline.is_over();
        if is_cut {
            return Step::Stop;
        }
        if !literal && !node.broken.is_empty() {
            return Step::Skip;
        }
        if node.is_leaf() {
            combinations.push((node.flagged(), node.broken));
        }
        Step::Descend
    });
    Listing {
        combinations,
        applied_before: if literal {
            Vec::new()
        } else {
            applied_before(instance)
        },
        is_cut,
    }
}

/// Every rule but those on layers and, where the instance has none, constraints.
fn applied_before(instance: &Instance) -> Vec<Rule> {
    let applies = |rule: &Rule| match rule {
        Rule::MemoryCapacity | Rule::CheckpointingByFramework => false,
        Rule::Constraint => !instance.space.constraints.is_empty(),
        _ => true,
    };
    rules::applied(instance).filter(applies).collect()
}

/// The combination's layout by the framework's own cut, every layer checkpointed alike; `None` if
/// there is no such cut.
#[must_use]
pub fn layout(instance: &Instance, flagged: &FlaggedCombination) -> Option<Layout> {
    let cut = rules::partition(instance, &flagged.combination)?;
    let stages = cut.into_iter().map(|layers| {
        let mut stage = Stage {
            layers,
            recomputed: [0; 4],
        };
        if let Some(mode) = flagged.checkpointing.recompute() {
            stage.recomputed[mode as usize] = layers;
        }
        stage
    });
    Some(Layout {
        combination: flagged.combination,
        stages: stages.collect(),
    })
}
