//! What changes would buy, for people and as CSV.

use super::document::{BestDocument, LayoutDocument, OfferDocument, PriceDocument};
use super::layout_text::{brief, brief_difference, line};
use super::number::{counted, duration, grouped, mfu, percent, points};
use super::solution::{job_line, warnings};
use super::style::{Meaning, Style, wrap};
use super::table::Table;
use super::{Answer, csv_number, csv_of, joined};
use crate::axis::AxisSet;
use crate::plan::Status;

impl Answer for PriceDocument {
    /// The prices as a table, the largest gain first.
    fn text(&self, style: &Style) -> String {
        let (meaning, headline) = match self.today.status {
            Status::Infeasible => (Meaning::Bad, "infeasible today; what makes it feasible"),
            Status::Unknown => (Meaning::Warning, "no layout was found within the limit"),
            Status::Optimal => (Meaning::Good, "what changes buy"),
            Status::Feasible => (Meaning::Warning, "what changes buy, not proven"),
        };
        let headline = format!("{}: {headline}", self.instance);
        let mut head = vec![style.wrapped(meaning, &headline)];
        let today = self.today.layout.as_ref();
        head.extend(today.map(|it| {
            wrap(
                &format!("today: {}", brief(&it.layout(), AxisSet::EMPTY)),
                2,
            )
        }));
        head.push(wrap(&job_line(&self.job), 2));
        let mut blocks = vec![head.join("\n")];
        let offers = offers(self);
        if !offers.is_empty() {
            blocks.push(offers.text(style));
        }
        blocks.extend(notes(self).iter().map(|note| wrap(note, 2)));
        blocks.extend(warnings(&self.warnings, style));
        joined(&blocks)
    }
}

impl PriceDocument {
    /// The prices as CSV, one row a change, today first.
    #[must_use]
    pub fn csv(&self) -> String {
        let header = [
            "change",
            "status",
            "gpus",
            "mfu",
            "step_time_s",
            "tokens_per_s",
            "gain",
            "oom_probability",
            "layout",
        ];
        let row = |change: &str, best: &BestDocument, gain: Option<f64>| {
            let of = |field: fn(&super::document::PredictionDocument) -> f64| {
                csv_number(best.prediction.as_ref().map(field))
            };
            let layout = best.layout.as_ref();
            vec![
                change.to_owned(),
                best.status.to_string(),
                best.gpus.to_string(),
                of(|it| it.mfu),
                of(|it| it.step_time_s),
                csv_number(best.tokens_per_s),
                csv_number(gain),
                of(|it| it.oom_probability),
                layout.map_or_else(String::new, |it| line(&it.layout())),
            ]
        };
        let no_gain = self.today.layout.as_ref().map(|_| 0.0);
        let today = row("today", &self.today, no_gain);
        let offers = self.offers.iter();
        let offers = offers.map(|offer| row(&offer.description, &offer.best, offer.gain));
        csv_of(&header, std::iter::once(today).chain(offers))
    }
}

/// Gains below this share are none.
const NO_GAIN: f64 = 5e-4;

/// Whether a change leaves speed and layout as they are.
fn changes_nothing(prices: &PriceDocument, offer: &OfferDocument) -> bool {
    let no_gain = offer.gain.is_some_and(|gain| gain.abs() < NO_GAIN);
    let stages = |best: &BestDocument| best.layout.as_ref().map(LayoutDocument::layout);
    no_gain && stages(&prices.today) == stages(&offer.best)
}

fn offers(prices: &PriceDocument) -> Table {
    let today = prices.today.layout.as_ref().map(LayoutDocument::layout);
    let header = ["change, then the layout", "MFU", "step", "tokens/s", "gain"];
    // Without a layout today there is nothing to gain on.
    let shown = if today.is_some() { 5 } else { 4 };
    let mut table = Table::new(header.into_iter().take(shown)).right(1..).fit(0);
    let mut push = |change: String, best: &BestDocument, moved: Option<f64>, gain: String| {
        let Some((prediction, speed)) = best.prediction.as_ref().zip(best.tokens_per_s) else {
            return;
        };
        let mfu = mfu(prediction.mfu);
        let row = [
            change,
            moved.map_or_else(|| mfu.clone(), |it| format!("{mfu} ({})", points(it))),
            duration(prediction.step_time_s),
            grouped(speed.round() as u64),
            gain,
        ];
        table.push(row.into_iter().take(shown));
    };
    push("today".to_owned(), &prices.today, None, String::new());
    for offer in &prices.offers {
        let Some(layout) = offer.best.layout.as_ref().map(LayoutDocument::layout) else {
            continue;
        };
        if changes_nothing(prices, offer) {
            continue;
        }
        let mut change = title(prices, offer);
        let differs = match &today {
            None => Some(brief(&layout, AxisSet::EMPTY)),
            Some(today) => (layout != *today).then(|| brief_difference(today, &layout)),
        };
        change.extend(differs.map(|text| format!("\n  {text}")));
        let gain = offer.gain.map_or_else(String::new, signed_percent);
        push(change, &offer.best, offer.mfu_distance, gain);
    }
    table
}

/// The change, with the number of GPUs where that is another.
fn title(prices: &PriceDocument, offer: &OfferDocument) -> String {
    let gpus = offer.best.gpus;
    if gpus == prices.job.gpus {
        offer.description.clone()
    } else {
        format!("{} ({})", offer.description, counted(gpus, "GPU"))
    }
}

/// A relative change as a percentage with its sign.
fn signed_percent(share: f64) -> String {
    if share.abs() < NO_GAIN {
        "0 %".to_owned()
    } else if share < 0.0 {
        format!("-{}", percent(-share))
    } else {
        format!("+{}", percent(share))
    }
}

fn notes(prices: &PriceDocument) -> Vec<String> {
    let list = |wanted: &dyn Fn(&OfferDocument) -> bool| -> Option<String> {
        let offers = prices.offers.iter().filter(|offer| wanted(offer));
        let titles: Vec<String> = offers.map(|offer| title(prices, offer)).collect();
        (!titles.is_empty()).then(|| titles.join("; "))
    };
    let status = |status| list(&move |offer| offer.best.status == status);
    let same = list(&|offer| changes_nothing(prices, offer));
    let lists = [
        ("The same layout, no gain", same),
        ("No layout exists with", status(Status::Infeasible)),
        ("Not settled within the limit", status(Status::Unknown)),
        ("Nothing to change", idle(prices)),
    ];
    let mut notes: Vec<String> = lists
        .into_iter()
        .filter_map(|(what, changes)| Some(format!("{what}: {}.", changes?)))
        .collect();
    if prices
        .offers
        .iter()
        .any(|offer| offer.best.layout.is_some())
    {
        let gains = if prices.today.layout.is_some() {
            " Gains are in tokens per second of the whole job; with another sequence length the \
             tokens of a step stay."
        } else {
            " With another sequence length the tokens of a step stay."
        };
        let each = "Each row is the best layout of the changed job, solved anew.";
        notes.push(format!("{each}{gains}"));
    }
    notes
}

/// Changes that do not apply to the job, by the reason.
fn idle(prices: &PriceDocument) -> Option<String> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for idle in &prices.idle {
        match reasons.iter_mut().find(|(known, _)| *known == idle.reason) {
            Some((_, changes)) => changes.push(&idle.description),
            None => reasons.push((&idle.reason, vec![&idle.description])),
        }
    }
    let groups = reasons
        .iter()
        .map(|(reason, changes)| format!("{} ({reason})", changes.join(", ")));
    let groups: Vec<String> = groups.collect();
    (!groups.is_empty()).then(|| groups.join("; "))
}
