//! One step as a trace that Perfetto (<https://ui.perfetto.dev>) and Chrome show: a track per pipeline
//! stage, in the Trace Event Format.

use serde_json::{Value, json};

use super::document::PredictionDocument;
use crate::cost_model::components::TimeComponent;
use crate::timeline::{PassKind, Slice, Timeline};

/// Passes up to which a step is written whole; of a longer one its start and its end.
const MOST_SLICES: usize = 50_000;

/// The trace of a step: its passes, then what follows them.
#[must_use]
pub fn trace(name: &str, timeline: &Timeline, prediction: &PredictionDocument) -> String {
    let length = timeline.length();
    let parts = timeline.parts(MOST_SLICES, length);
    let mut events = vec![json!({
        "name": "process_name", "ph": "M", "pid": 0, "args": {"name": name},
    })];
    for (stage, slices) in timeline.stages.iter().enumerate() {
        events.push(json!({
            "name": "thread_name", "ph": "M", "pid": 0, "tid": stage, "args": {"name": format!("stage {stage}")},
        }));
        let is_shown = |slice: &&Slice| {
            let mut parts = parts.iter();
            parts.any(|part| slice.start < part.end && part.start < slice.end)
        };
        let shown: Vec<&Slice> = slices.iter().filter(is_shown).collect();
        events.extend(shown.iter().map(|slice| pass(stage, slice)));
        events.extend(left_out(stage, &shown, slices.len()));
        let after = [TimeComponent::DataParallel, TimeComponent::Optimizer];
        let mut start = length;
        for component in after {
            let seconds = prediction.time[component];
            if seconds > 0.0 {
                let name = component.label();
                events.push(event(
                    stage,
                    name,
                    component.key(),
                    (start, start + seconds),
                ));
            }
            start += seconds;
        }
    }
    let trace = json!({
        "traceEvents": events,
        "displayTimeUnit": "ms",
        "otherData": {
            "written_by": "parlayout",
            "predicted_step_time_s": prediction.step_time_s,
            "note": "passes as the schedule runs them; the predicted step also has the bubble that measured runs showed",
        },
    });
    format!("{trace}\n")
}

/// An event from one time to another, in seconds.
fn event(stage: usize, name: &str, category: &str, (start, end): (f64, f64)) -> Value {
    // To the nanosecond.
    let microseconds = |seconds: f64| (seconds * 1e9).round() / 1e3;
    json!({
        "name": name, "cat": category, "ph": "X", "pid": 0, "tid": stage,
        "ts": microseconds(start), "dur": microseconds(end - start),
    })
}

fn pass(stage: usize, slice: &Slice) -> Value {
    let (kind, at) = (slice.pass.kind, slice.pass.micro_batch);
    let name = match kind {
        PassKind::WeightGradients => format!("gradients of weights {at}"),
        _ => format!("{kind} {at}"),
    };
    let mut event = event(stage, &name, kind.as_str(), (slice.start, slice.end));
    event["args"] = json!({"micro_batch": at, "chunk": slice.pass.chunk});
    event
}

/// What stands for the passes that are left out.
fn left_out(stage: usize, shown: &[&Slice], all: usize) -> Option<Value> {
    let missing = all - shown.len();
    let mut pairs = shown.windows(2);
    let widest = |pair: &&[&Slice]| pair[1].start - pair[0].end;
    let gap = pairs
        .by_ref()
        .max_by(|one, other| widest(one).total_cmp(&widest(other)))?;
    let times = (gap[0].end, gap[1].start);
    let name = format!("{missing} passes left out");
    (missing > 0).then(|| event(stage, &name, "left-out", times))
}
