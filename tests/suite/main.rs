//! One test binary: each links HiGHS statically.
mod instance_files;
