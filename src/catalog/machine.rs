//! A cluster with the figures of the framework that it was fitted with.

use super::framework;
use super::sections::FrameworkSection;
use crate::cluster::Cluster;
use crate::framework::Framework;
use crate::reading::{InputError, Problems};

/// A cluster with the figures of the framework that it was fitted with.
#[derive(Debug, Clone)]
pub struct Machine {
    /// The cluster.
    pub cluster: Cluster,
    /// `[cluster.framework]`.
    pub(crate) fitted: Option<FrameworkSection>,
}

impl Machine {
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
    pub fn framework(&self, name: Option<&str>) -> Result<Framework, InputError> {
        let mut problems = Problems::default();
        let fitted = self.fitted.as_ref();
        let framework = framework::resolve(
            &FrameworkSection::default(),
            name,
            fitted,
            None,
            &mut problems,
        );
        problems.none_or(framework).map(|(framework, _)| framework)
    }
}
