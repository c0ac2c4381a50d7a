//! What is legal and costs people weeks.

use super::job::Known;
use super::{Finding, Level};
use crate::axis::Axis;
use crate::check::findings::columns;
use crate::export::Target;
use crate::framework::Partition;
use crate::instance::Instance;
use crate::launch::Facts;
use crate::layout::Layout;
use crate::rules::MEGATRON_LM;

type Lint = fn(&Facts, &Instance, &Layout, &Known) -> Option<Finding>;

/// Lints of every framework.
const ALL: &[Lint] = &[
    narrow_accumulation,
    wide_precision,
    across_domains,
    heavy_head,
    whole_sequence,
    adapter,
    vocabulary,
];

/// What is worth knowing of a layout that may be legal.
pub(super) fn all(
    facts: &Facts,
    there: &Instance,
    layout: &Layout,
    known: &Known,
    target: Target,
) -> Vec<Finding> {
    let mut found: Vec<Finding> = ALL
        .iter()
        .filter_map(|lint| lint(facts, there, layout, known))
        .collect();
    if target.dialect().framework == MEGATRON_LM.framework {
        found.extend(useless_recomputation(facts));
    }
    found
}

fn warning(rule: &str, message: String, repair: &str) -> Finding {
    let mut finding = Finding::new(Level::Warning, rule, message);
    finding.repair = Some(repair.to_owned());
    finding
}

/// Gradients of many micro-batches that are added in 16 bits lose small ones.
fn narrow_accumulation(
    facts: &Facts,
    there: &Instance,
    layout: &Layout,
    known: &Known,
) -> Option<Finding> {
    let count = layout
        .combination
        .micro_batches(there.job.workload.global_batch);
    let is_narrow = facts.text("gradient_bytes") == Some("2") && known.is_layout();
    let counted = facts.text("global_batch").is_some() && count > 1;
    let text =
        format!("gradients of {count} micro-batches are added in 16 bits, which loses small ones");
    let columns = [
        "megatron_narrow",
        "bridge_wide",
        "swift_narrow",
        "nanotron_wide",
        "neox_gradients",
        "deepspeed_gradients",
    ];
    (is_narrow && counted).then(|| {
        warning(
            "gradient_accumulation",
            text,
            "accumulate gradients in fp32, 2 bytes per parameter more",
        )
        .at(facts, &columns)
    })
}

/// Nothing asks for 16 bits.
fn wide_precision(facts: &Facts, _: &Instance, _: &Layout, _: &Known) -> Option<Finding> {
    let text =
        "matrix products are in fp32, at a fraction of the speed: nothing asks for bf16 or fp16";
    (facts.text("precision") == Some("fp32"))
        .then(|| warning("precision", text.to_owned(), "turn bf16 on").at(facts, &["precision"]))
}

/// Tensor parallelism over a slow network.
fn across_domains(
    facts: &Facts,
    there: &Instance,
    layout: &Layout,
    known: &Known,
) -> Option<Finding> {
    let degree = layout.combination.tensor_parallel;
    let cluster = &there.job.cluster;
    let is_known = known.cluster() || facts.text("gpus_per_node").is_some();
    let text = format!(
        "tensor parallelism of {degree} crosses NVLink domains of {}: every layer waits for the network twice",
        cluster.domain()
    );
    (is_known && !cluster.is_within_domain(degree)).then(|| {
        let repair = format!(
            "use at most {}, and pipeline or data parallelism across",
            cluster.domain()
        );
        warning("tensor_parallel_across_domains", text, &repair)
            .at(facts, columns(Axis::TensorParallel))
    })
}

/// The last stage has as many layers as the others, and the head too.
fn heavy_head(facts: &Facts, there: &Instance, layout: &Layout, _: &Known) -> Option<Finding> {
    const HEAVY: f64 = 0.5;
    facts.number("vocab").zip(facts.number("hidden"))?;
    let (last, others) = layout.stages.split_last()?;
    let most = others.iter().map(|stage| stage.layers).max()?;
    let transformer = &there.job.transformer;
    let attention = transformer.hidden
        * (2 * transformer.heads + 2 * transformer.key_value_heads)
        * transformer.head_width;
    let layer = attention
        + transformer.hidden * transformer.feed_forward_width * transformer.feed_forward.matrices();
    let head = (transformer.vocabulary * transformer.hidden) as f64 / layer as f64;
    let text = format!(
        "the last stage has {} layers, as many as the others, and the head, which computes as much as {head:.1} \
         layers: every other stage waits for it",
        last.layers
    );
    let is_heavy = last.layers >= most && head >= HEAVY && layer > 0;
    let repair = match there.job.framework.partition {
        Partition::Free => "give the last stage fewer layers",
        _ => "use fewer stages: the framework cuts the layers itself",
    };
    is_heavy.then(|| {
        warning("unbalanced_head", text, repair).at(facts, columns(Axis::PipelineParallel))
    })
}

/// Norms and residuals are kept by every rank.
fn whole_sequence(facts: &Facts, _: &Instance, layout: &Layout, _: &Known) -> Option<Finding> {
    let degree = layout.combination.tensor_parallel;
    let is_off = facts.text("sequence_parallel") == Some("false") && degree > 1;
    let can = facts.place("tensor_parallel").is_some() && facts.text("fsdp_is_on").is_none();
    let text = format!(
        "without sequence parallelism each of {degree} tensor-parallel ranks keeps norms and residuals whole"
    );
    let finding = Finding::new(Level::Note, "sequence_parallel", text);
    (is_off && can).then(|| finding.at(facts, columns(Axis::TensorParallel)))
}

/// Adapters train little of the network.
fn adapter(facts: &Facts, _: &Instance, _: &Layout, _: &Known) -> Option<Finding> {
    let kind = facts.text("adapter")?;
    let text = format!("`{kind}` trains adapters, whose memory and speed are not modelled");
    Some(Finding::new(Level::Note, "not_modelled", text).at(facts, &["adapter", "factory_tuning"]))
}

/// The vocabulary that the framework makes of the tokenizer's.
fn vocabulary(facts: &Facts, _: &Instance, layout: &Layout, _: &Known) -> Option<Finding> {
    let columns = ["vocabulary_multiple", "mds_multiple", "neox_multiple"];
    let multiple = columns.iter().find_map(|column| facts.number(column))?;
    let multiple = multiple.max(1) * u64::from(layout.combination.tensor_parallel);
    let own = facts.number("vocab")?;
    let padded = own.next_multiple_of(multiple);
    let text = format!(
        "the vocabulary is padded from {own} to {padded} entries, a multiple of {multiple}: checkpoints of another \
         padding do not load"
    );
    (padded != own).then(|| {
        Finding::new(Level::Note, "vocabulary_padding", text)
            .at(facts, &["vocab", "tensor_parallel"])
    })
}

/// Flash attention recomputes its core by itself.
fn useless_recomputation(facts: &Facts) -> Option<Finding> {
    let is_core = facts.text("checkpointing") == Some("selective");
    let is_unfused = matches!(
        facts.text("attention_kernel"),
        Some("torch" | "megatron-fused")
    );
    let text = "selective recomputation of the attention's core saves nothing with flash attention, which keeps no \
        matrix of scores";
    (is_core && !is_unfused).then(|| {
        warning(
            "useless_recomputation",
            text.to_owned(),
            "recompute `mlp` or whole layers, or nothing",
        )
        .at(facts, columns(Axis::Checkpointing))
    })
}
