//! Entries as the text of a file.

use super::dialect::{Dialect, Entry, Syntax};

/// The text of a file with these entries, comments before them where it may have any.
#[must_use]
pub fn text(dialect: &Dialect, entries: &[Entry], comments: &[String]) -> String {
    let mut text = match dialect.syntax {
        Syntax::Json => String::new(),
        _ => self::comments(comments),
    };
    text.push_str(&body(dialect.syntax, entries));
    text
}

fn body(syntax: Syntax, entries: &[Entry]) -> String {
    match syntax {
        Syntax::Flags | Syntax::ValuedFlags => {
            let mut text = arguments(syntax, entries).join(" \\\n");
            text.push('\n');
            text
        }
        Syntax::Overrides => {
            let line = |entry: &Entry| format!("cfg.{} = {}\n", entry.key, leaf(syntax, entry));
            entries.iter().map(line).collect::<Vec<_>>().concat()
        }
        Syntax::Toml => toml(entries),
        Syntax::Yaml => nested(entries, "", 0, &yaml_map),
        Syntax::Json => {
            let mut text = nested(entries, "", 1, &json_map);
            text.push('\n');
            text
        }
    }
}

/// The entries as arguments of a command.
#[must_use]
pub fn arguments(syntax: Syntax, entries: &[Entry]) -> Vec<String> {
    let argument = |entry: &Entry| match syntax {
        Syntax::Flags if entry.is_switch => {
            (entry.value == "true").then(|| format!("--{}", entry.key.replace('_', "-")))
        }
        Syntax::Flags => {
            let key = entry.key.replace('_', "-");
            Some(if key == "deepspeed" {
                format!("--{key}")
            } else {
                format!("--{key} {}", leaf(syntax, entry))
            })
        }
        Syntax::ValuedFlags => Some(format!("--{} {}", entry.key, leaf(syntax, entry))),
        _ => Some(format!("{}={}", entry.key, leaf(Syntax::Flags, entry))),
    };
    entries.iter().filter_map(argument).collect()
}

/// A value as it is written.
fn leaf(syntax: Syntax, entry: &Entry) -> String {
    let value: String = entry.value.chars().filter(|c| !c.is_control()).collect();
    let is_bare = matches!(value.as_str(), "true" | "false");
    if syntax == Syntax::Overrides && is_bare {
        return if value == "true" { "True" } else { "False" }.to_owned();
    }
    let is_list = value.starts_with('[') && !matches!(syntax, Syntax::Flags | Syntax::ValuedFlags);
    if is_bare || is_list || value.parse::<f64>().is_ok_and(f64::is_finite) {
        return value;
    }
    let is_plain = !value.is_empty()
        && value
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c));
    let is_word =
        !["yes", "no", "on", "off", "null", "none"].contains(&value.to_lowercase().as_str());
    let may_be_plain = match syntax {
        Syntax::Flags | Syntax::ValuedFlags => is_plain,
        Syntax::Yaml => is_plain && (is_word || value == "none"),
        Syntax::Overrides | Syntax::Toml | Syntax::Json => false,
    };
    if may_be_plain {
        return value;
    }
    let mut quoted = String::from("\"");
    for c in value.chars() {
        if matches!(c, '"' | '\\') || syntax == Syntax::Flags && matches!(c, '$' | '`') {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted.push('"');
    quoted
}

fn toml(entries: &[Entry]) -> String {
    let section = |entry: &Entry| {
        entry
            .key
            .rsplit_once('.')
            .map_or("", |(section, _)| section)
    };
    let mut text = String::new();
    for name in firsts(entries.iter().map(section)) {
        let space = if text.is_empty() { "" } else { "\n" };
        text.extend([space, "[", name, "]\n"]);
        for entry in entries.iter().filter(|entry| section(entry) == name) {
            let key = entry.key.rsplit('.').next().unwrap_or_default();
            text.extend([key, " = ", &leaf(Syntax::Toml, entry), "\n"]);
        }
    }
    text
}

/// Every different name once, in the order of their first.
fn firsts<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found: Vec<&str> = Vec::new();
    for name in names {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

/// The parts of a map: keys, with a value or a map below.
type Parts<'a> = Vec<(&'a str, Result<&'a Entry, String>)>;

/// A map of the entries below a path, by a writer of its parts.
fn nested(
    entries: &[Entry],
    path: &str,
    depth: usize,
    write: &dyn Fn(Parts, usize) -> String,
) -> String {
    let rest = |entry: &'_ Entry| entry.key.strip_prefix(path);
    let below: Vec<&str> = entries.iter().filter_map(rest).collect();
    let names = firsts(
        below
            .iter()
            .map(|key| key.split('.').next().unwrap_or_default()),
    );
    let parts = names.into_iter().map(|name| {
        let whole = format!("{path}{name}");
        let own = entries.iter().find(|entry| entry.key == whole);
        let inner = || nested(entries, &format!("{whole}."), depth + 1, write);
        (name, own.ok_or_else(inner))
    });
    write(parts.collect(), depth)
}

fn yaml_map(parts: Parts, depth: usize) -> String {
    let indent = "  ".repeat(depth);
    let line = |(name, part): (&str, Result<&Entry, String>)| match part {
        Ok(entry) => format!("{indent}{name}: {}\n", leaf(Syntax::Yaml, entry)),
        Err(inner) => format!("{indent}{name}:\n{inner}"),
    };
    parts.into_iter().map(line).collect()
}

fn json_map(parts: Parts, depth: usize) -> String {
    let indent = "  ".repeat(depth);
    let line = |(name, part): (&str, Result<&Entry, String>)| match part {
        Ok(entry) => format!("{indent}\"{name}\": {}", leaf(Syntax::Json, entry)),
        Err(inner) => format!("{indent}\"{name}\": {inner}"),
    };
    let lines: Vec<String> = parts.into_iter().map(line).collect();
    format!("{{\n{}\n{}}}", lines.join(",\n"), "  ".repeat(depth - 1))
}

/// Texts as comment lines.
#[must_use]
pub fn comments(texts: &[String]) -> String {
    texts.iter().map(|text| comment(text)).collect()
}

/// `text` as comment lines of at most 80 columns.
fn comment(text: &str) -> String {
    let mut lines = vec![String::from("#")];
    for word in text.split(' ') {
        let word: String = word.chars().filter(|c| !c.is_control()).collect();
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= 80 => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(format!("# {word}")),
        }
    }
    lines.push(String::new());
    lines.join("\n")
}
