//! Arguments that name an instance: a file, flags, or a file with flags on top.

use std::path::PathBuf;

use clap::Args;
use parlayout::instance::{self, InputError, Instance, Overrides};
use parlayout::report::shell_word;

#[derive(Debug, Args)]
pub(crate) struct InstanceArguments {
    /// Instance file (docs/instance-format.md); without it, the flags below describe the job.
    pub(crate) instance: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) job: JobArguments,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "The job (each replaces the instance file's)")]
pub(crate) struct JobArguments {
    /// Network: a preset of `parlayout catalog`, or the path of a Hugging Face config.json.
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Machine: a preset of `parlayout catalog`, or the path of a cluster file.
    #[arg(long, value_name = "CLUSTER")]
    cluster: Option<String>,
    /// Training framework: a preset of `parlayout catalog`.
    #[arg(long, value_name = "FRAMEWORK")]
    framework: Option<String>,
    /// GPUs of the job.
    #[arg(long, value_name = "N")]
    gpus: Option<String>,
    /// GPUs a node.
    #[arg(long, value_name = "N")]
    gpus_per_node: Option<String>,
    /// Tokens of a sequence.
    #[arg(long, value_name = "TOKENS")]
    sequence_length: Option<String>,
    /// Sequences of an optimizer step.
    #[arg(long, value_name = "SEQUENCES")]
    global_batch: Option<String>,
    /// Number format: bf16, fp16 or fp8.
    #[arg(long, value_name = "FORMAT")]
    precision: Option<String>,
    /// Width in which gradients are accumulated and reduced: bf16 or fp32 (the framework's unless the
    /// file says more).
    #[arg(long, value_name = "FORMAT")]
    gradients: Option<String>,
    /// Optimizer, by the state that it keeps.
    #[arg(long, value_name = "OPTIMIZER")]
    optimizer: Option<String>,
    /// Largest accepted probability of running out of memory (0.05 unless the file says more).
    #[arg(long, value_name = "SHARE")]
    max_oom_risk: Option<String>,
    /// Set any key of the instance: `--set search.tensor_parallel=[1,2]`, `--set gpus=32`.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

impl JobArguments {
    /// The flags as overrides of an instance file, in a fixed order, `--set` last.
    pub(crate) fn overrides(&self) -> Overrides {
        let all: Vec<&str> = self.set.iter().map(String::as_str).collect();
        self.overrides_with(&all)
    }

    /// The same with these assignments of `--set` only.
    pub(crate) fn overrides_with(&self, assignments: &[&str]) -> Overrides {
        let mut overrides = Overrides::none();
        for (flag, value) in self.flags() {
            overrides.flag(flag, value);
        }
        for assignment in assignments {
            overrides.set(assignment);
        }
        overrides
    }

    /// The assignments of `--set`, with name and value.
    pub(crate) fn sets(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.set.iter().map(|assignment| {
            let (name, value) = assignment.split_once('=').unwrap_or((assignment, ""));
            (assignment.as_str(), name.trim(), value.trim())
        })
    }

    /// The value of a flag.
    pub(crate) fn flag(&self, wanted: &str) -> Option<&str> {
        let mut flags = self.flags();
        let found = flags.find(|(flag, _)| *flag == wanted);
        found.map(|(_, value)| value.as_str())
    }

    fn flags(&self) -> impl Iterator<Item = (&'static str, &String)> {
        let all = [
            ("model", &self.model),
            ("cluster", &self.cluster),
            ("framework", &self.framework),
            ("gpus", &self.gpus),
            ("gpus-per-node", &self.gpus_per_node),
            ("sequence-length", &self.sequence_length),
            ("global-batch", &self.global_batch),
            ("precision", &self.precision),
            ("gradients", &self.gradients),
            ("optimizer", &self.optimizer),
            ("max-oom-risk", &self.max_oom_risk),
        ];
        all.into_iter()
            .filter_map(|(flag, value)| Some((flag, value.as_ref()?)))
    }

    /// The arguments as typed, for the commands that output suggests.
    pub(crate) fn typed(&self) -> String {
        let flags = self
            .flags()
            .map(|(flag, value)| format!("--{flag} {}", shell_word(value)));
        let sets = self
            .set
            .iter()
            .map(|assignment| format!("--set {}", shell_word(assignment)));
        flags.chain(sets).collect::<Vec<_>>().join(" ")
    }

    pub(crate) fn cluster(&self) -> Option<&str> {
        self.cluster.as_deref()
    }

    pub(crate) fn framework(&self) -> Option<&str> {
        self.framework.as_deref()
    }
}

impl InstanceArguments {
    /// Reads the instance.
    pub(crate) fn load(&self) -> Result<Instance, InputError> {
        self.load_with(&[])
    }

    /// Reads the instance with further assignments of `--set`.
    pub(crate) fn load_with(&self, further: &[String]) -> Result<Instance, InputError> {
        let mut overrides = self.job.overrides();
        for assignment in further {
            overrides.set(assignment);
        }
        match &self.instance {
            Some(path) => instance::read(path, &overrides),
            None => instance::from_flags(&overrides),
        }
    }

    /// The arguments as typed, for the commands that output suggests.
    pub(crate) fn typed(&self) -> String {
        let file = self
            .instance
            .iter()
            .map(|path| shell_word(&path.to_string_lossy()));
        let flags = Some(self.job.typed()).filter(|flags| !flags.is_empty());
        file.chain(flags).collect::<Vec<_>>().join(" ")
    }
}
