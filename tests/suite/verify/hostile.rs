//! No file makes the checker panic, hang or take all memory.

use super::*;

#[test]
fn what_is_no_answer_is_unreadable() {
    let texts = [
        String::new(),
        "\u{0}".to_owned(),
        "{".to_owned(),
        "[".repeat(1_000_000),
        "{\"a\":".repeat(1_000_000),
        "null".to_owned(),
        "{}".to_owned(),
        "[]".to_owned(),
        "NaN".to_owned(),
        "1e999".to_owned(),
        "\"parlayout/solution/v1\"".to_owned(),
        "{\"schema\": \"parlayout/certificate/v1\"}".to_owned(),
        "{\"schema\": \"parlayout/solution/v1\"}".to_owned(),
        format!("[{}0]", "0,".repeat(5_000_000)),
    ];
    for text in &texts {
        let start: String = text.chars().take(40).collect();
        assert!(verify(text).is_err(), "{start}");
    }
}

#[test]
fn keys_stand_once_and_are_known() {
    let text = &ANSWERS[0];
    let twice = text.replacen("\"mfu\":", "\"mfu\": 0.9, \"mfu\":", 1);
    assert_eq!(rejected(&twice), "prediction.mfu");
    let unknown = text.replacen("\"mfu\":", "\"mfv\": 0.9, \"mfu\":", 1);
    assert_eq!(rejected(&unknown), "prediction.mfv");
    let missing = text.replacen("\"job\":", "\"jobs\":", 1);
    assert_eq!(rejected(&missing), "job");
}

#[test]
fn every_key_may_be_missing_or_of_another_type() {
    let document: Value = serde_json::from_str(&ANSWERS[0]).expect("it is JSON");
    for place in tampering::places(&document, "") {
        for strange in [
            Value::Null,
            json!([]),
            json!({}),
            json!(-1),
            json!(1e300),
            json!("x"),
        ] {
            let mut other = document.clone();
            *other.pointer_mut(&place).expect("the place is known") = strange.clone();
            let text = other.to_string();
            // The verdict may be either where the value is free text or was the same before.
            drop(verify(&text));
        }
    }
}

/// An instance in an answer reads no other file.
#[test]
fn an_answer_refers_to_no_file() {
    for (section, key) in [("model", "config"), ("cluster", "file")] {
        let mut document: Value = serde_json::from_str(&ANSWERS[0]).expect("it is JSON");
        document["resolved_instance"][section][key] = json!("/dev/zero");
        let error = verify(&document.to_string()).expect_err("it is refused");
        assert!(
            error.to_string().contains("refers to another file"),
            "{error}"
        );
    }
}

#[test]
fn files_that_are_no_text_are_refused() {
    let folder = tempdir("hostile");
    let large = folder.join("large.json");
    let file = std::fs::File::create(&large).expect("the folder is writable");
    file.set_len(1 << 40).expect("a file may have holes");
    for path in [
        large.to_str().expect("paths are text"),
        folder.to_str().expect("paths are text"),
        "/dev/zero",
        "/dev/null",
        "no-such-file.json",
        "Cargo.toml",
    ] {
        let (stdout, stderr) = check(&["verify", path], 2);
        assert!(stdout.is_empty() && stderr.contains(path), "{stderr}");
    }
    std::fs::remove_file(&large).expect("it is there");
}
