//! Lines of Megatron-LM (and Megatron-Bridge) logs.
//!
//! The last rank logs iterations, each first data-parallel rank its memory:
//! `[Rank 2] (after 10 iterations) memory (MB) | allocated: 9334.4 | max allocated: 12680.6 | …`.

use super::log::{Log, Peak, StepSpeed};
use super::megatron_flags;
use super::scan::{after, number, number_after};
use crate::quantity::{Bytes, Seconds};

/// Bytes of the `MB` of Megatron-LM's memory report, which are binary.
const MEBIBYTE: f64 = 1024.0 * 1024.0;

pub(super) fn read_line(line: &str, log: &mut Log) {
    let seconds = number_after(line, "elapsed time per iteration (ms): ")
        .map(|milliseconds| milliseconds * 1e-3)
        .or_else(|| number_after(line, "Step Time : "));
    if let Some(seconds) = seconds {
        log.framework = Some("megatron-lm");
        log.steps.push(StepSpeed::Duration(Seconds::new(seconds)));
        log.note_number("global_batch", number_after(line, "global batch size: "));
    }
    // Several ranks may write into one line.
    for report in line.split("[Rank ").skip(1) {
        read_memory(report, log);
    }
    if let Some((name, value)) = argument(line) {
        log.arguments
            .values
            .insert(name.to_owned(), value.to_owned());
    }
    if let Some(rest) = after(line, "using world size: ") {
        log.note_number("gpus", number(rest));
        let degrees = [
            ("tensor_parallel", "tensor-model-parallel size: "),
            ("pipeline_parallel", " pipeline-model-parallel size: "),
            ("context_parallel", "context-parallel size: "),
        ];
        for (column, name) in degrees {
            log.note_number(column, number_after(rest, name));
        }
    }
}

/// `2] (after 10 iterations) memory (MB) | … | max allocated: 12680.6 | …`
fn read_memory(report: &str, log: &mut Log) {
    let megabytes = number_after(report, "| max allocated: ").map(|megabytes| megabytes * MEBIBYTE);
    let gigabytes =
        number_after(report, "mem-max-allocated-gigabytes: ").map(|gigabytes| gigabytes * 1e9);
    if let (Some(memory), Some(rank)) = (megabytes.or(gigabytes), number(report)) {
        log.framework = Some("megatron-lm");
        log.note_peak(Peak {
            rank: Some(rank as u32),
            stage: None,
            memory: Bytes::new(memory),
        });
    }
}

/// A line of the dump of arguments: `  tensor_model_parallel_size ...................... 4`.
fn argument(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once(" ..")?;
    let name = name.rsplit([' ', ':']).next()?;
    let value = value.trim_start_matches('.').trim();
    (megatron_flags::is_known(name) && !value.is_empty()).then_some((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laboratory::logs::read;

    #[test]
    fn ranks_that_share_a_line_are_told_apart() {
        let log = read(
            "[Rank 4] (after 1 iterations) memory (MB) | allocated: 9334.3 | max allocated: \
             10606.5 | reserved: 10998.0 | max reserved: 10998.0[Rank 6] (after 1 iterations) \
             memory (MB) | allocated: 9334.3 | max allocated: 12680.6 | reserved: 13236.0",
        );
        let ranks: Vec<Option<u32>> = log.peaks.iter().map(|peak| peak.rank).collect();
        assert_eq!(ranks, [Some(4), Some(6)]);
        let largest = log.largest_peak().expect("there are two");
        assert!((largest.memory.value() - 12680.6 * MEBIBYTE).abs() < 1.0);
    }

    #[test]
    fn other_lines_say_nothing() {
        let log = read("loading checkpoint .. done\n[Rank 3] hello\niteration 7 starts");
        assert_eq!(log, Log::default());
    }
}
