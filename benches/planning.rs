//! Speed of the cost model, the bounds and the solver, each against another way of doing the same.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use formulations::deadline::Deadline;
use formulations::solve;
use formulations::staged::{Group, bounds, near_even, optimum, optimum_within};
use parlayout::axis::AxisSet;
use parlayout::cost_model::{self, CostModel};
use parlayout::explain::{TimeLimits, explain};
use parlayout::instance::{self, Instance, Overrides};
use parlayout::layout::Layout;
use parlayout::plan::Formulation;
use parlayout::planner::cost_table::CostTable;
use parlayout::planner::{self, PlanOptions, Pruning, groups, screening};
use parlayout::quantity::Bytes;
use parlayout::space;
use rayon::prelude::*;

/// A job from the catalog, every axis open.
fn job(model: &str, cluster: &str, gpus: u32, sequence: u32, batch: u32) -> Instance {
    let mut overrides = Overrides::none();
    overrides.flag("model", model);
    overrides.flag("cluster", cluster);
    overrides.flag("gpus", &gpus.to_string());
    overrides.flag("sequence-length", &sequence.to_string());
    overrides.flag("global-batch", &batch.to_string());
    instance::from_flags(&overrides).expect("the catalog's presets are valid")
}

/// The largest space: 1T parameters on 16,384 GPUs, all axes and all kernels.
fn largest() -> Instance {
    let mut overrides = Overrides::none();
    for (flag, value) in [
        ("model", "megatron-1t"),
        ("cluster", "dgx-h100-80gb"),
        ("gpus", "16384"),
        ("sequence-length", "8192"),
        ("global-batch", "12288"),
    ] {
        overrides.flag(flag, value);
    }
    for assignment in [
        "search.rmsnorm_kernel=[false, true]",
        "search.attention_kernel=[\"torch\", \"megatron-fused\", \"flash-attention-2\"]",
    ] {
        overrides.set(assignment);
    }
    instance::from_flags(&overrides).expect("the catalog's presets are valid")
}

fn evaluations(criterion: &mut Criterion) {
    let instance = job("llama-13b", "dgx-a100-80gb", 64, 2048, 2048);
    let layouts: Vec<Layout> = space::list(&instance)
        .combinations
        .iter()
        .filter(|(_, broken)| broken.is_empty())
        .filter_map(|(candidate, _)| space::layout(&instance, candidate))
        .collect();
    let mut group = criterion.benchmark_group("cost_model");
    group.throughput(Throughput::Elements(layouts.len() as u64));
    group.bench_function("evaluate_13b_64gpu", |bencher| {
        bencher.iter(|| {
            let mut model = CostModel::new(&instance.job);
            let mfus = layouts.iter().map(|layout| {
                let costs = model.costs(&layout.combination);
                cost_model::evaluate(&instance.job, &costs, &layout.stages)
                    .mfu
                    .value()
            });
            mfus.fold(0.0, f64::max)
        });
    });
    group.finish();
}

fn bounding(criterion: &mut Criterion) {
    let instance = largest();
    let table = CostTable::new(&instance, Formulation::Staged);
    let layers = i64::from(instance.job.transformer.layers);
    let groups: Vec<Group> = groups::choices(&table)
        .iter()
        .map(|choice| groups::relaxed(&table, choice).group)
        .collect();
    let mut group = criterion.benchmark_group("bounds_of_the_largest_space");
    group.sample_size(10);
    group.throughput(Throughput::Elements(groups.len() as u64));
    group.bench_function("both_bounds_of_every_cell", |bencher| {
        let mut scratch = bounds::Scratch::default();
        bencher.iter(|| {
            let bounds = groups.iter().map(|group| {
                let second = bounds::bottleneck_bound(group, layers, &mut scratch);
                bounds::balance_bound(group, layers).max(second.unwrap_or(0))
            });
            bounds.max()
        });
    });
    group.bench_function("near_even_evaluation_of_every_cell", |bencher| {
        bencher.iter(|| {
            groups
                .iter()
                .filter_map(|group| near_even(group, layers))
                .min()
        });
    });
    group.bench_function("screen", |bencher| {
        bencher.iter(|| {
            screening::screen(
                &table,
                4,
                AxisSet::EMPTY,
                Pruning::ByBounds,
                Deadline::NEVER,
            )
            .choices
            .len()
        });
    });
    group.finish();
}

/// Jobs from 7B on 64 GPUs to 1T on 16,384, every axis open.
const JOBS: [(&str, &str, u32, u32, u32); 7] = [
    ("llama-2-7b", "dgx-a100-80gb", 64, 4096, 1024),
    ("llama-13b", "dgx-a100-80gb", 64, 2048, 2048),
    ("llama-65b", "dgx-a100-80gb", 128, 2048, 2048),
    ("llama-3.1-70b", "dgx-h100-80gb", 256, 8192, 512),
    ("gpt-3-175b", "dgx-h100-80gb", 1024, 2048, 1536),
    ("llama-3.1-405b", "dgx-h100-80gb", 8192, 8192, 2048),
    ("megatron-1t", "dgx-h100-80gb", 16384, 8192, 12288),
];

/// Every job with the name of its benchmark, and the largest space.
fn jobs() -> Vec<(String, Instance)> {
    let named = |&(model, cluster, gpus, sequence, batch): &(&str, &str, u32, u32, u32)| {
        let instance = job(model, cluster, gpus, sequence, batch);
        (format!("{model}_{gpus}gpu"), instance)
    };
    let mut jobs: Vec<(String, Instance)> = JOBS.iter().map(named).collect();
    jobs.push(("largest_space".to_owned(), largest()));
    jobs
}

fn solving(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("solve_staged");
    group.sample_size(10);
    for (name, instance) in jobs() {
        group.bench_function(name, |bencher| {
            bencher.iter(|| planner::plan(&instance, &PlanOptions::default()).expect("an answer"));
        });
    }
    group.finish();
}

/// The part of the same solutions that passes within HiGHS.
fn within_highs(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("solve_staged_within_highs");
    group.sample_size(10);
    for (name, instance) in jobs() {
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|rounds| {
                let before = solve::total().time;
                for _ in 0..rounds {
                    let outcome = planner::plan(&instance, &PlanOptions::default());
                    black_box(outcome.expect("an answer"));
                }
                solve::total().time.saturating_sub(before)
            });
        });
    }
    group.finish();
}

/// The best layout alone by the program, and by exhaustive search: the exact dynamic program of
/// every combination, in order of a first bound, until that is above the best so far. Each is told
/// the best so far and gives up when it cannot beat it.
fn exhaustive(criterion: &mut Criterion) {
    let jobs = [
        (
            "llama-65b_128gpu",
            job("llama-65b", "dgx-a100-80gb", 128, 2048, 2048),
        ),
        (
            "llama-3.1-405b_8192gpu",
            job("llama-3.1-405b", "dgx-h100-80gb", 8192, 8192, 2048),
        ),
    ];
    let mut group = criterion.benchmark_group("best_layout");
    group.sample_size(10);
    for (name, instance) in &jobs {
        let [plain, bounded] =
            [Incumbent::Ignored, Incumbent::Used].map(|it| exhaustive_optimum(instance, it));
        assert_eq!(plain, bounded, "{name}");
        let staged = PlanOptions::default();
        group.bench_function(format!("{name}/staged"), |bencher| {
            bencher.iter(|| planner::best(instance, &staged).expect("an answer"));
        });
        group.bench_function(format!("{name}/exhaustive"), |bencher| {
            bencher.iter(|| exhaustive_optimum(instance, Incumbent::Ignored));
        });
        group.bench_function(format!("{name}/exhaustive_with_incumbent"), |bencher| {
            bencher.iter(|| exhaustive_optimum(instance, Incumbent::Used));
        });
        let choice = PlanOptions {
            formulation: Formulation::LayoutChoice,
            ..PlanOptions::default()
        };
        group.bench_function(format!("{name}/layout_choice"), |bencher| {
            bencher.iter(|| planner::best(instance, &choice).expect("an answer"));
        });
    }
    group.finish();
}

/// Whether the dynamic program of a combination is told the best objective so far.
#[derive(Clone, Copy, PartialEq)]
enum Incumbent {
    Ignored,
    Used,
}

/// The least objective of all combinations.
fn exhaustive_optimum(instance: &Instance, incumbent: Incumbent) -> i64 {
    let layers = i64::from(instance.job.transformer.layers);
    let table = CostTable::new(instance, Formulation::Staged);
    let groups: Vec<Group> = groups::choices(&table)
        .iter()
        .flat_map(|choice| groups::variants(&table, choice))
        .map(|variant| variant.group)
        .collect();
    let bounds = groups
        .iter()
        .map(|group| bounds::balance_bound(group, layers));
    let mut order: Vec<(i64, usize)> = bounds.zip(0..).collect();
    order.sort_unstable();
    let mut best = i64::MAX;
    for (bound, index) in order {
        if bound > best {
            break;
        }
        let plan = match incumbent {
            Incumbent::Ignored => optimum(&groups[index], index, &table.layers),
            Incumbent::Used => {
                optimum_within(&groups[index], index, &table.layers, best, Deadline::NEVER)
                    .unwrap_or_default()
            }
        };
        best = plan.map_or(best, |plan| best.min(plan.objective));
    }
    best
}

/// A job that is hopelessly short of memory: what clashes and what repairs it.
fn explaining(criterion: &mut Criterion) {
    let mut instance = job("megatron-1t", "dgx-a100-80gb", 3072, 2048, 1536);
    instance.job.cluster.accelerator.usable_memory = Bytes::new(3e9);
    let mut group = criterion.benchmark_group("explain");
    group.sample_size(10);
    group.bench_function("megatron-1t_3072gpu_3gb", |bencher| {
        let reread = |_: &[String]| Some(instance.clone());
        bencher.iter(|| explain(&instance, None, &reread, &TimeLimits::NONE).expect("an answer"));
    });
    group.finish();
}

fn batches(criterion: &mut Criterion) {
    let jobs: Vec<Instance> = (0..32)
        .map(|index| job("llama-13b", "dgx-a100-80gb", 64, 2048, 256 * (index + 1)))
        .collect();
    let mut group = criterion.benchmark_group("batch_of_32");
    group.sample_size(10);
    group.throughput(Throughput::Elements(jobs.len() as u64));
    let solve = |instance: &Instance| {
        planner::plan(instance, &PlanOptions::default())
            .expect("an answer")
            .status()
    };
    group.bench_function("one_core", |bencher| {
        bencher.iter_batched(
            || &jobs,
            |jobs| jobs.iter().map(solve).collect::<Vec<_>>(),
            BatchSize::PerIteration,
        );
    });
    group.bench_function("all_cores", |bencher| {
        bencher.iter(|| jobs.par_iter().map(solve).collect::<Vec<_>>());
    });
    group.finish();
}

criterion_group!(
    benches,
    evaluations,
    bounding,
    solving,
    within_highs,
    exhaustive,
    explaining,
    batches
);
criterion_main!(benches);
