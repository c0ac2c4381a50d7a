//! The file that was launched: a script with Megatron-LM's flags, torchtitan's TOML, nanotron's YAML.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::facts::Facts;
use super::megatron_flags::{self, Origin};
use super::{nanotron_config, shell, torchtitan_config, yaml};

/// Why a launch file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// It cannot be read.
    #[error("cannot read `{}`: {cause}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// It is not TOML.
    #[error("`{}` is not TOML: {cause}", path.display())]
    Toml {
        /// The file.
        path: PathBuf,
        /// What the reader said.
        cause: toml::de::Error,
    },
    /// It says nothing of a layout.
    #[error(
        "`{}` says nothing of a layout\nhint: give the script with Megatron-LM's flags, torchtitan's \
         .toml or nanotron's .yaml",
        path.display()
    )]
    Nothing {
        /// The file.
        path: PathBuf,
    },
}

/// Reads a launch file: `.toml` as torchtitan's, `.yaml` as nanotron's, all else as a script.
///
/// # Errors
///
/// If it cannot be read or says nothing of a layout.
pub fn launch(path: &Path) -> Result<Facts, LaunchError> {
    let bytes = std::fs::read(path).map_err(|cause| LaunchError::Unreadable {
        path: path.to_owned(),
        cause,
    })?;
    let text = String::from_utf8_lossy(&bytes);
    let extension = path.extension().unwrap_or_default().to_string_lossy();
    let facts = match &*extension {
        "toml" => {
            let table = text.parse().map_err(|cause| LaunchError::Toml {
                path: path.to_owned(),
                cause,
            })?;
            let mut values = BTreeMap::new();
            flatten("", &table, &mut values);
            torchtitan_config::facts(&values)
        }
        "yaml" | "yml" => nanotron_config::facts(&yaml::values(&text)),
        _ => script(&text),
    };
    if facts == Facts::default() {
        return Err(LaunchError::Nothing {
            path: path.to_owned(),
        });
    }
    Ok(facts)
}

/// A script with the flags of Megatron-LM, or with overrides of torchtitan's configuration.
fn script(text: &str) -> Facts {
    let flags = shell::flags(text);
    let known = flags
        .values
        .keys()
        .any(|name| megatron_flags::is_known(name));
    let titan = flags.values.keys().any(|name| name.contains('.'));
    let unset = &flags.unset;
    let megatron = || megatron_flags::facts(&flags.values, Origin::Script { unset });
    match (known, titan) {
        (_, true) => Facts {
            gpus: megatron().gpus,
            unset: Some(unset.clone()).filter(|unset| !unset.is_empty()),
            ..without(torchtitan_config::facts(&flags.values), unset)
        },
        (true, false) => Facts {
            unset: Some(unset.clone()).filter(|unset| !unset.is_empty()),
            ..megatron()
        },
        (false, false) => Facts::default(),
    }
}

/// torchtitan's facts without the usual values of what is stated with an unknown one.
fn without(mut facts: Facts, unset: &BTreeMap<String, String>) -> Facts {
    for name in unset.keys() {
        match name.rsplit('.').next() {
            Some("tensor_parallel_degree") => facts.tensor_parallel = None,
            Some("pipeline_parallel_degree") => facts.pipeline_parallel = None,
            Some("context_parallel_degree") => facts.context_parallel = None,
            Some("mode") if name.starts_with("activation_checkpoint") => {
                facts.checkpointing = None;
            }
            _ => {}
        }
    }
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

/// Values by dotted path, with numbers and switches.
pub(super) struct Values<'a>(pub(super) &'a BTreeMap<String, String>);

impl Values<'_> {
    pub(super) fn text(&self, keys: &[&str]) -> Option<&str> {
        let found = keys.iter().find_map(|key| self.0.get(*key));
        found.map(String::as_str).filter(|value| *value != "null")
    }

    pub(super) fn number<N: std::str::FromStr>(&self, keys: &[&str]) -> Option<N> {
        self.text(keys)?.replace('_', "").parse().ok()
    }

    pub(super) fn switch(&self, keys: &[&str]) -> Option<bool> {
        match self.text(keys)?.to_ascii_lowercase().as_str() {
            "true" | "" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }
}
