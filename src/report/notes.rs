//! The notes below an answer: the safer layout, the proof, and how far to trust the figures.

use super::document::{
    JobDocument, PredictionDocument, ProofDocument, ScarceDocument, SolutionDocument, Trust,
};
use super::layout_text::line;
use super::number::{grouped, mfu, percent, points, risk};
use crate::catalog::DEVIATIONS_OF_80_PERCENT;
use crate::cluster::CalibrationKind;
use crate::plan::{CutShort, Extent};
use crate::planner::NEGLIGIBLE_RISK;

/// Where the speeds come from, what range of MFU follows from their error, what was learned beyond
/// the formulas, and which arithmetic the stated MFU counts.
pub(super) fn trust_notes(
    job: &JobDocument,
    trust: &Trust,
    prediction: &PredictionDocument,
) -> Vec<String> {
    let origin = match trust.calibration {
        CalibrationKind::Measured => "calibrated cluster",
        CalibrationKind::DataSheet => "cluster not calibrated",
    };
    let band = trust.step_time_band;
    let mut notes = vec![format!(
        "Trust: {origin} ({}). On {}, 80 % of step times are within a factor of {:.2} of the prediction: \
         expect {} to {} MFU.",
        trust.source,
        trust.evidence.words(),
        band.exp(),
        mfu(prediction.mfu * (-band).exp()),
        mfu((prediction.mfu * band.exp()).min(prediction.mfu.max(1.0))),
    )];
    notes.extend(
        trust
            .widened_by
            .iter()
            .map(|ScarceDocument { mechanism, support }| {
                format!(
                    "That is wider for {}, which few runs support ({} runs of {}).",
                    mechanism.words(),
                    support.runs,
                    match support.sources {
                        1 => "one source".to_owned(),
                        sources => format!("{sources} sources"),
                    }
                )
            }),
    );
    notes.extend(trust.learned.as_ref().map(|learned| {
        format!(
            "Runs of similar layouts correct the step time by {:+.1} %; 80 % are within ±{:.1} % of \
             that (±{:.1} % where no run is similar).",
            learned.correction * 100.0,
            learned.deviation * DEVIATIONS_OF_80_PERCENT * 100.0,
            learned.deviation_elsewhere * DEVIATIONS_OF_80_PERCENT * 100.0,
        )
    }));
    notes.push(format!(
        "MFU counts {}, over the bf16 peak.",
        job.mfu_convention.formula()
    ));
    notes
}

/// The next safer layout with its cost, or why there is none.
pub(super) fn safer_note(answer: &SolutionDocument, prediction: &PredictionDocument) -> String {
    let proof = &answer.proof;
    let is_proven = proof.gap.is_some_and(|gap| gap <= 0.0)
        && proof.extent == Extent::Whole
        && !proof.cut_short.contains(&CutShort::Safer);
    match &answer.safer {
        Some(safer) => format!(
            "Safer: {}: risk {} instead of {}, MFU {} ({}).",
            line(&safer.evaluated.layout.layout()),
            risk(safer.evaluated.prediction.oom_probability),
            risk(prediction.oom_probability),
            match points(safer.mfu_distance).as_str() {
                "equal" => "as high".to_owned(),
                points => format!("{points} points"),
            },
            mfu(safer.evaluated.prediction.mfu),
        ),
        None if prediction.oom_probability < NEGLIGIBLE_RISK => format!(
            "Safer: not looked for below a risk of {}.",
            risk(NEGLIGIBLE_RISK)
        ),
        // A search for one that the time limit stopped leaves none as well.
        None if is_proven => "Safer: none, no layout has at most half the risk.".to_owned(),
        None => "Safer: none with at most half the risk was found in the time.".to_owned(),
    }
}

/// What was proven, and of how many combinations.
pub(super) fn proof_note(proof: &ProofDocument) -> String {
    let rules = proof.applied_before.len();
    let combinations = &proof.combinations;
    if combinations.all == 0 && proof.extent == Extent::Whole {
        return format!("Proof: no combination keeps the {rules} rules on discrete choices.");
    }
    let bound = match (proof.bound_mfu, proof.gap) {
        (Some(bound), Some(gap)) => format!(
            "no layout exceeds {} MFU, gap {}; ",
            mfu(bound),
            percent(gap)
        ),
        _ => String::new(),
    };
    let cut = match proof.extent {
        Extent::Whole => "",
        Extent::Cut => "the time was over before all combinations were listed; ",
    };
    let unreached = match combinations.all.saturating_sub(combinations.settled()) {
        0 => String::new(),
        unreached => format!("{} not reached, ", number_of(unreached, "was", "were")),
    };
    let cut_short = proof.cut_short.iter().map(|part| part.words());
    let cut_short = cut_short.collect::<Vec<_>>().join(", ");
    let cut_short = match proof.cut_short.len() {
        0 => String::new(),
        _ => format!(" Cut short by the time limit: {cut_short}."),
    };
    let before = match rules {
        0 => String::new(),
        _ => format!("; {rules} rules on discrete choices applied before that"),
    };
    format!(
        "Proof: {bound}{cut}of {}, {} a rule, {} excluded by a bound, \
         {unreached}{} in the program {} ({}){before}.{cut_short}",
        number_of(combinations.all, "combination", "combinations"),
        number_of(combinations.infeasible, "breaks", "break"),
        number_of(combinations.pruned, "is", "are"),
        number_of(combinations.solved, "is", "are"),
        proof.formulation.as_str(),
        proof.solver,
    )
}

/// A number and the word that agrees with it.
fn number_of(number: u64, one: &str, several: &str) -> String {
    format!(
        "{} {}",
        grouped(number),
        if number == 1 { one } else { several }
    )
}
