//! A layout as the user types it: `tensor_parallel=4,pipeline_parallel=2,micro_batch=1`.

use super::facts::Facts;

/// The keys, which are those of `[search]`.
const KEYS: &str = "tensor_parallel, pipeline_parallel, data_parallel, context_parallel, \
                    virtual_stages, micro_batch, sequence_parallel, checkpointing, sharding, \
                    attention_kernel, rmsnorm_kernel, schedule";

/// Reads a layout.
///
/// # Errors
///
/// A message for the user about the first part that is wrong.
pub fn layout(text: &str) -> Result<Facts, String> {
    let mut facts = Facts::default();
    for part in text
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
    {
        let Some((key, value)) = part.split_once('=') else {
            return Err(format!(
                "`{part}` has no `=`\nhint: write `tensor_parallel=4`"
            ));
        };
        set(&mut facts, key.trim(), value.trim())?;
    }
    Ok(facts)
}

fn set(facts: &mut Facts, key: &str, value: &str) -> Result<(), String> {
    let degree = || {
        let degree = value.parse::<u32>().ok().filter(|&degree| degree > 0);
        degree.ok_or_else(|| format!("`{key}` is `{value}`, not a whole number of at least 1"))
    };
    let switch = || match value {
        "true" | "on" | "fused" => Ok(true),
        "false" | "off" | "unfused" => Ok(false),
        _ => Err(format!("`{key}` is `{value}`, not `true` or `false`")),
    };
    match key {
        "tensor_parallel" => facts.tensor_parallel = Some(degree()?),
        "pipeline_parallel" => facts.pipeline_parallel = Some(degree()?),
        "data_parallel" => facts.data_parallel = Some(degree()?),
        "context_parallel" => facts.context_parallel = Some(degree()?),
        "virtual_stages" => facts.virtual_stages = Some(degree()?),
        "micro_batch" => facts.micro_batch = Some(degree()?),
        "sequence_parallel" => facts.sequence_parallel = Some(switch()?),
        "rmsnorm_kernel" => facts.rmsnorm_kernel = Some(switch()?),
        "checkpointing" => facts.checkpointing = Some(value.to_owned()),
        "sharding" => facts.sharding = Some(value.to_owned()),
        "attention_kernel" => facts.attention_kernel = Some(value.to_owned()),
        "schedule" => facts.schedule = Some(value.to_owned()),
        _ => {
            return Err(format!(
                "unknown key `{key}` in a layout\nhint: known: {KEYS}"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layout_is_a_list_of_keys() {
        let facts = layout("tensor_parallel=4, micro_batch=2,sequence_parallel=on").expect("right");
        assert_eq!(facts.tensor_parallel, Some(4));
        assert_eq!(facts.micro_batch, Some(2));
        assert_eq!(facts.sequence_parallel, Some(true));
        let wrong = |text: &str, part: &str| {
            let message = layout(text).expect_err("it is wrong");
            assert!(message.contains(part), "{message}");
        };
        wrong("tp=4", "unknown key `tp`");
        wrong("tensor_parallel", "has no `=`");
        wrong("tensor_parallel=0", "not a whole number");
        wrong("sequence_parallel=2", "not `true` or `false`");
    }
}
