//! A plot as SVG: axes with units, ticks, a line through points, labels that do not overlap.

mod labels;

use std::fmt::Write as _;

pub(super) use labels::Label;

/// A plot.
#[derive(Debug, Clone)]
pub(super) struct Plot {
    /// The line above.
    pub(super) title: String,
    /// A smaller line below the title.
    pub(super) subtitle: String,
    /// The horizontal axis.
    pub(super) x: Axis,
    /// The vertical axis.
    pub(super) y: Axis,
    /// The points, from left to right.
    pub(super) points: Vec<(f64, f64)>,
    /// How the points are joined.
    pub(super) join: Join,
    /// Labels of points, those that matter most first.
    pub(super) labels: Vec<Label>,
    /// A marked place on the horizontal axis and its name.
    pub(super) mark: Option<(f64, String)>,
    /// A dashed line from end to end and its name.
    pub(super) reference: Option<([(f64, f64); 2], String)>,
}

/// How points are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Join {
    /// By straight lines.
    Straight,
    /// The value of a point holds up to the next one.
    Steps,
}

/// An axis.
#[derive(Debug, Clone)]
pub(super) struct Axis {
    /// What it shows, with the unit.
    pub(super) title: String,
    /// How values are spaced.
    pub(super) scale: Scale,
    /// Value at the left or lower end.
    pub(super) from: f64,
    /// Value at the right or upper end.
    pub(super) to: f64,
    /// Values with what stands beside them.
    pub(super) ticks: Vec<(f64, String)>,
}

/// How values are spaced along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scale {
    /// Equal differences are equally long.
    Linear,
    /// Equal factors are equally long.
    Logarithmic,
}

impl Axis {
    /// A linear axis over the values, with round ticks; `show` writes a tick.
    pub(super) fn linear(title: &str, values: &[f64], show: impl Fn(f64) -> String) -> Self {
        let (least, most) = extent(values);
        let span = (most - least).max(most.abs() * 0.05).max(1e-9);
        let step = round_step(span / 5.0);
        let (from, to) = (
            ((least - span * 0.04) / step).floor() * step,
            ((most + span * 0.08) / step).ceil() * step,
        );
        let count = ((to - from) / step).round() as i32;
        let ticks = (0..=count).map(|index| from + f64::from(index) * step);
        Self {
            title: title.to_owned(),
            scale: Scale::Linear,
            from,
            to,
            ticks: ticks.map(|tick| (tick, show(tick))).collect(),
        }
    }

    /// A logarithmic axis over the values, with ticks at `marks` times the powers of `base`.
    pub(super) fn logarithmic(
        title: &str,
        values: &[f64],
        base: f64,
        marks: &[f64],
        show: impl Fn(f64) -> String,
    ) -> Self {
        let (least, most) = extent(values);
        let (from, to) = (least / 1.12, most * 1.12);
        let first = from.log(base).floor() as i32;
        let last = to.log(base).ceil() as i32;
        let all =
            (first..=last).flat_map(|power| marks.iter().map(move |mark| mark * base.powi(power)));
        let ticks = all.filter(|tick| (from..=to).contains(tick));
        Self {
            title: title.to_owned(),
            scale: Scale::Logarithmic,
            from,
            to,
            ticks: ticks.map(|tick| (tick, show(tick))).collect(),
        }
    }

    /// Where a value lies between the ends, from 0 to 1.
    fn share(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear => (value - self.from) / (self.to - self.from),
            Scale::Logarithmic => (value / self.from).ln() / (self.to / self.from).ln(),
        }
    }
}

/// The least and the largest value.
fn extent(values: &[f64]) -> (f64, f64) {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if least.is_finite() && most.is_finite() {
        (least, most)
    } else {
        (1.0, 2.0)
    }
}

/// The next of 1, 2 and 5 times a power of ten.
fn round_step(step: f64) -> f64 {
    let power = 10_f64.powf(step.log10().floor());
    let round = [1.0, 2.0, 5.0, 10.0].map(|mark| mark * power);
    round
        .into_iter()
        .find(|&mark| mark >= step * (1.0 - 1e-9))
        .unwrap_or(step)
}

/// Pixels of the whole picture.
const SIZE: (f64, f64) = (760.0, 470.0);
/// Pixels around the plotted area: left, right, above, below.
const MARGIN: (f64, f64, f64, f64) = (74.0, 24.0, 62.0, 58.0);

impl Plot {
    /// The place of a value in pixels.
    fn place(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let (left, right, top, bottom) = MARGIN;
        let width = SIZE.0 - left - right;
        let height = SIZE.1 - top - bottom;
        (
            left + self.x.share(x) * width,
            top + (1.0 - self.y.share(y)) * height,
        )
    }

    /// Corners of the line through the points, in pixels.
    fn corners(&self) -> Vec<(f64, f64)> {
        let mut corners: Vec<(f64, f64)> = Vec::new();
        for &point in &self.points {
            let at = self.place(point);
            if let (Join::Steps, Some(&(_, y))) = (self.join, corners.last()) {
                corners.push((at.0, y));
            }
            corners.push(at);
        }
        if let (Join::Steps, Some(&(_, y))) = (self.join, corners.last()) {
            corners.push((SIZE.0 - MARGIN.1, y));
        }
        corners
    }

    /// The picture.
    pub(super) fn svg(&self) -> String {
        let mut svg = String::new();
        let (width, height) = SIZE;
        line(
            &mut svg,
            &format!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
                 viewBox=\"0 0 {width} {height}\" font-family=\"Helvetica, Arial, sans-serif\" \
                 font-size=\"12\" fill=\"{TEXT}\">"
            ),
        );
        line(
            &mut svg,
            &format!("<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>"),
        );
        self.draw_titles(&mut svg);
        self.draw_axes(&mut svg);
        self.draw_reference(&mut svg);
        self.draw_points(&mut svg);
        line(&mut svg, "</svg>");
        svg
    }

    fn draw_titles(&self, svg: &mut String) {
        let left = MARGIN.0;
        let title = escaped(&self.title);
        line(
            svg,
            &format!(
                "<text x=\"{left}\" y=\"24\" font-size=\"15\" font-weight=\"bold\">{title}</text>"
            ),
        );
        let subtitle = escaped(&self.subtitle);
        line(
            svg,
            &format!("<text x=\"{left}\" y=\"42\" fill=\"{FAINT}\">{subtitle}</text>"),
        );
        let middle = f64::midpoint(left, SIZE.0 - MARGIN.1);
        let below = SIZE.1 - 14.0;
        let x = escaped(&self.x.title);
        line(
            svg,
            &format!("<text x=\"{middle:.1}\" y=\"{below:.1}\" text-anchor=\"middle\">{x}</text>"),
        );
        let middle = f64::midpoint(MARGIN.2, SIZE.1 - MARGIN.3);
        let y = escaped(&self.y.title);
        line(
            svg,
            &format!(
                "<text transform=\"translate(18 {middle:.1}) rotate(-90)\" text-anchor=\"middle\">{y}</text>"
            ),
        );
    }

    fn draw_axes(&self, svg: &mut String) {
        let (left, right) = (MARGIN.0, SIZE.0 - MARGIN.1);
        let (top, bottom) = (MARGIN.2, SIZE.1 - MARGIN.3);
        for (value, text) in &self.x.ticks {
            let x = self.place((*value, self.y.from)).0;
            grid_line(svg, (x, top), (x, bottom));
            line(
                svg,
                &format!(
                    "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                    bottom + 18.0,
                    escaped(text)
                ),
            );
        }
        for (value, text) in &self.y.ticks {
            let y = self.place((self.x.from, *value)).1;
            grid_line(svg, (left, y), (right, y));
            line(
                svg,
                &format!(
                    "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                    left - 8.0,
                    y + 4.0,
                    escaped(text)
                ),
            );
        }
        line(
            svg,
            &format!(
                "<path d=\"M{left:.1} {top:.1}V{bottom:.1}H{right:.1}\" fill=\"none\" stroke=\"{TEXT}\"/>"
            ),
        );
    }

    fn draw_reference(&self, svg: &mut String) {
        if let Some(([from, to], _)) = &self.reference {
            let ((x1, y1), (x2, y2)) = (self.place(*from), self.place(*to));
            dashed(svg, (x1, y1), (x2, y2), FAINT);
        }
        if let Some((value, _)) = &self.mark {
            let x = self.place((*value, self.y.from)).0;
            dashed(svg, (x, MARGIN.2), (x, SIZE.1 - MARGIN.3), MARK);
        }
    }

    fn draw_points(&self, svg: &mut String) {
        let corners = self.corners();
        let path: Vec<String> = corners
            .iter()
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        line(
            svg,
            &format!(
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{LINE}\" stroke-width=\"1.6\"/>",
                path.join(" ")
            ),
        );
        for &point in &self.points {
            let (x, y) = self.place(point);
            line(
                svg,
                &format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{RADIUS}\" fill=\"{LINE}\"/>"),
            );
        }
        for placed in labels::place(self, &corners) {
            placed.draw(svg);
        }
    }
}

/// Pixels of a point.
const RADIUS: f64 = 2.8;
const TEXT: &str = "#1f2933";
const FAINT: &str = "#616e7c";
const GRID: &str = "#e4e7eb";
const LINE: &str = "#1769aa";
const MARK: &str = "#b4531a";

fn grid_line(svg: &mut String, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
    line(
        svg,
        &format!("<path d=\"M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}\" stroke=\"{GRID}\"/>"),
    );
}

fn dashed(svg: &mut String, (x1, y1): (f64, f64), (x2, y2): (f64, f64), colour: &str) {
    line(
        svg,
        &format!(
            "<path d=\"M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}\" stroke=\"{colour}\" stroke-dasharray=\"5 4\"/>"
        ),
    );
}

fn line(svg: &mut String, text: &str) {
    // Writing to a string does not fail.
    let written = writeln!(svg, "{text}");
    debug_assert!(written.is_ok());
}

/// The text as XML has it; control characters are replaced.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c if c.is_control() => escaped.push('?'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_cover_the_values() {
        let axis = Axis::linear("MFU", &[0.512, 0.634], |tick| {
            format!("{:.0} %", tick * 100.0)
        });
        assert!(axis.from <= 0.512 && axis.to >= 0.634);
        assert!(
            axis.ticks.len() >= 4 && axis.ticks.len() <= 9,
            "{:?}",
            axis.ticks
        );
        let axis = Axis::logarithmic("GPUs", &[8.0, 256.0], 2.0, &[1.0], |tick| tick.to_string());
        let ticks: Vec<f64> = axis.ticks.iter().map(|tick| tick.0).collect();
        assert_eq!(ticks, [8.0, 16.0, 32.0, 64.0, 128.0, 256.0]);
        let one = Axis::linear("one", &[3.0], |tick| tick.to_string());
        assert!(one.from < 3.0 && one.to > 3.0);
    }

    #[test]
    fn text_is_escaped() {
        assert_eq!(escaped("a<b & \"c\"\n"), "a&lt;b &amp; &quot;c&quot;?");
    }
}
