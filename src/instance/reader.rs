//! Reads values key by key and collects everything that is wrong with them.
//!
//! `serde` stops at the first error; a section declared by `section!` goes on, and its JSON
//! Schema comes from the same declaration, so that the two cannot know different keys.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::document::{Node, Origin, Table, Tree};
use super::error::{Problems, shown};
use super::spelling;
use crate::quantity::{self, Measured};

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
#[derive(Debug, Clone)]
pub(crate) enum Field<T> {
    /// Nothing.
    Absent,
    /// Something impossible, which is reported already.
    Broken,
    /// A value, and where it stands.
    Given(T, Origin),
}

impl<T> Default for Field<T> {
    fn default() -> Self {
        Self::Absent
    }
}

impl<T: Value> Field<T> {
    /// The value of `key` in a table.
    pub(crate) fn read(table: &Table, key: &str, path: &str, problems: &mut Problems) -> Self {
        let Some(node) = table.get(key) else {
            return Self::Absent;
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
        match self {
            Self::Given(value, _) => Some(value.clone()),
            Self::Broken => None,
            Self::Absent => {
                problems.add_anywhere(section, format!("`{path}` is missing"), hint);
                None
            }
        }
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

/// The table of a section, its keys checked.
pub(crate) fn section_table<'a, S: Section>(
    node: &'a Node,
    path: &str,
    problems: &mut Problems,
) -> Option<&'a Table> {
    let table = match &node.value {
        Tree::Table(table) => table,
        Tree::List(_) => {
            problems.add(
                &node.origin,
                format!("`{path}` must be one table, not a list"),
                format!("write `[{path}]`; several of them are not modelled yet"),
            );
            return None;
        }
        other => {
            problems.add(
                &node.origin,
                format!("`{path}` must be a table, not {}", other.kind()),
                format!("write a section `[{path}]` with `key = value` lines"),
            );
            return None;
        }
    };
    check_keys::<S>(table, path, problems);
    Some(table)
}

/// Reports every key that the section does not have.
pub(crate) fn check_keys<S: Section>(table: &Table, path: &str, problems: &mut Problems) {
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
        let hint = super::paths::hint(path, key, S::KEYS.iter().copied());
        problems.add(
            &entry.key_origin,
            format!("unknown key `{}`", shown(&join(path, key))),
            hint,
        );
    }
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
                Self {
                    $($field: Field::read(table, stringify!($field), path, problems),)+
                }
            }
        }

        impl Value for $name {
            fn read(node: &Node, path: &str, problems: &mut Problems) -> Option<Self> {
                let table = section_table::<Self>(node, path, problems)?;
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

/// Reports a value of the wrong kind.
fn wrong_kind<T>(
    node: &Node,
    path: &str,
    wanted: &str,
    hint: &str,
    problems: &mut Problems,
) -> Option<T> {
    let found = match &node.value {
        Tree::Text(text) => format!("the string `\"{}\"`", shown(text)),
        Tree::Integer(Some(number)) => format!("`{number}`"),
        Tree::Float(number) => format!("`{number}`"),
        Tree::Switch(on) => format!("`{on}`"),
        other => other.kind().to_owned(),
    };
    problems.add(
        &node.origin,
        format!("`{path}` must be {wanted}, not {found}"),
        hint,
    );
    None
}

impl Value for String {
    fn read(node: &Node, path: &str, problems: &mut Problems) -> Option<Self> {
        match &node.value {
            Tree::Text(text) if text.trim().is_empty() => {
                problems.add(&node.origin, format!("`{path}` is empty"), "write a text");
                None
            }
            Tree::Text(text) => Some(text.clone()),
            _ => wrong_kind(
                node,
                path,
                "a string",
                "write it in double quotes",
                problems,
            ),
        }
    }
}

/// A whole number of at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Count(pub(crate) u64);

impl Value for Count {
    fn read(node: &Node, path: &str, problems: &mut Problems) -> Option<Self> {
        let wanted = "a whole number of at least 1";
        match &node.value {
            Tree::Integer(Some(number)) => match u64::try_from(*number) {
                Ok(number) if number >= 1 => Some(Self(number)),
                Ok(_) => wrong_kind(node, path, "at least 1", "", problems),
                Err(_) if *number < 0 => wrong_kind(node, path, wanted, "", problems),
                Err(_) => wrong_kind(node, path, "a smaller number", "", problems),
            },
            Tree::Integer(None) => wrong_kind(node, path, "a smaller number", "", problems),
            Tree::Text(text) if text.trim().parse::<u64>().is_ok() => {
                let hint = format!("remove the quotes: `{}`", text.trim());
                wrong_kind(node, path, wanted, &hint, problems)
            }
            Tree::Float(number) if number.is_finite() && number.fract() == 0.0 => {
                let hint = format!("write `{number:.0}`");
                wrong_kind(node, path, wanted, &hint, problems)
            }
            _ => wrong_kind(node, path, wanted, "write digits only", problems),
        }
    }
}

impl JsonSchema for Count {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Count".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 1 })
    }
}

/// A number of at least 0.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub(crate) struct Number(pub(crate) f64);

/// Largest number that a key takes: beyond it arithmetic loses its meaning.
const LARGEST_NUMBER: f64 = 1e9;

impl Value for Number {
    fn read(node: &Node, path: &str, problems: &mut Problems) -> Option<Self> {
        let number = match &node.value {
            Tree::Integer(Some(number)) => *number as f64,
            Tree::Float(number) => *number,
            _ => return wrong_kind(node, path, "a number", "write digits only", problems),
        };
        if number.is_nan() || !(0.0..=LARGEST_NUMBER).contains(&number) {
            let wanted = "a number of at least 0 and at most 1e9";
            return wrong_kind(node, path, wanted, "", problems);
        }
        Some(Self(number))
    }
}

impl JsonSchema for Number {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Number".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "minimum": 0, "maximum": LARGEST_NUMBER })
    }
}

/// A quantity written with its unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Quantity<Q>(pub(crate) Q);

impl<Q: Measured + Clone> Value for Quantity<Q> {
    fn read(node: &Node, path: &str, problems: &mut Problems) -> Option<Self> {
        let unit = Q::UNITS[0].0;
        let text = match &node.value {
            Tree::Text(text) => text,
            Tree::Integer(Some(_)) | Tree::Float(_) => {
                let written = &node.origin.source.text[node.origin.span.clone()];
                problems.add(
                    &node.origin,
                    format!("`{path}` has no unit"),
                    format!("write a {} in quotes: `\"{written} {unit}\"`", Q::NOUN),
                );
                return None;
            }
            _ => {
                let wanted = format!("a {} with its unit", Q::NOUN);
                let hint = format!("write a number and a unit in quotes, such as `\"80 {unit}\"`");
                return wrong_kind(node, path, &wanted, &hint, problems);
            }
        };
        match quantity::parse::<Q>(&shown(text)) {
            Ok(quantity) => Some(Self(quantity)),
            Err(message) => {
                let (text, hint) = message.split_once(": ").unwrap_or((&message, ""));
                problems.add(&node.origin, format!("`{path}`: {text}"), hint);
                None
            }
        }
    }
}

impl<Q: Measured> JsonSchema for Quantity<Q> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        Q::NOUN.into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let units: Vec<&str> = Q::UNITS.iter().map(|(name, _)| *name).collect();
        let pattern = format!(r"^\s*[0-9][0-9_.eE+-]*\s*({})\s*$", units.join("|"));
        json_schema!({ "type": "string", "pattern": pattern })
    }
}

/// An enum whose variants have names in files.
pub(crate) trait Choice: Copy + 'static {
    /// What the choice is of, with its article.
    const NOUN: &'static str;
    /// Names and variants.
    fn named() -> Vec<(&'static str, Self)>;
}

/// One of several names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OneOf<C>(pub(crate) C);

impl<C: Choice> Value for OneOf<C> {
    fn read(node: &Node, path: &str, problems: &mut Problems) -> Option<Self> {
        let names = || C::named().into_iter().map(|(name, _)| name);
        let hint = format!("write one of {}", spelling::list(names()));
        let Tree::Text(text) = &node.value else {
            return wrong_kind(node, path, "a string", &hint, problems);
        };
        let found = C::named().into_iter().find(|(name, _)| name == text);
        if found.is_none() {
            let hint = match spelling::did_you_mean(text, names()) {
                Some(question) => format!("{question} known: {}", spelling::list(names())),
                None => hint,
            };
            problems.add(
                &node.origin,
                format!("`{path}`: `{}` is not {}", shown(text), C::NOUN),
                hint,
            );
        }
        found.map(|(_, choice)| Self(choice))
    }
}

impl<C: Choice> JsonSchema for OneOf<C> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        C::NOUN.into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names: Vec<&str> = C::named().into_iter().map(|(name, _)| name).collect();
        json_schema!({ "type": "string", "enum": names })
    }
}
