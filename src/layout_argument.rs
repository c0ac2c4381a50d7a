//! A layout that the user types: `tp=2,pp=4,layers=9+10x2+11`, or pastes from an answer: `TP 2, PP 4, DP 8,
//! micro-batch 1, zero-1, layers 9, 10 x2, 11`.

use std::borrow::Cow;

use crate::axis::{Assignment, Axis, FlaggedCombination};
use crate::cost_model::pipeline::{even_partition, framework_cut};
use crate::count::counted;
use crate::framework::Partition;
use crate::instance::Instance;
use crate::layout::{Layout, Recompute, Sharding, Stage};
use crate::reading::spelling;

/// Keys besides the axes: the layers of each stage, and those that are checkpointed by each mode.
const STAGE_KEYS: [&str; 4] = [
    "layers",
    "checkpointed_full",
    "checkpointed_feed_forward",
    "checkpointed_attention_core",
];

/// Reads `key=value` pairs separated by commas, or the line of a layout as answers print it.
///
/// Axes that are not named take the instance's pin, else: data parallelism fills the GPUs,
/// sharding is ZeRO-1, kernels are the best listed, the sequence is split where the framework
/// usually does, everything else is 1, off or none. Without
/// `layers` the framework's own cut is used.
///
/// # Errors
///
/// A message for the user: an unknown key, a value that is not one, counts that do not fit.
pub fn parse(text: &str, instance: &Instance) -> Result<Layout, String> {
    let pairs = if text.contains('=') {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(pasted(text)?)
    };
    let typed = split(&pairs)?;
    let mut assignment = Assignment::default();
    let mut counts: [Option<Vec<u32>>; 4] = [None, None, None, None];
    for (key, value) in typed {
        if let Some(axis) = Axis::parse(key) {
            assign(&mut assignment, axis, value)?;
        } else if let Some(position) = STAGE_KEYS.iter().position(|&known| known == key) {
            counts[position] = Some(stage_counts(key, value)?);
        } else {
            return Err(unknown_key(key, &STAGE_KEYS));
        }
    }
    let candidate = complete(&assignment, instance);
    let stages = stages(&candidate, &counts, instance)?;
    Ok(Layout {
        combination: candidate.combination,
        stages,
    })
}

/// Reads pairs that name axes only, such as a pin.
///
/// # Errors
///
/// A message for the user: nothing is named, an unknown key, or a value that is not one.
pub fn parse_assignment(text: &str) -> Result<Assignment, String> {
    let pasted = if text.contains('=') {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(joined(phrases(text, Vec::new())?))
    };
    let pairs = split(&pasted)?;
    if pairs.is_empty() {
        return Err("no axis is named, such as `tensor_parallel=8`".to_owned());
    }
    let mut assignment = Assignment::default();
    for (key, value) in pairs {
        let axis = Axis::parse(key).ok_or_else(|| {
            if STAGE_KEYS.contains(&key) {
                format!("`{key}` is no axis: layers of stages cannot be asked for")
            } else {
                unknown_key(key, &[])
            }
        })?;
        assign(&mut assignment, axis, value)?;
    }
    Ok(assignment)
}

fn assign(assignment: &mut Assignment, axis: Axis, value: &str) -> Result<(), String> {
    let code = axis
        .parse_value(value)
        .ok_or_else(|| bad_value(axis, value))?;
    if assignment.get(axis).is_some() {
        return Err(format!("`{axis}` is given twice"));
    }
    assignment.0.push((axis, code));
    Ok(())
}

/// The pairs that the line of a layout stands for. It leaves out what is off, so that comes first.
fn pasted(line: &str) -> Result<String, String> {
    let off = [
        (Axis::ContextParallel, "1"),
        (Axis::VirtualStages, "1"),
        (Axis::SequenceParallel, "false"),
        (Axis::RmsNormKernel, "false"),
    ]
    .map(|(axis, off)| (axis.to_string(), off.to_owned()));
    let pairs = phrases(line, off.to_vec())?;
    let whole = [
        Axis::TensorParallel,
        Axis::PipelineParallel,
        Axis::MicroBatch,
        Axis::Sharding,
    ];
    if let Some(absent) = whole
        .into_iter()
        .find(|axis| pairs.iter().all(|(key, _)| key != axis.as_str()))
    {
        return Err(format!(
            "`{line}` is only part of a printed layout, without `{absent}`: write pairs such as `tp=2,pp=4`"
        ));
    }
    Ok(joined(pairs))
}

/// The pairs as they are typed.
fn joined(pairs: Vec<(String, String)>) -> String {
    let pairs = pairs
        .into_iter()
        .map(|(key, value)| format!("{key}={value}"));
    pairs.collect::<Vec<_>>().join(",")
}

/// The pairs that the phrases of a printed layout stand for; a later one of a key counts.
fn phrases(line: &str, mut pairs: Vec<(String, String)>) -> Result<Vec<(String, String)>, String> {
    for phrase in line.split(',').filter(|phrase| !phrase.trim().is_empty()) {
        let words: Vec<&str> = phrase.split_whitespace().collect();
        let phrase = words.join(" ");
        // A list of counts goes on: `10 x4`, and `0 x3 layers` at its end.
        let counts = phrase.strip_suffix(" layers").unwrap_or(&phrase);
        let goes_on = |(key, _): &&mut (String, String)| STAGE_KEYS.contains(&key.as_str());
        if !words.is_empty()
            && counts
                .chars()
                .all(|c| c.is_ascii_digit() || " x".contains(c))
            && let Some((_, value)) = pairs.last_mut().filter(goes_on)
        {
            value.push('+');
            value.extend(counts.split(' '));
            continue;
        }
        let short: Option<Vec<(String, String)>> = words.iter().map(|word| short(word)).collect();
        if let Some(short) = short {
            pairs.retain(|(earlier, _)| short.iter().all(|(key, _)| key != earlier));
            pairs.extend(short);
            continue;
        }
        let (key, value) = phrase_of(&words).ok_or_else(|| {
            format!(
                "`{phrase}` is neither `key=value`, such as `tp=2`, nor part of a printed layout"
            )
        })?;
        pairs.retain(|(earlier, _)| *earlier != key);
        pairs.push((key, value));
    }
    Ok(pairs)
}

/// The pair that a short label such as `TP8` stands for; `v` is of virtual stages, `b` of micro-batches.
fn short(word: &str) -> Option<(String, String)> {
    let (name, value) = word.split_at(word.find(|c: char| c.is_ascii_digit())?);
    let axis = match name {
        "v" => Axis::VirtualStages,
        "b" => Axis::MicroBatch,
        _ => Axis::parse(&name.to_lowercase())?,
    };
    Some((axis.to_string(), value.to_owned()))
}

/// The pair that one phrase of a printed layout stands for.
fn phrase_of(words: &[&str]) -> Option<(String, String)> {
    let pair = |axis: Axis, value: &str| Some((axis.to_string(), value.to_owned()));
    match *words {
        ["micro-batch", value] => pair(Axis::MicroBatch, value),
        [value, "virtual", _] => pair(Axis::VirtualStages, value),
        ["sequence", "parallelism"] => pair(Axis::SequenceParallel, "true"),
        ["no", "sequence", "parallelism"] => pair(Axis::SequenceParallel, "false"),
        ["fused", "RMSNorm"] => pair(Axis::RmsNormKernel, "true"),
        ["unfused", "RMSNorm"] => pair(Axis::RmsNormKernel, "false"),
        ["schedule", value] => pair(Axis::Schedule, value),
        ["no", "checkpointing"] => pair(Axis::Checkpointing, "none"),
        [mode, "checkpointing"] => pair(Axis::Checkpointing, mode),
        [mode, "checkpointing", "of", ref counts @ ..] => {
            let counts: Vec<&str> = counts
                .iter()
                .copied()
                .filter(|it| *it != "layers")
                .collect();
            let key = format!("checkpointed_{}", mode.replace('-', "_"));
            Some((key, counts.concat()))
        }
        ["layers", ref counts @ ..] => Some(("layers".to_owned(), counts.concat())),
        [degree, value] => pair(Axis::parse(&degree.to_lowercase())?, value),
        [name] => [Axis::Sharding, Axis::AttentionKernel, Axis::Schedule]
            .into_iter()
            .find(|axis| axis.parse_value(name).is_some())
            .and_then(|axis| pair(axis, name)),
        _ => None,
    }
}

fn split(text: &str) -> Result<Vec<(&str, &str)>, String> {
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    for pair in text
        .split(',')
        .map(str::trim)
        .filter(|pair| !pair.is_empty())
    {
        let (key, value) = pair
            .split_once('=')
            .ok_or_else(|| format!("`{pair}` is not `key=value`, such as `tensor_parallel=2`"))?;
        let (key, value) = (key.trim(), value.trim());
        if pairs.iter().any(|(earlier, _)| *earlier == key) {
            return Err(format!("`{key}` is given twice"));
        }
        pairs.push((key, value));
    }
    Ok(pairs)
}

/// What to say of a key that is neither an axis nor one of `others`.
fn unknown_key(key: &str, others: &[&str]) -> String {
    let axes = Axis::ALL.map(Axis::as_str).into_iter();
    let known: Vec<&str> = axes.chain(others.iter().copied()).collect();
    let mut all = known.clone();
    for short in Axis::ALL.into_iter().filter_map(Axis::short) {
        all.push(short);
    }
    match spelling::did_you_mean(key, all.iter().copied()) {
        Some(question) => format!("a layout has no `{key}`; {question}"),
        None => format!("a layout has no `{key}`; it has {}", known.join(", ")),
    }
}

fn bad_value(axis: Axis, value: &str) -> String {
    match axis.names() {
        Some(names) => format!("`{axis}` is one of {}, not `{value}`", names.join(", ")),
        None => format!("`{axis}` is a whole number from 1, not `{value}`"),
    }
}

/// Reads `9+10x2+11` as 9, 10, 10, 11.
fn stage_counts(key: &str, value: &str) -> Result<Vec<u32>, String> {
    let error = || {
        format!(
            "`{key}` lists one number a stage, such as `9+10+10+11` or `9+10x2+11`, not `{value}`"
        )
    };
    let mut counts = Vec::new();
    for part in value.split('+') {
        let (count, times) = part.split_once('x').unwrap_or((part, "1"));
        let count: u32 = count.trim().parse().map_err(|_| error())?;
        let times: usize = times.trim().parse().map_err(|_| error())?;
        if counts.len().saturating_add(times) > 1 << 20 {
            return Err(error());
        }
        counts.extend(std::iter::repeat_n(count, times));
    }
    Ok(counts)
}

/// The candidate with every axis decided.
fn complete(assignment: &Assignment, instance: &Instance) -> FlaggedCombination {
    let mut codes = Axis::ALL.map(|axis| {
        let listed = instance.space.values(axis);
        let usual = match (axis, listed) {
            (_, &[pin]) => pin,
            (Axis::Sharding, _) => Sharding::OptimizerStates as u32,
            (Axis::AttentionKernel | Axis::RmsNormKernel, [.., best]) => *best,
            (Axis::SequenceParallel | Axis::Checkpointing | Axis::Schedule, _) => 0,
            _ => 1,
        };
        assignment.get(axis).unwrap_or(usual)
    });
    let habit = instance.job.framework.usual_sequence_parallel;
    let open = instance.space.values(Axis::SequenceParallel).len() > 1;
    let several = codes[Axis::TensorParallel as usize] > 1;
    if assignment.get(Axis::SequenceParallel).is_none() && open && several {
        codes[Axis::SequenceParallel as usize] = habit as u32;
    }
    if assignment.get(Axis::DataParallel).is_none() {
        let degrees = [
            Axis::TensorParallel,
            Axis::PipelineParallel,
            Axis::ContextParallel,
        ];
        let others = degrees.iter().fold(1_u64, |product, &axis| {
            product.saturating_mul(u64::from(codes[axis as usize]))
        });
        let replicas = (u64::from(instance.job.cluster.gpus) / others).max(1);
        codes[Axis::DataParallel as usize] = replicas as u32;
    }
    FlaggedCombination::from_codes(&codes)
}

fn stages(
    candidate: &FlaggedCombination,
    counts: &[Option<Vec<u32>>; 4],
    instance: &Instance,
) -> Result<Vec<Stage>, String> {
    let pipeline = candidate.combination.pipeline_parallel;
    let transformer = &instance.job.transformer;
    let network = transformer.layers;
    let layers = match &counts[0] {
        Some(layers) => layers.clone(),
        None if pipeline > network => {
            return Err(format!(
                "{} cannot fill {pipeline} pipeline stages",
                counted(network, "layer")
            ));
        }
        None => framework_cut(
            instance.job.framework.partition,
            transformer,
            &candidate.combination,
        )
        .or_else(|| framework_cut(Partition::Free, transformer, &candidate.combination))
        .or_else(|| even_partition(Partition::Free, transformer, pipeline))
        .ok_or_else(|| format!("{network} layers cannot be cut into {pipeline} stages"))?,
    };
    let total: u64 = layers.iter().map(|&count| u64::from(count)).sum();
    if layers.len() != pipeline as usize || total != u64::from(network) {
        return Err(format!(
            "`layers` lists {} with {} in all; the network has {} on {}",
            counted(layers.len(), "stage"),
            counted(total, "layer"),
            counted(network, "layer"),
            counted(pipeline, "stage")
        ));
    }
    let mut stages: Vec<Stage> = layers
        .iter()
        .map(|&layers| Stage {
            layers,
            recomputed: [0; 4],
        })
        .collect();
    if let Some(mode) = candidate.checkpointing.recompute() {
        for stage in &mut stages {
            stage.recomputed[mode as usize] = stage.layers;
        }
    }
    for (mode, each) in Recompute::ALL.iter().zip(&counts[1..]) {
        let Some(each) = each else { continue };
        if each.len() != stages.len() {
            return Err(format!(
                "`checkpointed_{}` lists {} of {pipeline}",
                mode.as_str().replace('-', "_"),
                counted(each.len(), "stage")
            ));
        }
        for (stage, &count) in stages.iter_mut().zip(each) {
            stage.recomputed[*mode as usize] = count;
        }
    }
    match stages.iter().position(|stage| {
        stage
            .recomputed
            .iter()
            .map(|&count| u64::from(count))
            .sum::<u64>()
            > u64::from(stage.layers)
    }) {
        Some(index) => Err(format!(
            "stage {index} has fewer layers than are checkpointed"
        )),
        None => Ok(stages),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::report::layout_text;

    #[test]
    fn a_printed_layout_can_be_pasted_back() {
        let instance = fixture::llama_405b();
        let layout = fixture::llama_405b_layout();
        let line = layout_text::line(&layout);
        assert_eq!(parse(&line, &instance), Ok(layout));
        let wrapped = line.replace(", ", ",\n    ");
        assert_eq!(parse(&wrapped, &instance), parse(&line, &instance));
    }

    #[test]
    fn short_names_stand_for_the_axes() {
        let instance = fixture::llama_405b();
        let short = parse("tp=8,pp=14,mb=1,cp=1", &instance);
        let long = "tensor_parallel=8,pipeline_parallel=14,micro_batch=1,context_parallel=1";
        assert_eq!(short, parse(long, &instance));
        let other = parse("tp=8,micro_bacth=1", &instance);
        let meant = "a layout has no `micro_bacth`; did you mean `micro_batch`?";
        assert_eq!(other, Err(meant.to_owned()));
        let megatron = parse("tensor_model_parallel_size=8", &instance).expect_err("no key");
        assert!(
            megatron.ends_with("did you mean `tensor_parallel`?"),
            "{megatron}"
        );
        let twice = parse("tp=8,tensor_parallel=4", &instance);
        assert_eq!(twice, Err("`tensor_parallel` is given twice".to_owned()));
    }

    #[test]
    fn values_are_asked_for_in_any_spelling_that_is_printed() {
        let asked = |text: &str| parse_assignment(text).map(|it| it.to_string());
        for printed in [
            "TP 8, PP 1",
            "TP8 PP1",
            "TP8, PP 1",
            "tensor_parallel = 8, pipeline_parallel = 1",
        ] {
            assert_eq!(asked(printed), asked("tp=8,pp=1"), "{printed}");
        }
        assert_eq!(asked("micro-batch 2"), asked("mb=2"));
        assert_eq!(asked("TP8 v2 b4"), asked("tp=8,vp=2,mb=4"));
        let several = asked("3 virtual stages, zero-1, full checkpointing");
        assert_eq!(
            several,
            asked("virtual_stages=3,sharding=zero-1,checkpointing=full")
        );
        let error = asked("layers 9, 10 x4").expect_err("no axis");
        assert!(
            error.contains("layers of stages cannot be asked for"),
            "{error}"
        );
        assert!(asked("nonsense").is_err() && asked(" , ").is_err());
    }

    #[test]
    fn short_names_are_suggested() {
        let error = parse("mbs=1", &fixture::llama_405b()).expect_err("unknown");
        assert!(
            error.contains("`mb`") || error.contains("`micro_batch`"),
            "{error}"
        );
    }

    #[test]
    fn counts_that_overflow_are_refused() {
        let instance = fixture::llama_405b();
        for times in ["18446744073709551615", "18446744073709551616", "4294967296"] {
            let error = parse(&format!("pp=2,layers=9+1x{times}"), &instance).expect_err(times);
            assert!(
                error.contains("`layers` lists one number a stage"),
                "{error}"
            );
        }
    }
}
