//! The part of a shell script that starts a training job: words, variables, flags.

use std::collections::BTreeMap;

use super::settings::Settings;

/// Flags of a script, names without dashes (`tensor-model-parallel-size` becomes
/// `tensor_model_parallel_size`). Options of `#SBATCH` lines count, other comments do not. Variables
/// are replaced by what the script assigns to them (`TP=4`, `${TP}`, `${TP:-4}`).
pub(super) fn flags(script: &str) -> Settings {
    let words = words(script);
    let mut variables: BTreeMap<String, String> = BTreeMap::new();
    let mut flags = Settings::default();
    let mut last: Option<String> = None;
    for word in &words {
        if let Some((name, value)) = assignment(word) {
            let value = expanded(value.trim_start_matches('('), &variables);
            if !value.is_empty() {
                variables.insert(name.to_owned(), value);
            }
            last = None;
            continue;
        }
        // Arrays: `ARGS=( --flag value )`.
        let word = word.trim_start_matches('(').trim_end_matches(')');
        if let Some(flag) = word.strip_prefix("--") {
            let (name, value) = match flag.split_once('=') {
                Some((name, value)) => (name, value),
                None => (flag, ""),
            };
            let name = name.replace('-', "_");
            last = value.is_empty().then(|| name.clone());
            flags.set(name, value, &variables);
        } else if let Some(name) = last.take().filter(|_| !is_list(word)) {
            flags.set(name, word, &variables);
        }
    }
    flags
}

impl Settings {
    /// Sets a flag to what was written, as far as it is known.
    fn set(&mut self, name: String, written: &str, variables: &BTreeMap<String, String>) {
        let value = expanded(written, variables);
        let known = !value.contains('$') && (written.is_empty() || !value.is_empty());
        if known {
            self.unset.remove(&name);
            self.values.insert(name, value);
        } else {
            self.values.remove(&name);
            self.unset.insert(name, written.to_owned());
        }
    }
}

/// Whether a word stands for any number of words: `$@`, `${ARGS[@]}`.
fn is_list(word: &str) -> bool {
    ["$@", "$*", "[@]}", "[*]}"]
        .iter()
        .any(|end| word.ends_with(end))
}

/// The words of a script, without comments and quotes.
fn words(script: &str) -> Vec<String> {
    let mut words = Vec::new();
    for line in script.replace("\\\n", " ").lines() {
        let line = match line.trim_start().strip_prefix("#SBATCH") {
            Some(options) => options,
            None if line.trim_start().starts_with('#') => continue,
            None => line.split(" #").next().unwrap_or_default(),
        };
        let line = line.trim_start().trim_start_matches("export ");
        words.extend(
            line.split_whitespace()
                .map(|word| word.replace(['"', '\''], ""))
                .filter(|word| !word.is_empty() && word != "\\"),
        );
    }
    words
}

/// `NAME=value`.
fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let plain = !name.is_empty()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !name.starts_with(|c: char| c.is_ascii_digit());
    plain.then_some((name, value))
}

/// The text with variables replaced; products are worked out.
fn expanded(text: &str, variables: &BTreeMap<String, String>) -> String {
    let product = text
        .strip_prefix("$((")
        .and_then(|text| text.strip_suffix("))"));
    if let Some(product) = product {
        let factors = product.split('*').map(|factor| {
            let name = factor.trim().trim_matches(['$', '{', '}']);
            let value = variables.get(name).map_or(name, String::as_str);
            value.parse::<u64>().ok()
        });
        let product: Option<u64> = factors.product();
        return product.map_or(String::new(), |product| product.to_string());
    }
    let Some((before, rest)) = text.split_once('$') else {
        return text.to_owned();
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let (name, rest) = match rest
        .strip_prefix('{')
        .and_then(|braced| braced.split_once('}'))
    {
        Some(found) => found,
        None => rest.split_at(rest.find(|c| !is_name(c)).unwrap_or(rest.len())),
    };
    // `${NAME:-default}` and `${1:-default}`.
    let (name, default) = match name.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (name, None),
    };
    match variables.get(name).map(String::as_str).or(default) {
        Some(value) => format!("{before}{value}{}", expanded(rest, variables)),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(script: &str, expected: &[(&str, &str)]) {
        let flags = flags(script);
        let found: Vec<(&str, &str)> = flags
            .values
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn flags_have_values() {
        check(
            "torchrun --nproc_per_node 8 \\\n  pretrain.py --bf16 --num-layers=32 --lr 3e-4",
            &[
                ("bf16", ""),
                ("lr", "3e-4"),
                ("nproc_per_node", "8"),
                ("num_layers", "32"),
            ],
        );
    }

    #[test]
    fn variables_are_replaced() {
        let script = "#!/bin/bash\n#SBATCH --nodes=4\nTP=4 # ranks\nexport PP=${2:-2}\nN=$(($TP*$PP))\n\
                      ARGS=(\n  --tp $TP\n  --pp \"${PP}\"\n  --path $HOME/data\n)\n\
                      # --tp 8\nrun --world $N ${ARGS[@]}";
        check(
            script,
            &[("nodes", "4"), ("pp", "2"), ("tp", "4"), ("world", "8")],
        );
    }

    #[test]
    fn unknown_values_are_told_apart() {
        let flags = flags("TP=$1\nrun --tp ${TP} --pp=$PP --dp 2$N --bf16 ${ARGS[@]} --x $Y --x 3");
        let found: Vec<(&str, &str)> = flags
            .unset
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(found, [("dp", "2$N"), ("pp", "$PP"), ("tp", "${TP}")]);
        assert_eq!(flags.values["bf16"], "");
        assert_eq!(flags.values["x"], "3");
    }
}
