//! What a network computes besides its shape: positions, norms, activation, dropout.

use serde_json::Value as Json;

use super::fields::names;
use super::keys::Config;
use crate::transformer::{Activation, Numerics, Positions, RopeScaling};

/// What the config says, and what its family has besides.
pub(super) fn read(config: &mut Config, usual: Numerics) -> Numerics {
    let (rope_scaling, rope_factor) = rope_scaling(config);
    let ratio = number(config, "rope_ratio").unwrap_or(1.0);
    let base = number(config, "rotary_base").or_else(|| rope_number(config, "rope_theta"));
    Numerics {
        positions: positions(config, usual.positions),
        rotary_base: base.unwrap_or(usual.rotary_base) * ratio,
        rotary_share: rotary_share(config).unwrap_or(usual.rotary_share),
        rope_scaling,
        rope_factor,
        norm_epsilon: number(config, "norm_epsilon").unwrap_or(usual.norm_epsilon),
        activation: activation(config).unwrap_or(usual.activation),
        hidden_dropout: number(config, "hidden_dropout").unwrap_or(usual.hidden_dropout),
        attention_dropout: number(config, "attention_dropout").unwrap_or(usual.attention_dropout),
    }
}

/// The first number that is stated under one of the key's names.
fn number(config: &mut Config, key: &str) -> Option<f64> {
    let mut stated = names(key)
        .iter()
        .filter_map(|name| config.value(name)?.as_f64());
    stated.next()
}

/// The fields on rotary embeddings, by their old and their new name.
const ROPE: [&str; 2] = ["rope_scaling", "rope_parameters"];

/// A number within the fields on rotary embeddings.
fn rope_number(config: &mut Config, field: &str) -> Option<f64> {
    let mut stated = ROPE
        .iter()
        .filter_map(|name| config.value(name)?.get(field)?.as_f64());
    stated.next()
}

/// The share that is rotated: stated as such, or as a width.
fn rotary_share(config: &mut Config) -> Option<f64> {
    let share =
        number(config, "rotary_share").or_else(|| rope_number(config, "partial_rotary_factor"));
    share.or_else(|| {
        let width = number(config, "rotary_width")?;
        let head = number(config, "head_width")
            .or_else(|| Some(number(config, "hidden")? / number(config, "heads")?))?;
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
    let mut stated = names("activation")
        .iter()
        .filter_map(|name| config.value(name)?.as_str().map(named));
    stated.next()
}

/// The activation function of a name.
pub(super) fn named(name: &str) -> Activation {
    match name {
        "silu" | "swish" | "swiglu" => Activation::Silu,
        name if name.contains("gelu") => Activation::Gelu,
        "relu" => Activation::Relu,
        "relu2" => Activation::SquaredRelu,
        _ => Activation::Other,
    }
}
