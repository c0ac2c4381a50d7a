//! One file per framework.

mod accelerate;
mod axolotl;
mod deepspeed;
mod fsdp;
mod gpt_neox;
mod llama_factory;
mod maxtext;
mod megatron;
mod megatron_bridge;
mod megatron_deepspeed;
pub(crate) mod megatron_lm;
mod ms_swift;
mod nanotron;
mod torchtitan;

use super::dialect::Dialect;

/// Every framework, in the order in which a file is tried: keys of a later one may stand in the files of an
/// earlier one.
pub const ALL: &[&Dialect] = &[
    &torchtitan::DIALECT,
    &megatron_bridge::DIALECT,
    &nanotron::DIALECT,
    &gpt_neox::DIALECT,
    &deepspeed::DIALECT,
    &accelerate::DIALECT,
    &axolotl::DIALECT,
    &llama_factory::DIALECT,
    &maxtext::DIALECT,
    &megatron_deepspeed::DIALECT,
    &ms_swift::DIALECT,
    &megatron_lm::DIALECT,
];

/// The framework of this name.
#[must_use]
pub fn named(name: &str) -> Option<&'static Dialect> {
    ALL.iter().copied().find(|dialect| dialect.name == name)
}
