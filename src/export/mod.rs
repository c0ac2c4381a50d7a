//! Writes a layout as the options of a training framework: one module a framework.
//!
//! A framework that cannot run a layout gets an [`ExportError`] that says what would be right. What
//! changes the run but not its legality (a kernel that the framework lacks, say) becomes a comment.

pub mod megatron_lm;

use crate::catalog;
use crate::choice::choice;
use crate::instance::Instance;
use crate::layout::Layout;
use crate::rules::{self, Software};

choice!(
    /// A framework that layouts can be written for.
    Target {
        /// Command-line flags of Megatron-LM (main branch of August 2026).
        MegatronLm = "megatron-lm",
    }
);

impl Target {
    /// Whether it is what runs the layouts of a framework of the catalog, by its name.
    #[must_use]
    pub fn runs(self, framework: &str) -> bool {
        let own: &[&str] = match self {
            Self::MegatronLm => &["megatron-lm", "aleph-alpha-scaling", "unrestricted"],
        };
        own.iter().any(|name| framework.starts_with(name))
    }
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
