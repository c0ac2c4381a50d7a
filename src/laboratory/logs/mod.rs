//! Reads measured runs out of the logs of training frameworks.
//!
//! A log tells step times, peak memory and the end of a run (`log`); what was run is told by a
//! launch script, a configuration file, the framework's own dump of its arguments, or the user
//! (`facts`). Both together are a [`Run`], as a row of a file would be.
//!
//! [`Run`]: crate::laboratory::runs::Run

mod facts;
mod launch;
mod lines;
mod log;
mod megatron_flags;
mod missing;
mod nanotron_config;
mod note;
mod run;
mod scan;
mod settings;
mod shell;
mod shell_words;
mod torchtitan_config;
mod yaml;

pub use facts::{Facts, layout};
pub use launch::{LaunchError, launch};
pub use log::{Log, Peak, SteadyStep, read};
pub use run::{LogError, run};
