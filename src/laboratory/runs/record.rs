//! A file of measured runs: one row a run, columns as in `data/README.md`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use csv::StringRecord;
use schemars::JsonSchema;
use serde::Serialize;

use super::columns::{self, Fields};
use super::table::{self, Row};
use crate::files::{self, Content, FileError};

/// Rows of a file with the header that names their fields.
#[derive(Debug, Clone)]
pub struct RunsFile {
    /// Names of the columns, as in the file.
    pub header: StringRecord,
    /// The rows.
    pub runs: Vec<Run>,
    /// What of the header may be a mistake, for people.
    pub warnings: Vec<String>,
}

/// Declares a run by the columns that a file must have and those that it may have: the field, and
/// how the column is read.
macro_rules! run {
    (
        necessary { $($(#[$doc:meta])+ $field:ident: $type:ty = $read:ident($column:literal);)+ }
        optional { $(
            $(#[$other_doc:meta])+
            $other:ident: $other_type:ty = $other_read:ident($name:literal $(, $limit:expr)*);
        )+ }
    ) => {
        /// One measured run. `None` and empty text mean that the source does not say.
        #[derive(Debug, Clone, PartialEq, Default)]
        pub struct Run {
            /// The row as it stands in the file.
            pub raw: StringRecord,
            /// The file that it was read from; empty for a run read from a log.
            pub file: String,
            /// Line in the file, from 1, which is the header; 0 for a run read from a log.
            pub line: u64,
            /// What is wrong with the row, if a field holds something else than its column does, or
            /// if its fields cannot be told apart. Such fields count as empty.
            pub fault: Option<String>,
            $($(#[$doc])+ pub $field: $type,)+
            $($(#[$other_doc])+ pub $other: $other_type,)+
        }

        /// Columns without which no row can be modelled.
        pub(super) const NECESSARY: &[&str] = &[$($column),+];
        /// Other columns with a meaning.
        pub(super) const OPTIONAL: &[&str] = &[$($name,)+ "grade"];
        /// Columns of what is not modelled, or of how a figure was found.
        pub(super) const UNUSED: &[&str] = &[
            "lora_rank", "derived",
        ];

        fn parse(fields: &Fields) -> Run {
            Run {
                $($field: fields.$read($column),)+
                $($other: fields.$other_read($name $(, $limit)*),)+
                ..Run::default()
            }
        }
    };
}

run! {
    necessary {
        /// Layers.
        layers: Option<u32> = degree("layers");
        /// Hidden size.
        hidden: Option<u64> = size("hidden");
        /// Feed-forward width.
        feed_forward_width: Option<u64> = size("ffn");
        /// Attention heads.
        heads: Option<u64> = size("heads");
        /// Vocabulary.
        vocabulary: Option<u64> = size("vocab");
        /// GPU.
        gpu: String = lower_case("gpu");
        /// GPUs.
        gpus: Option<u32> = degree("gpus");
        /// Tokens of a sequence.
        sequence_length: Option<u64> = size("seq_len");
        /// Sequences of a step.
        global_batch: Option<u64> = size("global_batch");
        /// Sequences of a micro-batch.
        micro_batch: Option<u32> = degree("micro_batch");
        /// Tensor-parallel degree.
        tensor_parallel: Option<u32> = degree("tensor_parallel");
        /// Pipeline stages.
        pipeline_parallel: Option<u32> = degree("pipeline_parallel");
        /// Data-parallel replicas.
        data_parallel: Option<u32> = degree("data_parallel");
        /// How the run ended.
        status: Status = status("status");
    }
    optional {
        /// Where the run comes from.
        source: String = text("source");
        /// Runs of one group share network, GPUs, sequence length and global batch.
        group: String = text("group");
        /// The source's name of the run.
        run: String = text("run");
        /// Framework of the catalog, where the row states it.
        framework: String = text("framework");
        /// Framework and release as the source states them.
        software: String = text("software");
        /// Name of the network.
        model: String = text("model");
        /// Width of a head, where it is not the hidden size over the heads.
        head_width: Option<u64> = size("head_dim");
        /// Key-value heads.
        key_value_heads: Option<u64> = size("kv_heads");
        /// 3 for a gated feed-forward block, 2 for a plain one.
        mlp_matrices: Option<u32> = degree("mlp_matrices");
        /// Whether embedding and head share their weights.
        tied_embeddings: Option<bool> = switch("tied_embeddings");
        /// Tokens that attention looks back; 0 = all.
        sliding_window: Option<u64> = size("sliding_window");
        /// Rank of compressed keys and values under multi-head latent attention.
        key_value_rank: Option<u64> = size("kv_lora");
        /// Layers for multi-token prediction.
        prediction_layers: Option<u32> = degree("mtp_layers");
        /// Rank of compressed queries; 0 = they are projected at once.
        query_rank: Option<u64> = size("q_lora");
        /// Width of a head's part that is not rotated under latent attention.
        unrotated_width: Option<u64> = size("qk_nope_dim");
        /// Width of its rotated part.
        rotated_width: Option<u64> = size("qk_rope_dim");
        /// Width of its values.
        value_width: Option<u64> = size("v_head_dim");
        /// Experts of a mixture.
        experts: Option<u32> = degree("experts");
        /// Experts of a token.
        experts_per_token: Option<u64> = size("experts_per_token");
        /// Width of a routed expert, where it is not the feed-forward width.
        expert_width: Option<u64> = size("expert_ffn");
        /// Width of all shared experts.
        shared_expert_width: Option<u64> = size("shared_ffn");
        /// Feed-forward width of dense layers beside those with experts.
        dense_width: Option<u64> = size("dense_ffn");
        /// Leading dense layers.
        dense_layers: Option<u32> = degree("dense_layers");
        /// Layers with experts.
        expert_layers: Option<u32> = degree("moe_layers");
        /// GPUs per node.
        gpus_per_node: Option<u32> = degree("gpus_per_node");
        /// GPUs of an `NVLink` domain.
        nvlink_domain: Option<u32> = degree("nvlink_domain");
        /// Line rate of all network ports of a node in one direction, GB/s.
        node_bandwidth: Option<f64> = bandwidth("node_bandwidth_gb_s");
        /// Measured bus bandwidth between nodes, GB/s.
        internode_allreduce: Option<f64> = bandwidth("internode_allreduce_gb_s");
        /// Measured bus bandwidth within a node, GB/s.
        intranode_allreduce: Option<f64> = bandwidth("intranode_allreduce_gb_s");
        /// Context-parallel degree.
        context_parallel: Option<u32> = degree("context_parallel");
        /// Expert-parallel degree.
        expert_parallel: Option<u32> = degree("expert_parallel");
        /// Expert-tensor-parallel degree.
        expert_tensor_parallel: Option<u32> = degree("expert_tensor_parallel");
        /// How tokens are sent to experts.
        dispatcher: String = lower_case("moe_dispatcher");
        /// Modules that are recomputed, separated by blanks.
        recompute_modules: String = lower_case("recompute_modules");
        /// Model chunks a pipeline rank.
        virtual_stages: Option<u32> = degree("virtual_stages");
        /// Pipeline schedule.
        schedule: String = text("schedule");
        /// Sequence parallelism.
        sequence_parallel: Option<bool> = switch("sequence_parallel");
        /// `none`, `full` or `selective`.
        checkpointing: String = text("checkpointing");
        /// What replicas split.
        sharding: String = text("sharding");
        /// Number format.
        precision: String = text("precision");
        /// Bytes of a gradient.
        gradient_bytes: Option<f64> = number("gradient_bytes", 16.0, "");
        /// Implementation of attention.
        attention_kernel: String = text("attention_kernel");
        /// Whether `RMSNorm` is fused.
        rmsnorm_kernel: Option<bool> = switch("rmsnorm_kernel");
        /// What was trained: `pretrain`, `sft`, `lora`, `qlora`.
        task: String = lower_case("task");
        /// What was kept on the host.
        offload: String = lower_case("offload");
        /// Whether experts were forced to be used alike.
        load_balance: String = text("load_balance");
        /// What else distinguishes rows that look alike.
        variant: String = text("variant");
        /// Measured step time, seconds.
        step_time: Option<f64> = number("step_time_s", 1e6, " of seconds");
        /// Measured peak memory, GiB.
        peak_memory: Option<f64> = number("peak_memory_gib", 1e5, " of GiB");
        /// Memory of weights, gradients and optimizer states on that stage, GiB.
        static_memory: Option<f64> = number("static_memory_gib", 1e5, " of GiB");
        /// The pipeline stage (from 0) that the measured memory is of.
        peak_stage: Option<u32> = degree("peak_stage");
        /// Measured utilisation by the paper's convention: formats of 8 bits may exceed 1, percents
        /// exceed 2.
        mfu: Option<f64> = number("mfu", 2.0, "");
        /// Whether the speed is representative.
        timing_usable: bool = usually_true("timing_usable");
    }
}

impl Run {
    /// The run whose columns say this.
    pub(crate) fn new<'a>(field: impl Fn(&str) -> Option<&'a str>) -> Self {
        let fields = Fields::new(&field);
        let run = parse(&fields);
        Self {
            fault: fields.into_fault(),
            ..run
        }
    }

    /// Where the run stands.
    #[must_use]
    pub fn place(&self) -> Place {
        Place {
            file: Some(self.file.clone()).filter(|file| !file.is_empty()),
            line: Some(self.line).filter(|&line| line > 0),
            run: format!("{} {}", self.source, self.run).trim().to_owned(),
        }
    }
}

/// Where a run stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Place {
    /// The file of runs; null for a log.
    pub file: Option<String>,
    /// Line in the file of runs; null for a log.
    pub line: Option<u64>,
    /// Source and run.
    pub run: String,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match (&self.file, self.line, self.run.as_str()) {
            (Some(file), Some(line), "") => write!(f, "`{file}` line {line}"),
            (Some(file), Some(line), run) => write!(f, "`{file}` line {line} ({run})"),
            (_, _, run) => f.write_str(run),
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Status {
    /// It trained.
    Ok,
    /// It ran out of memory.
    OutOfMemory,
    /// Something else (`error`, `kernel_unavailable`): it says nothing about memory or time.
    Other,
    /// Nobody knows: the source does not say, or the row cannot be read.
    #[default]
    Unstated,
}

impl Status {
    /// How a run ended, if it ended in a way that is known.
    pub(super) fn parse(text: &str) -> Option<Self> {
        Some(match text.to_ascii_lowercase().as_str() {
            "" => Self::Unstated,
            "ok" => Self::Ok,
            "oom" => Self::OutOfMemory,
            "error" | "kernel_unavailable" => Self::Other,
            _ => return None,
        })
    }
}

/// Why a file of runs cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RunsError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file is not CSV, and why.
    #[error("`{}` is not a table of comma-separated values: {cause}", .0.display(), cause = .1)]
    Csv(PathBuf, String),
    /// These columns are missing.
    #[error("`{}` lacks the columns {}", .0.display(), .1.join(", "))]
    Columns(PathBuf, Vec<String>),
    /// These columns stand in the header more than once.
    #[error("`{}` has more than one column {}\nhint: keep one of each", .0.display(), .1.join(", "))]
    Repeated(PathBuf, Vec<String>),
    /// There is no row below the header.
    #[error("`{}` has a header and no runs", .0.display())]
    Empty(PathBuf),
}

/// Reads a file of runs.
///
/// # Errors
///
/// When the file cannot be read, is too large, lacks a necessary column, has one twice, or has no
/// rows. A field that holds something else than its column does is a fault of its row alone, and so
/// is a row of too many or too few fields.
pub fn read(path: &Path) -> Result<RunsFile, RunsError> {
    let owned = || path.to_owned();
    let text = files::read(path, Content::Runs)?;
    let (header, rows) = table::read(&text).map_err(|cause| RunsError::Csv(owned(), cause))?;
    let repeated = columns::repeated(&header);
    if !repeated.is_empty() {
        return Err(RunsError::Repeated(owned(), repeated));
    }
    let missing = columns::missing(&header);
    if !missing.is_empty() {
        return Err(RunsError::Columns(owned(), missing));
    }
    if rows.is_empty() {
        return Err(RunsError::Empty(owned()));
    }
    let file = path.display().to_string();
    let names = header.iter().enumerate();
    let positions: HashMap<&str, usize> = names.map(|(index, name)| (name, index)).collect();
    let runs = rows.into_iter().map(|row| run(&file, &positions, row));
    Ok(RunsFile {
        runs: runs.collect(),
        warnings: columns::misspelt(&header),
        header,
    })
}

/// The run of a row. Of a row whose fields cannot be told apart nothing is taken.
fn run(file: &str, positions: &HashMap<&str, usize>, row: Row) -> Run {
    let run = Run::new(|column| {
        let index = positions.get(column).filter(|_| row.fault.is_none());
        row.fields.get(*index?)
    });
    Run {
        file: file.to_owned(),
        line: row.line,
        fault: row.fault.or(run.fault),
        raw: row.fields,
        ..run
    }
}
