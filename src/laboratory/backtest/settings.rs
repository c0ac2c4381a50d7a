//! Runs that one calibration describes: one source, GPU and number format.

use crate::laboratory::calibrate::{Observation, Priors};
use crate::laboratory::runs::{RunSetups, Skip};

use super::case::Case;
use crate::choice::choice;
use crate::laboratory::by_name;

choice!(
    /// What is believed of cluster and framework before any run is seen.
    Belief {
        /// The catalog's figures, some of which were fitted to the very runs that the project ships.
        Shipped = "shipped",
        /// What was believed before the paper's runs were seen.
        BeforeFit = "before-fit",
        /// One profile for every framework, of which only documented structure differs, on the
        /// data-sheet cluster.
        Generic = "generic",
    }
);

/// Runs that one calibration describes.
#[derive(Debug)]
pub struct Setting<'a> {
    /// Source, with GPU and format where the source has several.
    pub name: String,
    /// Cluster and framework before any run is seen, and how far both may be off.
    pub priors: Priors,
    /// The runs.
    pub cases: Vec<&'a Case<'a>>,
    /// The same as a fit sees them.
    pub observations: Vec<Observation>,
}

/// The settings of the cases, in order of first appearance.
///
/// # Errors
///
/// If a run cannot be modelled with the cluster of `setups`.
pub fn settings<'a>(
    cases: &'a [Case<'a>],
    setups: &RunSetups,
    belief: Belief,
) -> Result<Vec<Setting<'a>>, Skip> {
    let parts = by_name(cases, |case| {
        let run = case.run;
        (run.source.as_str(), run.gpu.as_str(), precision(case))
    });
    let several = |source: &str| parts.iter().filter(|((it, _, _), _)| *it == source).count() > 1;
    parts
        .iter()
        .map(|((source, gpu, precision), members)| {
            let name = if several(source) {
                format!("{source} {gpu} {precision}")
            } else {
                (*source).to_owned()
            };
            setting(name, members, setups, belief)
        })
        .collect()
}

/// The number format; 16 bits where a source states none.
fn precision<'a>(case: &'a Case) -> &'a str {
    if case.run.precision.is_empty() {
        "bf16"
    } else {
        &case.run.precision
    }
}

fn setting<'a>(
    name: String,
    members: &[&'a Case<'a>],
    setups: &RunSetups,
    belief: Belief,
) -> Result<Setting<'a>, Skip> {
    let setup = setups.setup(members[0].run)?;
    let observations = members
        .iter()
        .map(|case| Observation::new(case.run, &setup))
        .collect::<Result<_, _>>()?;
    Ok(Setting {
        name,
        priors: match belief {
            Belief::Shipped => Priors::shipped(&setup),
            Belief::BeforeFit => Priors::before_fit(&setup),
            Belief::Generic => Priors::generic(&setup),
        },
        cases: members.to_vec(),
        observations,
    })
}
