//! Reads text value by value: each value knows its place, and all that is wrong is reported at once.
//!
//! Text becomes a tree of values that know where they stand ([`document`]); a `section!` takes from it
//! the keys that it knows ([`section`]), each by the kind of its [`values`]; what is wrong is
//! collected as [`Problems`], with a remedy ([`spelling`] finds the key that was meant). What the
//! keys are about is none of its business.

pub(crate) mod document;
mod error;
pub(crate) mod section;
pub(crate) mod spelling;
pub(crate) mod values;

pub(crate) use document::{Node, Origin, Source, SourceKind, Table, Tree};
pub(crate) use error::shown;
pub use error::{InputError, Place, Problem, Problems};
pub(crate) use section::{Field, Value, join};
pub(crate) use values::OrNone;
