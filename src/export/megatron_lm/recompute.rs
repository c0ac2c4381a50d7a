//! Activation checkpointing as flags.
//!
//! Megatron-LM knows one granularity for the whole network: `full` recomputes the first `N` layers
//! of every model chunk (or all), `selective` recomputes one module of every layer.

use super::Flags;
use crate::layout::{Layout, Stage};

pub(super) fn flags(layout: &Layout, flags: &mut Flags) {
    let stages = &layout.stages;
    let all_layers: u32 = stages.iter().map(|stage| stage.layers).sum();
    let totals = [0, 1, 2].map(|mode| -> u32 {
        stages
            .iter()
            .map(|stage: &Stage| stage.recomputed[mode])
            .sum()
    });
    match totals {
        [0, 0, 0] => {}
        [0, feed_forward, 0] => selective("mlp", feed_forward, all_layers, flags),
        [0, 0, attention] => selective("core_attn", attention, all_layers, flags),
        [full, 0, 0] => full_layers(full, all_layers, layout, flags),
        _ => {
            flags.comment(
                "Only one kind of recomputation is possible: each stage recomputes at least as \
                 many layers as planned, all of them whole, which needs more time and less memory \
                 than predicted.",
            );
            let checkpointed = stages.iter().map(Stage::checkpointed_layers).sum();
            full_layers(checkpointed, all_layers, layout, flags);
        }
    }
}

fn selective(module: &str, recomputed: u32, all_layers: u32, flags: &mut Flags) {
    flags.value("recompute-granularity", "selective");
    flags.value("recompute-modules", module);
    if recomputed != all_layers {
        flags.comment(format!(
            "Selective recomputation has no number of layers: all {all_layers} recompute \
             `{module}` instead of {recomputed}, which needs more time and usually less memory than \
             predicted."
        ));
    }
}

/// The first layers of every chunk, as many as the stage with the most needs.
fn full_layers(recomputed: u32, all_layers: u32, layout: &Layout, flags: &mut Flags) {
    flags.value("recompute-granularity", "full");
    if recomputed == all_layers {
        flags.value("recompute-method", "uniform");
        flags.value("recompute-num-layers", 1);
        return;
    }
    let chunks = layout.combination.virtual_stages;
    let most = layout.stages.iter().map(Stage::checkpointed_layers).max();
    let count = most.unwrap_or_default().div_ceil(chunks);
    flags.value("recompute-method", "block");
    flags.value("recompute-num-layers", count);
    let run: u32 = layout
        .stages
        .iter()
        .map(|stage| stage.layers.min(count * chunks))
        .sum();
    if run != recomputed {
        flags.comment(format!(
            "Every stage recomputes the same number of layers, {}: {run} in all instead of \
             {recomputed}, which needs more time and usually less memory than predicted.",
            count * chunks
        ));
    }
}
