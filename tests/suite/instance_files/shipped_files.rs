//! The instances of the repository.

use super::*;

#[test]
fn every_instance_is_valid_and_says_nothing_odd() {
    for path in shipped() {
        let instance = instance::read(&path, &Overrides::none())
            .unwrap_or_else(|error| panic!("error: {error}"));
        assert_eq!(
            Some(instance.name.as_str()),
            path.file_stem().and_then(|s| s.to_str())
        );
        let text = std::fs::read_to_string(&path).expect("readable");
        assert!(text.starts_with("# "), "{} says what it is", path.display());
        for key in ["gpus = ", "global_batch = "] {
            let lines = text.lines().filter(|line| line.starts_with(key)).count();
            assert_eq!(lines, 1, "`{key}` in {}", path.display());
        }
    }
}

#[test]
fn the_paper_has_ten_sweeps() {
    let sweeps = [
        ("13b-2k-64gpu", 16, 8, 2),
        ("13b-2k-32gpu", 16, 1, 2),
        ("13b-8k-128gpu", 27, 8, 2),
        ("13b-8k-64gpu", 36, 1, 2),
        ("30b-2k-256gpu", 27, 8, 2),
        ("30b-2k-64gpu", 27, 1, 2),
        ("30b-8k-128gpu", 24, 8, 2),
        ("30b-8k-64gpu", 24, 1, 2),
        ("65b-2k-128gpu", 27, 8, 2),
        ("65b-2k-64gpu", 27, 1, 2),
    ];
    let named = |path: &PathBuf| path.to_string_lossy().contains("hagemann");
    assert_eq!(
        shipped().iter().filter(|path| named(path)).count(),
        sweeps.len()
    );
    for (name, grid, kernels, rest) in sweeps {
        let instance = read(&format!("hagemann-{name}.toml"));
        let space = &instance.space;
        let count = |axes: &[Axis]| -> usize {
            axes.iter().map(|&axis| space.values(axis).len()).product()
        };
        let degrees = [
            Axis::MicroBatch,
            Axis::TensorParallel,
            Axis::PipelineParallel,
        ];
        assert_eq!(count(&degrees), grid, "{name}");
        assert_eq!(
            count(&[Axis::AttentionKernel, Axis::RmsNormKernel]),
            kernels,
            "{name}"
        );
        assert_eq!(
            count(&[Axis::SequenceParallel, Axis::Checkpointing]),
            rest,
            "{name}"
        );
        assert_eq!(space.values(Axis::Sharding), [1], "{name}");
        assert_eq!(instance.job.transformer.vocabulary, 128_000);
        assert_eq!(instance.job.workload.tokens(), 4_194_304);
        assert!((instance.max_oom_risk - 0.5).abs() < 1e-12);
        assert_eq!(instance.job.framework.name, "aleph-alpha-scaling");
        assert_eq!(
            instance.job.cluster.calibration.kind,
            CalibrationKind::Measured
        );
        assert_eq!(instance.warnings, Vec::<String>::new());
    }
}

#[test]
fn the_paper_counts_14_billion_weights() {
    let transformer = read("hagemann-13b-2k-64gpu.toml").job.transformer;
    assert_eq!(transformer.matrix_weights(), 13_998_489_600);
    assert_eq!(
        format!("{:.3e}", transformer.matrix_weights() as f64),
        "1.400e10"
    );
}
