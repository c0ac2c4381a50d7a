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
    overrides.flag("cluster", &path.to_string_lossy());
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
            ("model", model),
            ("cluster", "dgx-a100-80gb"),
            ("gpus", "64"),
            ("sequence-length", "2048"),
            ("global-batch", "2048"),
        ]);
        let instance = instance.unwrap_or_else(|error| panic!("error: {error}"));
        assert_eq!(instance.name, format!("{name} on 64 GPUs of dgx-a100-80gb"));
    }
}

#[test]
fn a_framework_tries_what_it_has() {
    let space = |framework: &str| {
        let text = good_but("", &format!("[framework]\npreset = \"{framework}\""));
        from_text(&text).expect("valid").space
    };
    let deepspeed = space("deepspeed");
    assert_eq!(deepspeed.values(Axis::VirtualStages), [1]);
    assert_eq!(deepspeed.values(Axis::ContextParallel), [1]);
    assert_eq!(space("fsdp").values(Axis::Sharding), [0, 2, 3]);
    assert_eq!(space("nanotron").values(Axis::Sharding), [0, 1]);
    assert!(space("megatron-lm").values(Axis::ContextParallel).len() > 1);
    // An instance may say otherwise.
    let own = "[framework]\npreset = \"deepspeed\"\naxes.virtual_stages = [1, 2]";
    let own = from_text(&good_but("", own)).expect("valid").space;
    assert_eq!(own.values(Axis::VirtualStages), [1, 2]);
}

#[test]
fn values_that_a_framework_lacks_are_refused_by_name() {
    let pinned = |framework: &str, line: &str| {
        let text = format!("[framework]\npreset = \"{framework}\"\n[search]\n{line}");
        from_text(&good_but("", &text))
    };
    let error = |framework: &str, line: &str| {
        let error = pinned(framework, line).expect_err("it is refused");
        error.to_string()
    };
    let text = error("deepspeed", "virtual_stages = 2");
    assert!(
        text.contains("deepspeed has no `virtual_stages = 2`"),
        "{text}"
    );
    assert!(
        text.contains("hint: deepspeed has `virtual_stages` 1 (DeepSpeed, "),
        "{text}"
    );
    let text = error("fsdp", "sharding = \"zero-1\"");
    assert!(
        text.contains("has `sharding` zero-0, zero-2, zero-3 or hsdp"),
        "{text}"
    );
    // Of several values those that it has are tried.
    let some = pinned("deepspeed", "context_parallel = [1, 2]").expect("one is possible");
    assert_eq!(
        some.warnings,
        ["`search.context_parallel` lists 2, which deepspeed does not have: it has 1"]
    );
}

#[test]
fn gradients_have_the_width_that_the_instance_says() {
    let framework = |line: &str| from_text(&good_but("", line)).expect("valid").job.framework;
    let own = framework("");
    assert!((own.memory.gradient_bytes - 4.0).abs() < 1e-12);
    assert_eq!(framework("gradients = \"fp32\""), own);
    let narrow = framework("gradients = \"bf16\"");
    assert!((narrow.memory.gradient_bytes - 2.0).abs() < 1e-12);
    assert!((narrow.speed.reduction_bytes - 4.0).abs() < 1e-12);
    let flag = [
        ("model", "llama-13b"),
        ("cluster", "dgx-a100-80gb"),
        ("gpus", "64"),
        ("sequence-length", "2048"),
        ("global-batch", "512"),
        ("gradients", "bf16"),
    ];
    assert_eq!(with_flags(&flag).expect("valid").job.framework, narrow);
}
