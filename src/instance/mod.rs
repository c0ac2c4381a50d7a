//! Instances: what is read from a file or from flags, checked.

use crate::job::Job;
use crate::layout_space::LayoutSpace;

/// A checked problem: nothing after it needs to check again.
#[derive(Debug, Clone, PartialEq)]
pub struct Instance {
    /// Name for people: the file's stem, or what the job is.
    pub name: String,
    /// Network, machine, framework and workload.
    pub job: Job,
    /// The layouts that may be tried.
    pub space: LayoutSpace,
    /// Largest accepted probability that the layout runs out of memory (0 to 1, both excluded).
    pub max_oom_risk: f64,
    /// What the reader should know, though it is not an error.
    pub warnings: Vec<String>,
}
