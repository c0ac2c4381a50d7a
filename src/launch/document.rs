//! Configuration files as settings: values by dotted path, each with its line.

use std::ops::Range;

use saphyr_parser::{Event, Parser};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::settings::Settings;

/// Most values of a file, and deepest nesting: configuration files are small.
const MOST_VALUES: usize = 20_000;
const DEEPEST: usize = 32;

/// Why a file is no document: the line, and the cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Broken {
    pub(crate) line: u32,
    pub(crate) cause: String,
}

fn broken(line: usize, cause: &str) -> Broken {
    Broken {
        line: line as u32,
        cause: cause.to_lowercase(),
    }
}

/// The values of TOML.
pub(crate) fn toml(text: &str) -> Result<Settings, Broken> {
    let line = |span: Range<usize>| 1 + text[..span.start].matches('\n').count();
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(1, line);
        broken(at, error.message())
    })?;
    let mut settings = Settings::default();
    let mut left: Vec<(String, Spanned<DeValue>)> = Vec::new();
    let named = |path: &str, key: &str| match path {
        "" => key.to_owned(),
        path => format!("{path}.{key}"),
    };
    for (key, value) in table.into_inner() {
        left.push((key.into_inner().into_owned(), value));
    }
    while let Some((path, value)) = left.pop() {
        let at = line(value.span());
        let shown = match value.into_inner() {
            DeValue::Table(table) => {
                for (key, value) in table {
                    left.push((named(&path, &key.into_inner()), value));
                }
                continue;
            }
            DeValue::Array(items) => {
                for (index, value) in items.into_iter().enumerate() {
                    left.push((named(&path, &index.to_string()), value));
                }
                continue;
            }
            DeValue::String(text) => text.into_owned(),
            DeValue::Integer(number) => number.as_str().to_owned(),
            DeValue::Float(number) => number.as_str().to_owned(),
            DeValue::Boolean(on) => on.to_string(),
            DeValue::Datetime(date) => date.to_string(),
        };
        settings.state(path, shown, at as u32);
    }
    Ok(settings)
}

/// A map or list that is being read.
struct Open {
    /// The path of its values.
    path: String,
    /// The next item of a list; `None` in a map.
    item: Option<usize>,
    /// The key of a map whose value follows, with its line.
    key: Option<(String, usize)>,
}

/// The values of YAML, of which JSON is part. Anchors are not followed: an alias has no value.
pub(crate) fn yaml(text: &str) -> Result<Settings, Broken> {
    let mut settings = Settings::default();
    let mut open: Vec<Open> = Vec::new();
    for next in Parser::new_from_str(text) {
        let (event, span) = next.map_err(|error| broken(error.marker().line(), error.info()))?;
        let line = span.start.line();
        if open.len() > DEEPEST || settings.values.len() > MOST_VALUES {
            return Err(broken(
                line,
                "it is nested or filled beyond what a configuration is",
            ));
        }
        match event {
            Event::MappingStart(..) | Event::SequenceStart(..) => {
                let is_list = matches!(event, Event::SequenceStart(..));
                let (path, _) = place(&mut open, line).unwrap_or_default();
                open.push(Open {
                    path,
                    item: is_list.then_some(0),
                    key: None,
                });
            }
            Event::MappingEnd | Event::SequenceEnd => drop(open.pop()),
            Event::Scalar(text, ..) => match open.last_mut() {
                Some(map) if map.item.is_none() && map.key.is_none() => {
                    map.key = Some((text.into_owned(), line));
                }
                _ => {
                    if let Some((path, line)) = place(&mut open, line) {
                        settings.state(path, text.into_owned(), line as u32);
                    }
                }
            },
            Event::Alias(_) => drop(place(&mut open, line)),
            _ => {}
        }
    }
    Ok(settings)
}

/// The assignments of Python to a configuration: `cfg.model.x = 1`, by the path after `cfg`.
pub(crate) fn python(text: &str) -> Settings {
    let mut settings = Settings::default();
    for (line, content) in (1..).zip(text.lines()) {
        let content = content.split(" #").next().unwrap_or_default().trim();
        let Some((path, value)) = content.split_once('=') else {
            continue;
        };
        let path = path.trim();
        let is_path = path.contains('.')
            && path
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "_.".contains(c));
        let value = value.trim().trim_matches(['"', '\'']);
        if is_path && !value.starts_with('=') {
            let below = ["cfg.", "config.", "self.cfg."]
                .iter()
                .find_map(|it| path.strip_prefix(it));
            settings.state(below.unwrap_or(path).to_owned(), value.to_owned(), line);
        }
    }
    settings
}

/// The path of the value that comes next, with the line of its key.
fn place(open: &mut [Open], line: usize) -> Option<(String, usize)> {
    let inner = open.last_mut()?;
    let (name, line) = match &mut inner.item {
        Some(item) => {
            *item += 1;
            ((*item - 1).to_string(), line)
        }
        None => inner.key.take()?,
    };
    let path = match inner.path.as_str() {
        "" => name,
        path => format!("{path}.{name}"),
    };
    Some((path, line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(settings: Result<Settings, Broken>) -> String {
        let settings = settings.expect("it is a document");
        let shown = settings
            .values
            .iter()
            .map(|(key, value)| format!("{key}={value}@{}", settings.lines[key]));
        shown.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn maps_nest() {
        let text =
            "a:\n  b: 1 # one\n  c:\n    d: \"x\"\n  e: null\nh: true\nl:\n- f: 2\n- 3\n# g: 3\n";
        let expected = "a.b=1@2 a.c.d=x@4 a.e=null@5 h=true@6 l.0.f=2@8 l.1=3@9";
        assert_eq!(shown(yaml(text)), expected);
        let json = "{\n \"a\": {\"b\": 1, \"c\": [1, \"x\"]},\n\t\"h\": true\n}";
        assert_eq!(shown(yaml(json)), "a.b=1@2 a.c.0=1@2 a.c.1=x@2 h=true@3");
        let neox = "# x\n{\n  # y\n  \"num-layers\": 44,\n  \"z\": {\n  \"stage\": 1,\n  \"o\": True,\n  },\n}\n";
        assert_eq!(shown(yaml(neox)), "num-layers=44@4 z.o=True@7 z.stage=1@6");
        let toml_text = "a = 1\n[b]\nc = [\"x\", 2]\nd = true\n";
        assert_eq!(
            shown(toml(toml_text)),
            "a=1@1 b.c.0=x@3 b.c.1=2@3 b.d=true@4"
        );
    }

    #[test]
    fn hostile_documents_are_refused() {
        assert!(yaml(&"[".repeat(100_000)).is_err());
        assert!(yaml("a: &x [1]\nb: *x\nc: {").is_err());
        assert!(yaml(&"- x\n".repeat(100_000)).is_err());
        assert_eq!(toml("a = 1\nb = ").map_err(|it| it.line), Err(2));
        let bomb = "a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n";
        assert_eq!(shown(yaml(bomb)), "a.0=x@1 a.1=x@1");
    }
}
