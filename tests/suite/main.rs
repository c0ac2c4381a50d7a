//! One test binary: each links HiGHS statically.
mod calibration;
mod cli;
mod constraints;
mod exhaustive;
mod instance_files;
mod instances;
mod logs;
mod measured;
mod objectives;
mod prices;
mod properties;
mod readme;
mod staged;
mod support;
mod worked_rows;
