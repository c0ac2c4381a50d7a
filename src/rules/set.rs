//! Sets of rules.

use super::{ALL, Rule};

/// A set of rules, such as those that a combination breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct RuleSet(u32);

impl RuleSet {
    /// No rule.
    pub const EMPTY: Self = Self(0);

    /// Adds a rule.
    pub fn insert(&mut self, rule: Rule) {
        self.0 |= 1 << rule as u32;
    }

    /// The rules of either set.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The rules of this set that are not in `others`.
    #[must_use]
    pub const fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// Whether the set has no rule.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether `rule` is in the set.
    #[must_use]
    pub const fn contains(self, rule: Rule) -> bool {
        self.0 & (1 << rule as u32) != 0
    }

    /// The rules of the set, in order.
    pub fn iter(self) -> impl Iterator<Item = Rule> {
        ALL.iter().copied().filter(move |&rule| self.contains(rule))
    }
}

impl FromIterator<Rule> for RuleSet {
    fn from_iter<I: IntoIterator<Item = Rule>>(rules: I) -> Self {
        let mut set = Self::EMPTY;
        rules.into_iter().for_each(|rule| set.insert(rule));
        set
    }
}
