//! Memory against what Megatron-LM's functional tests allocate: `tests/data/megatron-lm-ci.csv`.
//!
//! Golden values and arguments of its dense tests (NVIDIA/Megatron-LM, `tests/functional_tests`, August
//! 2026): bytes of `torch.cuda.memory_allocated` after a step and of `max_memory_allocated`, on the last
//! pipeline stage. Workspaces, retained activations and the bytes of a logit were read off these rows,
//! so that they are in sample for them; the rest is counted.

use csv::StringRecord;

use parlayout::catalog;
use parlayout::cost_model::components::{MemoryComponent, StageMemory};
use parlayout::cost_model::{Costs, memory_use};
use parlayout::framework::{CrossEntropy, LoggedMemory};
use parlayout::job::Job;
use parlayout::layout::{
    AttentionKernel, Checkpointing, Combination, RmsNormKernel, Schedule, SequenceParallel,
    Sharding, Stage,
};
use parlayout::transformer::{
    Biases, Embeddings, FeedForward, Normalization, Numerics, QueryKeyNorms, SmallParts,
    Transformer,
};
use parlayout::workload::{FlopConvention, Optimizer, Precision, Workload};

const ROWS: &str = include_str!("../data/megatron-lm-ci.csv");

/// A row of the file.
struct Row<'a> {
    header: &'a StringRecord,
    fields: &'a StringRecord,
}

impl Row<'_> {
    fn text(&self, column: &str) -> &str {
        let index = self.header.iter().position(|name| name == column);
        &self.fields[index.unwrap_or_else(|| panic!("no column {column}"))]
    }

    fn number<N: std::str::FromStr>(&self, column: &str) -> N {
        let number = self.text(column).parse().ok();
        number.unwrap_or_else(|| panic!("{column} of {}", self.text("run")))
    }

    fn of<T>(&self, column: &str, parse: impl Fn(&str) -> Option<T>) -> T {
        parse(self.text(column)).unwrap_or_else(|| panic!("{column} of {}", self.text("run")))
    }

    fn cut(&self) -> Vec<u32> {
        let layers = self.text("layers").split('|');
        layers.map(|it| it.parse().expect("a number")).collect()
    }

    fn transformer(&self) -> Transformer {
        let is_tied: bool = self.number("tied");
        Transformer {
            name: self.text("run").to_owned(),
            layers: self.cut().iter().sum(),
            hidden: self.number("hidden"),
            heads: self.number("heads"),
            key_value_heads: self.number("kv_heads"),
            head_width: self.number("head_dim"),
            feed_forward_width: self.number("ffn"),
            feed_forward: match self.text("mlp_matrices") {
                "3" => FeedForward::Gated,
                _ => FeedForward::Plain,
            },
            vocabulary: self.number("vocab"),
            embeddings: if is_tied {
                Embeddings::Tied
            } else {
                Embeddings::Untied
            },
            normalization: self.of("norm", Normalization::parse),
            biases: self.of("biases", Biases::parse),
            learned_positions: self.number("positions"),
            experts: None,
            latent_attention: None,
            windows: None,
            prediction_layers: 0,
            small_parts: SmallParts {
                query_key_norms: self.of("qk_norm", QueryKeyNorms::parse),
                ..SmallParts::default()
            },
            numerics: Numerics {
                hidden_dropout: self.number("dropout"),
                attention_dropout: self.number("attention_dropout"),
                ..Numerics::USUAL
            },
        }
    }

    fn job(&self) -> Job {
        let preset = catalog::data_sheet_cluster(self.text("gpu")).expect("its GPU is known");
        let mut cluster = catalog::cluster(preset).expect("it is in the catalog");
        cluster.gpus = self.number("gpus");
        let mut framework = catalog::framework("megatron-lm").expect("it is in the catalog");
        framework.memory.cross_entropy = self.of("cross_entropy", CrossEntropy::parse);
        Job {
            transformer: self.transformer(),
            cluster,
            framework,
            workload: Workload {
                sequence_length: self.number("seq_len"),
                global_batch: self.number("global_batch"),
                precision: self.of("precision", Precision::parse),
                optimizer: Optimizer::Adam,
                mfu_convention: FlopConvention::Paper,
                load_imbalance: parlayout::workload::USUAL_IMBALANCE,
            },
        }
    }

    fn combination(&self) -> Combination {
        let is_split: bool = self.number("sequence_parallel");
        Combination {
            tensor_parallel: self.number("tensor_parallel"),
            pipeline_parallel: self.cut().len() as u32,
            data_parallel: self.number("data_parallel"),
            context_parallel: self.number("context_parallel"),
            expert_parallel: 1,
            expert_tensor_parallel: 1,
            virtual_stages: self.number("virtual_stages"),
            micro_batch: self.number("micro_batch"),
            sequence_parallel: SequenceParallel::from(is_split),
            sharding: self.of("sharding", Sharding::parse),
            attention_kernel: self.of("attention_kernel", AttentionKernel::parse),
            rmsnorm_kernel: RmsNormKernel::Fused,
            schedule: Schedule::OneForwardOneBackward,
        }
    }

    /// Memory of the last stage.
    fn predicted(&self) -> StageMemory {
        let (job, combination) = (self.job(), self.combination());
        let checkpointing = Checkpointing::parse(self.text("checkpointing"));
        let recomputed = checkpointing.and_then(Checkpointing::recompute);
        let stages: Vec<Stage> = self
            .cut()
            .into_iter()
            .map(|layers| {
                let mut stage = Stage {
                    layers,
                    ..Stage::default()
                };
                if let Some(mode) = recomputed {
                    stage.recomputed[mode as usize] = layers;
                }
                stage
            })
            .collect();
        let costs = Costs::exact(&job, &combination);
        let memory = memory_use(&job, &costs, &stages);
        *memory.stages.last().expect("a pipeline has a stage")
    }
}

/// Predicted and measured GiB of each row: after a step, and at the peak.
fn compared() -> Vec<(String, [f64; 2], [f64; 2])> {
    let mut reader = csv::Reader::from_reader(ROWS.as_bytes());
    let header = reader.headers().expect("it has a header").clone();
    let rows = reader.records().map(|row| row.expect("it is a row"));
    rows.map(|fields| {
        let row = Row {
            header: &header,
            fields: &fields,
        };
        let memory = row.predicted();
        let kept = [
            MemoryComponent::Weights,
            MemoryComponent::Gradients,
            MemoryComponent::OptimizerStates,
            MemoryComponent::Buffers,
        ];
        let kept: f64 = kept.iter().map(|&component| memory[component].gib()).sum();
        let peak = memory.logged(LoggedMemory::Allocated).gib();
        let measured = [row.number("static_gib"), row.number("peak_gib")];
        (row.text("run").to_owned(), [kept, peak], measured)
    })
    .collect()
}

fn median(mut errors: Vec<f64>) -> f64 {
    errors.sort_by(f64::total_cmp);
    errors[errors.len() / 2]
}

#[test]
fn training_states_are_those_of_megatron_lm() {
    let rows = compared();
    assert_eq!(rows.len(), 206);
    let beyond = rows.iter().filter(|(_, predicted, measured)| {
        (predicted[0] - measured[0]).abs() > 0.02 * measured[0] + 0.05
    });
    let beyond: Vec<String> = beyond.map(|row| format!("{row:?}")).collect();
    // A distillation's teacher, one replica's unstated optimizer, two instances of it, fp8 weights.
    assert!(beyond.len() <= 8, "{}\n{}", beyond.len(), beyond.join("\n"));
    let errors = rows
        .iter()
        .map(|(_, predicted, measured)| (predicted[0] / measured[0] - 1.0).abs());
    let median = median(errors.collect());
    assert!(median < 0.01, "{median}");
}

#[test]
fn peaks_are_those_of_megatron_lm() {
    let rows = compared();
    let errors: Vec<f64> = rows
        .iter()
        .map(|(_, predicted, measured)| (predicted[1] / measured[1] - 1.0).abs())
        .collect();
    // Beyond: groups of five micro-batches, deferred gradients of the embedding, fp8, distillation.
    let near = errors.iter().filter(|&&error| error < 0.07).count();
    assert!(near * 100 >= rows.len() * 88, "{near} of {}", rows.len());
    let median = median(errors);
    assert!(median < 0.025, "{median}");
}
