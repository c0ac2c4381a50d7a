//! Finds the fastest parallel layout for training a large language model, proves it optimal,
//! and explains it.

pub mod axis;
pub mod catalog;
pub mod change;
mod choice;
pub mod constraint;
pub mod cost_model;
pub mod explain;
pub mod export;
pub mod figures;
pub mod instance;
pub mod job;
pub mod laboratory;
pub mod layout;
pub mod layout_argument;
pub mod layout_space;
pub mod plan;
pub mod planner;
pub mod price;
pub mod quantity;
mod reading;
pub mod report;
pub mod rules;
pub mod space;
pub mod transformer;
pub mod verify;
pub mod workload;

pub use figures::{cluster, framework};
