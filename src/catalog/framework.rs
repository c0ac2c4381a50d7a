//! `[framework]`: from preset and overrides to a [`Framework`].

use super::axes::AxesSection;
use super::sections::FrameworkSection;
use crate::cluster::Cluster;
use crate::framework::Framework;
use crate::reading::{Origin, Problems, Value as _};

/// The framework of an instance that names none.
const DEFAULT: &str = "megatron-lm";

/// The framework that the section describes. Where neither `name` nor the section names a preset, the
/// cluster's framework is meant, with the figures that were `fitted` on the cluster.
pub(crate) fn resolve(
    section: &FrameworkSection,
    name: Option<&str>,
    fitted: Option<&FrameworkSection>,
    origin: Option<&Origin>,
    problems: &mut Problems,
) -> Option<Framework> {
    let usual = fitted.and_then(|fitted| fitted.preset.value());
    let default = name.or(usual.map(String::as_str)).unwrap_or(DEFAULT);
    let preset = section.preset.or_default(default.to_owned())?;
    let base = match super::framework_section(&preset) {
        Ok(base) => base,
        Err(unknown) => {
            let at = section.preset.origin().or(origin);
            problems.add_anywhere(at, unknown.text(), unknown.hint());
            return None;
        }
    };
    let fitted = fitted.filter(|_| usual.is_none_or(|usual| *usual == preset));
    let merged = match fitted {
        Some(fitted) => section.clone().over(&fitted.clone().over(base)),
        None => section.clone().over(base),
    };
    complete(&merged, &preset)
}

/// The framework of a section that has every key; `None` if one is broken.
pub(super) fn complete(section: &FrameworkSection, name: &str) -> Option<Framework> {
    let (mut framework, mut none) = (Framework::default(), Cluster::default());
    section.rules.apply(&mut none, &mut framework)?;
    section.memory.value()?.apply(&mut none, &mut framework)?;
    section.speed.value()?.apply(&mut none, &mut framework)?;
    framework.axes = section.axes.or_default(AxesSection::default())?.support();
    framework.name = section.name.or_default(name.to_owned())?;
    framework.source = section.source.or_default(String::new())?;
    Some(framework)
}
