//! Plots as SVG, drawn by plotters: axes with round ticks, a line through points, labels that do not
//! overlap.

use std::error::Error;
use std::ops::Range;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// A plot.
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
    pub(super) mark: (f64, String),
    /// A dashed line from end to end and its name.
    pub(super) reference: Option<([(f64, f64); 2], &'static str)>,
}

/// The label of a point.
pub(super) struct Label {
    /// Position of the point.
    pub(super) point: usize,
    /// What it says.
    pub(super) text: String,
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
pub(crate) struct Axis {
    /// What it shows, with the unit.
    title: String,
    scale: Scale,
    /// How a tick is written.
    show: fn(f64) -> String,
}

/// How values are spaced along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scale {
    /// Equal differences are equally long.
    Linear,
    /// Equal factors are equally long; ticks at 1, 2 and 5 times the powers of ten.
    Logarithmic,
    /// The same with ticks at powers of two, and at 1.5 times these where there are few.
    Doubling,
}

/// Ends and ticks of an axis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Extent {
    scale: Scale,
    from: f64,
    to: f64,
    ticks: Vec<f64>,
}

impl Ranged for Extent {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (first, last): (i32, i32)) -> i32 {
        let share = match self.scale {
            Scale::Linear => (value - self.from) / (self.to - self.from),
            Scale::Logarithmic | Scale::Doubling => {
                (value / self.from).ln() / (self.to / self.from).ln()
            }
        };
        first + (f64::from(last - first) * share).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.from..self.to
    }
}

/// Most ticks where more could be shown.
const MOST_TICKS: usize = 8;

impl Axis {
    pub(crate) fn new(title: &str, scale: Scale, show: fn(f64) -> String) -> Self {
        Self {
            title: title.to_owned(),
            scale,
            show,
        }
    }

    /// Ends around the values, with round ticks.
    fn extent(&self, values: impl Iterator<Item = f64>) -> Extent {
        let (least, most) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), it| {
            (least.min(it), most.max(it))
        });
        let (least, most) = if least <= most {
            (least, most)
        } else {
            (1.0, 10.0)
        };
        if self.scale == Scale::Linear {
            let span = (most - least).max(most.abs() * 0.05).max(1e-9);
            let step = round_step(span / 5.0);
            let first = ((least - span * 0.04) / step).floor() as i64;
            let last = ((most + span * 0.08) / step).ceil() as i64;
            let ticks: Vec<f64> = (first..=last).map(|tick| tick as f64 * step).collect();
            return Extent {
                scale: self.scale,
                from: first as f64 * step,
                to: last as f64 * step,
                ticks,
            };
        }
        let (from, to) = (least / 1.12, most * 1.12);
        let ticks = |base: f64, marks: &[f64]| -> Vec<f64> {
            let powers = from.log(base).floor() as i32..=to.log(base).ceil() as i32;
            let all = powers.flat_map(|it| marks.iter().map(move |mark| mark * base.powi(it)));
            all.filter(|tick| (from..=to).contains(tick)).collect()
        };
        let ticks = match self.scale {
            Scale::Doubling => {
                let with_halves = ticks(2.0, &[1.0, 1.5]);
                if with_halves.len() <= MOST_TICKS {
                    with_halves
                } else {
                    ticks(2.0, &[1.0])
                }
            }
            Scale::Linear | Scale::Logarithmic => ticks(10.0, &[1.0, 2.0, 5.0]),
        };
        Extent {
            scale: self.scale,
            from,
            to,
            ticks,
        }
    }
}

/// The next of 1, 2 and 5 times a power of ten.
fn round_step(step: f64) -> f64 {
    let power = 10_f64.powf(step.log10().floor());
    let round = [1.0, 2.0, 5.0, 10.0].map(|mark| mark * power);
    let mut round = round.into_iter();
    let enough = |&mark: &f64| mark >= step * (1.0 - 1e-9);
    round.find(enough).unwrap_or(step)
}

/// An area of the picture.
pub(crate) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
/// A chart with its axes.
pub(crate) type Chart<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<Extent, Extent>>;
type Drawn = Result<(), Box<dyn Error>>;

/// Draws the axes of a chart that holds all the points.
///
/// # Errors
///
/// When the backend fails, which writes to memory.
pub(crate) fn framed<'a>(
    area: &Area<'a>,
    (x, y): (&Axis, &Axis),
    points: &[(f64, f64)],
) -> Result<Chart<'a>, Box<dyn Error>> {
    let across = x.extent(points.iter().map(|point| point.0));
    let up = y.extent(points.iter().map(|point| point.1));
    let mut chart = ChartBuilder::on(area)
        .margin(10)
        .margin_right(24)
        .x_label_area_size(44)
        .y_label_area_size(60)
        .build_cartesian_2d(across, up)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(INK)
        .label_style(font(12).color(&INK))
        .x_desc(&x.title)
        .y_desc(&y.title)
        .x_label_formatter(&|&tick| (x.show)(tick))
        .y_label_formatter(&|&tick| (y.show)(tick))
        .draw()?;
    Ok(chart)
}

/// The font of every text.
pub(crate) fn font(size: u32) -> FontDesc<'static> {
    ("Helvetica, Arial, sans-serif", size).into_font()
}

const SIZE: (u32, u32) = (760, 470);
/// Height of the titles.
const HEAD: u32 = 48;
/// The colour of axes and texts.
pub(crate) const INK: RGBColor = RGBColor(31, 41, 51);
const FAINT: RGBColor = RGBColor(97, 110, 124);
const GRID: RGBColor = RGBColor(228, 231, 235);
const LINE: RGBColor = RGBColor(23, 105, 170);
const MARK: RGBColor = RGBColor(180, 83, 26);

impl Plot {
    /// The picture.
    pub(super) fn svg(&self) -> String {
        let mut svg = String::new();
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        self.draw(&root).expect("memory takes every write");
        drop(root);
        format!("{}\n", svg.trim())
    }

    fn draw(&self, root: &Area<'_>) -> Drawn {
        root.fill(&WHITE)?;
        let bold = font(15).style(FontStyle::Bold);
        root.draw_text(&self.title, &bold.color(&INK), (70, 12))?;
        root.draw_text(&self.subtitle, &font(12).color(&FAINT), (70, 32))?;
        let (_, body) = root.split_vertically(HEAD);
        let ends = self.reference.as_ref().map(|(ends, _)| *ends);
        let mut all = self.points.clone();
        all.extend(ends.into_iter().flatten());
        all.push((self.mark.0, all.first().map_or(1.0, |point| point.1)));
        let mut chart = framed(&body, (&self.x, &self.y), &all)?;
        let (across, up) = (chart.x_range(), chart.y_range());
        let corners = self.corners(across.end);
        let mark = [up.start, up.end].map(|y| (self.mark.0, y));
        let dashed = |line: [(f64, f64); 2], colour: RGBColor| {
            DashedLineSeries::new(line, 5, 4, colour.stroke_width(1))
        };
        chart.draw_series(dashed(mark, MARK))?;
        if let Some(ends) = ends {
            chart.draw_series(dashed(ends, FAINT))?;
        }
        let line = LineSeries::new(corners.iter().copied(), LINE.stroke_width(2));
        chart.draw_series(line)?;
        let dots = self.points.iter();
        chart.draw_series(dots.map(|&point| Circle::new(point, 3, LINE.filled())))?;
        let pixel = |at: (f64, f64)| {
            let (x, y) = chart.backend_coord(&at);
            (f64::from(x), f64::from(y))
        };
        let mut taken = Taken {
            bounds: [pixel((across.start, up.end)), pixel((across.end, up.start))],
            areas: Vec::new(),
        };
        for line in [
            Some(&corners[..]),
            Some(&mark[..]),
            ends.as_ref().map(|it| &it[..]),
        ] {
            let line = line.unwrap_or_default().iter();
            taken.add_line(&line.map(|&corner| pixel(corner)).collect::<Vec<_>>());
        }
        let mut texts = vec![(&self.mark.1[..], MARK, vec![pixel(mark[0])])];
        if let Some((ends, name)) = &self.reference {
            let [(x1, y1), (x2, y2)] = ends.map(pixel);
            let along = |share: f64| (x1 + (x2 - x1) * share, y1 + (y2 - y1) * share);
            texts.push((name, FAINT, [0.8, 0.6, 0.4, 0.2].map(along).to_vec()));
        }
        let labels = self.labels.iter();
        texts.extend(labels.map(|it| (&it.text[..], INK, vec![pixel(self.points[it.point])])));
        for (text, colour, spots) in texts {
            let mut spots = spots.into_iter();
            let found = spots.find_map(|at| Some((at, taken.beside(text, at)?)));
            if let Some((at, area)) = found {
                area.draw(root, text, colour, at)?;
            }
        }
        root.present()?;
        Ok(())
    }

    /// Corners of the line through the points.
    fn corners(&self, end: f64) -> Vec<(f64, f64)> {
        let mut corners: Vec<(f64, f64)> = Vec::new();
        for &at in &self.points {
            if let (Join::Steps, Some(&(_, y))) = (self.join, corners.last()) {
                corners.push((at.0, y));
            }
            corners.push(at);
        }
        if let (Join::Steps, Some(&(_, y))) = (self.join, corners.last()) {
            corners.push((end, y));
        }
        corners
    }
}

/// A rectangle in pixels.
#[derive(Debug, Clone, Copy)]
struct Rectangle {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

impl Rectangle {
    fn around((x, y): (f64, f64), width: f64, height: f64) -> Self {
        Self {
            left: x - width / 2.0,
            top: y - height / 2.0,
            right: x + width / 2.0,
            bottom: y + height / 2.0,
        }
    }

    fn meets(&self, other: &Self) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }

    /// Draws the text in its middle, and a line to the point where that is far away.
    fn draw(&self, root: &Area<'_>, text: &str, colour: RGBColor, at: (f64, f64)) -> Drawn {
        let near = (
            at.0.clamp(self.left, self.right),
            at.1.clamp(self.top, self.bottom),
        );
        let pixel = |(x, y): (f64, f64)| (x.round() as i32, y.round() as i32);
        if (near.0 - at.0).hypot(near.1 - at.1) > FAR {
            root.draw(&PathElement::new([pixel(at), pixel(near)], FAINT))?;
        }
        let middle = (
            f64::midpoint(self.left, self.right),
            f64::midpoint(self.top, self.bottom),
        );
        let style = font(12)
            .color(&colour)
            .pos(Pos::new(HPos::Center, VPos::Center));
        root.draw_text(text, &style, pixel(middle))?;
        Ok(())
    }
}

/// Pixels beyond which a line leads from a label to its point.
const FAR: f64 = 16.0;
/// Pixels of a letter and of a line.
const LETTER: (f64, f64) = (6.2, 14.0);

/// What labels keep off.
struct Taken {
    bounds: [(f64, f64); 2],
    areas: Vec<Rectangle>,
}

impl Taken {
    /// Small squares along a line.
    fn add_line(&mut self, corners: &[(f64, f64)]) {
        for pair in corners.windows(2) {
            let ((x1, y1), (x2, y2)) = (pair[0], pair[1]);
            let count = ((x2 - x1).hypot(y2 - y1) / 3.0).ceil().max(1.0) as u32;
            self.areas.extend((0..=count).map(|index| {
                let share = f64::from(index) / f64::from(count);
                let at = (x1 + (x2 - x1) * share, y1 + (y2 - y1) * share);
                Rectangle::around(at, 4.0, 4.0)
            }));
        }
    }

    /// The nearest free place for a text near a point; it is taken then.
    fn beside(&mut self, text: &str, (x, y): (f64, f64)) -> Option<Rectangle> {
        const DISTANCES: [f64; 5] = [7.0, 14.0, 28.0, 50.0, 80.0];
        const WAYS: [(f64, f64); 6] = [
            (1.0, 1.0),
            (1.0, -1.0),
            (-1.0, -1.0),
            (-1.0, 1.0),
            (1.0, 0.0),
            (0.0, -1.0),
        ];
        let (width, height) = (text.chars().count() as f64 * LETTER.0, LETTER.1);
        let places = DISTANCES.iter().flat_map(|distance| {
            WAYS.iter().map(move |(right, down)| {
                let at = (
                    x + right * (distance + width / 2.0),
                    y + down * (distance + height / 2.0),
                );
                Rectangle::around(at, width, height)
            })
        });
        let [(left, top), (right, bottom)] = self.bounds;
        let is_free = |area: &Rectangle| {
            let inside =
                area.left > left && area.right < right && area.top > top && area.bottom < bottom;
            inside && !self.areas.iter().any(|other| other.meets(area))
        };
        let found = places.into_iter().find(is_free)?;
        self.areas.push(found);
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_cover_the_values() {
        let show = |tick: f64| tick.to_string();
        let extent = |scale, values: &[f64]| {
            let axis = Axis::new("axis", scale, show);
            let extent = axis.extent(values.iter().copied());
            (extent.from, extent.to, extent.ticks.len())
        };
        let (from, to, ticks) = extent(Scale::Linear, &[0.512, 0.634]);
        assert!(from <= 0.512 && to >= 0.634 && (4..=9).contains(&ticks));
        assert_eq!(extent(Scale::Doubling, &[8.0, 256.0]).2, 6);
        assert_eq!(extent(Scale::Doubling, &[12.0, 64.0]).2, 6);
        let (from, to, _) = extent(Scale::Linear, &[3.0]);
        assert!(from < 3.0 && to > 3.0);
    }

    #[test]
    fn labels_keep_apart() {
        let mut taken = Taken {
            bounds: [(0.0, 0.0), (700.0, 400.0)],
            areas: Vec::new(),
        };
        let points = (0..30).map(|index| (f64::from(index) * 20.0, f64::from(index % 7) * 50.0));
        let placed: Vec<Rectangle> = points
            .filter_map(|point| taken.beside("a label", point))
            .collect();
        assert!(placed.len() > 5, "{placed:?}");
        for (index, one) in placed.iter().enumerate() {
            assert!(placed[index + 1..].iter().all(|other| !one.meets(other)));
        }
    }

    #[test]
    fn text_is_escaped() {
        let show = |tick: f64| tick.to_string();
        let plot = Plot {
            title: "a<b & \"c\"".to_owned(),
            subtitle: String::new(),
            x: Axis::new("x", Scale::Linear, show),
            y: Axis::new("y", Scale::Linear, show),
            points: vec![(1.0, 2.0)],
            join: Join::Straight,
            labels: Vec::new(),
            mark: (1.0, "here".to_owned()),
            reference: None,
        };
        assert!(plot.svg().contains("a&lt;b &amp; &quot;c&quot;"));
    }
}
