//! What a network computes besides its shape: positions, norms, activation, dropout.

use serde_json::Value as Json;

use super::keys::{Config, Names};
use crate::transformer::{Activation, Numerics, Positions, RopeScaling};

const BASE: Names = &["rope_theta", "rotary_emb_base", "rotary_base"];
const SHARE: Names = &["partial_rotary_factor", "rotary_pct", "rope_pct"];
const EPSILON: Names = &[
    "rms_norm_eps",
    "layer_norm_eps",
    "layer_norm_epsilon",
    "layernorm_epsilon",
    "norm_epsilon",
    "norm_eps",
];
const ACTIVATION: Names = &[
    "hidden_activation",
    "hidden_act",
    "activation_function",
    "activation",
];
const HIDDEN_DROPOUT: Names = &[
    "hidden_dropout",
    "hidden_dropout_prob",
    "resid_pdrop",
    "residual_dropout",
    "resid_dropout",
    "dropout",
];
const ATTENTION_DROPOUT: Names = &[
    "attention_dropout",
    "attn_pdrop",
    "attn_dropout_prob",
    "attention_probs_dropout_prob",
    "attention_dropout_prob",
];

/// What the config says, and what its family has besides.
pub(super) fn read(config: &mut Config, usual: Numerics) -> Numerics {
    let (rope_scaling, rope_factor) = rope_scaling(config);
    let ratio = number(config, &["rope_ratio"]).unwrap_or(1.0);
    let base = number(config, BASE).or_else(|| rope_number(config, "rope_theta"));
    Numerics {
        positions: positions(config, usual.positions),
        rotary_base: base.unwrap_or(usual.rotary_base) * ratio,
        rotary_share: rotary_share(config).unwrap_or(usual.rotary_share),
        rope_scaling,
        rope_factor,
        norm_epsilon: number(config, EPSILON).unwrap_or(usual.norm_epsilon),
        activation: activation(config).unwrap_or(usual.activation),
        hidden_dropout: number(config, HIDDEN_DROPOUT).unwrap_or(usual.hidden_dropout),
        attention_dropout: number(config, ATTENTION_DROPOUT).unwrap_or(usual.attention_dropout),
    }
}

/// The first number that is stated under one of the names.
fn number(config: &mut Config, names: Names) -> Option<f64> {
    let mut stated = names.iter().filter_map(|name| config.value(name)?.as_f64());
    stated.next()
}

/// The fields on rotary embeddings, by their old and their new name.
const ROPE: Names = &["rope_scaling", "rope_parameters"];

/// A number within the fields on rotary embeddings.
fn rope_number(config: &mut Config, field: &str) -> Option<f64> {
    let mut stated = ROPE
        .iter()
        .filter_map(|name| config.value(name)?.get(field)?.as_f64());
    stated.next()
}

/// The share that is rotated: stated as such, or as a width.
fn rotary_share(config: &mut Config) -> Option<f64> {
    let share = number(config, SHARE).or_else(|| rope_number(config, "partial_rotary_factor"));
    share.or_else(|| {
        let width = number(config, &["rotary_dim"])?;
        let of = |config: &mut Config, names: Names| number(config, names);
        let head = of(config, super::keys::HEAD_WIDTH)
            .or_else(|| Some(of(config, super::keys::HIDDEN)? / of(config, super::keys::HEADS)?))?;
        Some((width / head).min(1.0))
    })
}

/// Low and high bound of the turns between which Llama 3 stretches smoothly, and the length that they
/// are counted in.
const LLAMA3: [(&str, f64); 3] = [
    ("low_freq_factor", 1.0),
    ("high_freq_factor", 4.0),
    ("original_max_position_embeddings", 8192.0),
];

fn rope_scaling(config: &mut Config) -> (RopeScaling, f64) {
    let kind = ROPE.iter().find_map(|name| {
        let fields = config.value(name)?;
        let kind = fields.get("rope_type").or_else(|| fields.get("type"))?;
        kind.as_str().map(str::to_owned)
    });
    let factor = rope_number(config, "factor").unwrap_or(1.0).max(1.0);
    let kind = match kind.as_deref() {
        None | Some("default" | "mrope") => return (RopeScaling::None, 1.0),
        Some("linear") => RopeScaling::Linear,
        Some("yarn") => RopeScaling::Yarn,
        Some("llama3") => {
            let is_usual = |(field, usual): (&str, f64)| {
                let stated = rope_number(config, field);
                stated.is_none_or(|stated| (stated - usual).abs() < f64::EPSILON)
            };
            if LLAMA3.into_iter().all(is_usual) {
                RopeScaling::Llama3
            } else {
                RopeScaling::Other
            }
        }
        Some(_) => RopeScaling::Other,
    };
    (kind, factor)
}

fn positions(config: &mut Config, usual: Positions) -> Positions {
    let stated = config.value("position_embedding_type");
    let is_alibi = match stated.and_then(Json::as_str) {
        Some(kind) => kind.eq_ignore_ascii_case("alibi"),
        None => config.flag("alibi", usual == Positions::Alibi),
    };
    if is_alibi {
        Positions::Alibi
    } else {
        Positions::Rotary
    }
}

fn activation(config: &mut Config) -> Option<Activation> {
    let mut stated = ACTIVATION
        .iter()
        .filter_map(|name| config.value(name)?.as_str().map(str::to_owned));
    Some(match stated.next()?.as_str() {
        "silu" | "swish" | "swiglu" => Activation::Silu,
        name if name.contains("gelu") => Activation::Gelu,
        "relu" => Activation::Relu,
        "relu2" => Activation::SquaredRelu,
        _ => Activation::Other,
    })
}
