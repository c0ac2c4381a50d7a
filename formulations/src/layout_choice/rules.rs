//! Rules in integers: which item violates which, and by how much.

use super::{Data, Item, LayoutChoiceError, LeftSide, Rule, Sense};

/// A rule that an item violates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Violation {
    /// Index of the rule.
    pub rule: usize,
    /// Left side minus right side for this item: positive is too much, negative too little.
    pub excess: i64,
}

/// The rules that an item violates, in their order; empty when the item is permitted.
#[must_use]
pub fn violated_rules(data: &Data, item: usize) -> Vec<Violation> {
    (data.rules.iter().enumerate())
        .map(|(rule, definition)| Violation {
            rule,
            excess: excess(definition, item, &data.items[item]),
        })
        .filter(|violation| violation.excess != 0)
        .collect()
}

/// Left minus right side where the sense forbids the difference, else zero.
pub(super) fn excess(rule: &Rule, index: usize, item: &Item) -> i64 {
    let left = match &rule.left {
        LeftSide::OverItems(coefficients) => i128::from(coefficients[index]),
        LeftSide::OverAxes(terms) => (terms.iter())
            .filter(|term| item.choice[term.axis] == term.value)
            .map(|term| i128::from(term.coefficient))
            .sum(),
    };
    let difference = left - i128::from(rule.right);
    let holds = match rule.sense {
        Sense::AtMost => difference <= 0,
        Sense::Equal => difference == 0,
        Sense::AtLeast => difference >= 0,
    };
    if holds {
        return 0;
    }
    i64::try_from(difference).unwrap_or(if difference < 0 { i64::MIN } else { i64::MAX })
}

/// Every item has a value on every axis, every rule a coefficient for every item or a place for
/// every term.
pub(super) fn check(data: &Data) -> Result<(), LayoutChoiceError> {
    let exists = |axis: usize, value: usize| {
        data.axes
            .get(axis)
            .is_some_and(|axis| value < axis.values.len())
    };
    for (index, item) in data.items.iter().enumerate() {
        if item.choice.len() != data.axes.len() {
            return Err(wrong(
                format!("item {index}"),
                "not one value for each axis",
            ));
        }
        if !(item.choice.iter().enumerate()).all(|(axis, &value)| exists(axis, value)) {
            return Err(wrong(
                format!("item {index}"),
                "a value that its axis does not have",
            ));
        }
    }
    for rule in &data.rules {
        let fits = match &rule.left {
            LeftSide::OverItems(coefficients) => coefficients.len() == data.items.len(),
            LeftSide::OverAxes(terms) => terms.iter().all(|term| exists(term.axis, term.value)),
        };
        if !fits {
            return Err(wrong(
                rule.name.clone(),
                "not one coefficient for each item, or a term on no axis value",
            ));
        }
    }
    Ok(())
}

fn wrong(place: String, cause: &'static str) -> LayoutChoiceError {
    LayoutChoiceError::Data { place, cause }
}
