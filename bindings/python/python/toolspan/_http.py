"""The program's own HTTP client for requests to the model (SPEC 7.1 ``httpClient``)."""

from __future__ import annotations

import base64
import itertools
from dataclasses import dataclass, field
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, AsyncIterable, Callable, Iterable, Union

from ._host import is_async

if TYPE_CHECKING:
    from ._host import HostCall


@dataclass(slots=True)
class HttpRequest:
    """A request to send as it stands. Header names are in lower case, in the order to send."""

    method: str
    url: str
    headers: list[tuple[str, str]] = field(repr=False)
    body: bytes = field(repr=False)


@dataclass(slots=True)
class HttpResponse:
    """An answer. ``body`` is whole, or pieces as they arrive; ``close`` is called when nobody reads on."""

    status: int
    headers: Any = ()
    body: bytes | str | Iterable[bytes] | AsyncIterable[bytes] = b""
    close: Callable[[], Any] | None = None


#: A function of the request, sync or async, that gives an :class:`HttpResponse` or a response in the style of httpx or
#: requests; or an ``httpx.AsyncClient`` or ``httpx.Client`` itself.
HttpClient = Union[Callable[[HttpRequest], Any], Any]


class HttpHost:
    """Serves ``http.send``, ``http.read`` and ``http.close`` with the program's client."""

    def __init__(self, client: HttpClient) -> None:
        self._send = _httpx(client) if hasattr(client, "build_request") else client
        if not callable(self._send):
            raise TypeError("http_client is a function of one request, or an httpx client")
        self._async = is_async(getattr(client, "send", None)) or is_async(client)
        self._numbers = itertools.count(1)
        self._open: dict[int, tuple[Any, Any]] = {}

    async def serve(self, call: HostCall) -> Any:
        """One host call."""
        payload = call.payload
        if call.kind == "http.close":
            return await self.close(payload["stream"])
        if call.kind == "http.read":
            return await self._read(call, payload["stream"])
        body = payload["body"].encode()
        request = HttpRequest(payload["method"], payload["url"], [(n, v) for n, v in payload["headers"]], body)
        response = self._send(request) if self._async else await call.in_thread(lambda: self._send_now(call, request))
        if isawaitable(response):
            response = await response
        status = getattr(response, "status_code", None) or response.status
        headers = response.headers
        headers = headers.multi_items() if hasattr(headers, "multi_items") else headers
        headers = headers.items() if hasattr(headers, "items") else headers
        answer = {"status": status, "headers": [[str(n).lower(), str(v)] for n, v in headers]}
        pieces, close = _body(response)
        if isinstance(pieces, (bytes, str)):
            text = pieces if isinstance(pieces, str) else pieces.decode("utf-8", "replace")
            return {**answer, "body": text}
        number = next(self._numbers)
        self._open[number] = (pieces, close)
        return {**answer, "stream": number}

    def _send_now(self, call: HostCall, request: HttpRequest) -> Any:
        response = self._send(request)
        if call.abandoned and (close := getattr(response, "close", None)):
            close()  # nobody waited for it
        return response

    async def _read(self, call: HostCall, number: int) -> Any:
        pieces = self._open[number][0]
        try:
            if hasattr(pieces, "__anext__"):
                piece = await pieces.__anext__()
            else:
                piece = await call.in_thread(lambda: next(pieces, None))
        except StopAsyncIteration:
            piece = None
        if piece is None:
            await self.close(number)
            return {"end": True}
        return {"data": base64.b64encode(piece).decode()}

    async def close(self, number: int) -> None:
        """Nobody reads the body any more."""
        _, close = self._open.pop(number, (None, None))
        if close is not None and isawaitable(done := close()):
            await done


def _httpx(client: Any) -> Callable[[HttpRequest], Any]:
    def send(request: HttpRequest) -> Any:
        prepared = client.build_request(request.method, request.url, headers=request.headers, content=request.body)
        return client.send(prepared, stream=True)

    return send


def _body(response: Any) -> tuple[Any, Any]:
    """The body, whole or as an iterator, sync or async; and what ends it."""
    close = getattr(response, "close", None)
    if hasattr(response, "aiter_bytes") and hasattr(getattr(response, "stream", None), "__aiter__"):
        return response.aiter_bytes(), response.aclose
    if hasattr(response, "iter_bytes"):
        return response.iter_bytes(), close
    if hasattr(response, "iter_content"):
        return response.iter_content(None), close
    body = response.body if hasattr(response, "body") else response.content
    if isinstance(body, (bytes, str)):
        return body, close
    return (body.__aiter__() if hasattr(body, "__aiter__") else iter(body)), close
