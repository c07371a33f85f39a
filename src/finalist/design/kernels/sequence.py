"""The compiled loop that spells out a rounded design pull by pull, cached on disk."""

from finalist.compiled.tiers import tiered


@tiered(error_model="numpy")
def run(lam, counts, priority, order, picks):
    """Fill `picks` with the next pulls, each of the support point with the smallest n_i / lam_i.

    Among equals the first one is pulled. The support points lie in `order` as a heap by
    `priority`, which is n_i / lam_i; both are changed in place, as are the counts.
    """
    p = len(order)
    for t in range(len(picks)):
        i = order[0]
        picks[t] = i
        counts[i] += 1
        value = counts[i] / lam[i]
        priority[i] = value
        # Sink to its place.
        hole = 0
        child = 1
        while child < p:
            k = order[child]
            if child + 1 < p:
                other = order[child + 1]
                if priority[other] < priority[k] or (priority[other] == priority[k] and other < k):
                    child += 1
                    k = other
            if priority[k] > value or (priority[k] == value and k > i):
                break
            order[hole] = k
            hole = child
            child = 2 * hole + 1
        order[hole] = i
