//! Lines of torchtitan logs: `step: 10  loss: 7.6  …  memory: 45.20GiB(57.13%)  tps: 1,234  …`.
//!
//! `tps` counts tokens a second and GPU. `memory` is what PyTorch reserved on the rank that logs,
//! a little more than what was allocated.

use super::log::{Log, Peak, StepSpeed};
use super::scan::{after, memory_after, number, number_after};
use crate::quantity::Bytes;

pub(super) fn read_line(line: &str, log: &mut Log) {
    let step = number_after(line, "step: ");
    if let (Some(_), Some(rate)) = (step, number_after(line, " tps: ")) {
        log.framework = Some("fsdp");
        log.steps.push(StepSpeed::TokensPerSecond(rate));
        if let Some(memory) = memory_after(line, " memory: ") {
            log.note_peak(Peak {
                rank: number_after(line, "[rank").map(|rank| rank as u32),
                stage: None,
                memory: Bytes::new(memory),
            });
        }
    }
    if let Some(rest) = after(line, "CUDA capacity: ") {
        let memory = memory_after(rest, " with ").map(Bytes::new);
        log.gpu_memory = log.gpu_memory.or(memory);
    }
    if let Some(rest) = after(line, "device mesh with [") {
        read_mesh(rest, log);
    }
}

/// `'dp_shard', 'tp'], [4, 2]`
fn read_mesh(text: &str, log: &mut Log) {
    let Some((names, sizes)) = text.split_once("], [") else {
        return;
    };
    let sizes = sizes.split_once(']').map_or(sizes, |(sizes, _)| sizes);
    let mut gpus = 1.0;
    for (name, size) in names.split(',').zip(sizes.split(',')) {
        let Some(size) = number(size) else {
            return;
        };
        gpus *= size;
        let column = match name.trim().trim_matches('\'') {
            "pp" => "pipeline_parallel",
            "tp" => "tensor_parallel",
            "cp" => "context_parallel",
            _ => continue,
        };
        log.note_number(column, Some(size));
    }
    log.note_number("gpus", Some(gpus));
}
