//! What changes would buy, in JSON.

use schemars::JsonSchema;
use serde::Serialize;

use super::job::{JobDocument, Trust};
use super::layout::LayoutDocument;
use super::prediction::PredictionDocument;
use super::{rounded, schema_of, write};
use crate::instance::Instance;
use crate::planner::Best;
use crate::price::{Offer, PriceList, tokens_per_second};

/// Name and version of the prices of changes.
pub const PRICE: &str = "parlayout/price/v1";

/// The prices as a document of the format [`PRICE`], on several lines.
#[must_use]
pub fn price(instance: &Instance, prices: &PriceList) -> String {
    write(&PriceDocument::new(instance, prices))
}

/// The JSON Schema of [`PRICE`], shipped as `docs/price.schema.json`.
#[must_use]
pub fn price_schema() -> String {
    schema_of::<PriceDocument>(PRICE)
}

/// What changes of a job would buy.
#[derive(Debug, Serialize, JsonSchema)]
struct PriceDocument {
    /// Name and version of this format.
    #[schemars(extend("const" = PRICE))]
    schema: &'static str,
    /// Name of the instance: the file's stem, or what the job is.
    instance: String,
    /// The job as it is.
    job: JobDocument,
    /// The best layout of the job as it is.
    today: BestDocument,
    /// The changes that were solved, the largest gain first; those without a layout last.
    offers: Vec<OfferDocument>,
    /// Changes that the job leaves no room for.
    idle: Vec<IdleDocument>,
    /// How far to trust the predictions.
    trust: Trust,
    /// What the reader should know, though it is not an error.
    warnings: Vec<String>,
}

/// The best layout of a job.
#[derive(Debug, Serialize, JsonSchema)]
struct BestDocument {
    /// `optimal`: the layout is proven best. `feasible`: the best known at a limit. `infeasible`:
    /// proven that there is none. `unknown`: none was known at a limit.
    #[schemars(extend("enum" = ["optimal", "feasible", "infeasible", "unknown"]))]
    status: &'static str,
    /// GPUs of the job.
    gpus: u32,
    /// Training tokens a second over all GPUs; null where there is no layout.
    tokens_per_s: Option<f64>,
    /// The layout; null where there is none.
    layout: Option<LayoutDocument>,
    /// What the cost model says of it; null where there is no layout.
    prediction: Option<PredictionDocument>,
}

/// A change and the best layout with it.
#[derive(Debug, Serialize, JsonSchema)]
struct OfferDocument {
    /// Which change.
    change: String,
    /// The change in words, with its amount.
    description: String,
    /// Relative gain in tokens a second; null without a layout on both sides.
    gain: Option<f64>,
    /// MFU less today's; null without a layout on both sides.
    mfu_distance: Option<f64>,
    /// The best layout of the changed job.
    #[serde(flatten)]
    best: BestDocument,
}

/// A change that the job leaves no room for.
#[derive(Debug, Serialize, JsonSchema)]
struct IdleDocument {
    /// Which change.
    change: String,
    /// The change in words.
    description: String,
    /// Why there is nothing to change.
    reason: &'static str,
}

impl PriceDocument {
    fn new(instance: &Instance, prices: &PriceList) -> Self {
        let job = &instance.job;
        let batch = job.workload.global_batch;
        Self {
            schema: PRICE,
            instance: instance.name.clone(),
            job: JobDocument::new(job),
            today: BestDocument::new(&prices.today, job.cluster.gpus, batch),
            offers: prices
                .offers
                .iter()
                .map(|offer| OfferDocument::new(instance, &prices.today, offer))
                .collect(),
            idle: prices
                .idle
                .iter()
                .map(|(change, reason)| IdleDocument {
                    change: change.key().to_owned(),
                    description: change.to_string(),
                    reason,
                })
                .collect(),
            trust: Trust::new(&job.cluster.calibration),
            warnings: instance.warnings.clone(),
        }
    }
}

impl BestDocument {
    fn new(best: &Best, gpus: u32, global_batch: u64) -> Self {
        let layout = best.layout();
        Self {
            status: best.status(),
            gpus,
            tokens_per_s: layout.map(|evaluated| rounded(tokens_per_second(evaluated, gpus))),
            layout: layout.map(|evaluated| LayoutDocument::new(&evaluated.layout, global_batch)),
            prediction: layout.map(|evaluated| PredictionDocument::new(&evaluated.prediction)),
        }
    }
}

impl OfferDocument {
    fn new(instance: &Instance, today: &Best, offer: &Offer) -> Self {
        let both = today.layout().zip(offer.best.layout());
        let gpus = instance.job.cluster.gpus;
        let gain = both.map(|(before, after)| {
            let speed = tokens_per_second(after, offer.gpus);
            // A gain below the rounding of the programs is none.
            let gain = speed / tokens_per_second(before, gpus) - 1.0;
            (gain * 1e6).round() / 1e6
        });
        let distance = both.map(|(before, after)| {
            let mfu =
                |evaluated: &crate::plan::Evaluated| rounded(evaluated.prediction.mfu.value());
            rounded(mfu(after) - mfu(before))
        });
        Self {
            change: offer.change.key().to_owned(),
            description: offer.change.to_string(),
            gain,
            mfu_distance: distance,
            best: BestDocument::new(&offer.best, offer.gpus, offer.global_batch),
        }
    }
}
