//! Finds the fastest parallel layout for training a large language model, proves it optimal,
//! and explains it.
//!
//! An [`Instance`] is a checked problem: a network, a cluster, a framework, the work of one
//! optimizer step, and the layouts that may be tried. [`solve`] finds the best layout and says
//! what was proven; a [`SolutionDocument`] shows the answer, to people as text and to programs as
//! JSON; [`export`] writes the flags of a framework; [`verify`] searches the whole space again.
//!
//! ```
//! use parlayout::{Answer, Document, Instance, PlanOptions, SolutionDocument, Style, Target};
//! # use std::path::Path;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("instances/hagemann-13b-2k-64gpu.toml");
//! let instance = Instance::read(&path)?;
//! let outcome = parlayout::solve(&instance, &PlanOptions::default())?;
//!
//! let document = SolutionDocument::new(&instance, &outcome);
//! println!("{}", document.text(&Style::default()));
//! std::fs::write(std::env::temp_dir().join("answer.json"), document.json())?;
//!
//! let plan = outcome.plan().expect("13B fits on 64 GPUs");
//! assert!(plan.choice.prediction.mfu.value() > 0.5);
//! println!("{}", parlayout::export(Target::MegatronLm, &instance, &plan.choice.layout)?);
//! # Ok(())
//! # }
//! ```
//!
//! What stands here is the library; its modules are hidden, since they change without notice.

#[doc(hidden)]
pub mod axis;
#[doc(hidden)]
pub mod catalog;
#[doc(hidden)]
pub mod change;
#[doc(hidden)]
pub mod check;
mod choice;
#[doc(hidden)]
pub mod constraint;
#[doc(hidden)]
pub mod cost_model;
#[doc(hidden)]
pub mod count;
#[doc(hidden)]
pub mod explain;
#[doc(hidden)]
pub mod export;
#[doc(hidden)]
pub mod figures;
#[doc(hidden)]
pub mod files;
#[cfg(test)]
mod fixture;
#[doc(hidden)]
pub mod instance;
#[doc(hidden)]
pub mod job;
#[doc(hidden)]
pub mod laboratory;
#[doc(hidden)]
pub mod launch;
#[doc(hidden)]
pub mod layout;
#[doc(hidden)]
pub mod layout_argument;
#[doc(hidden)]
pub mod layout_space;
#[doc(hidden)]
pub mod plan;
#[doc(hidden)]
pub mod planner;
#[doc(hidden)]
pub mod price;
#[doc(hidden)]
pub mod quantity;
mod reading;
#[doc(hidden)]
pub mod report;
#[doc(hidden)]
pub mod rules;
#[doc(hidden)]
pub mod space;
#[doc(hidden)]
pub mod timeline;
#[doc(hidden)]
pub mod transformer;
#[doc(hidden)]
pub mod verify;
#[doc(hidden)]
pub mod workload;

#[doc(hidden)]
pub use figures::{cluster, framework};

pub use export::{ExportError, Target, export};
pub use instance::{Instance, Overrides};
pub use layout::{Combination, Layout, Stage};
pub use plan::{Evaluated, Outcome, Plan, Proof};
pub use planner::{PlanError, PlanOptions, evaluate, plan as solve};
pub use report::document::{Document, SolutionDocument};
pub use report::{Answer, Colour, Style};
pub use verify::verify;
