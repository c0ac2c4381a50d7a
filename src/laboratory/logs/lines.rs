//! Lines of logs.
//!
//! - Megatron-LM, Megatron-Bridge: the last rank logs iterations, each first data-parallel rank its
//!   memory: `[Rank 2] (after 10 iterations) memory (MB) | … | max allocated: 12680.6 | …`.
//! - torchtitan: `step: 10  loss: 7.6  …  memory: 45.20GiB(57.13%)  tps: 1,234  …`. `tps` counts tokens
//!   a second and GPU; `memory` is what `PyTorch` reserved on the rank that logs, a little more than
//!   what was allocated.
//! - nanotron: `[INFO|DP=0|PP=3|TP=0]: iteration: 10 / 100 | … | elapsed_time_per_iteration_ms: 2.34K |
//!   …` and ` Memory usage: 3442.16MiB. Peak allocated 10123.4MiB. …`, which rank 0 writes, so that it
//!   is of the first stage.
//! - `PyTorch`, when a GPU runs out of memory: `torch.OutOfMemoryError: CUDA out of memory. Tried to
//!   allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.21 GiB is free. …`

use super::log::{Log, StepSpeed};
use super::scan::{after, memory_after, number, number_after};
use crate::launch::frameworks::megatron_lm::DIALECT as MEGATRON_LM;

use crate::quantity::{Bytes, Seconds};

/// What a number on a line says of the speed.
type Meaning = fn(f64) -> StepSpeed;

/// Framework, what else its line has, the key of the speed, and what the speed is.
const SPEEDS: [(&str, &str, &str, Meaning); 4] = [
    (
        "megatron-lm",
        "",
        "elapsed time per iteration (ms): ",
        milliseconds,
    ),
    ("megatron-lm", "", "Step Time : ", seconds),
    (
        "nanotron",
        "",
        "elapsed_time_per_iteration_ms: ",
        milliseconds,
    ),
    ("fsdp", "step: ", " tps: ", StepSpeed::TokensPerSecond),
];

fn milliseconds(number: f64) -> StepSpeed {
    seconds(number * 1e-3)
}

fn seconds(number: f64) -> StepSpeed {
    StepSpeed::Duration(Seconds::new(number))
}

/// Columns of a run, what a line has that states them, and the key of the number after that.
const NUMBERS: [(&str, &str, &str); 6] = [
    ("global_batch", "iteration", "global batch size: "),
    ("global_batch", "iteration", "| global_batch_size: "),
    ("gpus", "", "using world size: "),
    (
        "tensor_parallel",
        "using world size: ",
        "tensor-model-parallel size: ",
    ),
    (
        "pipeline_parallel",
        "using world size: ",
        " pipeline-model-parallel size: ",
    ),
    (
        "context_parallel",
        "using world size: ",
        "context-parallel size: ",
    ),
];

/// What all versions of the message have in common.
const OUT_OF_MEMORY: [&str; 2] = ["CUDA out of memory", "OutOfMemoryError"];

/// Notes what a line says.
pub(super) fn read_line(line: &str, log: &mut Log) {
    for (framework, beside, key, speed) in SPEEDS {
        let beside =
            after(line, beside).is_some_and(|rest| beside.is_empty() || number(rest).is_some());
        if let Some(number) = number_after(line, key).filter(|_| beside) {
            log.framework = Some(framework);
            log.steps.push(speed(number));
        }
    }
    for (column, beside, key) in NUMBERS {
        if let Some(rest) = after(line, beside) {
            log.note_number(column, number_after(rest, key));
        }
    }
    let total = number_after(line, "| tokens_per_sec: ");
    let each = number_after(line, "| tokens_per_sec_per_gpu: ");
    if let (Some(total), Some(each)) = (total, each) {
        // Both are rounded to three digits.
        log.note_number("gpus_about", Some((total / each).round().max(1.0)));
    }
    read_memory(line, log);
    if let Some((name, value)) = argument(line) {
        let values = &mut log.arguments.values;
        values.insert(name.to_owned(), value.to_owned());
    }
    if let Some(rest) = after(line, "device mesh with [") {
        read_mesh(rest, log);
    }
    if OUT_OF_MEMORY.iter().any(|message| line.contains(message)) {
        log.out_of_memory = log.out_of_memory.or(Some(None));
    }
    // The capacity may stand in the next line.
    if log.out_of_memory == Some(None)
        && let Some(capacity) = memory_after(line, "total capacity of ")
    {
        log.out_of_memory = Some(Some(Bytes::new(capacity)));
    }
}

/// Notes peaks, and the memory of a GPU.
fn read_memory(line: &str, log: &mut Log) {
    // Several ranks may write into one line.
    for report in line.split("[Rank ").skip(1) {
        // The `MB` of Megatron-LM are binary.
        let binary = number_after(report, "| max allocated: ").map(|it| it * 1024.0 * 1024.0);
        let decimal = number_after(report, "mem-max-allocated-gigabytes: ").map(|it| it * 1e9);
        if let (Some(memory), Some(rank)) = (binary.or(decimal), number(report)) {
            log.framework = Some("megatron-lm");
            log.note_peak(Some(rank), None, memory);
        }
    }
    let speed = number_after(line, "step: ").and(number_after(line, " tps: "));
    if let (Some(_), Some(memory)) = (speed, memory_after(line, " memory: ")) {
        log.note_peak(number_after(line, "[rank"), None, memory);
    }
    if let Some(memory) = memory_after(line, "Peak allocated ") {
        let stage = number_after(line, "|PP=").unwrap_or(0.0);
        log.note_peak(None, Some(stage), memory);
    }
    if let Some(rest) = after(line, "CUDA capacity: ") {
        let memory = memory_after(rest, " with ").map(Bytes::new);
        log.gpu_memory = log.gpu_memory.or(memory);
    }
}

/// A line of Megatron-LM's dump of arguments: `  tensor_model_parallel_size ............ 4`.
fn argument(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once(" ..")?;
    let name = name.rsplit([' ', ':']).next()?;
    let value = value.trim_start_matches('.').trim();
    (MEGATRON_LM.has(name) && !value.is_empty()).then_some((name, value))
}

/// torchtitan's mesh: `'dp_shard', 'tp'], [4, 2]`.
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
        assert!((largest.memory.value() - 12680.6 * 1024.0 * 1024.0).abs() < 1.0);
    }

    #[test]
    fn other_lines_say_nothing() {
        let log = read("loading checkpoint .. done\n[Rank 3] hello\niteration 7 starts");
        assert_eq!(log, Log::default());
    }
}
