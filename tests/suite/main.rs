//! One test binary: each links the solver statically.
mod instance_files;
