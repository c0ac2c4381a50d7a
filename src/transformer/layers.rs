//! Layers by kind, and the order of the kinds.

/// A part of a layer with an input norm and a residual connection of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Block {
    /// Attention with its projections.
    Attention,
    /// The dense feed-forward network.
    FeedForward,
    /// Router and experts in its place.
    Experts,
}

/// A kind of layer: the blocks that it passes through, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerKind {
    /// Its blocks.
    pub blocks: &'static [Block],
}

impl LayerKind {
    /// Attention, then a dense feed-forward network.
    pub const DENSE: Self = Self {
        blocks: &[Block::Attention, Block::FeedForward],
    };
    /// Attention, then router and experts.
    pub const EXPERTS: Self = Self {
        blocks: &[Block::Attention, Block::Experts],
    };

    /// Whether it has routed experts.
    #[must_use]
    pub const fn has_experts(self) -> bool {
        matches!(self.blocks, [_, Block::Experts])
    }
}

/// Which layers are of the second of two kinds: the leading ones, and of the rest all but every so
/// many-th.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerOrder {
    /// Leading layers of the second kind.
    pub leading: u32,
    /// After those, layers from one of the first kind to the next.
    pub interval: u32,
}

impl LayerOrder {
    /// All layers are of the first kind.
    pub const ALIKE: Self = Self {
        leading: 0,
        interval: 1,
    };

    /// Layers of the second kind before position `end`.
    #[must_use]
    pub const fn others_before(self, end: u32) -> u32 {
        if end <= self.leading {
            return end;
        }
        let rest = end - self.leading;
        self.leading + rest - rest / self.interval
    }

    /// Layers of the second kind from position `start` up to before `end`.
    #[must_use]
    pub const fn others_between(self, start: u32, end: u32) -> u32 {
        self.others_before(end) - self.others_before(start)
    }

    /// Whether layer `position` is of the second kind.
    #[must_use]
    pub const fn is_other(self, position: u32) -> bool {
        self.others_between(position, position + 1) > 0
    }
}
