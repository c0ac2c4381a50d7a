//! What changes buy, and Pareto fronts.

use parlayout::change::Change;
use parlayout::instance::{self, Instance, Overrides};
use parlayout::planner::objective::counts;
use parlayout::planner::{self, Best, PlanOptions};
use parlayout::price::{self, Front, FrontKind, MORE_GPUS, PriceList, Proposal, Sought};
use parlayout::quantity::Bytes;
use parlayout::report::Document;
use parlayout::report::document::{ParetoDocument, PriceDocument};

use crate::cli::{check, check_snapshot};
use crate::support::project;

fn shipped(name: &str) -> Instance {
    let path = project("instances").join(name);
    instance::read(&path, &Overrides::none()).expect("shipped files are valid")
}

fn with_sets(name: &str, sets: &[&str]) -> Instance {
    let mut overrides = Overrides::none();
    for set in sets {
        overrides.set(set);
    }
    instance::read(&project("instances").join(name), &overrides).expect("valid")
}

fn best(instance: &Instance) -> Best {
    planner::best(instance, &PlanOptions::default()).expect("an answer")
}

fn prices(instance: &Instance) -> PriceList {
    price::price(instance, &PlanOptions::default(), &|_, _| ()).expect("an answer")
}

fn offer(prices: &PriceList, key: &str) -> Best {
    let mut offers = prices.offers.iter();
    let found = offers.find(|offer| offer.change.key() == key);
    found.expect("it is offered").best.clone()
}

#[test]
fn an_offer_is_the_plan_of_the_changed_file() {
    let file = "hagemann-65b-2k-64gpu.toml";
    let prices = prices(&shipped(file));
    let check = |key: &str, sets: &[&str]| {
        let changed = best(&with_sets(file, sets));
        let (offered, changed) = (offer(&prices, key), changed);
        let layout = |best: &Best| best.layout().map(|evaluated| evaluated.layout.clone());
        assert_eq!(layout(&offered), layout(&changed), "{key}");
    };
    check("nodes", &["gpus=72"]);
    check("twice-nodes", &["gpus=128"]);
    check(
        "half-sequence",
        &["sequence_length=1024", "global_batch=4096"],
    );
    check(
        "twice-sequence",
        &["sequence_length=4096", "global_batch=1024"],
    );
    check("twice-global-batch", &["global_batch=4096"]);
    check("free-partition", &["framework.partition=free"]);
    check("free-checkpointing", &["framework.checkpointing=free"]);
    // The framework has no ZeRO-3.
    assert!(
        prices
            .offers
            .iter()
            .all(|offer| offer.change.key() != "zero-3")
    );
}

#[test]
fn more_freedom_and_more_memory_never_cost() {
    for file in [
        "hagemann-13b-8k-64gpu.toml",
        "llama-65b-2k-128gpu-24gb.toml",
    ] {
        let instance = shipped(file);
        let prices = prices(&instance);
        let today = prices.today.layout().expect("feasible");
        let today = price::tokens_per_second(today, instance.job.cluster.gpus);
        let kinds = [
            "memory",
            "zero-3",
            "free",
            "checkpointing",
            "fused",
            "max-oom-risk",
            "twice-int",
        ];
        let mut seen = 0;
        for offer in &prices.offers {
            if kinds
                .iter()
                .any(|kind| offer.change.key().starts_with(kind))
            {
                let speed = offer.tokens_per_second().expect("no less is possible");
                assert!(speed >= today * (1.0 - 1e-4), "{file}: {}", offer.change);
                seen += 1;
            }
        }
        assert!(seen >= 3, "{file}");
        let speeds: Vec<f64> = prices
            .offers
            .iter()
            .map(|offer| offer.tokens_per_second().unwrap_or(0.0))
            .collect();
        assert!(speeds.is_sorted_by(|a, b| a >= b), "{speeds:?}");
    }
}

#[test]
fn an_infeasible_job_is_told_the_least_that_fits() {
    let instance = shipped("llama-65b-2k-16gpu-24gb.toml");
    let prices = prices(&instance);
    assert_eq!(prices.today, Best::Infeasible);
    let found = |key: &str| {
        let mut proposals = prices.offers.iter().map(|offer| &offer.change);
        let found = proposals.find(|proposal| proposal.key() == key);
        found.expect("it helps").changes()
    };
    let [Change::Memory { from, to }] = found("least-memory") else {
        panic!("found by its key");
    };
    let less = Proposal::memory(&instance, *to - *from - Bytes::new(1e8));
    assert_eq!(best(&less.apply(&instance)), Best::Infeasible);
    let [Change::Gpus { from, to }] = found("fewest-nodes") else {
        panic!("found by its key");
    };
    let nodes = (to - from) / instance.job.cluster.gpus_per_node;
    for fewer in 1..nodes {
        let after = Proposal::nodes(&instance, fewer).apply(&instance);
        assert_eq!(best(&after), Best::Infeasible, "{fewer}");
    }
}

#[test]
fn prices_are_the_same_each_time() {
    let instance = shipped("qwen3-8b-16k-16xh200.toml");
    let once = PriceDocument::new(&instance, &prices(&instance)).json();
    assert_eq!(
        once,
        PriceDocument::new(&instance, &prices(&instance)).json()
    );
}

fn front(instance: &Instance, kind: FrontKind) -> Front {
    let cluster = &instance.job.cluster;
    let sought = match kind {
        FrontKind::MemoryMfu => Sought::Memory,
        FrontKind::GpusTime => Sought::Gpus(counts(cluster, 1, MORE_GPUS * cluster.gpus)),
    };
    price::front(instance, &sought, &PlanOptions::default(), &|_, _| ()).expect("an answer")
}

fn with_memory(instance: &Instance, memory: f64) -> Instance {
    let mut after = instance.clone();
    after.job.cluster.accelerator.usable_memory = Bytes::new(memory);
    after
}

#[test]
fn points_of_the_memory_front_are_best_for_their_memory() {
    let instance = shipped("hagemann-30b-8k-64gpu.toml");
    let front = front(&instance, FrontKind::MemoryMfu);
    assert!(front.points.len() > 2, "{}", front.points.len());
    let mfus: Vec<f64> = front
        .points
        .iter()
        .map(|point| point.evaluated.prediction.mfu.value())
        .collect();
    assert!(mfus.is_sorted_by(|a, b| a < b), "{mfus:?}");
    for (point, mfu) in front.points.iter().zip(&mfus) {
        // Programs round memory to KiB.
        let memory = point.memory.value() + 1e6;
        let found = best(&with_memory(&instance, memory));
        let found = found
            .layout()
            .expect("the point fits")
            .prediction
            .mfu
            .value();
        assert!((found / mfu - 1.0).abs() < 1e-5, "{found} {mfu}");
    }
    let least = front.points[0].memory.value() * 0.97;
    assert_eq!(best(&with_memory(&instance, least)), Best::Infeasible);
}

#[test]
fn points_of_the_time_front_are_fastest_and_undominated() {
    let instance = shipped("hagemann-13b-2k-64gpu.toml");
    let front = front(&instance, FrontKind::GpusTime);
    let steps: Vec<f64> = front
        .points
        .iter()
        .map(|point| point.evaluated.prediction.step_time.value())
        .collect();
    assert!(steps.is_sorted_by(|a, b| a > b), "{steps:?}");
    for point in &front.points {
        let alone = with_sets(
            "hagemann-13b-2k-64gpu.toml",
            &[&format!("gpus={}", point.gpus)],
        );
        assert_eq!(best(&alone).layout(), Some(&point.evaluated));
    }
}

#[test]
fn pictures_are_xml_with_axes_and_units() {
    let instance = with_sets("hagemann-13b-2k-64gpu.toml", &["model.name=a<b&c"]);
    for (kind, unit) in [
        (FrontKind::MemoryMfu, "usable memory per GPU, GiB"),
        (FrontKind::GpusTime, "step time, s"),
    ] {
        let svg = ParetoDocument::new(&instance, &front(&instance, kind)).svg();
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        assert!(svg.contains(unit) && svg.contains("a&lt;b&amp;c"), "{svg}");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}

const PAPER: &str = "instances/hagemann-13b-2k-64gpu.toml";

#[test]
fn prices_are_printed() {
    check_snapshot("price", &["price", PAPER], 0);
    let infeasible = "instances/llama-65b-2k-16gpu-24gb.toml";
    check_snapshot("price_infeasible", &["price", infeasible], 3);
    check_snapshot("price_csv", &["price", PAPER, "--format", "csv"], 0);
    check_snapshot("price_front", &["price", PAPER, "--pareto", "gpus-time"], 0);
    let csv = ["price", PAPER, "--pareto", "memory-mfu", "--format", "csv"];
    check_snapshot("price_front_csv", &csv, 0);
    check_snapshot("price_help", &["price", "--help"], 0);
    let bad = [
        "price",
        PAPER,
        "--pareto",
        "gpus-time",
        "--svg",
        "front.png",
    ];
    check_snapshot("price_bad_picture", &bad, 2);
}

/// Each row of a front is told without the one before it.
#[test]
fn rows_of_a_front_stand_alone() {
    let (text, _) = check(&["price", PAPER, "--pareto", "gpus-time"], 0);
    let rows: Vec<&str> = text.lines().filter(|line| line.contains(" % |")).collect();
    assert!(rows.len() > 2, "{text}");
    for row in rows {
        assert!(row.contains("TP ") && row.contains("PP "), "{row}");
    }
    assert!(text.contains("All have zero-1,"), "{text}");
}

#[test]
fn tables_fit_eighty_columns() {
    for file in [
        "llama-65b-2k-128gpu-24gb",
        "llama-3.1-405b-8k-8192xh100",
        "megatron-1t-2k-3072xa100",
    ] {
        let file = format!("instances/{file}.toml");
        for more in [
            &[][..],
            &["--pareto", "memory-mfu"],
            &["--pareto", "gpus-time"],
        ] {
            let arguments: Vec<&str> = ["price", &file].iter().chain(more).copied().collect();
            let (text, _) = check(&arguments, 0);
            for line in text.lines() {
                assert!(line.chars().count() <= 80, "{line}");
            }
        }
    }
}

#[test]
fn documents_agree_with_the_tables() {
    let (text, _) = check(&["price", PAPER, "--format", "json"], 0);
    let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(document["schema"], "parlayout/price/v1");
    let offers = document["offers"].as_array().expect("a list");
    let speed = |of: &serde_json::Value| of["tokens_per_s"].as_f64();
    let today = speed(&document["today"]).expect("feasible");
    for offer in offers {
        let gain = speed(offer).map(|speed| speed / today - 1.0);
        match (gain, offer["gain"].as_f64()) {
            (Some(gain), Some(told)) => assert!((gain - told).abs() < 1e-4, "{offer}"),
            (None, None) => assert_eq!(offer["status"], "infeasible"),
            other => panic!("{other:?}"),
        }
    }
    let (text, _) = check(
        &["price", PAPER, "--pareto", "gpus-time", "--format", "json"],
        0,
    );
    let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(document["schema"], "parlayout/pareto/v1");
    assert!(document["points"].as_array().expect("a list").len() > 2);
}

#[test]
fn the_numbers_of_gpus_of_a_front_can_be_named() {
    let file = "instances/hagemann-13b-2k-64gpu.toml";
    let front = |further: &[&str], code: i32| {
        let arguments = [&["price", file, "--pareto"], further].concat();
        check(&arguments, code)
    };
    let range = [
        "gpus-time",
        "--gpus-from",
        "48",
        "--gpus-to",
        "64",
        "--format",
        "csv",
    ];
    let (csv, _) = front(&range, 0);
    let gpus: Vec<&str> = csv
        .lines()
        .skip(1)
        .filter_map(|line| line.split(',').next())
        .collect();
    assert_eq!(gpus.last(), Some(&"64"), "{csv}");
    assert!(
        gpus.iter().all(|gpus| ["48", "56", "64"].contains(gpus)),
        "{csv}"
    );
    for (further, part) in [
        (
            &["gpus-time", "--gpus-from", "128", "--gpus-to", "64"][..],
            "at least `128`",
        ),
        (
            &["gpus-time", "--gpus-from", "0"],
            "0 is not in 1..=1048576",
        ),
        (&["gpus-time", "--gpus-to", "many"], "invalid value 'many'"),
        (
            &["memory-mfu", "--gpus-to", "64"],
            "add `--pareto gpus-time`",
        ),
    ] {
        let (stdout, stderr) = front(further, 2);
        assert!(stdout.is_empty() && stderr.contains(part), "{stderr}");
    }
}
