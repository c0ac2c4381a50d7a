//! Families of networks: what each `model_type` means beyond the fields that it writes.

use super::keys::{
    Config, FEED_FORWARD, HEAD_WIDTH, HEADS, HIDDEN, KEY_VALUE_HEADS, LAYERS, Size, VOCABULARY,
};
use super::shape::Shape;
use super::{gpt, llama, numerics, remote};
use crate::reading::shown;
use crate::transformer::{Biases, Embeddings, FeedForward, Normalization, Numerics, SmallParts};

/// A family of networks.
pub(super) struct Family {
    /// Values of `model_type`.
    pub(super) types: &'static [&'static str],
    /// Layers, hidden size, heads and vocabulary where the config does not say; 0: it must.
    pub(super) sizes: [u64; 4],
    /// Width of the feed-forward block where the config does not say.
    pub(super) width: Width,
    /// Heads of keys and values.
    pub(super) key_value_heads: KeyValueHeads,
    /// Width of a head.
    pub(super) head_width: HeadWidth,
    /// Structure of the feed-forward block.
    pub(super) feed_forward: FeedForward,
    /// Normalization of each block's input.
    pub(super) normalization: Normalization,
    /// Whether embeddings are tied where the config does not say.
    pub(super) embeddings: Embeddings,
    /// What it computes besides where the config does not say.
    pub(super) numerics: Numerics,
    /// What else the family has.
    pub(super) rest: fn(&mut Config, &mut Shape),
}

/// Width of the feed-forward block where a config does not say.
#[derive(Clone, Copy)]
pub(super) enum Width {
    /// This; 0: the config must say.
    Fixed(u64),
    /// So many hidden sizes.
    Hidden(u64),
}

/// Heads of keys and values.
#[derive(Clone, Copy)]
pub(super) enum KeyValueHeads {
    /// As many as heads: the family has no groups.
    Heads,
    /// Stated; as many as heads where the config does not say.
    Stated,
    /// Stated; this many where the config has no such field.
    Default(u64),
    /// Read by `rest`.
    Special,
}

/// Width of a head.
#[derive(Clone, Copy)]
pub(super) enum HeadWidth {
    /// Hidden size over heads, always.
    HiddenOverHeads,
    /// Stated; hidden size over heads where the config does not say.
    Stated,
    /// Stated; this where the config has no such field.
    Default(u64),
}

/// The family of a `model_type`.
pub(super) fn find(model_type: Option<&str>) -> Option<&'static Family> {
    [llama::FAMILIES, gpt::FAMILIES, remote::FAMILIES]
        .into_iter()
        .flatten()
        .find(|family| family.types.iter().any(|name| model_type == Some(*name)))
}

/// The shape that the config describes.
pub(super) fn shape(config: &mut Config) -> Shape {
    config.read.insert("model_type".to_owned());
    let model_type = config.model_type().map(str::to_owned);
    if let Some(family) = find(model_type.as_deref()) {
        return read(family, config);
    }
    let what = match model_type {
        Some(other) => format!("`model_type` `{}` is not known", shown(&other)),
        None => "`model_type` is missing".to_owned(),
    };
    config.problems.warn(format!(
        "{what}: read as a LLaMA (gated feed-forward block, two RMSNorms a layer, untied \
         embeddings and no biases unless the config states them)"
    ));
    llama::check_unknown(config);
    read(&llama::UNKNOWN, config)
}

fn read(family: &Family, config: &mut Config) -> Shape {
    let [layers, hidden, heads, vocabulary] = family.sizes;
    let layers = config.size("layers", LAYERS, layers);
    let hidden = config.size("hidden", HIDDEN, hidden);
    let heads = config.size("heads", HEADS, heads);
    let feed_forward_width = match family.width {
        Width::Fixed(width) => config.size("feed_forward_width", FEED_FORWARD, width),
        Width::Hidden(times) => config.or(FEED_FORWARD, hidden.count.saturating_mul(times)),
    };
    let mut shape = Shape {
        key_value_heads: key_value_heads(family, config, &heads),
        head_width: head_width(family, config, &hidden, &heads),
        vocabulary: config.size("vocabulary", VOCABULARY, vocabulary),
        feed_forward: family.feed_forward,
        embeddings: config.embeddings(family.embeddings),
        normalization: family.normalization,
        biases: Biases::None,
        learned_positions: 0,
        small_parts: SmallParts::default(),
        numerics: numerics::read(config, family.numerics),
        layers,
        hidden,
        heads,
        feed_forward_width,
    };
    (family.rest)(config, &mut shape);
    shape
}

fn key_value_heads(family: &Family, config: &mut Config, heads: &Size) -> Size {
    match family.key_value_heads {
        KeyValueHeads::Heads => {
            let why = "networks of this type have as many as heads";
            config.agrees(KEY_VALUE_HEADS, heads.count, why);
            heads.clone()
        }
        KeyValueHeads::Default(count) if config.is_absent(KEY_VALUE_HEADS) => {
            config.or(KEY_VALUE_HEADS, count)
        }
        KeyValueHeads::Stated | KeyValueHeads::Default(_) => {
            config.or(KEY_VALUE_HEADS, heads.count)
        }
        KeyValueHeads::Special => heads.clone(),
    }
}

fn head_width(family: &Family, config: &mut Config, hidden: &Size, heads: &Size) -> Option<Size> {
    match family.head_width {
        HeadWidth::HiddenOverHeads => {
            if hidden.count.is_multiple_of(heads.count) {
                let why = "a head of this type is as wide as the hidden size over the heads";
                config.agrees(HEAD_WIDTH, hidden.count / heads.count, why);
            }
            None
        }
        HeadWidth::Default(width) if config.is_absent(HEAD_WIDTH) => {
            Some(config.or(HEAD_WIDTH, width))
        }
        HeadWidth::Stated | HeadWidth::Default(_) => config.stated(HEAD_WIDTH),
    }
}
