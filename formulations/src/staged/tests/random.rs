//! Random instances, small enough to enumerate.

use proptest::prelude::*;
use proptest::strategy::BoxedStrategy;

use super::super::recompute::memory;
use super::*;
use crate::model::Sense;

/// Largest number of layers and of stages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    pub(super) layers: i64,
    pub(super) stages: usize,
    pub(super) modes: usize,
    pub(super) groups: usize,
    pub(super) kinds: usize,
}

fn stage(layers: i64) -> impl Strategy<Value = Stage> {
    let bounds = prop_oneof![
        4 => Just((0, layers)),
        4 => Just((1, layers)),
        1 => (0..=layers, 0..=layers).prop_map(|(a, b)| (a.min(b), a.max(b))),
    ];
    (0_i64..6, 0_i64..4, 0_i64..5, 0_i64..4, bounds).prop_map(
        |(extra_time, extra_delta, fixed_memory, in_flight, (lower_layers, upper_layers))| Stage {
            extra_time,
            extra_delta,
            fixed_memory,
            in_flight,
            lower_layers,
            upper_layers,
        },
    )
}

fn mode(kinds: usize) -> impl Strategy<Value = RecomputeMode> {
    (0..kinds, 1_i64..6, 0_i64..8, 0_i64..4).prop_map(
        |(kind, extra_time, activation, workspace)| RecomputeMode {
            kind,
            extra_time,
            activation,
            workspace,
        },
    )
}

fn kind() -> impl Strategy<Value = Kind> {
    (0_i64..9, 0_i64..4, 0_i64..4, 0_i64..8).prop_map(|(time, delta, memory, activation)| Kind {
        time,
        delta,
        memory,
        activation,
    })
}

fn rule(modes: usize, size: Size, layers: i64) -> BoxedStrategy<RecomputeRule> {
    if modes == 0 || size.kinds > 1 {
        return prop_oneof![Just(RecomputeRule::None), Just(RecomputeRule::Free)].boxed();
    }
    prop_oneof![
        1 => Just(RecomputeRule::None),
        6 => Just(RecomputeRule::Free),
        1 => (0..modes, 0..=layers).prop_map(|(mode, count)| RecomputeRule::Uniform { mode, count }),
        1 => (0..modes).prop_map(|mode| RecomputeRule::AllLayers { mode }),
    ]
    .boxed()
}

/// A group whose capacity is the memory of some stage with some layers and counts, or one unit less.
fn group(layers: Layers, size: Size) -> impl Strategy<Value = Group> {
    let count = layers.count();
    let stages = prop::collection::vec(stage(count), 1..=size.stages);
    let modes = prop::collection::vec(mode(size.kinds), 0..=size.modes);
    (stages, modes).prop_flat_map(move |(stages, modes)| {
        let weights = (0_i64..5, 0_i64..3, 0_i64..3);
        let kinds = prop::collection::vec(kind(), size.kinds);
        let layers = layers.clone();
        let at = (
            0..stages.len(),
            0..=count,
            0_i64..=2,
            prop::bool::ANY,
            0..=2_i64,
        );
        let rest = (
            rule(modes.len(), size, count),
            prop::bool::weighted(0.2),
            -5_i64..5,
            0_i64..3,
        );
        (weights, kinds, at, rest).prop_map(move |(weights, kinds, at, rest)| {
            let mut group = Group {
                values: Vec::new(),
                stages: stages.clone().into(),
                weights: Weights {
                    slowest: weights.0,
                    total: weights.1,
                    delta: weights.2,
                },
                constant: rest.2,
                kinds,
                modes: modes.clone(),
                recompute: rest.0,
                partition: if rest.1 {
                    Partition::EqualMiddle
                } else {
                    Partition::Free
                },
                capacity: 0,
                rank: rest.3,
            };
            let mut counts = [0; MAX_MODES];
            if !group.modes.is_empty() {
                counts[at.4 as usize % group.modes.len()] = at.2.min(at.1);
            }
            let attained = memory(
                &group,
                &group.stages[at.0],
                &layers.between(0, at.1 as usize),
                &counts,
            );
            group.capacity = attained - i64::from(at.3);
            group
        })
    })
}

fn side_row(groups: usize, recomputed: bool) -> impl Strategy<Value = SideRow> {
    let index = (prop::bool::ANY, 0_usize..3).prop_map(|(first, index)| {
        if first {
            StageIndex::FromFirst(index)
        } else {
            StageIndex::FromLast(index)
        }
    });
    let term = (index, -2_i64..3).prop_map(|(stage, coefficient)| StageTerm { stage, coefficient });
    let sense = prop_oneof![
        Just(Sense::AtMost),
        Just(Sense::Equal),
        Just(Sense::AtLeast)
    ];
    let own = prop::collection::vec(-1_i64..2, groups);
    let terms = prop::collection::vec(term, 0..3);
    (own, terms, sense, 0_i64..4, 0_i64..2).prop_map(
        move |(groups, layers, sense, right, count)| SideRow {
            name: "row".into(),
            groups,
            layers,
            recomputed: if recomputed && sense == Sense::AtMost {
                count
            } else {
                0
            },
            sense,
            right,
        },
    )
}

/// Without side rows.
pub(super) fn data(size: Size) -> impl Strategy<Value = Data> {
    prop::collection::vec(0..size.kinds, 1..=size.layers as usize).prop_flat_map(move |kinds| {
        let layers = Layers::of_kinds(kinds);
        prop::collection::vec(group(layers.clone(), size), 1..=size.groups).prop_map(
            move |groups| Data {
                layers: layers.clone(),
                groups,
                ..Data::default()
            },
        )
    })
}

/// With one or two side rows.
pub(super) fn data_with_rows(size: Size) -> impl Strategy<Value = Data> {
    data(size).prop_flat_map(move |data| {
        let rows = prop::collection::vec(side_row(data.groups.len(), size.modes <= 1), 1..3);
        rows.prop_map(move |side_rows| Data {
            side_rows,
            ..data.clone()
        })
    })
}

/// Numbers as large as they come, too many plans to enumerate.
pub(super) fn large_data() -> impl Strategy<Value = Data> {
    let size = (8_i64..40, 2_usize..9);
    let costs = (
        20_000_i64..60_000,
        1_000_i64..5_000,
        50_i64..900,
        300_i64..900,
    );
    let modes = prop::collection::vec((2_000_i64..20_000, 10_i64..400, 0_i64..900), 0..3);
    let weights = (0_i64..2_000, 1_i64..4, 0_i64..3);
    let ends = (0_i64..90_000, 0_i64..90_000, 0_i64..4_000);
    (
        size,
        costs,
        modes,
        weights,
        ends,
        1_i64..5,
        prop::collection::vec(1_i64..1_000, 3),
    )
        .prop_map(
            |((layers, stages), costs, modes, weights, ends, squeeze, shift)| {
                let groups = shift.iter().map(|shift| {
                    let count = stages as i64;
                    let stage = |index: i64| Stage {
                        extra_time: 900
                            + if index == 0 { ends.0 } else { 0 }
                            + if index == count - 1 {
                                ends.1 + shift
                            } else {
                                0
                            },
                        extra_delta: if index == 0 { ends.2 } else { 0 },
                        fixed_memory: 2_000,
                        in_flight: count - index,
                        lower_layers: 1,
                        upper_layers: layers,
                    };
                    let even = layers / count + 1;
                    Group {
                        values: Vec::new(),
                        stages: (0..count).map(stage).collect(),
                        weights: Weights {
                            slowest: weights.0,
                            total: weights.1,
                            delta: weights.2,
                        },
                        constant: 0,
                        kinds: vec![Kind {
                            time: costs.0 + shift,
                            delta: costs.1 - shift,
                            memory: costs.2,
                            activation: costs.3,
                        }],
                        modes: (modes.iter())
                            .map(|mode| RecomputeMode {
                                kind: 0,
                                extra_time: mode.0,
                                activation: mode.1,
                                workspace: mode.2,
                            })
                            .collect(),
                        recompute: RecomputeRule::Free,
                        partition: Partition::Free,
                        capacity: 2_000 + even * (costs.2 + costs.3 * (1 + count * squeeze / 5)),
                        rank: 0,
                    }
                });
                Data {
                    layers: Layers::alike(layers),
                    groups: groups.collect(),
                    ..Data::default()
                }
            },
        )
}
