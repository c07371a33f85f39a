"""What a run found of its model, in words."""

from finalist.strategies.abilities import ModelFindings


def about(chance: float) -> str:
    """Say how large a small probability is.

    Examples
    --------
    >>> about(0.0231), about(0.001), about(0.999)
    ('about 2 %', 'below 1 %', 'above 99 %')
    """
    if chance < 0.005:
        return "below 1 %"
    return "above 99 %" if chance > 0.99 else f"about {100.0 * chance:.0f} %"


def accepted(limit: float) -> str:
    """Say how large a chance of a hidden bend was accepted beforehand.

    Examples
    --------
    >>> accepted(0.03), accepted(0.002)
    ('at most 3 % is accepted', 'at most 0.2 % is accepted')
    """
    return f"at most {100.0 * limit:.3g} % is accepted"


def looked_for(found: ModelFindings) -> str:
    """Say what was looked for."""
    return f"{found.sought[0].upper()}{found.sought[1:]} were looked for"
