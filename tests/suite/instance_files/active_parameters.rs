//! Exact total and active parameters, and FLOP per token, of 36 networks from their `config.json`.
//!
//! `tests/data/active_parameters.jsonl` has one network a line, its counts from the shapes of Hugging
//! Face's classes: `parameters` without layers that predict further tokens, those layers as `further`,
//! and as `checkpoint` what a checkpoint holds that has a copy of embedding and output layer for them.
//! `active` is by convention, and `flop_at_4096` by Megatron-LM's count (`training/training.py`) of causal
//! attention over 4,096 tokens without windows. What is known otherwise of a published figure:
//!
//! - Moonlight's checkpoint has 15,960,111,936: 27 times 64 elements more than its class.
//! - Qwen2-57B's digits were not found, only that they are some 57.4e9.
//! - Publishers count as active: gpt-oss without the input embedding, Qwen 3, Mixtral and Kimi K2
//!   all, GLM-4.5 without either embedding, `DeepSeek`-V3 (37e9) between all and the second.

use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use parlayout::cost_model::flops;
use parlayout::transformer::{Active, Transformer, Windows};
use parlayout::workload::FlopConvention;
use serde_json::Value as Json;

/// The lines of the table.
fn networks() -> Vec<Json> {
    let text = include_str!("../../data/active_parameters.jsonl");
    let parsed = text.lines().map(serde_json::from_str);
    parsed.collect::<Result<_, _>>().expect("lines of JSON")
}

/// The names of the networks, without what a name adds in parentheses.
pub(super) fn names() -> Vec<String> {
    let name = |line: Json| {
        let name = line["model"].as_str().unwrap_or_default();
        name.split(" (").next().unwrap_or(name).to_owned()
    };
    networks().into_iter().map(name).collect()
}

/// The network of a config, or the message.
pub(super) fn read_config(config: &str) -> Result<Transformer, String> {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    let name = format!("parlayout-network-{}-{call}.json", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, config).expect("the folder is writable");
    let read = instance::read_model(&path.to_string_lossy());
    std::fs::remove_file(&path).expect("it exists");
    read.map_err(|error| error.to_string())
}

/// The network of a line.
fn network(line: &Json) -> Transformer {
    let read = read_config(&line["config"].to_string());
    read.unwrap_or_else(|error| panic!("{}: {error}", line["model"]))
}

#[test]
fn totals_and_active_parameters_are_exact() {
    let lines = networks();
    let mut wrong = Vec::new();
    for line in &lines {
        let network = network(line);
        let further = network.prediction_parameters();
        let copies = 2 * u64::from(network.prediction_layers) * network.embedding_weights();
        let mut counted = vec![
            ("parameters", network.parameters() - further),
            ("further", further),
            ("checkpoint", network.parameters() + copies),
        ];
        counted.retain(|(key, _)| !line[*key].is_null());
        let right = counted.iter().map(|(key, _)| line[*key].as_u64());
        let mut compared: Vec<_> = counted.iter().copied().zip(right).collect();
        for &convention in Active::ALL {
            let key = convention.as_str();
            let right = line["active"][key].as_u64();
            compared.push(((key, network.active_parameters(convention)), right));
        }
        for ((key, ours), right) in compared {
            if right != Some(ours) {
                wrong.push(format!("{} {key}: {ours}, not {right:?}", line["model"]));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(lines.len(), 36);
}

#[test]
fn flop_are_megatron_lms() {
    for line in networks() {
        let whole = Transformer {
            windows: None,
            ..network(&line)
        };
        let right = line["flop_at_4096"].as_f64().expect("a number");
        let ours = flops::per_token(&whole, 4096, FlopConvention::Causal).value();
        assert!(
            (ours / right - 1.0).abs() < 2e-3,
            "{}: {ours:e}",
            line["model"]
        );
    }
}

/// What Megatron-LM logged as TFLOP/s times GPUs and step time over the tokens of a step, at sequences of
/// 4,096 tokens, in GFLOP.
#[test]
fn flop_of_presets_are_those_of_logs() {
    for (name, right) in [
        ("qwen3-30b-a3b", 23.006),
        ("qwen3-235b-a22b", 148.03),
        ("deepseek-v3", 259.99),
        ("qwen3-8b", 49.03),
        ("gpt-oss-120b", 32.630),
        ("kimi-k2", 204.5),
    ] {
        let network = catalog::model(name).expect("it is in the catalog");
        let ours = flops::per_token(&network, 4096, FlopConvention::Causal).value() / 1e9;
        assert!((ours / right - 1.0).abs() < 2e-3, "{name}: {ours}");
    }
}

#[test]
fn presets_are_the_networks_of_their_configs() {
    let mut seen = 0;
    for line in networks() {
        let name = line["model"].as_str().expect("a name");
        let name = name.split(" (").next().unwrap_or(name);
        if let Ok(preset) = catalog::model(name) {
            let read = network(&line);
            let numerics = preset.numerics;
            let named = Transformer {
                name: preset.name.clone(),
                numerics,
                ..read
            };
            assert_eq!(preset, named);
            seen += 1;
        }
    }
    assert!(seen >= 20, "{seen}");
}

#[test]
fn windows_are_read_where_the_family_has_them() {
    let windows = |name: &str| {
        let mut lines = networks().into_iter();
        let line = lines.find(|line| {
            line["model"]
                .as_str()
                .is_some_and(|it| it.starts_with(name))
        });
        let windows = network(&line.expect("it is in the table")).windows;
        windows.map(
            |Windows {
                 window,
                 window_interval,
             }| (window, window_interval),
        )
    };
    assert_eq!(windows("gemma-2-27b"), Some((4096, 2)));
    assert_eq!(windows("gemma-3-27b"), Some((1024, 6)));
    assert_eq!(windows("gpt-oss-20b"), Some((128, 2)));
    assert_eq!(windows("mistral-7b"), Some((4096, 0)));
    for none in [
        "mistral-nemo",
        "qwen2.5-7b",
        "qwen3-30b",
        "llama-4",
        "olmo-2",
        "phi-4",
    ] {
        assert_eq!(windows(none), None, "{none}");
    }
}

#[test]
fn layers_of_experts_may_alternate_with_dense_ones() {
    let maverick = read_config(
        r#"{ "model_type": "llama4_text", "num_hidden_layers": 48, "hidden_size": 5120,
             "num_local_experts": 128, "interleave_moe_layer_step": 2 }"#,
    );
    let maverick = maverick.expect("the rest is the family's");
    assert_eq!(
        (maverick.dense_layers(), maverick.expert_layers()),
        (24, 24)
    );
    assert_eq!(maverick.feed_forward_width, 16_384);
    // Published as 400e9 and 17e9, to so many digits.
    let total = maverick.parameters() as f64 / 400e9;
    let active = maverick.active_parameters(Active::All) as f64 / 17e9;
    assert!((total - 1.0).abs() < 0.01, "{total}");
    assert!((active - 1.0).abs() < 0.02, "{active}");
    let dense_first = read_config(
        r#"{ "model_type": "qwen3_moe", "num_hidden_layers": 4, "hidden_size": 64, "mlp_only_layers": [0, 1] }"#,
    );
    assert_eq!(dense_first.expect("leading layers").dense_layers(), 2);
    let other = read_config(
        r#"{ "model_type": "qwen3_moe", "num_hidden_layers": 4, "hidden_size": 64, "mlp_only_layers": [2] }"#,
    );
    assert!(other.is_err_and(|message| message.contains("`mlp_only_layers` lists others")));
}

#[test]
fn keys_of_experts_agree_with_each_other() {
    let message = |keys: &str| {
        let model = format!("preset = \"deepseek-v3\"\n{keys}");
        let text = good_but("preset = \"llama-13b\"", &model);
        from_text(&text).expect_err(keys).to_string()
    };
    for (keys, part) in [
        (
            "experts_per_token = 300",
            "`model.experts_per_token` is 300, but a layer has 256 experts",
        ),
        (
            "dense_layers = 61",
            "leaves none of the 61 layers with experts",
        ),
        ("expert_interval = 4", "does not divide the 58 layers"),
        ("experts = 10000", "`model.experts` is at most 8192"),
        (
            "dense_layers = 0\nfeed_forward_width = 8",
            "all 61 layers have experts",
        ),
        (
            "key_value_heads = 8",
            "latent attention has keys and values for all 128 heads",
        ),
        ("head_width = 64", "the parts of a head are 192 wide"),
        (
            "window = 128\nwindow_interval = 1",
            "every layer would see the whole sequence",
        ),
        ("window_interval = 2", "`model.window` is missing"),
        ("prediction_layers = -1", "must be a whole number, not `-1`"),
    ] {
        let message = message(keys);
        assert!(message.contains(part), "{keys}: {message}");
    }
    let dense = |keys: &str| {
        let model = format!("preset = \"llama-13b\"\n{keys}");
        from_text(&good_but("preset = \"llama-13b\"", &model))
            .expect_err(keys)
            .to_string()
    };
    for (keys, part) in [
        ("dense_layers = 1", "`model.experts` is missing"),
        ("experts = 8", "`model.experts_per_token` is missing"),
        ("value_width = 64", "`model.key_value_rank` is missing"),
        ("key_value_rank = 64", "`model.unrotated_width` is missing"),
    ] {
        let message = dense(keys);
        assert!(message.contains(part), "{keys}: {message}");
    }
}

#[test]
fn what_costs_do_not_cover_is_refused_not_planned_as_dense() {
    let text = good_but("llama-13b", "mixtral-8x7b");
    assert!(from_text(&text).is_ok());
    // Every second layer has experts, the others a dense block.
    let model = "preset = \"mixtral-8x7b\"\nexpert_interval = 2\nfeed_forward_width = 14336";
    let text = good_but("preset = \"llama-13b\"", model);
    let message = from_text(&text).expect_err("costs do not cover it");
    let message = message.to_string();
    assert!(message.contains("alternate between dense"), "{message}");
}

/// Families of which no digits were found, to those that are published.
#[test]
fn other_mixtures_of_experts_are_as_large_as_their_cards_say() {
    let phi = r#"{ "model_type": "phimoe", "hidden_size": 4096, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 6400, "vocab_size": 32064,
        "num_local_experts": 16, "num_experts_per_tok": 2, "attention_bias": true, "lm_head_bias": true,
        "router_jitter_noise": 0.01, "input_jitter_noise": 0.01, "tie_word_embeddings": false }"#;
    let dbrx = r#"{ "model_type": "dbrx", "d_model": 6144, "n_heads": 48, "n_layers": 40, "vocab_size": 100352,
        "attn_config": { "clip_qkv": 8, "kv_n_heads": 8, "model_type": "", "rope_theta": 500000 },
        "ffn_config": { "ffn_hidden_size": 10752, "model_type": "", "moe_jitter_eps": 0.01,
        "moe_loss_weight": 0.05, "moe_num_experts": 16, "moe_top_k": 4 }, "tie_word_embeddings": false }"#;
    let dots = r#"{ "model_type": "dots1", "hidden_size": 4096, "num_hidden_layers": 62,
        "num_attention_heads": 32, "num_key_value_heads": 32, "head_dim": 128, "intermediate_size": 10944,
        "moe_intermediate_size": 1408, "n_routed_experts": 128, "n_shared_experts": 2,
        "num_experts_per_tok": 6, "first_k_dense_replace": 1, "vocab_size": 152064, "attention_bias": false,
        "tie_word_embeddings": false }"#;
    let granite = r#"{ "model_type": "granitemoe", "hidden_size": 1536, "num_hidden_layers": 32,
        "num_attention_heads": 24, "num_key_value_heads": 8, "intermediate_size": 512, "vocab_size": 49155,
        "num_local_experts": 40, "num_experts_per_tok": 8, "attention_bias": false,
        "tie_word_embeddings": true }"#;
    for (config, total, active) in [
        (phi, 41.9, 6.6),
        (dbrx, 132.0, 36.0),
        (dots, 142.0, 14.0),
        (granite, 3.3, 0.8),
    ] {
        let network = read_config(config).unwrap_or_else(|error| panic!("{config}: {error}"));
        let close =
            |count: u64, published: f64| (count as f64 / 1e9 / published - 1.0).abs() < 0.12;
        assert!(
            (network.parameters() as f64 / 1e9 / total - 1.0).abs() < 0.03,
            "{total}: {network:?}"
        );
        let used = network.active_parameters(Active::All);
        assert!(close(used, active), "{active}: {used}");
    }
}
