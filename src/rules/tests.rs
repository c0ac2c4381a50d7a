//! The table of rules in `docs/rules.md`, and what holds for all of them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::*;
use crate::fixture;
use crate::layout::{Combination, Schedule, Sharding};

/// What the table says before its rows.
const HEAD: &str = "\
# Rules

What a layout has to obey, as `src/rules/` defines it: one file per rule. The name of a rule is the same
in this table, in the rows of `--write-model`, in violations and in explanations. This page is generated
by the tests (`PARLAYOUT_WRITE_SCHEMA=1`).

| rule | demands | decided by | what helps | applies | source |
|---|---|---|---|---|---|
";

fn project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn table() -> String {
    let mut text = HEAD.to_owned();
    for rule in ALL {
        let definition = rule.definition();
        let axes: Vec<String> = definition
            .axes
            .iter()
            .map(|axis| format!("`{axis}`"))
            .collect();
        let axes = match definition.parts {
            Parts::Several { .. } => "what the instance names".to_owned(),
            Parts::One if axes.is_empty() => "layers and stages".to_owned(),
            Parts::One => axes.join(", "),
        };
        writeln!(
            text,
            "| `{rule}` | {} | {axes} | {} | {} | {} |",
            definition.demands,
            remedy(definition),
            applies(definition),
            definition.source
        )
        .expect("writing to a string cannot fail");
    }
    text
}

fn remedy(definition: &Definition) -> String {
    match definition.remedy {
        Remedy::None => "another choice".to_owned(),
        Remedy::Instance => "another line in the instance".to_owned(),
        Remedy::Framework(change) => format!("`framework.{} = \"{}\"`", change.key, change.to),
        Remedy::Figure(figure) => match figure {
            Figure::Gpus => "another number of GPUs",
            Figure::Memory => "more memory, a higher accepted risk, a shorter sequence",
            Figure::GlobalBatch => "another global batch",
            Figure::SequenceLength => "another sequence length",
        }
        .to_owned(),
        Remedy::Supported => "the nearest value that the framework has".to_owned(),
    }
}

fn applies(definition: &Definition) -> String {
    let software = definition.refused_by.iter();
    let software: Vec<String> = software
        .map(|it| format!("{} ({})", it.name, it.version))
        .collect();
    match (definition.applies, software.as_slice()) {
        (Applies::Always, []) => "always".to_owned(),
        (Applies::Always, refused) => format!("always; refused by {}", refused.join(", ")),
        (Applies::InExports, refused) => format!("in exports for {}", refused.join(", ")),
        (Applies::AsAdvice, advised) => format!("as advice of {}", advised.join(", ")),
    }
}

#[test]
fn the_shipped_table_is_that_of_the_rules() {
    let path = project().join("docs/rules.md");
    if std::env::var_os("PARLAYOUT_WRITE_SCHEMA").is_some() {
        std::fs::write(&path, table()).expect("the folder is writable");
    }
    let shipped = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        shipped == table(),
        "run the tests with PARLAYOUT_WRITE_SCHEMA=1 and commit docs/rules.md"
    );
}

#[test]
fn every_rule_says_what_it_demands_and_where_it_comes_from() {
    for rule in ALL {
        let definition = rule.definition();
        assert!(!definition.demands.is_empty(), "{rule}");
        assert!(!definition.source.is_empty(), "{rule}");
        let others = ALL.iter().filter(|other| *other != rule);
        assert!(others.clone().all(|other| other.as_str() != rule.as_str()));
        let is_exported = definition.applies != Applies::Always;
        assert!(!is_exported || !definition.refused_by.is_empty(), "{rule}");
    }
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("a file").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The code of a file without its tests, which come last.
fn code(path: &Path) -> String {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    if name == "tests" || name == "fixture" {
        return String::new();
    }
    let text = std::fs::read_to_string(path).expect("a source file");
    let code = text.split("#[cfg(test)]\nmod tests {").next();
    code.unwrap_or_default().to_owned()
}

/// Whoever needs the name of a rule asks the rule.
#[test]
fn the_name_of_a_rule_is_a_string_in_one_file() {
    let mut files = Vec::new();
    sources(&project().join("src"), &mut files);
    let codes: Vec<String> = files.iter().map(|path| code(path)).collect();
    for rule in ALL {
        // The section of the instance has the same name.
        let name = rule.as_str();
        let key = usize::from(name == "constraint");
        let literal = format!("\"{name}\"");
        let holders = codes.iter().filter(|code| code.contains(&literal)).count();
        assert!(holders <= 1 + 3 * key, "{name}: {holders} files");
    }
}

/// The parts of a rule that a combination breaks on a framework of the catalog.
fn refused_on(framework: &str, edit: impl Fn(&mut Layout)) -> Vec<String> {
    let (mut instance, mut layout) = (fixture::llama_13b(), fixture::llama_13b_layout());
    instance.job.framework = crate::catalog::framework(framework).expect("it is in the catalog");
    edit(&mut layout);
    let found = violations_of(Rule::FrameworkSupports, &instance, &layout);
    found.into_iter().map(|it| it.message).collect()
}

#[test]
fn a_framework_refuses_what_it_lacks_by_name() {
    let check = |framework: &str, edit: &dyn Fn(&mut Combination), expected: &[&str]| {
        let found = refused_on(framework, |layout| edit(&mut layout.combination));
        assert_eq!(found, expected, "{framework}");
    };
    check("deepspeed", &|_| {}, &[]);
    check(
        "deepspeed",
        &|it| it.virtual_stages = 2,
        &["deepspeed has no `virtual_stages = 2`: it has 1"],
    );
    check(
        "deepspeed",
        &|it| it.context_parallel = 2,
        &[
            "deepspeed has no `context_parallel = 2`: it has 1 (its context parallelism, all-to-all, is not modelled)",
        ],
    );
    let pipeline = |sharding: Sharding, replicas: u32| {
        move |it: &mut Combination| {
            (it.pipeline_parallel, it.data_parallel) = (4, replicas);
            it.sharding = sharding;
        }
    };
    let refused =
        "deepspeed has no zero-3 with 4 pipeline stages: it has zero-0 or zero-1 with a pipeline";
    check("deepspeed", &pipeline(Sharding::Parameters, 16), &[refused]);
    check("fsdp", &pipeline(Sharding::Parameters, 16), &[]);
    check("fsdp", &pipeline(Sharding::Hybrid, 16), &[]);
    let refused =
        "fsdp has no zero-2 with 4 pipeline stages: it has zero-3 or hsdp with a pipeline";
    check("fsdp", &pipeline(Sharding::Gradients, 16), &[refused]);
    let refused = [
        "fsdp has no `sharding = zero-1`: it has zero-0, zero-2, zero-3 or hsdp",
        "fsdp has no zero-1 with 4 pipeline stages: it has zero-3 or hsdp with a pipeline",
    ];
    check("fsdp", &pipeline(Sharding::OptimizerStates, 16), &refused);
    // One replica has nobody to split with.
    check("fsdp", &pipeline(Sharding::None, 1), &[]);
    check("unrestricted", &pipeline(Sharding::Parameters, 16), &[]);
    check(
        "megatron-lm",
        &|it| it.schedule = Schedule::ZeroBubble1p,
        &["megatron-lm has no `schedule = zb-1p`: it has 1f1b"],
    );
}

#[test]
fn gpus_fill_nodes_or_one_of_them_in_part() {
    let check = |gpus: u32, expected: &str| {
        let (mut instance, mut layout) = (fixture::llama_13b(), fixture::llama_13b_layout());
        instance.job.cluster.gpus = gpus;
        layout.combination.data_parallel = gpus;
        let found = violations_of(Rule::GpusFillNodes, &instance, &layout);
        let found: Vec<String> = found.into_iter().map(|it| it.message).collect();
        assert_eq!(found.join(""), expected, "{gpus}");
    };
    check(64, "");
    check(6, "");
    check(8, "");
    check(60, "60 GPUs do not fill nodes of 8: 4 are left over");
}
