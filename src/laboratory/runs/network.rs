//! The network of a measured run, and what of a run the cost model does not know.

use crate::catalog;
use crate::transformer::{
    Biases, Embeddings, FeedForward, Normalization, Numerics, SmallParts, Transformer,
};

use super::model_run::{Skip, demand, stated};
use super::record::Run;

/// More layers than any network has: a mistake.
const MOST_LAYERS: u32 = 1024;

/// Vocabulary assumed where a source names none: that of GPT-2, padded.
const USUAL_VOCABULARY: u64 = 50_304;

/// Refuses a run of what the cost model does not know: it would be predicted as another run.
pub(super) fn demand_modelled(run: &Run) -> Result<(), Skip> {
    let more = |count: Option<u64>, least: u64| count.is_some_and(|count| count > least);
    let adapters = matches!(run.task.as_str(), "lora" | "qlora");
    let moves = !matches!(run.offload.as_str(), "" | "none");
    let unknown = [
        (
            more(run.experts.map(u64::from), 1),
            "mixtures of experts are",
        ),
        (
            more(run.key_value_rank, 0),
            "multi-head latent attention is",
        ),
        (more(run.sliding_window, 0), "sliding-window attention is"),
        (
            more(run.prediction_layers.map(u64::from), 0),
            "multi-token prediction is",
        ),
        (adapters, "adapters (LoRA) are"),
        (moves, "offload to the host is"),
    ];
    match unknown.into_iter().find(|(is_used, _)| *is_used) {
        Some((_, what)) => Err(Skip(format!("{what} not modelled"))),
        None => Ok(()),
    }
}

/// The network of a row: its shape; without one, the preset that it names.
pub(super) fn transformer(run: &Run) -> Result<Transformer, Skip> {
    let positive = |count: Option<u64>| count.filter(|&count| count > 0);
    let sizes = [run.layers.map(u64::from), run.hidden, run.heads];
    if !run.model.is_empty() && sizes.iter().all(Option::is_none) {
        let unknown = |_| Skip("no shape stated, and `model` names no preset".to_owned());
        let mut named = catalog::model(&run.model.to_lowercase()).map_err(unknown)?;
        named.vocabulary = positive(run.vocabulary).unwrap_or(named.vocabulary);
        return Ok(named);
    }
    let heads = stated(run.heads, "heads")?;
    let hidden = stated(run.hidden, "hidden size")?;
    let key_value_heads = positive(run.key_value_heads).unwrap_or(heads);
    let layers = stated(run.layers, "layers")?;
    demand(layers <= MOST_LAYERS, || {
        format!("{layers} layers are more than {MOST_LAYERS}")
    })?;
    let own_width = positive(run.head_width);
    demand(own_width.is_some() || hidden.is_multiple_of(heads), || {
        format!("{heads} heads do not divide a hidden size of {hidden}")
    })?;
    demand(heads.is_multiple_of(key_value_heads), || {
        format!("{key_value_heads} key-value heads do not divide {heads} heads")
    })?;
    Ok(Transformer {
        name: run.model.clone(),
        layers,
        hidden,
        heads,
        key_value_heads,
        head_width: own_width.unwrap_or(hidden / heads),
        feed_forward_width: stated(run.feed_forward_width, "feed-forward width")?,
        feed_forward: match run.mlp_matrices {
            Some(2) => FeedForward::Plain,
            None | Some(0 | 3) => FeedForward::Gated,
            Some(other) => {
                let reason = format!("{other} feed-forward matrices are not modelled");
                return Err(Skip(reason));
            }
        },
        vocabulary: positive(run.vocabulary).unwrap_or(USUAL_VOCABULARY),
        embeddings: match run.tied_embeddings {
            Some(true) => Embeddings::Tied,
            Some(false) | None => Embeddings::Untied,
        },
        normalization: Normalization::RmsNorm,
        biases: Biases::None,
        learned_positions: 0,
        experts: None,
        latent_attention: None,
        prediction_layers: 0,
        small_parts: SmallParts::default(),
        numerics: Numerics::USUAL,
    })
}
