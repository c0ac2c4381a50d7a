//! One test binary: each links HiGHS statically.
mod backtest;
mod calibration;
mod certificates;
mod cli;
mod constraints;
mod exhaustive;
mod instance_files;
mod instances;
mod measured;
mod objectives;
mod prices;
mod properties;
mod readme;
mod staged;
mod support;
mod worked_rows;
