"""A tool-using agent: MCP servers and your own functions behind one loop, for OpenAI- and Anthropic-style endpoints.

``create_toolkit`` collects tools, ``create_client`` knows an endpoint and a model; ``client.run``, ``client.stream``
and ``client.ask`` do the work. ``toolspan.sync`` has the same names without ``await``.
"""

from typing import TYPE_CHECKING

from ._api import (
    Client,
    Conversation,
    ConversationStore,
    Stream,
    Toolkit,
    counters,
    create_client,
    create_toolkit,
    list_mcp_tools,
    version,
)
from ._engine import Engine
from ._errors import *  # noqa: F403
from ._errors import TimeoutError as TimeoutError
from ._errors import __all__ as _error_names
from ._host import Hooks, Store
from ._tools import Tool, ToolContext, tool
from ._toolspan import __version__

if TYPE_CHECKING:
    from ._http import HttpRequest, HttpResponse
    from ._models import (
        Adapted,
        ContentPart,
        Counters,
        DoneEvent,
        Event,
        Hints,
        ListedTool,
        McpTools,
        ReasoningEvent,
        RunResult,
        ServerStatus,
        TextEvent,
        ToolCall,
        ToolCallEvent,
        ToolInfo,
        ToolResult,
        ToolResultEvent,
        Usage,
        UsageEvent,
    )

__all__ = [
    "Adapted", "Client", "ContentPart", "Conversation", "ConversationStore", "Counters", "DoneEvent", "Engine", "Event",
    "Hints", "Hooks", "HttpRequest", "HttpResponse", "ListedTool", "McpTools", "ReasoningEvent", "RunResult",
    "ServerStatus", "Store", "Stream", "TextEvent", "Tool", "ToolCall", "ToolCallEvent", "ToolContext", "ToolInfo",
    "ToolResult", "ToolResultEvent", "Toolkit", "Usage", "UsageEvent", "__version__", "counters", "create_client",
    "create_toolkit", "list_mcp_tools", "tool", "version", *_error_names,
]  # fmt: skip


def __getattr__(name: str) -> object:
    # Imported when somebody asks: they cost more than the rest together.
    from importlib import import_module

    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = "._http" if name in ("HttpRequest", "HttpResponse") else "._models"
    value: object = getattr(import_module(home, __name__), name)
    globals()[name] = value
    return value
