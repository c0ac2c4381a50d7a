//! Experts, latent attention and layers that predict further tokens, as a config states them.

use serde::Deserialize;
use serde_json::Value as Json;

use super::fields::names;
use super::keys::{Config, Size};
use crate::transformer::{Experts, LatentAttention, LayerOrder};

/// The experts of a family: what its class has where a config does not say.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExpertsOf {
    /// Routed experts; 0: the config must say.
    experts: u64,
    /// Experts of a token; 0: the config must say.
    experts_per_token: u64,
    width: Width,
    #[serde(default)]
    shared: Shared,
    #[serde(default)]
    dense_layers: u64,
    #[serde(default)]
    router_biases: u64,
    #[serde(default)]
    shared_expert_gates: u64,
}

/// Width of a routed expert.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(untagged)]
enum Width {
    /// A field of its own, this where the config does not say; 0: it must.
    Own(u64),
    /// The width of the feed-forward block; dense layers have a field of their own, or this width.
    FeedForward { beside_dense: u64 },
}

/// The shared experts.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Shared {
    #[default]
    None,
    /// One, as wide as a routed one.
    One,
    /// So many where the config does not say, as wide as routed ones.
    Number(u64),
    /// Of this width together where the config does not say.
    Width(u64),
}

/// The experts of a config.
pub(super) struct ExpertsShape {
    pub(super) experts: Size,
    pub(super) experts_per_token: Size,
    pub(super) expert_width: Size,
    pub(super) rest: Experts,
}

impl ExpertsShape {
    /// Whether some layers are dense.
    pub(super) const fn has_dense(&self) -> bool {
        self.rest.dense_layers > 0 || self.rest.expert_interval > 1
    }
}

/// Keys of `[model]` whose fields such families read.
pub(super) const EXPERT_KEYS: &[&str] = &[
    "experts",
    "experts_per_token",
    "expert_width",
    "prediction_layers",
];
pub(super) const LATENT_KEYS: &[&str] = &["query_rank", "key_value_rank"];

/// The experts; the width of the feed-forward block becomes that of dense layers.
pub(super) fn read(
    of: ExpertsOf,
    config: &mut Config,
    layers: u64,
    feed_forward_width: &mut Size,
) -> ExpertsShape {
    let experts = config.size("experts", of.experts);
    let experts_per_token = config.size("experts_per_token", of.experts_per_token);
    let expert_width = match of.width {
        Width::Own(width) => config.size("expert_width", width),
        Width::FeedForward { beside_dense } => {
            let dense = config.or(names("dense_width"), beside_dense);
            std::mem::replace(feed_forward_width, dense)
        }
    };
    let shared_expert_width = match of.shared {
        Shared::None => 0,
        Shared::One => expert_width.count,
        Shared::Number(usual) => {
            let number = config.count(names("shared_experts"), usual);
            number.saturating_mul(expert_width.count)
        }
        Shared::Width(usual) => config.count(names("shared_expert_width"), usual),
    };
    let dense_layers = config.count(names("dense_layers"), of.dense_layers);
    let expert_interval = config.or(names("expert_interval"), 1).count;
    let small = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
    let mut rest = Experts {
        experts: experts.count,
        experts_per_token: experts_per_token.count,
        expert_width: expert_width.count,
        shared_expert_width,
        dense_layers: small(dense_layers),
        expert_interval: small(expert_interval),
        router_biases: of.router_biases,
        shared_expert_gates: of.shared_expert_gates,
    };
    follow_lists(config, layers, &mut rest);
    ExpertsShape {
        experts,
        experts_per_token,
        expert_width,
        rest,
    }
}

/// Lists of layers: those without experts are the leading ones, those with experts follow the interval.
fn follow_lists(config: &mut Config, layers: u64, experts: &mut Experts) {
    let hint = "describe the network by the keys of its shape in `[model]`, without `config`";
    if let Some(dense) = positions(config, "mlp_only_layers").filter(|list| !list.is_empty()) {
        let leading = (0..dense.len() as u64).eq(dense.iter().copied());
        if leading && experts.dense_layers == 0 {
            experts.dense_layers = u32::try_from(dense.len()).unwrap_or(u32::MAX);
        } else {
            let text =
                "`mlp_only_layers` lists others than the leading layers, which is not modelled";
            config.refuse("mlp_only_layers", text, hint);
        }
    }
    let order = LayerOrder {
        leading: experts.dense_layers,
        interval: experts.expert_interval.max(1),
    };
    if let Some(listed) = positions(config, "moe_layers").filter(|list| !list.is_empty()) {
        let layers = u32::try_from(layers).unwrap_or(u32::MAX);
        let own = (0..layers).filter(|&layer| !order.is_other(layer));
        if !own.map(u64::from).eq(listed) {
            let text =
                "`moe_layers` lists others than every so many-th layer, which is not modelled";
            config.refuse("moe_layers", text, hint);
        }
    }
}

/// The numbers of a list.
fn positions(config: &mut Config, field: &str) -> Option<Vec<u64>> {
    let list = config.value(field)?.as_array()?;
    list.iter().map(Json::as_u64).collect()
}

/// Latent attention of a family, where a config does not say.
pub(super) fn latent(mut of: LatentAttention, config: &mut Config) -> LatentAttention {
    let queries = names("query_rank");
    of.query_rank = if config.is_absent(queries) {
        of.query_rank
    } else {
        config.count(queries, 0)
    };
    for (key, width) in [
        ("key_value_rank", &mut of.key_value_rank),
        ("unrotated_width", &mut of.unrotated_width),
        ("rotated_width", &mut of.rotated_width),
        ("value_width", &mut of.value_width),
    ] {
        *width = config.or(names(key), *width).count;
    }
    // Newer configs state what follows from the others, or the rotated part alone.
    config.read.insert("head_dim".to_owned());
    config.read.insert("qk_head_dim".to_owned());
    of
}
