//! A scatter of predicted against measured values as a drawing (SVG), legend beside the plot.

use std::fmt::Write as _;

use super::backtest::escaped;

/// A point with the series that it belongs to.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Measured value.
    pub measured: f64,
    /// Predicted value.
    pub predicted: f64,
    /// Position of its series.
    pub series: usize,
    /// What it is, shown when pointed at.
    pub label: String,
}

/// What to draw.
#[derive(Debug, Clone, PartialEq)]
pub struct Scatter {
    /// Name of the quantity with its unit.
    pub quantity: String,
    /// How both axes are divided.
    pub scale: Scale,
    /// Names of the series, in the order of the legend.
    pub series: Vec<String>,
    /// The points.
    pub points: Vec<Point>,
}

/// How an axis is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences are equally far apart.
    Linear,
    /// Equal ratios are equally far apart.
    Logarithmic,
}

/// Side of the square plot.
const SIDE: f64 = 560.0;
/// Room left of the plot, for the labels of its axis.
const LEFT: f64 = 70.0;
/// Room above the plot.
const TOP: f64 = 16.0;
/// Room below the plot.
const BOTTOM: f64 = 60.0;
/// Width of the legend.
const LEGEND: f64 = 250.0;
/// Height of an entry of the legend.
const ENTRY: f64 = 20.0;

/// Hues far apart from their neighbours (degrees), repeated with other marks.
const COLOURS: [&str; 10] = [
    "#1f77b4", "#d62728", "#2ca02c", "#ff7f0e", "#9467bd", "#17becf", "#8c564b", "#e377c2",
    "#7f7f7f", "#bcbd22",
];

impl Scatter {
    /// The drawing.
    #[must_use]
    pub fn svg(&self) -> String {
        let axis = Axis::new(self);
        let legend = TOP + self.series.len() as f64 * ENTRY + 2.0 * ENTRY;
        let height = (TOP + SIDE + BOTTOM).max(legend);
        let width = LEFT + SIDE + LEGEND + 20.0;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             width=\"{width}\" height=\"{height}\" role=\"img\" font-family=\"sans-serif\" \
             font-size=\"13\">\n<title>Predicted against measured {}</title>\n",
            escaped(&self.quantity)
        );
        frame(&mut svg, &axis, &self.quantity);
        for point in self.largest_series_first() {
            dot(&mut svg, &axis, point);
        }
        for (index, name) in self.series.iter().enumerate() {
            let count = self.points.iter().filter(|it| it.series == index).count();
            entry(&mut svg, index, name, count);
        }
        svg.push_str("</svg>\n");
        svg
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

/// One scale for both axes, so that the diagonal is where prediction equals measurement.
struct Axis {
    scale: Scale,
    low: f64,
    high: f64,
    ticks: Vec<f64>,
}

impl Axis {
    fn new(scatter: &Scatter) -> Self {
        let values = scatter
            .points
            .iter()
            .flat_map(|point| [point.measured, point.predicted])
            .filter(|value| value.is_finite() && *value > 0.0);
        let (least, most) = values.fold((f64::INFINITY, 0.0_f64), |(least, most), value| {
            (least.min(value), most.max(value))
        });
        let (least, most) = if least <= most {
            (least, most)
        } else {
            (1.0, 10.0)
        };
        match scatter.scale {
            Scale::Linear => {
                let step = step(most);
                let high = (most / step).ceil() * step;
                let count = (high / step).round() as u32;
                Self {
                    scale: Scale::Linear,
                    low: 0.0,
                    high,
                    ticks: (0..=count).map(|tick| f64::from(tick) * step).collect(),
                }
            }
            Scale::Logarithmic => {
                let (low, high) = (rounded_down(least), rounded_up(most));
                Self {
                    scale: Scale::Logarithmic,
                    low,
                    high,
                    ticks: decade_ticks(low, high),
                }
            }
        }
    }

    /// Share of the axis at which a value lies.
    fn place(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Logarithmic => {
                (value.max(self.low) / self.low).ln() / (self.high / self.low).ln()
            }
        }
    }

    fn x(&self, value: f64) -> f64 {
        LEFT + SIDE * self.place(value)
    }

    fn y(&self, value: f64) -> f64 {
        TOP + SIDE * (1.0 - self.place(value))
    }
}

/// A distance of ticks from 1, 2 and 5 times a power of ten that divides `most` into 4 to 10.
fn step(most: f64) -> f64 {
    let power = 10_f64.powf((most / 10.0).log10().floor());
    let fitting = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .find(|factor| most / (factor * power) <= 10.0);
    fitting.unwrap_or(10.0) * power
}

/// Ticks of a logarithmic axis within a decade.
const IN_DECADE: [f64; 3] = [1.0, 2.0, 5.0];

fn all_ticks() -> impl DoubleEndedIterator<Item = f64> {
    (-12..=12).flat_map(|power| IN_DECADE.map(|factor| factor * 10_f64.powi(power)))
}

fn rounded_down(value: f64) -> f64 {
    all_ticks().rfind(|&tick| tick <= value).unwrap_or(value)
}

fn rounded_up(value: f64) -> f64 {
    all_ticks().find(|&tick| tick >= value).unwrap_or(value)
}

fn decade_ticks(low: f64, high: f64) -> Vec<f64> {
    all_ticks()
        .filter(|tick| (low * 0.999..=high * 1.001).contains(tick))
        .collect()
}

/// Axes, ticks and the diagonal.
fn frame(svg: &mut String, axis: &Axis, quantity: &str) {
    let (right, bottom) = (LEFT + SIDE, TOP + SIDE);
    let mut put = |text: String| svg.push_str(&text);
    for &tick in &axis.ticks {
        let (x, y, name) = (axis.x(tick), axis.y(tick), tick_name(tick));
        put(format!(
            "<path d=\"M{x:.1} {TOP}V{bottom}M{LEFT} {y:.1}H{right}\" stroke=\"#e4e4e4\"/>\n\
             <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{name}</text>\n\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{name}</text>\n",
            bottom + 18.0,
            LEFT - 8.0,
            y + 4.0
        ));
    }
    put(format!(
        "<rect x=\"{LEFT}\" y=\"{TOP}\" width=\"{SIDE}\" height=\"{SIDE}\" fill=\"none\" \
         stroke=\"#555\"/>\n<path d=\"M{LEFT} {bottom}L{right} {TOP}\" stroke=\"#555\" \
         stroke-dasharray=\"6 4\"/>\n<text x=\"{:.1}\" y=\"{:.1}\" \
         text-anchor=\"middle\">measured {}</text>\n",
        LEFT + SIDE / 2.0,
        bottom + 44.0,
        escaped(quantity)
    ));
    let (x, y) = (18.0, TOP + SIDE / 2.0);
    put(format!(
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\" \
         transform=\"rotate(-90 {x:.1} {y:.1})\">predicted {}</text>\n",
        escaped(quantity)
    ));
}

fn tick_name(tick: f64) -> String {
    // Sums of a step that is no power of two: nine digits hide what they are off by.
    let text = format!("{tick:.9}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A colour and whether the mark is hollow, by series.
fn look(series: usize) -> (&'static str, bool) {
    (
        COLOURS[series % COLOURS.len()],
        series / COLOURS.len() % 2 == 1,
    )
}

fn mark(svg: &mut String, x: f64, y: f64, series: usize, title: Option<&str>) {
    let (colour, hollow) = look(series);
    let style = if hollow {
        format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.4\"")
    } else {
        format!("fill=\"{colour}\" fill-opacity=\"0.55\"")
    };
    let open = format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" {style}");
    svg.push_str(&open);
    match title {
        Some(title) => {
            svg.push_str("><title>");
            svg.push_str(&escaped(title));
            svg.push_str("</title></circle>\n");
        }
        None => svg.push_str("/>\n"),
    }
}

fn dot(svg: &mut String, axis: &Axis, point: &Point) {
    let (x, y) = (axis.x(point.measured), axis.y(point.predicted));
    mark(svg, x, y, point.series, Some(&point.label));
}

/// Characters that fit in the legend beside the count.
const NAME: usize = 26;

fn entry(svg: &mut String, series: usize, name: &str, count: usize) {
    let (x, y) = (LEFT + SIDE + 24.0, TOP + ENTRY * (series as f64 + 0.7));
    mark(svg, x, y - 4.0, series, None);
    let short: String = if name.chars().count() <= NAME {
        name.to_owned()
    } else {
        let cut: String = name.chars().take(NAME - 1).collect();
        format!("{cut}…")
    };
    // Writing to a string cannot fail.
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{y:.1}\">{} ({count})</text>",
        x + 12.0,
        escaped(&short)
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_hold_every_point() {
        let check = |scale: Scale, values: &[f64], low: f64, high: f64| {
            let points = values.iter().map(|&value| Point {
                measured: value,
                predicted: value,
                series: 0,
                label: String::new(),
            });
            let scatter = Scatter {
                quantity: "MFU".to_owned(),
                scale,
                series: vec!["one".to_owned()],
                points: points.collect(),
            };
            let axis = Axis::new(&scatter);
            assert!((axis.low - low).abs() < 1e-9, "{}", axis.low);
            assert!((axis.high - high).abs() < 1e-9, "{}", axis.high);
        };
        check(Scale::Linear, &[10.0, 72.0], 0.0, 80.0);
        check(Scale::Linear, &[0.003], 0.0, 0.003);
        check(Scale::Logarithmic, &[3.0, 72.0], 2.0, 100.0);
        check(Scale::Linear, &[], 0.0, 10.0);
    }

    #[test]
    fn ticks_are_plain_numbers() {
        assert_eq!(tick_name(0.1 + 0.2), "0.3");
        assert_eq!(tick_name(70.0), "70");
        assert_eq!(tick_name(0.0), "0");
    }

    #[test]
    fn names_cannot_break_the_drawing() {
        let scatter = Scatter {
            quantity: "MFU".to_owned(),
            scale: Scale::Linear,
            series: vec!["<b>&\"".to_owned()],
            points: vec![],
        };
        assert!(scatter.svg().contains("&lt;b&gt;&amp;&quot;"));
    }
}
