//! Instance files, catalog, and what is said about bad ones.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use parlayout::axis::{Assignment, Axis};
use parlayout::catalog;
use parlayout::cluster::CalibrationKind;
use parlayout::instance::{self, Flag, Instance, InstanceError, Overrides};
use parlayout::quantity::{Bytes, BytesPerSecond};
use parlayout::transformer::{Biases, Embeddings};
use proptest::prelude::*;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn shipped() -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder("instances"))
        .expect("the folder exists")
        .map(|entry| entry.expect("readable").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "toml")
        })
        .collect();
    paths.sort();
    paths
}

fn read(name: &str) -> Instance {
    instance::read(&folder("instances").join(name), &Overrides::none()).expect("valid")
}

fn from_text(text: &str) -> Result<Instance, InstanceError> {
    instance::from_text("job.toml", text, &folder("instances"), &Overrides::none())
}

fn with_sets(sets: &[&str]) -> Result<Instance, InstanceError> {
    let mut overrides = Overrides::none();
    for set in sets {
        overrides.set(set);
    }
    instance::from_text("job.toml", GOOD, &folder("instances"), &overrides)
}

fn with_flags(flags: &[(Flag, &str)]) -> Result<Instance, InstanceError> {
    let mut overrides = Overrides::none();
    for (flag, value) in flags {
        overrides.flag(*flag, value);
    }
    instance::from_flags(&overrides)
}

/// A file that nothing is wrong with.
const GOOD: &str = r#"[model]
preset = "llama-13b"

[cluster]
preset = "dgx-a100-80gb"
gpus = 64

[training]
sequence_length = 2048
global_batch = 512
"#;

/// `GOOD` with a line replaced or, if it is not there, added at the end.
fn good_but(line: &str, other: &str) -> String {
    if line.is_empty() {
        format!("{GOOD}{other}\n")
    } else {
        assert!(GOOD.contains(line), "{line}");
        GOOD.replace(line, other)
    }
}

fn snapshot(name: &str, cases: &[(&str, Result<Instance, InstanceError>)]) {
    let mut text = String::new();
    for (title, result) in cases {
        let error = result.as_ref().expect_err(title);
        writeln!(text, "# {title}\nerror: {error}").expect("a string takes all text");
    }
    let root = format!("{}/", env!("CARGO_MANIFEST_DIR"));
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../../snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text.replace(&root, "")));
}

mod shipped_files {
    use super::*;

    #[test]
    fn every_instance_is_valid_and_says_nothing_odd() {
        for path in shipped() {
            let instance = instance::read(&path, &Overrides::none())
                .unwrap_or_else(|error| panic!("error: {error}"));
            assert_eq!(
                Some(instance.name.as_str()),
                path.file_stem().and_then(|s| s.to_str())
            );
            let text = std::fs::read_to_string(&path).expect("readable");
            assert!(text.starts_with("# "), "{} says what it is", path.display());
            for key in ["gpus = ", "global_batch = "] {
                let lines = text.lines().filter(|line| line.starts_with(key)).count();
                assert_eq!(lines, 1, "`{key}` in {}", path.display());
            }
        }
    }

    #[test]
    fn the_paper_has_ten_sweeps() {
        let sweeps = [
            ("13b-2k-64gpu", 16, 8, 2),
            ("13b-2k-32gpu", 16, 1, 2),
            ("13b-8k-128gpu", 27, 8, 2),
            ("13b-8k-64gpu", 36, 1, 2),
            ("30b-2k-256gpu", 27, 8, 2),
            ("30b-2k-64gpu", 27, 1, 2),
            ("30b-8k-128gpu", 24, 8, 2),
            ("30b-8k-64gpu", 24, 1, 2),
            ("65b-2k-128gpu", 27, 8, 2),
            ("65b-2k-64gpu", 27, 1, 2),
        ];
        let named = |path: &PathBuf| path.to_string_lossy().contains("hagemann");
        assert_eq!(
            shipped().iter().filter(|path| named(path)).count(),
            sweeps.len()
        );
        for (name, grid, kernels, rest) in sweeps {
            let instance = read(&format!("hagemann-{name}.toml"));
            let space = &instance.space;
            let count = |axes: &[Axis]| -> usize {
                axes.iter().map(|&axis| space.values(axis).len()).product()
            };
            let degrees = [
                Axis::MicroBatch,
                Axis::TensorParallel,
                Axis::PipelineParallel,
            ];
            assert_eq!(count(&degrees), grid, "{name}");
            assert_eq!(
                count(&[Axis::AttentionKernel, Axis::RmsNormKernel]),
                kernels,
                "{name}"
            );
            assert_eq!(
                count(&[Axis::SequenceParallel, Axis::Checkpointing]),
                rest,
                "{name}"
            );
            assert_eq!(space.values(Axis::Sharding), [1], "{name}");
            assert_eq!(instance.job.transformer.vocabulary, 128_000);
            assert_eq!(instance.job.workload.tokens(), 4_194_304);
            assert!((instance.max_oom_risk - 0.5).abs() < 1e-12);
            assert_eq!(instance.job.framework.name, "aleph-alpha-scaling");
            assert_eq!(
                instance.job.cluster.calibration.kind,
                CalibrationKind::Measured
            );
            assert_eq!(instance.warnings, Vec::<String>::new());
        }
    }

    #[test]
    fn the_paper_counts_14_billion_weights() {
        let transformer = read("hagemann-13b-2k-64gpu.toml").job.transformer;
        assert_eq!(transformer.matrix_weights(), 13_998_489_600);
        assert_eq!(
            format!("{:.3e}", transformer.matrix_weights() as f64),
            "1.400e10"
        );
    }
}

mod catalog_presets {
    use super::*;

    #[test]
    fn parameters_are_exact() {
        // As the model cards report; GPT-3 and the 1T by their papers' formulas and the last norm.
        let published = [
            ("llama-7b", 6_738_415_616),
            ("llama-13b", 13_015_864_320),
            ("llama-30b", 32_528_943_616),
            ("llama-65b", 65_285_660_672),
            ("llama-2-7b", 6_738_415_616),
            ("llama-2-13b", 13_015_864_320),
            ("llama-2-70b", 68_976_648_192),
            ("llama-3-8b", 8_030_261_248),
            ("llama-3-70b", 70_553_706_496),
            ("llama-3.1-8b", 8_030_261_248),
            ("llama-3.1-70b", 70_553_706_496),
            ("llama-3.1-405b", 405_853_388_800),
            ("gpt-3-175b", 174_604_259_328),
            ("megatron-1t", 1_008_038_758_400),
        ];
        for (name, parameters) in published {
            let model = catalog::model(name).expect("it is in the catalog");
            assert_eq!(model.parameters(), parameters, "{name}");
        }
        let models = catalog::entries()
            .into_iter()
            .filter(|entry| entry.kind == catalog::Kind::Model);
        assert_eq!(models.count(), published.len());
    }

    #[test]
    fn shapes_of_other_networks_are_exact() {
        let qwen = read("qwen2.5-32b-4k-64xh100.toml").job.transformer;
        assert_eq!(qwen.parameters(), 32_763_876_352);
        let neox = read("gpt-neox-20b-2k-8xa100.toml").job.transformer;
        assert_eq!(neox.parameters(), 20_554_567_680);
        // The model card counts the norms of queries and keys: 36 layers of 2 x 128.
        let qwen3 = read("qwen3-8b-16k-16xh200.toml").job.transformer;
        assert_eq!(qwen3.parameters() + 36 * 2 * 128, 8_190_735_360);
    }

    #[test]
    fn every_entry_is_complete_and_has_a_source() {
        for entry in catalog::entries() {
            assert!(!entry.figures.is_empty(), "{}", entry.name);
            assert!(!entry.source.is_empty(), "{}", entry.name);
        }
        let gpu = catalog::accelerator("a100-80gb").expect("it is in the catalog");
        assert_eq!(gpu.usable_memory, Bytes::new(85.0e9));
        assert!(catalog::framework("megatron-lm").is_ok());
        let cluster = catalog::cluster("dgx-h100-80gb").expect("it is in the catalog");
        assert_eq!((cluster.gpus, cluster.gpus_per_node), (8, 8));
        assert_eq!(cluster.calibration.kind, CalibrationKind::DataSheet);
    }

    #[test]
    fn a_name_that_is_nearly_right_is_suggested() {
        let unknown = catalog::cluster("dgx-h100").expect_err("there is none");
        assert_eq!(unknown.suggestions, ["dgx-h100-80gb"]);
        let unknown = catalog::model("LLaMA-3.1_8B").expect_err("there is none");
        assert_eq!(unknown.suggestions, ["llama-3.1-8b"]);
        let unknown = catalog::accelerator("tpu").expect_err("there is none");
        assert!(
            unknown.to_string().contains("known: `a100-40gb`"),
            "{unknown}"
        );
    }
}

mod meaning {
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
        let text = good_but("", "[framework]\ngradient_bytes = 2");
        let framework = from_text(&text).expect("valid").job.framework;
        assert!((framework.gradient_bytes - 2.0).abs() < 1e-12);
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
        assert_eq!(cluster.efficiency.launch, h100.efficiency.launch);
        assert!(
            instance.warnings[0].contains("`dgx-h100-80gb`"),
            "{:?}",
            instance.warnings
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
}

mod config_json {
    use super::*;

    const QWEN2: &str = r#"{
  "model_type": "qwen2", "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24,
  "num_attention_heads": 14, "num_key_value_heads": 2, "vocab_size": 151936,
  "tie_word_embeddings": true, "use_sliding_window": false, "sliding_window": 32768
}"#;
    const GPT2: &str = r#"{
  "model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024,
  "vocab_size": 50257, "n_inner": null
}"#;
    const GEMMA: &str = r#"{
  "model_type": "gemma", "hidden_size": 2048, "intermediate_size": 16384, "num_hidden_layers": 18,
  "num_attention_heads": 8, "num_key_value_heads": 1, "head_dim": 256, "vocab_size": 256000
}"#;
    const OPT: &str = r#"{
  "model_type": "opt", "hidden_size": 2048, "ffn_dim": 8192, "num_hidden_layers": 24,
  "num_attention_heads": 32, "max_position_embeddings": 2048, "vocab_size": 50272,
  "word_embed_proj_dim": 2048, "do_layer_norm_before": true
}"#;

    /// The instance of a `config.json` with this text.
    fn check(text: &str) -> Result<Instance, InstanceError> {
        let hash = text.bytes().fold(0_u64, |hash, byte| {
            hash.wrapping_mul(31).wrapping_add(u64::from(byte))
        });
        let name = format!("parlayout-{}-{hash:x}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("the folder is writable");
        std::fs::write(folder.join("config.json"), text).expect("the folder is writable");
        let job = good_but("preset = \"llama-13b\"", "config = \"config.json\"");
        let result = instance::from_text("job.toml", &job, &folder, &Overrides::none());
        std::fs::remove_dir_all(&folder).expect("it exists");
        // The folder's name differs from run to run.
        result.map_err(|error| match error {
            InstanceError::Broken(problems) => InstanceError::Unreadable {
                path: "config.json".into(),
                reason: problems
                    .to_string()
                    .replace(&*folder.to_string_lossy(), "."),
                hint: String::new(),
            },
            other => other,
        })
    }

    #[test]
    fn dense_decoders_are_counted_exactly() {
        let published = [
            (QWEN2, 494_032_768),
            (GPT2, 124_439_808),
            (GEMMA, 2_506_172_416),
            (OPT, 1_315_758_080),
        ];
        for (text, parameters) in published {
            let instance = check(text).unwrap_or_else(|error| panic!("error: {error}"));
            assert_eq!(instance.job.transformer.parameters(), parameters, "{text}");
            assert_eq!(instance.warnings, Vec::<String>::new());
        }
    }

    #[test]
    fn what_a_config_leaves_out_is_what_its_family_implies() {
        let qwen = check(QWEN2).expect("valid").job.transformer;
        assert_eq!(qwen.biases, Biases::QueryKeyValue);
        let untied = QWEN2.replace("\"tie_word_embeddings\": true, ", "");
        let untied = check(&untied).expect("valid").job.transformer;
        assert_eq!(untied.embeddings, Embeddings::Untied);
        let gemma = check(GEMMA).expect("valid").job.transformer;
        assert_eq!(
            (gemma.embeddings, gemma.head_width),
            (Embeddings::Tied, 256)
        );
    }

    #[test]
    fn what_is_assumed_or_left_out_is_said() {
        let warnings = |text: &str| {
            let instance = check(text).unwrap_or_else(|error| panic!("error: {error}"));
            instance.warnings.join("\n")
        };
        let unknown = warnings(&GEMMA.replace("\"gemma\"", "\"gamma\""));
        assert!(
            unknown.contains("`model_type` `gamma` is not known: assumed"),
            "{unknown}"
        );
        let window =
            warnings(&GEMMA.replace("\"head_dim\"", "\"sliding_window\": 4096, \"head_dim\""));
        assert!(window.contains("`sliding_window`"), "{window}");
        let field = warnings(&GEMMA.replace("\"head_dim\"", "\"wibble\": 1, \"head_dim\""));
        assert!(
            field.contains("not understood and have no effect: `wibble`"),
            "{field}"
        );
        let nested = warnings(&format!(
            "{{ \"vision_config\": {{}}, \"text_config\": {GEMMA} }}"
        ));
        assert!(nested.contains("only the language model"), "{nested}");
    }

    #[test]
    fn networks_that_are_not_modelled_are_refused() {
        let with = |field: &str| {
            check(&QWEN2.replace("\"vocab_size\"", &format!("{field}, \"vocab_size\"")))
        };
        snapshot(
            "errors_in_config_json",
            &[
                ("a mixture of experts", with("\"num_local_experts\": 8")),
                (
                    "a mixture of experts by its type",
                    check(&QWEN2.replace("qwen2", "mixtral")),
                ),
                ("latent attention", with("\"kv_lora_rank\": 512")),
                (
                    "multi-token prediction",
                    with("\"num_nextn_predict_layers\": 1"),
                ),
                (
                    "linear attention",
                    with("\"layer_types\": [\"linear_attention\"]"),
                ),
                ("an encoder", with("\"is_encoder_decoder\": true")),
                (
                    "a number in quotes",
                    check(&QWEN2.replace("24,", "\"24\",")),
                ),
                (
                    "heads that do not divide",
                    check(&QWEN2.replace("14,", "15,")),
                ),
                (
                    "a missing field",
                    check(&QWEN2.replace("num_hidden_layers", "layers")),
                ),
                ("no JSON", check("{ \"model_type\": ")),
                ("no object", check("[1, 2]")),
            ],
        );
    }

    #[test]
    fn hostile_configs_are_refused() {
        let deep = "[".repeat(100_000);
        for text in [
            "",
            "null",
            "\u{0}",
            &deep,
            "{\"text_config\": 3}",
            "{\"hidden_size\": 1e400}",
        ] {
            assert!(check(text).is_err(), "{}", &text[..text.len().min(40)]);
        }
        let huge = QWEN2.replace("896", "99999999999999999999999999");
        assert!(check(&huge).is_err());
    }
}

mod errors {
    use super::*;

    #[test]
    fn in_the_text() {
        snapshot(
            "errors_in_text",
            &[
                ("empty", from_text("")),
                ("only a comment", from_text("# nothing\n")),
                ("prose", from_text("please train a model")),
                (
                    "an open string",
                    from_text(&good_but("\"llama-13b\"", "\"llama-13b")),
                ),
                (
                    "a key twice",
                    from_text(&good_but("gpus = 64", "gpus = 64\ngpus = 32")),
                ),
                (
                    "a section twice",
                    from_text(&good_but("", "[cluster]\ngpus = 8")),
                ),
                (
                    "nested too deeply",
                    from_text(&format!("a = {}", "[".repeat(5000))),
                ),
                (
                    "control characters",
                    from_text("[model]\n\u{1b}[31mred = 1"),
                ),
            ],
        );
    }

    #[test]
    fn in_keys_and_types() {
        snapshot(
            "errors_in_keys",
            &[
                (
                    "a misspelt key",
                    from_text(&good_but("gpus = 64", "gpsu = 64")),
                ),
                (
                    "another tool's key",
                    from_text(&good_but("sequence_length", "seq_len")),
                ),
                (
                    "a key of another section",
                    from_text(&good_but("", "gpus = 8")),
                ),
                (
                    "another tool's key of another section",
                    from_text(&good_but("", "tp = 8")),
                ),
                (
                    "an unknown section",
                    from_text(&good_but("[cluster]", "[machine]")),
                ),
                (
                    "a section that is a value",
                    from_text("model = \"llama-13b\""),
                ),
                (
                    "a section that is a list",
                    from_text(&good_but("[cluster]", "[[cluster]]")),
                ),
                ("a number in quotes", from_text(&good_but("64", "\"64\""))),
                (
                    "a number with a fraction",
                    from_text(&good_but("64", "64.0")),
                ),
                ("a date", from_text(&good_but("64", "2024-01-01"))),
                (
                    "a text without quotes",
                    from_text(&good_but("\"llama-13b\"", "true")),
                ),
                (
                    "no unit",
                    from_text(&good_but("gpus = 64", "gpus = 64\nmemory = 80")),
                ),
                (
                    "no unit in quotes",
                    from_text(&good_but("gpus = 64", "gpus = 64\nmemory = \"80\"")),
                ),
                (
                    "a wrong unit",
                    from_text(&good_but("gpus = 64", "gpus = 64\nmemory = \"80 Gb/s\"")),
                ),
                (
                    "an unknown model",
                    from_text(&good_but("llama-13b", "lama-13b")),
                ),
                (
                    "an unknown cluster",
                    from_text(&good_but("dgx-a100-80gb", "dgx-a100")),
                ),
                (
                    "what comes later",
                    from_text(&good_but(
                        "preset = \"llama-13b\"",
                        "preset = \"llama-13b\"\nexperts = 8",
                    )),
                ),
                (
                    "rows that come later",
                    from_text(&good_but("", "[[constraint]]\nname = \"mine\"")),
                ),
            ],
        );
    }

    #[test]
    fn in_values() {
        let cluster = |line: &str| from_text(&good_but("gpus = 64", &format!("gpus = 64\n{line}")));
        let model = |line: &str| {
            from_text(&good_but(
                "preset = \"llama-13b\"",
                &format!("preset = \"llama-13b\"\n{line}"),
            ))
        };
        let training = |line: &str| from_text(&good_but("", line));
        snapshot(
            "errors_in_values",
            &[
                ("no GPUs", from_text(&good_but("64", "0"))),
                ("too many GPUs", from_text(&good_but("64", "1048577"))),
                (
                    "digits without end",
                    from_text(&good_but("64", &"9".repeat(60))),
                ),
                ("a negative batch", from_text(&good_but("512", "-512"))),
                ("no memory", cluster("memory = \"0 GB\"")),
                ("negative memory", cluster("memory = \"-80 GB\"")),
                ("infinite memory", cluster("memory = \"1e999 GB\"")),
                ("an efficiency above 1", cluster("efficiency.gemm = 75")),
                ("a nan", cluster("efficiency.congestion = nan")),
                ("a preset and a file", cluster("file = \"mine.toml\"")),
                (
                    "a file that is not there",
                    from_text(&good_but(
                        "preset = \"dgx-a100-80gb\"",
                        "file = \"mine.toml\"",
                    )),
                ),
                (
                    "no GPU",
                    from_text(&good_but("preset = \"dgx-a100-80gb\"\n", "")),
                ),
                ("heads that do not divide", model("heads = 48")),
                ("groups that do not divide", model("key_value_heads = 3")),
                ("no layers", model("layers = 0")),
                (
                    "no network",
                    from_text(&good_but("preset = \"llama-13b\"", "vocabulary = 1000")),
                ),
                (
                    "half a network",
                    from_text(&good_but("preset = \"llama-13b\"", "layers = 4")),
                ),
                ("fp8 without units for it", training("precision = \"fp8\"")),
                ("an unknown optimizer", training("optimizer = \"adamw\"")),
                (
                    "a certain risk",
                    from_text(&good_but("", "[limits]\nmax_oom_risk = 1")),
                ),
                (
                    "nothing to try",
                    from_text(&good_but("", "[search]\nmicro_batch = []")),
                ),
                (
                    "twice the same",
                    from_text(&good_but("", "[search]\nmicro_batch = [1, 2, 1]")),
                ),
                (
                    "an unknown sharding",
                    from_text(&good_but("", "[search]\nsharding = \"zero1\"")),
                ),
                (
                    "a degree in quotes",
                    from_text(&good_but("", "[search]\ntensor_parallel = \"8\"")),
                ),
                (
                    "expert parallelism",
                    from_text(&good_but("", "[search]\nexpert_parallel = 8")),
                ),
                (
                    "everything forbidden",
                    from_text(&good_but("", "[[search.forbid]]")),
                ),
                (
                    "an unknown axis",
                    from_text(&good_but("", "[[search.forbid]]\ntensor_paralel = 8")),
                ),
            ],
        );
    }

    #[test]
    fn all_at_once() {
        let text = r#"[model]
preset = "lama-13b"
layers = 0

[cluster]
preset = "dgx-a100-80gb"
gpus = "64"
memory = 24
bandwidth = "200 Gb/s"

[training]
sequence_length = -1

[limits]
max_oom_risk = 2

[search]
tensor_parallel = [1, 2, 2]
"#;
        snapshot(
            "errors_all_at_once",
            &[("nine broken rules", from_text(text))],
        );
    }

    #[test]
    fn on_the_command_line() {
        snapshot(
            "errors_on_the_command_line",
            &[
                ("a misspelt key", with_sets(&["gpsu=32"])),
                ("a misspelt path", with_sets(&["cluster.gpsu=32"])),
                ("a key of several sections", with_sets(&["preset=llama-7b"])),
                ("no value", with_sets(&["gpus"])),
                ("an empty value", with_sets(&["gpus="])),
                ("an impossible value", with_sets(&["cluster.gpus=many"])),
                ("below a value", with_sets(&["cluster.gpus.x=1"])),
                ("an unknown section", with_sets(&["a.b.c.d=1"])),
                ("a section", with_sets(&["framework=nanotron"])),
                (
                    "a flag with an unknown name",
                    with_flags(&[(Flag::Model, "lama-13b")]),
                ),
                (
                    "a flag with a file that is not there",
                    with_flags(&[(Flag::Model, "no.json")]),
                ),
                (
                    "flags with impossible values",
                    with_flags(&[
                        (Flag::Model, "llama-13b"),
                        (Flag::Cluster, "dgx-a100-80gb"),
                        (Flag::Gpus, "-3"),
                        (Flag::SequenceLength, "2k"),
                    ]),
                ),
            ],
        );
    }

    #[test]
    fn about_files() {
        let check = |path: &str| instance::read(Path::new(path), &Overrides::none());
        let path = std::env::temp_dir().join(format!("parlayout-{}-bytes", std::process::id()));
        std::fs::write(&path, b"# fine\n\xff\xfe\x00").expect("the folder is writable");
        let binary = instance::read(&path, &Overrides::none()).expect_err("not UTF-8");
        std::fs::write(&path, vec![b'x'; 10_000_000]).expect("the folder is writable");
        let huge = instance::read(&path, &Overrides::none()).expect_err("too large");
        std::fs::remove_file(&path).expect("it exists");
        let shown = |error: InstanceError| match error {
            InstanceError::Unreadable { reason, hint, .. } => Err(InstanceError::Unreadable {
                path: "file".into(),
                reason,
                hint,
            }),
            other @ InstanceError::Broken(_) => Err(other),
        };
        snapshot(
            "errors_about_files",
            &[
                ("a file that is not there", check("no/such.toml")),
                ("a folder", check("/")),
                ("not UTF-8", shown(binary)),
                ("10 MB", shown(huge)),
            ],
        );
    }

    #[test]
    fn have_places_for_programs() {
        let error = from_text(&good_but("gpus = 64", "gpsu = 64")).expect_err("misspelt");
        let InstanceError::Broken(problems) = &error else {
            panic!("{error}");
        };
        let place = problems.list()[1].place().expect("it has a place");
        assert_eq!(
            (place.source.as_str(), place.line, place.column),
            ("job.toml", 6, 1)
        );
        assert_eq!(error.summary(), "`cluster.gpus` is missing (and 1 more)");
    }
}

mod schema {
    use super::*;
    use serde_json::Value as Json;

    /// Set to write the schema instead of comparing it.
    const UPDATE: &str = "UPDATE_SCHEMA";

    #[test]
    fn the_shipped_schema_is_that_of_the_reader() {
        let path = folder("schema/instance.schema.json");
        let json =
            serde_json::to_string_pretty(&instance::json_schema()).expect("it is JSON") + "\n";
        if std::env::var_os(UPDATE).is_some() {
            std::fs::write(&path, &json).expect("the folder is writable");
        }
        let shipped = std::fs::read_to_string(&path).expect("it is shipped");
        assert_eq!(
            shipped, json,
            "run the tests with {UPDATE}=1 and commit the schema"
        );
    }

    /// The paths of all keys that the schema knows.
    fn keys(schema: &Json, root: &Json, path: &str, found: &mut Vec<String>) {
        let schema = match schema["$ref"].as_str() {
            Some(reference) => &root["$defs"][reference.trim_start_matches("#/$defs/")],
            None => schema,
        };
        let Some(properties) = schema["properties"].as_object() else {
            found.push(path.to_owned());
            return;
        };
        for (key, below) in properties {
            let path = if path.is_empty() {
                key.clone()
            } else {
                format!("{path}.{key}")
            };
            keys(below, root, &path, found);
        }
    }

    #[test]
    fn the_reader_knows_every_key_of_the_schema_and_the_documentation_names_it() {
        let root = instance::json_schema();
        let mut paths = Vec::new();
        keys(&root, &root, "", &mut paths);
        assert!(paths.len() > 70, "{paths:?}");
        let documentation =
            std::fs::read_to_string(folder("docs/instance-format.md")).expect("it is shipped");
        for path in paths {
            let message = match with_sets(&[&format!("{path}=\u{1}")]) {
                Ok(_) => String::new(),
                Err(error) => error.to_string(),
            };
            assert!(!message.contains("unknown key"), "{path}: {message}");
            let leaf = path.rsplit('.').next().expect("a path has a last part");
            assert!(
                documentation.contains(&format!("`{leaf}`")),
                "{path} is not documented"
            );
        }
    }
}

mod hostile {
    use super::*;

    #[test]
    fn inputs_are_refused_in_plain_words() {
        let long_line = format!("x = \"{}\"", "y".repeat(900_000));
        let many_keys: String =
            (0..50_000).fold(String::new(), |text, n| text + &format!("k{n} = 1\n"));
        let nested: String = format!("a{} = 1", ".a".repeat(50_000));
        let headers = format!("[{}]", vec!["a"; 50_000].join("."));
        let inputs = [
            "\u{0}".repeat(1000),
            "[[[[[[[[".repeat(100_000),
            "{".repeat(100_000),
            "a = {a = ".repeat(10_000),
            "'''".to_owned(),
            "\u{feff}".to_owned(),
            "= = =".to_owned(),
            "\r\r\r".to_owned(),
            "🦀 = 🦀".to_owned(),
            long_line,
            many_keys,
            nested,
            headers,
        ];
        for input in &inputs {
            let error = from_text(input).expect_err("hostile");
            let text = error.to_string();
            let start: String = input.chars().take(40).collect();
            assert!(text.len() < 20_000, "{start}");
            assert!(
                !text.chars().any(|c| c.is_control() && c != '\n'),
                "{start}"
            );
        }
    }

    /// Lines that are nearly those of an instance.
    fn line() -> impl Strategy<Value = String> {
        let key = prop_oneof![
            Just("gpus"),
            Just("preset"),
            Just("memory"),
            Just("heads"),
            Just("layers"),
            Just("tensor_parallel"),
            Just("efficiency.gemm"),
            Just("config"),
            Just("file"),
            Just("accelerator"),
            Just("hidden"),
            Just("head_width"),
            Just("sharding"),
        ];
        let value = prop_oneof![
            any::<i64>().prop_map(|number| number.to_string()),
            any::<f64>().prop_map(|number| format!("{number:?}")),
            "\\PC{0,12}".prop_map(|text| format!("{text:?}")),
            "[0-9]{0,3} ?(GB|Gb/s|ms|GiB)".prop_map(|text| format!("{text:?}")),
            Just("[1, 2]".to_owned()),
            Just("{}".to_owned()),
            Just("true".to_owned()),
            Just("1979-05-27".to_owned()),
        ];
        let section = prop_oneof![
            Just("[model]"),
            Just("[cluster]"),
            Just("[training]"),
            Just("[search]"),
            Just("[framework]"),
            Just("[[search.forbid]]"),
            Just("[limits]"),
        ];
        prop_oneof![
            3 => (key, value).prop_map(|(key, value)| format!("{key} = {value}")),
            1 => section.prop_map(ToOwned::to_owned),
        ]
    }

    proptest! {
        #[test]
        fn any_text_gives_an_instance_or_an_error(text in "\\PC{0,200}|(?s).{0,200}") {
            if let Err(error) = from_text(&text) {
                prop_assert!(!error.to_string().is_empty());
            }
        }

        #[test]
        fn nearly_right_lines_give_an_instance_or_an_error(lines in prop::collection::vec(line(), 0..14)) {
            if let Err(error) = from_text(&lines.join("\n")) {
                prop_assert!(!error.to_string().is_empty());
            }
        }

        #[test]
        fn lines_added_to_a_right_file_too(line in line(), at in 0_usize..10) {
            let mut lines: Vec<&str> = GOOD.lines().collect();
            lines.insert(at, &line);
            if let Err(error) = from_text(&lines.join("\n")) {
                prop_assert!(!error.to_string().is_empty());
            }
        }

        #[test]
        fn any_override_gives_an_instance_or_an_error(set in "\\PC{0,30}=?\\PC{0,30}") {
            if let Err(error) = with_sets(&[&set]) {
                prop_assert!(!error.to_string().is_empty());
            }
        }

        #[test]
        fn any_bytes_give_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let path = std::env::temp_dir()
                .join(format!("parlayout-{}-any", std::process::id()));
            std::fs::write(&path, &bytes).expect("the folder is writable");
            let result = instance::read(&path, &Overrides::none());
            prop_assert!(result.is_err());
        }
    }
}
