//! Every pipeline stage and model chunk gets a layer, or embedding or head, by the framework's partition.

use super::{Case, Definition, FrameworkChange, Remedy, Rule};
use crate::axis::Axis;
use crate::cost_model::pipeline::{even_partition, first_short_stage, framework_cut};
use crate::framework::Partition;
use crate::instance::Instance;
use crate::job::Job;
use crate::layout::{Combination, Layout};
use crate::plan::Violation;

pub(super) const RULE: Definition = Definition {
    name: "layers_cover_stages",
    demands: "every stage has a layer and every model chunk one, embedding or head, by the cut that the framework makes",
    axes: &[Axis::PipelineParallel, Axis::VirtualStages],
    amount,
    message,
    demand: |instance, _| {
        let name = &instance.job.framework.name;
        format!("every stage has a layer, by the cut that {name} makes")
    },
    in_layout: Some(in_layout),
    limits: |instance, _, _| {
        let framework = &instance.job.framework;
        (framework.partition != Partition::Free).then(|| format!("the cut of {}", framework.name))
    },
    remedy: Remedy::Framework(FrameworkChange {
        key: "partition",
        to: "free",
        words: "a framework that cuts the layers freely",
        set: |framework| framework.partition = Partition::Free,
    }),
    source: "`partition` of the framework; Megatron-LM, `num_layers_per_virtual_pipeline_stage`",
    ..Definition::USUAL
};

/// Layers of each stage by the framework's own cut; `None` if there is none that leaves no model chunk
/// empty.
#[must_use]
pub fn partition(instance: &Instance, combination: &Combination) -> Option<Vec<u32>> {
    let layers = instance.job.transformer.layers;
    if combination.pipeline_parallel > layers {
        return None;
    }
    framework_cut(
        instance.job.framework.partition,
        &instance.job.transformer,
        combination,
    )
}

/// Layers missing to one per model chunk, or left over by a cut into equal ones.
fn amount(case: &Case) -> u64 {
    if partition(case.instance, case.combination()).is_some() {
        return 0;
    }
    let layers = u64::from(case.job().transformer.layers);
    let chunks = case.pipeline_parallel() * u64::from(case.combination().virtual_stages);
    if chunks > layers {
        chunks - layers
    } else {
        (layers % chunks).max(1)
    }
}

fn message(case: &Case) -> String {
    let (layers, framework) = (case.job().transformer.layers, &case.job().framework);
    let (stages, chunks) = (
        case.combination().pipeline_parallel,
        case.combination().virtual_stages,
    );
    match chunks {
        1 => format!(
            "{} cannot cut {layers} layers into {stages} stages",
            framework.name
        ),
        several if framework.partition == Partition::Free => format!(
            "{stages} stages x {several} chunks = {} model chunks are more than {layers} layers, embedding and head fill",
            u64::from(stages) * u64::from(several)
        ),
        several => uneven_chunks(layers, stages, several),
    }
}

fn uneven_chunks(layers: u32, stages: u32, chunks: u32) -> String {
    format!(
        "an interleaved pipeline has equal model chunks: {stages} stages x {chunks} chunks = {} \
         must divide {layers} layers, or {} with embedding and head as a layer each, evenly over the stages",
        u64::from(stages) * u64::from(chunks),
        layers + 2
    )
}

fn in_layout(instance: &Instance, layout: &Layout) -> Vec<Violation> {
    let broken = broken(instance, layout).map(|message| Violation {
        rule: Rule::LayersCoverStages.as_str().to_owned(),
        message,
    });
    broken.into_iter().collect()
}

/// How the layers of the stages break the rule, if they do.
fn broken(instance: &Instance, layout: &Layout) -> Option<String> {
    let (stages, chunks) = (
        layout.combination.pipeline_parallel,
        layout.combination.virtual_stages,
    );
    let layers: Vec<u32> = layout.stages.iter().map(|stage| stage.layers).collect();
    let total = instance.job.transformer.layers;
    let held: u64 = layers.iter().map(|&count| u64::from(count)).sum();
    if layers.len() != stages as usize || held != u64::from(total) {
        return Some(format!(
            "{} stages hold {held} layers; the network has {total} on {stages} stages",
            layers.len()
        ));
    }
    let transformer = &instance.job.transformer;
    if let Some(stage) = first_short_stage(transformer, &layout.combination, &layers) {
        let (held, leading) = (layers[stage as usize], transformer.order().leading);
        let first = if stage == 0 && leading > 0 {
            format!(", the first of which holds the {leading} leading dense layers")
        } else {
            String::new()
        };
        return Some(format!(
            "stage {} holds {held} layers, too few for its {chunks} model chunks{first}",
            stage + 1
        ));
    }
    let partition = instance.job.framework.partition;
    // An interleaved pipeline that may not be cut anyhow has its own cut, whatever the usual one.
    if chunks > 1 && partition != Partition::Free {
        return (!has_equal_chunks(&layers, chunks)).then(|| uneven_chunks(total, stages, chunks));
    }
    differs(&instance.job, &layers)
}

/// Whether all model chunks have the same number of layers, or would have if embedding and head
/// counted as a layer each.
fn has_equal_chunks(layers: &[u32], chunks: u32) -> bool {
    let counted = with_ends(layers);
    let same = |counts: &[u32]| are_equal(counts) && counts[0].is_multiple_of(chunks);
    same(layers) || same(&counted)
}

/// The counts with embedding and head as a layer each.
fn with_ends(layers: &[u32]) -> Vec<u32> {
    let mut counted = layers.to_vec();
    if let Some(first) = counted.first_mut() {
        *first += 1;
    }
    if let Some(last) = counted.last_mut() {
        *last += 1;
    }
    counted
}

fn are_equal(counts: &[u32]) -> bool {
    counts.windows(2).all(|pair| pair[0] == pair[1])
}

/// Whether the counts are even, the remainder on the early stages.
fn are_even(counts: &[u32]) -> bool {
    let (total, stages) = (counts.iter().sum::<u32>(), counts.len() as u32);
    let even = |stage: u32| total / stages + u32::from(stage < total % stages);
    (0..).zip(counts).all(|(stage, &count)| count == even(stage))
}

/// How the layers contradict the framework's partition, if they do.
fn differs(job: &Job, layers: &[u32]) -> Option<String> {
    let partition = job.framework.partition;
    let (holds, demand) = match partition {
        Partition::Free => return None,
        Partition::Equal => (
            are_equal(layers),
            format!(
                "the framework puts the same number of layers on each of {} stages",
                layers.len()
            ),
        ),
        Partition::EqualOrEndsLess => (
            are_equal(layers) || are_equal(&with_ends(layers)),
            format!(
                "the framework puts the same number of layers on each of {} stages, or one fewer on the \
                 first and the last",
                layers.len()
            ),
        ),
        Partition::ByCost => (
            even_partition(partition, &job.transformer, layers.len() as u32)
                .is_some_and(|cut| cut == layers),
            "the framework cuts the layers by their cost and that of the head".to_owned(),
        ),
        Partition::Even => (
            are_even(layers),
            "the framework cuts the layers evenly, the remainder to the early stages".to_owned(),
        ),
        Partition::FirstAndLast => (
            layers
                .get(1..layers.len().saturating_sub(1))
                .is_none_or(are_equal),
            "the framework puts the same number of layers on every stage but the first and the last"
                .to_owned(),
        ),
        Partition::EmbeddingAndHead => (
            are_even(&with_ends(layers)),
            "the framework cuts embedding, layers and head evenly, the remainder to the early stages"
                .to_owned(),
        ),
    };
    (!holds).then_some(demand)
}
