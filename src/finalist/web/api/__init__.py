"""The HTTP API: everything the library does with studies, as JSON under /api/v1."""
