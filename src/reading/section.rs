//! Reads values key by key and collects everything that is wrong with them.
//!
//! `serde` stops at the first error; a table declared by `section!` goes on, and its JSON Schema
//! comes from the same declaration, so that the two cannot know different keys.

use serde_json::{Map, Value as Json, json};

use super::document::{Node, Origin, SourceKind, Table, Tree};
use super::error::{Problems, shown};
use super::spelling;

/// A type that is read from one TOML value.
pub(crate) trait Value: Sized + Clone {
    /// The value at `path` (`cluster.gpus`); `None`, with the reason in `problems`, if it is not
    /// possible.
    fn read(node: &Node, path: &str, problems: &mut Problems) -> Option<Self>;

    /// Its JSON Schema.
    fn schema() -> Json;

    /// This value where it says something, and `base` elsewhere.
    #[must_use]
    fn over(self, _base: &Self) -> Self {
        self
    }
}

/// Keys that stand in a table beside others.
pub(crate) trait Part: Clone + Default {
    /// The keys.
    fn keys() -> Vec<&'static str>;

    /// What the table at `path` says of them. Keys that are `meant` by misspelt ones are not missing.
    fn of_table(table: &Table, path: &str, meant: &[&str], problems: &mut Problems) -> Self;

    /// The JSON Schema of each key.
    fn properties() -> Vec<(&'static str, Json)>;

    /// What these keys say where they say something, and `base` elsewhere.
    #[must_use]
    fn over(self, base: &Self) -> Self;
}

/// What a file says for one key.
#[derive(Debug, Clone, Default)]
pub(crate) enum Field<T> {
    /// Nothing.
    #[default]
    Absent,
    /// Something impossible, which is reported already.
    Broken,
    /// A value, and where it stands.
    Given(T, Origin),
}

impl<T: Value> Field<T> {
    /// The value of `key` in a table. A key that is `meant` by a misspelt one is not missing.
    pub(crate) fn of_table(
        table: &Table,
        key: &str,
        path: &str,
        meant: &[&str],
        problems: &mut Problems,
    ) -> Self {
        Self::read_by(table, key, meant, |node| {
            T::read(node, &join(path, key), problems)
        })
    }

    /// This field where it says something, else `base`.
    pub(crate) fn or(self, base: &Self) -> Self {
        match (self, base) {
            (Self::Absent, base) => base.clone(),
            (Self::Given(value, origin), Self::Given(below, _)) => {
                Self::Given(value.over(below), origin)
            }
            (own, _) => own,
        }
    }
}

impl<T: Clone> Field<T> {
    /// The value of `key` as `read` reads it. A key that is `meant` by a misspelt one is not missing.
    pub(crate) fn read_by(
        table: &Table,
        key: &str,
        meant: &[&str],
        read: impl FnOnce(&Node) -> Option<T>,
    ) -> Self {
        match table.get(key) {
            None if meant.contains(&key) => Self::Broken,
            None => Self::Absent,
            Some(node) => match read(node) {
                Some(value) => Self::Given(value, node.origin.clone()),
                None => Self::Broken,
            },
        }
    }

    /// The value, if there is one.
    pub(crate) fn value(&self) -> Option<&T> {
        match self {
            Self::Given(value, _) => Some(value),
            _ => None,
        }
    }

    /// Where the value stands, if there is one.
    pub(crate) fn origin(&self) -> Option<&Origin> {
        match self {
            Self::Given(_, origin) => Some(origin),
            _ => None,
        }
    }

    /// Whether the file says nothing.
    pub(crate) fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    /// The value, or `default` where the file says nothing.
    pub(crate) fn or_default(&self, default: T) -> Option<T> {
        match self {
            Self::Absent => Some(default),
            Self::Broken => None,
            Self::Given(value, _) => Some(value.clone()),
        }
    }

    /// The value; a missing one is a problem of the section that stands at `section`.
    pub(crate) fn required(
        &self,
        path: &str,
        section: Option<&Origin>,
        hint: &str,
        problems: &mut Problems,
    ) -> Option<T> {
        if self.is_absent() {
            // A section that an argument adds is no place to look at.
            let section = section.filter(|at| at.source.kind == SourceKind::File);
            problems.add_anywhere(section, format!("`{path}` is missing"), hint);
        }
        self.value().cloned()
    }

    /// Reports the value unless it satisfies the rule.
    pub(crate) fn check(
        &self,
        holds: impl Fn(&T) -> bool,
        problems: &mut Problems,
        text: impl Fn(&T) -> String,
        hint: &str,
    ) {
        if let Self::Given(value, origin) = self
            && !holds(value)
        {
            problems.add(origin, text(value), hint);
        }
    }
}

impl Field<u64> {
    /// Reports a count beyond `most`.
    pub(crate) fn at_most(&self, most: u64, path: &str, problems: &mut Problems) {
        self.check(
            |count| *count <= most,
            problems,
            |count| format!("`{path}` is at most {most}, not `{count}`"),
            "check the number of digits",
        );
    }
}

/// `cluster` and `gpus` to `cluster.gpus`.
pub(crate) fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

/// The table of a section.
pub(crate) fn table_of<'a>(
    node: &'a Node,
    path: &str,
    problems: &mut Problems,
) -> Option<&'a Table> {
    let (text, hint) = match &node.value {
        Tree::Table(table) => return Some(table),
        Tree::List(_) => (
            format!("`{path}` must be one table, not a list"),
            format!("write `[{path}]`; several of them are not modelled yet"),
        ),
        Tree::Text(text) => (
            format!("`{path}` must be a table, not a string"),
            format!(
                "write `[{path}]` and below it `preset = \"{}\"`",
                shown(text)
            ),
        ),
        other => (
            format!("`{path}` must be a table, not {}", other.kind()),
            format!("write `[{path}]` and below it `key = value` lines"),
        ),
    };
    problems.add(&node.origin, text, hint);
    None
}

/// The tables of a list, or one table, each with its place; reports what is neither.
pub(crate) fn tables_of<'a>(
    node: &'a Node,
    path: &str,
    hint: &str,
    problems: &mut Problems,
) -> Option<Vec<(&'a Table, &'a Origin)>> {
    let table = |node: &'a Node| match &node.value {
        Tree::Table(table) => Some((table, &node.origin)),
        _ => None,
    };
    let tables = match &node.value {
        Tree::List(items) => items.iter().map(table).collect(),
        _ => table(node).map(|table| vec![table]),
    };
    if tables.is_none() {
        let text = format!("`{path}` must be a list of tables");
        problems.add(&node.origin, text, hint);
    }
    tables
}

/// Reports every key that is not one of `known`; returns the keys that were probably meant.
pub(crate) fn check_keys(
    table: &Table,
    path: &str,
    known: &[&'static str],
    problems: &mut Problems,
) -> Vec<&'static str> {
    let mut meant = Vec::new();
    for entry in &table.entries {
        let key = entry.key.as_str();
        if known.contains(&key) {
            continue;
        }
        meant.extend(spelling::nearest(key, known.iter().copied()));
        problems.add_unknown_key(&entry.key_origin, path, key, known);
    }
    meant
}

/// The schema of a table: its keys, and no others.
pub(crate) fn object_schema(
    description: &str,
    properties: impl IntoIterator<Item = (&'static str, Json)>,
) -> Json {
    let properties: Map<String, Json> = properties
        .into_iter()
        .map(|(key, schema)| (key.to_owned(), schema))
        .collect();
    json!({
        "type": "object",
        "description": description,
        "properties": properties,
        "additionalProperties": false,
    })
}

/// The schema with a description of its own.
pub(crate) fn described(mut schema: Json, description: &str) -> Json {
    schema["description"] = Json::from(description);
    schema
}

/// Declares a table of a file: the type that holds what was typed, its reader and its JSON Schema.
/// `parts` are keys that are declared elsewhere and stand beside its own.
macro_rules! section {
    (
        $(#[doc = $doc:literal])+
        struct $name:ident {
            $($(#[doc = $field_doc:literal])+ $field:ident: $type:ty,)+
        }
        $(parts { $($(#[doc = $part_doc:literal])+ $part:ident: $part_type:ty,)+ })?
    ) => {
        $(#[doc = $doc])+
        #[derive(Debug, Clone, Default)]
        pub(crate) struct $name {
            $($(#[doc = $field_doc])+ pub(crate) $field: $crate::reading::Field<$type>,)+
            $($($(#[doc = $part_doc])+ pub(crate) $part: $part_type,)+)?
        }

        impl $name {
            /// The keys of a table that is known to be this section.
            pub(crate) fn of_table(
                table: &$crate::reading::Table,
                path: &str,
                problems: &mut $crate::reading::Problems,
            ) -> Self {
                #[allow(unused_mut, reason = "a section may have no parts")]
                let mut keys = vec![$(stringify!($field)),+];
                $($(keys.extend(<$part_type as $crate::reading::section::Part>::keys());)+)?
                let meant = $crate::reading::section::check_keys(table, path, &keys, problems);
                Self {
                    $($field: $crate::reading::Field::of_table(
                        table, stringify!($field), path, &meant, problems,
                    ),)+
                    $($($part: $crate::reading::section::Part::of_table(
                        table, path, &meant, problems,
                    ),)+)?
                }
            }
        }

        impl $crate::reading::Value for $name {
            fn read(
                node: &$crate::reading::Node,
                path: &str,
                problems: &mut $crate::reading::Problems,
            ) -> Option<Self> {
                let table = $crate::reading::section::table_of(node, path, problems)?;
                Some(Self::of_table(table, path, problems))
            }

            fn over(self, base: &Self) -> Self {
                Self {
                    $($field: self.$field.or(&base.$field),)+
                    $($($part: $crate::reading::section::Part::over(self.$part, &base.$part),)+)?
                }
            }

            fn schema() -> serde_json::Value {
                #[allow(unused_mut, reason = "a section may have no parts")]
                let mut properties = vec![$((
                    stringify!($field),
                    $crate::reading::section::described(
                        <$type as $crate::reading::Value>::schema(),
                        concat!($($field_doc),+).trim(),
                    ),
                )),+];
                $($(properties.extend(
                    <$part_type as $crate::reading::section::Part>::properties(),
                );)+)?
                $crate::reading::section::object_schema(concat!($($doc),+).trim(), properties)
            }
        }
    };
}
pub(crate) use section;
