//! Attention: its widths, its matrices, and how far it sees.

use super::{QueryKeyNorms, Transformer};

/// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1). Fields are keys of `[model]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatentAttention {
    /// Rank of the queries' projection, `r_q`; 0 where they are projected at once.
    pub query_rank: u64,
    /// Rank of the keys' and values' projection, `r_k`.
    pub key_value_rank: u64,
    /// Width of a head's part that is not rotated, `d_n`.
    pub unrotated_width: u64,
    /// Width of its rotated part, which all heads' keys share, `d_r`.
    pub rotated_width: u64,
    /// Width of a head's values, `d_v`.
    pub value_width: u64,
}

/// Attention to the last tokens only, in some layers or all. Fields are keys of `[model]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Windows {
    /// Tokens that a token attends to, itself among them, `w`.
    pub window: u64,
    /// Every so many-th layer sees the whole sequence; 0: none does.
    pub window_interval: u32,
}

impl Transformer {
    /// Width of all heads together: `h`, unless the head width is set apart.
    #[must_use]
    pub const fn attention_width(&self) -> u64 {
        self.heads * self.head_width
    }

    /// Width over which a query and a key of all heads are multiplied: `a d`, latent `a (d_n + d_r)`.
    #[must_use]
    pub const fn score_width(&self) -> u64 {
        self.attention_width()
    }

    /// Width of the values of all heads, and of what attention puts out: `a d`, latent `a d_v`.
    #[must_use]
    pub const fn value_width_all(&self) -> u64 {
        match self.latent_attention {
            None => self.attention_width(),
            Some(latent) => self.heads * latent.value_width,
        }
    }

    /// Width of keys and values together, as attention reads them: `2 k d`, latent and projected up
    /// `a (d_n + d_r + d_v)`.
    #[must_use]
    pub const fn keys_and_values_width(&self) -> u64 {
        match self.latent_attention {
            None => 2 * self.key_value_heads * self.head_width,
            Some(_) => self.score_width() + self.value_width_all(),
        }
    }

    /// Width of all key (or value) heads together: half of both.
    #[must_use]
    pub const fn key_value_width(&self) -> u64 {
        self.keys_and_values_width() / 2
    }

    /// Mean over the layers of what stands for the length of the sequence in the FLOP of causal attention:
    /// `s`, in a layer of windows `2 w - w^2 / s`, so that half of it is the mean of tokens attended to.
    #[must_use]
    pub fn attended(&self, sequence_length: u64) -> f64 {
        let whole = sequence_length as f64;
        let Some(windows) = self.windows.filter(|it| it.window < sequence_length) else {
            return whole;
        };
        let full = self.layers.checked_div(windows.window_interval);
        let share = f64::from(full.unwrap_or(0)) / f64::from(self.layers);
        let window = windows.window as f64;
        share * whole + (1.0 - share) * (2.0 * window - window * window / whole)
    }

    /// Weights of the attention matrices of one layer: `2 h^2 (1 + kv_heads / a)`, that is
    /// `4 h^2` without grouped queries.
    #[must_use]
    pub const fn attention_weights(&self) -> u64 {
        self.attention_weights_split() + self.attention_weights_duplicated()
    }

    /// Those that tensor parallelism splits among ranks: `2 h (a + k) d`; latent those with an output or
    /// input for each head, `r_q a (d_n + d_r)` (`h` for `r_q` at once), `r_k a (d_n + d_v)` and `a d_v h`.
    #[must_use]
    pub const fn attention_weights_split(&self) -> u64 {
        let Some(latent) = self.latent_attention else {
            return 2 * self.hidden * (self.attention_width() + self.key_value_width());
        };
        let queries = match latent.query_rank {
            0 => self.hidden,
            rank => rank,
        };
        queries * self.score_width()
            + latent.key_value_rank * self.heads * (latent.unrotated_width + latent.value_width)
            + self.value_width_all() * self.hidden
    }

    /// Those that every tensor-parallel rank has: none; latent the projections down, `h (r_q + r_k + d_r)`
    /// (Megatron-LM, `core/transformer/multi_latent_attention.py`).
    #[must_use]
    pub const fn attention_weights_duplicated(&self) -> u64 {
        self.hidden * self.latent_width()
    }

    /// Width of what is projected down: `r_q + r_k + d_r`; 0 where attention is not latent.
    #[must_use]
    pub const fn latent_width(&self) -> u64 {
        match self.latent_attention {
            None => 0,
            Some(latent) => latent.query_rank + latent.key_value_rank + latent.rotated_width,
        }
    }

    /// Biases of queries, keys and values of one layer; latent those of the projections down.
    #[must_use]
    pub const fn query_key_value_biases(&self) -> u64 {
        let width = match self.latent_attention {
            None => self.attention_width() + self.keys_and_values_width(),
            Some(_) => self.latent_width(),
        };
        self.biases.of_query_key_value() as u64 * width
    }

    /// Biases of the attention's output of one layer.
    #[must_use]
    pub const fn attention_output_biases(&self) -> u64 {
        self.biases.of_attention_output() as u64 * self.hidden
    }

    /// Parameters of the norms of queries and keys of one layer, latent of their low ranks.
    #[must_use]
    pub const fn query_key_norm_parameters(&self) -> u64 {
        let of_ranks = match self.latent_attention {
            None => 0,
            Some(latent) => latent.query_rank + latent.key_value_rank,
        };
        of_ranks
            + match self.small_parts.query_key_norms {
                QueryKeyNorms::None => 0,
                QueryKeyNorms::Head => 2 * self.head_width,
                QueryKeyNorms::HeadWithBias => 4 * self.head_width,
                QueryKeyNorms::Full => self.attention_width() + self.key_value_width(),
            }
    }

    /// Learned numbers of one layer that join the softmax of its heads.
    #[must_use]
    pub const fn attention_sink_parameters(&self) -> u64 {
        self.small_parts.attention_sinks * self.heads
    }

    /// All parameters of one layer's attention.
    pub(super) const fn attention_parameters(&self) -> u64 {
        self.attention_weights()
            + self.query_key_value_biases()
            + self.attention_output_biases()
            + self.query_key_norm_parameters()
            + self.attention_sink_parameters()
    }
}
