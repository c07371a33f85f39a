"""The run-time type checker of the tests: an int may stand where a float is expected."""

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
