"""Commands for a study: start it, measure, look at it, change it."""
