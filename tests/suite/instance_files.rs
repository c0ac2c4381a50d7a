//! Instance files, catalog, and what is said about bad ones.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use parlayout::axis::{Assignment, Axis};
use parlayout::catalog;
use parlayout::cluster::CalibrationKind;
use parlayout::instance::{self, InputError, Instance, Overrides};
use parlayout::quantity::{Bytes, BytesPerSecond};
use parlayout::transformer::{Activation, Biases, Embeddings, Numerics, RopeScaling};
use proptest::prelude::*;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn shipped() -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder("instances"))
        .expect("the folder exists")
        .map(|entry| entry.expect("readable").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "toml")
        })
        .collect();
    paths.sort();
    paths
}

fn read(name: &str) -> Instance {
    instance::read(&folder("instances").join(name), &Overrides::none()).expect("valid")
}

fn from_text(text: &str) -> Result<Instance, InputError> {
    instance::from_text("job.toml", text, &folder("instances"), &Overrides::none())
}

fn with_sets(sets: &[&str]) -> Result<Instance, InputError> {
    let mut overrides = Overrides::none();
    for set in sets {
        overrides.set(set);
    }
    instance::from_text("job.toml", GOOD, &folder("instances"), &overrides)
}

fn with_flags(flags: &[(&'static str, &str)]) -> Result<Instance, InputError> {
    let mut overrides = Overrides::none();
    for (flag, value) in flags {
        overrides.flag(flag, value);
    }
    instance::from_flags(&overrides)
}

/// A file that nothing is wrong with.
const GOOD: &str = r#"[model]
preset = "llama-13b"

[cluster]
preset = "dgx-a100-80gb"
gpus = 64

[training]
sequence_length = 2048
global_batch = 512
"#;

/// `GOOD` with a line replaced or, if it is not there, added at the end.
fn good_but(line: &str, other: &str) -> String {
    if line.is_empty() {
        format!("{GOOD}{other}\n")
    } else {
        assert!(GOOD.contains(line), "{line}");
        GOOD.replace(line, other)
    }
}

fn snapshot<E: std::fmt::Display>(name: &str, cases: Vec<(&str, Result<Instance, E>)>) {
    let mut text = String::new();
    for (title, result) in cases {
        let Err(error) = result else {
            panic!("{title} must be refused")
        };
        assert!(
            error.to_string().contains("\nhint: "),
            "{title} has a remedy: {error}"
        );
        writeln!(text, "# {title}\nerror: {error}").expect("a string takes all text");
    }
    let root = format!("{}/", env!("CARGO_MANIFEST_DIR"));
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../../snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text.replace(&root, "")));
}

mod active_parameters;
mod catalog_presets;
mod config_json;
mod errors;
mod hostile;
mod meaning;
mod model_parameters;
mod schema;
mod shipped_files;
