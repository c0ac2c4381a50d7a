//! The file that was launched.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::dialect::{self, Dialect};
use super::document::{self, Broken};
use super::facts::Facts;
use super::frameworks;
use super::settings::Settings;
use super::shell;
use crate::files::{self, Content, FileError};

/// Why a launch file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// It cannot be read.
    #[error(transparent)]
    Unreadable(#[from] FileError),
    /// It is not text.
    #[error("`{}` is not text: it has a zero byte\nhint: name a script or a configuration file", .0.display())]
    Binary(PathBuf),
    /// It is not written as its name says, from this line on.
    #[error("`{}:{line}` is not {kind}: {cause}", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// TOML or YAML.
        kind: &'static str,
        /// The line, from 1.
        line: u32,
        /// What is wrong.
        cause: String,
    },
    /// It says nothing of a layout.
    #[error(
        "`{}` says nothing of a layout\nhint: files of {known} are known",
        path.display()
    )]
    Nothing {
        /// The file.
        path: PathBuf,
        /// The frameworks.
        known: String,
    },
}

/// What is known beside the file.
#[derive(Debug, Clone, Default)]
pub struct Stated {
    /// Facts, which come before what the file says.
    pub facts: Facts,
    /// Variables of a script.
    pub variables: BTreeMap<String, String>,
}

/// What a launch file says.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The framework's name.
    pub framework: &'static str,
    /// What it says, in the project's own words.
    pub facts: Facts,
}

impl Launch {
    /// The framework.
    #[must_use]
    pub fn dialect(&self) -> &'static Dialect {
        frameworks::named(self.framework).expect("a file is read by a framework of the list")
    }
}

/// Reads a launch file.
///
/// # Errors
///
/// If it cannot be read or says nothing of a layout.
pub fn launch(path: &Path) -> Result<Facts, LaunchError> {
    Ok(read(path, &Stated::default())?.facts)
}

/// Reads a launch file of whatever framework, beside what is stated.
///
/// # Errors
///
/// If it cannot be read or says nothing of a layout.
pub fn read(path: &Path, stated: &Stated) -> Result<Launch, LaunchError> {
    let bytes = files::read(path, Content::Settings)?;
    if bytes.contains(&0) {
        return Err(LaunchError::Binary(path.to_owned()));
    }
    read_text(path, &String::from_utf8_lossy(&bytes), stated)
}

/// Reads the text of a launch file of this name.
///
/// # Errors
///
/// If it cannot be read or says nothing of a layout.
pub fn read_text(path: &Path, text: &str, stated: &Stated) -> Result<Launch, LaunchError> {
    let settings = settings(path, text, &stated.variables)?;
    let found = frameworks::ALL
        .iter()
        .find(|dialect| dialect.is_of(&settings));
    let Some(found) = found else {
        let known: Vec<String> = frameworks::ALL
            .iter()
            .map(|it| it.title.to_owned())
            .collect();
        return Err(LaunchError::Nothing {
            path: path.to_owned(),
            known: crate::axis::any_of(&known).replace(" or ", " and "),
        });
    };
    Ok(Launch {
        framework: found.name,
        facts: dialect::read(found, &settings, stated.facts.clone()),
    })
}

/// The settings of a file, by its name's ending: TOML, YAML with JSON, Python, else a script.
fn settings(
    path: &Path,
    text: &str,
    variables: &BTreeMap<String, String>,
) -> Result<Settings, LaunchError> {
    let broken = |kind: &'static str| {
        move |Broken { line, cause }| LaunchError::Broken {
            path: path.to_owned(),
            kind,
            line,
            cause,
        }
    };
    let extension = path.extension().unwrap_or_default().to_string_lossy();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match &*extension.to_lowercase() {
        "toml" => document::toml(text).map_err(broken("TOML")),
        "yaml" | "yml" => document::yaml(text).map_err(broken("YAML")),
        "json" => document::yaml(text).map_err(broken("JSON")),
        "py" => Ok(document::python(text)),
        _ if text.trim_start().starts_with('{') => document::yaml(text).map_err(broken("JSON")),
        _ => script(path, text, variables),
    }
}

/// The flags of a script, and what a configuration file says that it writes: `cat > x.yaml <<EOF`.
fn script(
    path: &Path,
    text: &str,
    variables: &BTreeMap<String, String>,
) -> Result<Settings, LaunchError> {
    let mut all = shell::flags(text, variables);
    if let Some((name, first_line, body)) = written_file(text) {
        let inner = settings(Path::new(name), &body, variables).map_err(|error| match error {
            LaunchError::Broken {
                kind, line, cause, ..
            } => LaunchError::Broken {
                path: path.to_owned(),
                kind,
                line: line + first_line,
                cause,
            },
            other => other,
        })?;
        for (key, value) in inner.values {
            let line = inner.lines.get(&key).copied().unwrap_or(1);
            all.state(key, value, line + first_line);
        }
    }
    Ok(all)
}

/// The first configuration file that a script writes: its name, the line before it, its text.
fn written_file(text: &str) -> Option<(&str, u32, String)> {
    let mut lines = (1..).zip(text.lines());
    lines.find_map(|(line, command)| {
        let (before, after) = command.split_once("<<")?;
        let end = after
            .trim_start_matches(['-', ' '])
            .split_whitespace()
            .next()?;
        let end = end.trim_matches(['"', '\'', '\\']);
        let is_file = |word: &&str| {
            let endings = [".toml", ".yaml", ".yml", ".json"];
            endings.iter().any(|ending| word.ends_with(ending))
        };
        let words = before.split_whitespace().chain(after.split_whitespace());
        let name = words
            .map(|word| word.trim_matches(['"', '\'', '>']))
            .find(is_file)?;
        let body = text
            .lines()
            .skip(line as usize)
            .take_while(|line| line.trim() != end);
        let body: Vec<&str> = body.collect();
        Some((name, line, body.join("\n")))
    })
}
