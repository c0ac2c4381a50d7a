//! `--from-log` of `parlayout calibrate`.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;
use parlayout::cluster::Cluster;
use parlayout::files::{self, Content};
use parlayout::laboratory::logs::{self, Facts};
use parlayout::laboratory::runs::Run;
use parlayout::transformer::{FeedForward, Transformer};
use parlayout::{catalog, instance};

#[derive(Debug, Args)]
#[command(next_help_heading = "Runs from logs")]
pub(crate) struct LogArguments {
    /// Training logs of Megatron-LM, torchtitan or nanotron, one a run; may be repeated. What ends in .csv
    /// among them is a file of runs.
    #[arg(long = "from-log", value_name = "LOG", num_args = 1..)]
    pub(crate) logs: Vec<PathBuf>,
    /// What was launched: a script with Megatron-LM's flags, torchtitan's .toml, nanotron's .yaml.
    /// One for all logs, or one each in their order.
    #[arg(long, value_name = "FILE", requires = "logs", num_args = 1..)]
    pub(crate) launch: Vec<PathBuf>,
    /// The layout of the logged runs, where neither log nor `--launch` states it, such as
    /// `tensor_parallel=4,pipeline_parallel=2,micro_batch=1`.
    #[arg(long, value_name = "KEY=VALUE,…", requires = "logs")]
    layout: Option<String>,
    /// The network of the logged runs: a preset, or the path of a config.json.
    #[arg(long, value_name = "MODEL", requires = "logs")]
    model: Option<String>,
    /// GPUs of the logged runs.
    #[arg(long, value_name = "N", requires = "logs")]
    gpus: Option<u32>,
    /// Tokens of a sequence of the logged runs.
    #[arg(long, value_name = "TOKENS", requires = "logs")]
    sequence_length: Option<u64>,
    /// Sequences of an optimizer step of the logged runs.
    #[arg(long, value_name = "SEQUENCES", requires = "logs")]
    global_batch: Option<u64>,
    /// Number format of the logged runs.
    #[arg(long, value_name = "FORMAT", requires = "logs")]
    precision: Option<String>,
}

impl LogArguments {
    /// The run of each log on GPUs of `cluster`, with a note about what was read.
    pub(crate) fn runs(&self, cluster: &Cluster) -> Result<Vec<(Run, String)>> {
        let files = self.launch.len();
        if files > 1 && files != self.logs.len() {
            bail!(
                "{files} launch files for {} logs\nhint: give one for all, or one for each log",
                self.logs.len()
            );
        }
        let stated = self.stated()?;
        let runs = self.logs.iter().enumerate().map(|(index, path)| {
            let file = self.launch.get(index).or(self.launch.first());
            let facts = file.map(|file| logs::launch(file)).transpose()?;
            let launched = with_network(facts.unwrap_or_default())?;
            run(path, stated.clone(), launched, cluster)
        });
        runs.collect()
    }

    /// What the arguments say.
    fn stated(&self) -> Result<Facts> {
        let layout = match &self.layout {
            Some(text) => logs::layout(text).map_err(anyhow::Error::msg)?,
            None => Facts::default(),
        };
        let network = match &self.model {
            Some(name) => network(&instance::read_model(name)?)?,
            None => Facts::default(),
        };
        let own = Facts::default()
            .with("gpus", self.gpus)
            .with("seq_len", self.sequence_length)
            .with("global_batch", self.global_batch)
            .with("precision", self.precision.as_ref());
        Ok(own.or(layout).or(network))
    }
}

/// Most that the memory of a log's GPU may differ from the cluster's: what drivers take.
const SAME_MEMORY: f64 = 0.10;

fn run(path: &Path, stated: Facts, launched: Facts, cluster: &Cluster) -> Result<(Run, String)> {
    let bytes = files::read(path, Content::Log)?;
    let log = logs::read(&String::from_utf8_lossy(&bytes));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let own = cluster.accelerator.usable_memory;
    if let Some(memory) = log.gpu_memory()
        && (memory / own - 1.0).abs() > SAME_MEMORY
    {
        bail!(
            "`{name}` is of a GPU with {memory}, a GPU of `{}` has {own}\nhint: give the cluster \
             that the log is of",
            cluster.name
        );
    }
    Ok(logs::run(&name, &log, stated, launched)?)
}

/// What was launched, with the shape of the network that it names, if the catalog has that:
/// `llama3 8B` is `llama-3-8b`.
fn with_network(launched: Facts) -> Result<Facts> {
    let Some(name) = launched
        .text("model")
        .filter(|_| launched.text("layers").is_none())
    else {
        return Ok(launched);
    };
    let mut preset = String::new();
    for c in name.to_lowercase().replace(' ', "-").chars() {
        if c.is_ascii_digit() && preset.ends_with(|last: char| last.is_ascii_alphabetic()) {
            preset.push('-');
        }
        preset.push(c);
    }
    match catalog::model(&preset) {
        Ok(model) => Ok(network(&model)?.or(launched)),
        Err(_) => Ok(launched),
    }
}

/// The shape of a network.
fn network(model: &Transformer) -> Result<Facts> {
    if model.attention_width() != model.hidden {
        bail!(
            "`{}` has heads that are not `hidden / heads` wide, which a run from a log cannot say",
            model.name
        );
    }
    let matrices = match model.feed_forward {
        FeedForward::Gated => 3,
        FeedForward::Plain => 2,
    };
    Ok(Facts::default()
        .with("model", Some(&model.name))
        .with("layers", Some(model.layers))
        .with("hidden", Some(model.hidden))
        .with("ffn", Some(model.feed_forward_width))
        .with("heads", Some(model.heads))
        .with("kv_heads", Some(model.key_value_heads))
        .with("mlp_matrices", Some(matrices))
        .with("vocab", Some(model.vocabulary)))
}
