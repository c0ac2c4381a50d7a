//! Layouts written for every framework, and read back.

use parlayout::export::{self, Target};
use parlayout::instance::Instance;
use parlayout::launch::{self, Stated};
use parlayout::layout::Layout;
use parlayout::planner::{self, PlanOptions};

use crate::cli;
use crate::support::{folder, instance_files, project, snapshot};

fn read(name: &str) -> Instance {
    Instance::read(&project(&format!("instances/{name}.toml"))).expect("the project ships it")
}

fn planned(instance: &Instance) -> Option<Layout> {
    let options = PlanOptions {
        alternatives: 0,
        ..PlanOptions::default()
    };
    let outcome = planner::plan(instance, &options).expect("it is planned");
    outcome.plan().map(|plan| plan.choice.layout.clone())
}

/// The layout that a framework can run and say.
fn sayable(target: Target, instance: &Instance) -> Option<Layout> {
    let layouts = (0..).map_while(|strictness| export::on(target, instance, strictness));
    let mut layouts = layouts.filter_map(|there| planned(&there));
    layouts.find(|layout| export::export(target, instance, layout).is_ok())
}

/// What a file or script that is written for a layout says, read as a user's own.
fn read_again(target: Target, instance: &Instance, layout: &Layout, text: &str, name: &str) {
    let read = launch::read_text(name.as_ref(), text, &Stated::default());
    let read = read.unwrap_or_else(|error| panic!("{target}: {error}\n{text}"));
    assert_eq!(read.framework, target.as_str(), "{text}");
    let whole = launch::facts_of(instance, layout);
    for (column, said) in read.facts.iter().filter(|(column, _)| {
        [
            "gpus",
            "global_batch",
            "seq_len",
            "precision",
            "layers",
            "hidden",
            "heads",
            "kv_heads",
            "ffn",
        ]
        .contains(column)
    }) {
        assert_eq!(
            Some(said),
            whole.text(column),
            "{target}, {column}:\n{text}"
        );
    }
    let mut said = read.facts.clone();
    for column in ["attention_kernel", "rmsnorm_kernel", "layers"] {
        said = said.with(column, whole.text(column));
    }
    if target.dialect().leaves(parlayout::axis::Axis::MicroBatch) {
        said = said.with("micro_batch", whole.text("micro_batch"));
    }
    let found = launch::layout(&said, instance);
    assert_eq!(found.as_ref(), Ok(layout), "{target}\n{text}");
}

#[test]
fn every_framework_says_the_layouts_that_it_runs() {
    let instances = [
        "qwen3-8b-16k-16xh200",
        "llama-3.1-70b-8k-64xh100",
        "gpt-neox-20b-2k-8xa100",
    ];
    let mut said = Vec::new();
    for name in instances {
        let instance = read(name);
        for &target in Target::ALL {
            let Some(layout) = sayable(target, &instance) else {
                continue;
            };
            let (_, release) = Target::of_release(target.as_str()).expect("it has a release");
            let exported = export::write(target, release, &instance, &layout, &[]);
            let exported = exported.expect("it can be said");
            let ending = target.dialect().extension();
            let file = format!("file.{ending}");
            read_again(target, &instance, &layout, &exported.file(), &file);
            read_again(target, &instance, &layout, &exported.script(), "run.sh");
            said.push(target);
        }
    }
    for target in Target::ALL {
        assert!(said.contains(target), "no layout of {target}");
    }
}

#[test]
fn files_look_as_frameworks_want_them() {
    let instance = read("qwen3-8b-16k-16xh200");
    for &target in Target::ALL {
        let layout = sayable(target, &instance).expect("an 8B model runs everywhere");
        let (_, release) = Target::of_release(target.as_str()).expect("it has a release");
        let exported = export::write(target, release, &instance, &layout, &[]).expect("as before");
        let text = format!("{}\n=== --script\n{}", exported.file(), exported.script());
        snapshot(&format!("export_file_{target}"), &text);
    }
}

#[test]
fn layouts_of_shipped_instances_are_said_by_megatron() {
    for path in instance_files() {
        let instance = Instance::read(&path).expect("it is right");
        let name = path.display();
        // Mixtures of experts are not written yet.
        if instance.job.transformer.experts.is_none() && planned(&instance).is_some() {
            assert!(sayable(Target::MegatronLm, &instance).is_some(), "{name}");
        }
    }
}

#[test]
fn releases_are_known_or_refused() {
    assert!(Target::of_release("torchtitan@v0.2.1").is_ok());
    let check = |text: &str, part: &str| {
        let message = Target::of_release(text).err().unwrap_or_default();
        assert!(message.contains(part), "{text}: {message}");
    };
    check("torchtitan@main", "reads no TOML");
    check(
        "torchtitan@v9",
        "are known for v0.2.2, v0.2.1, v0.2.0, main, not for `v9`",
    );
    check("colossal", "none of the frameworks megatron-lm, ");
}

#[test]
fn what_a_framework_cannot_say_costs_what_is_stated() {
    let file = "instances/llama-3.1-70b-8k-64xh100.toml";
    let (stdout, stderr) = cli::check(&["export", file, "--to", "axolotl"], 0);
    assert!(
        stderr.contains("planned again under its rules, a step takes"),
        "{stderr}"
    );
    assert!(stderr.contains("% more; MFU"), "{stderr}");
    assert!(
        stdout
            .replace("\n# ", " ")
            .contains("planned again under its rules"),
        "{stdout}"
    );
}

#[test]
fn a_saved_answer_is_written_or_refused() {
    let file = "instances/llama-3.1-70b-8k-64xh100.toml";
    let (answer, _) = cli::check(&["solve", file, "--format", "json"], 0);
    let path = folder("saved-answer").join("answer.json");
    std::fs::write(&path, answer).expect("a file for the test");
    let path = path.to_str().expect("a plain path");
    let (flags, _) = cli::check(&["export", path, "--to", "megatron-lm"], 0);
    assert!(
        flags.contains("--pipeline-model-parallel-size 4"),
        "{flags}"
    );
    let (_, stderr) = cli::check(&["export", path, "--to", "axolotl"], 2);
    assert!(
        stderr.contains("axolotl has no `pipeline_parallel = 4`"),
        "{stderr}"
    );
    assert!(
        stderr.contains("plans under the framework's rules"),
        "{stderr}"
    );
    let (_, stderr) = cli::check(&["export", path, "--to", "axolotl", "--gpus", "8"], 2);
    assert!(
        stderr.contains("an answer has its job and layout"),
        "{stderr}"
    );
}
