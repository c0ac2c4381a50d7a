//! A cluster with the figures of the framework that it was fitted with.

use super::error::{InstanceError, Problems};
use super::file::FrameworkSection;
use super::framework;
use super::reader::Value;
use crate::catalog;
use crate::cluster::Cluster;
use crate::framework::Framework;

/// A cluster with the figures of the framework that it was fitted with.
#[derive(Debug, Clone)]
pub struct Machine {
    /// The cluster.
    pub cluster: Cluster,
    /// `[cluster.framework]`.
    fitted: Option<FrameworkSection>,
}

impl Machine {
    pub(super) const fn new(cluster: Cluster, fitted: Option<FrameworkSection>) -> Self {
        Self { cluster, fitted }
    }

    /// The framework that the cluster was fitted with, where it names one.
    #[must_use]
    pub fn framework_name(&self) -> Option<&str> {
        let preset = self.fitted.as_ref()?.preset.value()?;
        Some(preset)
    }

    /// A framework on this cluster: its catalog figures, in the place of which those stand that
    /// were fitted here. Without a name it is the one that the cluster was fitted with.
    ///
    /// # Errors
    ///
    /// If the catalog has no such framework, or fitted figures break rules.
    pub fn framework(&self, name: Option<&str>) -> Result<Framework, InstanceError> {
        let own = self.framework_name();
        let name = name.or(own).unwrap_or(framework::DEFAULT);
        let mut problems = Problems::default();
        let base = match catalog::framework_section(name) {
            Ok(base) => base.clone(),
            Err(unknown) => {
                problems.add_anywhere(None, unknown.text(), unknown.hint());
                return Err(InstanceError::Broken(problems));
            }
        };
        let fitted = self.fitted.clone();
        let section = match fitted.filter(|_| own.is_none_or(|own| own == name)) {
            Some(fitted) => fitted.over(&base),
            None => base,
        };
        let framework = framework::complete(&section, name, None, &mut problems);
        problems.none_or(framework).map(|(framework, _)| framework)
    }
}
