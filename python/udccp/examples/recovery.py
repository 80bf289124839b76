"""Measures how a protocol came through a flood of UDP."""

from statistics import mean

#: A flood is UDP at more than this part of the most that it reached.
FLOODED = 0.5

#: A protocol has recovered when it has this part of the rate that it had before.
RECOVERED = 0.8


def recovery(samples: list[dict[str, float]]) -> list[str]:
    """What each protocol had before, during and after a flood, as one line of text each.

    Parameters
    ----------
    samples
        Rates in Mbit/s by protocol, a sample for each second.

    Examples
    --------
    >>> before, during = {"dccp": 80.0, "udp": 0.0}, {"dccp": 1.0, "udp": 95.0}
    >>> after = [{"dccp": rate, "udp": 0.0} for rate in (10.0, 70.0, 80.0)]
    >>> recovery([before] * 5 + [during] * 5 + after)
    ['dccp: 80.0 Mbit/s before the flood, 1.0 during, 80 % of it again after 2 s']
    """
    most = max((sample.get("udp", 0.0) for sample in samples), default=0.0)
    flooded = [n for n, sample in enumerate(samples) if sample.get("udp", 0.0) > FLOODED * most]
    if not flooded or most < 1.0:
        return []
    # The first and last second of a flood are only partly flooded.
    first, last = max(flooded[0] - 1, 0), flooded[-1] + 1
    lines: list[str] = []
    for name in (name for name in samples[0] if name != "udp"):
        before = [s[name] for s in samples[:first] if s[name] > 0.0]
        if not before:
            continue
        # Its last five seconds, when it has long been running.
        rate = mean(before[-5:])
        during = mean(sample[name] for sample in samples[flooded[0] : last])
        after = [sample[name] for sample in samples[last:]]
        again = [n for n, now in enumerate(after, 1) if now >= RECOVERED * rate]
        end = f"{RECOVERED:.0%}".replace("%", " %")
        if again:
            end += f" of it again after {again[0]} s"
        else:
            end = f"not {end} of it again in {len(after)} s"
        lines.append(f"{name}: {rate:.1f} Mbit/s before the flood, {during:.1f} during, {end}")
    return lines
