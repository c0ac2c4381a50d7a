//! Runs read from logs, invented in the formats of the frameworks.

use parlayout::logs::{self, Facts};
use parlayout::runs::{Run, Status};

use crate::support::project;

/// The run of a log of `tests/data/logs` with its note.
fn run(log: &str, launch: Option<&str>, stated: Facts) -> Result<(Run, String), String> {
    let folder = project("tests/data/logs");
    let text = std::fs::read_to_string(folder.join(log)).expect("it is there");
    let launched = launch.map(|file| logs::launch(&folder.join(file)).expect("it is readable"));
    let read = logs::read(&text);
    logs::run(log, &read, stated, launched.unwrap_or_default()).map_err(|error| error.to_string())
}

/// Degrees, micro-batch and batch.
fn degrees(run: &Run) -> [Option<u32>; 6] {
    [
        run.gpus,
        run.tensor_parallel,
        run.pipeline_parallel,
        run.data_parallel,
        run.micro_batch,
        run.global_batch.map(|size| size as u32),
    ]
}

fn close(found: Option<f64>, expected: f64) {
    let found = found.expect("it is stated");
    assert!(
        (found / expected - 1.0).abs() < 0.005,
        "{found} is not {expected}"
    );
}

#[test]
fn megatron_dumps_its_arguments() {
    let (run, note) = run("megatron.log", None, Facts::default()).expect("it is complete");
    assert_eq!(degrees(&run), [16, 2, 2, 4, 1, 128].map(Some));
    assert_eq!(
        (run.layers, run.hidden, run.vocabulary),
        (Some(32), Some(4096), Some(128_256))
    );
    assert_eq!((run.key_value_heads, run.mlp_matrices), (Some(8), Some(3)));
    assert_eq!(run.sequence_parallel, Some(true));
    assert_eq!(
        (run.checkpointing.as_str(), run.sharding.as_str()),
        ("none", "zero-1")
    );
    assert_eq!(
        (run.precision.as_str(), run.gradient_bytes),
        ("bf16", Some(4.0))
    );
    assert_eq!(
        (run.framework.as_str(), run.status),
        ("megatron-lm", Status::Ok)
    );
    // Two ranks share a line; the first rank of the first stage has the largest peak.
    close(run.step_time, 8.93);
    close(run.peak_memory, 35.9);
    assert_eq!(run.peak_stage, Some(0));
    assert!(note.contains("rank 0, stage 0"), "{note}");
}

#[test]
fn a_script_says_what_a_failed_run_was() {
    let (run, note) = run(
        "megatron-oom.log",
        Some("megatron-oom.sh"),
        Facts::default(),
    )
    .expect("it is complete");
    assert_eq!(degrees(&run), [16, 1, 2, 8, 4, 128].map(Some));
    assert_eq!(run.status, Status::OutOfMemory);
    assert_eq!((run.step_time, run.peak_memory), (None, None));
    assert_eq!(run.gpus_per_node, Some(8));
    assert!(note.contains("ran out of the 79.1 GiB"), "{note}");
}

#[test]
fn torchtitan_states_throughput() {
    let missing = run("torchtitan.log", Some("torchtitan.toml"), Facts::default());
    let message = missing.expect_err("the flavour is no shape");
    assert!(message.contains("does not say the network"), "{message}");
    let network = Facts {
        layers: Some(32),
        hidden: Some(4096),
        heads: Some(32),
        feed_forward_width: Some(14336),
        ..Facts::default()
    };
    let (run, _) = run("torchtitan.log", Some("torchtitan.toml"), network).expect("complete");
    assert_eq!(degrees(&run), [8, 1, 1, 8, 1, 8].map(Some));
    assert_eq!(
        (run.checkpointing.as_str(), run.sharding.as_str()),
        ("full", "zero-3")
    );
    assert_eq!(run.framework, "fsdp");
    // 8192 tokens a step and GPU at 5,100 a second.
    close(run.step_time, 8192.0 / 5100.0);
    close(run.peak_memory, 41.9);
}

#[test]
fn nanotron_logs_the_first_stage() {
    let (run, _) = run("nanotron.log", Some("nanotron.yaml"), Facts::default()).expect("complete");
    assert_eq!(degrees(&run), [16, 4, 2, 2, 2, 128].map(Some));
    assert_eq!(run.sequence_parallel, Some(true));
    assert_eq!(
        (run.sharding.as_str(), run.gradient_bytes),
        ("zero-1", Some(6.0))
    );
    assert_eq!(
        (run.framework.as_str(), run.peak_stage),
        ("nanotron", Some(0))
    );
    close(run.step_time, 5.62);
    close(run.peak_memory, 33550.5 / 1024.0);
}

#[test]
fn what_the_user_states_comes_first() {
    let stated = logs::layout("micro_batch=2,tensor_parallel=4").expect("it is right");
    let (run, _) = run("megatron.log", None, stated).expect("it is complete");
    assert_eq!(degrees(&run), [16, 4, 2, 2, 2, 128].map(Some));
}

#[test]
fn logs_that_say_nothing_are_refused() {
    let refused = |text: &str, part: &str| {
        let read = logs::read(text);
        let error = logs::run("x.log", &read, Facts::default(), Facts::default());
        let message = error.expect_err("it says too little").to_string();
        assert!(message.contains(part), "{message}");
    };
    refused("", "states no step time");
    refused(
        "elapsed time per iteration (ms): 12.5 | global batch size: 8",
        "does not say the network, the number of GPUs",
    );
    refused(
        "  decoder_first_pipeline_num_layers ......... 7\n elapsed time per iteration (ms): 1",
        "spreads layers unevenly",
    );
    // Bytes of any kind are no reason to fail.
    refused(
        "\u{1b}[ \u{0} step: , tps: , memory: GiB [Rank ] iteration",
        "states no step time",
    );
}
