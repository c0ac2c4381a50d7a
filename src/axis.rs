//! The axes of the layout space: one place that knows every discrete choice.
//!
//! A value of an axis is a `u32` code: the number itself for degrees, the position in `ALL`
//! for named choices. Space, pins, forbidden combinations and the program's one-hot columns
//! all speak in (axis, code) pairs, so a new choice is added here alone.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::layout::{
    AttentionKernel, Checkpointing, Combination, RmsNormKernel, Schedule, SequenceParallel,
    Sharding,
};

/// A cell with the one checkpointing flag of `layout choice`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct FlaggedCombination {
    /// The choices that hold for the whole job.
    #[serde(flatten)]
    pub combination: Combination,
    /// What every layer recomputes.
    pub checkpointing: Checkpointing,
}

/// One discrete choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Axis {
    /// Tensor-parallel degree.
    TensorParallel,
    /// Pipeline stages.
    PipelineParallel,
    /// Data-parallel replicas.
    DataParallel,
    /// Context-parallel degree.
    ContextParallel,
    /// Expert-parallel degree.
    ExpertParallel,
    /// Model chunks a pipeline rank.
    VirtualStages,
    /// Sequences of a micro-batch.
    MicroBatch,
    /// Sequence parallelism.
    SequenceParallel,
    /// What data-parallel ranks split.
    Sharding,
    /// Implementation of attention.
    AttentionKernel,
    /// Implementation of `RMSNorm`.
    RmsNormKernel,
    /// What every layer recomputes (`layout choice` only).
    Checkpointing,
    /// Order of passes in the pipeline.
    Schedule,
}

impl Axis {
    /// How many axes there are.
    pub const COUNT: usize = 13;

    /// Every axis, in the order in which layouts are compared and printed.
    pub const ALL: [Self; Self::COUNT] = [
        Self::TensorParallel,
        Self::PipelineParallel,
        Self::DataParallel,
        Self::ContextParallel,
        Self::ExpertParallel,
        Self::VirtualStages,
        Self::MicroBatch,
        Self::SequenceParallel,
        Self::Sharding,
        Self::AttentionKernel,
        Self::RmsNormKernel,
        Self::Checkpointing,
        Self::Schedule,
    ];

    /// The key in files, flags, JSON and the program's column names.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TensorParallel => "tensor_parallel",
            Self::PipelineParallel => "pipeline_parallel",
            Self::DataParallel => "data_parallel",
            Self::ContextParallel => "context_parallel",
            Self::ExpertParallel => "expert_parallel",
            Self::VirtualStages => "virtual_stages",
            Self::MicroBatch => "micro_batch",
            Self::SequenceParallel => "sequence_parallel",
            Self::Sharding => "sharding",
            Self::AttentionKernel => "attention_kernel",
            Self::RmsNormKernel => "rmsnorm_kernel",
            Self::Checkpointing => "checkpointing",
            Self::Schedule => "schedule",
        }
    }

    /// The axis whose key is `text`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|axis| axis.as_str() == text)
    }

    /// The spellings of a named choice; `None` where the values are numbers.
    #[must_use]
    pub fn names(self) -> Option<Vec<&'static str>> {
        fn spell<T: Copy>(all: &[T], as_str: fn(T) -> &'static str) -> Vec<&'static str> {
            all.iter().map(|&value| as_str(value)).collect()
        }
        match self {
            Self::SequenceParallel => Some(spell(SequenceParallel::ALL, SequenceParallel::as_str)),
            Self::Sharding => Some(spell(Sharding::ALL, Sharding::as_str)),
            Self::AttentionKernel => Some(spell(AttentionKernel::ALL, AttentionKernel::as_str)),
            Self::RmsNormKernel => Some(spell(RmsNormKernel::ALL, RmsNormKernel::as_str)),
            Self::Checkpointing => Some(spell(Checkpointing::ALL, Checkpointing::as_str)),
            Self::Schedule => Some(spell(Schedule::ALL, Schedule::as_str)),
            _ => None,
        }
    }

    /// The code of the value written `text` (`8`, `zero-1`; `true` and `false` for the two
    /// switches).
    #[must_use]
    pub fn parse_value(self, text: &str) -> Option<u32> {
        let Some(names) = self.names() else {
            return text.parse().ok().filter(|&number| number >= 1);
        };
        if matches!(self, Self::SequenceParallel | Self::RmsNormKernel) {
            match text {
                "false" => return Some(0),
                "true" => return Some(1),
                _ => {}
            }
        }
        names
            .iter()
            .position(|&name| name == text)
            .map(|position| position as u32)
    }

    /// How several values are written: `1, 2 or 4`.
    #[must_use]
    pub fn any_of(self, codes: &[u32]) -> String {
        let shown: Vec<String> = codes.iter().map(|&code| self.show(code)).collect();
        match shown.as_slice() {
            [] => "nothing".to_owned(),
            [only] => only.clone(),
            [first @ .., last] => format!("{} or {last}", first.join(", ")),
        }
    }

    /// How the value with this code is written.
    #[must_use]
    pub fn show(self, code: u32) -> String {
        match self.names() {
            Some(names) => names
                .get(code as usize)
                .map_or_else(|| code.to_string(), ToString::to_string),
            None => code.to_string(),
        }
    }
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FlaggedCombination {
    /// The code of this candidate's value on `axis`.
    #[must_use]
    pub const fn code(&self, axis: Axis) -> u32 {
        let cell = &self.combination;
        match axis {
            Axis::TensorParallel => cell.tensor_parallel,
            Axis::PipelineParallel => cell.pipeline_parallel,
            Axis::DataParallel => cell.data_parallel,
            Axis::ContextParallel => cell.context_parallel,
            Axis::ExpertParallel => cell.expert_parallel,
            Axis::VirtualStages => cell.virtual_stages,
            Axis::MicroBatch => cell.micro_batch,
            Axis::SequenceParallel => cell.sequence_parallel as u32,
            Axis::Sharding => cell.sharding as u32,
            Axis::AttentionKernel => cell.attention_kernel as u32,
            Axis::RmsNormKernel => cell.rmsnorm_kernel as u32,
            Axis::Checkpointing => self.checkpointing as u32,
            Axis::Schedule => cell.schedule as u32,
        }
    }

    /// The candidate with these codes, in the order of [`Axis::ALL`].
    ///
    /// # Panics
    ///
    /// If the code of a named choice is out of range; [`Axis::parse_value`] yields none such.
    #[must_use]
    pub fn from_codes(codes: &[u32; Axis::COUNT]) -> Self {
        let at = |axis: Axis| codes[axis as usize];
        Self {
            combination: Combination {
                tensor_parallel: at(Axis::TensorParallel),
                pipeline_parallel: at(Axis::PipelineParallel),
                data_parallel: at(Axis::DataParallel),
                context_parallel: at(Axis::ContextParallel),
                expert_parallel: at(Axis::ExpertParallel),
                virtual_stages: at(Axis::VirtualStages),
                micro_batch: at(Axis::MicroBatch),
                sequence_parallel: SequenceParallel::ALL[at(Axis::SequenceParallel) as usize],
                sharding: Sharding::ALL[at(Axis::Sharding) as usize],
                attention_kernel: AttentionKernel::ALL[at(Axis::AttentionKernel) as usize],
                rmsnorm_kernel: RmsNormKernel::ALL[at(Axis::RmsNormKernel) as usize],
                schedule: Schedule::ALL[at(Axis::Schedule) as usize],
            },
            checkpointing: Checkpointing::ALL[at(Axis::Checkpointing) as usize],
        }
    }
}

/// A set of axes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AxisSet(u32);

impl AxisSet {
    /// No axis.
    pub const EMPTY: Self = Self(0);

    /// The set with `axis` added.
    #[must_use]
    pub const fn with(self, axis: Axis) -> Self {
        Self(self.0 | 1 << axis as u32)
    }

    /// Whether the set has no axis.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether `axis` is in the set.
    #[must_use]
    pub const fn contains(self, axis: Axis) -> bool {
        self.0 & (1 << axis as u32) != 0
    }

    /// The axes, in the order of [`Axis::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Axis> {
        let mut all = Axis::ALL.into_iter();
        std::iter::from_fn(move || all.find(|&axis| self.contains(axis)))
    }
}

/// Values of some axes: a pin, a forbidden combination, or what the user typed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Assignment(pub Vec<(Axis, u32)>);

impl Assignment {
    /// Whether the candidate has all these values.
    #[must_use]
    pub fn matches(&self, candidate: &FlaggedCombination) -> bool {
        self.0
            .iter()
            .all(|&(axis, code)| candidate.code(axis) == code)
    }

    /// The code assigned to `axis`, if any.
    #[must_use]
    pub fn get(&self, axis: Axis) -> Option<u32> {
        self.0
            .iter()
            .find(|(assigned, _)| *assigned == axis)
            .map(|&(_, code)| code)
    }
}

impl fmt::Display for Assignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, &(axis, code)) in self.0.iter().enumerate() {
            let comma = if position == 0 { "" } else { ", " };
            write!(f, "{comma}{axis} = {}", axis.show(code))?;
        }
        Ok(())
    }
}
