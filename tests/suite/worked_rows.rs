//! Six rows of the paper's runs, worked by hand (in another program) from the published formulas
//! with the study's parameters.

use parlayout::axis::Axis;
use parlayout::catalog;
use parlayout::cluster::{Cluster, Efficiency};
use parlayout::cost_model::{self, CellCosts};
use parlayout::framework::Framework;
use parlayout::instance::{self, Instance, Overrides};
use parlayout::layout_argument;
use parlayout::quantity::{BytesPerSecond, Seconds};

struct Row {
    instance: &'static str,
    layout: &'static str,
    peak_bytes: f64,
    largest_parameters: f64,
    layer: f64,
    head: f64,
    transfer: f64,
    step_time: f64,
    mfu: f64,
}
