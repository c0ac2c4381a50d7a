//! Exact parameter counts of 140 networks of 45 families from their `config.json`.
//!
//! `tests/data/model_parameters.jsonl` has one network a line. `known` says how its count is
//! known: `counted` = the tensors of the class in Hugging Face's library (release 4.57), built from
//! the same config without weights; `listed` = the tensors of one layer and of the rest, written
//! down by hand from the code that ships with the weights.

use super::config_json::check;
use super::*;
use serde_json::Value as Json;

/// The lines of the table.
fn networks() -> Vec<Json> {
    let text = include_str!("../../data/model_parameters.jsonl");
    let parsed = text.lines().map(serde_json::from_str);
    parsed.collect::<Result<_, _>>().expect("lines of JSON")
}

/// Elements of a list of shapes.
fn elements(shapes: &Json) -> u64 {
    let shapes = shapes.as_array().expect("a list").iter();
    let tensor = |shape: &Json| {
        let widths = shape.as_array().expect("a shape").iter();
        widths
            .map(|width| width.as_u64().expect("a width"))
            .product::<u64>()
    };
    shapes.map(tensor).sum()
}

/// The network of a config, or the message.
fn read(config: &Json) -> Result<Instance, String> {
    check(&config.to_string())
}

#[test]
fn parameters_are_counted_to_the_last_digit() {
    let networks = networks();
    let mut wrong = Vec::new();
    let mut families = std::collections::BTreeSet::new();
    for network in &networks {
        let right = network["parameters"].as_u64().expect("a count");
        if network["known"] == "listed" {
            let layers = network["layers"].as_u64().expect("a count");
            let listed = layers * elements(&network["layer"]) + elements(&network["outer"]);
            assert_eq!(listed, right, "{}", network["model"]);
        }
        families.insert(network["config"]["model_type"].to_string());
        match read(&network["config"]) {
            Ok(instance) => {
                let ours = instance.job.transformer.parameters();
                if ours != right {
                    wrong.push(format!("{}: {ours}, not {right}", network["model"]));
                }
            }
            Err(error) => wrong.push(format!("{}: {error}", network["model"])),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(
        networks.len() >= 140 && families.len() >= 45,
        "{families:?}"
    );
}

#[test]
fn nothing_is_guessed_of_known_families() {
    for network in networks() {
        let instance = read(&network["config"]).unwrap_or_else(|error| panic!("{error}"));
        let warnings = instance.warnings.join("\n");
        assert!(
            !warnings.contains("not known") && !warnings.contains("not counted"),
            "{}: {warnings}",
            network["model"]
        );
    }
}

#[test]
fn a_tied_network_is_never_larger() {
    for mut network in networks() {
        let name = network["model"].to_string();
        let config = &mut network["config"];
        let mut parameters = |tied: bool| {
            let fields = match config.get("text_config") {
                Some(_) => &mut config["text_config"],
                None => &mut *config,
            };
            fields["tie_word_embeddings"] = tied.into();
            let instance = read(config).unwrap_or_else(|error| panic!("{error}"));
            let network = &instance.job.transformer;
            (network.parameters(), network.embedding_weights())
        };
        let ((tied, weights), (untied, _)) = (parameters(true), parameters(false));
        assert_eq!(tied + weights, untied, "{name}");
    }
}

#[test]
fn no_field_that_shapes_a_network_is_passed_over() {
    let fields = [
        "num_query_heads",
        "n_kv_heads",
        "head_width",
        "hidden_width",
        "inner_size",
        "mlp_hidden",
        "d_ff",
        "num_dense_layers",
        "n_expert",
        "num_moe_experts",
        "ffn_multiplier_ratio",
        "attention_groups",
        "lora_rank",
        "value_head_dim",
    ];
    for network in networks() {
        if network["config"].get("text_config").is_some() {
            continue;
        }
        for field in fields {
            let mut config = network["config"].clone();
            config[field] = 3.into();
            let error = read(&config).expect_err(field);
            assert!(
                error.contains(&format!("`{field}` would change")),
                "{field}: {error}"
            );
        }
    }
}
