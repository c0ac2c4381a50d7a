//! The binary as a user runs it: output, messages and exit codes.

use std::path::Path;
use std::process::{Command, Output};

use crate::support::{project, snapshot};

/// Runs the binary in the project's folder.
fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_parlayout"))
        .args(arguments)
        .current_dir(project(""))
        .env_remove("NO_COLOR")
        .output()
        .expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("output is UTF-8")
}

/// Runs the binary and demands an exit code.
pub(crate) fn check(arguments: &[&str], code: i32) -> (String, String) {
    let output = run(arguments);
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(
        output.status.code(),
        Some(code),
        "{arguments:?}\n{stdout}\n{stderr}"
    );
    assert!(!stderr.contains("panicked"), "{arguments:?}\n{stderr}");
    (stdout, stderr)
}

/// Runs the binary, demands an exit code, and compares both streams with a snapshot.
pub(crate) fn check_snapshot(name: &str, arguments: &[&str], code: i32) {
    let (stdout, stderr) = check(arguments, code);
    let shown = format!(
        "$ parlayout {}\nexit code {code}\n--- stdout\n{stdout}--- stderr\n{stderr}",
        arguments.join(" ")
    );
    snapshot(&format!("cli_{name}"), &shown);
}

const PAPER: &str = "instances/hagemann-13b-2k-64gpu.toml";

#[test]
fn help_teaches() {
    check_snapshot("help", &["--help"], 0);
    check_snapshot("help_solve", &["solve", "--help"], 0);
}

#[test]
fn times_are_told_on_standard_error_alone() {
    let (quiet, nothing) = check(&["solve", PAPER], 0);
    let (stdout, stderr) = check(&["solve", PAPER, "--verbose"], 0);
    assert_eq!((stdout, nothing.as_str()), (quiet, ""));
    assert!(stderr.contains("ms in all; HiGHS took"), "{stderr}");
}

#[test]
fn one_off_flags_need_no_file() {
    let flags = [
        "solve",
        "--model",
        "llama-13b",
        "--cluster",
        "dgx-a100-80gb",
        "--gpus",
        "64",
        "--sequence-length",
        "2048",
        "--global-batch",
        "2048",
    ];
    check_snapshot("one_off", &flags, 0);
}

#[test]
fn usage_errors_say_what_would_be_right() {
    check_snapshot("no_instance", &["solve"], 2);
    check_snapshot("missing_file", &["solve", "instances/absent.toml"], 2);
    check_snapshot(
        "misspelt_preset",
        &["solve", PAPER, "--model", "lama-13b"],
        2,
    );
    check_snapshot(
        "misspelt_key",
        &["solve", PAPER, "--set", "cluster.gpu=32"],
        2,
    );
    check_snapshot(
        "bad_layout_key",
        &["evaluate", PAPER, "--layout", "tensor_paralel=2"],
        2,
    );
    check_snapshot(
        "bad_layout_value",
        &["evaluate", PAPER, "--layout", "micro_batch=0"],
        2,
    );
    check_snapshot("no_layout", &["evaluate", PAPER], 2);
    check_snapshot("too_many_gpus", &["solve", PAPER, "--gpus", "1048577"], 2);
    check_snapshot(
        "bad_model_file",
        &["solve", PAPER, "--write-model", "model.txt"],
        2,
    );
}

#[test]
fn infeasible_is_exit_code_3_with_reasons() {
    let file = "instances/llama-65b-2k-16gpu-24gb.toml";
    check_snapshot("infeasible", &["solve", file], 3);
    let (json, _) = check(&["solve", file, "--format", "json"], 3);
    let document: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(document["status"], "infeasible");
    assert!(document["layout"].is_null() && document["prediction"].is_null());
}

#[test]
fn fifty_two_heads_forbid_tensor_parallel_8() {
    let flags = [
        "--model",
        "llama-30b",
        "--cluster",
        "dgx-a100-80gb",
        "--gpus",
        "64",
    ];
    let work = ["--sequence-length", "2048", "--global-batch", "512"];
    let job = [&flags[..], &work[..]].concat();
    let solved = check(&[&["solve", "--format", "json"][..], &job[..]].concat(), 0).0;
    let document: serde_json::Value = serde_json::from_str(&solved).expect("JSON");
    let degree = document["layout"]["tensor_parallel"]
        .as_u64()
        .expect("a degree");
    assert_eq!(52 % degree, 0);
    let evaluate = ["evaluate", "--layout", "tensor_parallel=8"];
    let (table, _) = check(&[&evaluate[..], &job[..]].concat(), 3);
    assert!(table.contains("heads_divisible"), "{table}");
}

#[test]
fn a_comparison_says_which_side_is_illegal() {
    let (stdout, _) = check(&["diff", PAPER, "--layout", "tensor_parallel=3"], 3);
    assert!(
        stdout.contains("B is not a legal layout of this job:"),
        "{stdout}"
    );
    assert!(stdout.contains("- heads_divisible:"), "{stdout}");
    check(&["diff", PAPER, "--layout", "tensor_parallel=2"], 0);
    let (_, stderr) = check(&["explain", PAPER, "--why-not", "layers=20+20"], 2);
    assert!(stderr.contains("`layers` is no axis"), "{stderr}");
    check(&["explain", PAPER, "--why-not", ""], 2);
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn the_output_layer_does_not_hide_behind_a_slower_stage() {
    // Stage 0 is the slowest of the first layout, the last of the second.
    let layouts = ["11x3+7", "10x4"].map(|layers| format!("pipeline_parallel=4,layers={layers}"));
    let diff = ["diff", PAPER, "--format", "json"];
    let diff = [
        &diff[..],
        &["--layout", &layouts[0], "--layout", &layouts[1]],
    ]
    .concat();
    let document = json(&check(&diff, 3).0);
    let terms = document["time"].as_array().expect("terms");
    let head = terms.iter().find(|term| term["component"] == "head");
    let head = head.expect("the output layer");
    assert!(head["left_s"].as_f64().expect("seconds") > 0.0, "{head}");
    assert_eq!(head["left_s"], head["right_s"]);
    assert_eq!(document["left"]["prediction"]["slowest_stage"], 0);
    assert_eq!(document["right"]["prediction"]["slowest_stage"], 3);
    let evaluate = ["evaluate", PAPER, "--layout", &layouts[0]];
    let table = check(&evaluate, 3).0;
    for shown in [
        "step time, mean of 4 stages",
        "bubble (stage 0 is the slowest)",
    ] {
        assert!(table.contains(shown), "{table}");
    }
}

#[test]
fn layouts_of_a_job_of_flags_are_compared() {
    let job = "--model llama-13b --cluster dgx-a100-80gb --gpus 64 --sequence-length 2048 --global-batch 512";
    let layouts = "--layout tensor_parallel=2 --layout tensor_parallel=4";
    let line = format!("diff {job} {layouts}");
    let (stdout, _) = check(&line.split(' ').collect::<Vec<_>>(), 0);
    assert!(stdout.contains("B instead of A loses"), "{stdout}");
    let (_, stderr) = check(&["diff", "--model", "llama-13b"], 2);
    assert!(stderr.contains("or flags such as `--model`"), "{stderr}");
}

#[test]
fn different_jobs_are_compared_by_utilisation_and_tokens() {
    let other = "instances/hagemann-13b-8k-64gpu.toml";
    let (stdout, _) = check(&["diff", PAPER, other], 0);
    let (headline, _) = stdout.split_once("\nA: ").expect("layouts follow");
    let headline = headline.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        headline.contains("tokens/s/GPU: the step times are of different jobs (sequence length")
    );
    for never in ["gains", "loses", "difference |"] {
        assert!(!headline.contains(never), "{headline}");
    }
    assert!(!stdout.contains("MFU points"), "{stdout}");
}

#[test]
fn a_run_of_tokens_takes_days_and_gpu_hours() {
    let solve = ["solve", PAPER, "--tokens", "300B"];
    let (table, _) = check(&solve, 0);
    let objective =
        json(&check(&[&solve[..], &["--format", "json"]].concat(), 0).0)["objective"].take();
    let [days, hours] =
        ["run_days", "run_gpu_hours"].map(|key| objective[key].as_f64().expect(key));
    assert!((hours / days / (24.0 * 64.0) - 1.0).abs() < 1e-5);
    let told = format!("takes {days:.1} days, ");
    assert!(
        table.contains(&told) && table.contains(" GPU-hours."),
        "{table}"
    );
}

#[test]
fn answers_say_on_what_few_runs_they_lean() {
    let evaluate = |layout| {
        let file = "instances/qwen2.5-32b-4k-64xh100.toml";
        let evaluate = ["evaluate", file, "--layout", layout, "--format", "json"];
        json(&check(&evaluate, 0).0)["trust"].take()
    };
    let plain = evaluate("tensor_parallel=4,pipeline_parallel=2");
    let context = evaluate("tensor_parallel=4,pipeline_parallel=2,context_parallel=2");
    assert_eq!(plain["widened_by"], serde_json::json!([]));
    assert_eq!(context["widened_by"][0]["mechanism"], "context-parallelism");
    let band = |trust: &serde_json::Value| trust["step_time_band"].as_f64().expect("a band");
    assert!(band(&context) > band(&plain));
}

#[test]
fn evaluate_shows_every_term() {
    let layout = "tensor_parallel=2,pipeline_parallel=2,micro_batch=2,rmsnorm_kernel=false";
    check_snapshot("evaluate", &["evaluate", PAPER, "--layout", layout], 0);
    let broken = "tensor_parallel=3,pipeline_parallel=2,micro_batch=5";
    check_snapshot(
        "evaluate_broken",
        &["evaluate", PAPER, "--layout", broken],
        3,
    );
}

#[test]
fn pruning_changes_nothing_but_the_proof() {
    for formulation in ["layout-choice", "staged"] {
        let solve = [
            "solve",
            PAPER,
            "--format",
            "json",
            "--formulation",
            formulation,
        ];
        let pruned = check(&solve, 0).0;
        let whole = check(&[&solve[..], &["--no-prune"]].concat(), 0).0;
        let strip = |json: &str| {
            let mut document: serde_json::Value = serde_json::from_str(json).expect("JSON");
            let proof = document["proof"].as_object_mut().expect("a proof");
            proof.retain(|key, _| !key.starts_with("cells") && key != "tolerance");
            document
        };
        assert_eq!(strip(&pruned), strip(&whole), "{formulation}");
    }
}

#[test]
fn models_are_written_with_named_rows_and_columns() {
    let folder = std::env::temp_dir().join(format!("parlayout-model-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the models");
    for extension in ["lp", "mps"] {
        let path = folder.join(format!("model.{extension}"));
        let solve = [
            "solve",
            PAPER,
            "--formulation",
            "layout-choice",
            "--write-model",
        ];
        check(&[&solve[..], &[path.to_str().expect("UTF-8")]].concat(), 0);
        let model = std::fs::read_to_string(&path).expect("the model is written");
        for name in [
            "gpu_count",
            "forbidden(0)",
            "tensor_parallel(2)",
            "step_time",
        ] {
            assert!(model.contains(name), "{extension} lacks {name}");
        }
    }
    std::fs::remove_dir_all(&folder).expect("the folder is ours");
}

#[test]
fn batch_goes_on_past_bad_files_and_resumes() {
    let folder = std::env::temp_dir().join(format!("parlayout-batch-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the batch");
    let copy = |from: &str, to: &str| {
        std::fs::copy(project(from), folder.join(to)).expect("the instance is copied");
    };
    copy(PAPER, "a-good.toml");
    std::fs::write(
        folder.join("b-bad.toml"),
        "[model]\npreset = \"llama-13\"\n",
    )
    .expect("written");
    copy(
        "instances/llama-65b-2k-16gpu-24gb.toml",
        "c-infeasible.toml",
    );
    let output = folder.join("rows.jsonl");
    let (folder_text, output_text) = (
        folder.to_str().expect("UTF-8"),
        output.to_str().expect("UTF-8"),
    );
    let batch = [
        "batch",
        folder_text,
        "--format",
        "jsonl",
        "--output",
        output_text,
    ];
    let (first, stderr) = check(&batch, 2);
    assert!(
        stderr.contains("1 of 3 instances could not be solved"),
        "{stderr}"
    );
    let statuses: Vec<String> = first
        .lines()
        .map(|line| {
            let row: serde_json::Value = serde_json::from_str(line).expect("a JSON line");
            row["status"].as_str().expect("a status").to_owned()
        })
        .collect();
    assert_eq!(statuses, ["optimal", "error", "infeasible"]);
    assert_eq!(std::fs::read_to_string(&output).expect("rows"), first);
    // Half of the rows, as after an interruption: the rest is solved, the file is whole again.
    let half = first
        .split_inclusive('\n')
        .next()
        .unwrap_or_default()
        .to_owned();
    std::fs::write(&output, half + "{\"instance\":\"cut").expect("written");
    assert_eq!(check(&batch, 2).0, first);
    assert_eq!(std::fs::read_to_string(&output).expect("rows"), first);
    std::fs::remove_dir_all(&folder).expect("the folder is ours");
}

#[test]
fn runs_get_predictions_appended() {
    let path = "tests/data/runs.csv";
    assert!(Path::new(&project(path)).exists());
    check_snapshot(
        "evaluate_runs",
        &["evaluate", "--runs", path, "--format", "csv"],
        0,
    );
    check_snapshot(
        "evaluate_runs_bad",
        &["evaluate", "--runs", "tests/data/bad-runs.csv"],
        2,
    );
}

#[test]
fn export_prints_flags() {
    let file = "instances/llama-3.1-70b-8k-64xh100.toml";
    check_snapshot("export", &["export", file, "--to", "megatron-lm"], 0);
}

#[test]
fn catalog_lists_presets_with_sources() {
    check_snapshot("catalog_h100", &["catalog", "h100"], 0);
    check_snapshot("catalog_nothing", &["catalog", "abacus"], 2);
    check_snapshot(
        "catalog_explain",
        &["catalog", "--explain", "mi355x-288gb"],
        0,
    );
}

#[test]
fn the_same_command_prints_the_same_bytes() {
    let solve = [
        "solve",
        "instances/llama-3.1-405b-8k-8192xh100.toml",
        "--format",
        "json",
    ];
    assert_eq!(check(&solve, 0), check(&solve, 0));
}

#[test]
fn runs_calibrate_a_cluster() {
    let runs = "tests/data/our-cluster.csv";
    let calibrate = ["calibrate", runs, "--cluster", "dgx-a100-80gb"];
    check_snapshot("calibrate", &calibrate, 0);
    let file = std::env::temp_dir().join(format!("parlayout-mine-{}.toml", std::process::id()));
    let file = file.to_string_lossy();
    let flags = ["-o", &file, "--learn-residuals"];
    check(&[&calibrate[..], &flags].concat(), 0);
    let (predicted, _) = check(&["evaluate", "--runs", runs, "--cluster", &file], 0);
    assert!(predicted.starts_with("17 rows, 16 modelled"), "{predicted}");
    let (solved, _) = check(&["solve", PAPER, "--cluster", &file], 0);
    assert!(solved.contains("calibrated cluster"), "{solved}");
    std::fs::remove_file(&*file).expect("it was written");
}

#[test]
fn logs_calibrate_a_cluster() {
    let flags = [
        "calibrate",
        "--cluster",
        "dgx-h100-80gb",
        "--from-log",
        "tests/data/logs/megatron.log",
        "--from-log",
        "tests/data/logs/megatron-oom.log",
        "--launch",
        "tests/data/logs/megatron-oom.sh",
    ];
    check_snapshot("calibrate_from_logs", &flags, 0);
    let unknown = &flags[..3];
    let (_, stderr) = check(unknown, 2);
    assert!(stderr.contains("RUNS.csv"), "{stderr}");
}

#[test]
fn runs_that_cannot_calibrate_are_refused() {
    let refused = |arguments: &[&str], part: &str| {
        let (_, stderr) = check(arguments, 2);
        assert!(stderr.contains(part), "{stderr}");
    };
    let runs = "tests/data/our-cluster.csv";
    refused(
        &["calibrate", runs, "--cluster", "dgx-b200"],
        "none of 17 runs can be used",
    );
    refused(
        &["calibrate", runs, "--cluster", "dgx-z"],
        "no cluster `dgx-z`",
    );
    let nowhere = [
        "calibrate",
        runs,
        "--cluster",
        "dgx-a100-80gb",
        "-o",
        "/nowhere/mine.toml",
    ];
    refused(&nowhere, "cannot write `/nowhere/mine.toml`");
    let logs = "tests/data/logs/megatron-oom";
    let [log, script] = ["log", "sh"].map(|ending| format!("{logs}.{ending}"));
    refused(
        &["calibrate", &log, &script, "--cluster", "dgx-a100-80gb"],
        &format!("`--launch`: `--from-log {log} --launch {script}`"),
    );
}

#[test]
fn a_template_of_runs_is_filled_in_by_preset() {
    let (template, _) = check(&["calibrate", "--template"], 0);
    let file = std::env::temp_dir().join(format!("parlayout-runs-{}.csv", std::process::id()));
    let path = file.to_string_lossy();
    let calibrate = ["calibrate", &path, "--cluster", "dgx-h100-80gb"];
    // As it is, it teaches nothing.
    std::fs::write(&file, &template).expect("the folder is writable");
    let (_, stderr) = check(&calibrate, 2);
    assert!(stderr.contains("no status stated"), "{stderr}");
    let filled = template.replace(",,,\n", ",ok,9.5,41.0\n");
    std::fs::write(&file, &filled).expect("the folder is writable");
    let (text, _) = check(&calibrate, 0);
    assert!(text.contains("1 step time, 1 peak"), "{text}");
    let unknown = filled.replace("llama-3.1-8b", "our-own");
    std::fs::write(&file, unknown).expect("the folder is writable");
    let (_, stderr) = check(&calibrate, 2);
    assert!(stderr.contains("`model` names no preset"), "{stderr}");
    std::fs::remove_file(&file).expect("it was written");
}

/// Flags of a small job.
fn job<'a>(further: &[&'a str]) -> Vec<&'a str> {
    let job = [
        "--model=llama-2-13b",
        "--cluster=dgx-a100-80gb",
        "--sequence-length=4096",
        "--global-batch=512",
    ];
    [&job[..], further].concat()
}

#[test]
fn one_is_never_many_and_thousands_are_apart() {
    let flags = job(&["--gpus=1"]);
    let (stdout, _) = check(&[&["solve"], &flags[..]].concat(), 3);
    assert!(stdout.starts_with("llama-2-13b on 1 GPU of"), "{stdout}");
    let layout = ["evaluate", "--layout=tp=15,pp=21,dp=25"];
    let flags = job(&["--gpus=64"]);
    let (stdout, _) = check(&[&layout[..], &flags].concat(), 3);
    let stdout = stdout.replace("\n  ", " ");
    assert!(
        stdout.contains("= 7,875, but the job has 64 GPUs"),
        "{stdout}"
    );
    let layout = ["evaluate", "--layout=pp=2,layers=40"];
    let (_, stderr) = check(&[&layout[..], &flags].concat(), 2);
    let right = "lists 1 stage with 40 layers in all; the network has 40 layers on 2 stages";
    assert!(stderr.contains(right), "{stderr}");
}

#[test]
fn a_node_in_part_is_said_once() {
    let flags = job(&["--gpus=12"]);
    let (stdout, stderr) = check(&[&["solve"], &flags[..]].concat(), 3);
    assert_eq!(stdout.matches("do not fill nodes").count(), 1, "{stdout}");
    assert!(
        !stdout.contains("warning") && stderr.is_empty(),
        "{stdout}{stderr}"
    );
}

#[test]
fn equal_stages_share_a_line() {
    let flags = job(&["--gpus=16", "--layout=pp=8,tp=2,checkpointing=full"]);
    let (stdout, _) = check(&[&["evaluate"], &flags[..]].concat(), 0);
    let table = stdout
        .split("Memory by stage")
        .nth(1)
        .expect("there is one");
    let lines: Vec<&str> = table
        .lines()
        .skip(2)
        .take_while(|line| !line.is_empty())
        .collect();
    let shown = |line: &&str| {
        let fields: Vec<&str> = line.split_whitespace().skip(1).collect();
        fields.join(" ")
    };
    for pair in lines.windows(2) {
        assert_ne!(shown(&pair[0]), shown(&pair[1]), "{table}");
    }
}

#[test]
fn a_diff_of_answers_takes_no_flags_of_a_job() {
    let folder = crate::support::folder("diff-flags");
    let path = folder.join("answer.json");
    let (stdout, _) = check(&["solve", PAPER, "--format=json"], 0);
    std::fs::write(&path, stdout).expect("writable");
    let answer = path.to_string_lossy();
    let (_, stderr) = check(&["diff", &answer, PAPER, "--gpus", "32"], 2);
    assert!(
        stderr.contains("is an answer, which `--gpus 32` does not change"),
        "{stderr}"
    );
    check(&["diff", &answer, PAPER], 0);
}

#[test]
fn exports_say_what_they_are_not() {
    let flags = job(&["--gpus=64", "--framework=deepspeed", "--to=megatron-lm"]);
    let (stdout, _) = check(&[&["export"], &flags[..]].concat(), 0);
    let words = stdout.replace("\n# ", " ");
    let note = "The layout was planned for deepspeed, whose memory and speed are others than";
    assert!(words.contains(note), "{stdout}");
    let (stdout, _) = check(&["export", PAPER, "--to=megatron-lm"], 0);
    assert!(!stdout.contains("was planned for"), "{stdout}");
}

#[test]
fn several_logs_follow_one_flag() {
    let logs = [
        "tests/data/logs/megatron.log",
        "tests/data/logs/megatron.log",
    ];
    let flags = ["calibrate", "--cluster=dgx-h100-80gb", "--from-log"];
    let (stdout, _) = check(&[&flags[..], &logs, &["--format=json"]].concat(), 0);
    assert!(
        stdout.contains("2 runs of megatron.log, megatron.log"),
        "{stdout}"
    );
}

#[test]
fn what_is_asked_for_is_answered_with_what_the_framework_has() {
    let flags = job(&["--gpus=64", "--framework=deepspeed"]);
    for (asked, repair) in [
        ("virtual_stages=2", "--set search.virtual_stages=1"),
        ("PP 2, zero-3", "--set search.sharding=zero-1"),
    ] {
        let (stdout, _) = check(&[&["explain", "--why-not", asked], &flags[..]].concat(), 3);
        assert!(stdout.contains(repair), "{stdout}");
        assert!(stdout.contains("it was solved"), "{stdout}");
    }
}

#[test]
fn verdicts_on_answers_without_a_layout_are_in_words() {
    let folder = crate::support::folder("verdicts");
    let verdict = |solve: &[&str], code: i32, expected: &str| {
        let (stdout, _) = check(solve, code);
        let path = folder.join("answer.json");
        std::fs::write(&path, stdout).expect("writable");
        let (stdout, _) = check(&["verify", &path.to_string_lossy()], 0);
        assert!(stdout.starts_with(expected), "{stdout}");
        assert!(!stdout.contains("Every figure and every rule"), "{stdout}");
    };
    let flags = job(&["--gpus=1", "--format=json"]);
    let infeasible = "accepted: infeasible: no layout satisfies every rule";
    verdict(&[&["solve"], &flags[..]].concat(), 3, infeasible);
    let unknown = "accepted: unknown: the answer names no layout, so there is none to check";
    let limit = ["solve", PAPER, "--format=json", "--time-limit=0"];
    verdict(&limit, 4, unknown);
}
