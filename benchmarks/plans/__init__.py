"""Do plans come true? See `benchmarks.plans.__main__`."""
