//! Sets of what an instance requires: rules, and the parts of those that it states several times.

use super::{ALL, Rule, framework_supports};
use crate::axis::Axis;
use crate::instance::Instance;

/// A rule, or one of its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Requirement {
    /// The rule.
    pub rule: Rule,
    /// Which part of it: the position of an axis, of a forbidden combination, of a constraint; 0
    /// of a rule that is stated once.
    pub part: usize,
}

/// What is required, one bit each, such as what a combination breaks.
///
/// Parts beyond those that have a bit share the last one of their rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct RuleSet(u128);

/// First bit of what the framework has, after the axes whose values are listed.
const SUPPORTED: usize = Axis::COUNT;
/// First bit of the forbidden combinations.
const FORBIDDEN: usize = SUPPORTED + framework_supports::PARTS;
/// First bit of the constraints.
const CONSTRAINTS: usize = FORBIDDEN + 16;
/// First bit of the rules that are stated once.
const RULES: usize = CONSTRAINTS + 14;
/// Bits of a set.
const BITS: usize = RULES + ALL.len();

impl Requirement {
    /// The listed values of an axis.
    #[must_use]
    pub const fn listed(axis: Axis) -> Self {
        Self {
            rule: Rule::AllowedValues,
            part: axis as usize,
        }
    }

    /// The axis whose listed values this is.
    #[must_use]
    pub fn axis(self) -> Option<Axis> {
        (self.rule == Rule::AllowedValues).then(|| Axis::ALL[self.part])
    }

    /// What users call it: a key, a rule, `forbidden(0)`, `constraint(few_stages)`.
    #[must_use]
    pub fn name(self, instance: &Instance) -> String {
        let name = match self.axis() {
            Some(axis) => format!("search.{axis}"),
            None => self.rule.part_name(instance, self.part),
        };
        let further = self.rule.parts(instance).saturating_sub(self.part + 1);
        match self.rule {
            Rule::Constraint if further > 0 && self.bit() == RULES - 1 => {
                format!("{name} and {further} further rows")
            }
            _ => name,
        }
    }

    /// Position in a set.
    fn bit(self) -> usize {
        let within = |first: usize, end: usize| (first + self.part).min(end - 1);
        match self.rule {
            Rule::AllowedValues => self.part,
            Rule::FrameworkSupports => within(SUPPORTED, FORBIDDEN),
            Rule::Forbidden => within(FORBIDDEN, CONSTRAINTS),
            Rule::Constraint => within(CONSTRAINTS, RULES),
            rule => RULES + rule as usize,
        }
    }

    /// What stands at a position of a set.
    fn at(bit: usize) -> Self {
        let of = |rule: Rule, first: usize| Self {
            rule,
            part: bit - first,
        };
        match bit {
            _ if bit < SUPPORTED => of(Rule::AllowedValues, 0),
            _ if bit < FORBIDDEN => of(Rule::FrameworkSupports, SUPPORTED),
            _ if bit < CONSTRAINTS => of(Rule::Forbidden, FORBIDDEN),
            _ if bit < RULES => of(Rule::Constraint, CONSTRAINTS),
            _ => Self::from(ALL[bit - RULES]),
        }
    }
}

impl From<Rule> for Requirement {
    fn from(rule: Rule) -> Self {
        Self { rule, part: 0 }
    }
}

impl RuleSet {
    /// Nothing.
    pub const EMPTY: Self = Self(0);

    /// The set with one bit per requirement.
    #[must_use]
    pub const fn from_bits(bits: u128) -> Self {
        Self(bits)
    }

    /// One bit per requirement.
    #[must_use]
    pub const fn bits(self) -> u128 {
        self.0
    }

    /// The set with a requirement added.
    #[must_use]
    pub fn with(self, requirement: impl Into<Requirement>) -> Self {
        Self(self.0 | 1 << requirement.into().bit())
    }

    /// The set with a requirement added if it is broken.
    #[must_use]
    pub fn with_if(self, requirement: impl Into<Requirement>, broken: bool) -> Self {
        if broken { self.with(requirement) } else { self }
    }

    /// What is in either set.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// What is in this set but not in the other.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether there is nothing in the set.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How much is in the set.
    #[must_use]
    pub const fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// Whether a requirement is in the set.
    #[must_use]
    pub fn contains(self, requirement: impl Into<Requirement>) -> bool {
        self.0 & (1 << requirement.into().bit()) != 0
    }

    /// Whether all of this set is in the other.
    #[must_use]
    pub const fn is_part_of(self, other: Self) -> bool {
        self.0 & other.0 == self.0
    }

    /// What is in the set: listed values, forbidden combinations, constraints, other rules.
    pub fn iter(self) -> impl Iterator<Item = Requirement> {
        let bits = (0..BITS).filter(move |bit| self.0 & (1 << bit) != 0);
        bits.map(Requirement::at)
    }
}

impl FromIterator<Requirement> for RuleSet {
    fn from_iter<I: IntoIterator<Item = Requirement>>(requirements: I) -> Self {
        requirements.into_iter().fold(Self::EMPTY, Self::with)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_position_is_one_requirement() {
        let all = RuleSet::from_bits(u128::MAX);
        for (position, requirement) in all.iter().enumerate() {
            let is_single = position >= RULES;
            let bit = match requirement.rule {
                Rule::AllowedValues
                | Rule::FrameworkSupports
                | Rule::Forbidden
                | Rule::Constraint
                    if is_single =>
                {
                    continue;
                }
                _ => requirement.bit(),
            };
            assert_eq!(bit, position, "{requirement:?}");
        }
    }

    #[test]
    fn many_parts_share_a_position() {
        let many = |rule: Rule| {
            RuleSet::EMPTY.with(Requirement {
                rule,
                part: 1 << 20,
            })
        };
        assert!(many(Rule::Forbidden).without(many(Rule::Constraint)) == many(Rule::Forbidden));
        assert_eq!(many(Rule::Constraint).len(), 1);
        assert!(!many(Rule::Constraint).contains(Rule::GpuCount));
    }

    #[test]
    fn sets_compare_by_their_parts() {
        let memory = RuleSet::EMPTY.with(Rule::MemoryCapacity);
        let tensor = RuleSet::EMPTY.with(Requirement::listed(Axis::TensorParallel));
        let both = memory.union(tensor);
        assert!(memory.is_part_of(both) && !both.is_part_of(memory));
        assert_eq!(both.without(memory), tensor);
    }
}
