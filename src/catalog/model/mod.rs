//! `[model]`: from the shape to a checked [`Transformer`].

mod attention;
mod experts;

use std::ops::RangeInclusive;

use super::sections::ModelSection;
use crate::reading::{Field, OrNone, Origin, Problems, SourceKind};
use crate::transformer::{
    Activation, Biases, Embeddings, FeedForward, Normalization, Numerics, SmallParts, Transformer,
};

/// Largest values, far beyond any network, so that no count overflows.
const MOST_LAYERS: u64 = 1024;
const WIDEST_HIDDEN: u64 = 1 << 20;
const WIDEST_ATTENTION: u64 = 1 << 22;
const MOST_NORMS: u64 = 16;
const MOST_FURTHER: u64 = 16;
const LARGEST_VOCABULARY: u64 = 1 << 26;
/// What may be dropped.
const DROPOUT: RangeInclusive<f64> = 0.0..=0.99;

/// A part that is broken, which is reported already.
struct Broken;

/// The network of a section over its bases.
pub(crate) fn complete(
    section: &ModelSection,
    name: String,
    origin: Option<&Origin>,
    problems: &mut Problems,
) -> Option<Transformer> {
    let required =
        |field: &Field<u64>, key: &str, most: u64, example: u64, problems: &mut Problems| {
            let path = format!("model.{key}");
            let hint = format!("write a number such as `{key} = {example}`");
            let value = field.required(&path, origin, &hint, problems);
            field.at_most(most, &path, problems);
            value
        };
    let layers = required(&section.layers, "layers", MOST_LAYERS, 40, problems);
    let hidden = required(&section.hidden, "hidden", WIDEST_HIDDEN, 5120, problems);
    let heads = required(&section.heads, "heads", WIDEST_HIDDEN, 40, problems);
    let experts = experts::experts(section, layers, origin, problems);
    let feed_forward_width = match experts {
        Ok(experts) => experts::dense_width(section, layers, experts, origin, problems),
        Err(Broken) => None,
    };
    let vocabulary = &section.vocabulary;
    let vocabulary = required(
        vocabulary,
        "vocabulary",
        LARGEST_VOCABULARY,
        32000,
        problems,
    );
    let positions = &section.learned_positions;
    let activation = &section.activation_parameters;
    positions.at_most(LARGEST_VOCABULARY, "model.learned_positions", problems);
    activation.at_most(WIDEST_HIDDEN, "model.activation_parameters", problems);
    for (field, path) in [
        (&section.layer_norms, "model.layer_norms"),
        (&section.outer_norms, "model.outer_norms"),
    ] {
        field.at_most(MOST_NORMS, path, problems);
    }
    let (layers, hidden, heads) = (layers?, hidden?, heads?);
    let latent_attention = attention::latent(section, origin, problems).ok()?;
    let key_value_heads = attention::key_value_heads(section, heads, latent_attention, problems)?;
    let head_width = attention::head_width(section, hidden, heads, latent_attention, problems)?;
    let layers = small(layers);
    Some(Transformer {
        name: section.name.or_default(name)?,
        layers,
        hidden,
        heads,
        key_value_heads,
        head_width,
        feed_forward_width: feed_forward_width?,
        feed_forward: section.feed_forward.or_default(FeedForward::Gated)?,
        vocabulary: vocabulary?,
        embeddings: section.embeddings.or_default(Embeddings::Untied)?,
        normalization: section.normalization.or_default(Normalization::RmsNorm)?,
        biases: section.biases.or_default(Biases::None)?,
        learned_positions: positions.or_default(0)?,
        experts: experts.ok()?,
        latent_attention,
        windows: attention::windows(section, problems).ok()?,
        prediction_layers: prediction_layers(section, problems)?,
        small_parts: small_parts(section, problems)?,
        numerics: numerics(section, problems)?,
    })
}

fn numerics(section: &ModelSection, problems: &mut Problems) -> Option<Numerics> {
    let usual = Numerics::USUAL;
    let is_gated = section.feed_forward.or_default(FeedForward::Gated)? == FeedForward::Gated;
    let activation = if is_gated {
        usual.activation
    } else {
        Activation::Gelu
    };
    let mut numerics = Numerics {
        positions: section.positions.or_default(usual.positions)?,
        rope_scaling: section.rope_scaling.or_default(usual.rope_scaling)?,
        activation: section.activation.or_default(activation)?,
        ..usual
    };
    macro_rules! within {
        ($($key:ident: $range:expr,)+) => {
            $({
                let (least, most) = ($range.start(), $range.end());
                section.$key.check(
                    |number| $range.contains(number),
                    problems,
                    |number| {
                        let key = stringify!($key);
                        format!("`model.{key}` is from {least} to {most}, not `{number}`")
                    },
                    "check the model's `config.json`",
                );
                numerics.$key = section.$key.or_default(usual.$key)?;
            })+
        };
    }
    within! {
        rotary_base: (1.0..=1e12),
        rotary_share: (0.0..=1.0),
        rope_factor: (1.0..=1e6),
        norm_epsilon: (0.0..=1.0),
        hidden_dropout: DROPOUT,
        attention_dropout: DROPOUT,
    }
    Some(numerics)
}

/// A count that was checked to be small.
fn small(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// A count that may be none and is at most `most`.
fn at_most(field: &Field<OrNone>, most: u64, path: &str, problems: &mut Problems) -> Option<u64> {
    field.check(
        |OrNone(count)| *count <= most,
        problems,
        |OrNone(count)| format!("`{path}` is at most {most}, not `{count}`"),
        "check the number of digits",
    );
    let OrNone(count) = field.or_default(OrNone(0))?;
    Some(count.min(most))
}

fn prediction_layers(section: &ModelSection, problems: &mut Problems) -> Option<u32> {
    let path = "model.prediction_layers";
    at_most(&section.prediction_layers, MOST_FURTHER, path, problems).map(small)
}

fn small_parts(section: &ModelSection, problems: &mut Problems) -> Option<SmallParts> {
    let default = SmallParts::default();
    let sinks = &section.attention_sinks;
    let query_key_norms = &section.query_key_norms;
    Some(SmallParts {
        layer_norms: section.layer_norms.or_default(default.layer_norms)?,
        outer_norms: section.outer_norms.or_default(default.outer_norms)?,
        query_key_norms: query_key_norms.or_default(default.query_key_norms)?,
        output_bias: section.output_bias.or_default(default.output_bias)?,
        activation_parameters: section.activation_parameters.or_default(0)?,
        attention_sinks: at_most(sinks, MOST_NORMS, "model.attention_sinks", problems)?,
    })
}

/// The first place that is in the user's own text.
fn own<'a>(origins: &[Option<&'a Origin>]) -> Option<&'a Origin> {
    origins
        .iter()
        .flatten()
        .find(|origin| origin.source.kind != SourceKind::Catalog)
        .copied()
}

/// The divisors of a number, as a list for people.
fn divisors(number: u64) -> String {
    let divisors: Vec<String> = (1..=number.min(256))
        .filter(|divisor| number.is_multiple_of(*divisor))
        .map(|divisor| divisor.to_string())
        .collect();
    divisors.join(", ")
}
