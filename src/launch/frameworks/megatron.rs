//! What Megatron-LM and the tools on top of it have in common: how stages, recomputation and sharding are said
//! (`megatron/training/arguments.py`, `core/transformer/transformer_config.py`,
//! `core/transformer/pipeline_parallel_layer_layout.py`, main branch of August 2026).

use crate::launch::facts::{Facts, Problem};
use crate::launch::layout::{LAYERS, RECOMPUTED, counts, numbers};
use crate::launch::pipeline::{chunks, equal_stages, nearest_divisors};
use crate::layout::Checkpointing;
use crate::rules::Rule;

const ARGUMENTS: &str = "Megatron-LM, `megatron/training/arguments.py`";
const CONFIG: &str = "Megatron-LM, `core/transformer/transformer_config.py`";

/// Adds the columns of pipeline, recomputation and sharding.
pub(super) fn own(facts: &mut Facts) -> Result<(), String> {
    if facts.number("expert_parallel") == Some(1) {
        facts.take("expert_parallel");
    }
    if facts.text("rmsnorm_kernel") == Some("false")
        && facts.text("normalization") == Some("rmsnorm")
    {
        return Err("Transformer Engine's RMSNorm is always one fused kernel".to_owned());
    }
    pipeline_own(facts);
    recompute_own(facts)?;
    sharding_own(facts);
    Ok(())
}

/// Adds what the columns of pipeline, recomputation and sharding say of a layout.
pub(super) fn neutral(facts: &mut Facts) {
    pipeline_neutral(facts);
    recompute_neutral(facts);
    sharding_neutral(facts);
}

fn pipeline_own(facts: &mut Facts) {
    let layers = numbers(facts.text(LAYERS).unwrap_or_default());
    let chunks_each = facts.one("virtual_stages") as u32;
    // Chunks of an interleaved stage hold the same number of layers unless a string lists them.
    let even_chunks = layers
        .iter()
        .all(|layers| layers.is_multiple_of(chunks_each));
    match first_and_last(&layers).filter(|_| even_chunks) {
        None => facts.set(
            "megatron_layout",
            layout_string(
                &chunks(&layers, chunks_each),
                facts.number("prediction_layers"),
            ),
        ),
        Some(ends) => {
            if chunks_each > 1 {
                facts.set("megatron_chunks", chunks_each);
            }
            for (column, count) in ["megatron_first", "megatron_last"].into_iter().zip(ends) {
                facts.note(column, count);
            }
        }
    }
    facts.note("megatron_group", group_size(facts));
}

/// The layers of first and last stage where they differ from all others, which are equal; `None` where they
/// are not, or a stage has none, which only a string can say.
fn first_and_last(layers: &[u32]) -> Option<[Option<u32>; 2]> {
    let [first, middle @ .., last] = layers else {
        return Some([None, None]);
    };
    // With two stages the last one is what the first leaves.
    let &usual = middle.first().unwrap_or(last);
    let apart = |&layers: &u32| (layers != usual).then_some(layers);
    let ends = [apart(first), apart(last)];
    let is_plain = middle.iter().all(|&layers| layers == usual) && !ends.contains(&Some(0));
    is_plain.then_some(ends)
}

/// Interleaving takes micro-batches in groups, by default as many as stages. Where that leaves a rest smaller
/// than the number of stages, another group size is needed.
pub(super) fn group_size(facts: &Facts) -> Option<u64> {
    let (stages, micro_batches) = (facts.one("pipeline_parallel"), facts.one("accumulation"));
    let fits = |group: &u64| is_group(*group, stages, micro_batches);
    let group = (stages..=micro_batches).find(fits)?;
    (facts.one("virtual_stages") > 1 && group != stages).then_some(group)
}

/// Groups of micro-batches have at least as many as stages and at most all; a rest is as large as the stages.
pub(super) fn interleaving(facts: &Facts) -> Option<Problem> {
    let (stages, chunks) = (facts.one("pipeline_parallel"), facts.one("virtual_stages"));
    let each = facts
        .one("micro_batch")
        .saturating_mul(facts.one("data_parallel"));
    let count = facts.number("global_batch")? / each;
    let group = facts.number("megatron_group").unwrap_or(stages).max(1);
    let is_legal = (stages..=count).contains(&group) && is_group(group, stages, count);
    if chunks == 1 || stages == 1 || is_legal {
        return None;
    }
    let message = if count < stages {
        format!(
            "{count} micro-batches do not fill {stages} interleaved stages: groups go from {stages} to {count}"
        )
    } else if group < stages {
        format!("a group of {group} micro-batches is smaller than {stages} stages")
    } else {
        format!(
            "{count} micro-batches in groups of {group} leave {}, fewer than {stages} stages",
            count % group
        )
    };
    let repair = if count < stages {
        format!(
            "use a global batch of at least stages x micro-batch x replicas, {}",
            stages.saturating_mul(each)
        )
    } else {
        let group = (stages..=count)
            .find(|&group| is_group(group, stages, count))
            .unwrap_or(count);
        format!("set --microbatch-group-size-per-virtual-pipeline-stage {group}")
    };
    Some(Problem {
        rule: Rule::InterleavingMicroBatches.as_str(),
        message,
        repair,
        source: "Megatron-LM, `core/pipeline_parallel/schedules.py`, `microbatch_group_size_per_vp_stage`",
        column: if facts.place("megatron_group").is_some() {
            "megatron_group"
        } else {
            "megatron_chunks"
        },
    })
}

fn is_group(group: u64, stages: u64, micro_batches: u64) -> bool {
    micro_batches.is_multiple_of(group) || micro_batches % group >= stages
}

/// Stages between bars: `E` the embedding, `t` a layer, `L` the loss; `x*n` repeats.
/// `m` a layer that predicts further tokens.
fn layout_string(chunks: &[u32], further: Option<u64>) -> String {
    let transformers = |layers: u32| match layers {
        0 => String::new(),
        1 => "t".to_owned(),
        several => format!("t*{several}"),
    };
    let Some((&last, before)) = chunks.split_last() else {
        return String::new();
    };
    let mut string = String::from("E");
    let mut rest = before;
    if let Some((&first, others)) = before.split_first() {
        string.push_str(&transformers(first));
        string.push('|');
        rest = others;
    }
    for run in rest.chunk_by(|one, other| one == other) {
        let stage = transformers(run[0]);
        match run.len() {
            1 => string.extend([stage.as_str(), "|"]),
            length => string.extend(["(", stage.as_str(), "|)*", &length.to_string(), ","]),
        }
    }
    string.push_str(&transformers(last));
    string.push_str(&"m".repeat(further.unwrap_or(0) as usize));
    string.push('L');
    string
}

/// Longest layout string, unrolled.
const LONGEST: usize = 1 << 16;

/// The transformer layers of every chunk of a layout string; `None` if it is none. `m` is a layer that
/// predicts further tokens.
fn chunks_of_string(string: &str) -> Option<Vec<u32>> {
    let unrolled = unrolled(&mut string.trim_matches(['"', '\'']).chars().peekable(), 0)?;
    let count = |chunk: &str| chunk.chars().filter(|&c| c == 't').count() as u32;
    Some(unrolled.split('|').map(count).collect())
}

type Letters<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn unrolled(letters: &mut Letters, depth: u32) -> Option<String> {
    let mut text = String::new();
    while let Some(letter) = letters.next() {
        let item = match letter {
            '(' if depth < 8 => unrolled(letters, depth + 1)?,
            ')' if depth > 0 => return Some(text),
            ',' => continue,
            'E' | 't' | 'm' | 'L' | '|' => letter.to_string(),
            _ => return None,
        };
        let mut times = 1_usize;
        if letters.next_if_eq(&'*').is_some() {
            let mut digits = String::new();
            while let Some(digit) = letters.next_if(char::is_ascii_digit) {
                digits.push(digit);
            }
            times = digits.parse().ok()?;
        }
        if item.len().checked_mul(times)? + text.len() > LONGEST {
            return None;
        }
        text.push_str(&item.repeat(times));
    }
    (depth == 0).then_some(text)
}

fn pipeline_neutral(facts: &mut Facts) {
    let stages = facts.one("pipeline_parallel");
    if let Some(string) = facts.text("megatron_layout").map(str::to_owned) {
        string_neutral(facts, &string, stages);
        return;
    }
    let on_a_stage = facts.number("layers").map(|layers| layers / stages);
    let of_chunk = facts.number("chunk_layers").zip(on_a_stage);
    let of_chunk = of_chunk.and_then(|(chunk, on_a_stage)| on_a_stage.checked_div(chunk));
    let unknown = facts.text("chunk_layers").is_some() && of_chunk.is_none();
    let chunks_each = facts
        .number("megatron_chunks")
        .or(of_chunk)
        .map(|count| count.max(1));
    let is_asked = facts.unset.keys().any(|flag| flag.contains("virtual"));
    if !unknown && !is_asked {
        facts.note("virtual_stages", Some(chunks_each.unwrap_or(1)));
    }
    if ["megatron_first", "megatron_last"]
        .iter()
        .any(|it| facts.number(it).is_some())
    {
        ends_neutral(facts, stages);
        return;
    }
    let counted = ["megatron_embedding_counts", "megatron_loss_counts"].map(|it| facts.is_on(it));
    if counted != [false, false] {
        counted_neutral(facts, stages, counted);
        return;
    }
    let layers = facts.one("layers");
    let repair = format!(
        "set pipeline parallelism to {}, or list the stages with --pipeline-model-parallel-layout",
        nearest_divisors(layers, stages)
    );
    let what = format!(
        "Megatron-LM builds {} on each, so that {} of them would be missing from the network without a word",
        layers / stages,
        layers % stages
    );
    equal_stages(facts, &what, &repair, ARGUMENTS);
    uneven_chunks(facts, layers, stages);
}

/// Equal chunks need a number of layers that divides.
fn uneven_chunks(facts: &mut Facts, layers: u64, stages: u64) {
    let chunks = facts.one("virtual_stages");
    let on_a_stage = layers / stages;
    let known = facts.number("layers").is_some();
    if known && layers.is_multiple_of(stages) && !on_a_stage.is_multiple_of(chunks) {
        facts.problems.push(Problem {
            rule: Rule::LayersCoverStages.as_str(),
            message: format!(
                "{on_a_stage} layers on a stage do not divide among {chunks} model chunks"
            ),
            repair: format!(
                "set virtual stages to {}",
                nearest_divisors(on_a_stage, chunks)
            ),
            source: ARGUMENTS,
            column: "virtual_stages",
        });
    }
}

fn string_neutral(facts: &mut Facts, string: &str, stages: u64) {
    let chunks =
        chunks_of_string(string).filter(|chunks| (chunks.len() as u64).is_multiple_of(stages));
    let Some(chunks) = chunks else {
        facts.problems.push(Problem {
            rule: Rule::LayersCoverStages.as_str(),
            message: format!("`{string}` does not list a multiple of {stages} pipeline stages"),
            repair:
                "separate stages by `|`, with `E`, `t`, `m` and `L` between and `x*n` for repeats"
                    .to_owned(),
            source: "Megatron-LM, `core/transformer/pipeline_parallel_layer_layout.py`",
            column: "megatron_layout",
        });
        return;
    };
    let of = |stage: u64| {
        chunks
            .iter()
            .skip(stage as usize)
            .step_by(stages as usize)
            .sum()
    };
    let sums: Vec<u32> = (0..stages).map(of).collect();
    facts.note("virtual_stages", Some(chunks.len() as u64 / stages));
    listed(facts, &sums, "megatron_layout");
}

/// Notes the layers of the stages, which have to be those of the network.
fn listed(facts: &mut Facts, layers: &[u32], column: &'static str) {
    facts.note(LAYERS, Some(counts(layers)));
    let sum = layers.iter().map(|&count| u64::from(count)).sum::<u64>();
    if let Some(all) = facts.number("layers").filter(|&all| all != sum) {
        facts.problems.push(Problem {
            rule: Rule::LayersCoverStages.as_str(),
            message: format!("the stages hold {sum} layers, the network has {all}"),
            repair: format!("list {all} layers in all"),
            source: ARGUMENTS,
            column,
        });
    }
}

fn ends_neutral(facts: &mut Facts, stages: u64) {
    let Some(layers) = facts.number("layers") else {
        return;
    };
    let ends = ["megatron_first", "megatron_last"].map(|it| facts.number(it));
    let given = ends.iter().flatten().sum::<u64>();
    let count = ends.iter().flatten().count() as u64;
    let (middle, rest) = (stages.saturating_sub(count), layers.saturating_sub(given));
    let divides = given <= layers
        && if middle == 0 {
            rest == 0
        } else {
            rest.is_multiple_of(middle)
        };
    if !divides || !(2..=1 << 16).contains(&stages) {
        facts.problems.push(Problem {
            rule: Rule::LayersCoverStages.as_str(),
            message: format!(
                "of {layers} layers, first and last stage take {given}: {rest} do not divide among the other {middle}"
            ),
            repair: "choose counts that leave a multiple of the other stages".to_owned(),
            source: ARGUMENTS,
            column: "megatron_first",
        });
        return;
    }
    let mut each = vec![rest.checked_div(middle).unwrap_or(0) as u32; stages as usize];
    if let Some(first) = ends[0] {
        each[0] = first as u32;
    }
    if let (Some(last), Some(end)) = (ends[1], each.last_mut()) {
        *end = last as u32;
    }
    facts.note(LAYERS, Some(counts(&each)));
}

/// Embedding and loss take the place of a layer each.
fn counted_neutral(facts: &mut Facts, stages: u64, [embedding, loss]: [bool; 2]) {
    let Some(layers) = facts.number("layers") else {
        return;
    };
    let all = layers + u64::from(embedding) + u64::from(loss);
    if !all.is_multiple_of(stages) || stages > 1 << 16 {
        facts.problems.push(Problem {
            rule: Rule::LayersCoverStages.as_str(),
            message: format!(
                "{layers} layers with embedding or loss counted are {all}, which do not divide among {stages} stages"
            ),
            repair: format!("set pipeline parallelism to {}", nearest_divisors(all, stages)),
            source: ARGUMENTS,
            column: "pipeline_parallel",
        });
        return;
    }
    let mut each = vec![(all / stages) as u32; stages as usize];
    each[0] -= u32::from(embedding);
    if let Some(last) = each.last_mut() {
        *last -= u32::from(loss);
    }
    facts.note(LAYERS, Some(counts(&each)));
}

/// The modules whose outputs little work brings back.
const LIGHT: [&str; 3] = ["layernorm", "moe_act", "mla_up_proj"];

const MODES: &str = "it recomputes whole layers, the same number at the start of every model chunk, or one \
     module of every layer";

fn recompute_own(facts: &mut Facts) -> Result<(), String> {
    let granularity = match facts.text("checkpointing").and_then(Checkpointing::parse) {
        Some(Checkpointing::None) => return Ok(()),
        Some(Checkpointing::Full) => {
            facts.set("megatron_method", "uniform");
            facts.set("megatron_recompute_layers", 1);
            "full"
        }
        Some(Checkpointing::FeedForward) => {
            let has_experts = facts.text("experts").is_some();
            let modules = match (has_experts, facts.text("megatron_expert_layers")) {
                (false, _) => "mlp",
                (true, None) => "moe",
                (true, Some(_)) => "mlp moe",
            };
            facts.set("megatron_modules", modules);
            "selective"
        }
        Some(Checkpointing::AttentionCore) => {
            facts.set("megatron_modules", "core_attn");
            "selective"
        }
        Some(Checkpointing::Light) => {
            let has = |column: &str| facts.text(column).is_some();
            let used = [true, has("experts"), has("latent")];
            let modules = LIGHT.iter().zip(used).filter(|(_, is_used)| *is_used);
            let modules: Vec<&str> = modules.map(|(module, _)| *module).collect();
            facts.set("megatron_modules", modules.join(" "));
            "selective"
        }
        None => {
            let first_layers =
                first_layers(facts).ok_or_else(|| format!("of these layers, {MODES}"))?;
            facts.set("megatron_method", "block");
            facts.set("megatron_recompute_layers", first_layers);
            "full"
        }
    };
    facts.set("megatron_granularity", granularity);
    Ok(())
}

/// The layers at the start of every chunk that are recomputed whole, where no others are.
fn first_layers(facts: &Facts) -> Option<u32> {
    if RECOMPUTED[1..]
        .iter()
        .any(|column| facts.text(column).is_some())
    {
        return None;
    }
    let each = numbers(facts.text(RECOMPUTED[0])?);
    let chunks_each = facts.one("virtual_stages") as u32;
    let count = each.iter().max()?.div_ceil(chunks_each);
    let layers = numbers(facts.text(LAYERS)?);
    (recomputed(&layers, chunks_each, count) == each).then_some(count)
}

/// The layers of every stage that are recomputed where each chunk recomputes the first `count`.
fn recomputed(layers: &[u32], chunks_each: u32, count: u32) -> Vec<u32> {
    let all = chunks(layers, chunks_each);
    let of = |stage: usize| all.iter().skip(stage).step_by(layers.len().max(1));
    (0..layers.len())
        .map(|stage| of(stage).map(|&chunk| chunk.min(count)).sum())
        .collect()
}

fn recompute_neutral(facts: &mut Facts) {
    if facts.unset.contains_key("recompute_granularity") {
        return;
    }
    let granularity = facts.text("megatron_granularity").map(str::to_owned);
    let method = facts.text("megatron_method").map(str::to_owned);
    let count = facts.number("megatron_recompute_layers");
    match granularity.as_deref() {
        Some("full") if method.as_deref() == Some("block") => {
            let layers = numbers(facts.text(LAYERS).unwrap_or_default());
            let shown = format!("full in {} layers a stage", count.unwrap_or(0));
            facts.note("checkpointing", Some(shown));
            if let Some(count) = count.filter(|_| !layers.is_empty()) {
                let each = recomputed(&layers, facts.one("virtual_stages") as u32, count as u32);
                facts.note(RECOMPUTED[0], Some(counts(&each)));
            }
        }
        Some("full") => facts.note("checkpointing", Some("full")),
        Some("selective") => {
            let modules = facts.text("megatron_modules").unwrap_or("core_attn");
            let modules = modules.trim_matches(['[', ']', '"', '\'']);
            let are = |known: &[&str]| modules.split(' ').all(|module| known.contains(&module));
            let mode = match modules {
                "core_attn" => "selective",
                _ if are(&["mlp", "moe"]) => "feed-forward",
                _ if are(&LIGHT) => "light",
                _ => "other",
            };
            facts.note("checkpointing", Some(mode));
        }
        _ if facts.is_on("megatron_recompute_activations") => {
            facts.note("checkpointing", Some("selective"));
        }
        _ => facts.note("checkpointing", Some("none")),
    }
    let mut refuse = |message: &str, repair: &str, column| {
        facts.problems.push(Problem {
            rule: "recompute_arguments",
            message: message.to_owned(),
            repair: repair.to_owned(),
            source: CONFIG,
            column,
        });
    };
    match granularity.as_deref() {
        Some("full") if method.is_none() || count.is_none() => refuse(
            "full recomputation needs a method and a number of layers",
            "add --recompute-method uniform --recompute-num-layers 1",
            "megatron_granularity",
        ),
        Some("selective") if count.is_some() => refuse(
            "selective recomputation takes no number of layers",
            "remove --recompute-num-layers",
            "megatron_recompute_layers",
        ),
        _ => {}
    }
}

fn sharding_own(facts: &mut Facts) {
    let sharding = facts.text("sharding").unwrap_or("zero-1").to_owned();
    facts.set("megatron_overlap_reduce", true);
    facts.set("megatron_distributed", sharding != "zero-0");
    if sharding != "hsdp" {
        facts.take("copies");
    }
    if sharding == "zero-0" {
        return;
    }
    facts.set("megatron_overlap_gather", true);
    let strategy = match sharding.as_str() {
        "zero-1" => return,
        "zero-2" => "optim_grads",
        _ => "optim_grads_params",
    };
    facts.set("megatron_fsdp", true);
    facts.set("megatron_strategy", strategy);
    facts.set("megatron_format", "fsdp_dtensor");
    if sharding == "hsdp" {
        facts.set("megatron_outer", "no_shard");
    }
}

fn sharding_neutral(facts: &mut Facts) {
    let is_fsdp = facts.is_on("megatron_fsdp");
    let sharding = match facts.text("megatron_strategy").filter(|_| is_fsdp) {
        Some("optim_grads") => Some("zero-2"),
        Some("optim_grads_params") if facts.one("copies") > 1 => Some("hsdp"),
        Some("optim_grads_params") => Some("zero-3"),
        Some("no_shard") => Some("zero-0"),
        _ => match facts.text("megatron_distributed") {
            Some("true") => Some("zero-1"),
            Some(_) => Some("zero-0"),
            None => None,
        },
    };
    facts.note("sharding", sharding);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_use_the_simplest_flags() {
        let check = |layers: &[u32], expected| assert_eq!(first_and_last(layers), expected);
        check(&[40], Some([None, None]));
        check(&[20, 20], Some([None, None]));
        check(&[21, 19], Some([Some(21), None]));
        check(&[7, 8, 8, 7], Some([Some(7), Some(7)]));
        check(&[7, 8, 8, 8], Some([Some(7), None]));
        check(&[8, 8, 8, 7], Some([None, Some(7)]));
        check(&[8, 8, 7, 7], None);
        check(&[0, 8, 8], None);
    }

    #[test]
    fn a_layout_string_lists_every_stage() {
        let check = |layers: &[u32], virtual_stages: u32, expected: &str| {
            let chunks = chunks(layers, virtual_stages);
            assert_eq!(layout_string(&chunks, None), expected);
            assert_eq!(chunks_of_string(expected), Some(chunks));
        };
        check(&[3, 2, 2, 3, 1], 1, "Et*3|(t*2|)*2,t*3|tL");
        check(&[40], 1, "Et*40L");
        check(&[0, 1, 1, 0], 1, "E|(t|)*2,L");
        check(&[5, 4], 2, "Et*2|t*2|t*3|t*2L");
        // The 405B on 16 stages of 8 chunks: every layer a chunk, embedding and head alone.
        let mut meta = vec![8; 16];
        (meta[0], meta[15]) = (7, 7);
        check(&meta, 8, "E|(t|)*126,L");
        let mut golden = vec![2; 40];
        golden[35] = 3;
        golden[39] = 1;
        check(&golden, 1, "Et*2|(t*2|)*34,t*3|(t*2|)*3,tL");
        assert_eq!(
            chunks_of_string("E|(t|)*3,m|m|L"),
            Some(vec![0, 1, 1, 1, 0, 0, 0])
        );
        for wrong in [
            "E|(t|",
            "Ex",
            "((((((((((t",
            "t*99999999999999999999",
            "(t*9999)*9999",
        ] {
            assert_eq!(chunks_of_string(wrong), None, "{wrong}");
        }
    }
}
