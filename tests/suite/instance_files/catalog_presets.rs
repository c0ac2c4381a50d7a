//! What the catalog says.

use super::*;

#[test]
fn parameters_are_exact() {
    // As the model cards report; GPT-3 and the 1T by their papers' formulas and the last norm.
    let published = [
        ("llama-7b", 6_738_415_616),
        ("llama-13b", 13_015_864_320),
        ("llama-30b", 32_528_943_616),
        ("llama-65b", 65_285_660_672),
        ("llama-2-7b", 6_738_415_616),
        ("llama-2-13b", 13_015_864_320),
        ("llama-2-70b", 68_976_648_192),
        ("llama-3-8b", 8_030_261_248),
        ("llama-3-70b", 70_553_706_496),
        ("llama-3.1-8b", 8_030_261_248),
        ("llama-3.1-70b", 70_553_706_496),
        ("llama-3.1-405b", 405_853_388_800),
        ("qwen2.5-32b", 32_763_876_352),
        ("gpt-3-175b", 174_604_259_328),
        ("megatron-1t", 1_008_038_758_400),
    ];
    for (name, parameters) in published {
        let model = catalog::model(name).expect("it is in the catalog");
        assert_eq!(model.parameters(), parameters, "{name}");
    }
    let models = catalog::entries()
        .into_iter()
        .filter(|entry| entry.kind == catalog::Kind::Model);
    let others = super::active_parameters::names();
    for model in models {
        let is_here = published.iter().any(|(name, _)| *name == model.name);
        assert!(is_here || others.contains(&model.name), "{}", model.name);
    }
}

#[test]
fn shapes_of_other_networks_are_exact() {
    let qwen = read("qwen2.5-32b-4k-64xh100.toml").job.transformer;
    assert_eq!(qwen.parameters(), 32_763_876_352);
    let neox = read("gpt-neox-20b-2k-8xa100.toml").job.transformer;
    assert_eq!(neox.parameters(), 20_554_567_680);
    let qwen3 = read("qwen3-8b-16k-16xh200.toml").job.transformer;
    assert_eq!(qwen3.parameters(), 8_190_735_360);
}

#[test]
fn every_entry_is_complete_and_has_a_source() {
    for entry in catalog::entries() {
        assert!(!entry.figures.is_empty(), "{}", entry.name);
        assert!(!entry.source.is_empty(), "{}", entry.name);
    }
    let gpu = catalog::accelerator("a100-80gb").expect("it is in the catalog");
    assert_eq!(gpu.usable_memory, Bytes::new(85.0e9));
    assert!(catalog::framework("megatron-lm").is_ok());
    let cluster = catalog::cluster("dgx-h100-80gb").expect("it is in the catalog");
    assert_eq!((cluster.gpus, cluster.gpus_per_node), (8, 8));
    assert_eq!(cluster.calibration.kind, CalibrationKind::DataSheet);
}

#[test]
fn a_name_that_is_nearly_right_is_suggested() {
    let unknown = catalog::cluster("dgx-h100").expect_err("there is none");
    assert_eq!(unknown.suggestions, ["dgx-h100-80gb"]);
    let unknown = catalog::model("LLaMA-3.1_8B").expect_err("there is none");
    assert_eq!(unknown.suggestions, ["llama-3.1-8b"]);
    let unknown = catalog::accelerator("abacus").expect_err("there is none");
    assert!(
        unknown.to_string().contains("known: `a100-40gb`"),
        "{unknown}"
    );
}
