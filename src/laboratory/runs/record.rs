//! A file of measured runs: one row a run, columns as in `data/README.md`.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use csv::StringRecord;

use super::columns::{self, Columns, Fields};
use super::table::{self, Row};

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

/// One measured run. `None` and empty text mean that the source does not say.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The row as it stands in the file.
    pub raw: StringRecord,
    /// The file that it was read from; empty for a run read from a log.
    pub file: String,
    /// Line in the file, from 1, which is the header; 0 for a run read from a log.
    pub line: u64,
    /// What is wrong with the row, if a field holds something else than its column does, or if its
    /// fields cannot be told apart. Such fields count as empty.
    pub fault: Option<String>,
    /// Where the run comes from.
    pub source: String,
    /// Runs of one group share network, GPUs, sequence length and global batch.
    pub group: String,
    /// The source's name of the run.
    pub run: String,
    /// Framework, where the file has such a column.
    pub framework: String,
    /// Name of the network.
    pub model: String,
    /// Layers.
    pub layers: Option<u32>,
    /// Hidden size.
    pub hidden: Option<u64>,
    /// Feed-forward width.
    pub feed_forward_width: Option<u64>,
    /// Attention heads.
    pub heads: Option<u64>,
    /// Key-value heads.
    pub key_value_heads: Option<u64>,
    /// 3 for a gated feed-forward block, 2 for a plain one.
    pub mlp_matrices: Option<u32>,
    /// Vocabulary.
    pub vocabulary: Option<u64>,
    /// Experts of a mixture.
    pub experts: Option<u32>,
    /// GPU.
    pub gpu: String,
    /// GPUs.
    pub gpus: Option<u32>,
    /// GPUs a node.
    pub gpus_per_node: Option<u32>,
    /// Measured bus bandwidth between nodes, GB/s.
    pub internode_allreduce: Option<f64>,
    /// Measured bus bandwidth within a node, GB/s.
    pub intranode_allreduce: Option<f64>,
    /// Tokens of a sequence.
    pub sequence_length: Option<u64>,
    /// Sequences of a step.
    pub global_batch: Option<u64>,
    /// Sequences of a micro-batch.
    pub micro_batch: Option<u32>,
    /// Tensor-parallel degree.
    pub tensor_parallel: Option<u32>,
    /// Pipeline stages.
    pub pipeline_parallel: Option<u32>,
    /// Context-parallel degree.
    pub context_parallel: Option<u32>,
    /// Expert-parallel degree.
    pub expert_parallel: Option<u32>,
    /// Model chunks a pipeline rank.
    pub virtual_stages: Option<u32>,
    /// Data-parallel replicas.
    pub data_parallel: Option<u32>,
    /// Pipeline schedule.
    pub schedule: String,
    /// Sequence parallelism.
    pub sequence_parallel: Option<bool>,
    /// `none`, `full` or `selective`.
    pub checkpointing: String,
    /// What replicas split.
    pub sharding: String,
    /// Number format.
    pub precision: String,
    /// Bytes of a gradient.
    pub gradient_bytes: Option<f64>,
    /// Implementation of attention.
    pub attention_kernel: String,
    /// Whether `RMSNorm` is fused.
    pub rmsnorm_kernel: Option<bool>,
    /// What else distinguishes rows that look alike.
    pub variant: String,
    /// How the run ended.
    pub status: Status,
    /// Measured step time, seconds.
    pub step_time: Option<f64>,
    /// Measured peak memory, GiB.
    pub peak_memory: Option<f64>,
    /// The pipeline stage (from 0) that the peak is of.
    pub peak_stage: Option<u32>,
    /// Measured utilisation by the paper's convention.
    pub mfu: Option<f64>,
    /// Whether the speed is representative.
    pub timing_usable: bool,
}

impl Run {
    /// Source and name, for people.
    #[must_use]
    pub fn label(&self) -> String {
        format!("{} {}", self.source, self.run).trim().to_owned()
    }

    /// Where the run stands, for people: file and line, with its name if it has one; for a run read
    /// from a log its name.
    #[must_use]
    pub fn place(&self) -> String {
        place(&self.file, self.line, &self.label())
    }
}

/// Where the run of this name stands: see [`Run::place`].
#[must_use]
pub fn place(file: &str, line: u64, name: &str) -> String {
    match (line, name.is_empty()) {
        (0, _) => name.to_owned(),
        (_, true) => format!("`{file}` line {line}"),
        (_, false) => format!("`{file}` line {line} ({name})"),
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It trained.
    Ok,
    /// It ran out of memory.
    OutOfMemory,
    /// Something else (`error`, `kernel_unavailable`): it says nothing about memory or time.
    Other,
    /// Nobody knows: the source does not say, or the row cannot be read.
    Unstated,
}

impl Status {
    /// How a run ended, if it ended in a way that is known.
    fn parse(text: &str) -> Option<Self> {
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
    /// The file cannot be opened.
    #[error("cannot read `{}`: {cause}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// The file is not CSV.
    #[error("`{}` is not a table of comma-separated values: {cause}", path.display())]
    Csv {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        cause: String,
    },
    /// Columns are missing.
    #[error("`{}` lacks the columns {}", path.display(), columns.join(", "))]
    Columns {
        /// The file.
        path: PathBuf,
        /// The missing columns.
        columns: Vec<String>,
    },
    /// Columns stand in the header more than once.
    #[error("`{}` has more than one column {}\nhint: keep one of each", path.display(), columns.join(", "))]
    Repeated {
        /// The file.
        path: PathBuf,
        /// The repeated columns.
        columns: Vec<String>,
    },
    /// There is no row below the header.
    #[error("`{}` has a header and no runs", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The file is too large to be a table of runs.
    #[error("`{}` has more than {LARGEST_FILE} bytes: is it a table of runs?", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
}

/// Larger files are refused: a run takes some 200 bytes.
const LARGEST_FILE: u64 = 1 << 28;

/// Reads a file of runs.
///
/// # Errors
///
/// When the file cannot be read, is too large, lacks a necessary column, has one twice, or has no
/// rows. A field that holds something else than its column does is a fault of its row alone, and so
/// is a row of too many or too few fields.
pub fn read(path: &Path) -> Result<RunsFile, RunsError> {
    let text = bytes(path)?;
    let path = path.to_owned();
    let table = match table::read(&text) {
        Ok(table) => table,
        Err(cause) => return Err(RunsError::Csv { path, cause }),
    };
    let header = table.header;
    let repeated = columns::repeated(&header);
    if !repeated.is_empty() {
        let columns = repeated;
        return Err(RunsError::Repeated { path, columns });
    }
    let missing = columns::missing(&header);
    if !missing.is_empty() {
        let columns = missing;
        return Err(RunsError::Columns { path, columns });
    }
    if table.rows.is_empty() {
        return Err(RunsError::Empty { path });
    }
    let file = path.display().to_string();
    let columns = Columns::new(&header);
    let rows = table.rows.into_iter();
    Ok(RunsFile {
        runs: rows.map(|row| run(&file, &columns, row)).collect(),
        warnings: columns::misspelt(&header),
        header,
    })
}

/// The content of a file of possible size.
fn bytes(path: &Path) -> Result<Vec<u8>, RunsError> {
    let unreadable = |cause| RunsError::Open {
        path: path.to_owned(),
        cause,
    };
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mut text = Vec::new();
    let read = file.take(LARGEST_FILE + 1).read_to_end(&mut text);
    read.map_err(unreadable)?;
    if text.len() as u64 > LARGEST_FILE {
        return Err(RunsError::TooLarge {
            path: path.to_owned(),
        });
    }
    Ok(text)
}

/// The run of a row. Of a row whose fields cannot be told apart nothing is taken.
fn run(file: &str, columns: &Columns, row: Row) -> Run {
    let none = StringRecord::new();
    let lost = row.fault.is_some();
    let fields = Fields::new(columns, if lost { &none } else { &row.fields });
    let run = parse(&fields);
    Run {
        file: file.to_owned(),
        line: row.line,
        fault: row.fault.or(fields.into_fault()),
        raw: row.fields,
        ..run
    }
}

/// Largest share of the bf16 peak: formats of 8 bits may exceed 1, percents exceed this.
const LARGEST_MFU: f64 = 2.0;

fn parse(fields: &Fields) -> Run {
    let text = |column| fields.text(column).to_owned();
    Run {
        file: String::new(),
        line: 0,
        fault: None,
        source: text("source"),
        group: text("group"),
        run: text("run"),
        framework: text("framework"),
        model: text("model"),
        layers: fields.degree("layers"),
        hidden: fields.size("hidden"),
        feed_forward_width: fields.size("ffn"),
        heads: fields.size("heads"),
        key_value_heads: fields.size("kv_heads"),
        mlp_matrices: fields.degree("mlp_matrices"),
        vocabulary: fields.size("vocab"),
        experts: fields.degree("experts"),
        gpu: fields.text("gpu").to_ascii_lowercase(),
        gpus: fields.degree("gpus"),
        gpus_per_node: fields.degree("gpus_per_node"),
        internode_allreduce: fields.bandwidth("internode_allreduce_gb_s"),
        intranode_allreduce: fields.bandwidth("intranode_allreduce_gb_s"),
        sequence_length: fields.size("seq_len"),
        global_batch: fields.size("global_batch"),
        micro_batch: fields.degree("micro_batch"),
        tensor_parallel: fields.degree("tensor_parallel"),
        pipeline_parallel: fields.degree("pipeline_parallel"),
        context_parallel: fields.degree("context_parallel"),
        expert_parallel: fields.degree("expert_parallel"),
        virtual_stages: fields.degree("virtual_stages"),
        data_parallel: fields.degree("data_parallel"),
        schedule: text("schedule"),
        sequence_parallel: fields.switch("sequence_parallel"),
        checkpointing: text("checkpointing"),
        sharding: text("sharding"),
        precision: text("precision"),
        gradient_bytes: fields.number("gradient_bytes", 16.0, ""),
        attention_kernel: text("attention_kernel"),
        rmsnorm_kernel: fields.switch("rmsnorm_kernel"),
        variant: text("variant"),
        status: status(fields),
        step_time: fields.number("step_time_s", 1e6, " of seconds"),
        peak_memory: fields.number("peak_memory_gib", 1e5, " of GiB"),
        peak_stage: fields.degree("peak_stage"),
        mfu: fields.number("mfu", LARGEST_MFU, ""),
        timing_usable: fields.switch("timing_usable").unwrap_or(true),
        raw: StringRecord::new(),
    }
}

fn status(fields: &Fields) -> Status {
    Status::parse(fields.text("status")).unwrap_or_else(|| {
        let shown = fields.shown("status");
        fields.note(format!("status `{shown}` is neither `ok` nor `oom`"));
        Status::Unstated
    })
}
