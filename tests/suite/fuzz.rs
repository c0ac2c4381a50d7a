//! Mutated inputs of every kind: no panic, no hang, no exit code that is not documented, and no internal
//! check that fires.
//!
//! `cargo test --release --test suite fuzz` runs a short sample that is the same each time;
//! `PARLAYOUT_FUZZ=20000 cargo test --release --test suite fuzz` a long one. A failure prints the number
//! of the input: `PARLAYOUT_FUZZ_ONLY=4711` runs that one alone.

mod mutation;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant};

use parlayout::explain::{TimeLimits, explain};
use parlayout::instance::{self, Instance, Overrides};
use parlayout::laboratory::logs::{self, Facts};
use parlayout::laboratory::{calibrate, runs};
use parlayout::plan::Formulation;
use parlayout::planner::{self, Deadline, PlanError, PlanOptions};
use parlayout::report::document::{EvaluationDocument, ExplanationDocument, SideDocument};
use parlayout::report::{Answer, Document, Style};
use parlayout::verify::{self, Options};
use parlayout::{SolutionDocument, catalog, layout_argument, rules};

use self::mutation::{NUMBERS, Random, mutated};
use crate::support::{folder, instance_files, project};

/// Inputs unless `PARLAYOUT_FUZZ` says how many.
const SAMPLE: u64 = 300;
/// Longest time of one input: ten thousand times the usual, for machines that are busy.
const HANGS: Duration = Duration::from_mins(2);

/// Right inputs of every kind.
struct Seeds {
    instances: Vec<String>,
    configs: Vec<String>,
    runs: Vec<String>,
    logs: Vec<String>,
    launches: Vec<(String, String)>,
    answers: Vec<String>,
    clusters: Vec<String>,
    layouts: Vec<String>,
    job: Instance,
}

static SEEDS: LazyLock<Seeds> = LazyLock::new(|| {
    let text = |path: &Path| std::fs::read_to_string(path).expect("text");
    let within = |path: &str| {
        let entries = std::fs::read_dir(project(path)).expect("a folder");
        let mut files: Vec<PathBuf> = entries
            .map(|entry| entry.expect("readable").path())
            .collect();
        files.retain(|path| path.is_file());
        files.sort();
        files
    };
    let logs = within("tests/data/logs");
    let is_log = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "log");
    let extension = |path: &Path| {
        path.extension()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    };
    let small = [
        "hagemann-13b-2k-64gpu",
        "llama-65b-2k-16gpu-24gb",
        "llama-2-7b-32k-8xh100",
    ];
    let small = small.map(|name| Instance::read(&project(&format!("instances/{name}.toml"))));
    let small = small.map(|instance| instance.expect("shipped"));
    let answers = small.iter().map(|instance| {
        let outcome = planner::plan(instance, &PlanOptions::default()).expect("it answers");
        SolutionDocument::new(instance, &outcome).json()
    });
    let [job, ..] = &small;
    let layouts = [
        "tensor_parallel=2,pipeline_parallel=2,micro_batch=2,rmsnorm_kernel=false",
        "pipeline_parallel=4,layers=9+10x2+11,checkpointing=full,sharding=zero-1",
        "tensor_parallel=2,pipeline_parallel=2,layers=20x2,checkpointed_full=3+4",
        "pipeline_parallel=2,virtual_stages=2,schedule=1f1b,sequence_parallel=true",
    ];
    Seeds {
        instances: instance_files().iter().map(|path| text(path)).collect(),
        configs: within("instances/configs/qwen3-8b")
            .iter()
            .map(|path| text(path))
            .collect(),
        runs: ["runs.csv", "our-cluster.csv", "bad-runs.csv"]
            .iter()
            .map(|name| text(&project(&format!("tests/data/{name}"))))
            .collect(),
        logs: logs
            .iter()
            .filter(|path| is_log(path))
            .map(|path| text(path))
            .collect(),
        launches: logs
            .iter()
            .filter(|path| !is_log(path))
            .map(|path| (extension(path), text(path)))
            .collect(),
        answers: answers.collect(),
        clusters: small
            .iter()
            .map(|it| catalog::cluster_file(&it.job.cluster, &it.job.framework))
            .collect(),
        layouts: layouts.map(str::to_owned).to_vec(),
        job: job.clone(),
    }
});

/// What is wrong with an answer.
type Fault = String;

fn is_sound(error: &PlanError) -> Result<(), Fault> {
    match error {
        // Rows that a program cannot take are refused by name.
        PlanError::TimeOver(_)
        | PlanError::Staged(formulations::staged::StagedError::Data { .. }) => Ok(()),
        other => Err(format!("an internal check fires: {other}")),
    }
}

/// Solves and explains an instance within a limit that does not depend on the machine.
fn use_instance(instance: &Instance, random: &mut Random) -> Result<(), Fault> {
    let options = PlanOptions {
        deadline: Deadline::after_looks(2000)
            .0
            .earlier(Deadline::after(Some(HANGS / 8))),
        formulation: [Formulation::Staged, Formulation::LayoutChoice][random.below(2)],
        ..PlanOptions::default()
    };
    match planner::plan(instance, &options) {
        Err(error) => is_sound(&error)?,
        Ok(outcome) => {
            let document = SolutionDocument::new(instance, &outcome);
            let _ = document.text(&Style::default());
            let json = document.json();
            if random.below(8) == 0 {
                let options = Options {
                    deadline: Deadline::after(Some(HANGS / 8)),
                    progress: &|_, _| (),
                };
                match verify::verify(&json, &options) {
                    Ok(verdict) if verdict.verdict == verify::VerdictStatus::Accepted => {}
                    Ok(verdict) => return Err(format!("the own answer is rejected: {verdict:?}")),
                    Err(error) => return Err(format!("the own answer cannot be read: {error}")),
                }
            }
        }
    }
    if random.below(8) == 0 {
        let limits = TimeLimits {
            whole: Deadline::after_looks(500).0,
            variations: None,
        };
        match explain(instance, None, &|_| None, &limits) {
            Ok(explained) => drop(ExplanationDocument::new(instance, None, &explained).json()),
            Err(error) => is_sound(&error)?,
        }
    }
    Ok(())
}

fn use_layout(text: &str, instance: &Instance) {
    let _ = layout_argument::parse_assignment(text);
    if let Ok(layout) = layout_argument::parse(text, instance) {
        let violations = rules::violations(instance, &layout);
        let evaluated = planner::evaluate(instance, layout);
        let document = EvaluationDocument::new(instance, &evaluated, &violations);
        let _ = document.text(&Style::default());
    }
}

/// The kinds of inputs: how many of a hundred are of each.
const KINDS: [(&str, usize); 9] = [
    ("instance", 30),
    ("config", 15),
    ("cluster", 10),
    ("runs", 8),
    ("log", 8),
    ("launch", 7),
    ("answer", 8),
    ("layout", 12),
    ("command", 2),
];

/// Reads and uses one input.
fn check(number: u64, folder: &Path) -> Result<(), (String, Fault)> {
    let mut random = Random::new(number);
    let mut share = random.below(100);
    let kind = KINDS.iter().find(|(_, part)| {
        let found = share < *part;
        share = share.saturating_sub(*part);
        found
    });
    let kind = kind.map_or("command", |kind| kind.0);
    let seeds = &*SEEDS;
    let input = match kind {
        "instance" => mutated(&seeds.instances, &mut random),
        "config" => mutated(&seeds.configs, &mut random),
        "cluster" => mutated(&seeds.clusters, &mut random),
        "runs" => mutated(&seeds.runs, &mut random),
        "log" => mutated(&seeds.logs, &mut random),
        "launch" => {
            let texts: Vec<String> = seeds.launches.iter().map(|it| it.1.clone()).collect();
            mutated(&texts, &mut random)
        }
        "answer" => mutated(&seeds.answers, &mut random),
        _ => mutated(&seeds.layouts, &mut random),
    };
    let start = Instant::now();
    let used = catch_unwind(AssertUnwindSafe(|| {
        use_input(kind, &input, &folder.join(number.to_string()), &mut random)
    }));
    let fault = match used {
        Ok(Ok(())) if start.elapsed() > HANGS => Err(format!("it took {:?}", start.elapsed())),
        Ok(result) => result,
        Err(_) => Err("it panics".to_owned()),
    };
    fault.map_err(|fault| {
        let input = String::from_utf8_lossy(&input);
        (format!("{kind}:\n{input}"), fault)
    })
}

fn use_input(kind: &str, bytes: &[u8], stem: &Path, random: &mut Random) -> Result<(), Fault> {
    let seeds = &*SEEDS;
    let text = String::from_utf8_lossy(bytes);
    let file = |extension: &str| {
        let path = stem.with_extension(extension);
        std::fs::write(&path, bytes).expect("writable");
        path
    };
    match kind {
        "instance" => {
            let read = instance::from_text("fuzz", &text, Path::new(""), &Overrides::none());
            if let Ok(instance) = read {
                use_instance(&instance, random)?;
            }
        }
        "config" => {
            let path = file("json");
            if let Ok(network) = instance::read_model(&path.to_string_lossy()) {
                let mut job = seeds.job.job.clone();
                job.transformer = network;
                use_instance(&seeds.job.with_job(job), random)?;
            }
            drop(std::fs::remove_file(path));
        }
        "cluster" => {
            let path = file("toml");
            if let Ok(mut cluster) = instance::read_cluster(&path.to_string_lossy()) {
                cluster.gpus = 64;
                let mut job = seeds.job.job.clone();
                job.cluster = cluster;
                use_instance(&seeds.job.with_job(job), random)?;
            }
            drop(std::fs::remove_file(path));
        }
        "runs" => {
            let path = file("csv");
            let setups = runs::RunSetups::new(None, None).expect("the catalog");
            if let Ok(read) = runs::read(&path) {
                for run in read.runs.iter().take(40) {
                    drop(setups.model(run));
                }
                let setup = runs::Setup {
                    cluster: seeds.job.job.cluster.clone(),
                    framework: seeds.job.job.framework.clone(),
                };
                drop(calibrate::observe(&read.runs, &setup));
            }
            drop(std::fs::remove_file(path));
        }
        "log" => {
            let log = logs::read(&text);
            drop(logs::run("fuzz", &log, Facts::default(), Facts::default()));
        }
        "launch" => {
            let extensions: Vec<&str> = seeds.launches.iter().map(|it| it.0.as_str()).collect();
            let path = file(random.one_of(&extensions));
            drop(logs::launch(&path));
            drop(std::fs::remove_file(path));
        }
        "answer" => {
            let options = Options {
                deadline: Deadline::after(Some(HANGS / 8)),
                progress: &|_, _| (),
            };
            drop(verify::verify(&text, &options));
            drop(SideDocument::read(&text));
        }
        "layout" => use_layout(&text, &seeds.job),
        _ => return command(&text, random),
    }
    Ok(())
}

/// Runs the binary with arguments of which one is mutated.
fn command(layout: &str, random: &mut Random) -> Result<(), Fault> {
    const JOB: &str = "instances/hagemann-13b-2k-64gpu.toml";
    let layout = layout.replace('\0', "");
    let number = random.one_of(NUMBERS);
    let set = format!(
        "{}={number}",
        random.one_of(&[
            "cluster.gpus",
            "training.global_batch",
            "training.sequence_length",
            "model.layers",
            "search.tensor_parallel",
            "limits.max_oom_risk",
            "cluster.memory",
            "framework.memory.fixed",
            "cluster.peak_bf16",
        ])
    );
    let commands: [&[&str]; 8] = [
        &["evaluate", JOB, "--layout", &layout],
        &["explain", JOB, "--why-not", &layout, "--time-limit", "1"],
        &["solve", JOB, "--set", &set, "--time-limit", "1"],
        &["solve", JOB, "--gpus", number, "--time-limit", "1"],
        &["explain", JOB, "--set", &set, "--time-limit", "1"],
        &["diff", JOB, "--layout", &layout],
        &["solve", JOB, "--top", number, "--time-limit", number],
        &["price", JOB, "--set", &set, "--time-limit", "1"],
    ];
    let arguments = commands[random.below(commands.len())];
    let mut child = Command::new(env!("CARGO_BIN_EXE_parlayout"))
        .args(arguments)
        .current_dir(project(""))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let start = Instant::now();
    while child.try_wait().expect("own child").is_none() {
        if start.elapsed() > HANGS {
            child.kill().expect("own child");
            child.wait().expect("own child");
            return Err(format!("{arguments:?} hangs"));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let output = child.wait_with_output().expect("own child");
    let stderr = String::from_utf8_lossy(&output.stderr);
    let documented = matches!(output.status.code(), Some(0 | 2 | 3 | 4));
    if !documented || stderr.contains("please report") || stderr.contains("panicked") {
        return Err(format!(
            "{arguments:?} ends with {}\n{stderr}",
            output.status
        ));
    }
    Ok(())
}

#[test]
fn fuzzed_inputs_are_answered_or_refused() {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let folder = folder("fuzz");
    let inputs = match number("PARLAYOUT_FUZZ_ONLY") {
        Some(only) => only..only + 1,
        None => 0..number("PARLAYOUT_FUZZ").unwrap_or(SAMPLE),
    };
    let count = inputs.end - inputs.start;
    // Threads of their own: `verify` works on those of rayon, which would start another input on the stack
    // of one that waits.
    let next = AtomicU64::new(inputs.start);
    let faults: Mutex<Vec<String>> = Mutex::default();
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= inputs.end {
                return;
            }
            if let Err((input, fault)) = check(number, &folder) {
                let input: String = input.chars().take(3000).collect();
                let mut faults = faults.lock().expect("no thread panics with it");
                faults.push(format!("input {number}: {fault}\n{input}"));
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    let faults = faults.into_inner().expect("no thread panics with it");
    let shown: Vec<&String> = faults.iter().take(10).collect();
    assert!(
        faults.is_empty(),
        "{} of {count} inputs:\n{shown:#?}",
        faults.len()
    );
}

/// What once went wrong.
#[test]
fn fuzzed_faults_stay_mended() {
    let check = |arguments: &[&str], code: i32, said: &str| {
        let (stdout, stderr) = crate::cli::check(arguments, code);
        let all = stdout + &stderr;
        assert!(
            !all.contains("please report") && all.contains(said),
            "{arguments:?}\n{all}"
        );
    };
    let paper = "instances/hagemann-13b-2k-64gpu.toml";
    let endless = "pipeline_parallel=2,layers=9+1x18446744073709551615";
    check(
        &["evaluate", paper, "--layout", endless],
        2,
        "lists one number a stage",
    );
    check(
        &["diff", paper, "--layout", endless],
        2,
        "lists one number a stage",
    );
    let lonely = ["solve", paper, "--gpus", "524288", "--global-batch", "8"];
    check(&lonely, 3, "infeasible");
    check(&[&["explain"], &lonely[1..]].concat(), 3, "");
    for formulation in ["staged", "layout-choice"] {
        let with = ["solve", paper, "--formulation", formulation, "--set"];
        let set = |set| [&with[..], &[set]].concat();
        check(
            &set("framework.memory.fixed=\"1e22 GB\""),
            2,
            "is not a valid",
        );
        check(&set("framework.memory.fixed=\"1e6 GB\""), 3, "infeasible");
        check(
            &set("cluster.peak_bf16=\"1e21 TFLOP/s\""),
            2,
            "is not a valid",
        );
        check(&set("cluster.peak_bf16=\"1e6 TFLOP/s\""), 0, "optimal");
    }
}
