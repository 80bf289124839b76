//! Checks that this kernel supports what a plan needs.

use udccp_netns::{CableEnd, Tables};

use crate::error::Error;
use crate::plan::Plan;
use crate::runner::{batch, in_own_space};

/// A kernel feature: the word for it in `tc` lines, how to test for it, and what it is used for.
struct Feature {
    word: &'static str,
    link: Link,
    tc: &'static [&'static str],
    serves: &'static str,
}

/// A device for the test.
#[derive(Clone, Copy)]
enum Link {
    /// A cable between `v` and `w`.
    Cable,
    /// An intermediate functional block.
    Ifb,
}

const AT_FAR_END: &str = "delays that vary, reordering";
const QUEUE: &str = "that queue";

const fn queue(word: &'static str, tc: &'static [&'static str]) -> Feature {
    Feature { word, link: Link::Cable, tc, serves: QUEUE }
}

const PARTS: [Feature; 14] = [
    Feature { word: "veth", link: Link::Cable, tc: &[], serves: "links" },
    Feature { word: "ifb", link: Link::Ifb, tc: &[], serves: AT_FAR_END },
    Feature {
        word: "netem",
        link: Link::Cable,
        tc: &["qdisc add dev v root netem delay 1ms"],
        serves: "delay, loss, copies, links that are down",
    },
    Feature {
        word: "tbf",
        link: Link::Cable,
        tc: &["qdisc add dev v root tbf rate 1mbit burst 2000 limit 9000"],
        serves: "rates",
    },
    queue("pfifo", &["qdisc add dev v root pfifo limit 9"]),
    queue("bfifo", &["qdisc add dev v root bfifo limit 9000"]),
    queue("pfifo_head_drop", &["qdisc add dev v root pfifo_head_drop limit 9"]),
    queue(
        "red",
        &["qdisc add dev v root red limit 60000 min 5000 max 15000 avpkt 1000 burst 20 \
           bandwidth 10mbit"],
    ),
    queue("codel", &["qdisc add dev v root codel limit 9"]),
    queue("fq_codel", &["qdisc add dev v root fq_codel limit 9"]),
    queue("pie", &["qdisc add dev v root pie limit 9"]),
    Feature {
        word: "ingress",
        link: Link::Cable,
        tc: &["qdisc add dev v handle ffff: ingress"],
        serves: AT_FAR_END,
    },
    Feature {
        word: "matchall",
        link: Link::Cable,
        tc: &[
            "qdisc add dev v handle ffff: ingress",
            "filter add dev v parent ffff: protocol all matchall action pass",
        ],
        serves: AT_FAR_END,
    },
    Feature {
        word: "mirred",
        link: Link::Cable,
        tc: &[
            "qdisc add dev v handle ffff: ingress",
            "filter add dev v parent ffff: protocol all matchall action mirred egress redirect \
             dev v",
        ],
        serves: AT_FAR_END,
    },
];

/// What a plan needs and this kernel lacks, each with its name and use. The tests run in temporary
/// namespaces.
///
/// # Errors
/// Namespaces or `tc` are not available.
pub fn missing_features(plan: &Plan) -> Result<Vec<(&'static str, &'static str)>, Error> {
    let mut lacking = Vec::new();
    for part in needed(plan) {
        let tried = in_own_space(|| {
            let lines = |all: &[&str]| all.iter().map(|&line| line.to_owned()).collect::<Vec<_>>();
            let tried = create_link(part.link).and_then(|()| batch(&lines(part.tc)));
            match tried {
                Ok(()) => Ok(true),
                Err(Error::Kernel(_)) => Ok(false),
                Err(other) => Err(other),
            }
        });
        if !tried? {
            lacking.push((part.word, part.serves));
        }
    }
    Ok(lacking)
}

fn create_link(link: Link) -> Result<(), Error> {
    let end = |name| CableEnd { name, ..CableEnd::default() };
    let tables = Tables::open()?;
    Ok(match link {
        Link::Cable => tables.add_cable(&end("v"), &end("w")),
        Link::Ifb => tables.add_ifb(&end("i")),
    }?)
}

/// The parts whose words occur in the plan's lines.
fn needed(plan: &Plan) -> impl Iterator<Item = &'static Feature> {
    let spaces = plan.namespaces.iter().flat_map(|space| &space.tc);
    let steps = plan.steps.iter().flat_map(|step| &step.tc);
    let wires: Vec<String> = plan.wires.iter().map(ToString::to_string).collect();
    let lines = wires.iter().chain(spaces).chain(steps);
    let words: Vec<String> = lines.flat_map(|line| line.split(' ')).map(str::to_owned).collect();
    PARTS.iter().filter(move |part| words.iter().any(|word| word == part.word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trial_needs_what_it_tries() {
        let words: Vec<&str> = needed(&Plan::trial()).map(|part| part.word).collect();
        let queues = ["pfifo", "pfifo_head_drop", "red", "codel", "fq_codel", "pie"];
        assert_eq!(words, [&["veth", "netem", "tbf"][..], &queues].concat());
    }
}
