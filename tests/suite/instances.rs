//! What a user sees of every shipped instance: a table each, and the whole document of two.

use parlayout::instance::{self, Overrides};
use parlayout::planner::{self, PlanOptions};
use parlayout::report::document::SolutionDocument;
use parlayout::report::{Answer, Colour, Document, Style};

use crate::support::{instance_files, snapshot};

/// Instances whose documents are kept as well: one with a layout, one without.
const DOCUMENTS: [&str; 2] = ["llama-65b-2k-128gpu-24gb", "llama-65b-2k-16gpu-24gb"];

#[test]
fn every_instance_solves_to_its_snapshots() {
    for path in instance_files() {
        let instance = instance::read(&path, &Overrides::none()).expect("shipped files are valid");
        let outcome = planner::plan(&instance, &PlanOptions::default()).expect("an answer");
        let file = format!("instances/{}.toml", instance.name);
        let style = Style {
            colour: Colour::Never,
            instance_arguments: file,
        };
        let text = SolutionDocument::new(&instance, &outcome).text(&style);
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{}: {line}", instance.name);
        }
        snapshot(&format!("instance_{}.table", instance.name), &text);
        if DOCUMENTS.contains(&instance.name.as_str()) {
            snapshot(
                &format!("instance_{}.json", instance.name),
                &SolutionDocument::new(&instance, &outcome).json(),
            );
        }
    }
}

/// The paper's ten sweeps are solved to proven optimality.
#[test]
fn the_papers_instances_are_optimal() {
    let mut count = 0;
    for path in instance_files() {
        if !path.to_string_lossy().contains("hagemann") {
            continue;
        }
        let instance = instance::read(&path, &Overrides::none()).expect("shipped files are valid");
        let outcome = planner::plan(&instance, &PlanOptions::default()).expect("an answer");
        assert_eq!(outcome.status().as_str(), "optimal", "{}", instance.name);
        assert!(
            outcome.proof().gap.abs() < f64::EPSILON,
            "{}",
            instance.name
        );
        count += 1;
    }
    assert_eq!(count, 10);
}
