//! What is said about bad input.

use super::*;

#[test]
fn in_the_text() {
    snapshot(
        "errors_in_text",
        vec![
            ("empty", from_text("")),
            ("only a comment", from_text("# nothing\n")),
            ("prose", from_text("please train a model")),
            (
                "an open string",
                from_text(&good_but("\"llama-13b\"", "\"llama-13b")),
            ),
            (
                "a key twice",
                from_text(&good_but("gpus = 64", "gpus = 64\ngpus = 32")),
            ),
            (
                "a section twice",
                from_text(&good_but("", "[cluster]\ngpus = 8")),
            ),
            (
                "nested too deeply",
                from_text(&format!("a = {}", "[".repeat(5000))),
            ),
            (
                "control characters",
                from_text("[model]\n\u{1b}[31mred = 1"),
            ),
        ],
    );
}

#[test]
fn in_keys_and_types() {
    snapshot(
        "errors_in_keys",
        vec![
            (
                "a misspelt key",
                from_text(&good_but("gpus = 64", "gpsu = 64")),
            ),
            (
                "another tool's key",
                from_text(&good_but("sequence_length", "seq_len")),
            ),
            (
                "a key of another section",
                from_text(&good_but("", "gpus = 8")),
            ),
            (
                "another tool's key of another section",
                from_text(&good_but("", "tp = 8")),
            ),
            (
                "an unknown section",
                from_text(&good_but("[cluster]", "[machine]")),
            ),
            (
                "a section that is a value",
                from_text("model = \"llama-13b\""),
            ),
            (
                "a section that is a list",
                from_text(&good_but("[cluster]", "[[cluster]]")),
            ),
            ("a number in quotes", from_text(&good_but("64", "\"64\""))),
            (
                "a number with a fraction",
                from_text(&good_but("64", "64.0")),
            ),
            ("a date", from_text(&good_but("64", "2024-01-01"))),
            (
                "a text without quotes",
                from_text(&good_but("\"llama-13b\"", "true")),
            ),
            (
                "no unit",
                from_text(&good_but("gpus = 64", "gpus = 64\nmemory = 80")),
            ),
            (
                "no unit in quotes",
                from_text(&good_but("gpus = 64", "gpus = 64\nmemory = \"80\"")),
            ),
            (
                "a wrong unit",
                from_text(&good_but("gpus = 64", "gpus = 64\nmemory = \"80 Gb/s\"")),
            ),
            (
                "an unknown model",
                from_text(&good_but("llama-13b", "lama-13b")),
            ),
            (
                "an unknown cluster",
                from_text(&good_but("dgx-a100-80gb", "dgx-a100")),
            ),
            (
                "what comes later",
                from_text(&good_but(
                    "preset = \"llama-13b\"",
                    "preset = \"llama-13b\"\nmoe = 8",
                )),
            ),
            (
                "rows that come later",
                from_text(&good_but("", "[[constraint]]\nname = \"mine\"")),
            ),
        ],
    );
}

#[test]
fn in_values() {
    let cluster = |line: &str| from_text(&good_but("gpus = 64", &format!("gpus = 64\n{line}")));
    let model = |line: &str| {
        from_text(&good_but(
            "preset = \"llama-13b\"",
            &format!("preset = \"llama-13b\"\n{line}"),
        ))
    };
    let training = |line: &str| from_text(&good_but("", line));
    snapshot(
        "errors_in_values",
        vec![
            ("no GPUs", from_text(&good_but("64", "0"))),
            ("too many GPUs", from_text(&good_but("64", "1048577"))),
            (
                "digits without end",
                from_text(&good_but("64", &"9".repeat(60))),
            ),
            ("a negative batch", from_text(&good_but("512", "-512"))),
            ("no memory", cluster("memory = \"0 GB\"")),
            ("negative memory", cluster("memory = \"-80 GB\"")),
            ("infinite memory", cluster("memory = \"1e999 GB\"")),
            ("an efficiency above 1", cluster("efficiency.gemm = 75")),
            ("a nan", cluster("efficiency.congestion = nan")),
            ("a preset and a file", cluster("file = \"mine.toml\"")),
            (
                "a file that is not there",
                from_text(&good_but(
                    "preset = \"dgx-a100-80gb\"",
                    "file = \"mine.toml\"",
                )),
            ),
            (
                "no GPU",
                from_text(&good_but("preset = \"dgx-a100-80gb\"\n", "")),
            ),
            ("heads that do not divide", model("heads = 48")),
            ("groups that do not divide", model("key_value_heads = 3")),
            ("no layers", model("layers = 0")),
            (
                "no network",
                from_text(&good_but("preset = \"llama-13b\"", "vocabulary = 1000")),
            ),
            (
                "half a network",
                from_text(&good_but("preset = \"llama-13b\"", "layers = 4")),
            ),
            ("fp8 without units for it", training("precision = \"fp8\"")),
            ("an unknown optimizer", training("optimizer = \"adamw\"")),
            (
                "a certain risk",
                from_text(&good_but("", "[limits]\nmax_oom_risk = 1")),
            ),
            (
                "nothing to try",
                from_text(&good_but("", "[search]\nmicro_batch = []")),
            ),
            (
                "twice the same",
                from_text(&good_but("", "[search]\nmicro_batch = [1, 2, 1]")),
            ),
            (
                "an unknown sharding",
                from_text(&good_but("", "[search]\nsharding = \"zero1\"")),
            ),
            (
                "a degree in quotes",
                from_text(&good_but("", "[search]\ntensor_parallel = \"8\"")),
            ),
            (
                "everything forbidden",
                from_text(&good_but("", "[[search.forbid]]")),
            ),
            (
                "an unknown axis",
                from_text(&good_but("", "[[search.forbid]]\ntensor_paralel = 8")),
            ),
        ],
    );
}

#[test]
fn all_at_once() {
    let text = r#"[model]
preset = "lama-13b"
layers = 0

[cluster]
preset = "dgx-a100-80gb"
gpus = "64"
memory = 24
bandwidth = "200 Gb/s"

[training]
sequence_length = -1

[limits]
max_oom_risk = 2

[search]
tensor_parallel = [1, 2, 2]
"#;
    snapshot(
        "errors_all_at_once",
        vec![("nine broken rules", from_text(text))],
    );
}

#[test]
fn on_the_command_line() {
    snapshot(
        "errors_on_the_command_line",
        vec![
            ("a misspelt key", with_sets(&["gpsu=32"])),
            ("a misspelt path", with_sets(&["cluster.gpsu=32"])),
            ("a key of several sections", with_sets(&["preset=llama-7b"])),
            ("no value", with_sets(&["gpus"])),
            ("an empty value", with_sets(&["gpus="])),
            ("an impossible value", with_sets(&["cluster.gpus=many"])),
            ("below a value", with_sets(&["cluster.gpus.x=1"])),
            ("an unknown section", with_sets(&["a.b.c.d=1"])),
            (
                "a section for its preset",
                with_sets(&["framework=nanotrom"]),
            ),
            (
                "a flag with an unknown name",
                with_flags(&[("model", "lama-13b")]),
            ),
            (
                "a model of another family",
                with_flags(&[("model", "mistral-7b")]),
            ),
            (
                "a GPU without a preset",
                with_flags(&[("model", "llama-13b"), ("cluster", "mi300x")]),
            ),
            ("an adapter", with_sets(&["training.lora_rank=8"])),
            ("offload", with_sets(&["cpu_offload=true"])),
            (
                "an optimizer that is not modelled",
                with_flags(&[("optimizer", "adamw_8bit")]),
            ),
            (
                "a flag with a file that is not there",
                with_flags(&[("model", "no.json")]),
            ),
            (
                "flags with impossible values",
                with_flags(&[
                    ("model", "llama-13b"),
                    ("cluster", "dgx-a100-80gb"),
                    ("gpus", "-3"),
                    ("sequence-length", "2k"),
                ]),
            ),
        ],
    );
}

#[test]
fn about_files() {
    let check = |path: &str| instance::read(Path::new(path), &Overrides::none());
    let path = std::env::temp_dir().join(format!("parlayout-{}-bytes", std::process::id()));
    std::fs::write(&path, b"# fine\n\xff\xfe\x00").expect("the folder is writable");
    let binary = instance::read(&path, &Overrides::none()).expect_err("not UTF-8");
    std::fs::write(&path, vec![b'x'; 10_000_000]).expect("the folder is writable");
    let huge = instance::read(&path, &Overrides::none()).expect_err("too large");
    std::fs::remove_file(&path).expect("it exists");
    let shown = |error: InputError| match error {
        InputError::Unreadable { reason, hint, .. } => Err(InputError::Unreadable {
            path: "file".into(),
            reason,
            hint,
        }),
        other @ InputError::Broken(_) => Err(other),
    };
    snapshot(
        "errors_about_files",
        vec![
            ("a file that is not there", check("no/such.toml")),
            ("a folder", check("/")),
            ("not UTF-8", shown(binary)),
            ("10 MB", shown(huge)),
        ],
    );
}

#[test]
fn have_places_for_programs() {
    let error = from_text(&good_but("gpus = 64", "gpsu = 64")).expect_err("misspelt");
    let InputError::Broken(problems) = &error else {
        panic!("{error}");
    };
    let place = problems.list()[0].place().expect("it has a place");
    assert_eq!(
        (place.source.as_str(), place.line, place.column),
        ("job.toml", 6, 1)
    );
    assert_eq!(error.summary(), "unknown key `cluster.gpsu`");
}

#[test]
fn constraints_have_two_brackets() {
    let misplaced = from_text(&good_but("", "[search]\nconstraint = 3"));
    let message = misplaced.expect_err("misplaced").to_string();
    assert!(
        message.contains("is a section of its own: `[[constraint]]`"),
        "{message}"
    );
}
