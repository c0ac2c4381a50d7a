//! A scatter of predicted against measured values as SVG: axes by plotters, points that say what they
//! are when pointed at, legend beside them.

use maud::{Markup, PreEscaped, html};
use plotters::prelude::*;

use crate::report::plot::{Axis, INK, Scale, font, framed};

/// A point with the series that it belongs to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Point {
    /// Measured value.
    pub(crate) measured: f64,
    /// Predicted value.
    pub(crate) predicted: f64,
    /// Position of its series.
    pub(crate) series: usize,
    /// What it is, shown when pointed at.
    pub(crate) label: String,
}

/// What to draw.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scatter {
    /// Name of the quantity with its unit.
    pub(crate) quantity: String,
    /// Names of the series, in the order of the legend.
    pub(crate) series: Vec<String>,
    /// The points.
    pub(crate) points: Vec<Point>,
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

impl Scatter {
    /// The drawing.
    pub(crate) fn svg(&self) -> Markup {
        let mut frame = String::new();
        let marks = self.draw_frame(&mut frame);
        let frame = frame.trim_end().trim_end_matches("</svg>");
        html! { (PreEscaped(frame)) (marks) (PreEscaped("</svg>\n")) }
    }

    /// Draws all but the points and the marks of the legend, which it returns.
    fn draw_frame(&self, svg: &mut String) -> Markup {
        const WRITTEN: &str = "memory takes every write";
        let height = SIDE.max((self.series.len() as u32 + 2) * ENTRY as u32);
        let root = SVGBackend::with_string(svg, (SIDE + LEGEND, height)).into_drawing_area();
        let (square, _) = root.split_horizontally(SIDE);
        let (square, _) = square.split_vertically(SIDE);
        let show = |tick: f64| {
            let text = format!("{tick:.9}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        };
        let axis =
            |what: &str| Axis::new(&format!("{what} {}", self.quantity), Scale::Linear, show);
        let points = self.points.iter();
        // One scale for both axes, so that the diagonal is where prediction equals measurement.
        let all = points.flat_map(|it| [it.measured, it.predicted]);
        let all: Vec<(f64, f64)> = all.chain([0.0]).map(|value| (value, value)).collect();
        let axes = (&axis("measured"), &axis("predicted"));
        let mut chart = framed(&square, axes, &all).expect(WRITTEN);
        let ends = chart.x_range();
        let diagonal = [(ends.start, ends.start), (ends.end, ends.end)];
        let diagonal = DashedLineSeries::new(diagonal, 6, 4, INK.stroke_width(1));
        chart.draw_series(diagonal).expect(WRITTEN);
        let marks = html! {
            @for point in self.largest_series_first() {
                (mark(chart.backend_coord(&(point.measured, point.predicted)), point.series, &point.label))
            }
            @for index in 0..self.series.len() {
                (mark((SIDE as i32 + 12, ENTRY * (index as i32 + 1)), index, &self.series[index]))
            }
        };
        for (index, name) in self.series.iter().enumerate() {
            let count = self.points.iter().filter(|it| it.series == index).count();
            let mut short: String = name.chars().take(NAME).collect();
            if short.len() < name.len() {
                short.push('…');
            }
            let at = (SIDE as i32 + 24, ENTRY * (index as i32 + 1) - 7);
            let text = format!("{short} ({count})");
            root.draw_text(&text, &font(13).color(&INK), at)
                .expect(WRITTEN);
        }
        root.present().expect(WRITTEN);
        marks
    }

    /// The points in the order of drawing: small series are not to disappear under large ones.
    fn largest_series_first(&self) -> Vec<&Point> {
        let mut sizes = vec![0_usize; self.series.len()];
        for point in &self.points {
            sizes[point.series] += 1;
        }
        let mut points: Vec<&Point> = self.points.iter().collect();
        points.sort_by_key(|point| (std::cmp::Reverse(sizes[point.series]), point.series));
        points
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
        let scatter = Scatter {
            quantity: "MFU".to_owned(),
            series: vec!["<b>&\"".to_owned()],
            points: vec![],
        };
        let svg = scatter.svg().into_string();
        assert!(svg.contains("&lt;b&gt;&amp;&quot;"));
        assert!(svg.contains("measured MFU") && svg.ends_with("</svg>\n"));
    }
}
