//! The part of a shell script that starts a training job: variables and flags.

use std::collections::{BTreeMap, BTreeSet};

use super::settings::Settings;
use super::shell_words::{Token, closing, tokens};

/// Flags of a script, names without dashes (`tensor-model-parallel-size` becomes
/// `tensor_model_parallel_size`). Options of `#SBATCH` lines count, other comments do not. Variables
/// are replaced by what the script assigns to them (`TP=4`, `${TP}`, `${TP:-4}`). What depends on a
/// condition, an argument or a command is unknown, unless it is `given`. Overrides of a configuration
/// (`model.x=4`, or `x=4` after the command) count as flags.
pub(crate) fn flags(script: &str, given: &BTreeMap<String, String>) -> Settings {
    let known = given
        .iter()
        .map(|(name, value)| (name.clone(), Some(value.clone())));
    let mut reader = Reader {
        variables: known.collect(),
        given: given.keys().cloned().collect(),
        ..Reader::default()
    };
    for (token, line) in tokens(script) {
        reader.line = line;
        reader.take(token);
    }
    // Some programs take their ranks from the environment.
    for (variable, flag) in [("NNODES", "nnodes"), ("NPROC_PER_NODE", "nproc_per_node")] {
        let value = reader.variables.get(variable).cloned().flatten();
        let is_said =
            reader.flags.values.contains_key(flag) || reader.flags.unset.contains_key(flag);
        if let Some(value) = value.filter(|_| !is_said) {
            reader.flags.state(flag.to_owned(), value, 1);
        }
    }
    reader.flags
}

/// Where in a command a word stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Position {
    /// It may be the command.
    #[default]
    Command,
    /// It is an argument.
    Argument,
    /// It names a variable that the command sets.
    Variable,
    /// It sets a variable for what follows.
    Setting,
    /// It is printed.
    Printed,
}

#[derive(Debug, Default)]
struct Reader {
    /// Values of variables; `None` where nobody knows them before the script runs.
    variables: BTreeMap<String, Option<String>>,
    /// Variables whose value the user gives, whatever the script says.
    given: BTreeSet<String>,
    flags: Settings,
    /// The line that is being read.
    line: u32,
    /// A flag whose value may follow, with its line.
    pending: Option<(String, u32)>,
    position: Position,
    /// Conditions and loops around the command.
    conditions: u32,
}

impl Reader {
    fn take(&mut self, token: Token) {
        match token {
            Token::Word(word) => self.word(&word),
            Token::QuotedEnd => self.flush(),
            Token::End => {
                self.flush();
                self.position = Position::Command;
            }
        }
    }

    /// The pending flag has no value.
    fn flush(&mut self) {
        if let Some((name, line)) = self.pending.take() {
            self.set(name, "", line);
        }
    }

    fn word(&mut self, word: &str) {
        let position = self.position;
        if position == Position::Variable {
            self.variables.insert(word.to_owned(), None);
            self.position = Position::Argument;
        }
        if matches!(position, Position::Printed | Position::Variable)
            || (position == Position::Command && self.is_keyword(word))
        {
            return;
        }
        let mut word = word;
        if let Some((name, value)) = assignment(word) {
            self.flush();
            if value.starts_with("--") {
                word = value;
            } else {
                if position == Position::Argument {
                    self.set(name.to_owned(), value, self.line);
                }
                self.assign(name, value);
                return;
            }
        } else if let Some((path, value)) = dotted(word) {
            self.flush();
            self.set(path.to_owned(), value, self.line);
            return;
        } else {
            self.position = Position::Argument;
        }
        if let Some(flag) = word.strip_prefix("--") {
            self.flush();
            match flag.split_once('=') {
                Some((name, value)) => self.set(name.replace('-', "_"), value, self.line),
                None => self.pending = Some((flag.replace('-', "_"), self.line)),
            }
        } else if is_list(word) {
            self.flush();
        } else if let Some((name, line)) = self.pending.take() {
            self.set(name, word, line);
        }
    }

    /// Whether a word at the place of a command belongs to the shell itself.
    fn is_keyword(&mut self, word: &str) -> bool {
        match word {
            "if" | "while" | "until" | "case" => self.conditions += 1,
            "for" | "select" => {
                self.conditions += 1;
                self.position = Position::Variable;
            }
            "read" => self.position = Position::Variable,
            "export" | "local" | "declare" | "readonly" | "env" => {
                self.position = Position::Setting;
            }
            "fi" | "done" | "esac" => self.conditions = self.conditions.saturating_sub(1),
            "echo" | "printf" => self.position = Position::Printed,
            "then" | "do" | "else" | "elif" | "{" | "}" => {}
            _ => return false,
        }
        true
    }

    /// Gives a variable a value. Of two values, one of them under a condition, nobody knows which holds.
    fn assign(&mut self, name: &str, written: &str) {
        let appends = name.ends_with('+');
        let value = expanded(written, &self.variables, DEEPEST);
        let value = value.filter(|value| !value.is_empty() && value != "(" && !appends);
        let name = name.trim_end_matches('+');
        if self.given.contains(name) {
            return;
        }
        let is_other = |before: &Option<String>| *before != value;
        let doubtful = self.conditions > 0 && self.variables.get(name).is_some_and(is_other);
        let value = value.filter(|_| !doubtful);
        self.variables.insert(name.to_owned(), value);
    }

    /// Sets a flag to what was written, as far as it is known.
    fn set(&mut self, name: String, written: &str, line: u32) {
        self.flags.lines.insert(name.clone(), line);
        let Settings { values, unset, .. } = &mut self.flags;
        let value = expanded(written, &self.variables, DEEPEST);
        let value = value.filter(|value| written.is_empty() || !value.is_empty());
        let is_other = |before: &String| Some(before) != value.as_ref();
        let doubtful = self.conditions > 0
            && (unset.contains_key(&name) || values.get(&name).is_some_and(is_other));
        if let Some(value) = value.filter(|_| !doubtful) {
            unset.remove(&name);
            values.insert(name, value);
        } else {
            values.remove(&name);
            unset.insert(name, written.to_owned());
        }
    }
}

/// Whether a word stands for any number of words: `$@`, `${ARGS[@]}`.
fn is_list(word: &str) -> bool {
    ["$@", "$*", "[@]}", "[*]}"]
        .iter()
        .any(|end| word.ends_with(end))
}

const fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// `NAME=value`, or `NAME+=value` with the plus in the name.
fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let plain = name.strip_suffix('+').unwrap_or(name);
    let is_plain = !plain.is_empty()
        && plain.chars().all(is_name)
        && !plain.starts_with(|c: char| c.is_ascii_digit());
    is_plain.then_some((name, value))
}

/// `model.x=value`, an override of a configuration.
fn dotted(word: &str) -> Option<(&str, &str)> {
    let (path, value) = word.split_once('=')?;
    let path = path.trim_start_matches('+');
    let is_path = path.contains('.')
        && path
            .split('.')
            .all(|part| !part.is_empty() && part.chars().all(is_name));
    is_path.then(|| (path.strip_prefix("cfg.").unwrap_or(path), value))
}

/// Longest value, in bytes.
const LONGEST: usize = 1000;
/// Most defaults within each other.
const DEEPEST: usize = 8;

type Variables = BTreeMap<String, Option<String>>;

/// The text with variables replaced; `None` where nobody knows one of them.
fn expanded(text: &str, variables: &Variables, depth: usize) -> Option<String> {
    let (mut done, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('$') {
        done.push_str(before);
        let value;
        (value, rest) = match after.chars().next()? {
            '(' => {
                let end = closing(after)?;
                let terms = after[..=end].strip_prefix("((")?.strip_suffix("))")?;
                (product(terms, variables, depth)?, &after[end + 1..])
            }
            '{' => {
                let end = closing(after)?;
                let value = variable(&after[1..end], variables, depth)?;
                (value, &after[end + 1..])
            }
            _ => {
                let end = after.find(|c| !is_name(c)).unwrap_or(after.len());
                (variable(&after[..end], variables, depth)?, &after[end..])
            }
        };
        done.push_str(&value);
        if done.len() > LONGEST {
            return None;
        }
    }
    done.push_str(rest);
    (done.len() <= LONGEST).then_some(done)
}

/// `NAME`, or `NAME:-default` and its like.
fn variable(text: &str, variables: &Variables, depth: usize) -> Option<String> {
    let (name, operator) = text.split_at(text.find(|c| !is_name(c)).unwrap_or(text.len()));
    let colon = operator.strip_prefix(':').unwrap_or(operator);
    let default = colon.strip_prefix(['-', '=']);
    match variables.get(name) {
        Some(value) if operator.is_empty() || default.is_some() => value.clone(),
        Some(_) => None,
        None => expanded(default?, variables, depth.checked_sub(1)?),
    }
}

/// `A * B`.
fn product(terms: &str, variables: &Variables, depth: usize) -> Option<String> {
    let depth = depth.checked_sub(1)?;
    let product = terms.split('*').try_fold(1_u64, |product, factor| {
        let factor = factor.trim();
        let value = if factor.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            variable(factor, variables, depth)
        } else {
            expanded(factor, variables, depth)
        };
        product.checked_mul(value?.parse().ok()?)
    });
    product.map(|product| product.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Flags of a script without anything given.
    fn flags(script: &str) -> Settings {
        super::flags(script, &BTreeMap::new())
    }

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

    /// The values of two flags of a script.
    fn degrees(script: &str) -> [Option<String>; 2] {
        let flags = flags(script);
        ["tp", "pp"].map(|name| flags.values.get(name).cloned())
    }

    #[test]
    fn commands_of_one_line_are_told_apart() {
        let both = ["4", "2"].map(|value| Some(value.to_owned()));
        for script in [
            "TP=4; PP=2\nrun --tp $TP --pp $PP",
            "TP=4;PP=2;run --tp $TP --pp ${PP}",
            "TP=4 && PP=2 && run --tp=$TP --pp=$PP",
            "ARGS=(--tp 4 --pp 2)\nrun \"${ARGS[@]}\"",
            "ARGS=( --tp 4 )\nARGS+=(--pp 2); run ${ARGS[@]}",
            "ARGS=\"--tp 4 --pp 2\"\nrun $ARGS",
            "ARGS='--tp 4'; ARGS+=' --pp 2'; run $ARGS",
            "export TP=${X:-${Y:-4}} PP=\"${Z-2}\"\nrun --tp \"$TP\" \\\n --pp '2' 2>&1 | tee x",
            "bash -c \"TP=4; PP=2; run --tp $TP --pp $PP\"",
            "sbatch <<E\nrun --tp 4 --pp 2\nE\n",
            "echo \"try --tp 8\"; run --tp 4 --pp 2 > log",
            "if true; then run --tp 4; else run --tp 4; fi; run --pp 2",
        ] {
            assert_eq!(degrees(script), both, "{script}");
        }
    }

    #[test]
    fn what_depends_on_more_is_unknown() {
        for script in [
            "TP=1\nif [ $1 = 70b ]; then TP=4; fi\nrun --tp $TP --pp $(pwd)",
            "for TP in 1 2; do run --tp $TP --pp `x`; done",
            "if x; then A='--tp 4 --pp 1'; else A='--tp 8 --pp 2'; fi",
            "TP=4; TP=$1; read PP; run --tp $TP --pp $PP",
            "run --tp ${A%x} --pp $((A+1))",
        ] {
            assert_eq!(degrees(script), [None, None], "{script}");
            let unset: Vec<String> = flags(script).unset.into_keys().collect();
            assert_eq!(unset, ["pp", "tp"], "{script}");
        }
        assert_eq!(
            degrees("case $1 in --tp) x;; -p|--pp) y;; esac"),
            [None, None]
        );
        assert_eq!(flags("run --bf16 > log").values["bf16"], "");
    }

    #[test]
    fn values_that_grow_are_cut_short() {
        let doubled = "A=$A$A\n".repeat(100);
        let flags = flags(&format!("A=aaaaaaaa\n{doubled}run --tp $A"));
        assert!(flags.unset.contains_key("tp"));
    }
}
