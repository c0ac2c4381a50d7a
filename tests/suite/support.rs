//! Instances for the tests.

use std::path::{Path, PathBuf};

use parlayout::instance::{self, Instance, Overrides};
use proptest::prelude::*;

/// A path below the project's folder.
pub(crate) fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// An empty folder of a test's own.
pub(crate) fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("parlayout-{name}-{}", std::process::id()));
    drop(std::fs::remove_dir_all(&folder));
    std::fs::create_dir_all(&folder).expect("a folder for the test");
    folder
}

/// Files of `instances/`, in order.
pub(crate) fn instance_files() -> Vec<PathBuf> {
    let folder = std::fs::read_dir(project("instances")).expect("the project has instances");
    let mut files: Vec<PathBuf> = folder
        .map(|entry| entry.expect("readable").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "toml")
        })
        .collect();
    files.sort();
    files
}

/// The instances that the project ships.
pub(crate) fn instances() -> impl Iterator<Item = Instance> {
    instance_files().into_iter().map(|path| {
        instance::read(&path, &Overrides::none())
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    })
}

/// Small random jobs: a few layers to a few dozen, 1 to 64 GPUs, tight to ample memory, every
/// axis open in small spaces.
pub(crate) fn random_instance() -> impl Strategy<Value = Instance> {
    random_text().prop_map(|text| parse(&text, &[]))
}

/// The instance of a text with some of its keys set.
pub(crate) fn parse(text: &str, sets: &[String]) -> Instance {
    let mut overrides = Overrides::none();
    for assignment in sets {
        overrides.set(assignment);
    }
    instance::from_text("random", text, Path::new(""), &overrides)
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The texts of [`random_instance`].
pub(crate) fn random_text() -> impl Strategy<Value = String> {
    let network = (1_u32..40, 0_usize..4, 1_u32..5, 0_usize..3);
    let machine = (0_u32..7, 0_usize..3, 4_u32..100, 0_usize..3);
    let workload = (0_usize..3, 0_usize..5, 0.02..0.6_f64);
    let experts = (0_usize..6, 0_u32..4);
    (
        network,
        machine,
        workload,
        0_usize..4,
        any::<bool>(),
        experts,
    )
        .prop_map(
            |(network, machine, workload, framework, interleave, experts)| {
                let layers = network.0;
                let text = text(network, machine, workload, framework, interleave);
                with_experts(&text, layers, experts)
            },
        )
}

/// One in three jobs trains a mixture of experts, of which up to three leading layers are dense.
fn with_experts(text: &str, layers: u32, (kind, dense_layers): (usize, u32)) -> String {
    let Some((experts, per_token)) = [(8, 2), (12, 3)].get(kind) else {
        return text.to_owned();
    };
    let dense_layers = dense_layers.min(layers - 1);
    let keys = format!(
        "[model]\nexperts = {experts}\nexperts_per_token = {per_token}\nexpert_width = 768\n\
         dense_layers = {dense_layers}\n"
    );
    let is_dense = |line: &&str| dense_layers > 0 || !line.starts_with("feed_forward_width");
    let lines: Vec<&str> = text.lines().filter(is_dense).collect();
    lines.join("\n").replacen("[model]\n", &keys, 1)
}

fn text(
    (layers, heads, width, vocabulary): (u32, usize, u32, usize),
    (exponent, node, memory, cluster): (u32, usize, u32, usize),
    (sequence, batch, risk): (usize, usize, f64),
    framework: usize,
    interleave: bool,
) -> String {
    let heads = [8, 12, 20, 52][heads];
    let hidden = heads * 64 * width;
    let framework = [
        "aleph-alpha-scaling",
        "megatron-lm",
        "nanotron",
        "unrestricted",
    ][framework];
    format!(
        r#"
[model]
layers = {layers}
hidden = {hidden}
heads = {heads}
key_value_heads = {}
feed_forward_width = {}
vocabulary = {}
[cluster]
preset = "{}"
gpus = {}
gpus_per_node = {}
memory = "{memory} GB"
[training]
sequence_length = {}
global_batch = {}
[framework]
preset = "{framework}"
[limits]
max_oom_risk = {risk}
[search]
micro_batch = [1, 2, 4]
context_parallel = [1, 2]
virtual_stages = {}
sharding = ["zero-1", "zero-3"]
"#,
        heads / 4,
        hidden * 3,
        [1000, 32_000, 128_000][vocabulary],
        ["a100-80gb-one-nic", "dgx-a100-80gb", "dgx-h100-80gb"][cluster],
        1 << exponent,
        [4, 8, 2][node],
        [1024, 2048, 8192][sequence],
        [1, 8, 24, 512, 65_536][batch],
        if interleave { "[1, 2, 3]" } else { "1" },
    )
}

/// Compares text with the snapshot of this name.
pub(crate) fn snapshot(name: &str, text: &str) {
    insta::with_settings!(
        {
            snapshot_path => project("snapshots"),
            prepend_module_to_snapshot => false,
            omit_expression => true,
        },
        { insta::assert_snapshot!(name, text) }
    );
}

/// The configuration of a property test: the same cases on every machine, and no file of failures.
pub(crate) fn cases(count: u32) -> ProptestConfig {
    ProptestConfig {
        cases: count,
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(20_231_109),
        ..ProptestConfig::default()
    }
}
