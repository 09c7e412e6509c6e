// The closed list of error codes (SPEC 8), one class each.
import { ToolspanError } from "./index.js";

/** What went wrong. The list is closed and equal in every language. */
export type ErrorCode =
  | "invalid_argument"
  | "invalid_config"
  | "not_found"
  | "cancelled"
  | "timeout"
  | "closed"
  | "forked"
  | "required_server_failed"
  | "connection_failed"
  | "process_failed"
  | "unauthorized"
  | "provider_rejected"
  | "rate_limited"
  | "provider_unavailable"
  | "invalid_response"
  | "stream_interrupted"
  | "limit_exceeded"
  | "mcp_error"
  | "host_failed"
  | "store_failed"
  | "store_conflict"
  | "unsupported"
  | "abi_mismatch"
  | "internal"
  | "internal_panic";

/** An argument of a call is missing, unknown or of the wrong shape; `path` names it. */
export class InvalidArgumentError extends ToolspanError {
  readonly code: "invalid_argument";
}

/** A configuration or an option is wrong; `path` names it. */
export class InvalidConfigError extends ToolspanError {
  readonly code: "invalid_config";
}

/** A toolkit, client, stream, file or server of that name or number does not exist. */
export class NotFoundError extends ToolspanError {
  readonly code: "not_found";
}

/** The caller cancelled. */
export class CancelledError extends ToolspanError {
  readonly code: "cancelled";
}

/** A deadline or a budget of time ran out. */
export class TimeoutError extends ToolspanError {
  readonly code: "timeout";
}

/** The toolkit, client or engine was closed. */
export class ClosedError extends ToolspanError {
  readonly code: "closed";
}

/** The process was forked after the engine started; create a new engine in the child. */
export class ForkedError extends ToolspanError {
  readonly code: "forked";
}

/** An MCP server marked `required` could not be used; `server` names it, the cause says why. */
export class RequiredServerFailedError extends ToolspanError {
  readonly code: "required_server_failed";
}

/** A peer could not be reached, or closed the connection before it answered. */
export class ConnectionFailedError extends ToolspanError {
  readonly code: "connection_failed";
}

/** A child process could not be started, or ended. */
export class ProcessFailedError extends ToolspanError {
  readonly code: "process_failed";
}

/** A peer wants other credentials (HTTP 401 or 403). */
export class UnauthorizedError extends ToolspanError {
  readonly code: "unauthorized";
}

/** The provider refused the request (another HTTP 4xx, or an error event that says so). */
export class ProviderRejectedError extends ToolspanError {
  readonly code: "provider_rejected";
}

/** The provider asks to wait longer than allowed, or retries ran out on HTTP 429; see `retryAfterMs`. */
export class RateLimitedError extends ToolspanError {
  readonly code: "rate_limited";
}

/** The provider failed or is overloaded (HTTP 5xx, or an error event that says so) and retries ran out. */
export class ProviderUnavailableError extends ToolspanError {
  readonly code: "provider_unavailable";
}

/** An answer is not what the protocol promises. */
export class InvalidResponseError extends ToolspanError {
  readonly code: "invalid_response";
}

/** A stream ended without its terminal marker. */
export class StreamInterruptedError extends ToolspanError {
  readonly code: "stream_interrupted";
}

/** Something from outside is larger or deeper than allowed. */
export class LimitExceededError extends ToolspanError {
  readonly code: "limit_exceeded";
}

/** An MCP server answered with an error, or broke the protocol. */
export class McpError extends ToolspanError {
  readonly code: "mcp_error";
}

/** A function of the host failed; the host has the original. */
export class HostFailedError extends ToolspanError {
  readonly code: "host_failed";
}

/** A conversation store could not read or write. */
export class StoreFailedError extends ToolspanError {
  readonly code: "store_failed";
}

/** The stored conversation was changed by somebody else meanwhile. */
export class StoreConflictError extends ToolspanError {
  readonly code: "store_conflict";
}

/** What was asked is not possible with this provider, style or platform. */
export class UnsupportedError extends ToolspanError {
  readonly code: "unsupported";
}

/** Library and binding do not fit together. */
export class AbiMismatchError extends ToolspanError {
  readonly code: "abi_mismatch";
}

/** A defect of this library. */
export class InternalError extends ToolspanError {
  readonly code: "internal";
}

/** A panic inside this library, caught at the boundary. */
export class InternalPanicError extends ToolspanError {
  readonly code: "internal_panic";
}
