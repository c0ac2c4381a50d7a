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
use crate::choice::choice;
use sweep::{Shape, Side, Sweep};

choice!(
    /// Whether the cost model says the same as the runs.
    Reproduced {
        /// It does.
        Yes = "yes",
        /// It does not.
        No = "no",
        /// The runs do not measure it; the cost model says what the paper says.
        PredictedOnly = "predicted only",
    }
);

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

/// Findings of the paper on one source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SourceFindings {
    /// Where the runs come from.
    pub source: String,
    /// The findings.
    pub findings: Vec<Finding>,
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
pub fn findings(cases: &[Case]) -> Vec<SourceFindings> {
    let sources = crate::laboratory::by_name(cases, |case| &case.run.source);
    let found = sources.iter().filter_map(|(source, cases)| {
        let sweeps = Sweep::all(cases);
        let subject = sweeps.iter().any(Sweep::is_subject);
        subject.then(|| SourceFindings {
            source: (*source).clone(),
            findings: of_source(&sweeps),
        })
    });
    found.collect()
}

/// One of the paper's findings, where the runs tell of it.
type Judge = fn(&[Sweep]) -> Option<Finding>;

fn of_source(sweeps: &[Sweep]) -> Vec<Finding> {
    let all: [Judge; 11] = [
        speed::best_13b,
        speed::kernel_gain,
        memory::kernel_excludes_checkpointing,
        speed::no_checkpointing_is_best,
        memory::thirty_billion_at_8k,
        speed::least_micro_batch,
        memory::sixty_five_billion,
        speed::pipeline_beats_tensor,
        speed::sequence_parallel_gain,
        |sweeps| Some(speed::bubble_grows(sweeps)),
        memory::feed_forward_recompute,
    ];
    all.iter().filter_map(|finding| finding(sweeps)).collect()
}

impl Finding {
    /// A finding that both sides tell of: what each says, in words, and whether they agree.
    fn compared<T>(
        letter: char,
        claim: &'static str,
        said: impl Fn(Side) -> Option<T>,
        text: impl Fn(Side, &T) -> String,
        agree: impl Fn(&T, &T) -> bool,
    ) -> Option<Self> {
        let (measured, predicted) = (said(Side::Measured)?, said(Side::Predicted)?);
        Some(Self {
            letter,
            claim,
            measured: Some(text(Side::Measured, &measured)),
            predicted: text(Side::Predicted, &predicted),
            reproduced: if agree(&measured, &predicted) {
                Reproduced::Yes
            } else {
                Reproduced::No
            },
        })
    }

    /// A finding that no run measures.
    fn predicted(letter: char, claim: &'static str, predicted: String, holds: bool) -> Self {
        Self {
            letter,
            claim,
            measured: None,
            predicted,
            reproduced: if holds {
                Reproduced::PredictedOnly
            } else {
                Reproduced::No
            },
        }
    }
}
