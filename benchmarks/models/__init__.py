"""How often a bent truth deceives a study that assumes straight lines."""
