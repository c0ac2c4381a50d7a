//! Windows of attention, as a config states them.

use serde::Deserialize;
use serde_json::Value as Json;

use super::fields::{SLIDING, layer_types, names};
use super::keys::Config;
use crate::transformer::Windows;

/// The windows of a family, where a config does not say.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WindowsOf {
    /// Tokens; 0: none.
    tokens: u64,
    /// Every so many-th layer sees the whole sequence; 0: none does.
    interval: u32,
    /// The switch that puts them on, in the layers from `max_window_layers` on.
    switch: Option<String>,
}

const NOT_READ: &str = "attention is modelled over the whole sequence";

/// The windows, with a warning of those that are not read.
pub(super) fn read(config: &mut Config, of: Option<&WindowsOf>, layers: u64) -> Option<Windows> {
    let kinds: Vec<bool> = layer_types(&config.fields)
        .into_iter()
        .map(|kind| kind == SLIDING)
        .collect();
    let switched_off = config.fields.get("use_sliding_window") == Some(&Json::Bool(false));
    let Some(of) = of else {
        let stated = config.value("sliding_window").is_some() && !switched_off;
        if stated || kinds.contains(&true) {
            let warning = format!("`sliding_window`: {NOT_READ}");
            config.problems.warn(warning);
        }
        return None;
    };
    if let Some(switch) = &of.switch
        && !config.flag(switch, false)
    {
        return None;
    }
    let field = names("window");
    let window = if config.is_absent(field) {
        of.tokens
    } else {
        config.count(field, 0)
    };
    if window == 0 {
        return None;
    }
    let interval = match (&of.switch, kinds.is_empty()) {
        (_, false) => interval(&kinds),
        (Some(_), true) => match config.count(&["max_window_layers"], 28) {
            0 => Some(0),
            first if layers <= first => Some(1),
            _ => None,
        },
        (None, true) => {
            let pattern = config.value("sliding_window_pattern");
            let stated = pattern.and_then(Json::as_u64);
            Some(stated.map_or(of.interval, |every| u32::try_from(every).unwrap_or(0)))
        }
    };
    if interval.is_none() {
        let warning = format!("`sliding_window` of some layers in no regular order: {NOT_READ}");
        config.problems.warn(warning);
    }
    interval.filter(|&every| every != 1).map(|every| Windows {
        window,
        window_interval: every,
    })
}

/// From one layer that sees the whole sequence to the next, if every so many-th does: 0 if none does, 1 if
/// all do.
fn interval(sliding: &[bool]) -> Option<u32> {
    let Some(first) = sliding.iter().position(|&is_sliding| !is_sliding) else {
        return Some(0);
    };
    let every = first + 1;
    let mut layers = sliding.iter().enumerate();
    let is_regular = layers.all(|(layer, &slides)| (layer + 1).is_multiple_of(every) != slides);
    is_regular.then(|| u32::try_from(every).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::interval;

    #[test]
    fn a_list_of_kinds_is_an_interval_where_it_is_regular() {
        assert_eq!(interval(&[true, true]), Some(0));
        assert_eq!(interval(&[false, false]), Some(1));
        assert_eq!(interval(&[true, false, true, false]), Some(2));
        assert_eq!(interval(&[true, true, false, true]), Some(3));
        assert_eq!(interval(&[false, true]), None);
    }
}
