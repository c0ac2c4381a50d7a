//! The network of a measured run, and what of a run the cost model does not know.

use crate::catalog;
use crate::transformer::{
    Biases, Embeddings, Experts, FeedForward, LatentAttention, Normalization, Numerics, SmallParts,
    Transformer, Windows,
};

use super::model_run::{Skip, demand, stated};
use super::record::Run;

/// More layers than any network has: a mistake.
const MOST_LAYERS: u32 = 1024;

/// Vocabulary assumed where a source names none: that of GPT-2, padded.
const USUAL_VOCABULARY: u64 = 50_304;

/// Refuses a run of what the cost model does not know: it would be predicted as another run. Its network
/// is read all the same.
pub(super) fn demand_modelled(run: &Run) -> Result<(), Skip> {
    let adapters = matches!(run.task.as_str(), "lora" | "qlora");
    let moves = !matches!(run.offload.as_str(), "" | "none");
    let windows = run.sliding_window.is_some_and(|tokens| tokens > 0)
        || has_preset(run, |named| named.windows.is_some());
    let unknown = [
        (
            windows && !has_experts(run),
            "sliding-window attention of dense networks is",
        ),
        (adapters, "adapters (LoRA) are"),
        (moves, "offload to the host is"),
    ];
    match unknown.into_iter().find(|(is_used, _)| *is_used) {
        Some((_, what)) => Err(Skip(format!("{what} not modelled"))),
        None => Ok(()),
    }
}

/// Whether a run trained a mixture of experts.
pub(super) fn has_experts(run: &Run) -> bool {
    run.experts.is_some_and(|count| count > 1) || has_preset(run, |named| named.experts.is_some())
}

/// Whether the preset that a row names instead of a shape is so.
fn has_preset(run: &Run, is_so: fn(&Transformer) -> bool) -> bool {
    let named = named(run).and_then(Result::ok);
    named.as_ref().is_some_and(is_so)
}

/// The preset that a row names which states no shape.
fn named(run: &Run) -> Option<Result<Transformer, Skip>> {
    let sizes = [run.layers.map(u64::from), run.hidden, run.heads];
    let unknown = |_| Skip("no shape stated, and `model` names no preset".to_owned());
    let is_named = !run.model.is_empty() && sizes.iter().all(Option::is_none);
    is_named.then(|| catalog::model(&run.model.to_lowercase()).map_err(unknown))
}

/// The network of a row: its shape; without one, the preset that it names.
pub(super) fn transformer(run: &Run) -> Result<Transformer, Skip> {
    let positive = |count: Option<u64>| count.filter(|&count| count > 0);
    if let Some(named) = named(run) {
        let mut named = named?;
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
    let experts = experts(run, layers)?;
    let latent_attention = latent_attention(run)?;
    let parts = latent_attention.map(|latent| latent.unrotated_width + latent.rotated_width);
    Ok(Transformer {
        name: run.model.clone(),
        layers,
        hidden,
        heads,
        key_value_heads,
        head_width: parts.or(own_width).unwrap_or(hidden / heads),
        feed_forward_width: match experts {
            None => stated(run.feed_forward_width, "feed-forward width")?,
            Some(it) if it.dense_layers == 0 && it.expert_interval == 1 => 0,
            Some(_) => stated(run.dense_width, "feed-forward width of dense layers")?,
        },
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
        experts,
        latent_attention,
        windows: windows(run),
        prediction_layers: run.prediction_layers.unwrap_or(0),
        small_parts: SmallParts::default(),
        numerics: Numerics::USUAL,
    })
}

/// The experts of a row that has more than one: `ffn` is the width of one unless `expert_ffn` states it,
/// and layers with experts are spread evenly behind the leading dense ones.
fn experts(run: &Run, layers: u32) -> Result<Option<Experts>, Skip> {
    let Some(count) = run.experts.filter(|&count| count > 1) else {
        return Ok(None);
    };
    let used = stated(run.experts_per_token, "experts of a token")?;
    demand(used <= count.into(), || {
        format!("{used} experts of a token are more than {count}")
    })?;
    let dense_layers = run.dense_layers.unwrap_or(0);
    demand(dense_layers < layers, || {
        format!("{dense_layers} dense layers leave none of {layers} with experts")
    })?;
    let rest = layers - dense_layers;
    let with_experts = run.expert_layers.filter(|&count| count > 0).unwrap_or(rest);
    demand(rest.is_multiple_of(with_experts), || {
        format!("{with_experts} layers with experts are not every so many-th of {rest}")
    })?;
    let own_width = run.expert_width.filter(|&width| width > 0);
    Ok(Some(Experts {
        experts: count.into(),
        experts_per_token: used,
        expert_width: stated(own_width.or(run.feed_forward_width), "width of an expert")?,
        shared_expert_width: run.shared_expert_width.unwrap_or(0),
        dense_layers,
        expert_interval: rest / with_experts,
        router_biases: 0,
        shared_expert_gates: 0,
    }))
}

/// Latent attention of a row that states its rank.
fn latent_attention(run: &Run) -> Result<Option<LatentAttention>, Skip> {
    let Some(key_value_rank) = run.key_value_rank.filter(|&rank| rank > 0) else {
        return Ok(None);
    };
    Ok(Some(LatentAttention {
        query_rank: run.query_rank.unwrap_or(0),
        key_value_rank,
        unrotated_width: stated(run.unrotated_width, "width of a head that is not rotated")?,
        rotated_width: stated(run.rotated_width, "rotated width of a head")?,
        value_width: stated(run.value_width, "width of a head's values")?,
    }))
}

/// The windows of a row. Rows do not say which layers see the whole sequence: those that do in the preset
/// of the network's name, none without one.
fn windows(run: &Run) -> Option<Windows> {
    let window = run.sliding_window.filter(|&tokens| tokens > 0)?;
    let named = catalog::model(&run.model.to_lowercase()).ok();
    let interval = named.and_then(|named| Some(named.windows?.window_interval));
    Some(Windows {
        window,
        window_interval: interval.unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The network of a row with these columns.
    fn network(columns: &[(&str, &str)]) -> Result<Transformer, Skip> {
        let run = Run::new(|name| {
            let mut columns = columns.iter();
            columns
                .find(|(column, _)| *column == name)
                .map(|(_, value)| *value)
        });
        transformer(&run)
    }

    const DEEPSEEK_V3: &[(&str, &str)] = &[
        ("layers", "61"),
        ("hidden", "7168"),
        ("ffn", "2048"),
        ("heads", "128"),
        ("kv_heads", "128"),
        ("mlp_matrices", "3"),
        ("vocab", "129280"),
        ("experts", "256"),
        ("experts_per_token", "8"),
        ("dense_ffn", "18432"),
        ("dense_layers", "3"),
        ("moe_layers", "58"),
        ("expert_ffn", "2048"),
        ("shared_ffn", "2048"),
        ("q_lora", "1536"),
        ("kv_lora", "512"),
        ("qk_nope_dim", "128"),
        ("qk_rope_dim", "64"),
        ("v_head_dim", "128"),
        ("mtp_layers", "1"),
    ];

    #[test]
    fn a_row_with_experts_is_its_preset_but_for_small_parts() {
        let row = network(DEEPSEEK_V3).expect("it is complete");
        let preset = catalog::model("deepseek-v3").expect("it is in the catalog");
        let router_biases = 0;
        let experts = preset.experts.map(|it| Experts {
            router_biases,
            ..it
        });
        assert_eq!(row.experts, experts);
        assert_eq!(row.latent_attention, preset.latent_attention);
        assert_eq!(row.matrix_weights(), preset.matrix_weights());
    }

    #[test]
    fn every_second_layer_may_have_experts() {
        let mut columns = DEEPSEEK_V3.to_vec();
        columns.extend([("model", "other")]);
        let changed = |changes: &[(&'static str, &'static str)]| {
            let kept = columns
                .iter()
                .filter(|(name, _)| changes.iter().all(|(other, _)| other != name));
            network(&kept.chain(changes).copied().collect::<Vec<_>>())
        };
        let interval = |changes: &[(&'static str, &'static str)]| {
            let experts = changed(changes).map(|network| network.experts.expect("it has some"));
            experts.map(|experts| experts.expert_interval)
        };
        assert_eq!(interval(&[("moe_layers", "29")]), Ok(2));
        let message = interval(&[("moe_layers", "40")]).expect_err("not even").0;
        assert!(message.contains("40 layers with experts"), "{message}");
        let message = changed(&[("experts_per_token", "300")])
            .expect_err("too many")
            .0;
        assert!(message.contains("more than 256"), "{message}");
        assert!(changed(&[("dense_layers", "61")]).is_err());
        assert!(changed(&[("v_head_dim", "")]).is_err());
    }
}
