//! PyTorch's message that a GPU ran out of memory:
//! `torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total
//! capacity of 79.15 GiB of which 1.21 GiB is free. …`

use super::log::Log;
use super::scan::memory_after;
use crate::quantity::Bytes;

/// What all versions of the message have in common.
const MESSAGES: [&str; 2] = ["CUDA out of memory", "OutOfMemoryError"];

pub(super) fn read_line(line: &str, log: &mut Log) {
    if MESSAGES.iter().any(|message| line.contains(message)) {
        log.out_of_memory = log.out_of_memory.or(Some(None));
    }
    // The capacity may stand in the next line.
    if log.out_of_memory == Some(None)
        && let Some(capacity) = memory_after(line, "total capacity of ")
    {
        log.out_of_memory = Some(Some(Bytes::new(capacity)));
    }
}
