//! What keys, overrides and flags mean.

use super::*;

#[test]
fn defaults_are_those_of_the_documentation() {
    let instance = from_text(GOOD).expect("valid");
    assert_eq!(instance.name, "job");
    assert_eq!(instance.job.framework.name, "megatron-lm");
    assert!((instance.max_oom_risk - 0.05).abs() < 1e-12);
    assert_eq!(instance.space.values(Axis::Sharding), [0, 1, 2, 3]);
    assert_eq!(instance.warnings, Vec::<String>::new());
}

#[test]
fn one_value_pins_and_a_list_restricts() {
    let text = good_but(
        "",
        "[search]\ntensor_parallel = 4\nsharding = [\"zero-3\", \"zero-1\"]\n\
         sequence_parallel = true\nrmsnorm_kernel = [\"fused\", \"unfused\"]\n\
         [[search.forbid]]\ntensor_parallel = 8\nmicro_batch = 4",
    );
    let space = from_text(&text).expect("valid").space;
    assert_eq!(space.values(Axis::TensorParallel), [4]);
    assert_eq!(space.values(Axis::Sharding), [1, 3]);
    assert_eq!(space.values(Axis::SequenceParallel), [1]);
    assert_eq!(space.values(Axis::RmsNormKernel), [0, 1]);
    let forbidden = Assignment(vec![(Axis::TensorParallel, 8), (Axis::MicroBatch, 4)]);
    assert_eq!(space.forbidden, [forbidden]);
}

#[test]
fn keys_override_the_preset() {
    let text = good_but(
        "preset = \"llama-13b\"",
        "preset = \"llama-13b\"\nlayers = 42",
    );
    assert_eq!(from_text(&text).expect("valid").job.transformer.layers, 42);
    let text = good_but("gpus = 64", "gpus = 64\nmemory = \"24 GB\"");
    let gpu = from_text(&text).expect("valid").job.cluster.accelerator;
    assert_eq!(gpu.usable_memory, Bytes::new(24e9));
    assert_eq!(gpu.name, "a100-80gb");
    let text = good_but("", "[framework.memory]\ngradient_bytes = 2");
    let framework = from_text(&text).expect("valid").job.framework;
    assert!((framework.memory.gradient_bytes - 2.0).abs() < 1e-12);
    assert_eq!(framework.name, "megatron-lm");
}

#[test]
fn a_measured_cluster_that_is_altered_is_no_longer_measured() {
    let one = good_but("dgx-a100-80gb", "a100-80gb-one-nic");
    let kind = |text: &str| from_text(text).expect("valid").job.cluster.calibration.kind;
    assert_eq!(kind(&one), CalibrationKind::Measured);
    let memory = one.replace("gpus = 64", "gpus = 64\nmemory = \"40 GB\"");
    assert_eq!(kind(&memory), CalibrationKind::Measured);
    let network = one.replace("gpus = 64", "gpus = 64\ninter_node_bandwidth = \"88 GB/s\"");
    assert_eq!(kind(&network), CalibrationKind::DataSheet);
}

#[test]
fn a_cluster_can_be_described_without_a_preset() {
    let text = good_but(
        "preset = \"dgx-a100-80gb\"",
        "accelerator = \"h100-80gb\"\ngpus_per_node = 4\nintra_node_bandwidth = \"300 GB/s\"\n\
         inter_node_bandwidth = \"400 Gb/s\"\nefficiency.gemm = 0.7",
    );
    let instance = from_text(&text).expect("valid");
    let cluster = &instance.job.cluster;
    assert_eq!(cluster.inter_node_bandwidth, BytesPerSecond::new(50e9));
    assert!((cluster.efficiency.gemm - 0.7).abs() < 1e-12);
    let h100 = catalog::cluster("dgx-h100-80gb").expect("it is in the catalog");
    assert_eq!(cluster.efficiency.ring_hop, h100.efficiency.ring_hop);
    assert!(
        instance.warnings[0].contains("`dgx-h100-80gb`"),
        "{:?}",
        instance.warnings
    );
}

#[test]
fn a_domain_of_nvlink_is_whole_nodes() {
    let text = good_but("dgx-a100-80gb", "gb200-nvl72");
    let many = text.replace("gpus = 64", "gpus = 1024");
    let cluster = from_text(&many).expect("valid").job.cluster;
    assert_eq!((cluster.gpus_per_node, cluster.domain()), (4, 72));
    assert!(cluster.is_within_domain(8) && !cluster.is_within_domain(144));
    let odd = text.replace("gpus = 64", "gpus = 64\nnvlink_domain = 6");
    let problem = from_text(&odd).expect_err("6 is not a multiple of 4");
    assert!(
        problem
            .to_string()
            .contains("no whole number of nodes of 4"),
        "{problem}"
    );
}

#[test]
fn a_cluster_file_has_the_keys_of_the_section() {
    let path = std::env::temp_dir().join(format!("parlayout-{}.toml", std::process::id()));
    let text = "preset = \"dgx-h100-80gb\"\n[efficiency]\ngemm = 0.66\n[calibration]\n\
                kind = \"measured\"\ntime_error = 0.04\nmemory_scale = 0.02\nsource = \"ours\"\n";
    std::fs::write(&path, text).expect("the folder is writable");
    let mut overrides = Overrides::none();
    overrides.flag(Flag::Cluster, &path.to_string_lossy());
    let instance = instance::from_text("job.toml", GOOD, Path::new(""), &overrides);
    std::fs::remove_file(&path).expect("it exists");
    let cluster = instance.expect("valid").job.cluster;
    assert_eq!(cluster.gpus, 64);
    assert_eq!(cluster.accelerator.name, "h100-80gb");
    assert!((cluster.efficiency.gemm - 0.66).abs() < 1e-12);
    assert_eq!(cluster.calibration.kind, CalibrationKind::Measured);
    assert_eq!(cluster.calibration.source, "ours");
}

#[test]
fn overrides_replace_and_add() {
    let instance = with_sets(&[
        "gpus=32",
        "cluster.memory=24 GB",
        "search.tensor_parallel=[1,2]",
        "sharding=zero-1",
        "max_oom_risk=0.5",
        "framework.preset=nanotron",
    ]);
    let instance = instance.unwrap_or_else(|error| panic!("error: {error}"));
    assert_eq!(instance.job.cluster.gpus, 32);
    assert_eq!(
        instance.job.cluster.accelerator.usable_memory,
        Bytes::new(24e9)
    );
    assert_eq!(instance.space.values(Axis::TensorParallel), [1, 2]);
    assert_eq!(instance.space.values(Axis::Sharding), [1]);
    assert!((instance.max_oom_risk - 0.5).abs() < 1e-12);
    assert_eq!(instance.job.framework.name, "nanotron");
}

#[test]
fn flags_alone_make_an_instance() {
    let config = folder("instances/configs/qwen3-8b/config.json");
    let config = config.to_string_lossy();
    for (model, name) in [("llama-13b", "llama-13b"), (&config, "qwen3-8b")] {
        let instance = with_flags(&[
            (Flag::Model, model),
            (Flag::Cluster, "dgx-a100-80gb"),
            (Flag::Gpus, "64"),
            (Flag::SequenceLength, "2048"),
            (Flag::GlobalBatch, "2048"),
        ]);
        let instance = instance.unwrap_or_else(|error| panic!("error: {error}"));
        assert_eq!(instance.name, format!("{name} on 64 GPUs of dgx-a100-80gb"));
    }
}
