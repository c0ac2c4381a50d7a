//! Hugging Face configs.

use std::sync::atomic::{AtomicU32, Ordering};

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

/// The instance of a `config.json` with this text, or the message.
pub(super) fn check(text: &str) -> Result<Instance, String> {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    let name = format!("parlayout-{}-{call}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).expect("the folder is writable");
    std::fs::write(folder.join("config.json"), text).expect("the folder is writable");
    let job = good_but("preset = \"llama-13b\"", "config = \"config.json\"");
    let result = instance::from_text("job.toml", &job, &folder, &Overrides::none());
    std::fs::remove_dir_all(&folder).expect("it exists");
    // The folder's name differs from run to run.
    result.map_err(|error| error.to_string().replace(&*folder.to_string_lossy(), "."))
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
        unknown.contains("`model_type` `gamma` is not known: read as a LLaMA"),
        "{unknown}"
    );
    let window = warnings(&GEMMA.replace("\"head_dim\"", "\"sliding_window\": 4096, \"head_dim\""));
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
    let with =
        |field: &str| check(&QWEN2.replace("\"vocab_size\"", &format!("{field}, \"vocab_size\"")));
    snapshot(
        "errors_in_config_json",
        vec![
            ("a mixture of experts", with("\"num_local_experts\": 8")),
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
            ("a field of another family", with("\"num_query_groups\": 4")),
            ("two names that disagree", with("\"n_head\": 16")),
            (
                "groups where the family has none",
                check(&GPT2.replace("\"n_inner\": null", "\"num_key_value_heads\": 4")),
            ),
            (
                "a shape within a field",
                with("\"ffn_config\": { \"moe_num_experts\": 8 }"),
            ),
            (
                "an unknown type with a field of its own",
                check(&QWEN2.replace("\"qwen2\"", "\"gamma\", \"use_gate\": true")),
            ),
            (
                "an unknown type that may have two matrices",
                check(&QWEN2.replace("\"qwen2\"", "\"gamma\", \"hidden_act\": \"relu2\"")),
            ),
            ("a hybrid", check(&QWEN2.replace("qwen2", "falcon_h1"))),
            (
                "embeddings narrower than the hidden size",
                check(&OPT.replace("proj_dim\": 2048", "proj_dim\": 512")),
            ),
            (
                "the first ChatGLM",
                check(&QWEN2.replace("\"qwen2\"", "\"chatglm\", \"inner_hidden_size\": 16384")),
            ),
            (
                "an MPT with norms of queries and keys",
                check(
                    r#"{ "model_type": "mpt", "d_model": 64, "n_layers": 2,
  "attn_config": { "qk_ln": true } }"#,
                ),
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

#[test]
fn what_changes_the_numbers_is_read_too() {
    let numerics = |text: &str| check(text).expect("valid").job.transformer.numerics;
    let llama = QWEN2
        .replace("\"qwen2\"", "\"llama\"")
        .replace("{\n", "{\n  \"rope_theta\": 500000.0, \"rms_norm_eps\": 1e-05, \"attention_dropout\": 0.1, \
                  \"rope_scaling\": { \"rope_type\": \"llama3\", \"factor\": 8.0, \"low_freq_factor\": 1.0, \
                  \"high_freq_factor\": 4.0, \"original_max_position_embeddings\": 8192 },\n");
    let expected = Numerics {
        rotary_base: 5e5,
        rope_scaling: RopeScaling::Llama3,
        rope_factor: 8.0,
        norm_epsilon: 1e-5,
        attention_dropout: 0.1,
        ..Numerics::USUAL
    };
    assert_eq!(numerics(&llama), expected);
    // Transformers 5 has other names; other bounds than those of Llama 3.1 are another scaling.
    let renamed = llama
        .replace("rope_scaling", "rope_parameters")
        .replace("\"rope_theta\": 500000.0, ", "");
    let renamed = renamed.replace("\"factor\"", "\"rope_theta\": 500000.0, \"factor\"");
    assert_eq!(numerics(&renamed), expected);
    let other = llama.replace("\"high_freq_factor\": 4.0", "\"high_freq_factor\": 8.0");
    assert_eq!(numerics(&other).rope_scaling, RopeScaling::Other);
    // What a config leaves out is what its family has.
    let gpt = numerics(GPT2);
    assert_eq!((gpt.hidden_dropout, gpt.attention_dropout), (0.1, 0.1));
    assert_eq!(gpt.activation, Activation::Gelu);
    let gemma = numerics(GEMMA);
    assert_eq!(
        (gemma.activation, gemma.norm_epsilon),
        (Activation::Gelu, 1e-6)
    );
    assert_eq!(numerics(OPT).activation, Activation::Relu);
}

#[test]
fn a_size_that_is_null_is_not_guessed() {
    let message = check(&QWEN2.replace("151936", "null")).expect_err("no size");
    assert!(message.contains("`vocab_size` is `null`"), "{message}");
    assert!(
        message.contains("give `vocabulary` in `[model]`"),
        "{message}"
    );
    let twice = QWEN2.replace("\"num_hidden_layers\": 24", "\"num_hidden_layers\": null");
    assert!(check(&twice).is_err_and(|message| message.contains("`num_hidden_layers` is `null`")));
}
