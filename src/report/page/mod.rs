//! An answer as one page that needs nothing else: what to run, what it uses, and why.
//!
//! Bars and maps are HTML, so that they fill a phone as well as a screen and their text stays readable;
//! only the slices of the pipeline are SVG. There is no script.

mod degrees;
mod launch;
mod machine;
mod memory;
mod others;
mod pipeline;
mod prices;
mod summary;
mod time;
mod trust;
mod without;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::document::{LayoutDocument, PredictionDocument, PriceDocument, SolutionDocument};
use super::number::grouped;
use crate::cluster::Cluster;
use crate::explain::degrees::Degrees;
use crate::layout::Layout;
use crate::timeline::Timeline;

/// What the page shows.
#[derive(Debug, Clone)]
pub struct Page<'a> {
    /// The answer.
    pub answer: &'a SolutionDocument,
    /// The machine that it is for.
    pub cluster: &'a Cluster,
    /// One step of its pipeline, where it has a layout that can be laid out in time.
    pub timeline: Option<Timeline>,
    /// The best layout of each pair of degrees, where that was looked for.
    pub degrees: Option<Degrees>,
    /// What changes of the job would buy, where that was looked for.
    pub prices: Option<PriceDocument>,
    /// How to launch the layout, where some framework is known to run it.
    pub launch: Option<Launch>,
}

/// How to launch a layout.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The framework's name.
    pub framework: &'static str,
    /// The command that writes its settings.
    pub command: String,
    /// The settings, or why the framework cannot run the layout.
    pub settings: Result<String, String>,
}

/// The chosen layout with what the figures need of it.
struct Choice<'a> {
    page: &'a Page<'a>,
    layout: Layout,
    document: &'a LayoutDocument,
    prediction: &'a PredictionDocument,
}

impl Page<'_> {
    /// The page.
    #[must_use]
    pub fn html(&self) -> String {
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    // No icon is asked for.
                    link rel="icon" href="data:,";
                    title { (self.title()) " - parlayout" }
                    style { (PreEscaped(include_str!("page.css"))) }
                }
                body {
                    h1 { (self.title()) }
                    @match self.choice() {
                        Some(choice) => (choice.sections()),
                        None => (without::sections(self)),
                    }
                    footer {
                        "Written by parlayout from the saved answer of "
                        code { (self.answer.instance) } ". Every figure is a prediction of its cost model."
                    }
                }
            }
        };
        page.into_string()
    }

    fn title(&self) -> String {
        let job = &self.answer.job;
        let gpus = grouped(u64::from(job.gpus));
        let how = if self.answer.layout.is_some() {
            "How to train"
        } else {
            "Training"
        };
        format!("{how} {} on {gpus} {} GPUs", job.model, job.accelerator)
    }

    fn choice(&self) -> Option<Choice<'_>> {
        let (document, prediction) = self.answer.choice()?;
        Some(Choice {
            page: self,
            layout: document.layout(),
            document,
            prediction,
        })
    }
}

impl Choice<'_> {
    fn sections(&self) -> Markup {
        html! {
            (summary::sections(self))
            (launch::section(self.page))
            (memory::section(self))
            (time::section(self))
            (pipeline::section(self))
            (machine::section(self))
            (others::sections(self))
            (degrees::section(self))
            (prices::section(self.page))
            (trust::section(self))
        }
    }
}

/// A part of the page: what it shows, how to read it, and the figure.
fn section(title: &str, reading: &str, figure: &Markup) -> Markup {
    html! {
        section {
            h2 { (title) }
            p { (reading) }
            (figure)
        }
    }
}

/// One line of a chart: a name, a bar of parts, and the amount.
fn bar(name: &str, parts: &[Part], amount: &str, mark: Option<f64>) -> Markup {
    html! {
        div.bar {
            span.name { (name) }
            span.track {
                @for part in parts {
                    i class=(part.class) style=(format!("width:{:.2}%", part.share * 100.0)) title=(part.title) {}
                }
                @if let Some(mark) = mark { b style=(format!("left:{:.2}%", mark * 100.0)) {} }
            }
            span.amount { (amount) }
        }
    }
}

/// A part of a bar.
struct Part {
    class: String,
    /// Of the whole width.
    share: f64,
    title: String,
}

/// What colours stand for.
fn legend<'a>(entries: impl IntoIterator<Item = (String, &'a str)>) -> Markup {
    html! {
        p.legend {
            @for (class, text) in entries { span { i class=(class) {} (text) } " " }
        }
    }
}

/// A table that becomes a list of its rows where it has no room: the headings, and the cells of each row.
fn table(headings: &[&str], rows: &[Vec<String>]) -> Markup {
    html! {
        table.stack {
            thead { tr { @for heading in headings { th { (heading) } } } }
            tbody {
                @for row in rows {
                    tr { @for (heading, cell) in headings.iter().zip(row) { td data-label=(heading) { (cell) } } }
                }
            }
        }
    }
}

/// `3`, or `3-17` for several.
fn span(first: u64, last: u64) -> String {
    if first == last {
        return grouped(first);
    }
    format!("{}\u{2013}{}", grouped(first), grouped(last))
}

#[cfg(test)]
mod tests;
