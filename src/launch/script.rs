//! A script that starts a job on its nodes.

use super::dialect::{Dialect, Entry, Launcher, Syntax};
use super::facts::Facts;
use super::render;

/// The file that a script writes beside it.
fn file_name(dialect: &Dialect) -> Option<&'static str> {
    match dialect.syntax {
        Syntax::Flags | Syntax::ValuedFlags | Syntax::Overrides => None,
        Syntax::Toml => Some("layout.toml"),
        Syntax::Yaml => Some("layout.yaml"),
        Syntax::Json => Some("layout.json"),
    }
}

/// The command that starts the job, without flags.
#[must_use]
pub fn command(dialect: &Dialect, facts: &Facts) -> String {
    let (nodes, per_node) = (facts.one("nodes"), facts.one("gpus_per_node"));
    let command = match dialect.launcher {
        Launcher::Torchrun(program) => {
            format!("torchrun --nnodes {nodes} --nproc-per-node {per_node} {program}")
        }
        Launcher::Command(command) => command.to_owned(),
    };
    let values = [
        ("{nodes}", nodes.to_string()),
        ("{per_node}", per_node.to_string()),
        ("{file}", file_name(dialect).unwrap_or_default().to_owned()),
        ("{micro_batch}", facts.one("micro_batch").to_string()),
        ("{accumulation}", facts.one("accumulation").to_string()),
        ("{sequence}", facts.one("seq_len").to_string()),
    ];
    let replace = |text: String, (name, value): &(&str, String)| text.replace(name, value);
    values.iter().fold(command, replace)
}

/// A script for Slurm with the file in it, or the flags; on one node it runs without Slurm.
#[must_use]
pub fn script(dialect: &Dialect, facts: &Facts, entries: &[Entry], comments: &[String]) -> String {
    let (nodes, per_node) = (facts.one("nodes"), facts.one("gpus_per_node"));
    let mut text = format!(
        "#!/bin/bash\n#SBATCH --nodes={nodes}\n#SBATCH --ntasks-per-node=1\n#SBATCH --gpus-per-node={per_node}\n"
    );
    text.push_str(&render::comments(comments));
    text.push_str("set -euo pipefail\n");
    let mut command = command(dialect, facts);
    if nodes > 1 {
        text.push_str(
            "export MASTER_ADDR=${MASTER_ADDR:-$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)}\n\
             export MASTER_PORT=${MASTER_PORT:-29500}\n",
        );
        let rendezvous = format!(
            "torchrun --nnodes {nodes} --nproc-per-node {per_node} --rdzv-backend c10d --rdzv-endpoint $MASTER_ADDR:$MASTER_PORT"
        );
        let plain = format!("torchrun --nnodes {nodes} --nproc-per-node {per_node}");
        command = command.replace(&plain, &rendezvous);
    }
    if let Some(name) = file_name(dialect) {
        let body = render::text(dialect, entries, &[]);
        text.extend(["cat > ", name, " <<'EOF'\n", &body, "EOF\n"]);
    }
    let arguments = match file_name(dialect) {
        Some(_) => Vec::new(),
        None => render::arguments(dialect.syntax, entries),
    };
    let run = std::iter::once(command)
        .chain(arguments)
        .collect::<Vec<_>>();
    // `deepspeed` starts its own ranks on the nodes of its host file.
    let starts_itself = run[0].starts_with("deepspeed") || run[0].starts_with("python ./deepy");
    if nodes > 1 && !starts_itself {
        text.push_str("srun bash -c '\nexport NODE_RANK=$SLURM_NODEID\n");
        text.push_str(&run.join(" \\\n  "));
        text.push_str("\n'\n");
    } else {
        text.push_str(&run.join(" \\\n  "));
        text.push('\n');
    }
    text
}
