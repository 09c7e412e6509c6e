// Package toolspan is an agent that uses tools: it connects to MCP servers, adds the program's own functions, and runs them for a
// model behind an OpenAI-style or Anthropic-style endpoint.
//
// What it does is said once for every language in SPEC.md; sections are cited as "SPEC 7". This package adds contexts, iterators,
// errors and schemas of Go types.
//
// A [Toolkit] holds tools, a [Client] knows an endpoint and a model, and [Client.Run] answers one prompt. [Client.Stream] is the
// same run event by event, [Client.Ask] and [Client.Conversation] the same with a memory.
//
// # Errors
//
// Every failure is an [*Error] with a [Code] out of a closed list. errors.Is(err, [ErrRateLimited]) asks for a code. Below it are
// the error that a hook, store or transport of the program returned, or [context.Canceled] and [context.DeadlineExceeded] when
// the caller's context ended the operation. A tool that fails is no error of the run: the model is told, and the program finds the
// tool's error in [ToolCall].Err.
//
// # Options
//
// What is absent is decided by the library, see SPEC 7.1. In [ClientOptions] a nil says nothing and a pointer says its value, zero
// included: Retries: toolspan.Ptr(0). Options of calls are functions, so an option that is given is said. In records that come out,
// a pointer is nil where the key is absent.
//
// # Goroutines
//
// Everything may be called from any goroutine. Tools and hooks run in goroutines of their own, sinks of logs and metrics one after
// another in one. While something runs, one goroutine of an engine waits inside the library and holds one thread of the operating
// system: that of a caller, or one of the package's where callers do other things. None of the package's is left when nothing runs
// (an engine with a log keeps one until it is closed).
package toolspan
