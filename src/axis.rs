//! The axes of the layout space: one place that knows every discrete choice.
//!
//! A value of an axis is a `u32` code: the number itself for degrees, the position in `ALL`
//! for named choices. Space, pins, forbidden combinations and the program's one-hot columns
//! all speak in (axis, code) pairs, so a new choice is a line here and a field of the combination.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::layout::{
    AttentionKernel, Checkpointing, Combination, RmsNormKernel, Schedule, SequenceParallel,
    Sharding,
};

/// A combination with the one checkpointing flag of `layout choice`.
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

/// Declares the axes: variant, key, field of a [`FlaggedCombination`], enum of a named choice.
macro_rules! axes {
    (@names) => { None };
    (@names $choice:ident) => { Some($choice::NAMES) };
    (@code $value:expr) => { $value };
    (@code $value:expr, $choice:ident) => { $value as u32 };
    (@value $code:expr) => { $code };
    (@value $code:expr, $choice:ident) => { $choice::ALL[$code as usize] };
    ($(
        $(#[$doc:meta])*
        $axis:ident, $key:literal, $($field:ident).+ $(: $choice:ident)?;
    )+) => {
        /// One discrete choice, in the order in which layouts are compared and printed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Axis {
            $($(#[$doc])* $axis,)+
        }

        impl Axis {
            /// Every axis.
            pub const ALL: [Self; Self::COUNT] = [$(Self::$axis),+];

            /// How many axes there are.
            pub const COUNT: usize = [$($key),+].len();

            /// The key in files, flags, JSON and the program's column names.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$axis => $key,)+
                }
            }

            /// The spellings of a named choice; `None` where the values are numbers.
            #[must_use]
            pub const fn names(self) -> Option<&'static [&'static str]> {
                match self {
                    $(Self::$axis => axes!(@names $($choice)?),)+
                }
            }
        }

        impl FlaggedCombination {
            /// The code of this combination's value on `axis`.
            #[must_use]
            pub const fn code(&self, axis: Axis) -> u32 {
                match axis {
                    $(Axis::$axis => axes!(@code self.$($field).+ $(, $choice)?),)+
                }
            }

            /// The combination with these codes, in the order of [`Axis::ALL`].
            ///
            /// # Panics
            ///
            /// If the code of a named choice is out of range; [`Axis::parse_value`] yields none such.
            #[must_use]
            pub fn from_codes(codes: &[u32; Axis::COUNT]) -> Self {
                let mut flagged = Self::FIRST;
                $(flagged.$($field).+ = axes!(@value codes[Axis::$axis as usize] $(, $choice)?);)+
                flagged
            }
        }
    };
}

axes! {
    /// Tensor-parallel degree.
    TensorParallel, "tensor_parallel", combination.tensor_parallel;
    /// Pipeline stages.
    PipelineParallel, "pipeline_parallel", combination.pipeline_parallel;
    /// Data-parallel replicas.
    DataParallel, "data_parallel", combination.data_parallel;
    /// Context-parallel degree.
    ContextParallel, "context_parallel", combination.context_parallel;
    /// Expert-parallel degree.
    ExpertParallel, "expert_parallel", combination.expert_parallel;
    /// Expert-tensor-parallel degree.
    ExpertTensorParallel, "expert_tensor_parallel", combination.expert_tensor_parallel;
    /// Model chunks per pipeline rank.
    VirtualStages, "virtual_stages", combination.virtual_stages;
    /// Sequences of a micro-batch.
    MicroBatch, "micro_batch", combination.micro_batch;
    /// Sequence parallelism.
    SequenceParallel, "sequence_parallel", combination.sequence_parallel: SequenceParallel;
    /// What data-parallel ranks split.
    Sharding, "sharding", combination.sharding: Sharding;
    /// Implementation of attention.
    AttentionKernel, "attention_kernel", combination.attention_kernel: AttentionKernel;
    /// Implementation of `RMSNorm`.
    RmsNormKernel, "rmsnorm_kernel", combination.rmsnorm_kernel: RmsNormKernel;
    /// What every layer recomputes, where one flag holds for all.
    Checkpointing, "checkpointing", checkpointing: Checkpointing;
    /// Order of passes in the pipeline.
    Schedule, "schedule", combination.schedule: Schedule;
}

impl Axis {
    /// The axis whose key, or the short name of it that everyone uses, is `text`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|axis| axis.as_str() == text || axis.short() == Some(text))
    }

    /// The usual abbreviation of a degree or of the micro-batch.
    #[must_use]
    pub const fn short(self) -> Option<&'static str> {
        match self {
            Self::TensorParallel => Some("tp"),
            Self::PipelineParallel => Some("pp"),
            Self::DataParallel => Some("dp"),
            Self::ContextParallel => Some("cp"),
            Self::ExpertParallel => Some("ep"),
            Self::ExpertTensorParallel => Some("etp"),
            Self::VirtualStages => Some("vp"),
            Self::MicroBatch => Some("mb"),
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
        any_of(&shown)
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

/// `a, b or c`.
#[must_use]
pub fn any_of(names: &[String]) -> String {
    match names {
        [] => "nothing".to_owned(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FlaggedCombination {
    /// Every degree 1, every named choice its first.
    pub const FIRST: Self = Self {
        combination: Combination {
            tensor_parallel: 1,
            pipeline_parallel: 1,
            data_parallel: 1,
            context_parallel: 1,
            expert_parallel: 1,
            expert_tensor_parallel: 1,
            virtual_stages: 1,
            micro_batch: 1,
            sequence_parallel: SequenceParallel::Off,
            sharding: Sharding::None,
            attention_kernel: AttentionKernel::Torch,
            rmsnorm_kernel: RmsNormKernel::Unfused,
            schedule: Schedule::OneForwardOneBackward,
        },
        checkpointing: Checkpointing::None,
    };

    /// The combination with no layer checkpointed: what is said of all axes but that.
    #[must_use]
    pub const fn plain(combination: Combination) -> Self {
        Self {
            combination,
            checkpointing: Checkpointing::None,
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
    /// Whether the combination has all these values.
    #[must_use]
    pub fn matches(&self, flagged: &FlaggedCombination) -> bool {
        self.0
            .iter()
            .all(|&(axis, code)| flagged.code(axis) == code)
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
