//! No document makes the checker panic.

use std::sync::LazyLock;

use super::*;

/// Whether the text is refused, one way or the other.
fn refused(text: &str) -> bool {
    !matches!(verify(text), Ok(Verdict::Accepted(_)))
}

#[test]
fn what_is_no_certificate_is_refused() {
    let long = format!("{{\"schema\": \"{}\"}}", "x".repeat(10_000_000));
    let many = format!("[{}0]", "0,".repeat(5_000_000));
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
        "99999999999999999999999999999999".to_owned(),
        "\"parlayout/certificate/v1\"".to_owned(),
        long,
        many,
    ];
    for text in &texts {
        assert!(
            refused(text),
            "{}",
            text.chars().take(40).collect::<String>()
        );
    }
}

#[test]
fn what_is_not_json_is_unreadable_and_other_documents_are_rejected() {
    for text in ["", "no", "{\"schema\"", "[1,]"] {
        assert!(verify(text).is_err(), "{text}");
    }
    for text in [
        "{}",
        "[]",
        "1",
        "{\"schema\": \"parlayout/certificate/v1\"}",
    ] {
        assert!(matches!(verify(text), Ok(Verdict::Rejected(_))), "{text}");
    }
}

/// Where a document is wrong.
fn rejected_place(text: &str) -> String {
    match verify(text) {
        Ok(Verdict::Rejected(reasons)) => reasons.list()[0].place.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn documents_of_another_shape_are_rejected_with_the_place() {
    let changed = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut document = DOCUMENTS[0].clone();
        change(&mut document);
        rejected_place(&document.to_string())
    };
    let list = "solved";
    let longer = changed(&|document| {
        let entry = document["combinations"][list][0].as_array_mut();
        entry.expect("something is solved").push(1.into());
    });
    assert_eq!(longer, "combinations.solved[0][2]");
    let shorter = changed(&|document| {
        let entry = document["combinations"][list][0].as_array_mut();
        entry.expect("something is solved").pop();
    });
    assert_eq!(shorter, "combinations.solved[0]");
    let text = changed(&|document| document["costs"][1]["fills"] = "1".into());
    assert_eq!(text, "costs[1].fills");
    let other = changed(&|document| document["winner"]["stages"][0]["more"] = 1.into());
    assert_eq!(other, "winner.stages[0].more");
    assert!(verify(&format!("{} 1", DOCUMENTS[0])).is_err());
}

#[test]
fn zeros_have_no_sign() {
    let zeros: Vec<tampering::Path> = tampering::places_by_kind(&DOCUMENTS[0])
        .into_values()
        .flatten()
        .filter(|path| tampering::value_at(&DOCUMENTS[0], path).as_f64() == Some(0.0))
        .collect();
    assert!(zeros.len() > 20, "{}", zeros.len());
    for path in zeros {
        let text = tampering::replaced(&DOCUMENTS[0], &path, &serde_json::json!(-0.0));
        // As a whole number it has another shape.
        assert_eq!(rejected_place(&text), tampering::shown(&path));
    }
}

/// A value that has no business where it is put.
fn misplaced() -> impl Strategy<Value = serde_json::Value> {
    use serde_json::json;
    prop_oneof![
        any::<i64>().prop_map(|number| json!(number)),
        any::<u64>().prop_map(|number| json!(number)),
        any::<u32>().prop_map(|number| json!(number)),
        (-2.0..2.0_f64).prop_map(|exponent| json!(10.0_f64.powf(exponent * 150.0))),
        Just(json!(0)),
        Just(json!(-1)),
        Just(json!(1)),
        Just(json!(null)),
        Just(json!([])),
        Just(json!({})),
        Just(json!([1, 2, 3, 4, 5, 6, 7, 8])),
        Just(json!("free")),
    ]
}

/// Replaces the values at the chosen places, counted in depth-first order.
fn replace(
    document: &mut serde_json::Value,
    chosen: &[(usize, serde_json::Value)],
    count: &mut usize,
) {
    let own = *count;
    *count += 1;
    if let Some((_, value)) = chosen.iter().find(|(place, _)| *place == own) {
        if !tampering::same(document, value) {
            *document = value.clone();
        }
        return;
    }
    match document {
        serde_json::Value::Array(items) => {
            for item in items {
                replace(item, chosen, count);
            }
        }
        serde_json::Value::Object(fields) => {
            fields
                .values_mut()
                .for_each(|field| replace(field, chosen, count));
        }
        _ => {}
    }
}

/// Certificates of a space that is listed and of one where every axis is open.
static DOCUMENTS: LazyLock<[serde_json::Value; 2]> = LazyLock::new(|| {
    [1, 2].map(|index| {
        let instance = instances().nth(index).expect("there are instances");
        let text = certificate(&instance, &solved(&instance, &PlanOptions::default()));
        serde_json::from_str(&text).expect("a certificate is JSON")
    })
});

proptest! {
    #![proptest_config(crate::support::cases(1000))]

    /// The head of the document, with the job and the space, is where numbers do most.
    #[test]
    fn certificates_with_misplaced_values_are_refused_without_a_panic(
        changes in prop::collection::vec((1_usize..150, misplaced()), 1..6),
        small in any::<bool>(),
    ) {
        let original = &DOCUMENTS[usize::from(small)];
        let mut document = original.clone();
        replace(&mut document, &changes, &mut 0);
        let started = std::time::Instant::now();
        prop_assert!(document == *original || refused(&document.to_string()));
        // Milliseconds; the limit leaves room for a busy machine.
        prop_assert!(started.elapsed().as_secs() < 30, "{changes:?}");
    }

    #[test]
    fn any_text_is_refused(text in "\\PC{0,200}") {
        prop_assert!(refused(&text));
    }
}
