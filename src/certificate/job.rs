//! The job of a certificate: from figures by key to a [`Job`], and a job without figures to start from.

use serde_json::{Map, Value};

use crate::cluster::{Accelerator, Calibration, CalibrationKind, Cluster, Efficiency, MemoryError};
use crate::cost_model::flops::FlopConvention;
use crate::framework::{
    CheckpointRule, Framework, FusedRmsNorm, LoggedPeak, Logits, MemoryProfile, OptimizerWork,
    Partition, SpeedProfile,
};
use crate::job::Job;
use crate::layout::{AttentionKernel, RmsNormKernel, SequenceParallel};
use crate::quantity::{Bytes, BytesPerSecond, FlopsPerSecond, Seconds};
use crate::transformer::{Biases, Embeddings, FeedForward, Normalization, Transformer};
use crate::workload::{Optimizer, Precision, Workload};

use super::learned::{DISCREPANCY, StatedDiscrepancy};
use super::parameters::{NAMED, PARAMETERS};

/// What stands in for a figure that is left out, in its unit.
pub(crate) const ABSENT: f64 = 1.0;

/// Widest attention, over all heads.
const WIDEST_ATTENTION: u64 = 1 << 22;

/// A job to start from, whose figures mean nothing and whose choices are the first.
pub(crate) fn blank() -> Job {
    Job {
        transformer: Transformer {
            name: String::new(),
            layers: 1,
            hidden: 1,
            heads: 1,
            key_value_heads: 1,
            head_width: 1,
            feed_forward_width: 1,
            feed_forward: FeedForward::Gated,
            vocabulary: 1,
            embeddings: Embeddings::Untied,
            normalization: Normalization::RmsNorm,
            biases: Biases::None,
            learned_positions: 0,
        },
        cluster: cluster(),
        framework: framework(),
        workload: Workload {
            sequence_length: 1,
            global_batch: 1,
            mfu_convention: FlopConvention::Paper,
            precision: Precision::Bf16,
            optimizer: Optimizer::Adam,
        },
    }
}

fn cluster() -> Cluster {
    Cluster {
        name: String::new(),
        accelerator: Accelerator {
            name: String::new(),
            usable_memory: Bytes::new(ABSENT),
            memory_bandwidth: BytesPerSecond::new(ABSENT),
            peak_bf16: FlopsPerSecond::new(ABSENT),
            peak_fp8: Some(FlopsPerSecond::new(ABSENT)),
        },
        gpus: 1,
        gpus_per_node: 1,
        intra_node_bandwidth: BytesPerSecond::new(ABSENT),
        inter_node_bandwidth: BytesPerSecond::new(ABSENT),
        discrepancy: None,
        efficiency: Efficiency {
            gemm: ABSENT,
            flash_attention_1: ABSENT,
            flash_attention_2: ABSENT,
            memory_bandwidth: ABSENT,
            ring_hop: Seconds::new(ABSENT),
            congestion: ABSENT,
            collective_latency: Seconds::new(ABSENT),
            pipeline_hop_latency: Seconds::new(ABSENT),
            slowdown: ABSENT,
        },
        calibration: Calibration {
            kind: CalibrationKind::Measured,
            time_error: ABSENT,
            memory: MemoryError {
                shift: ABSENT,
                scale: ABSENT,
            },
            source: String::new(),
        },
    }
}

fn framework() -> Framework {
    Framework {
        name: String::new(),
        partition: Partition::EmbeddingAndHead,
        checkpoint_rule: CheckpointRule::AllOrNothing,
        fused_rmsnorm: FusedRmsNorm::ExcludesCheckpointing,
        usual_attention: AttentionKernel::Torch,
        usual_rmsnorm: RmsNormKernel::Unfused,
        usual_sequence_parallel: SequenceParallel::Off,
        memory: MemoryProfile {
            gradient_bytes: ABSENT,
            logits: Logits::Sharded,
            logit_bytes: ABSENT,
            logit_bytes_gathered: ABSENT,
            norm_bytes: ABSENT,
            hidden_bytes: ABSENT,
            gathered_bytes: ABSENT,
            attention_bytes: ABSENT,
            feed_forward_bytes: ABSENT,
            working_bytes: ABSENT,
            activation_factor: ABSENT,
            fixed: Bytes::new(ABSENT),
            communicator: Bytes::new(ABSENT),
            logged_peak: LoggedPeak::FullestStage,
        },
        speed: speed(),
        source: String::new(),
    }
}

fn speed() -> SpeedProfile {
    SpeedProfile {
        elementwise: ABSENT,
        rmsnorm_bytes: ABSENT,
        softmax_bytes_fused: ABSENT,
        softmax_bytes_torch: ABSENT,
        logit_bytes: ABSENT,
        launch: Seconds::new(ABSENT),
        launch_unfused: Seconds::new(ABSENT),
        launch_recompute: ABSENT,
        launch_norm: ABSENT,
        micro_batch_overhead: Seconds::new(ABSENT),
        step_overhead: Seconds::new(ABSENT),
        transfer_exposed: ABSENT,
        bubble: ABSENT,
        bubble_zero_1p: ABSENT,
        bubble_zero_2p: ABSENT,
        bubble_interleaved: ABSENT,
        reduction_bytes: ABSENT,
        optimizer_work: OptimizerWork::Replicated,
        sharded_bytes: ABSENT,
        sharded_latency: Seconds::new(ABSENT),
        sharded_norm: ABSENT,
        measured_intra_node: ABSENT,
        measured_inter_node: ABSENT,
        tensor_parallel_across: ABSENT,
    }
}

/// The figures and choices of a job by key, without those whose entry in `left_out` is true (one
/// entry for each of [`PARAMETERS`]).
pub(crate) fn write(job: &Job, left_out: &[bool]) -> Map<String, Value> {
    let mut fields = Map::new();
    for (parameter, _) in PARAMETERS.iter().zip(left_out).filter(|(_, out)| !**out) {
        let figure = (parameter.get)(job);
        let value = if parameter.range.is_whole() {
            Value::from(figure as u64)
        } else {
            Value::from(figure)
        };
        fields.insert(parameter.key.to_owned(), value);
    }
    for choice in NAMED {
        let name = (choice.names)()[(choice.get)(job)];
        fields.insert(choice.key.to_owned(), Value::from(name));
    }
    if let Some(learned) = &job.cluster.discrepancy {
        fields.insert(DISCREPANCY.to_owned(), StatedDiscrepancy::write(learned));
    }
    fields
}

/// The job that the figures and choices describe, or what is wrong with each, as `(key, cause)`.
pub(crate) fn read(fields: &Map<String, Value>) -> Result<Job, Vec<(String, String)>> {
    let mut job = blank();
    let mut wrong = Vec::new();
    for parameter in PARAMETERS {
        let cause = match fields.get(parameter.key) {
            None if parameter.range.is_required() => "is missing".to_owned(),
            None => {
                (parameter.set)(&mut job, ABSENT);
                continue;
            }
            Some(value) => match value
                .as_f64()
                .filter(|&value| parameter.range.contains(value))
            {
                Some(figure) => {
                    (parameter.set)(&mut job, figure);
                    continue;
                }
                None => format!("cannot be `{}`", shown(value)),
            },
        };
        wrong.push((parameter.key.to_owned(), cause));
    }
    for choice in NAMED {
        let cause = match fields.get(choice.key) {
            None => "is missing".to_owned(),
            Some(value) => {
                let known = |name: &&str| value.as_str() == Some(name);
                match (choice.names)().iter().position(known) {
                    Some(index) => {
                        (choice.set)(&mut job, index);
                        continue;
                    }
                    None => format!("cannot be `{}`", shown(value)),
                }
            }
        };
        wrong.push((choice.key.to_owned(), cause));
    }
    if let Some(value) = fields.get(DISCREPANCY) {
        match StatedDiscrepancy::read(value) {
            Some(learned) => job.cluster.discrepancy = Some(learned),
            None => wrong.push((DISCREPANCY.to_owned(), "cannot be read".to_owned())),
        }
    }
    let known = |key: &str| {
        key == DISCREPANCY
            || PARAMETERS.iter().any(|parameter| parameter.key == key)
            || NAMED.iter().any(|choice| choice.key == key)
    };
    let unknown = fields.keys().filter(|key| !known(key));
    wrong.extend(unknown.map(|key| (shown_text(key), "is not a figure of a job".to_owned())));
    let network = &job.transformer;
    if network.heads.saturating_mul(network.head_width) > WIDEST_ATTENTION
        || network.key_value_heads > network.heads
    {
        let cause = "has more or wider heads than any network".to_owned();
        wrong.push(("transformer.heads".to_owned(), cause));
    }
    if wrong.is_empty() {
        Ok(job)
    } else {
        Err(wrong)
    }
}

/// A value of a document as it may be repeated in a message.
pub(crate) fn shown(value: &Value) -> String {
    shown_text(&value.to_string())
}

/// A text of a document as it may be repeated in a message: short, without control characters.
pub(crate) fn shown_text(text: &str) -> String {
    crate::instance::error::shown(text)
}
