//! What changes of the job would buy.

use maud::{Markup, html};

use super::super::document::{LayoutDocument, OfferDocument};
use super::super::layout_text::{brief, brief_difference};
use super::super::number::{counted, percent};
use super::{Page, Part, bar};
use crate::axis::AxisSet;
use crate::plan::Status;

/// Changes whose gain in speed is below this share are named together.
const NO_GAIN: f64 = 5e-4;

pub(super) fn section(page: &Page) -> Markup {
    let Some(prices) = &page.prices else {
        return html! {};
    };
    let today = prices.today.layout.as_ref().map(LayoutDocument::layout);
    let (gains, none): (Vec<_>, Vec<_>) = prices.offers.iter().partition(|offer| {
        offer.best.layout.is_some() && offer.gain.is_none_or(|gain| gain.abs() >= NO_GAIN)
    });
    let largest = gains.iter().filter_map(|offer| offer.gain);
    let largest = largest.fold(0.0_f64, |most, gain| most.max(gain.abs()));
    let layout = |offer: &OfferDocument| {
        let layout = offer.best.layout.as_ref()?.layout();
        match &today {
            Some(today) if *today == layout => None,
            Some(today) => Some(brief_difference(today, &layout)),
            None => Some(brief(&layout, AxisSet::EMPTY)),
        }
    };
    let name = |offer: &OfferDocument| match offer.best.gpus {
        gpus if gpus == prices.job.gpus => offer.description.clone(),
        gpus => format!("{} ({})", offer.description, counted(gpus, "GPU")),
    };
    let figure = html! {
        @for offer in &gains {
            @match offer.gain {
                Some(gain) => (gained(&name(offer), gain, largest)),
                None => div { b { (name(offer)) } },
            }
            @if let Some(layout) = layout(offer) { p.small { "with " (layout) } }
        }
        @if !none.is_empty() { p.small { (without_gain(&none)) } }
    };
    let reading = match today {
        Some(_) => {
            "Each change was made to the job, and the job solved again. The bar is the gain in tokens per second over \
             all GPUs; below it stands what the best layout then does otherwise."
        }
        None => {
            "Each change was made to the job, and the job solved again. These make a layout possible; below each stands \
             the best one."
        }
    };
    super::section("What would help", reading, &figure)
}

/// A gain in speed, beside the largest.
fn gained(name: &str, gain: f64, largest: f64) -> Markup {
    let (class, sign) = if gain < 0.0 {
        ("c7", "\u{2212}")
    } else {
        ("c3", "+")
    };
    let part = Part {
        class: class.to_owned(),
        share: if largest > 0.0 {
            gain.abs() / largest
        } else {
            0.0
        },
        title: String::new(),
    };
    let amount = format!("{sign}{} tokens/s", percent(gain.abs()));
    bar(name, &[part], &amount, None)
}

/// The changes that buy nothing, and those that were not solved in time.
fn without_gain(offers: &[&OfferDocument]) -> String {
    let names = |is_listed: fn(&OfferDocument) -> bool| {
        let listed = offers.iter().filter(|it| is_listed(it));
        listed
            .map(|it| it.description.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    };
    let sentences = [
        ("No gain", names(|it| it.best.layout.is_some())),
        (
            "No layout",
            names(|it| it.best.status == Status::Infeasible),
        ),
        (
            "Not solved in time",
            names(|it| it.best.status == Status::Unknown),
        ),
    ];
    let sentences = sentences.into_iter().filter(|(_, names)| !names.is_empty());
    let sentences = sentences.map(|(what, names)| format!("{what}: {names}."));
    sentences.collect::<Vec<_>>().join(" ")
}
