//! One test binary: each links HiGHS statically.
mod calibration;
mod exhaustive;
mod instance_files;
mod properties;
mod support;
mod worked_rows;
