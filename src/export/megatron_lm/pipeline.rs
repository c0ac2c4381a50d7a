//! Layers by pipeline stage as flags: equal, first and last apart, or a layout string.

use super::Flags;
use crate::cost_model::pipeline::chunks_in_order;
use crate::layout::Layout;

/// How the layers of the stages can be said.
#[derive(Debug, PartialEq, Eq)]
enum Split {
    /// Every stage has the same number.
    Equal,
    /// First and last stage have their own number, where given.
    FirstAndLast(Option<u32>, Option<u32>),
    /// Any other distribution.
    List,
}

pub(super) fn flags(layout: &Layout, micro_batches: u64, flags: &mut Flags) {
    group_size(layout, micro_batches, flags);
    let layers: Vec<u32> = layout.stages.iter().map(|stage| stage.layers).collect();
    let virtual_stages = layout.combination.virtual_stages;
    let split = split(&layers);
    // Chunks of an interleaved stage hold the same number of layers unless a string lists them.
    let even_chunks = layers
        .iter()
        .all(|layers| layers.is_multiple_of(virtual_stages));
    if split == Split::List || !even_chunks {
        let string = layout_string(&chunks_in_order(&layout.combination, &layers));
        flags.value("pipeline-model-parallel-layout", format!("\"{string}\""));
        return;
    }
    if virtual_stages > 1 {
        flags.value("num-virtual-stages-per-pipeline-rank", virtual_stages);
    }
    if let Split::FirstAndLast(first, last) = split {
        for (name, count) in [("first", first), ("last", last)] {
            if let Some(count) = count {
                flags.value(&format!("decoder-{name}-pipeline-num-layers"), count);
            }
        }
    }
}

/// Interleaving takes micro-batches in groups, by default as many as stages. Where that leaves
/// a rest smaller than the number of stages, Megatron-LM wants another group size.
fn group_size(layout: &Layout, micro_batches: u64, flags: &mut Flags) {
    let stages = u64::from(layout.combination.pipeline_parallel);
    if layout.combination.virtual_stages == 1 {
        return;
    }
    let fits =
        |group: &u64| micro_batches.is_multiple_of(*group) || micro_batches % group >= stages;
    if let Some(group) = (stages..=micro_batches).find(fits)
        && group != stages
    {
        flags.value("microbatch-group-size-per-virtual-pipeline-stage", group);
        flags.comment(format!(
            "{micro_batches} micro-batches do not divide by {stages} stages: they run in groups of \
             {group}, which keeps more activations than predicted."
        ));
    }
}

fn split(layers: &[u32]) -> Split {
    let [first, middle @ .., last] = layers else {
        return Split::Equal;
    };
    // With two stages the last one is what the first leaves.
    let &usual = middle.first().unwrap_or(last);
    if middle.iter().any(|&layers| layers != usual) {
        return Split::List;
    }
    let apart = |&layers: &u32| (layers != usual).then_some(layers);
    match (apart(first), apart(last)) {
        (None, None) => Split::Equal,
        // A stage without layers is only possible in a string.
        (Some(0), _) | (_, Some(0)) => Split::List,
        (first, last) => Split::FirstAndLast(first, last),
    }
}

/// Stages between bars: `E` the embedding, `t` a layer, `L` the loss; `x*n` repeats.
fn layout_string(chunks: &[u32]) -> String {
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
    string.push('L');
    string
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expands a layout string as Megatron-LM does: groups first, then single letters.
    fn expand(string: &str) -> Vec<String> {
        let mut text = string.replace(',', "");
        while let Some(open) = text.find('(') {
            let close = open + text[open..].find(')').expect("a group ends");
            let body = text[open + 1..close].to_owned();
            let (count, end) = number_after(&text, close + 2);
            text.replace_range(open..end, &body.repeat(count));
        }
        while let Some(star) = text.find('*') {
            let letter = text[star - 1..star].to_owned();
            let (count, end) = number_after(&text, star + 1);
            text.replace_range(star - 1..end, &letter.repeat(count));
        }
        text.split('|').map(str::to_owned).collect()
    }

    fn number_after(text: &str, start: usize) -> (usize, usize) {
        let digits = text[start..]
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len() - start);
        let end = start + digits;
        (text[start..end].parse().expect("a count"), end)
    }

    #[test]
    fn splits_use_the_simplest_flags() {
        let check = |layers: &[u32], expected: Split| assert_eq!(split(layers), expected);
        check(&[40], Split::Equal);
        check(&[20, 20], Split::Equal);
        check(&[21, 19], Split::FirstAndLast(Some(21), None));
        check(&[7, 8, 8, 7], Split::FirstAndLast(Some(7), Some(7)));
        check(&[7, 8, 8, 8], Split::FirstAndLast(Some(7), None));
        check(&[8, 8, 8, 7], Split::FirstAndLast(None, Some(7)));
        check(&[8, 8, 7, 7], Split::List);
        check(&[0, 8, 8], Split::List);
    }

    #[test]
    fn a_layout_string_lists_every_stage() {
        let check = |layers: &[u32], virtual_stages: u32, expected: &str| {
            let combination = crate::layout::Combination {
                pipeline_parallel: layers.len() as u32,
                virtual_stages,
                ..crate::fixture::llama_13b_layout().combination
            };
            let chunks = chunks_in_order(&combination, layers);
            let string = layout_string(&chunks);
            assert_eq!(string, expected);
            let stages = expand(&string);
            assert_eq!(stages.len(), chunks.len());
            for (stage, &layers) in stages.iter().zip(&chunks) {
                assert_eq!(stage.matches('t').count(), layers as usize);
            }
            assert!(stages[0].starts_with('E'));
            assert!(stages[stages.len() - 1].ends_with('L'));
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
    }
}
