//! The job that a launch file and the user state, and what of it is known.

use super::{CheckError, Request, Unknown};
use crate::axis::Axis;
use crate::catalog;
use crate::export::Target;
use crate::instance::{self, Instance, Overrides};
use crate::launch::Facts;
use crate::layout::Checkpointing;
use crate::rules::Rule;
use crate::transformer::Transformer;
use crate::workload::Precision;

/// The shape of a network as facts.
pub(super) fn network(model: &Transformer) -> Facts {
    Facts::default()
        .with("model", Some(&model.name))
        .with("layers", Some(model.layers))
        .with("hidden", Some(model.hidden))
        .with("ffn", Some(model.feed_forward_width))
        .with("heads", Some(model.heads))
        .with("kv_heads", Some(model.key_value_heads))
        .with("mlp_matrices", Some(model.feed_forward.matrices()))
        .with("vocab", Some(model.vocabulary))
        .with("experts", model.experts.as_ref().map(|_| 1))
        .with("known_by_name", Some(true))
}

/// The network of the catalog that a file names: `llama3 8B` and `meta-llama/Llama-3-8B-Instruct` are
/// `llama-3-8b`.
pub(super) fn named_network(name: &str) -> Option<Transformer> {
    let last = name
        .rsplit('/')
        .next()?
        .to_lowercase()
        .replace([' ', '_'], "-");
    let mut preset = String::new();
    for c in last.chars() {
        if c.is_ascii_digit() && preset.ends_with(|last: char| last.is_ascii_alphabetic()) {
            preset.push('-');
        }
        preset.push(c);
    }
    let endings = ["", "-instruct", "-base", "-hf", "-chat", "-it"];
    let mut candidates = [&last, &preset].into_iter().flat_map(|name| {
        endings
            .iter()
            .filter_map(|ending| name.strip_suffix(ending))
    });
    candidates.find_map(|name| catalog::model(name).ok())
}

/// Most GPUs, and most model chunks of a stage, of any job.
const MOST_GPUS: u64 = 1 << 20;
const MOST_CHUNKS: u64 = 1 << 12;

/// The degrees that no cluster has, as they multiply.
pub(super) fn beyond_any_cluster(facts: &Facts) -> Option<u64> {
    let product = DEGREES
        .iter()
        .fold(1_u64, |all, column| all.saturating_mul(facts.one(column)));
    let is_beyond = product > MOST_GPUS || facts.one("virtual_stages") > MOST_CHUNKS;
    is_beyond.then_some(product)
}

const DEGREES: [&str; 4] = [
    "tensor_parallel",
    "pipeline_parallel",
    "context_parallel",
    "data_parallel",
];

/// What is known of a job.
pub(super) struct Known {
    missing: Vec<&'static str>,
    unknown_axes: Vec<Axis>,
    names_cluster: bool,
    is_modelled: bool,
}

/// Columns without which something cannot be said, with what they are and the argument that states them.
const NEEDED: &[(&str, &str, &str)] = &[
    ("layers", "the layers of the network", "--model"),
    ("hidden", "the shape of the network", "--model"),
    ("heads", "the attention heads", "--model"),
    ("kv_heads", "the key-value heads", "--model"),
    ("ffn", "the width of the feed-forward block", "--model"),
    ("vocab", "the vocabulary", "--set vocabulary=…"),
    ("gpus", "the number of GPUs", "--gpus"),
    ("seq_len", "the sequence length", "--sequence-length"),
    ("global_batch", "the global batch", "--global-batch"),
];

/// Axes that a file may leave to the program.
const LEFT: [Axis; 4] = [
    Axis::AttentionKernel,
    Axis::RmsNormKernel,
    Axis::DataParallel,
    Axis::Schedule,
];

impl Known {
    pub(super) fn new(facts: &Facts, request: &Request) -> Self {
        let missing = NEEDED.iter().map(|(column, ..)| *column);
        let is_experts =
            |axis: &Axis| matches!(axis, Axis::ExpertParallel | Axis::ExpertTensorParallel);
        let unknown = |axis: &Axis| {
            !LEFT.contains(axis) && !is_experts(axis) && facts.text(axis.as_str()).is_none()
        };
        let precision = facts.text("precision");
        let checkpointing = facts.text("checkpointing").unwrap_or("none");
        let says_layers = facts.text("checkpointed_full").is_some();
        Self {
            missing: missing
                .filter(|column| facts.text(column).is_none())
                .collect(),
            unknown_axes: Axis::ALL.into_iter().filter(unknown).collect(),
            names_cluster: request.names_cluster,
            is_modelled: precision.is_some_and(|it| Precision::parse(it).is_some())
                && (says_layers
                    || checkpointing == "selective"
                    || Checkpointing::parse(checkpointing).is_some())
                && facts.text("adapter").is_none()
                && (facts.text("experts").is_none() || facts.is_on("known_by_name"))
                && !facts.problems().iter().any(|it| it.rule == "not_modelled"),
        }
    }

    fn has(&self, column: &str) -> bool {
        !self.missing.contains(&column)
    }

    /// Whether every choice of the layout is known.
    pub(super) fn is_layout(&self) -> bool {
        self.unknown_axes.is_empty()
    }

    /// Whether everything is known that memory and time depend on.
    pub(super) fn is_all(&self) -> bool {
        self.missing.is_empty() && self.is_layout() && self.names_cluster && self.is_modelled
    }

    /// Whether the machine is known.
    pub(super) const fn cluster(&self) -> bool {
        self.names_cluster
    }

    /// Whether a rule can be judged.
    pub(super) fn judges(&self, rule: Rule) -> bool {
        let needed: &[&str] = match rule {
            Rule::GpuCount | Rule::GpusFillNodes => &["gpus"],
            Rule::HeadsDivisible => &["heads"],
            Rule::KeyValueHeadsDivisible => &["kv_heads"],
            Rule::GlobalBatchDivisible
            | Rule::InterleavingMicroBatches
            | Rule::InterleavingFillsPipeline => &["gpus", "global_batch"],
            Rule::SequenceDivisible => &["seq_len"],
            Rule::LayersCoverStages => &["layers"],
            Rule::SequenceParallelNeedsTensorParallel
            | Rule::InterleavingNeedsPipeline
            | Rule::FrameworkSupports => &[],
            _ => return self.is_all(),
        };
        let axes = rule.definition().axes;
        needed.iter().all(|column| self.has(column))
            && axes.iter().all(|axis| !self.unknown_axes.contains(axis))
    }

    /// What has to be stated, with the argument that does.
    pub(super) fn asked_for(&self, facts: &Facts) -> Vec<Unknown> {
        let mut asked: Vec<Unknown> = Vec::new();
        let mut ask = |what: &str, argument: String| {
            if !asked.iter().any(|it| it.argument == argument) {
                let what = what.to_owned();
                asked.push(Unknown { what, argument });
            }
        };
        for (key, written) in facts.unknown() {
            let shown = written.chars().take(40).collect::<String>();
            for name in variables(written) {
                ask(&format!("`{key}` is `{shown}`"), format!("--set {name}=…"));
            }
        }
        // A model has a vocabulary too.
        let has_shape = self.has("hidden") && self.has("layers");
        let is_asked = |column: &str| !self.has(column) && (column != "vocab" || has_shape);
        let needed = NEEDED.iter().filter(|(column, ..)| is_asked(column));
        for (_, what, argument) in needed {
            ask(what, (*argument).to_owned());
        }
        if !self.names_cluster {
            ask("the machine", "--cluster".to_owned());
        }
        for axis in &self.unknown_axes {
            ask(&format!("`{axis}`"), format!("--set {axis}=…"));
        }
        asked
    }
}

/// The names of variables in what a script says.
fn variables(written: &str) -> Vec<&str> {
    let names = written.split('$').skip(1).map(|part| {
        let part = part.trim_start_matches(['{', '(']);
        let end = part.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        &part[..end.unwrap_or(part.len())]
    });
    names
        .filter(|name| name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'))
        .collect()
}

/// The instance of the job. What is not known is such that no rule which reads it is judged.
pub(super) fn instance(
    facts: &Facts,
    target: Target,
    request: &Request,
) -> Result<Instance, CheckError> {
    let mut overrides = Overrides::none();
    let mut set = |key: &str, value: String| overrides.set(&format!("{key}={value}"));
    let one = |column: &str| facts.one(column);
    let gpus = DEGREES
        .iter()
        .fold(1_u64, |all, column| all.saturating_mul(one(column)));
    set(
        "cluster.gpus",
        facts
            .number("gpus")
            .unwrap_or(gpus)
            .clamp(1, 1 << 20)
            .to_string(),
    );
    if !request.names_cluster {
        set("cluster.preset", "\"dgx-h100-80gb\"".to_owned());
        if let Some(each) = facts
            .number("gpus_per_node")
            .filter(|each| (1..=1024).contains(each))
        {
            set("cluster.gpus_per_node", each.to_string());
        }
    }
    if request.model.is_none() {
        network_keys(facts, &mut set);
    }
    let sequence = facts.number("seq_len").unwrap_or_else(|| {
        (2048 * one("context_parallel") * one("tensor_parallel")).min(MOST_GPUS)
    });
    set("training.sequence_length", sequence.to_string());
    let batch = one("data_parallel") * one("micro_batch") * one("pipeline_parallel");
    set(
        "training.global_batch",
        facts
            .number("global_batch")
            .unwrap_or(batch.min(MOST_GPUS))
            .to_string(),
    );
    if let Some(precision) = facts
        .text("precision")
        .filter(|it| Precision::parse(it).is_some())
    {
        set("training.precision", format!("\"{precision}\""));
    }
    match facts.text("gradient_bytes") {
        Some("2") => set("training.gradients", "\"bf16\"".to_owned()),
        Some("4") => set("training.gradients", "\"fp32\"".to_owned()),
        _ => {}
    }
    set(
        "framework.preset",
        format!("\"{}\"", target.dialect().framework),
    );
    overrides.extend(&request.overrides);
    Ok(instance::from_flags(&overrides)?)
}

fn network_keys(facts: &Facts, set: &mut impl FnMut(&str, String)) {
    let one = |column: &str| facts.one(column);
    if facts.is_on("known_by_name") {
        set(
            "model.preset",
            format!("\"{}\"", facts.text("model").unwrap_or_default()),
        );
        return;
    }
    let heads = facts.number("heads").unwrap_or(8 * one("tensor_parallel"));
    let hidden = facts.number("hidden").unwrap_or(heads * 128);
    let layers = facts
        .number("layers")
        .unwrap_or(one("pipeline_parallel") * one("virtual_stages"));
    let width = facts
        .number("head_width")
        .unwrap_or((hidden / heads.max(1)).max(1));
    let keys = [
        ("layers", layers),
        ("hidden", hidden),
        ("heads", heads),
        ("key_value_heads", facts.number("kv_heads").unwrap_or(heads)),
        ("head_width", width),
        (
            "feed_forward_width",
            facts.number("ffn").unwrap_or(hidden * 4),
        ),
        ("vocabulary", facts.number("vocab").unwrap_or(32_000)),
    ];
    for (key, value) in keys {
        set(&format!("model.{key}"), value.to_string());
    }
    let is_plain = facts.number("mlp_matrices") == Some(2);
    set(
        "model.feed_forward",
        format!("\"{}\"", if is_plain { "plain" } else { "gated" }),
    );
    if facts.is_on("tied") {
        set("model.embeddings", "\"tied\"".to_owned());
    }
    if let Some(kind @ ("rmsnorm" | "layernorm")) = facts.text("normalization") {
        set("model.normalization", format!("\"{kind}\""));
    }
}
