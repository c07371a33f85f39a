"""Every picture, as an Altair chart: designs, gaps, evidence, and the plane of a problem in R^2.

A function takes names and numbers and returns a chart that a notebook shows and `save`
writes to a file. The plane is Figure 1 of Soare 2014 for any arms with two features.
"""

from finalist.charts.bars import designs_chart, gaps_chart, weights_chart
from finalist.charts.evidence import evidence_chart
from finalist.charts.plane import design_plane_chart, fits_plane, plane_chart
from finalist.charts.theme import save
from finalist.extras import EXTRAS, need

need("Charts", *EXTRAS["charts"])

__all__ = [
    "design_plane_chart",
    "designs_chart",
    "evidence_chart",
    "fits_plane",
    "gaps_chart",
    "plane_chart",
    "save",
    "weights_chart",
]
