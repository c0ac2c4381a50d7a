//! Instances and predictions written by hand, for the tests of reports and exporters.

use crate::catalog;
use crate::cluster::{Calibration, CalibrationKind, Cluster, MemoryError};
use crate::cost_model::components::{MemoryComponent, StageMemory, StepTime, TimeComponent};
use crate::cost_model::prediction::{MemoryUse, Prediction};
use crate::framework::Framework;
use crate::instance::Instance;
use crate::job::Job;
use crate::layout::{
    AttentionKernel, Combination, Layout, RmsNormKernel, Schedule, SequenceParallel, Sharding,
    Stage,
};
use crate::layout_space::LayoutSpace;
use crate::plan::{Combinations, Evaluated, Extent, Formulation, Plan, Proof};
use crate::quantity::{Bytes, FlopsPerSecond, Mfu, Seconds};
use crate::transformer::{
    Biases, Embeddings, FeedForward, Normalization, Numerics, SmallParts, Transformer,
};
use crate::workload::{FlopConvention, Optimizer, Precision, Workload};

/// Compares `text` with the snapshot of that name.
pub(crate) fn assert_snapshot(name: &str, text: &str) {
    insta::with_settings!({
        snapshot_path => "../snapshots",
        prepend_module_to_snapshot => false,
        omit_expression => true,
    }, {
        insta::assert_snapshot!(name, text);
    });
}

pub(crate) fn llama_13b() -> Instance {
    let transformer = Transformer {
        name: "llama-13b".to_owned(),
        layers: 40,
        hidden: 5120,
        heads: 40,
        key_value_heads: 40,
        head_width: 128,
        feed_forward_width: 13824,
        feed_forward: FeedForward::Gated,
        vocabulary: 128_000,
        embeddings: Embeddings::Untied,
        normalization: Normalization::RmsNorm,
        biases: Biases::None,
        learned_positions: 0,
        experts: None,
        latent_attention: None,
        windows: None,
        prediction_layers: 0,
        small_parts: SmallParts::default(),
        numerics: Numerics::USUAL,
    };
    instance("hagemann-13b-2k-64gpu", transformer, 64, 2048, 2048)
}

pub(crate) fn llama_405b() -> Instance {
    let transformer = Transformer {
        name: "llama-3.1-405b".to_owned(),
        layers: 126,
        hidden: 16384,
        heads: 128,
        key_value_heads: 8,
        head_width: 128,
        feed_forward_width: 53248,
        feed_forward: FeedForward::Gated,
        vocabulary: 128_256,
        embeddings: Embeddings::Untied,
        normalization: Normalization::RmsNorm,
        biases: Biases::None,
        learned_positions: 0,
        experts: None,
        latent_attention: None,
        windows: None,
        prediction_layers: 0,
        small_parts: SmallParts::default(),
        numerics: Numerics::USUAL,
    };
    instance("llama-405b-8k-8192gpu", transformer, 8192, 8192, 2048)
}

pub(crate) fn llama_13b_layout() -> Layout {
    Layout {
        combination: Combination {
            tensor_parallel: 1,
            pipeline_parallel: 1,
            data_parallel: 64,
            context_parallel: 1,
            expert_parallel: 1,
            expert_tensor_parallel: 1,
            virtual_stages: 1,
            micro_batch: 1,
            sequence_parallel: SequenceParallel::Off,
            sharding: Sharding::OptimizerStates,
            attention_kernel: AttentionKernel::Flash2,
            rmsnorm_kernel: RmsNormKernel::Fused,
            schedule: Schedule::OneForwardOneBackward,
        },
        stages: vec![Stage {
            layers: 40,
            recomputed: [0; 4],
        }],
    }
}

pub(crate) fn llama_405b_layout() -> Layout {
    let mut layout = llama_13b_layout();
    layout.combination.tensor_parallel = 8;
    layout.combination.pipeline_parallel = 16;
    layout.combination.data_parallel = 64;
    layout.combination.sequence_parallel = SequenceParallel::On;
    layout.stages = vec![
        Stage {
            layers: 8,
            recomputed: [0; 4]
        };
        16
    ];
    layout.stages[0] = Stage {
        layers: 7,
        recomputed: [3, 0, 0, 0],
    };
    layout.stages[1].recomputed = [2, 0, 0, 0];
    layout.stages[15].layers = 7;
    layout
}

pub(crate) fn llama_13b_plan() -> Plan {
    let choice = Evaluated {
        layout: llama_13b_layout(),
        prediction: prediction(0.705_12, 26.53, &[stage(26.1, 26.1, 2.4, 18.4, 1.3)]),
    };
    let mut tensor = choice.clone();
    tensor.layout.combination.tensor_parallel = 2;
    tensor.layout.combination.data_parallel = 32;
    tensor.prediction = prediction(0.668, 28.0, &[stage(13.0, 13.0, 2.4, 12.4, 1.3)]);
    tensor.prediction.oom_probability = 1e-9;
    let mut checkpointed = choice.clone();
    checkpointed.layout.combination.rmsnorm_kernel = RmsNormKernel::Unfused;
    checkpointed.layout.combination.micro_batch = 2;
    checkpointed.layout.stages[0].recomputed = [40, 0, 0, 0];
    checkpointed.prediction = prediction(0.551, 33.9, &[stage(26.1, 26.1, 2.4, 3.1, 2.6)]);
    let mut pipeline = choice.clone();
    pipeline.layout.combination.pipeline_parallel = 2;
    pipeline.layout.combination.data_parallel = 32;
    pipeline.layout.stages = vec![
        Stage {
            layers: 20,
            recomputed: [0; 4]
        };
        2
    ];
    let halves = [
        stage(13.0, 13.0, 2.4, 18.4, 0.0),
        stage(13.0, 13.0, 2.4, 9.2, 1.3),
    ];
    pipeline.prediction = prediction(0.548, 34.1, &halves);
    Plan {
        choice,
        safer: Some(tensor.clone()),
        alternatives: vec![tensor, checkpointed, pipeline],
        proof: proof(0.705_12),
    }
}

pub(crate) fn llama_405b_plan() -> Plan {
    let mut stages = vec![stage(8.1, 16.2, 0.8, 31.0, 0.0); 16];
    stages[0] = stage(9.0, 18.0, 0.9, 38.0, 0.0);
    stages[0][MemoryComponent::RecomputeWorkspace] = Bytes::from_gib(2.2);
    stages[15] = stage(9.0, 18.0, 0.9, 4.0, 7.9);
    let choice = Evaluated {
        layout: llama_405b_layout(),
        prediction: prediction(0.41, 123.4, &stages),
    };
    Plan {
        choice,
        alternatives: Vec::new(),
        safer: None,
        proof: Proof {
            gap: 0.0123,
            tolerance: 2e-6,
            ..proof(0.415)
        },
    }
}

pub(crate) fn proof(bound: f64) -> Proof {
    Proof {
        formulation: Formulation::LayoutChoice,
        bound_mfu: Mfu::new(bound),
        bound_parts: 0,
        gap: 0.0,
        tolerance: 0.0,
        combinations: Combinations {
            all: 1280,
            infeasible: 610,
            pruned: 668,
            solved: 2,
        },
        extent: Extent::Whole,
        cut_short: Vec::new(),
        applied_before: Vec::new(),
        solver: "HiGHS 1.16.0".to_owned(),
    }
}

/// A stage with these weights, gradients, optimizer states, activations and logits in GiB.
pub(crate) fn stage(
    weights: f64,
    gradients: f64,
    optimizer_states: f64,
    activations: f64,
    logits: f64,
) -> StageMemory {
    StageMemory::of([
        (MemoryComponent::Weights, Bytes::from_gib(weights)),
        (MemoryComponent::Gradients, Bytes::from_gib(gradients)),
        (
            MemoryComponent::OptimizerStates,
            Bytes::from_gib(optimizer_states),
        ),
        (MemoryComponent::Activations, Bytes::from_gib(activations)),
        (MemoryComponent::Logits, Bytes::from_gib(logits)),
    ])
}

/// A prediction whose components are shares of the step time.
pub(crate) fn prediction(mfu: f64, step_time: f64, stages: &[StageMemory]) -> Prediction {
    let part = |share: f64| Seconds::new(share * step_time);
    Prediction {
        experts: None,
        mfu: Mfu::new(mfu),
        mfu_paper: Mfu::new(mfu),
        mfu_causal: Mfu::new(0.9 * mfu),
        throughput_per_gpu: FlopsPerSecond::new(312e12 * mfu),
        step_time: Seconds::new(step_time),
        tokens_per_second_per_gpu: 65_536.0 / step_time,
        oom_probability: 0.0312,
        memory: MemoryUse {
            capacity: Bytes::new(85e9),
            stages: stages.to_vec(),
        },
        slowest_stage: stages.len() - 1,
        time: StepTime::of([
            (TimeComponent::Gemm, part(0.62)),
            (TimeComponent::Attention, part(0.11)),
            (TimeComponent::Elementwise, part(0.1)),
            (TimeComponent::Launch, part(0.05)),
            (TimeComponent::Head, part(0.06)),
            (TimeComponent::Bubble, part(0.02)),
            (TimeComponent::DataParallel, part(0.03)),
            (TimeComponent::Optimizer, part(0.01)),
        ]),
    }
}

fn instance(
    name: &str,
    transformer: Transformer,
    gpus: u32,
    sequence_length: u64,
    global_batch: u64,
) -> Instance {
    let job = Job {
        transformer,
        cluster: cluster(gpus),
        framework: framework(),
        workload: Workload {
            sequence_length,
            global_batch,
            precision: Precision::Bf16,
            optimizer: Optimizer::Adam,
            mfu_convention: FlopConvention::Paper,
            load_imbalance: crate::workload::USUAL_IMBALANCE,
        },
    };
    Instance {
        name: name.to_owned(),
        space: LayoutSpace::everything_legal(&job),
        job,
        max_oom_risk: 0.5,
        warnings: Vec::new(),
    }
}

fn cluster(gpus: u32) -> Cluster {
    let catalog =
        catalog::cluster("a100-80gb-one-nic").expect("the catalog has the paper's cluster");
    Cluster {
        name: "dgx-a100-80gb".to_owned(),
        gpus,
        calibration: Calibration {
            kind: CalibrationKind::Measured,
            time_error: Some(0.04),
            framework: None,
            memory: MemoryError {
                shift: 0.0,
                scale: 0.01,
            },
            source: "984 runs of Hagemann et al., arXiv 2311.05610".to_owned(),
        },
        ..catalog
    }
}

fn framework() -> Framework {
    catalog::framework("aleph-alpha-scaling").expect("the catalog has the paper's framework")
}
