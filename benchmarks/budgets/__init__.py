"""How often the arm that is named after a fixed budget is wrong, strategy by strategy."""
