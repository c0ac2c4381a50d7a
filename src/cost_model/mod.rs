//! The cost model: memory and step time of one layout. Pure functions, no input or output.

pub mod prediction;
