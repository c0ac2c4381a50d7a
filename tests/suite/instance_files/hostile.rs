//! No input makes the reader panic.

use super::*;

#[test]
fn inputs_are_refused_in_plain_words() {
    let long_line = format!("x = \"{}\"", "y".repeat(900_000));
    let many_keys: String =
        (0..50_000).fold(String::new(), |text, n| text + &format!("k{n} = 1\n"));
    let nested: String = format!("a{} = 1", ".a".repeat(50_000));
    let headers = format!("[{}]", vec!["a"; 50_000].join("."));
    let inputs = [
        "\u{0}".repeat(1000),
        "[[[[[[[[".repeat(100_000),
        "{".repeat(100_000),
        "a = {a = ".repeat(10_000),
        "'''".to_owned(),
        "\u{feff}".to_owned(),
        "= = =".to_owned(),
        "\r\r\r".to_owned(),
        "🦀 = 🦀".to_owned(),
        long_line,
        many_keys,
        nested,
        headers,
    ];
    for input in &inputs {
        let error = from_text(input).expect_err("hostile");
        let text = error.to_string();
        let start: String = input.chars().take(40).collect();
        assert!(text.len() < 20_000, "{start}");
        assert!(
            !text.chars().any(|c| c.is_control() && c != '\n'),
            "{start}"
        );
    }
}

/// Lines that are nearly those of an instance.
fn line() -> impl Strategy<Value = String> {
    let key = prop_oneof![
        Just("gpus"),
        Just("preset"),
        Just("memory"),
        Just("heads"),
        Just("layers"),
        Just("tensor_parallel"),
        Just("efficiency.gemm"),
        Just("config"),
        Just("file"),
        Just("accelerator"),
        Just("hidden"),
        Just("head_width"),
        Just("sharding"),
    ];
    let value = prop_oneof![
        any::<i64>().prop_map(|number| number.to_string()),
        any::<f64>().prop_map(|number| format!("{number:?}")),
        "\\PC{0,12}".prop_map(|text| format!("{text:?}")),
        "[0-9]{0,3} ?(GB|Gb/s|ms|GiB)".prop_map(|text| format!("{text:?}")),
        Just("[1, 2]".to_owned()),
        Just("{}".to_owned()),
        Just("true".to_owned()),
        Just("1979-05-27".to_owned()),
    ];
    let section = prop_oneof![
        Just("[model]"),
        Just("[cluster]"),
        Just("[training]"),
        Just("[search]"),
        Just("[framework]"),
        Just("[[search.forbid]]"),
        Just("[limits]"),
    ];
    prop_oneof![
        3 => (key, value).prop_map(|(key, value)| format!("{key} = {value}")),
        1 => section.prop_map(ToOwned::to_owned),
    ]
}

proptest! {
    #![proptest_config(crate::support::cases(256))]

    #[test]
    fn any_text_gives_an_instance_or_an_error(text in "\\PC{0,200}|(?s).{0,200}") {
        if let Err(error) = from_text(&text) {
            prop_assert!(!error.to_string().is_empty());
        }
    }

    #[test]
    fn nearly_right_lines_give_an_instance_or_an_error(lines in prop::collection::vec(line(), 0..14)) {
        if let Err(error) = from_text(&lines.join("\n")) {
            prop_assert!(!error.to_string().is_empty());
        }
    }

    #[test]
    fn lines_added_to_a_right_file_too(line in line(), at in 0_usize..10) {
        let mut lines: Vec<&str> = GOOD.lines().collect();
        lines.insert(at, &line);
        if let Err(error) = from_text(&lines.join("\n")) {
            prop_assert!(!error.to_string().is_empty());
        }
    }

    #[test]
    fn any_override_gives_an_instance_or_an_error(set in "\\PC{0,30}=?\\PC{0,30}") {
        if let Err(error) = with_sets(&[&set]) {
            prop_assert!(!error.to_string().is_empty());
        }
    }

    #[test]
    fn any_bytes_give_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let path = std::env::temp_dir()
            .join(format!("parlayout-{}-any", std::process::id()));
        std::fs::write(&path, &bytes).expect("the folder is writable");
        let result = instance::read(&path, &Overrides::none());
        prop_assert!(result.is_err());
    }
}
