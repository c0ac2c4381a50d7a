//! Which rank does what, on which node.

use maud::{Markup, html};

use super::super::number::grouped;
use super::{Choice, span, table};
use crate::layout::Combination;

/// Stages, and nodes of a stage, that are drawn.
const STAGES: u64 = 2;
const NODES: u64 = 2;
/// GPUs of a node up to which they are drawn.
const MOST_GPUS: u64 = 144;

pub(super) fn section(choice: &Choice) -> Markup {
    let cluster = choice.page.cluster;
    let place = Place {
        one: choice.document.combination,
        node: u64::from(cluster.gpus_per_node).max(1),
        domain: u64::from(cluster.domain()).max(1),
        gpus: u64::from(cluster.gpus),
    };
    let figure = html! {
        (table(&["group", "ranks of the first one", "where they talk"], &place.groups()))
        (place.picture())
        p.small { "Ranks are numbered as torchrun and Slurm number them where each node's GPUs follow one another: \
                   first along tensor parallelism, then context, data and pipeline parallelism, which is the order of \
                   Megatron-LM (tp-cp-ep-dp-pp) and torchtitan." }
    };
    super::section(
        "Where each GPU sits",
        "GPUs that talk most have to sit closest. The table lists the groups that talk, the picture shows the first \
         nodes: each box is a GPU with its rank and its place in every group; colours tell copies of the network apart.",
        &figure,
    )
}

struct Place {
    one: Combination,
    node: u64,
    domain: u64,
    gpus: u64,
}

/// Ranks of a group, at equal distances.
struct Group {
    name: &'static str,
    ranks: u64,
    distance: u64,
}

impl Place {
    fn groups(&self) -> Vec<Vec<String>> {
        let one = &self.one;
        let [tensor, context, data, stages] = [
            one.tensor_parallel,
            one.context_parallel,
            one.data_parallel,
            one.pipeline_parallel,
        ]
        .map(u64::from);
        let [expert, each] = [one.expert_parallel, one.expert_tensor_parallel].map(u64::from);
        let group = |name, ranks, distance| Group {
            name,
            ranks,
            distance,
        };
        let groups = [
            group("tensor parallel (TP)", tensor, 1),
            group("context parallel (CP)", context, tensor),
            group("expert tensor parallel (ETP)", each, 1),
            group("expert parallel (EP)", expert, each),
            group("data parallel (DP)", data, tensor * context),
            group("pipeline parallel (PP)", stages, one.stage_ranks()),
        ];
        let groups = groups.into_iter().filter(|group| group.ranks > 1);
        groups.map(|group| self.row(&group)).collect()
    }

    fn row(&self, group: &Group) -> Vec<String> {
        let reach = (group.ranks - 1) * group.distance;
        let ranks = if group.distance == 1 {
            span(0, reach)
        } else {
            format!(
                "0, {}, \u{2026}, {}",
                grouped(group.distance),
                grouped(reach)
            )
        };
        let ranks = match group.ranks {
            2 => format!("0 and {}", grouped(reach)),
            _ => ranks,
        };
        let apart = (reach + 1).div_ceil(self.node);
        let nodes = apart.min(group.ranks);
        let place = if reach < self.node {
            "within a node".to_owned()
        } else if reach < self.domain {
            format!("within an NVLink domain, {} nodes", grouped(apart))
        } else if group.distance >= self.node {
            format!("on {} nodes, over the network between them", grouped(nodes))
        } else {
            format!(
                "on {} nodes, partly over the network between them",
                grouped(apart)
            )
        };
        vec![
            format!("{}: {}", group.name, grouped(group.ranks)),
            ranks,
            place,
        ]
    }

    fn picture(&self) -> Markup {
        let ranks = self.one.stage_ranks();
        let stages = u64::from(self.one.pipeline_parallel);
        if self.node > MOST_GPUS {
            return html! {};
        }
        // Stages that share a node are drawn with it.
        let own = ranks.max(self.node);
        let drawn = (self.gpus / own.max(1)).clamp(1, STAGES);
        html! {
            @for part in 0..drawn { (self.part(part * own, own)) }
            @let left = self.gpus.saturating_sub(drawn * own);
            @if left > 0 {
                p.small { (format!(
                    "\u{2026} and likewise up to stage {}, on ranks {} \u{2026}",
                    stages - 1, span(drawn * own, self.gpus - 1)
                )) }
            }
        }
    }

    /// The nodes of one stage, or of the stages on one node.
    fn part(&self, first: u64, ranks: u64) -> Markup {
        let each = self.one.stage_ranks();
        let last = (first + ranks - 1).min(self.gpus - 1);
        let stages = span(first / each, last / each);
        let stage = if first / each == last / each {
            "Stage"
        } else {
            "Stages"
        };
        let nodes = (first / self.node, last / self.node);
        let word = if nodes.0 == nodes.1 { "node" } else { "nodes" };
        let drawn = (nodes.1 - nodes.0 + 1).min(NODES);
        html! {
            div.domain {
                b { (format!("{stage} {stages}: ranks {}, {word} {}", span(first, last), span(nodes.0, nodes.1))) }
                @for node in nodes.0..nodes.0 + drawn {
                    div.small { (self.name(node)) }
                    div.node {
                        @for rank in node * self.node..((node + 1) * self.node).min(self.gpus) { (self.gpu(rank)) }
                    }
                }
                @if nodes.1 - nodes.0 + 1 > drawn {
                    div.small { (format!(
                        "\u{2026} likewise {}", match nodes.1 - nodes.0 + 1 - drawn { 1 => "one more node".to_owned(), more => format!("{} more nodes", grouped(more)) }
                    )) }
                }
            }
        }
    }

    fn name(&self, node: u64) -> String {
        if self.domain > self.node {
            let domain = node * self.node / self.domain;
            return format!("node {}, NVLink domain {}", grouped(node), grouped(domain));
        }
        format!("node {}", grouped(node))
    }

    fn gpu(&self, rank: u64) -> Markup {
        let one = &self.one;
        let [tensor, context, data] =
            [one.tensor_parallel, one.context_parallel, one.data_parallel].map(u64::from);
        let copy = rank / (tensor * context) % data;
        // A place does not break between its two words.
        let place = |name: &str, at: u64| format!("{name}\u{a0}{at}");
        let mut places = vec![place("TP", rank % tensor)];
        if context > 1 {
            places.push(place("CP", rank / tensor % context));
        }
        places.push(place("DP", copy));
        if one.expert_parallel > 1 {
            let each = u64::from(one.expert_tensor_parallel);
            let at = rank % one.stage_ranks() / each % u64::from(one.expert_parallel);
            places.push(place("EP", at));
        }
        // Elsewhere the heading says the stage.
        if one.stage_ranks() < self.node && one.pipeline_parallel > 1 {
            places.push(place("PP", rank / one.stage_ranks()));
        }
        let class = if copy.is_multiple_of(2) {
            "gpu even"
        } else {
            "gpu odd"
        };
        html! { div class=(class) { b { (grouped(rank)) } (places.join(" ")) } }
    }
}
