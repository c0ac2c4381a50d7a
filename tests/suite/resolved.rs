//! An instance that is written out in full is read back as the same instance.

use parlayout::cluster::{DIMENSIONS, Discrepancy};
use parlayout::instance::{Instance, from_resolved, resolved};
use proptest::prelude::*;

use crate::support::{cases, instances, parse, random_text};

/// Requires that the instance survives being written as text and read again.
fn survives(instance: &Instance) {
    let text = serde_json::to_string_pretty(&resolved(instance)).expect("it is JSON");
    let sections = serde_json::from_str(&text).expect("it is an object");
    let mut read =
        from_resolved(&instance.name, &sections).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert!(
        read.warnings
            .iter()
            .all(|warning| instance.warnings.contains(warning)),
        "{:?}",
        read.warnings
    );
    read.warnings.clone_from(&instance.warnings);
    assert_eq!(read, *instance);
}

#[test]
fn every_shipped_instance_survives() {
    for instance in instances() {
        survives(&instance);
    }
}

/// What a user may add to an instance: lists, rows, forbidden combinations, figures.
fn additions() -> impl Strategy<Value = Vec<String>> {
    let forbid =
        "search.forbid=[{ sharding = \"zero-1\", tensor_parallel = 2 }, { micro_batch = 4 }]";
    let rows = "constraint=[\
        { name = \"b\", terms = { pipeline_parallel = 2, layers_last = -1 }, at_most = 40 }, \
        { name = \"a\", terms = { \"tensor_parallel=2\" = 3, \"sequence_parallel=on\" = 1, micro_batches = 1 }, \
          at_least = -7 }, \
        { name = \"c\", terms = { micro_batch = 5, \"layers[0]\" = 1 }, equals = 5 }]";
    let texts = [
        forbid,
        rows,
        "search.sequence_parallel=[true, false]",
        "search.attention_kernel=[\"torch\", \"flash-attention-2\"]",
        "search.checkpointing=\"full\"",
        "search.schedule=[\"zb-1p\", \"1f1b\"]",
        "model.learned_positions=77",
        "model.biases=\"all\"",
        "training.precision=\"fp16\"",
        "training.optimizer=\"adam-bf16\"",
        "cluster.efficiency.gemm=0.612345678901234",
        "cluster.efficiency.ring_hop=\"3.3333333333333 us\"",
        "cluster.name=\"of \\\"our\\\" own\"",
        "framework.speed.launch=\"0.123456789012345 ms\"",
        "framework.memory.fixed=\"1.1 GiB\"",
        "framework.partition=\"first-and-last\"",
        "framework.checkpointing=\"free\"",
    ];
    proptest::sample::subsequence(texts.map(str::to_owned).to_vec(), 0..=texts.len())
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn random_instances_survive(
        text in random_text(),
        added in additions(),
        weights in proptest::option::of(proptest::collection::vec(-1.0..1.0_f64, 0..4)),
    ) {
        let mut instance = parse(&text, &added);
        instance.job.cluster.discrepancy = weights.map(|weights| Discrepancy {
            points: weights.iter().map(|&weight| [weight / 3.0; DIMENSIONS]).collect(),
            weights,
            amplitude: 0.1 + 0.2,
            length_scale: 1.0 / 3.0,
            noise: 1e-7,
        });
        survives(&instance);
    }
}
