//! Every key of an instance file by its dotted path.

use super::file::{
    CalibrationSection, ClusterSection, DiscrepancySection, EfficiencySection, FrameworkSection,
    InstanceFile, LimitsSection, MemorySection, ModelSection, SpeedSection, TrainingSection,
};
use super::reader::Section;
use super::{search, spelling};

/// The sections with their keys.
pub(crate) fn sections() -> Vec<(&'static str, Vec<&'static str>)> {
    vec![
        ("model", ModelSection::KEYS.to_vec()),
        ("cluster", ClusterSection::KEYS.to_vec()),
        ("cluster.efficiency", EfficiencySection::KEYS.to_vec()),
        ("cluster.calibration", CalibrationSection::KEYS.to_vec()),
        ("cluster.discrepancy", DiscrepancySection::KEYS.to_vec()),
        ("framework", FrameworkSection::KEYS.to_vec()),
        ("framework.memory", MemorySection::KEYS.to_vec()),
        ("framework.speed", SpeedSection::KEYS.to_vec()),
        ("training", TrainingSection::KEYS.to_vec()),
        ("limits", LimitsSection::KEYS.to_vec()),
        ("search", search::keys().collect()),
    ]
}

/// The paths of all keys that are called `leaf`.
pub(crate) fn of_leaf(leaf: &str) -> Vec<String> {
    sections()
        .into_iter()
        .filter(|(_, keys)| keys.contains(&leaf))
        .map(|(section, _)| format!("{section}.{leaf}"))
        .collect()
}

/// The names of all keys.
pub(crate) fn leaves() -> Vec<&'static str> {
    sections()
        .into_iter()
        .flat_map(|(_, keys)| keys)
        .chain(InstanceFile::KEYS.iter().copied())
        .collect()
}

/// What to do about an unknown key of the section at `path`, which has the keys `known`.
pub(crate) fn hint(
    path: &str,
    key: &str,
    known: impl Iterator<Item = &'static str> + Clone,
) -> String {
    elsewhere(path, key)
        .or_else(|| spelling::did_you_mean(key, known.clone()))
        .or_else(|| elsewhere(path, spelling::synonym(key)?))
        .unwrap_or_else(|| format!("known keys here: {}", spelling::list(known)))
}

/// A hint for a key that belongs in another section than `path`.
fn elsewhere(path: &str, key: &str) -> Option<String> {
    if InstanceFile::KEYS.contains(&key) && !path.is_empty() {
        return Some(match key {
            "model" | "cluster" | "framework" => {
                format!("`{key}` is a section of its own: `[{key}]` with `preset = \"…\"`")
            }
            _ => format!("`{key}` is a section of its own: `[{key}]`"),
        });
    }
    let homes = of_leaf(key);
    let section = homes.first()?.rsplit_once('.')?.0;
    Some(format!("`{key}` belongs in `[{section}]`"))
}
