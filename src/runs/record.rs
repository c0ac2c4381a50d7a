//! A file of measured runs: one row a run, columns as in `data/README.md`.

use std::cell::RefCell;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use csv::StringRecord;

/// Rows of a file with the header that names their fields.
#[derive(Debug, Clone)]
pub struct RunsFile {
    /// Names of the columns, as in the file.
    pub header: StringRecord,
    /// The rows.
    pub runs: Vec<Run>,
}

/// One measured run. `None` and empty text mean that the source does not say.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The row as it stands in the file.
    pub raw: StringRecord,
    /// Line in the file, from 1.
    pub line: u64,
    /// What is wrong with the row, if a field holds something else than its column does. The field
    /// counts as empty.
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
    /// Measured utilisation by the paper's convention.
    pub mfu: Option<f64>,
    /// Whether the speed is representative.
    pub timing_usable: bool,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It trained.
    Ok,
    /// It ran out of memory.
    OutOfMemory,
    /// Something else: it says nothing about memory or time.
    Other,
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
        /// What the reader said.
        cause: csv::Error,
    },
    /// Columns are missing.
    #[error("`{}` lacks the columns {}", path.display(), columns.join(", "))]
    Columns {
        /// The file.
        path: PathBuf,
        /// The missing columns.
        columns: Vec<String>,
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

/// Columns without which no row can be modelled.
const REQUIRED: [&str; 14] = [
    "layers",
    "hidden",
    "ffn",
    "heads",
    "vocab",
    "gpu",
    "gpus",
    "seq_len",
    "global_batch",
    "micro_batch",
    "tensor_parallel",
    "pipeline_parallel",
    "data_parallel",
    "status",
];

/// Reads a file of runs.
///
/// # Errors
///
/// When the file cannot be read, is too large, is not CSV, or lacks a necessary column. A field that
/// holds something else than its column does is a fault of its row alone.
pub fn read(path: &Path) -> Result<RunsFile, RunsError> {
    let file = std::fs::File::open(path).map_err(|cause| RunsError::Open {
        path: path.to_owned(),
        cause,
    })?;
    let mut text = Vec::new();
    let read = file.take(LARGEST_FILE + 1).read_to_end(&mut text);
    read.map_err(|cause| RunsError::Open {
        path: path.to_owned(),
        cause,
    })?;
    if text.len() as u64 > LARGEST_FILE {
        return Err(RunsError::TooLarge {
            path: path.to_owned(),
        });
    }
    let csv_error = |cause| RunsError::Csv {
        path: path.to_owned(),
        cause,
    };
    let mut reader = csv::Reader::from_reader(text.as_slice());
    let header = reader.headers().map_err(csv_error)?.clone();
    let missing: Vec<String> = REQUIRED
        .iter()
        .filter(|&&column| !header.iter().any(|name| name == column))
        .map(|column| format!("`{column}`"))
        .collect();
    if !missing.is_empty() {
        return Err(RunsError::Columns {
            path: path.to_owned(),
            columns: missing,
        });
    }
    let columns = Columns::new(&header);
    let mut runs = Vec::new();
    for record in reader.records() {
        let raw = record.map_err(csv_error)?;
        runs.push(parse(&columns, raw));
    }
    Ok(RunsFile { header, runs })
}

/// Positions of the known columns, looked up once a file.
struct Columns(std::collections::HashMap<String, usize>);

impl Columns {
    fn new(header: &StringRecord) -> Self {
        Self(
            header
                .iter()
                .enumerate()
                .map(|(index, name)| (name.to_owned(), index))
                .collect(),
        )
    }
}

/// A row with access by column. A field that cannot be read is empty, and the first such is kept.
struct Fields<'a> {
    columns: &'a Columns,
    raw: &'a StringRecord,
    fault: RefCell<Option<String>>,
}

impl Fields<'_> {
    fn text(&self, column: &'static str) -> &str {
        let index = self.columns.0.get(column);
        index
            .and_then(|&index| self.raw.get(index))
            .map_or("", str::trim)
    }

    fn fault<T>(&self, column: &'static str, expected: &'static str) -> Option<T> {
        let mut fault = self.fault.borrow_mut();
        let text = self.text(column);
        fault.get_or_insert_with(|| format!("column `{column}` holds `{text}`, not {expected}"));
        None
    }

    /// A number that is not negative; `None` where the field is empty.
    fn number(&self, column: &'static str) -> Option<f64> {
        let text = self.text(column);
        if text.is_empty() {
            return None;
        }
        let number = text
            .parse::<f64>()
            .ok()
            .filter(|n| n.is_finite() && *n >= 0.0);
        number.or_else(|| self.fault(column, "a number from 0"))
    }

    /// A whole number (written `8` or `8.0`) up to `most`.
    fn whole(&self, column: &'static str, most: f64) -> Option<u64> {
        let number = self.number(column)?;
        if number.fract() != 0.0 || number > most {
            return self.fault(column, "a whole number of possible size");
        }
        Some(number as u64)
    }

    fn size(&self, column: &'static str) -> Option<u64> {
        self.whole(column, 1e9)
    }

    fn degree(&self, column: &'static str) -> Option<u32> {
        self.whole(column, f64::from(1 << 20))
            .map(|number| number as u32)
    }

    fn switch(&self, column: &'static str) -> Option<bool> {
        match self.text(column).to_ascii_lowercase().as_str() {
            "" => None,
            "true" | "1" => Some(true),
            "false" | "0" => Some(false),
            _ => self.fault(column, "true or false"),
        }
    }
}

fn parse(columns: &Columns, raw: StringRecord) -> Run {
    let line = raw.position().map_or(0, csv::Position::line);
    let fields = Fields {
        columns,
        raw: &raw,
        fault: RefCell::default(),
    };
    let text = |column| fields.text(column).to_owned();
    let run = Run {
        line,
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
        gpu: text("gpu"),
        gpus: fields.degree("gpus"),
        gpus_per_node: fields.degree("gpus_per_node"),
        internode_allreduce: fields.number("internode_allreduce_gb_s"),
        intranode_allreduce: fields.number("intranode_allreduce_gb_s"),
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
        gradient_bytes: fields.number("gradient_bytes"),
        attention_kernel: text("attention_kernel"),
        rmsnorm_kernel: fields.switch("rmsnorm_kernel"),
        variant: text("variant"),
        status: match fields.text("status") {
            "ok" => Status::Ok,
            "oom" => Status::OutOfMemory,
            _ => Status::Other,
        },
        step_time: fields.number("step_time_s"),
        peak_memory: fields.number("peak_memory_gib"),
        mfu: fields.number("mfu"),
        timing_usable: fields.switch("timing_usable").unwrap_or(true),
        raw: StringRecord::new(),
    };
    let fault = fields.fault.into_inner();
    Run { fault, raw, ..run }
}
