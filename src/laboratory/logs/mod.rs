//! Reads measured runs out of the logs of training frameworks.
//!
//! A log tells step times, peak memory and the end of a run (`log`); what was run is told by a
//! launch script, a configuration file, the framework's own dump of its arguments, or the user
//! (`crate::launch`). Both together are a [`Run`], as a row of a file would be.
//!
//! [`Run`]: crate::laboratory::runs::Run

mod lines;
mod log;
mod missing;
mod note;
mod run;
mod scan;

pub use crate::launch::{Facts, LaunchError, launch, stated_layout as layout};
pub use log::{Log, Peak, SteadyStep, read};
pub use run::{LogError, run};
