//! Heads, latent attention and windows of `[model]`.

use super::{Broken, MOST_LAYERS, WIDEST_ATTENTION, WIDEST_HIDDEN, at_most, divisors, own, small};
use crate::catalog::sections::ModelSection;
use crate::reading::{Field, OrNone, Origin, Problems};
use crate::transformer::{LatentAttention, Windows};

/// Latent attention, if the section has any.
pub(super) fn latent(
    section: &ModelSection,
    origin: Option<&Origin>,
    problems: &mut Problems,
) -> Result<Option<LatentAttention>, Broken> {
    let widths = [
        (&section.unrotated_width, "unrotated_width", 128),
        (&section.rotated_width, "rotated_width", 64),
        (&section.value_width, "value_width", 128),
    ];
    let rank = &section.key_value_rank;
    if rank.is_absent() {
        let stated = widths.iter().find(|(width, ..)| !width.is_absent());
        let queries = Some(&section.query_rank).filter(|rank| !rank.is_absent());
        let alone = stated.map(|(width, key, _)| (width.origin(), *key));
        let alone = alone.or(queries.map(|rank| (rank.origin(), "query_rank")));
        if let Some((at, key)) = alone {
            problems.add_anywhere(
                own(&[at]),
                format!(
                    "`model.{key}` is of latent attention, and `model.key_value_rank` is missing"
                ),
                "write a number such as `key_value_rank = 512`",
            );
            return Err(Broken);
        }
        return Ok(None);
    }
    rank.at_most(WIDEST_HIDDEN, "model.key_value_rank", problems);
    let queries = &section.query_rank;
    let query_rank = at_most(queries, WIDEST_HIDDEN, "model.query_rank", problems);
    let widths = widths.map(|(width, key, example)| {
        let path = format!("model.{key}");
        let hint = format!("latent attention needs it: write a number such as `{key} = {example}`");
        width.at_most(WIDEST_HIDDEN, &path, problems);
        width.required(&path, origin, &hint, problems)
    });
    let [unrotated_width, rotated_width, value_width] = widths;
    Ok(Some(LatentAttention {
        query_rank: query_rank.ok_or(Broken)?,
        key_value_rank: *rank.value().ok_or(Broken)?,
        unrotated_width: unrotated_width.ok_or(Broken)?,
        rotated_width: rotated_width.ok_or(Broken)?,
        value_width: value_width.ok_or(Broken)?,
    }))
}

/// Windows of attention, if the section has any.
pub(super) fn windows(
    section: &ModelSection,
    problems: &mut Problems,
) -> Result<Option<Windows>, Broken> {
    let OrNone(window) = section.window.or_default(OrNone(0)).ok_or(Broken)?;
    let interval = &section.window_interval;
    let path = "model.window_interval";
    let every = small(at_most(interval, MOST_LAYERS, path, problems).ok_or(Broken)?);
    if section.window.is_absent() && every > 0 {
        problems.add_anywhere(
            own(&[interval.origin()]),
            format!("`{path}` is {every}, and `model.window` is missing"),
            "write the tokens of a window, such as `window = 4096`",
        );
        return Err(Broken);
    }
    interval.check(
        |OrNone(every)| *every != 1,
        problems,
        |_| format!("`{path}` is 1: every layer would see the whole sequence"),
        "write 2 if every second layer does, 0 if none does, or `window = 0`",
    );
    Ok((window > 0).then_some(Windows {
        window,
        window_interval: every,
    }))
}

/// Heads of keys and values, which divide `heads`; latent attention has as many.
pub(super) fn key_value_heads(
    section: &ModelSection,
    heads: u64,
    latent: Option<LatentAttention>,
    problems: &mut Problems,
) -> Option<u64> {
    let groups = section.key_value_heads.or_default(heads)?;
    if latent.is_some() && groups != heads {
        problems.add_anywhere(
            own(&[section.key_value_heads.origin()]),
            format!("`model.key_value_heads` is {groups}, but latent attention has keys and values for all {heads} heads"),
            "remove `key_value_heads`",
        );
        return None;
    }
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

/// Width of a head of queries and keys: in latent attention the sum of its parts.
pub(super) fn head_width(
    section: &ModelSection,
    hidden: u64,
    heads: u64,
    latent: Option<LatentAttention>,
    problems: &mut Problems,
) -> Option<u64> {
    let parts = latent.map(|latent| latent.unrotated_width + latent.rotated_width);
    let width = match (&section.head_width, parts) {
        (Field::Broken, _) => return None,
        (Field::Given(width, _), Some(parts)) if *width != parts => {
            problems.add_anywhere(
                own(&[section.head_width.origin()]),
                format!("`model.head_width` is {width}, but the parts of a head are {parts} wide"),
                "remove `head_width`: `unrotated_width` and `rotated_width` decide",
            );
            return None;
        }
        (_, Some(parts)) => parts,
        (Field::Given(width, _), None) => *width,
        (Field::Absent, None) => implied_head_width(section, hidden, heads, problems)?,
    };
    let widest = width.max(latent.map_or(0, |latent| latent.value_width));
    if heads.saturating_mul(widest) > WIDEST_ATTENTION {
        let at = own(&[section.head_width.origin(), section.heads.origin()]);
        problems.add_anywhere(
            at,
            format!("{heads} heads of width {widest} are wider than any network"),
            format!("`heads` times `head_width` is at most {WIDEST_ATTENTION}"),
        );
    }
    Some(width)
}

fn implied_head_width(
    section: &ModelSection,
    hidden: u64,
    heads: u64,
    problems: &mut Problems,
) -> Option<u64> {
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
