//! Values of axes in files, and `[framework.axes]`: the values that a framework has.

use serde_json::{Value as Json, json};

use super::cluster::MOST_GPUS;
use crate::framework::support::{Aspect, Support, Supported};
use crate::reading::section::{check_keys, described, object_schema, table_of};
use crate::reading::{Node, Problems, Tree, Value, join, shown, spelling};

/// What stands for every value.
const ANY: &str = "any";

/// The codes at `path`: of a list, or of one value.
pub(crate) fn read_codes(
    aspect: Aspect,
    path: &str,
    node: &Node,
    problems: &mut Problems,
) -> Option<Vec<u32>> {
    let Tree::List(items) = &node.value else {
        return read_code(aspect, path, node, problems).map(|code| vec![code]);
    };
    if items.is_empty() {
        problems.add(
            &node.origin,
            format!("`{path}` is empty: no layout has a value from it"),
            "list at least one value, or remove the key to try everything legal",
        );
        return None;
    }
    let mut codes = Vec::new();
    for item in items {
        let code = read_code(aspect, path, item, problems)?;
        if codes.contains(&code) {
            problems.add(
                &item.origin,
                format!("`{path}` lists `{}` twice", aspect.show(code)),
                "keep one of the two",
            );
        }
        codes.push(code);
    }
    Some(codes)
}

/// The code of one value at `path`.
pub(crate) fn read_code(
    aspect: Aspect,
    path: &str,
    node: &Node,
    problems: &mut Problems,
) -> Option<u32> {
    let is_named = aspect.names().is_some();
    let text = match &node.value {
        Tree::Text(text) if is_named => text.clone(),
        Tree::Integer(Some(number)) if !is_named => number.to_string(),
        Tree::Switch(on) => on.to_string(),
        _ => String::new(),
    };
    match aspect.parse_value(&text) {
        Some(code) if !is_named && u64::from(code) > MOST_GPUS => problems.add(
            &node.origin,
            format!("`{path}` is at most {MOST_GPUS}, not `{code}`"),
            "check the number of digits",
        ),
        Some(code) => return Some(code),
        None => {
            let text = format!("`{path}` cannot be `{}`", shown(node.written()));
            problems.add(&node.origin, text, remedy(aspect, &node.value));
        }
    }
    None
}

/// What to write instead of a value that does not exist.
fn remedy(aspect: Aspect, value: &Tree) -> String {
    let text = match value {
        Tree::Text(text) => text.as_str(),
        _ => "",
    };
    let Some(names) = aspect.names() else {
        return match aspect.parse_value(text) {
            Some(number) => format!("remove the quotes: `{} = {number}`", aspect.as_str()),
            None => "write a whole number of at least 1, or a list such as `[1, 2, 4]`".to_owned(),
        };
    };
    let known = spelling::list(names.iter().copied());
    match spelling::did_you_mean(text, names.iter().copied()) {
        Some(question) => format!("{question} known: {known}"),
        None => format!("write one of {known}"),
    }
}

/// The JSON Schema of one value.
pub(crate) fn value_schema(aspect: Aspect) -> Json {
    match aspect.names() {
        None => json!({ "type": "integer", "minimum": 1, "maximum": MOST_GPUS }),
        Some(names) if aspect.parse_value("true").is_some() => {
            json!({ "anyOf": [{ "type": "boolean" }, { "enum": names }] })
        }
        Some(names) => json!({ "type": "string", "enum": names }),
    }
}

/// The JSON Schema of a list of values.
pub(crate) fn list_schema(aspect: Aspect) -> Json {
    let value = value_schema(aspect);
    json!({ "type": "array", "items": value, "minItems": 1, "uniqueItems": true })
}

/// What `[framework.axes]` says: values, and where that is stated.
#[derive(Debug, Clone, Default)]
pub(crate) struct AxesSection(Vec<(Aspect, Supported, String)>);

impl AxesSection {
    /// What a framework of this section can run.
    pub(crate) fn support(&self) -> Support {
        let mut support = Support::default();
        for (aspect, values, _) in &self.0 {
            support.of_mut(*aspect).clone_from(values);
        }
        support
    }

    /// Where the values of an aspect are stated.
    pub(crate) fn source(&self, aspect: Aspect) -> Option<&str> {
        let stated = self.0.iter().find(|(of, ..)| *of == aspect);
        stated.map(|(.., source)| source.as_str())
    }
}

impl Value for AxesSection {
    fn read(node: &Node, path: &str, problems: &mut Problems) -> Option<Self> {
        let table = table_of(node, path, problems)?;
        let keys: Vec<&'static str> = Aspect::all().map(Aspect::as_str).collect();
        check_keys(table, path, &keys, problems);
        let stated = Aspect::all().filter_map(|aspect| {
            let node = table.get(aspect.as_str())?;
            let path = join(path, aspect.as_str());
            let (values, source) = read_supported(aspect, &path, node, problems)?;
            Some((aspect, values, source))
        });
        Some(Self(stated.collect()))
    }

    fn over(mut self, base: &Self) -> Self {
        let own: Vec<Aspect> = self.0.iter().map(|(aspect, ..)| *aspect).collect();
        let below = base.0.iter().filter(|(aspect, ..)| !own.contains(aspect));
        self.0.extend(below.cloned());
        self
    }

    fn schema() -> Json {
        let properties = Aspect::all().map(|aspect| {
            let values = json!({ "anyOf": [
                { "const": ANY }, value_schema(aspect), list_schema(aspect),
                {
                    "type": "object",
                    "properties": {
                        "values": { "anyOf": [{ "const": ANY }, list_schema(aspect)] },
                        "source": { "type": "string" },
                    },
                    "required": ["values", "source"],
                    "additionalProperties": false,
                },
            ] });
            let name = aspect.as_str();
            (
                name,
                described(values, &format!("Values of `{name}` that it has.")),
            )
        });
        object_schema("The values of every axis that it has.", properties)
    }
}

/// The values of one aspect: as they are, or in a table with their source.
fn read_supported(
    aspect: Aspect,
    path: &str,
    node: &Node,
    problems: &mut Problems,
) -> Option<(Supported, String)> {
    let (values, source) = match &node.value {
        Tree::Table(table) => {
            check_keys(table, path, &["values", "source"], problems);
            let source = table.get("source");
            let source = source.and_then(|node| String::read(node, path, problems));
            (table.get("values")?, source.unwrap_or_default())
        }
        _ => (node, String::new()),
    };
    let codes = match &values.value {
        Tree::Text(text) if text == ANY => None,
        _ => Some(read_codes(aspect, path, values, problems)?),
    };
    Some((Supported(codes), source))
}

/// `[framework.axes]` of what a framework can run, without sources.
pub(crate) fn written(support: &Support) -> super::Section {
    let values = |aspect: Aspect| match &support.of(aspect).0 {
        None => json!(ANY),
        Some(codes) if aspect.names().is_none() => json!(codes),
        Some(codes) => codes.iter().map(|&code| aspect.show(code)).collect(),
    };
    let aspects = Aspect::all();
    aspects
        .map(|aspect| (aspect.as_str().to_owned(), values(aspect)))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;
    use crate::axis::Axis;
    use crate::catalog::{self, CATALOG};
    use crate::framework::support::ContextExchange;

    /// The page of what each framework has.
    fn page() -> String {
        let mut page = "# Frameworks\n\nThe values of every axis that a framework of the catalog has. A layout with another value breaks \
             the rule `framework_supports`; `sharding_with_pipeline` is what data parallelism may split where there is a \
             pipeline, `context_exchange` the kinds of context parallelism, of which a ring is modelled. An instance may say \
             otherwise below `framework.axes`. This page is generated from `catalog/frameworks.toml` by the tests \
             (`PARLAYOUT_WRITE_SCHEMA=1`).\n"
            .to_owned();
        for (name, section) in &CATALOG.frameworks.presets {
            let framework = catalog::framework(name).expect("it is in the catalog");
            write!(
                page,
                "\n## {name}\n\nLayers are cut by `partition = \"{}\"`, checkpointed by `checkpointing = \"{}\"`; a gradient has \
                 {} bytes; logits are `{}`.\n\n| axis | values | source |\n|---|---|---|\n",
                framework.partition,
                framework.checkpoint_rule,
                framework.memory.gradient_bytes,
                framework.memory.logits
            )
            .expect("a text takes all lines");
            let axes = section.axes.value().expect("it states them");
            for aspect in Aspect::all() {
                writeln!(
                    page,
                    "| `{}` | {} | {} |",
                    aspect.as_str(),
                    framework.axes.shown(aspect),
                    axes.source(aspect).unwrap_or_default()
                )
                .expect("a text takes all lines");
            }
        }
        page
    }

    #[test]
    fn the_shipped_page_is_that_of_the_catalog() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/frameworks.md");
        if std::env::var_os("PARLAYOUT_WRITE_SCHEMA").is_some() {
            std::fs::write(path, page()).expect("the folder is writable");
        }
        let shipped = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            shipped == page(),
            "run the tests with PARLAYOUT_WRITE_SCHEMA=1 and commit docs/frameworks.md"
        );
    }

    #[test]
    fn every_framework_states_each_axis_with_a_source() {
        for (name, section) in &CATALOG.frameworks.presets {
            let axes = section.axes.value().expect("it states them");
            for aspect in Aspect::all() {
                let source = axes.source(aspect).unwrap_or_default();
                assert!(source.len() > 10, "{name}: {}", aspect.as_str());
            }
            let support = axes.support();
            // Only a ring is modelled, and one node that gathers does not differ much from it.
            let modelled = [ContextExchange::Ring, ContextExchange::AllGather];
            let mut modelled = modelled.into_iter();
            let is_modelled = modelled.any(|kind| support.context_exchange.has(kind as u32));
            let has_degrees = support.has(Axis::ContextParallel, 2);
            assert_eq!(is_modelled, has_degrees, "{name}");
            for &code in support.sharding_with_pipeline.0.iter().flatten() {
                assert!(support.has(Axis::Sharding, code), "{name}");
            }
        }
    }
}
