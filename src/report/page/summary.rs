//! What to run, in a line, in figures and choice by choice.

use maud::{Markup, html};

use super::super::layout_text::{axis_label, checkpointing, layers, line};
use super::super::number::{count, duration, gib, grouped, mfu, percent, risk};
use super::{Choice, section, table};
use crate::axis::{Axis, FlaggedCombination};
use crate::layout::Sharding;
use crate::plan::Status;

pub(super) fn sections(choice: &Choice) -> Markup {
    let (answer, prediction) = (choice.page.answer, choice.prediction);
    let job = &answer.job;
    let memory = &prediction.memory;
    let cards = [
        (duration(prediction.step_time_s), "per optimizer step"),
        (mfu(prediction.mfu), "of the GPUs' peak arithmetic (MFU)"),
        (
            grouped((prediction.tokens_per_s_per_gpu * f64::from(job.gpus)).round() as u64),
            "tokens per second in all",
        ),
        (
            format!(
                "{} of {} GiB",
                gib(memory.peak_gib),
                gib(memory.capacity_gib)
            ),
            "peak memory of the fullest GPU",
        ),
        (
            risk(prediction.oom_probability),
            "risk of running out of memory",
        ),
    ];
    html! {
        p.layout { (line(&choice.layout)) }
        p { (verdict(choice)) }
        div.cards { @for (figure, what) in &cards { div { b { (figure) } span { (what) } } } }
        @for warning in &answer.warnings { p.warning { (warning) } }
        p.small {
            (format!(
                "The job: {} ({} parameters), sequences of {} tokens, {} of them per step; {} with {} GPUs per \
                 node; {} with gradients of {} bytes.",
                job.model,
                count(job.parameters),
                grouped(job.sequence_length),
                grouped(job.global_batch),
                job.cluster,
                job.gpus_per_node,
                job.framework,
                job.gradient_bytes,
            ))
        }
        (section(
            "The layout, choice by choice",
            "Training on many GPUs means deciding how to split the network and the data among them. This is what \
             was chosen, and what each choice does.",
            &table(&["choice", "value", "what it does"], &choices(choice)),
        ))
    }
}

/// How many layouts it was chosen from, and what is proven.
fn verdict(choice: &Choice) -> String {
    let answer = choice.page.answer;
    let combinations = grouped(answer.proof.combinations.all);
    let found = match (answer.status, answer.proof.gap) {
        (Status::Optimal, _) => "no other is faster: that is proven".to_owned(),
        (_, Some(gap)) => format!(
            "the time limit ended the search, and at most {} better is possible",
            percent(gap)
        ),
        (_, None) => "the time limit ended the search, and it is the best known".to_owned(),
    };
    format!(
        "This is how to spread the job over its GPUs so that a step takes the least time. Of {combinations} combinations \
         of settings, each with every split of the layers, {found}. All figures are predictions; the last section says \
         how far to trust them."
    )
}

/// The choices in words.
fn choices(choice: &Choice) -> Vec<Vec<String>> {
    let combination = choice.document.combination;
    let plain = FlaggedCombination::plain(combination);
    let mut rows = Vec::new();
    for axis in Axis::ALL {
        let code = plain.code(axis);
        let is_off = code == FlaggedCombination::FIRST.code(axis);
        let optional = matches!(
            axis,
            Axis::ContextParallel
                | Axis::ExpertParallel
                | Axis::ExpertTensorParallel
                | Axis::VirtualStages
                | Axis::SequenceParallel
        );
        if axis != Axis::Checkpointing && !(is_off && optional) {
            rows.push(vec![name(axis), axis.show(code), meaning(choice, axis)]);
        }
    }
    let layers = layers(&choice.layout);
    rows.push(vec![
        "layers per stage".to_owned(),
        layers,
        "transformer layers on each pipeline stage, first to last".to_owned(),
    ]);
    rows.push(vec![
        "checkpointing".to_owned(),
        checkpointing(&choice.layout),
        "layers whose activations are computed again in the backward pass instead of kept: less memory, more \
         time; counts are per stage"
            .to_owned(),
    ]);
    rows
}

/// What an axis does at the chosen value.
fn meaning(choice: &Choice, axis: Axis) -> String {
    let one = &choice.document.combination;
    match axis {
        Axis::TensorParallel => match one.tensor_parallel {
            1 => "no layer is split over GPUs".to_owned(),
            ranks => format!("every layer is split over {ranks} neighbouring GPUs"),
        },
        Axis::PipelineParallel => match one.pipeline_parallel {
            1 => "every GPU works on all layers, one after another".to_owned(),
            stages => format!("the layers are cut into {stages} stages, which hand work on"),
        },
        Axis::DataParallel => match one.data_parallel {
            1 => "there is one copy of the network".to_owned(),
            copies => format!(
                "{} copies of the network share the batch",
                grouped(u64::from(copies))
            ),
        },
        Axis::ContextParallel => {
            format!("each sequence is split over {} GPUs", one.context_parallel)
        }
        Axis::ExpertParallel => format!(
            "the experts of a layer are spread over {} GPUs",
            one.expert_parallel
        ),
        Axis::ExpertTensorParallel => {
            format!(
                "each expert is split over {} GPUs",
                one.expert_tensor_parallel
            )
        }
        Axis::VirtualStages => format!(
            "each stage holds {} separate pieces of the network, so that stages wait less",
            one.virtual_stages
        ),
        Axis::MicroBatch => format!(
            "sequences that a copy works on at a time; {} such micro-batches per step",
            grouped(choice.document.micro_batches)
        ),
        Axis::SequenceParallel => {
            "what tensor parallelism does not split is split along the sequence".to_owned()
        }
        Axis::Sharding => shared(one.sharding).to_owned(),
        Axis::RmsNormKernel => "kernel of the normalisation".to_owned(),
        Axis::AttentionKernel => "kernel of attention".to_owned(),
        Axis::Schedule => "order of forward and backward passes in the pipeline".to_owned(),
        Axis::Checkpointing => String::new(),
    }
}

/// What copies of the network share out.
const fn shared(sharding: Sharding) -> &'static str {
    match sharding {
        Sharding::None => "every copy keeps all weights, gradients and optimizer states",
        Sharding::OptimizerStates => "copies share out the optimizer states",
        Sharding::Gradients => "copies share out optimizer states and gradients",
        Sharding::Parameters => "copies share out optimizer states, gradients and weights",
        Sharding::Hybrid => {
            "copies on fast links share out optimizer states, gradients and weights"
        }
    }
}

/// The name of an axis with its usual abbreviation.
fn name(axis: Axis) -> String {
    let label = axis_label(axis);
    let abbreviation = match axis {
        Axis::TensorParallel => "TP",
        Axis::PipelineParallel => "PP",
        Axis::DataParallel => "DP",
        Axis::ContextParallel => "CP",
        Axis::ExpertParallel => "EP",
        Axis::ExpertTensorParallel => "ETP",
        _ => return label,
    };
    format!("{label} ({abbreviation})")
}
