//! A training job: network, machine, framework and workload.

use crate::cluster::Cluster;
use crate::count::counted;
use crate::framework::Framework;
use crate::transformer::Transformer;
use crate::workload::Workload;

/// Everything that a layout is chosen for.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// The network.
    pub transformer: Transformer,
    /// The machine, with the number of GPUs.
    pub cluster: Cluster,
    /// The framework that will run it.
    pub framework: Framework,
    /// What one optimizer step has to do.
    pub workload: Workload,
}

impl Job {
    /// What it is, for instances that no file names.
    #[must_use]
    pub fn title(&self) -> String {
        let (network, cluster) = (&self.transformer, &self.cluster);
        let gpus = counted(cluster.gpus, "GPU");
        format!("{} on {gpus} of {}", network.name, cluster.name)
    }
}
