//! Finds the fastest parallel layout for training a large language model.
