//! An ordering over the catalog: what has at most as much of every figure is never predicted faster.

use std::path::Path;

use parlayout::catalog::{self, Kind};
use parlayout::cluster::{CalibrationKind, Cluster};
use parlayout::cost_model::{self, Costs};
use parlayout::instance::{self, Overrides};
use parlayout::job::Job;
use parlayout::layout::{
    AttentionKernel, Combination, RmsNormKernel, Schedule, SequenceParallel, Sharding, Stage,
};
use parlayout::workload::Precision;

/// A job of the 13B on a cluster as an instance file describes it, always under one framework.
fn job(cluster: &str, precision: Precision) -> Job {
    let text = format!(
        "[model]\npreset = \"llama-13b\"\n[framework]\npreset = \"unrestricted\"\n[cluster]\n{cluster}\n\
         [training]\nsequence_length = 4096\nglobal_batch = 1024\n"
    );
    let read = instance::from_text("job.toml", &text, Path::new(""), &Overrides::none());
    let mut job = read.expect("the job is valid").job;
    // A GPU without fp8 units takes those for bf16.
    job.workload.precision = precision;
    job
}

/// Names of the catalog.
fn names(kind: Kind) -> Vec<String> {
    let entries = catalog::entries().into_iter();
    entries
        .filter(|entry| entry.kind == kind)
        .map(|entry| entry.name)
        .collect()
}

/// What the data sheet says of a GPU, its node and its network.
fn data_sheet(cluster: &Cluster) -> [f64; 7] {
    let gpu = &cluster.accelerator;
    [
        gpu.usable_memory.value(),
        gpu.memory_bandwidth.value(),
        gpu.peak(Precision::Bf16).value(),
        gpu.peak(Precision::Fp8).value(),
        cluster.intra_node_bandwidth.value(),
        cluster.inter_node_bandwidth.value() / f64::from(cluster.gpus_per_node),
        f64::from(cluster.domain()),
    ]
}

/// Step times of layouts that lean on different figures.
fn times(job: &Job) -> Vec<f64> {
    let gpus = job.cluster.gpus;
    let mut found = Vec::new();
    for tensor_parallel in [1, 2, 8, 16] {
        for (pipeline_parallel, context_parallel) in [(1, 1), (4, 1), (1, 2)] {
            for sharding in [Sharding::OptimizerStates, Sharding::Parameters] {
                for attention_kernel in AttentionKernel::ALL {
                    let combination = Combination {
                        tensor_parallel,
                        pipeline_parallel,
                        data_parallel: gpus
                            / (tensor_parallel * pipeline_parallel * context_parallel),
                        context_parallel,
                        expert_parallel: 1,
                        expert_tensor_parallel: 1,
                        virtual_stages: 1,
                        micro_batch: 1,
                        sequence_parallel: SequenceParallel::Off,
                        sharding,
                        attention_kernel: *attention_kernel,
                        rmsnorm_kernel: RmsNormKernel::Unfused,
                        schedule: Schedule::OneForwardOneBackward,
                    };
                    let stage = Stage {
                        layers: 40 / pipeline_parallel,
                        recomputed: [0; 4],
                    };
                    let costs = Costs::exact(job, &combination);
                    let stages = vec![stage; pipeline_parallel as usize];
                    found.push(cost_model::duration(&costs, &stages).value());
                }
            }
        }
    }
    found
}

/// Who makes a job's GPU, by its source: kernels of another vendor reach another share of its peaks.
fn vendor(job: &Job) -> String {
    let gpu = &job.cluster.accelerator.name;
    let mut entries = catalog::entries().into_iter();
    let entry = entries.find(|entry| entry.kind == Kind::Accelerator && entry.name == *gpu);
    let source = entry.expect("it is in the catalog").source;
    let others = ["AMD", "AWS", "Google", "Huawei"].into_iter();
    let mut named = others.filter(|vendor| source.starts_with(vendor));
    named.next().unwrap_or("NVIDIA").to_owned()
}

/// Checks every pair of jobs of one vendor of which one has at most as much of every figure.
fn check(jobs: &[Job], least_pairs: usize) {
    let sheets: Vec<_> = jobs.iter().map(|job| data_sheet(&job.cluster)).collect();
    let times: Vec<_> = jobs.iter().map(times).collect();
    let mut pairs = 0;
    for less in 0..jobs.len() {
        for more in (0..jobs.len()).filter(|&more| more != less) {
            let figures = sheets[less].iter().zip(&sheets[more]);
            let is_lesser = figures.into_iter().all(|(less, more)| less <= more);
            if !is_lesser || vendor(&jobs[less]) != vendor(&jobs[more]) {
                continue;
            }
            pairs += 1;
            for (slower, faster) in times[less].iter().zip(&times[more]) {
                assert!(
                    *slower >= faster * (1.0 - 1e-12),
                    "{} takes {slower} s, {} {faster} s",
                    jobs[less].cluster.name,
                    jobs[more].cluster.name
                );
            }
        }
    }
    assert!(pairs >= least_pairs, "{pairs} pairs");
}

fn is_equal(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-12
}

#[test]
fn a_lesser_gpu_is_never_predicted_faster() {
    for precision in [Precision::Bf16, Precision::Fp8] {
        let jobs = names(Kind::Accelerator).into_iter().map(|name| {
            let network =
                "intra_node_bandwidth = \"200 GB/s\"\ninter_node_bandwidth = \"200 GB/s\"";
            job(
                &format!("accelerator = \"{name}\"\ngpus = 64\n{network}"),
                precision,
            )
        });
        check(&jobs.collect::<Vec<_>>(), 60);
    }
}

#[test]
fn a_lesser_cluster_is_never_predicted_faster() {
    for gpus in [64, 1024] {
        let jobs = names(Kind::Cluster)
            .into_iter()
            .map(|name| {
                job(
                    &format!("preset = \"{name}\"\ngpus = {gpus}"),
                    Precision::Bf16,
                )
            })
            .filter(|job| job.cluster.calibration.kind == CalibrationKind::DataSheet);
        check(&jobs.collect::<Vec<_>>(), 20);
    }
}

/// With an A100's kernels an H800 was said to reach 53.4 % where an H100 reaches 46.7 %.
#[test]
fn a_derived_part_has_the_kernels_of_its_generation() {
    let gemm = |accelerator: &str| {
        let network = "intra_node_bandwidth = \"200 GB/s\"\ninter_node_bandwidth = \"200 GB/s\"";
        let text = format!("accelerator = \"{accelerator}\"\ngpus = 64\n{network}");
        job(&text, Precision::Bf16).cluster.efficiency.gemm
    };
    for part in [
        "h800-80gb",
        "h20-96gb",
        "h200-141gb",
        "gh200-96gb",
        "h100-94gb",
    ] {
        assert!(is_equal(gemm(part), gemm("h100-80gb")), "{part}");
        assert_eq!(catalog::generation(part), "h100-80gb");
    }
    assert!(is_equal(gemm("a800-80gb"), gemm("a100-80gb")));
    // A fit to one GPU says nothing of kernels on another generation.
    let other = job(
        "preset = \"a100-80gb-one-nic\"\naccelerator = \"h100-80gb\"\ngpus = 64",
        Precision::Bf16,
    );
    assert!(is_equal(other.cluster.efficiency.gemm, gemm("h100-80gb")));
    let same = job(
        "preset = \"a100-80gb-one-nic\"\naccelerator = \"a100-40gb\"\ngpus = 64",
        Precision::Bf16,
    );
    assert!(is_equal(same.cluster.efficiency.gemm, 0.747));
}
