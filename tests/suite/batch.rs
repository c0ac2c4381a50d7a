//! `batch --output`: what is resumed, what is solved anew, and that no finished row is ever lost.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{folder, project};

/// A job that is solved in a moment.
fn small(layers: u32) -> String {
    format!(
        "[model]\nlayers = {layers}\nhidden = 512\nheads = 8\nfeed_forward_width = 2048\n\
         vocabulary = 1000\n[cluster]\npreset = \"dgx-a100-80gb\"\ngpus = 8\n[training]\n\
         sequence_length = 1024\nglobal_batch = 8\n"
    )
}

fn batch(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_parlayout"));
    command.arg("batch").args(arguments).current_dir(folder);
    command
}

/// Runs a batch into `rows.jsonl`; its standard error and its rows.
fn check(folder: &Path, arguments: &[&str], code: i32) -> (String, Vec<String>) {
    let arguments = [arguments, &["--output", "rows.jsonl"]].concat();
    let output = batch(folder, &arguments).output().expect("the binary runs");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    (stderr, rows(&folder.join("rows.jsonl")))
}

/// The finished lines of a file of results.
fn rows(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lines = text
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n'));
    lines.map(|line| line.trim_end().to_owned()).collect()
}

fn write(path: &Path, text: &str) {
    std::fs::write(path, text).expect("writable");
}

#[test]
fn whatever_an_answer_depends_on_makes_it_stale() {
    let folder = folder("batch-stale");
    let config = |layers: u32| {
        format!(
            "{{\"model_type\": \"llama\", \"num_hidden_layers\": {layers}, \"hidden_size\": 512, \
             \"intermediate_size\": 2048, \"num_attention_heads\": 8, \"num_key_value_heads\": 8, \
             \"vocab_size\": 1000, \"tie_word_embeddings\": false}}"
        )
    };
    let cluster = |memory: u32| format!("preset = \"dgx-a100-80gb\"\nmemory = \"{memory} GB\"\n");
    let instance = |batch: u32| {
        format!(
            "[model]\nconfig = \"config.json\"\n[cluster]\nfile = \"cluster.toml\"\ngpus = 8\n\
             [training]\nsequence_length = 1024\nglobal_batch = {batch}\n"
        )
    };
    write(&folder.join("config.json"), &config(8));
    write(&folder.join("cluster.toml"), &cluster(80));
    write(&folder.join("other.toml"), &cluster(79));
    write(&folder.join("job.toml"), &instance(8));
    // A marked row tells whether it was taken over.
    let mark = |row: &str| row.replace("\"error\":null", "\"error\":\"taken over\"");
    let is_resumed = |arguments: &[&str]| {
        let path = folder.join("rows.jsonl");
        let marked: Vec<String> = rows(&path).iter().map(|row| mark(row)).collect();
        write(&path, &(marked.join("\n") + "\n"));
        let (_, rows) = check(&folder, &[&["job.toml"], arguments].concat(), 0);
        assert_eq!(rows.len(), 1);
        rows[0].contains("taken over")
    };
    check(&folder, &["job.toml"], 0);
    assert!(is_resumed(&[]), "nothing changed");
    let mut changes: Vec<(&str, String)> = vec![
        ("config.json", config(9)),
        ("cluster.toml", cluster(81)),
        ("job.toml", instance(16)),
    ];
    for (file, text) in changes.drain(..) {
        write(&folder.join(file), &text);
        assert!(!is_resumed(&[]), "{file} changed");
        assert!(is_resumed(&[]), "{file} is as before");
    }
    for flags in [
        &["--cluster", "other.toml", "--gpus", "8"][..],
        &["--max-oom-risk", "0.04"],
        &["--set", "search.tensor_parallel=1"],
        &["--formulation", "layout-choice"],
        &["--no-prune"],
        &["--time-limit", "60"],
    ] {
        assert!(!is_resumed(flags), "{flags:?}");
        assert!(is_resumed(flags), "{flags:?}");
    }
    // What changes no figure changes no answer.
    check(&folder, &["job.toml"], 0);
    write(&folder.join("job.toml"), &(instance(16) + "# a remark\n"));
    assert!(is_resumed(&[]));
}

#[test]
fn another_program_answers_anew() {
    let folder = folder("batch-program");
    write(&folder.join("job.toml"), &small(8));
    let (_, before) = check(&folder, &["job.toml"], 0);
    let program = folder.join("other-program");
    let mut bytes = std::fs::read(env!("CARGO_BIN_EXE_parlayout")).expect("readable");
    bytes.push(0);
    std::fs::write(&program, bytes).expect("writable");
    std::fs::set_permissions(
        &program,
        std::fs::metadata(env!("CARGO_BIN_EXE_parlayout"))
            .expect("there")
            .permissions(),
    )
    .expect("own file");
    let status = Command::new(&program)
        .args(["batch", "job.toml", "--output", "rows.jsonl"])
        .current_dir(&folder)
        .stdout(Stdio::null())
        .status();
    assert!(status.expect("a byte at its end changes nothing").success());
    assert_ne!(rows(&folder.join("rows.jsonl")), before);
}

#[test]
fn no_finished_row_is_lost_whenever_it_is_killed() {
    let folder = folder("batch-killed");
    for layers in 1..=24 {
        write(&folder.join(format!("{layers:02}.toml")), &small(layers));
    }
    for output in ["rows.jsonl", "rows.csv"] {
        let path = folder.join(output);
        let mut finished: BTreeSet<String> = BTreeSet::new();
        let mut usual = Duration::ZERO;
        for kill in 0..50_u32 {
            let mut child = batch(&folder, &[".", "--jobs", "1", "--output", output])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("the binary runs");
            // First after each new row, then spread over a run that finds all of them and writes them anew.
            let before = finished.len();
            let start = Instant::now();
            if before < 24 {
                while rows(&path).len() <= before && child.try_wait().expect("own").is_none() {}
                std::thread::sleep(Duration::from_micros(u64::from(kill * kill % 7) * 200));
            } else if usual.is_zero() {
                child.wait().expect("it ends");
                usual = start.elapsed();
            } else {
                std::thread::sleep(usual * (kill * kill % 37) / 30);
            }
            child.kill().expect("it may be over already");
            child.wait().expect("it has ended");
            let now: BTreeSet<String> = rows(&path).into_iter().collect();
            let lost: Vec<&String> = finished.difference(&now).collect();
            assert!(lost.is_empty(), "kill {kill} of {output} lost {lost:?}");
            finished = now;
        }
        let status = batch(&folder, &[".", "--output", output])
            .output()
            .expect("it runs")
            .status;
        assert_eq!(status.code(), Some(0));
        let all = rows(&path);
        assert_eq!(all.len(), 24 + usize::from(output.ends_with("csv")));
        assert!(finished.is_subset(&all.into_iter().collect()));
        assert!(
            finished.len() >= 24 && !usual.is_zero(),
            "kills came at every stage"
        );
    }
}

#[test]
fn lines_that_are_no_rows_are_named_and_kept() {
    let folder = folder("batch-unreadable");
    for name in ["a.toml", "b.toml", "c.toml"] {
        write(&folder.join(name), &small(4));
    }
    let (_, whole) = check(&folder, &["."], 0);
    let path = folder.join("rows.jsonl");
    write(
        &path,
        &format!("{}\nmy notes\n{}\n{}\n", whole[0], whole[1], whole[2]),
    );
    let (stderr, again) = check(&folder, &["./a.toml"], 2);
    assert!(stderr.contains("no rows of a batch: 2\n"), "{stderr}");
    assert_eq!(again, whole);
    let kept = std::fs::read_to_string(folder.join("rows.jsonl.unreadable"));
    assert_eq!(kept.expect("it is kept"), "my notes\n");
    assert_eq!(check(&folder, &["."], 0).1, whole);
}

#[cfg(unix)]
#[test]
fn names_that_are_not_text_have_rows_of_their_own() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let folder = folder("batch-names");
    for (name, layers) in [
        (&b"a\xff.toml"[..], 4),
        (b"a\xfe.toml", 5),
        (b"a\\xFF.toml", 6),
    ] {
        write(&folder.join(OsStr::from_bytes(name)), &small(layers));
    }
    let (_, first) = check(&folder, &["."], 0);
    assert_eq!(first.len(), 3);
    assert_eq!(check(&folder, &["."], 0).1, first);
}

#[test]
fn more_jobs_than_files_cost_nothing() {
    let folder = folder("batch-jobs");
    write(&folder.join("a.toml"), &small(4));
    let mut child = batch(&folder, &["a.toml", "--jobs", "1000000"])
        .stdout(Stdio::null())
        .spawn()
        .expect("the binary runs");
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn no_output_is_written_over_an_input() {
    let folder = folder("outputs");
    let copy = |from: &str, to: &str| -> PathBuf {
        let to = folder.join(to);
        std::fs::copy(project(from), &to).expect("copied");
        to
    };
    let instance = copy("instances/hagemann-13b-2k-64gpu.toml", "job.lp");
    let other = copy("instances/hagemann-13b-2k-64gpu.toml", "job.svg");
    let runs = copy("tests/data/runs.csv", "runs.csv");
    let check = |arguments: &[&str], input: &Path| {
        let before = std::fs::read(input).expect("readable");
        let output = Command::new(env!("CARGO_BIN_EXE_parlayout"))
            .args(arguments)
            .current_dir(&folder)
            .output()
            .expect("the binary runs");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}\n{stderr}");
        assert!(stderr.contains("would overwrite what it read"), "{stderr}");
        assert_eq!(
            std::fs::read(input).expect("readable"),
            before,
            "{arguments:?}"
        );
    };
    check(&["solve", "job.lp", "--write-model", "./job.lp"], &instance);
    let front = [
        "price",
        "job.svg",
        "--pareto",
        "memory-mfu",
        "--svg",
        "job.svg",
    ];
    check(&front, &other);
    check(&["backtest", "runs.csv", "--html", "runs.csv"], &runs);
    let fit = [
        "calibrate",
        "runs.csv",
        "--cluster",
        "dgx-a100-80gb",
        "-o",
        "runs.csv",
    ];
    check(&fit, &runs);
    check(&["batch", "job.lp", "--output", "job.lp"], &instance);
}

#[test]
fn endless_inputs_are_refused() {
    let check = |arguments: &[&str], code: i32| {
        let output = Command::new(env!("CARGO_BIN_EXE_parlayout"))
            .args(arguments)
            .output()
            .expect("the binary runs");
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{text}");
        assert!(
            text.contains("it is a device or a pipe"),
            "{arguments:?}\n{text}"
        );
    };
    let zero = "/dev/zero";
    let job = project("instances/hagemann-13b-2k-64gpu.toml");
    let job = job.to_str().expect("UTF-8");
    check(&["solve", zero], 2);
    check(&["solve", job, "--model", zero], 2);
    check(&["solve", job, "--cluster", zero], 2);
    check(&["batch", zero], 2);
    check(&["batch", job, "--output", zero], 2);
    check(&["verify", zero], 2);
    check(&["evaluate", "--runs", zero], 2);
    check(&["backtest", zero], 2);
    let calibrate = ["calibrate", "--cluster", "dgx-a100-80gb"];
    check(&[&calibrate[..], &[zero]].concat(), 2);
    check(&[&calibrate[..], &["--from-log", zero]].concat(), 2);
    let launch = ["--from-log", job, "--launch", zero];
    check(&[&calibrate[..], &launch].concat(), 2);
}
