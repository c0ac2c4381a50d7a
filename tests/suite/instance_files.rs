//! Instance files, catalog and their errors.

use std::path::Path;

use parlayout::instance::{self, Overrides};

#[test]
fn every_shipped_instance_is_valid() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("instances");
    for entry in std::fs::read_dir(folder).expect("the folder exists") {
        let path = entry.expect("readable").path();
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            let instance = instance::read(&path, &Overrides::none());
            assert!(instance.is_ok(), "{}", instance.unwrap_err());
        }
    }
}
