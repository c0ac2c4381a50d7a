//! The cost model against a second implementation of its formulas, written apart from it.

#![expect(
    clippy::unreadable_literal,
    reason = "figures stand as the reference prints them"
)]

use std::collections::HashMap;

use parlayout::catalog;
use parlayout::cost_model::components::{MemoryComponent, TimeComponent};
use parlayout::cost_model::{self, Costs};
use parlayout::framework::{Framework, Logits, Partition};
use parlayout::job::Job;
use parlayout::laboratory::runs::{self, Run, RunSetups};
use parlayout::layout::{
    AttentionKernel, Combination, Recompute, RmsNormKernel, Schedule, SequenceParallel, Sharding,
    Stage,
};
use parlayout::quantity::{BytesPerSecond, Seconds};
use parlayout::transformer::Normalization;
use parlayout::workload::{FlopConvention, Optimizer, Precision, Workload};

use crate::support::project;

/// Relative difference that the printed digits of the reference allow.
const CLOSE: f64 = 1e-6;

fn close(what: &str, ours: f64, reference: f64) {
    let difference = (ours - reference).abs();
    assert!(
        difference <= CLOSE * reference.abs(),
        "{what}: {ours} is not {reference}"
    );
}

/// The parameters of the study of Hagemann et al.'s runs as first published with the formulas.
fn literal_job(model: &str, gpus: u32, sequence_length: u64, global_batch: u64) -> Job {
    let mut cluster = catalog::cluster("a100-80gb-one-nic").expect("it is in the catalog");
    cluster.gpus = gpus;
    cluster.intra_node_bandwidth = BytesPerSecond::new(130e9);
    cluster.inter_node_bandwidth = BytesPerSecond::new(22e9);
    let efficiency = &mut cluster.efficiency;
    (efficiency.gemm, efficiency.congestion) = (0.754, 0.27);
    (efficiency.flash_attention_1, efficiency.flash_attention_2) = (0.302, 0.766);
    efficiency.ring_hop = Seconds::new(2e-6);
    efficiency.collective_latency = Seconds::ZERO;
    Job {
        transformer: {
            let mut transformer = catalog::model(model).expect("it is in the catalog");
            transformer.vocabulary = 128_000;
            // The reference counts no norms.
            transformer.normalization = Normalization::LayerNormWithoutParameters;
            transformer
        },
        cluster,
        framework: literal_framework(),
        workload: Workload {
            sequence_length,
            global_batch,
            precision: Precision::Bf16,
            optimizer: Optimizer::Adam,
            mfu_convention: FlopConvention::Paper,
            load_imbalance: parlayout::workload::USUAL_IMBALANCE,
        },
    }
}

fn literal_framework() -> Framework {
    let mut framework = catalog::framework("aleph-alpha-scaling").expect("it is in the catalog");
    let speed = &mut framework.speed;
    (speed.elementwise, speed.rmsnorm_bytes, speed.logit_bytes) = (1.08, 117.0, 31.0);
    (speed.softmax_bytes_fused, speed.softmax_bytes_torch) = (27.7, 68.6);
    (speed.launch, speed.launch_unfused) = (Seconds::new(1.46e-3), Seconds::new(0.58e-3));
    speed.micro_batch_overhead = Seconds::ZERO;
    (speed.bubble, speed.transfer_exposed) = (1.0, 1.0);
    framework
}

struct Worked {
    job: Job,
    degrees: [u32; 4],
    attention: AttentionKernel,
    kernel: RmsNormKernel,
    sequence_parallel: SequenceParallel,
    recomputed: bool,
    layers: &'static [u32],
    /// gemm, attention, elementwise, rmsnorm, collectives, launch, layer, head, p2p, step time,
    /// MFU, peak.
    reference: [f64; 12],
}

fn check(worked: &Worked) {
    let [
        micro_batch,
        tensor_parallel,
        pipeline_parallel,
        data_parallel,
    ] = worked.degrees;
    let cell = Combination {
        tensor_parallel,
        pipeline_parallel,
        data_parallel,
        context_parallel: 1,
        expert_parallel: 1,
        expert_tensor_parallel: 1,
        virtual_stages: 1,
        micro_batch,
        sequence_parallel: worked.sequence_parallel,
        sharding: Sharding::OptimizerStates,
        attention_kernel: worked.attention,
        rmsnorm_kernel: worked.kernel,
        schedule: Schedule::OneForwardOneBackward,
    };
    let stage = |&layers: &u32| {
        let mut stage = Stage {
            layers,
            ..Stage::default()
        };
        if worked.recomputed {
            stage.recomputed[Recompute::Full as usize] = layers;
        }
        stage
    };
    let stages: Vec<Stage> = worked.layers.iter().map(stage).collect();
    let costs = Costs::exact(&worked.job, &cell);
    let prediction = cost_model::evaluate(&worked.job, &costs, &stages);
    let [
        gemm,
        attention,
        elementwise,
        rmsnorm,
        collectives,
        launch,
        layer,
        head,
        p2p,
        ..,
    ] = worked.reference;
    let extra = costs.extra(pipeline_parallel - 1);
    close("head", extra.head.value(), head);
    close("p2p", extra.transfer.value(), p2p);
    let mut whole = costs.layer().time.total();
    if worked.recomputed {
        whole += costs.layer().recompute[Recompute::Full as usize];
    } else {
        close(
            "gemm",
            costs.layer().time[TimeComponent::Gemm].value(),
            gemm,
        );
        close(
            "attention",
            costs.layer().time[TimeComponent::Attention].value(),
            attention,
        );
        close(
            "elementwise",
            costs.layer().time[TimeComponent::Elementwise].value(),
            elementwise,
        );
        close(
            "rmsnorm",
            costs.layer().time[TimeComponent::RmsNorm].value(),
            rmsnorm,
        );
        close(
            "collectives",
            costs.layer().time[TimeComponent::TensorParallel].value(),
            collectives,
        );
        close(
            "launch",
            costs.layer().time[TimeComponent::Launch].value(),
            launch,
        );
    }
    close("layer", whole.value(), layer);
    close(
        "step time",
        prediction.step_time.value(),
        worked.reference[9],
    );
    close("MFU", prediction.mfu.value(), worked.reference[10]);
    // The reference counts no workspaces, and no sums of flash attention's softmax.
    let first = &prediction.memory.stages[0];
    let peak = prediction.memory.peak() - first[MemoryComponent::Buffers];
    let over = peak.value() / worked.reference[11] - 1.0;
    if worked.attention.is_flash() {
        assert!((0.0..0.005).contains(&over), "peak: {over}");
    } else {
        close("peak", peak.value(), worked.reference[11]);
    }
}

use AttentionKernel::{Flash1, Flash2, MegatronFused, Torch};
use RmsNormKernel::{Fused, Unfused};
use SequenceParallel::{Off, On};

#[test]
fn rows_without_checkpointing_are_as_worked_by_hand() {
    check(&Worked {
        job: literal_job("llama-13b", 64, 2048, 2048),
        degrees: [1, 1, 1, 64],
        attention: Flash2,
        kernel: Fused,
        sequence_parallel: Off,
        recomputed: false,
        layers: &[40],
        reference: [
            0.016568399,
            0.00062899116,
            0.0012829757,
            0.0,
            0.0,
            0.00146,
            0.019940366,
            0.039214123,
            0.0,
            31.219376,
            0.59897503,
            8.2463293e10,
        ],
    });
    check(&Worked {
        job: literal_job("llama-30b", 64, 8192, 512),
        degrees: [1, 4, 16, 1],
        attention: Flash2,
        kernel: Fused,
        sequence_parallel: On,
        recomputed: false,
        layers: &[3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 3, 2],
        reference: [
            0.027947193,
            0.003270754,
            0.0016662022,
            0.0,
            0.0050331648,
            0.00146,
            0.039377314,
            0.076528425,
            0.0049569047,
            85.546217,
            0.59444374,
            5.5620665e10,
        ],
    });
    check(&Worked {
        job: literal_job("llama-30b", 128, 8192, 512),
        degrees: [4, 4, 4, 8],
        attention: Flash2,
        kernel: Fused,
        sequence_parallel: Off,
        recomputed: false,
        layers: &[15, 16, 15, 14],
        reference: [
            0.11178877,
            0.013083016,
            0.01186336,
            0.0,
            0.020132659,
            0.00146,
            0.15832781,
            0.3061137,
            0.15862095,
            52.58593,
            0.48351729,
            2.7896431e11,
        ],
    });
}

#[test]
fn checkpointed_rows_are_as_worked_by_hand() {
    check(&Worked {
        job: literal_job("llama-65b", 128, 2048, 2048),
        degrees: [2, 2, 4, 16],
        attention: Flash1,
        kernel: Unfused,
        sequence_parallel: Off,
        recomputed: true,
        layers: &[20, 21, 20, 19],
        reference: [
            0.056378201,
            0.0032819414,
            0.0034434845,
            0.0064179639,
            0.0030973322,
            0.00272,
            0.075338923,
            0.068768339,
            0.024403223,
            111.36491,
            0.39349811,
            5.4378627e10,
        ],
    });
    check(&Worked {
        job: literal_job("llama-13b", 128, 8192, 512),
        degrees: [1, 2, 4, 16],
        attention: Torch,
        kernel: Unfused,
        sequence_parallel: Off,
        recomputed: true,
        layers: &[10, 11, 10, 9],
        reference: [
            0.044182398,
            0.086944828,
            0.0043099096,
            0.0080224549,
            0.0038716652,
            0.00272,
            0.15005126,
            0.096458002,
            0.030504029,
            59.212962,
            0.18468334,
            4.6873772e10,
        ],
    });
    check(&Worked {
        job: literal_job("llama-30b", 256, 2048, 2048),
        degrees: [1, 1, 4, 64],
        attention: MegatronFused,
        kernel: Unfused,
        sequence_parallel: Off,
        recomputed: true,
        layers: &[15, 16, 15, 14],
        reference: [
            0.037262924,
            0.0068370144,
            0.0022216029,
            0.0026072979,
            0.0,
            0.00272,
            0.051648839,
            0.049483792,
            0.0099138095,
            33.158608,
            0.33677273,
            4.2181853e10,
        ],
    });
}

/// Predictions of the reference for rows of `data/`, by column.
fn references() -> Vec<HashMap<String, String>> {
    let mut reader =
        csv::Reader::from_path(project("tests/data/reference.csv")).expect("it is there");
    reader
        .deserialize()
        .map(|row| row.expect("a row"))
        .collect()
}

/// What the reference says of two frameworks: it is older than what the catalog says of them.
fn as_referenced(framework: &mut Framework) {
    framework.memory.vocabulary_multiple = 1;
    match framework.name.as_str() {
        "megatron-lm-2023" => {
            if framework.partition != Partition::Even {
                framework.partition = Partition::EmbeddingAndHead;
            }
            framework.usual_attention = AttentionKernel::Flash2;
            framework.usual_rmsnorm = RmsNormKernel::Unfused;
        }
        "deepspeed" => framework.speed.logit_bytes = 20.0,
        _ => return,
    }
    framework.memory.logits = Logits::Gathered;
    framework.memory.logit_bytes_gathered = 6.0;
}

/// The figures with which the reference was computed.
fn figures_of_reference(setup: &mut runs::Setup) {
    let cluster = &mut setup.cluster;
    cluster.intra_node_bandwidth = BytesPerSecond::new(149e9);
    cluster.inter_node_bandwidth = BytesPerSecond::new(25.4e9);
    let efficiency = &mut cluster.efficiency;
    (efficiency.gemm, efficiency.congestion) = (0.733, 0.378);
    (efficiency.flash_attention_1, efficiency.flash_attention_2) = (0.28, 0.69);
    efficiency.ring_hop = Seconds::new(1.73e-6);
    efficiency.collective_latency = Seconds::new(15.4e-6);
    let speed = &mut setup.framework.speed;
    (speed.elementwise, speed.rmsnorm_bytes, speed.logit_bytes) = (1.0, 120.5, 35.3);
    (speed.softmax_bytes_fused, speed.softmax_bytes_torch) = (29.8, 70.0);
    (speed.launch, speed.launch_unfused) = (Seconds::new(0.9e-3), Seconds::new(0.55e-3));
    speed.micro_batch_overhead = Seconds::new(3e-3);
    (speed.bubble, speed.transfer_exposed) = (0.853, 1.147);
}

/// The reference is older than the formulas of overlap and of products in 8 bits, which the paper's runs do
/// not need.
#[test]
fn rows_of_the_paper_are_as_the_reference_predicts() {
    let runs: Vec<Run> = ["data/hagemann-2023.csv", "data/other-runs.csv"]
        .iter()
        .map(|file| project(file))
        .filter(|path| path.exists())
        .flat_map(|path| {
            runs::read(&path)
                .expect("the shipped runs are readable")
                .runs
        })
        .collect();
    let setups = RunSetups::new(None, None).expect("no framework is named");
    for reference in references() {
        let named = |run: &&Run| run.source == reference["source"] && run.run == reference["run"];
        let Some(run) = runs.iter().find(named) else {
            continue; // The measured runs are optional.
        };
        // The reference knows no shared embeddings.
        let run = &Run {
            tied_embeddings: None,
            ..run.clone()
        };
        let mut setup = setups.setup(run).expect("it is known");
        if run.source != "hagemann-2023" {
            continue;
        }
        as_referenced(&mut setup.framework);
        figures_of_reference(&mut setup);
        let modelled = runs::model(run, &setup).expect("it is modelled");
        let name = format!("{} {}", run.source, run.run);
        let column = |name: &str| reference[name].parse::<f64>().ok();
        let cell = &modelled.layout.combination;
        // It counts no norms either; memory is compared with what frameworks allocate instead.
        let mut job = modelled.job.clone();
        job.transformer.normalization = Normalization::LayerNormWithoutParameters;
        let costs = Costs::exact(&job, cell).with_vocabulary(modelled.vocabulary);
        let prediction = cost_model::evaluate(&job, &costs, &modelled.layout.stages);
        let recomputed = modelled.layout.stages[0].checkpointed_layers() > 0;
        let mut layer = costs.layer().time.total();
        if recomputed {
            layer += costs.layer().recompute[Recompute::Full as usize];
        } else {
            let gemm = column("gemm").expect("a number");
            close(
                &format!("{name}: gemm"),
                costs.layer().time[TimeComponent::Gemm].value(),
                gemm,
            );
        }
        let time = &prediction.time;
        let ours = [
            ("layer", layer.value()),
            ("p2p", costs.extra(0).transfer.value()),
            ("data_parallel", time[TimeComponent::DataParallel].value()),
            ("optimizer", time[TimeComponent::Optimizer].value()),
            ("step_time", prediction.step_time.value()),
        ];
        for (part, value) in ours {
            if let Some(reference) = column(part) {
                close(&format!("{name}: {part}"), value, reference);
            }
        }
    }
}
