//! One test binary: each links HiGHS statically.
mod calibration;
mod cli;
mod constraints;
mod exhaustive;
mod explanations;
mod instance_files;
mod instances;
mod measured;
mod properties;
mod readme;
mod staged;
mod support;
