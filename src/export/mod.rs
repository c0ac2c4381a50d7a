//! Writes a layout as the options of a training framework: one module a framework.
//!
//! A framework that cannot run a layout gets an [`ExportError`] that says what would be right. What
//! changes the run but not its legality (a kernel that the framework lacks, say) becomes a comment.

pub mod megatron_lm;

use std::fmt;

use crate::catalog;
use crate::instance::Instance;
use crate::layout::Layout;
use crate::rules::{self, Software};

/// A framework that layouts can be written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Command-line flags of Megatron-LM (main branch of August 2026).
    MegatronLm,
}

/// Why a framework cannot run a layout.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{target}` cannot run this layout:\n- {}", reasons.join("\n- "))]
pub struct ExportError {
    /// The framework.
    pub target: Target,
    /// Every reason, with what would be right.
    pub reasons: Vec<String>,
}

impl Target {
    /// Every framework, in order of names.
    pub const ALL: &'static [Self] = &[Self::MegatronLm];

    /// The spelling in flags and output.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MegatronLm => "megatron-lm",
        }
    }

    /// The framework spelled `text`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|target| target.as_str() == text)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The options that make `target` run this layout, ready to be copied.
///
/// # Errors
///
/// If the framework has no way to run the layout.
pub fn export(target: Target, instance: &Instance, layout: &Layout) -> Result<String, ExportError> {
    match target {
        Target::MegatronLm => megatron_lm::megatron_lm(instance, layout),
    }
}

/// The instance on the framework that layouts are written for, as far as it says which layouts are
/// possible there.
///
/// # Errors
///
/// If the framework cannot run the layout; with every reason and what would be right.
fn instance_on(
    target: Target,
    software: &Software,
    instance: &Instance,
    layout: &Layout,
) -> Result<Instance, ExportError> {
    let mut there = instance.clone();
    if let Ok(framework) = catalog::framework(software.framework) {
        let own = &mut there.job.framework;
        (own.name, own.axes) = (framework.name, framework.axes);
    }
    let refused = rules::refusals(software, &there, layout);
    if refused.is_empty() {
        return Ok(there);
    }
    let reasons = refused.into_iter().map(|it| it.message).collect();
    Err(ExportError { target, reasons })
}

/// `text` as comment lines of at most 80 columns.
fn comment(text: &str) -> String {
    let mut lines = vec![String::from("#")];
    for word in text.split(' ') {
        let word: String = word.chars().filter(|c| !c.is_control()).collect();
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= 80 => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(format!("# {word}")),
        }
    }
    lines.push(String::new());
    lines.join("\n")
}
