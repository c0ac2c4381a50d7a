//! Where labels go: beside their points, off each other and off the lines.

use super::{FAINT, MARGIN, MARK, Plot, RADIUS, SIZE, TEXT, escaped, line};

/// The label of a point.
#[derive(Debug, Clone)]
pub(in crate::report) struct Label {
    /// Position of the point.
    pub(in crate::report) point: usize,
    /// What it says.
    pub(in crate::report) text: String,
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
    fn meets(&self, other: &Self) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }

    fn around((x, y): (f64, f64), radius: f64) -> Self {
        Self {
            left: x - radius,
            top: y - radius,
            right: x + radius,
            bottom: y + radius,
        }
    }
}

/// A label in its place.
#[derive(Debug)]
pub(super) struct Placed {
    area: Rectangle,
    text: String,
    colour: &'static str,
    /// The end at which the text is held: that towards the point.
    anchor: Anchor,
    /// The line that leads to the point, where the label is far away.
    leader: Option<[(f64, f64); 2]>,
}

/// The end at which a text is held.
#[derive(Debug, Clone, Copy)]
enum Anchor {
    Start,
    Middle,
    End,
}

impl Placed {
    pub(super) fn draw(&self, svg: &mut String) {
        let area = &self.area;
        if let Some([(x1, y1), (x2, y2)]) = self.leader {
            let path = format!("M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}");
            line(
                svg,
                &format!("<path d=\"{path}\" stroke=\"{FAINT}\" stroke-width=\"0.7\"/>"),
            );
        }
        let (x, anchor) = match self.anchor {
            Anchor::Start => (area.left + 1.0, "start"),
            Anchor::Middle => (f64::midpoint(area.left, area.right), "middle"),
            Anchor::End => (area.right - 1.0, "end"),
        };
        line(
            svg,
            &format!(
                "<text x=\"{x:.1}\" y=\"{:.1}\" font-size=\"{FONT}\" text-anchor=\"{anchor}\" fill=\"{}\">{}</text>",
                area.bottom - 3.0,
                self.colour,
                escaped(&self.text)
            ),
        );
    }
}

/// Pixels of the letters of labels.
const FONT: f64 = 11.0;
/// Pixels of a letter, widely reckoned.
const LETTER: f64 = 6.1;
/// Pixels of the height of a label.
const HEIGHT: f64 = 14.0;
/// Distances from the point at which a place is sought.
const DISTANCES: [f64; 5] = [8.0, 16.0, 28.0, 44.0, 64.0];
/// From here on a line leads to the point.
const FAR: f64 = 20.0;

/// Right below, left above, and so on: a rising line leaves these corners free.
const WAYS: [(f64, f64); 8] = [
    (1.0, 1.0),
    (-1.0, -1.0),
    (1.0, 0.0),
    (-1.0, 0.0),
    (0.0, 1.0),
    (0.0, -1.0),
    (1.0, -1.0),
    (-1.0, 1.0),
];
/// Above a falling line.
const ABOVE: [(f64, f64); 2] = [(1.0, -1.0), (0.0, -1.0)];

/// Places the names of lines first, then labels in their order; one that finds no room is left out.
pub(super) fn place(plot: &Plot, corners: &[(f64, f64)]) -> Vec<Placed> {
    let mut taken = along(corners);
    let points = plot.points.iter().map(|&point| plot.place(point));
    taken.extend(points.map(|at| Rectangle::around(at, RADIUS + 1.0)));
    if let Some(([from, to], _)) = &plot.reference {
        taken.extend(along(&[plot.place(*from), plot.place(*to)]));
    }
    let mark = plot.mark.as_ref().map(|(value, text)| {
        let x = plot.place((*value, plot.y.from)).0;
        taken.extend(along(&[(x, MARGIN.2), (x, SIZE.1 - MARGIN.3)]));
        // At the foot of the line, or higher where that is taken.
        let feet = (0..12).map(move |row| (x, SIZE.1 - MARGIN.3 - 12.0 - f64::from(row) * 24.0));
        (text, MARK, feet.collect::<Vec<_>>(), &WAYS[..4])
    });
    let reference = plot.reference.as_ref().map(|([from, to], text)| {
        let (a, b) = (plot.place(*from), plot.place(*to));
        let along = [0.9, 0.75, 0.6, 0.45, 0.3, 0.15];
        let spots = along.map(|share| (a.0 + (b.0 - a.0) * share, a.1 + (b.1 - a.1) * share));
        (text, FAINT, spots.to_vec(), &ABOVE[..])
    });
    let mut placed: Vec<Placed> = Vec::new();
    for (text, colour, spots, ways) in mark.into_iter().chain(reference) {
        let found = spots.iter().find_map(|&at| {
            let placed = beside(text, colour, at, &taken, (&DISTANCES[..2], ways))?;
            Some(Placed {
                leader: None,
                ..placed
            })
        });
        if let Some(found) = found {
            taken.push(found.area);
            placed.push(found);
        }
    }
    for label in &plot.labels {
        let at = plot.place(plot.points[label.point]);
        if let Some(found) = beside(&label.text, TEXT, at, &taken, (&DISTANCES, &WAYS)) {
            taken.push(found.area);
            taken.extend(found.leader.iter().flat_map(|leader| along(leader)));
            placed.push(found);
        }
    }
    placed
}

/// Small squares along a line.
fn along(corners: &[(f64, f64)]) -> Vec<Rectangle> {
    let mut squares = Vec::new();
    for pair in corners.windows(2) {
        let ((x1, y1), (x2, y2)) = (pair[0], pair[1]);
        let count = ((x2 - x1).hypot(y2 - y1) / 3.0).ceil().max(1.0) as u32;
        squares.extend((0..=count).map(|index| {
            let share = f64::from(index) / f64::from(count);
            let at = (x1 + (x2 - x1) * share, y1 + (y2 - y1) * share);
            Rectangle::around(at, 1.5)
        }));
    }
    squares
}

/// A free place for a text near a point.
fn beside(
    text: &str,
    colour: &'static str,
    point: (f64, f64),
    taken: &[Rectangle],
    (distances, ways): (&[f64], &[(f64, f64)]),
) -> Option<Placed> {
    let width = text.chars().count() as f64 * LETTER + 2.0;
    for &distance in distances {
        for &way in ways {
            let (area, anchor) = area(point, way, distance, width);
            let leader = (distance > FAR).then(|| leader(point, &area));
            let free = |square: &Rectangle| !taken.iter().any(|other| other.meets(square));
            let clear = leader.iter().all(|leader| along(leader).iter().all(free));
            if is_inside(&area) && free(&area) && clear {
                return Some(Placed {
                    area,
                    text: text.to_owned(),
                    colour,
                    anchor,
                    leader,
                });
            }
        }
    }
    None
}

/// The area of a text so wide, so far from a point, to the right or left, below or above.
fn area(
    (x, y): (f64, f64),
    (right, down): (f64, f64),
    distance: f64,
    width: f64,
) -> (Rectangle, Anchor) {
    let (left, anchor) = if right > 0.0 {
        (x + distance, Anchor::Start)
    } else if right < 0.0 {
        (x - distance - width, Anchor::End)
    } else {
        (x - width / 2.0, Anchor::Middle)
    };
    let beyond = if matches!(anchor, Anchor::Middle) {
        HEIGHT / 2.0
    } else {
        0.0
    };
    let middle = y + down * (distance + beyond);
    let area = Rectangle {
        left,
        top: middle - HEIGHT / 2.0,
        right: left + width,
        bottom: middle + HEIGHT / 2.0,
    };
    (area, anchor)
}

/// From just outside a point to the nearest place of an area.
fn leader((x, y): (f64, f64), area: &Rectangle) -> [(f64, f64); 2] {
    let to = (
        x.clamp(area.left, area.right),
        y.clamp(area.top, area.bottom),
    );
    let length = (to.0 - x).hypot(to.1 - y).max(1.0);
    let start = (RADIUS + 4.0) / length;
    [(x + (to.0 - x) * start, y + (to.1 - y) * start), to]
}

/// Whether an area lies within the plot, or little beyond.
fn is_inside(area: &Rectangle) -> bool {
    area.left > MARGIN.0 + 2.0
        && area.right < SIZE.0 - 8.0
        && area.top > MARGIN.2 - 12.0
        && area.bottom < SIZE.1 - MARGIN.3 - 1.0
}

#[cfg(test)]
mod tests {
    use super::super::{Axis, Join};
    use super::*;

    #[test]
    fn labels_keep_apart() {
        let points: Vec<(f64, f64)> = (0..30)
            .map(|index| (f64::from(index) + 1.0, f64::from(index % 7) + 1.0))
            .collect();
        let of = |value: fn(&(f64, f64)) -> f64| points.iter().map(value).collect::<Vec<_>>();
        let plot = Plot {
            title: String::new(),
            subtitle: String::new(),
            x: Axis::linear("x", &of(|point| point.0), |tick| tick.to_string()),
            y: Axis::linear("y", &of(|point| point.1), |tick| tick.to_string()),
            labels: (0..points.len())
                .map(|point| Label {
                    point,
                    text: format!("point {point}"),
                })
                .collect(),
            points,
            join: Join::Straight,
            mark: Some((12.0, "a mark".to_owned())),
            reference: None,
        };
        let placed = place(&plot, &plot.corners());
        assert!(placed.len() > 5, "{placed:?}");
        for (index, one) in placed.iter().enumerate() {
            assert!(is_inside(&one.area), "{one:?}");
            for other in &placed[index + 1..] {
                assert!(!one.area.meets(&other.area), "{one:?} {other:?}");
            }
        }
    }
}
