//! Measured runs: reading them, and asking the cost model what it would have said.

mod assumed;
mod columns;
mod model_run;
mod network;
mod record;
mod setups;
mod table;
mod template;

pub use assumed::{Assumed, assumed};
pub use model_run::{Modelled, Skip, Skipped, Stated, fits, model};
pub use record::{Place, Run, RunsError, RunsFile, Status, read};
pub use setups::{Networks, RunSetups, Setup, other_gpu};
pub use template::template;
