//! Lines of nanotron logs:
//! `[INFO|DP=0|PP=3|TP=0]: iteration: 10 / 100 | … | elapsed_time_per_iteration_ms: 2.34K | …` and
//! ` Memory usage: 3442.16MiB. Peak allocated 10123.4MiB. Peak reserved: 12000.0MiB`, which rank 0
//! writes, so that it is of the first stage.

use super::log::{Log, Peak, StepSpeed};
use super::scan::{memory_after, number_after};
use crate::quantity::{Bytes, Seconds};

pub(super) fn read_line(line: &str, log: &mut Log) {
    let milliseconds = number_after(line, "elapsed_time_per_iteration_ms: ");
    if let Some(milliseconds) = milliseconds {
        log.framework = Some("nanotron");
        log.steps
            .push(StepSpeed::Duration(Seconds::new(milliseconds * 1e-3)));
        log.note_number("global_batch", number_after(line, "| global_batch_size: "));
        let total = number_after(line, "| tokens_per_sec: ");
        let each = number_after(line, "| tokens_per_sec_per_gpu: ");
        if let (Some(total), Some(each)) = (total, each) {
            // Both are rounded to three digits.
            log.note_number("gpus_about", Some((total / each).round().max(1.0)));
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
