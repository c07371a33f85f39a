"""Commands for researchers: the paper, the benchmark, demonstrations."""
