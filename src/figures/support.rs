//! The values of every axis that a framework has.

use crate::axis::Axis;
use crate::choice::choice;

choice!(
    /// How context-parallel ranks exchange keys and values.
    ContextExchange, "a kind of context parallelism" {
        /// Not at all.
        None = "none",
        /// From neighbour to neighbour around a ring (Liu et al., arXiv 2310.01889).
        Ring = "ring",
        /// All at once, before attention.
        AllGather = "all-gather",
        /// Heads for sequence, as `DeepSpeed` Ulysses does (Jacobs et al., arXiv 2309.14509).
        AllToAll = "all-to-all",
    }
);

/// The codes of the values that a framework has of one choice; `None`: any.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Supported(pub Option<Vec<u32>>);

impl Supported {
    /// Whether the value with this code is one of them.
    #[must_use]
    pub fn has(&self, code: u32) -> bool {
        let codes = self.0.as_ref();
        codes.is_none_or(|codes| codes.contains(&code))
    }
}

/// What a framework can run. By default anything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Support {
    axes: [Supported; Axis::COUNT],
    /// What its data-parallel ranks may split where there is a pipeline.
    pub sharding_with_pipeline: Supported,
    /// How its context-parallel ranks may exchange keys and values, as codes of
    /// [`ContextExchange`].
    pub context_exchange: Supported,
}

/// What a framework says values of: an axis, or one of the two choices besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aspect {
    /// The values of an axis.
    Axis(Axis),
    /// Those of `sharding` where there is a pipeline.
    ShardingWithPipeline,
    /// The kinds of context parallelism.
    ContextExchange,
}

impl Aspect {
    /// Every aspect.
    pub fn all() -> impl Iterator<Item = Self> + Clone {
        let besides = [Self::ShardingWithPipeline, Self::ContextExchange];
        Axis::ALL.into_iter().map(Self::Axis).chain(besides)
    }

    /// The key in `[framework.axes]`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Axis(axis) => axis.as_str(),
            Self::ShardingWithPipeline => "sharding_with_pipeline",
            Self::ContextExchange => "context_exchange",
        }
    }

    /// The spellings of its values; `None` where they are numbers.
    #[must_use]
    pub const fn names(self) -> Option<&'static [&'static str]> {
        match self {
            Self::Axis(axis) => axis.names(),
            Self::ShardingWithPipeline => Axis::Sharding.names(),
            Self::ContextExchange => Some(ContextExchange::NAMES),
        }
    }

    /// The code of the value written `text`.
    #[must_use]
    pub fn parse_value(self, text: &str) -> Option<u32> {
        match self {
            Self::Axis(axis) => axis.parse_value(text),
            Self::ShardingWithPipeline => Axis::Sharding.parse_value(text),
            Self::ContextExchange => ContextExchange::parse(text).map(|kind| kind as u32),
        }
    }

    /// How the value with this code is written.
    #[must_use]
    pub fn show(self, code: u32) -> String {
        match self {
            Self::Axis(axis) => axis.show(code),
            Self::ShardingWithPipeline => Axis::Sharding.show(code),
            Self::ContextExchange => ContextExchange::ALL[code as usize].to_string(),
        }
    }
}

impl Support {
    /// The values of one aspect.
    #[must_use]
    pub const fn of(&self, aspect: Aspect) -> &Supported {
        match aspect {
            Aspect::Axis(axis) => &self.axes[axis as usize],
            Aspect::ShardingWithPipeline => &self.sharding_with_pipeline,
            Aspect::ContextExchange => &self.context_exchange,
        }
    }

    /// The values of one aspect, to write them.
    pub const fn of_mut(&mut self, aspect: Aspect) -> &mut Supported {
        match aspect {
            Aspect::Axis(axis) => &mut self.axes[axis as usize],
            Aspect::ShardingWithPipeline => &mut self.sharding_with_pipeline,
            Aspect::ContextExchange => &mut self.context_exchange,
        }
    }

    /// Whether the framework has this value of an axis, with other values of the rest.
    #[must_use]
    pub fn has(&self, axis: Axis, code: u32) -> bool {
        self.of(Aspect::Axis(axis)).has(code)
    }

    /// The values of an aspect, for people.
    #[must_use]
    pub fn shown(&self, aspect: Aspect) -> String {
        let Some(codes) = &self.of(aspect).0 else {
            return "any".to_owned();
        };
        let shown: Vec<String> = codes.iter().map(|&code| aspect.show(code)).collect();
        crate::axis::any_of(&shown)
    }
}
