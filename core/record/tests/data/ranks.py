"""Makes ranks.json: python3 ranks.py > ranks.json (numpy 2, scipy 1.16 or newer).

Each p is scipy's: exact without ties, by every permutation with them. An interval is found by
asking scipy about shifted samples: it holds the shifts that its test does not reject at 5 %.
"""
import json

import numpy as np
from scipy import stats

rng = np.random.default_rng(20261123)
every = stats.PermutationMethod(n_resamples=np.inf)


def p_of_two(a, b, ties):
    return stats.mannwhitneyu(a, b, method=every if ties else "exact").pvalue


def p_of_pairs(d):
    return stats.wilcoxon(d, method="exact").pvalue


def interval(differences, p_at):
    """The outermost differences around which shifts are not rejected."""
    d = np.sort(differences)
    between = (d[1:] + d[:-1]) / 2
    kept = [i for i, shift in enumerate(between) if p_at(shift) > 0.05]
    return [d[kept[0]], d[kept[-1] + 1]]


def two(n, m, ties):
    drawn = rng.integers(1, 9, n + m).astype(float) if ties else rng.lognormal(0, 0.3, n + m)
    draw = drawn.round(6)
    a, b = draw[:n], (draw[n:] + (2.0 if ties else 0.1)).round(6)
    case = {"a": a.tolist(), "b": b.tolist(), "p": p_of_two(a, b, ties)}
    d = (b[:, None] - a[None, :]).ravel()
    case["value"] = float(np.median(d))
    if not ties and p_of_two(np.arange(n), np.arange(m) + n, False) <= 0.05:
        case["low"], case["high"] = interval(d, lambda shift: p_of_two(a, b - shift, False))
    return case


def pairs(n):
    d = rng.normal(0.05, 0.1, n).round(6)
    case = {"differences": d.tolist(), "p": p_of_pairs(d)}
    i, j = np.triu_indices(n)
    case["value"] = float(np.median(d))
    if 2 * 0.5**n <= 0.05:
        case["low"], case["high"] = interval((d[i] + d[j]) / 2, lambda s: p_of_pairs(d - s))
    return case


sizes = [(1, 1), (3, 3), (4, 4), (5, 8), (8, 8), (12, 9), (20, 20)]
many = {"a": rng.normal(0, 1, 50).round(6).tolist(), "b": rng.normal(0.3, 1, 40).round(6).tolist()}
many["p"] = stats.mannwhitneyu(many["a"], many["b"], method="asymptotic").pvalue
longer = rng.normal(0.05, 0.3, 70).round(6)
many_pairs = {"differences": longer.tolist(), "value": float(np.median(longer))}
many_pairs["p"] = stats.wilcoxon(longer, method="asymptotic", correction=True).pvalue
family = rng.uniform(0, 0.2, 9).round(6)
order = np.argsort(family)
adjusted = np.empty(9)
adjusted[order] = np.minimum(1, np.maximum.accumulate(family[order] * np.arange(9, 0, -1)))
print(json.dumps({
    "two": [two(n, m, False) for n, m in sizes] + [two(n, n + 1, True) for n in (4, 6, 7)],
    "pairs": [pairs(n) for n in (1, 3, 6, 8, 15, 30)],
    "many": many,
    "many_pairs": many_pairs,
    "holm": {"family": family.tolist(), "adjusted": adjusted.tolist()},
}, indent=1))
