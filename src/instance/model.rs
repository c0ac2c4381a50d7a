//! `[model]`: from preset, config and shape to a checked [`Transformer`].

use super::config;
use crate::catalog;
use crate::catalog::sections::ModelSection;
use crate::reading::{Field, Origin, Problems, Value as _};
use crate::transformer::Transformer;

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
        (_, Field::Given(path, at)) => config::read(path, at, section, problems)?,
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
    catalog::model::complete(&given.over(&base), name, origin, problems)
}

/// Refuses a network whose time and memory are not modelled: they would be those of another.
pub(super) fn refuse_what_costs_do_not_cover(
    network: &Transformer,
    origin: &Origin,
    problems: &mut Problems,
) {
    if network.order().interval > 1 {
        problems.add(
            origin,
            "`model.expert_interval`: layers that alternate between dense and experts are not modelled yet",
            "plan for a network whose dense layers come first; `parlayout catalog model` lists some",
        );
    }
    if network.experts.is_some() {
        problems.warn(
            "experts: step times of clusters and releases never seen were off by 15 to 45 %, and memory \
             under natural routing is untested; `training.load_imbalance` says how uneven routing is",
        );
    }
}
