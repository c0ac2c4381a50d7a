//! The findings of Hagemann et al. (arXiv 2311.05610), measured and predicted.
//!
//! They are looked for wherever a source has the runs that they speak of: a sweep of LLaMA 13B at
//! 2,048 tokens with and without the fused `RMSNorm`. Everything is computed from the runs and
//! their predictions. "Predicted" means: among the runs said to fit, by predicted utilisation.

use schemars::JsonSchema;
use serde::Serialize;

mod memory;
mod speed;
mod sweep;

use super::case::Case;
use sweep::{Shape, Sweep};

/// Whether the cost model says the same as the runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Reproduced {
    /// It does.
    Yes,
    /// It does not.
    No,
    /// The runs do not measure it; the cost model says what the paper says.
    #[serde(rename = "predicted only")]
    PredictedOnly,
}

impl Reproduced {
    /// The spelling in output.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::PredictedOnly => "predicted only",
        }
    }

    fn by(condition: bool) -> Self {
        if condition { Self::Yes } else { Self::No }
    }
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Finding {
    /// Its letter.
    pub letter: char,
    /// What the paper says.
    pub claim: &'static str,
    /// What the runs say; `None` where they cannot.
    pub measured: Option<String>,
    /// What the cost model says.
    pub predicted: String,
    /// Whether that agrees.
    pub reproduced: Reproduced,
}

/// LLaMA 13B.
const LLAMA_13B: Shape = Shape {
    layers: 40,
    hidden: 5120,
};
/// LLaMA 30B.
const LLAMA_30B: Shape = Shape {
    layers: 60,
    hidden: 6656,
};
/// LLaMA 65B.
const LLAMA_65B: Shape = Shape {
    layers: 80,
    hidden: 8192,
};

/// The findings on the sources among the cases that have the runs, by source.
#[must_use]
pub fn findings(cases: &[Case]) -> Vec<(String, Vec<Finding>)> {
    let sources = crate::laboratory::by_name(cases, |case| &case.run.source);
    let found = sources.iter().filter_map(|(source, cases)| {
        let sweeps = Sweep::all(cases);
        let subject = sweeps
            .iter()
            .any(|sweep| sweep.is(LLAMA_13B, 2048) && sweep.varies_rmsnorm_kernel());
        subject.then(|| ((*source).clone(), of_source(&sweeps)))
    });
    found.collect()
}

fn of_source(sweeps: &[Sweep]) -> Vec<Finding> {
    let all = [
        speed::best_13b(sweeps),
        speed::kernel_gain(sweeps),
        Some(memory::kernel_excludes_checkpointing(sweeps)),
        speed::no_checkpointing_is_best(sweeps),
        memory::thirty_billion_at_8k(sweeps),
        Some(speed::least_micro_batch(sweeps)),
        memory::sixty_five_billion(sweeps),
        speed::pipeline_beats_tensor(sweeps),
        speed::sequence_parallel_gain(sweeps),
        Some(speed::bubble_grows(sweeps)),
        memory::feed_forward_recompute(sweeps),
    ];
    all.into_iter().flatten().collect()
}
