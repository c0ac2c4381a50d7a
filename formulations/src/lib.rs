//! Mixed-integer programs.
