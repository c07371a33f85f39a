"""What the rewards say: sums, least squares, intervals and bounds."""
