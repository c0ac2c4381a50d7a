use super::*;
use crate::fixture;
use crate::layout::Schedule;

/// A pipeline whose stages are equal: forward, again, backward, weights of one micro-batch.
fn equal(schedule: Schedule, (stages, chunks, micro_batches): (u32, u32, u32)) -> Timeline {
    let pipeline = Pipeline {
        schedule,
        stages,
        chunks,
        micro_batches,
    };
    let put_off = if pipeline.puts_off_weights() {
        2.0
    } else {
        0.0
    };
    let each = 1.0 / f64::from(chunks);
    let one = Durations {
        forward: 2.0 * each,
        recompute: 0.0,
        backward: (4.0 - put_off) * each,
        weight_gradients: put_off * each,
    };
    let durations = vec![vec![one; chunks as usize]; stages as usize];
    Timeline::run(pipeline, &durations).expect("the schedule runs")
}

/// The time of a pipeline of equal stages that work 6 seconds a micro-batch: `(M - beta) T + beta pp T`.
fn by_formula((stages, micro_batches): (u32, u32), beta: f64) -> f64 {
    6.0 * (f64::from(micro_batches) - beta + beta * f64::from(stages))
}

#[test]
fn equal_stages_take_what_the_cost_model_says() {
    let sizes = [(1, 4), (2, 4), (4, 8), (4, 16), (8, 32)];
    for (size, chunks) in sizes.into_iter().flat_map(|it| [1, 2, 3].map(|v| (it, v))) {
        let (stages, micro_batches) = size;
        if stages == 1 && chunks > 1 {
            continue;
        }
        for (schedule, beta) in [
            (Schedule::OneForwardOneBackward, 1.0 / f64::from(chunks)),
            (Schedule::AllForwardAllBackward, 1.0 / f64::from(chunks)),
            (Schedule::ZeroBubble1p, 1.0 / 3.0 / f64::from(chunks)),
        ] {
            let length = equal(schedule, (stages, chunks, micro_batches)).length();
            let expected = by_formula(size, beta);
            assert!(
                (length - expected).abs() < 1e-9,
                "{schedule} {size:?} x {chunks}: {length}, not {expected}"
            );
        }
    }
}

#[test]
fn with_twice_the_memory_no_stage_waits_once_it_has_begun() {
    let timeline = equal(Schedule::ZeroBubble2p, (4, 1, 12));
    for stage in &timeline.stages {
        let whole = stage[stage.len() - 1].end - stage[0].start;
        assert!((whole - 72.0).abs() < 1e-9, "{whole}");
    }
}

#[test]
fn passes_of_a_stage_do_not_overlap_and_all_run() {
    for schedule in Schedule::ALL {
        let timeline = equal(*schedule, (4, 1, 6));
        for stage in &timeline.stages {
            assert!(
                stage
                    .windows(2)
                    .all(|pair| pair[0].end <= pair[1].start + 1e-12)
            );
            let forward = stage.iter().filter(|it| it.pass.kind == PassKind::Forward);
            assert_eq!(forward.count(), 6);
        }
    }
}

#[test]
fn a_long_step_is_cut_in_the_middle() {
    let timeline = equal(Schedule::OneForwardOneBackward, (4, 1, 64));
    let length = timeline.length();
    assert_eq!(timeline.parts(10_000, length), [0.0..length]);
    let parts = timeline.parts(10_000, 30.0);
    assert_eq!(parts, [0.0..30.0, length - 30.0..length]);
    let parts = timeline.parts(100, length);
    let shown = |slice: &Slice| {
        let mut parts = parts.iter();
        parts.any(|part| slice.start < part.end && part.start < slice.end)
    };
    let shown = timeline
        .stages
        .iter()
        .flatten()
        .filter(|it| shown(it))
        .count();
    assert!((90..=108).contains(&shown), "{shown}");
}

#[test]
fn a_layout_takes_what_its_stages_work() {
    let instance = fixture::llama_405b();
    let layout = fixture::llama_405b_layout();
    let costs = Costs::new(&instance.job, &layout.combination);
    let timeline = Timeline::of(&costs, &layout).expect("the schedule runs");
    let works = stage_works(&costs, &layout.stages);
    let times: Vec<f64> = works.iter().map(|work| work.all.value()).collect();
    for (stage, time) in timeline.stages.iter().zip(&times) {
        let busy: f64 = stage.iter().map(|slice| slice.end - slice.start).sum();
        assert!((busy / (time * costs.micro_batches as f64) - 1.0).abs() < 1e-9);
    }
    // By the formula every stage fills the pipeline at its own pace beside the slowest, which sets that
    // of the rest; passes of fast stages hide behind slow ones.
    let longest = times.iter().copied().fold(0.0, f64::max);
    let micro_batches = costs.micro_batches as f64;
    let most = (micro_batches - 1.0) * longest + times.iter().sum::<f64>();
    let length = timeline.length();
    assert!(
        length > micro_batches * longest && length <= most,
        "{length} {most}"
    );
    assert!(length > most * 0.95, "{length} {most}");
}

#[test]
fn what_cannot_run_is_no_timeline() {
    let pipeline = Pipeline {
        schedule: Schedule::OneForwardOneBackward,
        stages: 8,
        chunks: 2,
        micro_batches: 12,
    };
    let durations = vec![vec![Durations::default(); 2]; 8];
    assert_eq!(Timeline::run(pipeline, &durations), None);
}
