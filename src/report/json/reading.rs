//! Reads the layout of a document again.

use serde_json::Value;

use super::{EVALUATION, SOLUTION};
use crate::axis::{Axis, FlaggedCombination};
use crate::cost_model::components::{MemoryComponent, StageMemory, StepTime, TimeComponent};
use crate::cost_model::prediction::{MemoryUse, Prediction};
use crate::explain::comparison::{Setting, Side};
use crate::layout::{Layout, Stage};
use crate::plan::Evaluated;
use crate::quantity::{Bytes, Mfu, Seconds};

/// The layout and prediction of a document of the formats [`SOLUTION`] or [`EVALUATION`].
///
/// # Errors
///
/// A message for the user: no JSON, another format, no layout, or a key that is missing.
pub fn side(text: &str) -> Result<Side, String> {
    let document: Value =
        serde_json::from_str(text).map_err(|error| format!("the text is not JSON: {error}"))?;
    let schema = document["schema"].as_str().unwrap_or_default();
    if schema != SOLUTION && schema != EVALUATION {
        return Err(format!(
            "the document is `{schema}`, not `{SOLUTION}` or `{EVALUATION}`"
        ));
    }
    if document["layout"].is_null() {
        let status = document["status"].as_str().unwrap_or("without one");
        return Err(format!("the document has no layout: it is {status}"));
    }
    let job = &document["job"];
    Ok(Side {
        setting: Setting {
            instance: text_at(&document, "instance")?,
            model: text_at(job, "model")?,
            cluster: text_at(job, "cluster")?,
            gpus: count_at(job, "gpus")?,
            framework: text_at(job, "framework")?,
            sequence_length: number_at(job, "sequence_length")? as u64,
            global_batch: number_at(job, "global_batch")? as u64,
        },
        evaluated: Evaluated {
            layout: layout(&document["layout"])?,
            prediction: prediction(&document["prediction"])?,
        },
        violations: Vec::new(),
    })
}

fn missing(key: &str) -> String {
    format!("the document lacks `{key}`, or it is of another type")
}

fn text_at(value: &Value, key: &str) -> Result<String, String> {
    let text = value[key].as_str();
    text.map(str::to_owned).ok_or_else(|| missing(key))
}

fn number_at(value: &Value, key: &str) -> Result<f64, String> {
    value[key].as_f64().ok_or_else(|| missing(key))
}

fn count_at(value: &Value, key: &str) -> Result<u32, String> {
    let number = value[key].as_u64();
    number
        .and_then(|number| u32::try_from(number).ok())
        .ok_or_else(|| missing(key))
}

/// The layout of a document.
pub(crate) fn layout(value: &Value) -> Result<Layout, String> {
    let mut codes = [0; Axis::COUNT];
    for axis in Axis::ALL
        .into_iter()
        .filter(|&axis| axis != Axis::Checkpointing)
    {
        let key = axis.as_str();
        let written = match &value[key] {
            Value::String(text) => text.clone(),
            Value::Bool(on) => on.to_string(),
            Value::Number(number) => number.to_string(),
            _ => return Err(missing(key)),
        };
        codes[axis as usize] = axis.parse_value(&written).ok_or_else(|| missing(key))?;
    }
    let stages = value["stages"]
        .as_array()
        .ok_or_else(|| missing("stages"))?;
    let stages = stages.iter().map(|stage| {
        let recomputed = &stage["recomputed"];
        Ok(Stage {
            layers: count_at(stage, "layers")?,
            recomputed: [
                count_at(recomputed, "full")?,
                count_at(recomputed, "feed_forward")?,
                count_at(recomputed, "attention_core")?,
            ],
        })
    });
    Ok(Layout {
        combination: FlaggedCombination::from_codes(&codes).combination,
        stages: stages.collect::<Result<_, String>>()?,
    })
}

fn prediction(value: &Value) -> Result<Prediction, String> {
    let stages = &value["memory"]["stages"];
    let stages = stages.as_array().ok_or_else(|| missing("memory.stages"))?;
    let memory = &value["memory"];
    Ok(Prediction {
        mfu: Mfu::new(number_at(value, "mfu")?),
        step_time: Seconds::new(number_at(value, "step_time_s")?),
        tokens_per_second_per_gpu: number_at(value, "tokens_per_s_per_gpu")?,
        oom_probability: number_at(value, "oom_probability")?,
        memory: MemoryUse {
            capacity: Bytes::from_gib(number_at(memory, "capacity_gib")?),
            stages: stages.iter().map(stage_memory).collect::<Result<_, _>>()?,
        },
        time: step_time(&value["time"])?,
    })
}

fn stage_memory(value: &Value) -> Result<StageMemory, String> {
    let mut memory = StageMemory::ZERO;
    for &component in MemoryComponent::ALL {
        let amount = number_at(value, &format!("{}_gib", component.key()))?;
        memory[component] = Bytes::from_gib(amount);
    }
    Ok(memory)
}

fn step_time(value: &Value) -> Result<StepTime, String> {
    let mut time = StepTime::ZERO;
    for &component in TimeComponent::ALL {
        let amount = number_at(value, &format!("{}_s", component.key()))?;
        time[component] = Seconds::new(amount);
    }
    Ok(time)
}
