//! A backtest as one page that needs nothing else: the plot, then the tables.

use maud::{DOCTYPE, PreEscaped, html};

use super::{Answer, Width};
use crate::laboratory::backtest::Case;
use crate::laboratory::by_name;
use crate::laboratory::report::scatter::{Point, scatter};
use crate::report::layout_text::line;

const STYLE: &str = "\
body{font:15px/1.45 sans-serif;max-width:72em;margin:2em auto;padding:0 1em;color:#222}\
h1{font-size:1.5em}h2{font-size:1.1em;margin:2em 0 .4em}\
svg{max-width:100%;height:auto}\
table{border-collapse:collapse}\
th,td{padding:.25em .8em;border-bottom:1px solid #ddd;text-align:left;vertical-align:top}\
th{border-bottom:2px solid #888}\
.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}\
p{max-width:50em}";

/// The page.
#[must_use]
pub fn page(answer: &Answer) -> String {
    let parts = answer.parts(Width::Narrow);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width";
                title { "parlayout backtest" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { "Predicted against measured runs" }
                @for (index, (basis, sections)) in parts.iter().enumerate() {
                    p { (basis) }
                    @if let Some(report) = answer.reports.get(index) {
                        (scatter("MFU, %", &points(&report.cases)))
                    }
                    @for section in sections { (section.html()) }
                }
            }
        }
    };
    page.into_string()
}

/// Utilisation, predicted against measured: by source, or by group where there is one source.
fn points(cases: &[Case]) -> Vec<Point> {
    let several = by_name(cases, |case| &case.run.source).len() > 1;
    let points = cases.iter().filter_map(|case| {
        let measured = case.timed()?;
        let series = if several {
            &case.run.source
        } else {
            &case.group
        };
        Some(Point {
            at: (measured * 100.0, case.predicted_mfu() * 100.0),
            series: series.clone(),
            label: label(case, measured),
        })
    });
    points.collect()
}

fn label(case: &Case, measured: f64) -> String {
    format!(
        "{} run {}: {}\nmeasured {:.1} %, predicted {:.1} %",
        case.group,
        case.run.run,
        line(&case.modelled.layout),
        measured * 100.0,
        case.predicted_mfu() * 100.0
    )
}
