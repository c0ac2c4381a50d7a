//! Calibration against the measured runs that the project ships.
//!
//! The runs are optional (`data/README.md`): without them the tests that need them pass.

use std::collections::BTreeMap;
use std::path::PathBuf;

use parlayout::catalog::{self, Kind};
use parlayout::cluster::CalibrationKind;
use parlayout::cost_model::Costs;
use parlayout::instance::{self, Overrides};
use parlayout::laboratory::calibrate::{
    self, Adoption, FitOptions, MemoryFigures, Observation, Priors, Residuals, Speeds, Verdict,
};
use parlayout::laboratory::runs::{self, Run, RunSetups, Setup, Status};
use parlayout::plan::Outcome;
use parlayout::planner::{self, PlanOptions};
use parlayout::rules;

use crate::support::{parse, project};

/// The runs of a file of `data/`; none where it is missing.
fn runs_of(file: &str) -> Vec<Run> {
    let path = project("data").join(file);
    if !path.exists() {
        return Vec::new();
    }
    runs::read(&path)
        .expect("the shipped runs are readable")
        .runs
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    f64::midpoint(sorted[half], sorted[(sorted.len() - 1) / 2])
}

/// Mean and median error (%) of the MFU of each sweep, predicted from the others and what was believed
/// before any was seen.
fn leave_one_sweep_out(options: &FitOptions) -> Option<(f64, f64)> {
    let runs: Vec<Run> = runs_of("hagemann-2023.csv")
        .into_iter()
        .filter(|run| run.status == Status::Ok)
        .collect();
    let first = runs.first()?;
    let setups = RunSetups::new(None, None).expect("no framework is named");
    let setup = setups.setup(first).expect("its cluster is known");
    let mut sweeps: BTreeMap<&str, Vec<(&Run, Observation)>> = BTreeMap::new();
    for run in &runs {
        let observation = Observation::new(run, &setup).expect("it is modelled");
        sweeps
            .entry(&run.group)
            .or_default()
            .push((run, observation));
    }
    let mut errors = Vec::new();
    for (held_out, rows) in &sweeps {
        let others: Vec<&Observation> = sweeps
            .iter()
            .filter(|(sweep, _)| *sweep != held_out)
            .flat_map(|(_, rows)| rows.iter().map(|(_, observation)| observation))
            .collect();
        let fitted = calibrate::fit(&others, &Priors::before_fit(&setup), options);
        for (run, _) in rows {
            let modelled = runs::model(run, &fitted.setup).expect("modelled");
            let measured = run.mfu.expect("the sweeps state it");
            errors.push(100.0 * (modelled.prediction.mfu.value() / measured - 1.0).abs());
        }
    }
    Some((mean(&errors), median(&errors)))
}

#[test]
fn sweeps_are_predicted_from_the_others() {
    let options = FitOptions {
        time_scale: 0.015,
        time_prior_weight: 0.02,
        ..FitOptions::default()
    };
    let Some(physics) = leave_one_sweep_out(&options) else {
        return;
    };
    let learned = leave_one_sweep_out(&FitOptions {
        residuals: Residuals::Learned,
        ..options
    });
    let learned = learned.expect("the runs are there");
    insta::with_settings!({
        snapshot_path => "../../snapshots",
        prepend_module_to_snapshot => false,
        omit_expression => true,
    }, {
        insta::assert_snapshot!("calibration_leave_one_sweep_out", format!(
            "MFU error over the paper's sweeps, each predicted from the others:\n\
             formulas alone      mean {:.2} %, median {:.2} %\n\
             residuals learned   mean {:.2} %, median {:.2} %\n",
            physics.0, physics.1, learned.0, learned.1,
        ));
    });
}

/// Observations of rows on the cluster and under the framework of the first.
fn observations(rows: &[&Run]) -> Option<(Vec<Observation>, calibrate::Calibrated)> {
    let setups = RunSetups::new(None, None).expect("no framework is named");
    let setup = setups.setup(rows.first()?).expect("known");
    let rows: Vec<Run> = rows.iter().map(|row| (*row).clone()).collect();
    let (observations, _) = calibrate::observe(&rows, &setup);
    let train: Vec<&Observation> = observations
        .iter()
        .step_by(rows.len().div_ceil(5))
        .collect();
    assert_eq!(train.len(), 5);
    let options = FitOptions::default();
    let calibrated = calibrate::calibrate(
        &train,
        &Priors::shipped(&setup),
        &options,
        Adoption::Tested,
        "5 runs",
    );
    Some((observations, calibrated))
}

/// Five peaks, spread over the file, predict the others.
#[test]
fn five_peaks_predict_the_others() {
    let runs = runs_of("other-runs.csv");
    for source in ["ZeroBubble-ICLR24", "VocabularyParallelism"] {
        let rows: Vec<&Run> = runs
            .iter()
            .filter(|run| run.source == source && run.variant != "redis")
            .collect();
        let Some((observations, calibrated)) = observations(&rows) else {
            continue;
        };
        let errors: Vec<f64> = observations
            .iter()
            .map(|run| {
                let job = run.job(&calibrated.setup);
                let (peak, _) = run.predicted_peaks(&job);
                100.0 * (peak / run.peak.expect("all rows state it") - 1.0).abs()
            })
            .collect();
        assert!(median(&errors) <= 3.0, "{source}: {} %", median(&errors));
    }
}

/// A file in the folder for temporary files.
fn temporary(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("parlayout-{}-{name}", std::process::id()))
}

#[test]
fn cluster_files_are_read_as_they_were_written() {
    let path = temporary("cluster.toml");
    let mut clusters: Vec<String> = catalog::entries()
        .into_iter()
        .filter(|entry| entry.kind == Kind::Cluster)
        .map(|entry| entry.name)
        .collect();
    clusters.sort();
    for name in clusters {
        let machine = catalog::machine(&name).expect("it is in the catalog");
        for framework in ["nanotron", "megatron-lm", "fsdp", "aleph-alpha-scaling"] {
            let framework = machine.framework(Some(framework)).expect("in the catalog");
            let mut cluster = machine.cluster.clone();
            // An awkward number, and what only a calibration writes.
            cluster.efficiency.gemm = 0.712_345_678;
            cluster.discrepancy = Some(parlayout::cluster::Discrepancy {
                points: vec![[1.5, 11.0, 0.0, -2.0, 0.25, 3.0, 4.0, 1.0, 0.5, 2.0, 0.3]],
                weights: vec![-12.5],
                amplitude: 0.03,
                length_scale: 1.25,
                noise: 0.02,
            });
            let layout = "64 GPUs: tensor_parallel=2,schedule=1f1b".to_owned();
            cluster.seen_to_fit.insert(layout, 0.083);
            let text = catalog::cluster_file(&cluster, &framework);
            std::fs::write(&path, &text).expect("the folder takes files");
            let read = instance::read_machine(&path.to_string_lossy())
                .unwrap_or_else(|error| panic!("{name}: {error}\n{text}"));
            let framework_read = read.framework(None).expect("it was written");
            assert_eq!(catalog::cluster_file(&read.cluster, &framework_read), text);
            assert_eq!(framework_read, framework);
            cluster.efficiency.gemm = 0.712_346;
            cluster.name.clone_from(&read.cluster.name);
            cluster.calibration.framework = Some(framework.name.clone());
            assert_eq!(read.cluster, cluster);
        }
    }
    std::fs::remove_file(&path).expect("it was written");
}

#[test]
fn a_cluster_file_names_a_framework_of_the_catalog() {
    let path = temporary("framework.toml");
    let text = "preset = \"dgx-a100-80gb\"\n[framework]\npreset = \"megatrom-lm\"\n";
    std::fs::write(&path, text).expect("the folder takes files");
    let read = instance::read_machine(&path.to_string_lossy());
    let error = read.expect_err("no such framework").to_string();
    assert!(error.contains("`megatrom-lm`"), "{error}");
    std::fs::remove_file(&path).expect("it was written");
}

/// A cluster and framework of the catalog.
fn setup() -> Setup {
    let machine = catalog::machine("dgx-a100-80gb").expect("it is in the catalog");
    let framework = machine.framework(Some("megatron-lm"));
    Setup {
        framework: framework.expect("in the catalog"),
        cluster: machine.cluster,
    }
}

/// Runs of the tests' own, made with known figures.
fn own_runs() -> Vec<Run> {
    let path = project("tests/data/our-cluster.csv");
    runs::read(&path).expect("it is readable").runs
}

#[test]
fn figures_that_made_the_runs_are_found() {
    let setup = setup();
    let (observations, skipped) = calibrate::observe(&own_runs(), &setup);
    assert_eq!((observations.len(), skipped.len()), (15, 2));
    let all: Vec<&Observation> = observations.iter().collect();
    let options = FitOptions::default();
    let check = |runs: &[&Observation], adoption| {
        calibrate::calibrate(runs, &Priors::shipped(&setup), &options, adoption, "runs")
    };
    let calibrated = check(&all, Adoption::Tested);
    // Made with 0.66 and 1.25; one step time is off by 60 %.
    let fitted = &calibrated.fitted;
    assert!((fitted.setup.cluster.efficiency.gemm / 0.66 - 1.0).abs() < 0.03);
    let factor = calibrated.setup.framework.memory.activation_factor;
    assert!((factor / 1.25 - 1.0).abs() < 0.03);
    // They rank runs that were held out better than the shipped ones.
    assert_eq!(calibrated.speeds, Speeds::Fitted);
    let always = check(&all, Adoption::Always);
    assert_eq!(
        always.setup.cluster.efficiency,
        fitted.setup.cluster.efficiency
    );
    assert_eq!(calibrated.outliers.len(), 1);
    assert_eq!(calibrated.outliers[0].place.line, Some(8));
    // One run moves figures, but nothing shows that they are better than a data sheet's level.
    let one = check(&all[..1], Adoption::Tested);
    assert_eq!(one.time.verdict, Some(Verdict::Untested));
    let mut levelled = setup.cluster.efficiency.clone();
    levelled.slowdown = one.setup.cluster.efficiency.slowdown;
    assert_eq!(one.setup.cluster.efficiency, levelled);
    assert!((1.05..1.18).contains(&levelled.slowdown));
    assert_eq!(
        one.setup.cluster.calibration.kind,
        CalibrationKind::DataSheet
    );
    let taken = check(&all[..1], Adoption::Always);
    assert_ne!(taken.setup.cluster.efficiency, setup.cluster.efficiency);
    // None leaves everything as it is.
    let none = check(&[], Adoption::Always);
    assert_eq!(none.setup.framework, setup.framework);
    assert_eq!(none.time.verdict, None);
}

#[test]
fn learned_residuals_fade_away_from_the_runs() {
    let setup = setup();
    let (observations, _) = calibrate::observe(&own_runs(), &setup);
    let all: Vec<&Observation> = observations.iter().collect();
    let learned = calibrate::discrepancy::learn(&all, &setup);
    let learned = learned.expect("there are timed runs");
    let near = observations[0].features();
    let mut far = near;
    far[0] += 30.0;
    assert!(learned.logarithm(&near).abs() > 1e-3);
    assert!(learned.logarithm(&far).abs() < 1e-12);
    let deviations = learned.standard_deviations(&[near, far]);
    assert!(deviations[0] < 0.02 && (deviations[1] - 0.03).abs() < 1e-9);
    let mut job = observations[0].job(&setup);
    let cell = observations[0].modelled.layout.combination;
    let before = Costs::exact(&job, &cell);
    let factor = learned.logarithm(&near).exp();
    job.cluster.discrepancy = Some(learned);
    let after = Costs::exact(&job, &cell);
    let ratio = after.layer().time.total() / before.layer().time.total();
    assert!((ratio / factor - 1.0).abs() < 1e-9);
}

#[test]
fn what_every_run_states_is_taken_over() {
    let setup = setup();
    let mut rows = own_runs();
    for (row, bandwidth) in rows
        .iter_mut()
        .zip([90.0, 100.0, 110.0].into_iter().cycle())
    {
        row.gradient_bytes = Some(2.0);
        row.internode_allreduce = Some(bandwidth);
    }
    let (observations, _) = calibrate::observe(&rows, &setup);
    let all: Vec<&Observation> = observations.iter().collect();
    let options = FitOptions::default();
    let calibrated = calibrate::calibrate(
        &all,
        &Priors::shipped(&setup),
        &options,
        Adoption::Tested,
        "x",
    );
    assert!((calibrated.setup.framework.memory.gradient_bytes - 2.0).abs() < 1e-12);
    let share = calibrated.setup.framework.speed.measured_inter_node;
    let bandwidth = calibrated.setup.cluster.inter_node_bandwidth.value();
    assert!((bandwidth / (100e9 * share) - 1.0).abs() < 1e-12);
    let keys: Vec<&str> = calibrated
        .facts
        .iter()
        .map(|fact| fact.parameter.key)
        .collect();
    assert_eq!(
        keys,
        ["inter_node_bandwidth", "framework.memory.gradient_bytes"]
    );
}

#[test]
fn the_level_of_speeds_changes_no_choice() {
    let path = project("instances/hagemann-13b-2k-64gpu.toml");
    let plain = instance::read(&path, &Overrides::none()).expect("it is valid");
    let mut slower = plain.clone();
    slower.job.cluster.efficiency.slowdown = 1.25;
    let solve = |instance| {
        let outcome = planner::plan(instance, &PlanOptions::default());
        match outcome.expect("the planner answers") {
            Outcome::Optimal(plan) => plan.choice,
            other => panic!("{other:?}"),
        }
    };
    let (fast, slow) = (solve(&plain), solve(&slower));
    assert_eq!(fast.layout, slow.layout);
    let (fast, slow) = (fast.prediction, slow.prediction);
    assert!((slow.step_time / fast.step_time - 1.25).abs() < 1e-12);
    assert!((fast.mfu.value() / slow.mfu.value() - 1.25).abs() < 1e-12);
}

/// What `calibrate` makes of some of the runs of the tests' own after a change.
fn calibrated(runs: usize, change: impl Fn(&mut Run)) -> (calibrate::Calibrated, Vec<Observation>) {
    let mut rows = own_runs();
    rows.retain(|run| run.status == Status::Ok && run.gpu == "a100-80gb");
    rows.truncate(runs);
    rows.iter_mut().for_each(change);
    let setup = setup();
    let (observations, _) = calibrate::observe(&rows, &setup);
    assert_eq!(observations.len(), runs);
    let calibrated = calibrate::calibrate(
        &observations.iter().collect::<Vec<_>>(),
        &Priors::shipped(&setup),
        &FitOptions::default(),
        Adoption::Tested,
        "runs",
    );
    (calibrated, observations)
}

/// A change of every run.
type Change<'a> = &'a dyn Fn(&mut Run);

#[test]
fn runs_seen_to_fit_stay_legal() {
    // Many micro-batches of 4 need more than a GPU has by the shipped figures; the rows say that they ran.
    let large = |run: &mut Run| {
        run.micro_batch = Some(4);
        run.global_batch = Some(512);
        run.tensor_parallel = Some(1);
        run.pipeline_parallel = Some(1);
        run.data_parallel = run.gpus;
        run.checkpointing = "selective".to_owned();
        run.peak_memory = Some(76.0);
    };
    let peak = |run: &mut Run| run.peak_memory = run.peak_memory.map(|_| 78.0);
    let changes: [(usize, Change); 4] = [(1, &large), (5, &large), (5, &peak), (12, &peak)];
    for (count, change) in changes {
        let (calibrated, observations) = calibrated(count, change);
        for (run, compared) in observations.iter().zip(&calibrated.runs) {
            let risk = compared.oom_probability.expect("it is stated").after;
            assert!(risk <= 0.05, "{count} runs: {}: {risk}", run.place);
            let again = run.predicted_peaks(&run.job(&calibrated.setup)).0.gib();
            assert!((again - compared.peak_gib.predicted.after).abs() < 1e-9);
        }
    }
}

#[test]
fn a_run_seen_to_fit_is_evidence_for_its_own_layout() {
    let (calibrated, observations) = calibrated(1, |run| {
        run.micro_batch = Some(4);
        run.global_batch = Some(512);
        run.tensor_parallel = Some(1);
        run.pipeline_parallel = Some(1);
        run.data_parallel = run.gpus;
        run.checkpointing = "selective".to_owned();
        run.sequence_parallel = Some(false);
    });
    let setup = &calibrated.setup;
    assert_eq!(setup.cluster.seen_to_fit.len(), 1);
    let run = &observations[0];
    let layout = &run.modelled.layout;
    let text = "[model]\npreset = \"llama-3.1-8b\"\n[cluster]\npreset = \"dgx-a100-80gb\"\ngpus = 16\n\
                [training]\nsequence_length = 4096\nglobal_batch = 512\n";
    let degrees = |micro_batch: u32| {
        format!(
            "search.tensor_parallel=[1] search.pipeline_parallel=[1] search.context_parallel=[1] \
             search.micro_batch=[{micro_batch}] search.sharding=[\"{}\"] search.checkpointing=[\"none\"]",
            layout.combination.sharding
        )
    };
    let solve = |micro_batch: u32, seen: bool| {
        let sets: Vec<String> = degrees(micro_batch).split(' ').map(str::to_owned).collect();
        let mut job = run.job(setup);
        if !seen {
            job.cluster.seen_to_fit.clear();
        }
        let instance = parse(text, &sets).with_job(job);
        let outcome = planner::plan(&instance, &PlanOptions::default()).expect("an answer");
        if let Outcome::Optimal(plan) = &outcome {
            assert!(plan.choice.prediction.oom_probability <= instance.max_oom_risk + 1e-9);
            assert!(rules::violations(&instance, &plan.choice.layout).is_empty());
        }
        matches!(outcome, Outcome::Optimal(_))
    };
    // What ran, the same without that evidence, and its neighbour, of which the run says nothing.
    assert_eq!(
        [solve(4, true), solve(4, false), solve(8, true)],
        [true, false, false]
    );
}

#[test]
fn what_offsets_each_other_is_adopted_together() {
    let (calibrated, observations) = calibrated(1, |run| {
        run.gradient_bytes = Some(6.0);
        run.peak_memory = Some(30.0);
    });
    // Wider gradients alone would predict more, though the run needed less.
    assert_eq!(calibrated.memory_figures, MemoryFigures::Fitted);
    assert_eq!(calibrated.facts.len(), 1);
    let alone = {
        let mut setup = setup();
        setup.framework.memory.gradient_bytes = 6.0;
        observations[0]
            .predicted_peaks(&observations[0].job(&setup))
            .0
    };
    let after = calibrated.runs[0].peak_gib.predicted.after;
    assert!(30.0 < after && after < alone.gib(), "{after} of {alone}");
}
