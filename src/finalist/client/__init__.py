"""Studies on another machine, over HTTP."""

from finalist.client.study import RemoteStudy, Server, connect

__all__ = ["RemoteStudy", "Server", "connect"]
