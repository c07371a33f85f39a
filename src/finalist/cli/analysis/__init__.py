"""Commands that need no study: designs, plans, simulations, regions."""
