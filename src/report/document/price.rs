//! What changes of a job would buy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Document, EvaluatedDocument, JobDocument, LayoutDocument, PredictionDocument, Trust, rounded,
    rounded_probability,
};
use crate::instance::Instance;
use crate::plan::Status;
use crate::planner::Best;
use crate::price::{Idle, Offer, PriceList, tokens_per_second};

/// What changes of a job would buy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PriceDocument {
    /// Name and version of this format.
    #[schemars(extend("const" = PriceDocument::FORMAT))]
    pub schema: String,
    /// Name of the instance: the file's stem, or what the job is.
    pub instance: String,
    /// The job as it is.
    pub job: JobDocument,
    /// The best layout of the job as it is.
    pub today: BestDocument,
    /// The changes that were solved, the largest gain first; those without a layout last.
    pub offers: Vec<OfferDocument>,
    /// Changes that do not apply to the job.
    pub idle: Vec<Idle>,
    /// How far to trust the predictions.
    pub trust: Trust,
    /// What the reader should know, though it is not an error.
    pub warnings: Vec<String>,
}

/// The best layout of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BestDocument {
    /// How the search ended.
    pub status: Status,
    /// GPUs of the job.
    pub gpus: u32,
    /// Training tokens per second over all GPUs; null where there is no layout.
    pub tokens_per_s: Option<f64>,
    /// The layout; null where there is none.
    pub layout: Option<LayoutDocument>,
    /// What the cost model says of it; null where there is no layout.
    pub prediction: Option<PredictionDocument>,
}

/// A change and the best layout with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OfferDocument {
    /// Which change.
    pub change: String,
    /// The change in words, with its amount.
    pub description: String,
    /// Relative gain in tokens per second; null without a layout on both sides.
    pub gain: Option<f64>,
    /// MFU less today's; null without a layout on both sides.
    pub mfu_distance: Option<f64>,
    /// The best layout of the changed job.
    #[serde(flatten)]
    pub best: BestDocument,
}

impl Document for PriceDocument {
    const FORMAT: &'static str = "parlayout/price/v1";
}

impl PriceDocument {
    /// The prices of an instance.
    #[must_use]
    pub fn new(instance: &Instance, prices: &PriceList) -> Self {
        let job = JobDocument::new(&instance.job);
        let today = BestDocument::new(&prices.today, job.gpus, job.global_batch);
        let offers = prices.offers.iter();
        Self {
            schema: Self::FORMAT.to_owned(),
            instance: instance.name.clone(),
            offers: offers
                .map(|offer| OfferDocument::new(&prices.today, job.gpus, offer))
                .collect(),
            idle: prices.idle.clone(),
            trust: Trust::new(&instance.job.cluster, &instance.job.framework),
            warnings: instance.warnings.clone(),
            job,
            today,
        }
    }
}

impl BestDocument {
    fn new(best: &Best, gpus: u32, global_batch: u64) -> Self {
        let layout = best.layout();
        let evaluated = layout.map(|layout| EvaluatedDocument::new(layout, global_batch));
        let (layout_document, prediction) = evaluated.map(|it| (it.layout, it.prediction)).unzip();
        Self {
            status: best.status(),
            gpus,
            tokens_per_s: layout.map(|layout| rounded(tokens_per_second(layout, gpus))),
            layout: layout_document,
            prediction,
        }
    }

    /// The layout with its prediction.
    #[must_use]
    pub fn choice(&self) -> Option<(&LayoutDocument, &PredictionDocument)> {
        self.layout.as_ref().zip(self.prediction.as_ref())
    }
}

impl OfferDocument {
    fn new(today: &Best, gpus: u32, offer: &Offer) -> Self {
        let both = today.layout().zip(offer.best.layout());
        let gain = both.map(|(before, after)| {
            let speed = tokens_per_second(after, offer.gpus);
            // A gain below the rounding of the programs is none.
            rounded_probability(speed / tokens_per_second(before, gpus) - 1.0)
        });
        let mfu_distance = both.map(|(before, after)| {
            let [before, after] = [before, after].map(|it| rounded(it.prediction.mfu.value()));
            rounded(after - before)
        });
        Self {
            change: offer.change.key().to_owned(),
            description: offer.change.to_string(),
            gain,
            mfu_distance,
            best: BestDocument::new(&offer.best, offer.gpus, offer.global_batch),
        }
    }
}
