//! A layout as the user types it: `tensor_parallel=4,pipeline_parallel=2,micro_batch=1`.

use super::facts::Facts;

/// The keys, which are those of `[search]`.
const KEYS: [&str; 12] = [
    "tensor_parallel",
    "pipeline_parallel",
    "data_parallel",
    "context_parallel",
    "virtual_stages",
    "micro_batch",
    "sequence_parallel",
    "checkpointing",
    "sharding",
    "attention_kernel",
    "rmsnorm_kernel",
    "schedule",
];

/// Reads a layout.
///
/// # Errors
///
/// A message for the user about the first part that is wrong.
pub fn layout(text: &str) -> Result<Facts, String> {
    let mut facts = Facts::default();
    let parts = text.split(',').map(str::trim);
    for part in parts.filter(|part| !part.is_empty()) {
        let (key, value) = part
            .split_once('=')
            .ok_or_else(|| format!("`{part}` has no `=`\nhint: write `tensor_parallel=4`"))?;
        let (typed, value) = (key.trim(), value.trim());
        let known = KEYS.into_iter().find(|&key| key == typed);
        let key = known.ok_or_else(|| {
            let known = KEYS.join(", ");
            format!("unknown key `{typed}` in a layout\nhint: known: {known}")
        })?;
        facts.note(key, Some(valid(key, value)?));
    }
    Ok(facts)
}

/// The value as a row of runs has it.
fn valid<'a>(key: &str, value: &'a str) -> Result<&'a str, String> {
    let expected = match (key, value) {
        ("checkpointing" | "sharding" | "attention_kernel" | "schedule", name) => return Ok(name),
        ("sequence_parallel" | "rmsnorm_kernel", "true" | "on" | "fused") => return Ok("true"),
        ("sequence_parallel" | "rmsnorm_kernel", "false" | "off" | "unfused") => {
            return Ok("false");
        }
        ("sequence_parallel" | "rmsnorm_kernel", _) => "`true` or `false`",
        (_, degree) if degree.parse::<u32>().is_ok_and(|degree| degree > 0) => return Ok(degree),
        _ => "a whole number of at least 1",
    };
    Err(format!("`{key}` is `{value}`, not {expected}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layout_is_a_list_of_keys() {
        let facts = layout("tensor_parallel=4, micro_batch=2,sequence_parallel=on").expect("right");
        assert_eq!(facts.number("tensor_parallel"), Some(4));
        assert_eq!(facts.number("micro_batch"), Some(2));
        assert_eq!(facts.text("sequence_parallel"), Some("true"));
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
