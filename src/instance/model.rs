//! `[model]`: from preset, config and shape to a checked [`Transformer`].

use super::config_json;
use super::document::Origin;
use super::error::Problems;
use super::file::ModelSection;
use super::reader::{Field, Value};
use super::values::{Count, OneOf};
use crate::catalog;
use crate::transformer::{Biases, Embeddings, FeedForward, Normalization, Transformer};

/// Largest values, far beyond any network, so that no count overflows.
const MOST_LAYERS: u64 = 1024;
const WIDEST_HIDDEN: u64 = 1 << 20;
const WIDEST_ATTENTION: u64 = 1 << 22;
const LARGEST_VOCABULARY: u64 = 1 << 26;

/// The network that the section describes.
pub(crate) fn resolve(
    section: &ModelSection,
    origin: Option<&Origin>,
    problems: &mut Problems,
) -> Option<Transformer> {
    let given = section.clone();
    let shape = [
        &given.layers,
        &given.hidden,
        &given.heads,
        &given.feed_forward_width,
    ];
    let (name, mut base) = match (&section.preset, &section.config) {
        (Field::Given(_, preset), Field::Given(..)) => {
            problems.add(
                preset,
                "`model.preset` and `model.config` exclude each other",
                "keep one of the two; keys of the shape override either",
            );
            return None;
        }
        (Field::Broken, _) | (_, Field::Broken) => return None,
        (Field::Given(preset, at), _) => match catalog::model_section(preset) {
            Ok(base) => (preset.clone(), base.clone()),
            Err(unknown) => {
                problems.add(at, unknown.text(), unknown.hint());
                return None;
            }
        },
        (_, Field::Given(config, at)) => config_json::read(config, at, section, problems)?,
        _ if shape.iter().all(|field| field.is_absent()) => {
            problems.add_anywhere(
                origin,
                "`[model]` names no network",
                "give `preset = \"llama-13b\"`, `config = \"config.json\"`, or `layers`, `hidden`, \
                 `heads`, `feed_forward_width` and `vocabulary`",
            );
            return None;
        }
        _ => ("custom".to_owned(), ModelSection::default()),
    };
    if section.head_width.is_absent() && !(section.hidden.is_absent() && section.heads.is_absent())
    {
        base.head_width = Field::Absent;
    }
    transformer(&given.over(&base), name, origin, problems)
}

/// The checked shape.
fn transformer(
    section: &ModelSection,
    name: String,
    origin: Option<&Origin>,
    problems: &mut Problems,
) -> Option<Transformer> {
    let mut required = |field: &Field<Count>, key: &str, most: u64, example: u64| {
        let path = format!("model.{key}");
        let hint = format!("write a number such as `{key} = {example}`");
        let value = field.required(&path, origin, &hint, problems);
        at_most(field, &path, most, problems);
        value.map(|count| count.0)
    };
    let layers = required(&section.layers, "layers", MOST_LAYERS, 40);
    let hidden = required(&section.hidden, "hidden", WIDEST_HIDDEN, 5120);
    let heads = required(&section.heads, "heads", WIDEST_HIDDEN, 40);
    let feed_forward_width = required(
        &section.feed_forward_width,
        "feed_forward_width",
        WIDEST_ATTENTION,
        13824,
    );
    let vocabulary = required(&section.vocabulary, "vocabulary", LARGEST_VOCABULARY, 32000);
    at_most(
        &section.learned_positions,
        "model.learned_positions",
        LARGEST_VOCABULARY,
        problems,
    );
    let (layers, hidden, heads) = (layers?, hidden?, heads?);
    let key_value_heads = key_value_heads(section, heads, problems)?;
    let head_width = head_width(section, hidden, heads, problems)?;
    if heads.saturating_mul(head_width) > WIDEST_ATTENTION {
        let at = own(&[section.head_width.origin(), section.heads.origin()]);
        problems.add_anywhere(
            at,
            format!("{heads} heads of width {head_width} are wider than any network"),
            format!("`heads` times `head_width` is at most {WIDEST_ATTENTION}"),
        );
    }
    Some(Transformer {
        name: section.name.or_default(name)?,
        layers: u32::try_from(layers).unwrap_or(u32::MAX),
        hidden,
        heads,
        key_value_heads,
        head_width,
        feed_forward_width: feed_forward_width?,
        feed_forward: section
            .feed_forward
            .or_default(OneOf(FeedForward::Gated))?
            .0,
        vocabulary: vocabulary?,
        embeddings: section.embeddings.or_default(OneOf(Embeddings::Untied))?.0,
        normalization: section
            .normalization
            .or_default(OneOf(Normalization::RmsNorm))?
            .0,
        biases: section.biases.or_default(OneOf(Biases::None))?.0,
        learned_positions: match &section.learned_positions {
            Field::Absent => 0,
            other => other.value()?.0,
        },
    })
}

fn key_value_heads(section: &ModelSection, heads: u64, problems: &mut Problems) -> Option<u64> {
    let groups = section.key_value_heads.or_default(Count(heads))?.0;
    if !heads.is_multiple_of(groups) {
        let at = own(&[section.key_value_heads.origin(), section.heads.origin()]);
        problems.add_anywhere(
            at,
            format!("`model.key_value_heads` is {groups}, which does not divide the {heads} heads"),
            format!("write one of {}", divisors(heads)),
        );
    }
    Some(groups)
}

fn head_width(
    section: &ModelSection,
    hidden: u64,
    heads: u64,
    problems: &mut Problems,
) -> Option<u64> {
    match &section.head_width {
        Field::Given(width, _) => return Some(width.0),
        Field::Broken => return None,
        Field::Absent => {}
    }
    if !hidden.is_multiple_of(heads) {
        let at = own(&[section.heads.origin(), section.hidden.origin()]);
        problems.add_anywhere(
            at,
            format!("{heads} heads do not divide a hidden size of {hidden}"),
            "correct `heads` or `hidden`, or give `head_width` if it is set apart",
        );
        return None;
    }
    Some(hidden / heads)
}

/// The first place that is in the user's own text.
fn own<'a>(origins: &[Option<&'a Origin>]) -> Option<&'a Origin> {
    origins
        .iter()
        .flatten()
        .find(|origin| origin.source.kind != super::document::SourceKind::Catalog)
        .copied()
}

/// Reports a count beyond `most`.
pub(crate) fn at_most(field: &Field<Count>, path: &str, most: u64, problems: &mut Problems) {
    field.check(
        |count| count.0 <= most,
        problems,
        |count| format!("`{path}` is at most {most}, not `{}`", count.0),
        "check the number of digits",
    );
}

/// The divisors of a number, as a list for people.
fn divisors(number: u64) -> String {
    let divisors: Vec<String> = (1..=number.min(256))
        .filter(|divisor| number.is_multiple_of(*divisor))
        .map(|divisor| divisor.to_string())
        .collect();
    divisors.join(", ")
}
