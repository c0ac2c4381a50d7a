//! A scatter of predicted against measured values as SVG: axes by plotters, points that say what they
//! are when pointed at, legend beside them.

use maud::{Markup, PreEscaped, html};
use plotters::prelude::*;

use crate::laboratory::by_name;
use crate::report::plot::{Axis, INK, Scale, font, framed};

/// A point with the series that it belongs to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Point {
    /// Measured and predicted value.
    pub(crate) at: (f64, f64),
    /// Name of its series.
    pub(crate) series: String,
    /// What it is, shown when pointed at.
    pub(crate) label: String,
}

/// Side of the square plot with its axes.
const SIDE: u32 = 640;
/// Width of the legend.
const LEGEND: u32 = 260;
/// Height of an entry of the legend.
const ENTRY: i32 = 20;
/// Characters that fit in the legend beside the count.
const NAME: usize = 26;

/// Hues far apart from their neighbours, repeated with hollow marks.
const COLOURS: [&str; 10] = [
    "#1f77b4", "#d62728", "#2ca02c", "#ff7f0e", "#9467bd", "#17becf", "#8c564b", "#e377c2",
    "#7f7f7f", "#bcbd22",
];

/// The drawing of a quantity, which is named with its unit.
pub(crate) fn scatter(quantity: &str, points: &[Point]) -> Markup {
    let mut frame = String::new();
    let marks = draw_frame(&mut frame, quantity, points);
    let frame = frame.trim_end().trim_end_matches("</svg>");
    html! { (PreEscaped(frame)) (marks) (PreEscaped("</svg>\n")) }
}

/// Draws all but the points and the marks of the legend, which it returns.
fn draw_frame(svg: &mut String, quantity: &str, points: &[Point]) -> Markup {
    const WRITTEN: &str = "memory takes every write";
    let series = by_name(points, |point| point.series.as_str());
    let height = SIDE.max((series.len() as u32 + 2) * ENTRY as u32);
    let root = SVGBackend::with_string(svg, (SIDE + LEGEND, height)).into_drawing_area();
    let (square, _) = root.split_horizontally(SIDE);
    let (square, _) = square.split_vertically(SIDE);
    let show = |tick: f64| {
        let text = format!("{tick:.9}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    let axis = |what: &str| Axis::new(&format!("{what} {quantity}"), Scale::Linear, show);
    // One scale for both axes, so that the diagonal is where prediction equals measurement.
    let all = points.iter().flat_map(|it| [it.at.0, it.at.1]);
    let all: Vec<(f64, f64)> = all.chain([0.0]).map(|value| (value, value)).collect();
    let axes = (&axis("measured"), &axis("predicted"));
    let mut chart = framed(&square, axes, &all).expect(WRITTEN);
    let ends = chart.x_range();
    let diagonal = [(ends.start, ends.start), (ends.end, ends.end)];
    let diagonal = DashedLineSeries::new(diagonal, 6, 4, INK.stroke_width(1));
    chart.draw_series(diagonal).expect(WRITTEN);
    for (index, (name, members)) in series.iter().enumerate() {
        let mut short: String = name.chars().take(NAME).collect();
        if short.len() < name.len() {
            short.push('…');
        }
        let at = (SIDE as i32 + 24, ENTRY * (index as i32 + 1) - 7);
        let text = format!("{short} ({})", members.len());
        root.draw_text(&text, &font(13).color(&INK), at)
            .expect(WRITTEN);
    }
    root.present().expect(WRITTEN);
    // Small series are not to disappear under large ones.
    let mut drawn: Vec<(usize, &Vec<&Point>)> = series
        .iter()
        .map(|(_, members)| members)
        .enumerate()
        .collect();
    drawn.sort_by_key(|(_, members)| std::cmp::Reverse(members.len()));
    html! {
        @for (index, members) in drawn {
            @for point in members { (mark(chart.backend_coord(&point.at), index, &point.label)) }
        }
        @for (index, (name, _)) in series.iter().enumerate() {
            (mark((SIDE as i32 + 12, ENTRY * (index as i32 + 1)), index, name))
        }
    }
}

/// A point in the look of its series.
fn mark((x, y): (i32, i32), series: usize, label: &str) -> Markup {
    let colour = COLOURS[series % COLOURS.len()];
    let is_hollow = series / COLOURS.len() % 2 == 1;
    let fill = if is_hollow { "none" } else { colour };
    html! {
        circle cx=(x) cy=(y) r="3.5" fill=(fill) fill-opacity="0.55" stroke=(colour) {
            title { (label) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_the_drawing() {
        let point = Point {
            at: (1.0, 2.0),
            series: "<b>&\"".to_owned(),
            label: String::new(),
        };
        let svg = scatter("MFU", &[point]).into_string();
        assert!(svg.contains("&lt;b&gt;&amp;&quot;"));
        assert!(svg.contains("measured MFU") && svg.ends_with("</svg>\n"));
    }
}
