//! The laboratory: measured runs, what they teach the cost model, and how right its predictions
//! have been. The product (instances, solving, explanations) knows nothing of it.

pub mod backtest;
pub mod calibrate;
pub mod logs;
pub mod report;
pub mod runs;
pub mod statistics;

/// The items that share a name, in order of first appearance.
pub(crate) fn by_name<'a, T, Name: PartialEq + Copy>(
    items: &'a [T],
    name: impl Fn(&'a T) -> Name,
) -> Vec<(Name, Vec<&'a T>)> {
    let mut found: Vec<(Name, Vec<&T>)> = Vec::new();
    for item in items {
        let name = name(item);
        // Runs of one group mostly stand together.
        match found.iter_mut().rfind(|(known, _)| *known == name) {
            Some((_, members)) => members.push(item),
            None => found.push((name, vec![item])),
        }
    }
    found
}
