//! What was launched, and what is to be launched: scripts and configuration files of training frameworks.
//!
//! A file becomes settings by key, each with its line (`shell`, `document`), and these become facts
//! in the project's own words (`facts`), by what a framework calls them (`dialect`, one table per framework in
//! `frameworks`). The same table writes the facts of a layout. Nothing is run, and what is read is bounded.

pub mod dialect;
mod document;
mod facts;
mod file;
pub mod frameworks;
mod layout;
mod pipeline;
pub mod render;
pub mod script;
pub(crate) mod settings;
mod shell;
mod shell_words;

pub use facts::{Facts, Place, Problem, completed, layout as stated_layout};
pub use file::{Launch, LaunchError, Stated, launch, read, read_text};
pub use layout::{facts as facts_of, layout, typed};
