//! Megatron-LM has the schedule 1F1B alone, interleaved or not.

use super::{Applies, Definition, MEGATRON_LM};
use crate::axis::Axis;
use crate::layout::Schedule;

pub(super) const RULE: Definition = Definition {
    name: "schedule_one_forward_one_backward",
    demands: "the schedule is 1f1b",
    axes: &[Axis::Schedule],
    amount: |case| u64::from(case.combination().schedule != Schedule::OneForwardOneBackward),
    message: |case| {
        format!(
            "`schedule = \"{}\"` does not exist there: use `1f1b`",
            case.combination().schedule
        )
    },
    applies: Applies::InExports,
    refused_by: &[MEGATRON_LM],
    source: "Megatron-LM, `pipeline_parallel/schedules.py`",
    ..Definition::USUAL
};
