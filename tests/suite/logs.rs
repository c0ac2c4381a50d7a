//! Runs read from logs, invented in the formats of the frameworks.

use parlayout::laboratory::logs::{self, Facts};
use parlayout::laboratory::runs::{Run, Status};

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
    let layout = "16 GPUs, TP 2, PP 2, DP 4, CP 1, micro-batch 1, global batch 128, sequences of";
    assert!(note.contains(layout), "{note}");
    assert!(note.contains("recompute none, sharding zero-1"), "{note}");
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
    assert!(message.ends_with("hint: give `--model`"), "{message}");
    let shape = [
        ("layers", 32),
        ("hidden", 4096),
        ("heads", 32),
        ("ffn", 14336),
    ];
    let network = shape
        .iter()
        .fold(Facts::default(), |facts, (column, size)| {
            facts.with(column, Some(size))
        });
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
    let (found, note) = run("megatron.log", None, stated).expect("it is complete");
    assert_eq!(degrees(&found), [16, 4, 2, 2, 2, 128].map(Some));
    let overruled = "the log says otherwise: TP 2, micro-batch 1";
    assert!(note.contains(overruled), "{note}");
    let more = Facts::default().with("gpus", Some(64));
    let message = run("megatron.log", None, more).expect_err("the log says 16");
    assert!(
        message.contains("is of 16 GPUs, `--gpus` says 64"),
        "{message}"
    );
}

#[test]
fn one_iteration_is_no_step_time() {
    let iteration = "elapsed time per iteration (ms): 34800.0 |";
    let peak = "[Rank 0] (after 1 iterations) memory (MB) | max allocated: 35000.1 |";
    let log = logs::read(&format!("{iteration}\n{peak}"));
    let launch = project("tests/data/logs/megatron-oom.sh");
    let launched = logs::launch(&launch).expect("it is readable");
    let (run, note) = logs::run("x.log", &log, Facts::default(), launched).expect("complete");
    assert_eq!(run.step_time, None);
    close(run.peak_memory, 34.18);
    assert!(
        note.contains("the only logged iteration is a warm-up"),
        "{note}"
    );
}

/// What is read of a script like `megatron-oom.sh` with one part replaced.
fn launched(number: u32, from: &str, to: &str) -> Facts {
    let process = std::process::id();
    let path = std::env::temp_dir().join(format!("parlayout-{number}-{process}.sh"));
    let script = std::fs::read_to_string(project("tests/data/logs/megatron-oom.sh"));
    let script = script.expect("it is there");
    assert!(script.contains(from), "{from}");
    std::fs::write(&path, script.replace(from, to)).expect("the folder is writable");
    let launched = logs::launch(&path).expect("it is readable");
    std::fs::remove_file(path).expect("it was written");
    launched
}

#[test]
fn degrees_of_one_line_are_read() {
    let log = logs::read("CUDA out of memory");
    let scripts = [
        ("TP=${TP:-1}\nPP=2 # stages", "TP=4; PP=2"),
        (
            "torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py \\\n    ${GPT_ARGS[@]} ${TRAINING_ARGS} \\\n    --tensor-model-parallel-size $TP",
            "ARGS=(--tensor-model-parallel-size 4 --nnodes 2)\nrun --nproc_per_node 8 ${ARGS[@]}",
        ),
    ];
    for (number, (from, to)) in (0..).zip(scripts) {
        let launched = launched(number, from, to);
        let (run, _) = logs::run("x.log", &log, Facts::default(), launched).expect("complete");
        assert_eq!(run.tensor_parallel, Some(4), "{to}");
        assert_eq!(run.pipeline_parallel, Some(2), "{to}");
    }
}

#[test]
fn variables_that_nobody_knows_are_named() {
    let log = logs::read("CUDA out of memory");
    let degrees = [
        ("context-parallel-size", "context_parallel"),
        ("expert-model-parallel-size", "expert_parallel"),
        ("num-layers-per-virtual-pipeline-stage", "virtual_stages"),
    ];
    for (number, (flag, axis)) in (10..).zip(degrees) {
        let launched = launched(number, "--num-layers", &format!("--{flag} $N --num-layers"));
        let message = logs::run("x.log", &log, Facts::default(), launched.clone());
        let message = message.expect_err("nobody knows").to_string();
        assert!(message.contains(&format!("`--{flag} $N`")), "{message}");
        assert!(
            message.contains(&format!("`--layout {axis}=…`")),
            "{message}"
        );
        let stated = logs::layout(&format!("{axis}=1")).expect("it is right");
        assert!(logs::run("x.log", &log, stated, launched).is_ok());
    }
    let launched = launched(
        20,
        "--tensor-model-parallel-size $TP",
        "--tensor-model-parallel-size four",
    );
    let message = logs::run("x.log", &log, Facts::default(), launched);
    let message = message.expect_err("it is no number").to_string();
    assert!(message.contains("the tensor-parallel degree"), "{message}");
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

/// What `calibrate` prints of a log of `tests/data/logs`.
fn calibrated(arguments: &[&str]) -> String {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_parlayout"))
        .arg("calibrate")
        .args(arguments)
        .current_dir(project("tests/data/logs"))
        .output()
        .expect("the binary runs");
    let text = [output.stdout, output.stderr].concat();
    String::from_utf8(text).expect("output is UTF-8")
}

#[test]
fn flavours_of_the_catalog_are_known() {
    let log = [
        "--from-log",
        "torchtitan.log",
        "--launch",
        "torchtitan.toml",
    ];
    let text = calibrated(&[&log[..], &["--cluster", "dgx-h100-80gb"]].concat());
    assert!(text.contains("read as llama-3-8b, 32 layers"), "{text}");
}

#[test]
fn logs_of_another_gpu_are_refused() {
    let log = [
        "--from-log",
        "megatron-oom.log",
        "--launch",
        "megatron-oom.sh",
    ];
    let text = calibrated(&[&log[..], &["--cluster", "dgx-b200"]].concat());
    let part = "is of a GPU with 79.1 GiB, a GPU of `dgx-b200` has 178.3 GiB";
    assert!(text.contains(part), "{text}");
}
