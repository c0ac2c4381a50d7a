//! What changes would buy, for people and as CSV.

use tabled::builder::Builder;
use tabled::settings::Alignment;
use tabled::settings::object::Columns;

use super::layout_text::{brief, brief_difference, line};
use super::number::{duration, grouped, mfu_distance, percent};
use super::style::{Meaning, Style, bare, fit_column, render, wrap};
use super::table::{job_line, warnings, with_heading};
use crate::instance::Instance;
use crate::plan::Evaluated;
use crate::planner::Best;
use crate::price::{Offer, PriceList, tokens_per_second};

/// The prices as a table, the largest gain first.
#[must_use]
pub fn table(instance: &Instance, prices: &PriceList, style: &Style) -> String {
    let mut blocks = vec![
        [headline(instance, prices, style), job_line(instance)].join("\n"),
        with_heading(style, &offers(instance, prices)),
    ];
    blocks.extend(
        notes(instance, prices)
            .into_iter()
            .map(|note| wrap(&note, 2)),
    );
    blocks.extend(warnings(instance, style));
    let mut text = blocks.join("\n\n");
    text.push('\n');
    text
}

fn headline(instance: &Instance, prices: &PriceList, style: &Style) -> String {
    let name = &instance.name;
    let (meaning, text, today) = match &prices.today {
        Best::Infeasible => (
            Meaning::Bad,
            "infeasible today; what makes it feasible",
            None,
        ),
        Best::Unknown => (
            Meaning::Warning,
            "no layout was found within the limit",
            None,
        ),
        Best::Optimal(today) => (Meaning::Good, "what changes buy", Some(today)),
        Best::Feasible(today) => (
            Meaning::Warning,
            "what changes buy, not proven",
            Some(today),
        ),
    };
    let headline = style.paint(meaning, &wrap(&format!("{name}: {text}"), 2));
    let today = today.map(|today| wrap(&format!("today: {}", brief(&today.layout)), 2));
    let lines: Vec<String> = std::iter::once(headline).chain(today).collect();
    lines.join("\n")
}

/// Gains below this share are none.
const NO_GAIN: f64 = 5e-4;

/// Whether a change leaves speed and layout as they are.
fn changes_nothing(instance: &Instance, prices: &PriceList, offer: &Offer) -> bool {
    let both = prices.today.layout().zip(offer.best.layout());
    both.is_some_and(|(before, after)| {
        let today = tokens_per_second(before, instance.job.cluster.gpus);
        let gain = tokens_per_second(after, offer.gpus) / today - 1.0;
        gain.abs() < NO_GAIN && before.layout == after.layout
    })
}

fn offers(instance: &Instance, prices: &PriceList) -> String {
    let today = prices.today.layout();
    let header = ["change, then the layout", "MFU", "step", "tokens/s", "gain"];
    let mut rows = vec![header.map(str::to_owned)];
    if let Some(today) = today {
        let speed = tokens_per_second(today, instance.job.cluster.gpus);
        let [mfu, step, speed] = figures(today, speed);
        rows.push(["today".to_owned(), mfu, step, speed, String::new()]);
    }
    for offer in &prices.offers {
        if let Some(after) = offer.best.layout()
            && !changes_nothing(instance, prices, offer)
        {
            rows.push(row(instance, today, offer, after));
        }
    }
    fit_column(&mut rows, 0);
    // Without a layout today there is nothing to gain on.
    let columns = if today.is_some() { 5 } else { 4 };
    let rows = rows.into_iter().map(|row| row.into_iter().take(columns));
    let mut table = bare(rows.collect::<Builder>().build());
    table.modify(Columns::new(1..), Alignment::right());
    render(table)
}

fn figures(evaluated: &Evaluated, speed: f64) -> [String; 3] {
    let prediction = &evaluated.prediction;
    [
        prediction.mfu.to_string(),
        duration(prediction.step_time),
        grouped(speed.round() as u64),
    ]
}

fn row(
    instance: &Instance,
    today: Option<&Evaluated>,
    offer: &Offer,
    after: &Evaluated,
) -> [String; 5] {
    let speed = tokens_per_second(after, offer.gpus);
    let [mut mfu, step, tokens] = figures(after, speed);
    let Some(today) = today else {
        let change = format!("{}\n  {}", title(instance, offer), brief(&after.layout));
        return [change, mfu, step, tokens, String::new()];
    };
    let mut change = title(instance, offer);
    if after.layout != today.layout {
        change.push_str("\n  ");
        change.push_str(&brief_difference(&today.layout, &after.layout));
    }
    let (before, now) = (today.prediction.mfu, after.prediction.mfu);
    mfu = format!("{mfu} ({})", mfu_distance(before, now));
    let gain = speed / tokens_per_second(today, instance.job.cluster.gpus) - 1.0;
    [change, mfu, step, tokens, signed_percent(gain)]
}

/// The change, with the number of GPUs where that is another.
fn title(instance: &Instance, offer: &Offer) -> String {
    if offer.gpus == instance.job.cluster.gpus {
        offer.change.to_string()
    } else {
        format!("{} ({} GPUs)", offer.change, grouped(u64::from(offer.gpus)))
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

fn notes(instance: &Instance, prices: &PriceList) -> Vec<String> {
    let mut notes = Vec::new();
    let same: Vec<String> = prices
        .offers
        .iter()
        .filter(|offer| changes_nothing(instance, prices, offer))
        .map(|offer| offer.change.to_string())
        .collect();
    if !same.is_empty() {
        notes.push(format!("The same layout, no gain: {}.", same.join("; ")));
    }
    let without = |wanted: Best| -> Vec<String> {
        let offers = prices.offers.iter().filter(|offer| offer.best == wanted);
        offers.map(|offer| title(instance, offer)).collect()
    };
    let (none, unknown) = (without(Best::Infeasible), without(Best::Unknown));
    if !none.is_empty() {
        notes.push(format!("No layout exists with: {}.", none.join("; ")));
    }
    if !unknown.is_empty() {
        notes.push(format!(
            "Not settled within the limit: {}.",
            unknown.join("; ")
        ));
    }
    if !prices.idle.is_empty() {
        notes.push(format!("Nothing to change: {}.", idle(prices)));
    }
    let gains = if prices.today.layout().is_some() {
        " Gains are in tokens a second of the whole job; with another sequence length the tokens of a \
         step stay."
    } else {
        " With another sequence length the tokens of a step stay."
    };
    let each = "Each row is the best layout of the changed job, solved anew.";
    notes.push(format!("{each}{gains}"));
    notes
}

/// Changes that the job leaves no room for, by the reason.
fn idle(prices: &PriceList) -> String {
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for (change, reason) in &prices.idle {
        match reasons.iter_mut().find(|(known, _)| known == reason) {
            Some((_, changes)) => changes.push(change.to_string()),
            None => reasons.push((reason, vec![change.to_string()])),
        }
    }
    let groups = reasons
        .into_iter()
        .map(|(reason, changes)| format!("{} ({reason})", changes.join(", ")));
    groups.collect::<Vec<_>>().join("; ")
}

/// The prices as CSV, one row a change, today first.
#[must_use]
pub fn csv(instance: &Instance, prices: &PriceList) -> String {
    let mut rows = vec![
        "change,status,gpus,mfu,step_time_s,tokens_per_s,gain,oom_probability,layout".to_owned(),
    ];
    let today = prices.today.layout();
    let gpus = instance.job.cluster.gpus;
    let speed_today = today.map(|today| tokens_per_second(today, gpus));
    rows.push(csv_row("today", &prices.today, gpus, speed_today));
    for offer in &prices.offers {
        let name = offer.change.to_string();
        rows.push(csv_row(&name, &offer.best, offer.gpus, speed_today));
    }
    rows.join("\n") + "\n"
}

fn csv_row(change: &str, best: &Best, gpus: u32, speed_today: Option<f64>) -> String {
    let status = best.status();
    let Some(after) = best.layout() else {
        return format!("\"{change}\",{status},{gpus},,,,,,");
    };
    let prediction = &after.prediction;
    let speed = tokens_per_second(after, gpus);
    let gain = speed_today.map_or_else(String::new, |today| format!("{:.6}", speed / today - 1.0));
    format!(
        "\"{change}\",{status},{gpus},{:.6},{:.6},{:.1},{gain},{:.6},\"{}\"",
        prediction.mfu.value(),
        prediction.step_time.value(),
        speed,
        prediction.oom_probability,
        line(&after.layout),
    )
}
