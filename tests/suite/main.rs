//! One test binary: each links HiGHS statically.
#![expect(clippy::print_stderr, reason = "a skipped test says so")]

mod allocated;
mod backtest;
mod batch;
mod calibration;
mod catalog_order;
mod checks;
mod cli;
mod constraints;
mod exhaustive;
mod explanations;
mod exports;
mod fuzz;
mod instance_files;
mod instances;
mod interleaving;
mod leave_out;
mod limits;
mod logs;
mod measured;
mod objectives;
mod pages;
mod prices;
mod properties;
mod readme;
mod resolved;
mod runs;
mod schemas;
mod staged;
mod structure;
mod support;
mod verify;
mod worked_rows;
