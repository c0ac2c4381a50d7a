//! One test binary: each links HiGHS statically.
mod certificates;
mod exhaustive;
mod instance_files;
mod properties;
mod support;
