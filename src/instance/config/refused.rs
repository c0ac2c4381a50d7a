//! Networks that are not modelled: refused by name.

use serde_json::Value as Json;

use super::fields::{NAMES, layer_types};
use super::keys::Config;
use crate::reading::{Problems, shown};

const MIXTURE: &str = "a mixture of experts";
const STATE_SPACE: &str = "state-space or linear-attention layers";
const LATENT: &str = "latent attention";

/// Parts of names that say what a type is.
const PARTS: &[(&str, &str)] = &[
    ("moe", "is a mixture of experts"),
    ("mamba", "has state-space or linear-attention layers"),
    ("rwkv", "has state-space or linear-attention layers"),
];

/// Counts that are harmless up to a value.
const COUNTS: &[(&str, u64, &str)] = &[
    ("num_experts", 1, MIXTURE),
    ("num_local_experts", 1, MIXTURE),
    ("n_routed_experts", 1, MIXTURE),
    ("moe_num_experts", 1, MIXTURE),
    ("num_nextn_predict_layers", 0, "multi-token prediction"),
    ("mtp_num_hidden_layers", 0, "multi-token prediction"),
    ("num_mtp_modules", 0, "multi-token prediction"),
    ("q_lora_rank", 0, LATENT),
    ("kv_lora_rank", 0, LATENT),
    ("num_kv_shared_layers", 0, "shared keys and values"),
    ("hidden_size_per_layer_input", 0, "embeddings in each layer"),
];

/// Fields that only networks of other kinds have.
const OTHER_FIELDS: &[(&str, &str)] = &[
    ("ssm_cfg", STATE_SPACE),
    ("mamba_d_state", STATE_SPACE),
    ("attn_layer_period", STATE_SPACE),
    ("linear_num_key_heads", STATE_SPACE),
    ("hybrid_override_pattern", STATE_SPACE),
    ("layers_block_type", STATE_SPACE),
    ("block_configs", "layers of different shapes"),
    ("cross_attention_layers", "cross-attention"),
];

/// Reports every field that describes a network that is not modelled.
pub(super) fn check(config: &Config, problems: &mut Problems) {
    let mut refuse = |field: &str, text: String| {
        let several = ["layers", "embeddings in each layer", "shapes"];
        let are = several.iter().any(|end| text.ends_with(end));
        let verb = if are { "are" } else { "is" };
        problems.add(
            &config.origin(field),
            format!("{text}, which {verb} not modelled yet"),
            "plan for a dense decoder, or describe a similar one by its shape in `[model]`",
        );
    };
    if let Some(model_type) = config.model_type()
        && let Some(what) = kind(model_type)
    {
        refuse("model_type", format!("`{}` {what}", shown(model_type)));
        return;
    }
    for (field, harmless, what) in COUNTS {
        let count = config.fields.get(*field).and_then(Json::as_f64);
        if let Some(count) = count.filter(|count| *count > *harmless as f64) {
            refuse(field, format!("`{field}` is {count}: {what}"));
        }
    }
    for (field, what) in OTHER_FIELDS {
        if config
            .fields
            .get(*field)
            .is_some_and(|value| !value.is_null())
        {
            refuse(field, format!("`{field}`: {what}"));
        }
    }
    for field in ["is_encoder_decoder", "add_cross_attention"] {
        if config.fields.get(field) == Some(&Json::Bool(true)) {
            refuse(field, format!("`{field}`: an encoder"));
        }
    }
    let mut kinds = layer_types(&config.fields).into_iter();
    if let Some(other) =
        kinds.find(|kind| !kind.ends_with("full_attention") && *kind != "sliding_attention")
    {
        refuse(
            "layer_types",
            format!("`layer_types` has `{}`: {STATE_SPACE}", shown(other)),
        );
    }
}

fn kind(model_type: &str) -> Option<&'static str> {
    NAMES
        .refused
        .iter()
        .find(|refused| refused.types.iter().any(|name| name == model_type))
        .map(|refused| refused.what.as_str())
        .or_else(|| {
            let part = PARTS.iter().find(|(part, _)| model_type.contains(part));
            part.map(|(_, what)| *what)
        })
}
