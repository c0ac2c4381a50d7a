//! Lines of nanotron logs:
//! `[INFO|DP=0|PP=3|TP=0]: iteration: 10 / 100 | … | elapsed_time_per_iteration_ms: 2.34K | …` and
//! ` Memory usage: 3442.16MiB. Peak allocated 10123.4MiB. Peak reserved: 12000.0MiB`, which rank 0
//! writes, so that it is of the first stage.

use super::log::{Log, LogKind, Peak, StepSpeed};
use super::scan::{memory_after, number_after};
use crate::quantity::{Bytes, Seconds};

pub(super) fn read_line(line: &str, log: &mut Log) {
    let milliseconds = number_after(line, "elapsed_time_per_iteration_ms: ");
    if let Some(milliseconds) = milliseconds {
        log.kind = Some(LogKind::Nanotron);
        let iteration = number_after(line, "iteration: ").unwrap_or_default();
        let speed = StepSpeed::Duration(Seconds::new(milliseconds * 1e-3));
        log.steps.push((iteration as u64, speed));
        let batch = number_after(line, "| global_batch_size: ");
        log.facts.global_batch = log.facts.global_batch.or(batch.map(|size| size as u64));
        let total = number_after(line, "| tokens_per_sec: ");
        let each = number_after(line, "| tokens_per_sec_per_gpu: ");
        if let (Some(total), Some(each)) = (total, each) {
            // Both are rounded to three digits.
            let gpus = (total / each).round().max(1.0) as u32;
            log.facts.gpus_about = Some(gpus);
        }
    }
    if let Some(memory) = memory_after(line, "Peak allocated ") {
        log.note_peak(Peak {
            rank: None,
            stage: Some(number_after(line, "|PP=").map_or(0, |stage| stage as u32)),
            memory: Bytes::new(memory),
        });
    }
}
