//! Reads values key by key and collects everything that is wrong with them.
//!
//! `serde` stops at the first error; a section declared by `section!` goes on, and its JSON
//! Schema comes from the same declaration, so that the two cannot know different keys.

use schemars::JsonSchema;

use super::document::{Node, Origin, SourceKind, Table, Tree};
use super::error::{Problems, shown};
use super::spelling;

/// A type that is read from one TOML value.
pub(crate) trait Value: Sized + Clone + JsonSchema {
    /// The value at `path` (`cluster.gpus`); `None`, with the reason in `problems`, if it is not
    /// possible.
    fn read(node: &Node, path: &str, problems: &mut Problems) -> Option<Self>;

    /// This value where it says something, and `base` elsewhere.
    #[must_use]
    fn over(self, _base: &Self) -> Self {
        self
    }
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
    pub(crate) fn read(
        table: &Table,
        key: &'static str,
        path: &str,
        meant: &[&'static str],
        problems: &mut Problems,
    ) -> Self {
        let Some(node) = table.get(key) else {
            return if meant.contains(&key) {
                Self::Broken
            } else {
                Self::Absent
            };
        };
        match T::read(node, &join(path, key), problems) {
            Some(value) => Self::Given(value, node.origin.clone()),
            None => Self::Broken,
        }
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

/// `cluster` and `gpus` to `cluster.gpus`.
pub(crate) fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

/// A table with known keys.
pub(crate) trait Section {
    /// The keys.
    const KEYS: &'static [&'static str];
    /// Keys that are refused because what they say is not modelled yet.
    const RESERVED: &'static [(&'static str, &'static str)];
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

/// Reports every key that the section does not have; returns the keys that were probably meant.
pub(crate) fn check_keys<S: Section>(
    table: &Table,
    path: &str,
    problems: &mut Problems,
) -> Vec<&'static str> {
    let mut meant = Vec::new();
    for entry in &table.entries {
        let key = entry.key.as_str();
        if S::KEYS.contains(&key) {
            continue;
        }
        if let Some((_, what)) = S::RESERVED.iter().find(|(reserved, _)| *reserved == key) {
            let path = join(path, key);
            problems.add(
                &entry.key_origin,
                format!("`{path}` is not modelled yet: {what}"),
                "remove the key, or plan without it",
            );
            continue;
        }
        meant.extend(spelling::nearest(key, S::KEYS.iter().copied()));
        problems.add(
            &entry.key_origin,
            format!("unknown key `{}`", shown(&join(path, key))),
            super::paths::hint(path, key, S::KEYS.iter().copied()),
        );
    }
    meant
}

/// Declares a table of an instance file: the type that holds what was typed, its reader and its
/// JSON Schema.
macro_rules! section {
    (
        $(#[doc = $doc:literal])+
        struct $name:ident {
            $($(#[doc = $field_doc:literal])+ $field:ident: $type:ty,)+
        }
        $(reserved { $($reserved:literal: $what:literal,)+ })?
    ) => {
        $(#[doc = $doc])+
        #[derive(Debug, Clone, Default)]
        pub(crate) struct $name {
            $($(#[doc = $field_doc])+ pub(crate) $field: Field<$type>,)+
        }

        impl Section for $name {
            const KEYS: &'static [&'static str] = &[$(stringify!($field)),+];
            const RESERVED: &'static [(&'static str, &'static str)] = &[$($(($reserved, $what)),+)?];
        }

        impl $name {
            /// The keys of a table that is known to be this section.
            pub(crate) fn from_table(table: &Table, path: &str, problems: &mut Problems) -> Self {
                let meant = check_keys::<Self>(table, path, problems);
                Self {
                    $($field: Field::read(table, stringify!($field), path, &meant, problems),)+
                }
            }
        }

        impl Value for $name {
            fn read(node: &Node, path: &str, problems: &mut Problems) -> Option<Self> {
                let table = table_of(node, path, problems)?;
                Some(Self::from_table(table, path, problems))
            }

            fn over(self, base: &Self) -> Self {
                Self { $($field: self.$field.or(&base.$field),)+ }
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                let properties = [
                    $((
                        stringify!($field),
                        concat!($($field_doc),+).trim(),
                        generator.subschema_for::<$type>(),
                    ),)+
                ];
                crate::instance::schema::object(concat!($($doc),+).trim(), properties)
            }
        }
    };
}
pub(crate) use section;
