//! The words of a shell script. Nothing is run; what a word stands for is found elsewhere.

/// A part of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// A word without its quotes. Quoted text is several words where it has blanks, since scripts
    /// keep flags in strings. `NAME=(` opens an array, whose items follow.
    Word(String),
    /// The end of a command or array.
    End,
    /// The end of a command within quotes.
    QuotedEnd,
}

/// Longest substitution, in bytes: what is longer says no number.
const LONGEST: usize = 1024;
/// Most here-documents that are read.
const MOST_DOCUMENTS: usize = 64;
/// Most here-documents within each other.
const DEEPEST: usize = 4;

/// The words of a script and what parts them. Of comments only `#SBATCH` lines count.
pub(super) fn tokens(script: &str) -> Vec<(Token, u32)> {
    nested(&script.replace('\r', ""), DEEPEST, 1)
}

fn nested(script: &str, depth: usize, line: u32) -> Vec<(Token, u32)> {
    let mut reader = Reader {
        whole: script,
        counted: 0,
        line,
        started: 0,
        rest: script,
        tokens: Vec::new(),
        word: String::new(),
        quote: None,
        groups: Vec::new(),
        statement: 0,
        documents: Vec::new(),
        left: if depth == 0 { 0 } else { MOST_DOCUMENTS },
        depth,
    };
    while let Some(c) = reader.next() {
        reader.take(c);
    }
    reader.end(Token::End);
    reader.tokens
}

/// The position of the bracket that closes the one at the start of `text`, if it is near.
pub(super) fn closing(text: &str) -> Option<usize> {
    let mut characters = text.char_indices().take_while(|(at, _)| *at < LONGEST);
    let (_, open) = characters.next()?;
    let close = if open == '{' { '}' } else { ')' };
    let mut depth = 1_u32;
    for (at, c) in characters {
        if c == open {
            depth += 1;
        } else if c == close {
            depth -= 1;
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// What a round bracket opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Group {
    Array,
    Commands,
}

struct Reader<'s> {
    whole: &'s str,
    /// Bytes whose lines are counted, and the line that they end on.
    counted: usize,
    line: u32,
    /// Where the word that is being read starts.
    started: usize,
    rest: &'s str,
    tokens: Vec<(Token, u32)>,
    /// The word that is being read.
    word: String,
    quote: Option<char>,
    groups: Vec<Group>,
    /// The first token after the last end of a line or list.
    statement: usize,
    /// Ends of the here-documents that follow this line.
    documents: Vec<&'s str>,
    /// Here-documents that may still follow.
    left: usize,
    depth: usize,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    /// The line of a place at or after the last one that was asked for.
    fn line_at(&mut self, place: usize) -> u32 {
        if let Some(passed) = self.whole.get(self.counted..place) {
            let ends = passed.bytes().filter(|&byte| byte == b'\n').count();
            self.line += ends as u32;
            self.counted = place;
        }
        self.line
    }

    fn push(&mut self, token: Token, place: usize) {
        let line = self.line_at(place);
        self.tokens.push((token, line));
    }

    fn place(&self) -> usize {
        self.whole.len() - self.rest.len()
    }

    fn take(&mut self, c: char) {
        if self.word.is_empty() {
            self.started = self.place() - c.len_utf8();
        }
        match (c, self.quote) {
            ('\\', None | Some('"')) => {
                let escaped = self.next().filter(|&c| c != '\n');
                self.word.extend(escaped);
            }
            // A command that another shell gets goes on after it too.
            ('\\', Some('\'')) if self.rest.starts_with('\n') => drop(self.next()),
            ('"' | '\'', None) => self.quote = Some(c),
            ('"' | '\'', Some(open)) => self.quote = Some(open).filter(|_| open != c),
            ('$', _) => self.substitution(),
            ('`', None | Some('"')) => {
                // Nobody knows what a command says.
                let near = self.rest.char_indices().take(LONGEST);
                let end = near.clone().find(|(_, c)| *c == '`');
                self.rest = &self.rest[end.map_or(0, |(at, _)| at + 1)..];
                self.word.push_str("$()");
            }
            ('#', None) if self.word.is_empty() => self.comment(),
            ('\n', None) if self.groups.last() == Some(&Group::Array) => self.end_word(),
            ('\n', None) => {
                self.end_statement();
                self.documents();
            }
            (';' | '&', None) => self.end_statement(),
            ('|', None) => self.end(Token::End),
            // Stages of a pipeline's layout are apart by bars without blanks.
            ('|', Some(_)) if !self.word.is_empty() => self.word.push(c),
            (';' | '&' | '|', Some(_)) => self.end(Token::QuotedEnd),
            ('<' | '>', None) => self.redirection(c),
            ('(', None) => self.open(),
            (')', None) => match self.groups.pop() {
                Some(_) => self.end(Token::End),
                None => self.pattern(),
            },
            (c, _) if c.is_whitespace() => self.end_word(),
            (c, _) => self.word.push(c),
        }
    }

    fn end_word(&mut self) {
        if !self.word.is_empty() {
            let word = std::mem::take(&mut self.word);
            self.push(Token::Word(word), self.started);
        }
    }

    fn end(&mut self, token: Token) {
        self.end_word();
        self.push(token, self.started);
    }

    fn end_statement(&mut self) {
        self.end(Token::End);
        self.statement = self.tokens.len();
    }

    /// `$NAME`, `${…}`, `$(…)`, as written.
    fn substitution(&mut self) {
        self.word.push('$');
        if self.rest.starts_with(['{', '('])
            && let Some(end) = closing(self.rest)
        {
            let (own, rest) = self.rest.split_at(end + 1);
            self.word.push_str(own);
            self.rest = rest;
        }
    }

    /// Passes a comment; the options of an `#SBATCH` line stay to be read.
    fn comment(&mut self) {
        let is_first = self
            .tokens
            .last()
            .is_none_or(|(last, _)| *last == Token::End);
        if let Some(options) = self.rest.strip_prefix("SBATCH").filter(|_| is_first) {
            self.rest = options;
            return;
        }
        let end = self.rest.find('\n').unwrap_or(self.rest.len());
        self.rest = &self.rest[end..];
    }

    /// `>`, `2>`, `<`, or `<<` before the end of a here-document.
    fn redirection(&mut self, c: char) {
        if self.word.chars().all(|c| c.is_ascii_digit()) {
            self.word.clear();
        }
        self.end(Token::End);
        let document = self.rest.strip_prefix('<').filter(|_| c == '<');
        let Some(after) = document.filter(|after| !after.starts_with('<')) else {
            return;
        };
        let after = after.trim_start_matches('-').trim_start_matches(' ');
        let end = after.find(|c: char| c.is_whitespace() || ";&|)".contains(c));
        let (name, rest) = after.split_at(end.unwrap_or(after.len()));
        if !name.is_empty() && self.left > 0 {
            self.left -= 1;
            self.documents.push(name.trim_matches(['"', '\'', '\\']));
            self.rest = rest;
        }
    }

    /// Reads here-documents as the scripts that they often are.
    fn documents(&mut self) {
        for name in std::mem::take(&mut self.documents) {
            let mut at = 0;
            let end = self.rest.split_inclusive('\n').find_map(|line| {
                let start = at;
                at += line.len();
                (line.trim() == name).then_some(start)
            });
            if let Some(start) = end {
                let line = self.line_at(self.place());
                let document = nested(&self.rest[..start], self.depth - 1, line);
                self.tokens.extend(document);
                self.rest = &self.rest[at..];
                self.end_statement();
            }
        }
    }

    /// `NAME=(` opens an array, every other round bracket a list of commands.
    fn open(&mut self) {
        if self.word.ends_with('=') {
            self.word.push('(');
            self.end_word();
            self.groups.push(Group::Array);
        } else {
            self.end(Token::End);
            self.groups.push(Group::Commands);
        }
    }

    /// Drops the pattern of a `case` that a bracket ends, such as `--flag | -f)`.
    fn pattern(&mut self) {
        self.word.clear();
        let own = &self.tokens[self.statement..];
        let opening = own
            .iter()
            .rposition(|(token, _)| *token == Token::Word("in".to_owned()));
        let kept = opening.map_or(0, |before| before + 1);
        self.tokens.truncate(self.statement + kept);
        self.end_statement();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(script: &str, expected: &str) {
        let shown: Vec<String> = tokens(script)
            .into_iter()
            .map(|(token, _)| match token {
                Token::Word(word) => word,
                Token::End => ";".to_owned(),
                Token::QuotedEnd => ",".to_owned(),
            })
            .collect();
        let shown = shown.join(" ").replace("; ;", ";").replace("; ;", ";");
        assert_eq!(shown, expected, "{script}");
    }

    #[test]
    fn words_end_where_the_shell_ends_them() {
        check("TP=4; PP=4\nrun", "TP=4 ; PP=4 ; run ;");
        check("A=(--a 1 # one\n --b 2)\nrun", "A=( --a 1 --b 2 ; run ;");
        check("run a\\\n b \\\n  c", "run a b c ;");
        check("run 'a b' \"c;d\" e#f", "run a b c , d e#f ;");
        check(
            "(cd x && run) 2>&1 | tee log",
            "; cd x ; run ; 1 ; tee log ;",
        );
        check(
            "#SBATCH --nodes=4\n##SBATCH --x\nrun # y",
            "--nodes=4 ; run ;",
        );
        check(
            "run $(($A * 2)) ${B:-c d} `pwd`",
            "run $(($A * 2)) ${B:-c d} $() ;",
        );
    }

    #[test]
    fn patterns_and_documents_are_told_apart() {
        check("case $1 in --a|-b) A=1;; esac", "case $1 in ; A=1 ; esac ;");
        check("cat <<'E' > x\ndon't\nE\nrun", "cat ; x ; dont ; run ;");
        check("cat << E\nno end", "cat ; no end ;");
        check(
            "bash -c 'run --a \\\n --b E|(t|)*2L | tee x'",
            "bash -c run --a --b E|(t|)*2L , tee x ;",
        );
    }

    #[test]
    fn hostile_scripts_end_soon() {
        for part in ["${", "$(", "<<a\n", "`", "((", "\"'", "case in)"] {
            let script = part.repeat((1 << 18) / part.len());
            assert!(tokens(&script).len() <= script.len() + 1, "{part}");
        }
    }
}
