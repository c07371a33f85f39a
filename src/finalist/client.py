"""A server of studies, from another machine."""
