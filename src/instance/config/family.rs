//! Families of networks: what each `model_type` means beyond the fields that it writes.
//!
//! `catalog/config-json.toml` has them; what it cannot say stands in `special`.

use std::sync::LazyLock;

use serde::Deserialize;
use toml::{Table, Value};

use super::experts::{EXPERT_KEYS, ExpertsOf, LATENT_KEYS};
use super::fields::{KNOWN, names};
use super::keys::{Config, Size};
use super::shape::Shape;
use super::windows::{self, WindowsOf};
use super::{experts, numerics, special};
use crate::reading::shown;
use crate::transformer::{
    Activation, Biases, Embeddings, FeedForward, LatentAttention, Normalization, Numerics,
    OutputBias, QueryKeyNorms, SmallParts,
};

/// A family of networks; the catalog's file says what each key means.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Family {
    types: Vec<String>,
    layers: u64,
    hidden: u64,
    heads: u64,
    vocabulary: u64,
    feed_forward_width: Width,
    key_value_heads: Unstated,
    head_width: Unstated,
    feed_forward: FeedForward,
    normalization: Normalization,
    embeddings: Embeddings,
    biases: Vec<Switched<BiasesOf>>,
    query_key_norms: Option<Switched<QueryKeyNorms>>,
    output_bias: Option<Switched<OutputBias>>,
    experts: Option<ExpertsOf>,
    latent_attention: Option<LatentAttention>,
    windows: Option<WindowsOf>,
    parallel: Option<Switched<u64>>,
    #[serde(default)]
    learned_positions: u64,
    #[serde(default)]
    small_parts: SmallParts,
    numerics: Numerics,
    special: Option<special::Name>,
}

/// Width of the feed-forward block where a config does not say.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(untagged)]
enum Width {
    /// This; 0: the config must say.
    Fixed(u64),
    /// So many hidden sizes.
    Hidden { hidden_sizes: u64 },
}

/// What a size is where a config does not state it.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(untagged)]
enum Unstated {
    /// This, unless it says `null`.
    Default(u64),
    Rule(Rule),
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Rule {
    /// Always what follows from other sizes.
    Implied,
    /// What follows from other sizes.
    Stated,
    /// Read by a function of the family.
    Special,
}

/// What a switch of the config puts on.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Switched<T> {
    on: T,
    /// The switch; without one it is always as the default says.
    field: Option<String>,
    #[serde(default)]
    default: bool,
}

impl<T: Copy> Switched<T> {
    fn read(&self, config: &mut Config) -> Option<T> {
        let on = match &self.field {
            Some(field) => config.flag(field, self.default),
            None => self.default,
        };
        on.then_some(self.on)
    }
}

/// The matrices of which a switch adds the biases.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum BiasesOf {
    QueryKeyValue,
    AttentionOutput,
    Attention,
    FeedForward,
    All,
}

impl BiasesOf {
    /// Of query, key and value, of the attention's output, of the feed-forward block.
    const fn parts(self) -> [bool; 3] {
        match self {
            Self::QueryKeyValue => [true, false, false],
            Self::AttentionOutput => [false, true, false],
            Self::Attention => [true, true, false],
            Self::FeedForward => [false, false, true],
            Self::All => [true; 3],
        }
    }
}

static FAMILIES: LazyLock<Vec<Family>> = LazyLock::new(|| {
    let mut tables: Vec<Table> = Vec::new();
    for own in &KNOWN.family {
        let mut table = own.clone();
        if let Some(base) = table.remove("like") {
            let is_base = |table: &&Table| {
                let types = table["types"].as_array();
                types.is_some_and(|types| types.contains(&base))
            };
            let base = tables.iter().find(is_base);
            add_missing(&mut table, base.expect("`like` names an earlier family"));
        }
        tables.push(table);
    }
    let families = tables.into_iter().map(Table::try_into);
    let families: Result<_, _> = families.collect();
    families.expect("the catalog's families are valid")
});

fn add_missing(table: &mut Table, base: &Table) {
    for (key, value) in base {
        match (table.get_mut(key), value) {
            (Some(Value::Table(own)), Value::Table(base)) if MERGED.contains(&key.as_str()) => {
                add_missing(own, base);
            }
            (Some(_), _) => {}
            (None, _) => {
                table.insert(key.clone(), value.clone());
            }
        }
    }
}

/// Keys whose value a family may state in part.
const MERGED: &[&str] = &["numerics", "small_parts"];

/// The family of a `model_type`.
pub(super) fn find(model_type: Option<&str>) -> Option<&'static Family> {
    let is_it = |name: &String| Some(name.as_str()) == model_type;
    FAMILIES
        .iter()
        .find(|family| family.types.iter().any(is_it))
}

impl Family {
    /// Whether its networks may have what the field says, though others are refused for it.
    pub(super) fn reads(&self, field: &str) -> bool {
        let of = |is_it: bool, keys: &'static [&str]| if is_it { keys } else { &[] };
        let experts = of(self.experts.is_some(), EXPERT_KEYS).iter();
        let mut keys = experts.chain(of(self.latent_attention.is_some(), LATENT_KEYS));
        keys.any(|key| names(key).iter().any(|name| name == field))
    }
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
    refuse_two_matrices(config);
    let unknown = FAMILIES.iter().find(|family| family.types.is_empty());
    read(unknown.expect("one family has no types"), config)
}

/// Refuses an unknown type whose feed-forward block may have two matrices: only gated blocks have
/// `SiLU`.
fn refuse_two_matrices(config: &mut Config) {
    let activation = config.value("hidden_act").and_then(|act| act.as_str());
    if let Some(activation) = activation.filter(|name| numerics::named(name) != Activation::Silu) {
        let text = format!(
            "the `model_type` is not known, and `hidden_act` `{activation}` leaves open whether \
             its feed-forward block has two or three matrices"
        );
        let hint = "describe the network by the keys of its shape in `[model]`, without `config`";
        config.refuse("hidden_act", text, hint);
    }
}

fn read(family: &Family, config: &mut Config) -> Shape {
    let layers = config.size("layers", family.layers);
    let hidden = config.size("hidden", family.hidden);
    let heads = config.size("heads", family.heads);
    let feed_forward_width = match family.feed_forward_width {
        Width::Fixed(width) => config.size("feed_forward_width", width),
        Width::Hidden { hidden_sizes } => {
            let width = hidden.count.saturating_mul(hidden_sizes);
            config.or(names("feed_forward_width"), width)
        }
    };
    let mut shape = Shape {
        key_value_heads: key_value_heads(family, config, &heads),
        head_width: head_width(family, config, &hidden, &heads),
        vocabulary: config.size("vocabulary", family.vocabulary),
        feed_forward: family.feed_forward,
        embeddings: config.embeddings(family.embeddings),
        normalization: family.normalization,
        biases: biases(family, config),
        learned_positions: match family.learned_positions {
            0 => 0,
            usual => config.or(names("learned_positions"), usual).count,
        },
        small_parts: family.small_parts,
        numerics: numerics::read(config, family.numerics),
        experts: None,
        latent_attention: None,
        windows: windows::read(config, family.windows.as_ref(), layers.count),
        prediction_layers: 0,
        layers,
        hidden,
        heads,
        feed_forward_width,
    };
    if let Some(of) = family.experts {
        let (layers, width) = (shape.layers.count, &mut shape.feed_forward_width);
        shape.experts = Some(experts::read(of, config, layers, width));
        shape.prediction_layers = config.count(names("prediction_layers"), 0);
    }
    let latent = family.latent_attention;
    shape.latent_attention = latent.map(|latent| experts::latent(latent, config));
    let output = family.output_bias.as_ref();
    if let Some(bias) = output.and_then(|output| output.read(config)) {
        shape.small_parts.output_bias = bias;
    }
    let norms = family.query_key_norms.as_ref();
    if let Some(norms) = norms.and_then(|norms| norms.read(config)) {
        shape.small_parts.query_key_norms = norms;
    }
    let parallel = family.parallel.as_ref();
    if let Some(norms) = parallel.and_then(|parallel| parallel.read(config)) {
        shape.small_parts.layer_norms = norms;
        config.warn_of_parallel();
    }
    if let Some(special) = family.special {
        special.read(config, &mut shape);
    }
    shape
}

fn biases(family: &Family, config: &mut Config) -> Biases {
    let mut on = [false; 3];
    for switched in &family.biases {
        let parts = switched.read(config).map_or([false; 3], BiasesOf::parts);
        for (on, part) in on.iter_mut().zip(parts) {
            *on |= part;
        }
    }
    config.biases(on)
}

fn key_value_heads(family: &Family, config: &mut Config, heads: &Size) -> Size {
    let names = names("key_value_heads");
    match family.key_value_heads {
        Unstated::Rule(Rule::Implied) => {
            let why = "networks of this type have as many as heads";
            config.agrees(names, heads.count, why);
            heads.clone()
        }
        Unstated::Default(count) if config.is_absent(names) => config.or(names, count),
        Unstated::Rule(Rule::Stated) | Unstated::Default(_) => config.or(names, heads.count),
        Unstated::Rule(Rule::Special) => heads.clone(),
    }
}

fn head_width(family: &Family, config: &mut Config, hidden: &Size, heads: &Size) -> Option<Size> {
    let names = names("head_width");
    match family.head_width {
        Unstated::Rule(Rule::Implied) => {
            if hidden.count.is_multiple_of(heads.count) {
                let why = "a head of this type is as wide as the hidden size over the heads";
                config.agrees(names, hidden.count / heads.count, why);
            }
            None
        }
        Unstated::Default(width) if config.is_absent(names) => Some(config.or(names, width)),
        Unstated::Rule(_) | Unstated::Default(_) => config.stated(names),
    }
}
