//! Which layers a framework can checkpoint: any, all or none, the same number on every stage.
//!
//! Its name is the key of the instance that states it.

use super::{Definition, FrameworkChange, Remedy};
use crate::framework::{CheckpointRule, Framework};

pub(super) const RULE: Definition = Definition {
    name: "framework.checkpointing",
    demands: "the framework can checkpoint these layers",
    in_layout: Some(|_, _| Vec::new()),
    limits: |instance, _, _| {
        let limit = match instance.job.framework.checkpoint_rule {
            CheckpointRule::AllOrNothing => "all layers or none",
            CheckpointRule::SameCount => "the same number on every stage",
            CheckpointRule::Free => return None,
        };
        Some(limit.to_owned())
    },
    remedy: Remedy::Framework(FrameworkChange {
        key: "checkpointing",
        to: "free",
        words: "a framework that checkpoints any layers",
        set: |framework| framework.checkpoint_rule = CheckpointRule::Free,
    }),
    demand: |instance, _| demand(&instance.job.framework),
    source: "`checkpointing` of the framework",
    ..Definition::USUAL
};

fn demand(framework: &Framework) -> String {
    let rule = match framework.checkpoint_rule {
        CheckpointRule::AllOrNothing => "checkpoints all layers or none",
        CheckpointRule::SameCount => "checkpoints the same number of layers on every stage",
        CheckpointRule::Free => "checkpoints any layers",
    };
    format!("{} {rule}", framework.name)
}
