//! The file that was launched: a script with Megatron-LM's flags, torchtitan's TOML, nanotron's YAML.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::facts::Facts;
use super::settings::Settings;
use super::{megatron_flags, nanotron_config, shell, torchtitan_config, yaml};
use crate::files::{self, Content, FileError};

/// Why a launch file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// It cannot be read.
    #[error(transparent)]
    Unreadable(#[from] FileError),
    /// It is not TOML.
    #[error("`{}` is not TOML: {cause}", .0.display(), cause = .1)]
    Toml(PathBuf, toml::de::Error),
    /// It says nothing of a layout.
    #[error(
        "`{}` says nothing of a layout\nhint: give the script with Megatron-LM's flags, torchtitan's \
         .toml or nanotron's .yaml",
        .0.display()
    )]
    Nothing(PathBuf),
}

/// Reads a launch file: `.toml` as torchtitan's, `.yaml` as nanotron's, all else as a script.
///
/// # Errors
///
/// If it cannot be read or says nothing of a layout.
pub fn launch(path: &Path) -> Result<Facts, LaunchError> {
    let owned = || path.to_owned();
    let bytes = files::read(path, Content::Settings)?;
    let text = String::from_utf8_lossy(&bytes);
    let extension = path.extension().unwrap_or_default().to_string_lossy();
    let facts = match &*extension {
        "toml" => {
            let table = text.parse();
            let table = table.map_err(|cause| LaunchError::Toml(owned(), cause))?;
            let mut settings = Settings::default();
            flatten("", &table, &mut settings.values);
            torchtitan_config::facts(&settings)
        }
        "yaml" | "yml" => nanotron_config::facts(&yaml::settings(&text)),
        _ => script(&text),
    };
    if facts == Facts::default() {
        return Err(LaunchError::Nothing(owned()));
    }
    Ok(facts)
}

/// A script with the flags of Megatron-LM, or with overrides of torchtitan's configuration.
fn script(text: &str) -> Facts {
    let flags = shell::flags(text);
    let any = |holds: fn(&str) -> bool| flags.values.keys().any(|name| holds(name));
    let megatron = megatron_flags::facts(&flags);
    let mut facts = if any(|name| name.contains('.')) {
        torchtitan_config::facts(&flags).with("gpus", megatron.number("gpus"))
    } else if any(megatron_flags::is_known) {
        megatron
    } else {
        return Facts::default();
    };
    facts.unset.extend(flags.unset);
    facts
}

/// Values by dotted path.
fn flatten(path: &str, table: &toml::Table, values: &mut BTreeMap<String, String>) {
    for (key, value) in table {
        let path = if path.is_empty() {
            key.clone()
        } else {
            format!("{path}.{key}")
        };
        match value {
            toml::Value::Table(table) => flatten(&path, table, values),
            toml::Value::String(text) => {
                values.insert(path, text.clone());
            }
            other => {
                values.insert(path, other.to_string());
            }
        }
    }
}
