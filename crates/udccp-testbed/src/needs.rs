//! Checks that this kernel has what a plan needs.

use crate::error::Error;
use crate::plan::Plan;
use crate::runner::{batch, in_own_space};

/// Something of the kernel: by what word lines name it, how it is tried, and what is made of it.
struct Part {
    word: &'static str,
    ip: &'static [&'static str],
    tc: &'static [&'static str],
    serves: &'static str,
}

const VETH: &str = "link add name v type veth peer name w";
const AT_FAR_END: &str = "delays that vary, reordering";
const QUEUE: &str = "that queue";

const fn queue(word: &'static str, tc: &'static [&'static str]) -> Part {
    Part { word, ip: &[VETH], tc, serves: QUEUE }
}

const PARTS: [Part; 14] = [
    Part { word: "veth", ip: &[VETH], tc: &[], serves: "links" },
    Part { word: "ifb", ip: &["link add name i type ifb"], tc: &[], serves: AT_FAR_END },
    Part {
        word: "netem",
        ip: &[VETH],
        tc: &["qdisc add dev v root netem delay 1ms"],
        serves: "delay, loss, copies, links that are down",
    },
    Part {
        word: "tbf",
        ip: &[VETH],
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
    Part {
        word: "ingress",
        ip: &[VETH],
        tc: &["qdisc add dev v handle ffff: ingress"],
        serves: AT_FAR_END,
    },
    Part {
        word: "matchall",
        ip: &[VETH],
        tc: &[
            "qdisc add dev v handle ffff: ingress",
            "filter add dev v parent ffff: protocol all matchall action pass",
        ],
        serves: AT_FAR_END,
    },
    Part {
        word: "mirred",
        ip: &[VETH],
        tc: &[
            "qdisc add dev v handle ffff: ingress",
            "filter add dev v parent ffff: protocol all matchall action mirred egress redirect \
             dev v",
        ],
        serves: AT_FAR_END,
    },
];

/// What a plan needs and the kernel at hand does not have; each as its name and what it is for.
/// All is tried in namespaces that are gone then.
///
/// # Errors
/// No namespaces, no `ip` or `tc`.
pub fn lacks(plan: &Plan) -> Result<Vec<(&'static str, &'static str)>, Error> {
    let mut lacking = Vec::new();
    for part in needed(plan) {
        let tried = in_own_space(|| {
            let lines = |all: &[&str]| all.iter().map(|&line| line.to_owned()).collect::<Vec<_>>();
            let tried = batch("ip", &lines(part.ip)).and_then(|()| batch("tc", &lines(part.tc)));
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

/// The parts whose words are in the lines of a plan.
fn needed(plan: &Plan) -> impl Iterator<Item = &'static Part> {
    let spaces = plan.namespaces.iter().flat_map(|space| space.ip.iter().chain(&space.tc));
    let steps = plan.steps.iter().flat_map(|step| &step.tc);
    let lines = plan.wires.iter().chain(spaces).chain(steps);
    let words: Vec<&str> = lines.flat_map(|line| line.split(' ')).collect();
    PARTS.iter().filter(move |part| words.contains(&part.word))
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
