//! What an instance demands of a layout, piece by piece.

use std::fmt;

use crate::axis::Axis;
use crate::instance::Instance;
use crate::rules::{self, Rule};

/// One demand, which an explanation can drop to see whether it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Requirement {
    /// The value of an axis is one that the instance lists.
    Listed(Axis),
    /// A combination that the instance forbids, by its position.
    Forbidden(usize),
    /// A row of the user's own, by its position.
    Constraint(usize),
    /// Only such layers are checkpointed as the framework can.
    CheckpointRule,
    /// A rule. [`Rule::AllowedValues`], [`Rule::Forbidden`] and [`Rule::Constraint`] are told apart
    /// by the variants above.
    Rule(Rule),
}

/// First bit of [`Requirement::Forbidden`].
const FORBIDDEN: usize = Axis::COUNT;
/// First bit of [`Requirement::Constraint`].
const CONSTRAINT: usize = FORBIDDEN + 17;
/// Bit of [`Requirement::CheckpointRule`].
const CHECKPOINT_RULE: usize = RULES - 1;
/// First bit of [`Requirement::Rule`].
const RULES: usize = 64 - rules::ALL.len();

impl Requirement {
    /// Every requirement that is not of an instance alone.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..64).map(Self::from_bit)
    }

    /// The name for the user: a key, a rule, `forbidden(0)`, or a row as violations and the rows of
    /// the programs name it, `constraint(few_stages)`.
    #[must_use]
    pub fn name(self, instance: &Instance) -> String {
        let Self::Constraint(index) = self else {
            return self.to_string();
        };
        let rows = &instance.space.constraints;
        if index >= rows.len() {
            return self.to_string();
        }
        // The last position stands for the rows after it, too.
        match rows.len() - index {
            further if self.bit() == CHECKPOINT_RULE - 1 && further > 1 => {
                format!(
                    "{} and {} further rows",
                    Rule::Constraint.part_name(instance, index),
                    further - 1
                )
            }
            _ => Rule::Constraint.part_name(instance, index),
        }
    }

    /// Position in a set. Forbidden combinations and rows beyond those that have a bit share the
    /// last one of their kind.
    const fn bit(self) -> usize {
        match self {
            Self::Listed(axis) => axis as usize,
            Self::Forbidden(index) if index < CONSTRAINT - FORBIDDEN => FORBIDDEN + index,
            Self::Forbidden(_) => CONSTRAINT - 1,
            Self::Constraint(index) if index < CHECKPOINT_RULE - CONSTRAINT => CONSTRAINT + index,
            Self::Constraint(_) => CHECKPOINT_RULE - 1,
            Self::CheckpointRule => CHECKPOINT_RULE,
            Self::Rule(rule) => RULES + rule as usize,
        }
    }

    /// The requirement at a position of a set.
    fn from_bit(bit: usize) -> Self {
        match bit {
            bit if bit < FORBIDDEN => Self::Listed(Axis::ALL[bit]),
            bit if bit < CONSTRAINT => Self::Forbidden(bit - FORBIDDEN),
            bit if bit < CHECKPOINT_RULE => Self::Constraint(bit - CONSTRAINT),
            CHECKPOINT_RULE => Self::CheckpointRule,
            bit => Self::Rule(rules::ALL[bit - RULES]),
        }
    }
}

impl fmt::Display for Requirement {
    /// The key or the rule's name; what is of one instance by its position ([`Requirement::name`]
    /// has the name of a row).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listed(axis) => write!(f, "search.{axis}"),
            Self::Forbidden(index) => write!(f, "{}({index})", Rule::Forbidden),
            Self::Constraint(index) => write!(f, "{}({index})", Rule::Constraint),
            Self::CheckpointRule => f.pad("framework.checkpointing"),
            Self::Rule(rule) => f.pad(rule.as_str()),
        }
    }
}

/// A set of requirements, such as those that a candidate breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct RequirementSet(u64);

impl RequirementSet {
    /// No requirement.
    pub const EMPTY: Self = Self(0);

    /// The set with one bit a requirement.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// One bit a requirement.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The set with `requirement` added.
    #[must_use]
    pub const fn with(self, requirement: Requirement) -> Self {
        Self(self.0 | 1 << requirement.bit())
    }

    /// The set without `requirement`.
    #[must_use]
    pub const fn without(self, requirement: Requirement) -> Self {
        Self(self.0 & !(1 << requirement.bit()))
    }

    /// The set with `requirement` added if `broken`.
    #[must_use]
    pub const fn with_if(self, requirement: Requirement, broken: bool) -> Self {
        if broken { self.with(requirement) } else { self }
    }

    /// The requirements of either set.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether `requirement` is in the set.
    #[must_use]
    pub const fn contains(self, requirement: Requirement) -> bool {
        self.0 & 1 << requirement.bit() != 0
    }

    /// Whether every requirement of this set is in `other`.
    #[must_use]
    pub const fn is_part_of(self, other: Self) -> bool {
        self.0 & other.0 == self.0
    }

    /// Whether the set has no requirement.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many requirements there are.
    #[must_use]
    pub const fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// The requirements, in order: listed values, forbidden combinations, rows, framework, rules.
    pub fn iter(self) -> impl Iterator<Item = Requirement> {
        Requirement::all().filter(move |&requirement| self.contains(requirement))
    }
}

impl FromIterator<Requirement> for RequirementSet {
    fn from_iter<I: IntoIterator<Item = Requirement>>(requirements: I) -> Self {
        requirements.into_iter().fold(Self::EMPTY, Self::with)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_position_is_one_requirement() {
        let all: Vec<Requirement> = Requirement::all().collect();
        assert_eq!(all.len(), 64);
        for (position, requirement) in all.iter().enumerate() {
            assert_eq!(requirement.bit(), position, "{requirement}");
        }
        let set: RequirementSet = all.iter().copied().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), all);
    }

    #[test]
    fn many_of_a_kind_share_a_position() {
        let many = Requirement::Forbidden(1_000_000);
        assert_eq!(many.bit(), CONSTRAINT - 1);
        let rows = Requirement::Constraint(1_000_000);
        assert_eq!(rows.bit(), CHECKPOINT_RULE - 1);
        let set = RequirementSet::EMPTY.with(many);
        assert!(set.contains(many));
        assert_eq!(set.len(), 1);
        assert!(!set.contains(Requirement::CheckpointRule));
    }

    #[test]
    fn sets_compare_by_their_parts() {
        let tensor = Requirement::Listed(Axis::TensorParallel);
        let memory = Requirement::Rule(Rule::MemoryCapacity);
        let one = RequirementSet::EMPTY.with(memory);
        let both = one.with(tensor);
        assert!(one.is_part_of(both));
        assert!(!both.is_part_of(one));
        assert_eq!(both.without(memory), RequirementSet::EMPTY.with(tensor));
        let names: Vec<String> = both.iter().map(|it| it.to_string()).collect();
        assert_eq!(names, ["search.tensor_parallel", "memory_capacity"]);
    }
}
