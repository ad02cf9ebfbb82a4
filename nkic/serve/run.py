"""Runs the service until it is told to end; then it finishes or returns what it holds."""

from __future__ import annotations

import signal
import socket

import uvicorn

from nkic.serve.app import Service


class _Server(uvicorn.Server):
    """A server that tells its service to end before it waits for open requests."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._service.work.stop()
        await super().shutdown(sockets)


def run(service: Service, host: str, port: int) -> None:
    """Serve until SIGINT or SIGTERM."""
    config = uvicorn.Config(
        service.app,
        host=host,
        port=port,
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=round(service.limits.grace) + 5,
        h11_max_incomplete_event_size=64 << 10,
        http="h11",
    )
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)  # the server raises them again when it has ended
    _Server(config, service).run()
