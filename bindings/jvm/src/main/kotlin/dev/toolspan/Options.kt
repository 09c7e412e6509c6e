package dev.toolspan

import dev.toolspan.internal.HostFunction
import dev.toolspan.internal.JsonMap
import dev.toolspan.internal.blocking
import dev.toolspan.internal.transportFunction
import java.net.http.HttpClient
import java.nio.file.Path
import java.util.concurrent.Executor
import kotlin.coroutines.cancellation.CancellationException

/**
 * Options by name. Each is a property for Kotlin and a method that chains for Java; an option that is not set, or set to
 * null, has the default of the core (SPEC). They are read when they are handed over and may be used again.
 */
public abstract class Options<Self : Options<Self>> internal constructor() {
    internal val values: MutableMap<String, Any?> = LinkedHashMap()

    /**
     * Sets an option by its name in the contract, for programs that read their options from somewhere. The value has the form
     * of JSON; null is handed on.
     */
    @Suppress("UNCHECKED_CAST")
    public fun set(name: String, value: Any?): Self {
        values[name] = value
        return this as Self
    }

    @Suppress("UNCHECKED_CAST")
    internal fun <T> read(name: String): T? = values[name] as T?

    internal fun write(name: String, value: Any?) {
        if (value == null) values.remove(name) else values[name] = value
    }
}

/** Options of [createToolkit] (SPEC 4.1). */
public class ToolkitOptions : ToolkitSettings<ToolkitOptions>() {
    /** MCP servers: the path of a configuration file. */
    public fun mcpConfig(file: String): ToolkitOptions = set("mcpConfig", file)

    /** MCP servers: a configuration file. */
    public fun mcpConfig(file: Path): ToolkitOptions = set("mcpConfig", file.toString())

    /** MCP servers: the configuration document (SPEC 3.1). */
    public fun mcpConfig(document: Map<String, Any?>): ToolkitOptions = set("mcpConfig", document)

    /** The program's own tools, after those of the servers. */
    public fun tools(tools: List<Tool>): ToolkitOptions = set("tools", read<List<Any?>>("tools").orEmpty() + tools)

    /** Adds a tool of the program. */
    public fun tool(tool: Tool): ToolkitOptions = tools(listOf(tool))

    /** Adds a tool whose arguments [T] describes; see [dev.toolspan.tool]. */
    @JvmSynthetic
    public inline fun <reified T : Any> tool(
        name: String,
        description: String,
        noinline run: suspend ToolCall.(T) -> Any?,
    ): ToolkitOptions = tool(dev.toolspan.tool<T>(name, description, run))
}

/** Options of [listMcpTools] (SPEC 3.6). */
public class McpToolsOptions : McpToolsSettings<McpToolsOptions>() {
    /** The path of a configuration file. */
    public fun mcpConfig(file: String): McpToolsOptions = set("mcpConfig", file)

    /** A configuration file. */
    public fun mcpConfig(file: Path): McpToolsOptions = set("mcpConfig", file.toString())

    /** The configuration document (SPEC 3.1). */
    public fun mcpConfig(document: Map<String, Any?>): McpToolsOptions = set("mcpConfig", document)
}

/** Options of one run (SPEC 7). */
public class RunOptions : RunSettings<RunOptions>() {
    /** The tools that the model may call. */
    public var toolkit: Toolkit? = null

    /** Sets [toolkit]. */
    public fun toolkit(value: Toolkit?): RunOptions = apply { toolkit = value }
}

/**
 * Options of [createClient] (SPEC 7.1): `baseUrl`, `style` and `model` are required. Functions of the program are methods. In
 * Kotlin they take suspending lambdas; in Java functions that may block, or return a `CompletionStage`.
 */
public class ClientOptions : ClientSettings<ClientOptions>() {
    /** Sees the whole body, last, and returns the one to send; null means that it stays. */
    @JvmSynthetic
    public fun bodyTransform(transform: suspend (Map<String, Any?>) -> Map<String, Any?>?): ClientOptions =
        answer("bodyTransform", "bodyTransform") { transform(it.document("body")) }

    /** Sees the whole body, last, and returns the one to send; null means that it stays. */
    public fun bodyTransform(transform: Hook<@JvmSuppressWildcards Map<String, Any?>, @JvmSuppressWildcards Map<String, Any?>>): ClientOptions =
        bodyTransform { body -> blocking { transform.call(body) } }

    /** What is asked and told before and after requests and calls (SPEC 7.4). */
    public fun hooks(hooks: Hooks): ClientOptions = set("hooks", hooks.values)

    /** The same. */
    @JvmSynthetic
    public fun hooks(block: Hooks.() -> Unit): ClientOptions = hooks(Hooks().apply(block))

    /** May turn a failure into a retry or an end (SPEC 7.6). */
    @JvmSynthetic
    public fun onError(decide: suspend (RequestFailure) -> ErrorDecision?): ClientOptions =
        answer("onError", "onError") { decide(RequestFailure.of(it)) }

    /** May turn a failure into a retry or an end (SPEC 7.6). */
    public fun onError(decide: Hook<RequestFailure, ErrorDecision>): ClientOptions =
        onError { failure -> blocking { decide.call(failure) } }

    /** Sends the requests to the model, in place of the library. Redirects are not followed. */
    @JvmSynthetic
    public fun httpClient(send: suspend (HttpRequest) -> HttpResponse): ClientOptions = set("httpClient", transportFunction(send))

    /** Sends the requests to the model, in place of the library. */
    public fun httpClient(transport: HttpTransport): ClientOptions = httpClient { request -> received(transport, request) }

    /** Sends the requests to the model with the JDK's client, which must not follow redirects; see [HttpTransport.of]. */
    public fun httpClient(client: HttpClient): ClientOptions = httpClient(HttpTransport.of(client))

    /** Where conversations are kept: `memory`, or `file:DIR`. */
    public fun store(place: String): ClientOptions = set("store", place)

    /** Where conversations are kept. */
    public fun store(store: ConversationStore): ClientOptions =
        store({ id -> blocking { store.get(id) } }, { id, transcript -> blocking { store.save(id, transcript) } })

    /** Where conversations are kept; see [ConversationStore] for what the two give and take. */
    @JvmSynthetic
    public fun store(get: suspend (id: String) -> Any?, save: suspend (id: String, transcript: Transcript) -> Any?): ClientOptions =
        set(
            "store",
            HostFunction(
                mapOf(
                    "store.get" to { payload -> get(payload["id"] as String) },
                    "store.save" to { payload ->
                        save(payload["id"] as String, Transcript.of(payload.document("transcript")))
                        null
                    },
                ),
            ),
        )

    /** Receives metric events (SPEC 10), one after the other. */
    public fun onMetric(sink: MetricSink): ClientOptions =
        set("onMetric", HostFunction(notices = mapOf("metric" to { event -> MetricEvent.of(event)?.let(sink::record) })))

    private fun answer(option: String, kind: String, function: suspend (JsonMap) -> Any?) =
        set(option, HostFunction(mapOf(kind to function)))
}

/** SPEC 7.4. What a hook throws ends the run and is the cause of its exception. */
public class Hooks : Options<Hooks>() {
    /** Before a request to the model; may change it. */
    @JvmSynthetic
    public fun beforeLLM(hook: suspend (BeforeLlm) -> LlmChange?): Hooks =
        answer("beforeLLM") { hook(BeforeLlm.of(it))?.values }

    /** Before a request to the model; may change it. */
    public fun beforeLLM(hook: Hook<BeforeLlm, LlmChange>): Hooks = beforeLLM { told -> blocking { hook.call(told) } }

    /** After an answer of the model. */
    @JvmSynthetic
    public fun afterLLM(hook: suspend (AfterLlm) -> Unit): Hooks = answer("afterLLM") { hook(AfterLlm.of(it)) }

    /** After an answer of the model. */
    public fun afterLLM(hook: Observer<AfterLlm>): Hooks = afterLLM { told -> blocking { hook.call(told) } }

    /** Before a call; may answer it, or change its arguments. */
    @JvmSynthetic
    public fun beforeTool(hook: suspend (BeforeTool) -> ToolChange?): Hooks =
        answer("beforeTool") { hook(BeforeTool.of(it))?.values }

    /** Before a call; may answer it, or change its arguments. */
    public fun beforeTool(hook: Hook<BeforeTool, ToolChange>): Hooks = beforeTool { told -> blocking { hook.call(told) } }

    /** After a call; may replace its result. */
    @JvmSynthetic
    public fun afterTool(hook: suspend (AfterTool) -> ToolResult?): Hooks =
        answer("afterTool") { told -> hook(AfterTool.of(told))?.let { mapOf("result" to it) } }

    /** After a call; may replace its result. */
    public fun afterTool(hook: Hook<AfterTool, ToolResult>): Hooks = afterTool { told -> blocking { hook.call(told) } }

    private fun answer(name: String, function: suspend (JsonMap) -> Any?) =
        set(name, HostFunction(mapOf("hook.$name" to function)))
}

/** Options of an [Engine]. */
public class EngineOptions : Options<EngineOptions>() {
    /** Receives log records, one after the other; the library prints nothing. */
    public var log: LogSink? = null

    /** Least level wanted. Default: every record, where there is a sink. */
    public var logLevel: LogLevel? = null

    /** Threads of the library itself. Default: 1. */
    public var workers: Int?
        get() = read<Number>("workers")?.toInt()
        set(value) = write("workers", value)

    /**
     * Runs the program's tools, hooks and sinks. It must have room for those that run at the same time; what it refuses runs on a daemon
     * thread of the engine's own. Default: daemon threads of the engine's own.
     */
    public var executor: Executor? = null

    /** Sets [log]. */
    public fun log(sink: LogSink): EngineOptions = apply { log = sink }

    /** Sets [logLevel]. */
    public fun logLevel(level: LogLevel): EngineOptions = apply { logLevel = level }

    /** Sets [workers]. */
    public fun workers(count: Int): EngineOptions = apply { workers = count }

    /** Sets [executor]. */
    public fun executor(value: Executor): EngineOptions = apply { executor = value }
}

@Suppress("UNCHECKED_CAST")
private fun JsonMap.document(key: String) = this[key] as JsonMap

/** What a transport answered, closed when it came too late. */
private suspend fun received(transport: HttpTransport, request: HttpRequest): HttpResponse {
    var answer: HttpResponse? = null
    try {
        return blocking { transport.send(request).also { answer = it } }
    } catch (cancelled: CancellationException) {
        answer?.body?.close()
        throw cancelled
    }
}
