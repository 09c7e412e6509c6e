package dev.toolspan

import dev.toolspan.internal.ANSWERED
import dev.toolspan.internal.Handle
import dev.toolspan.internal.JsonMap
import dev.toolspan.internal.NativeEngine
import dev.toolspan.internal.NativeLibrary
import dev.toolspan.internal.Pump
import dev.toolspan.internal.Refusal
import dev.toolspan.internal.encode
import dev.toolspan.internal.encoding
import dev.toolspan.internal.errorRecord
import dev.toolspan.internal.present
import dev.toolspan.internal.promised
import dev.toolspan.internal.refused
import dev.toolspan.internal.waiting
import java.lang.ref.Reference
import java.util.concurrent.CompletableFuture
import java.util.concurrent.Executor
import java.util.concurrent.Executors
import java.util.concurrent.atomic.AtomicInteger

/**
 * Threads, toolkits, clients and logs of its own. Most programs use the functions of the package and never make one. All its
 * threads are daemons; a program ends with an engine open.
 *
 * What takes time has three forms: a suspending one for Kotlin, one that blocks (for Java it has the plain name), and one that
 * gives a future. Cancelling the coroutine or the future, or interrupting the thread, cancels the operation.
 */
public class Engine internal constructor(internal val pump: Pump) : AutoCloseable {
    /** An engine with these options. */
    @JvmOverloads
    public constructor(options: EngineOptions = EngineOptions()) : this(opened(options))

    init {
        Pump.cleaner.register(this, pump::abandon)
    }

    /** Connects the servers and collects the tools. A server that fails is left out, see [Toolkit.status]. */
    @JvmSynthetic
    public suspend fun createToolkit(options: ToolkitOptions): Toolkit = pump.encoding(options.values) { encoded ->
        val made = { result: JsonMap -> Toolkit(this, result["toolkit"] as Long, encoded) }
        val arguments = mapOf("options" to encoded.options)
        made(pump.perform("toolkit.create", arguments, keep = listOf(this, encoded)) { unwanted -> made(unwanted).handle.close() })
    }

    /** The same. */
    @JvmSynthetic
    public suspend fun createToolkit(block: ToolkitOptions.() -> Unit = {}): Toolkit = createToolkit(ToolkitOptions().apply(block))

    /** Connects the servers and collects the tools. A server that fails is left out, see [Toolkit.status]. */
    @JvmName("createToolkit")
    @JvmOverloads
    @Throws(InterruptedException::class)
    public fun createToolkitBlocking(options: ToolkitOptions = ToolkitOptions()): Toolkit = waiting { createToolkit(options) }

    /** The same, as a future. */
    @JvmOverloads
    public fun createToolkitAsync(options: ToolkitOptions = ToolkitOptions()): CompletableFuture<Toolkit> =
        pump.promised { createToolkit(options) }

    /** A client of an endpoint. Nothing is sent before the first run. */
    public fun createClient(options: ClientOptions): Client = pump.encoding(options.values) { encoded ->
        Client(this, call("client.create", mapOf("options" to encoded.options))["client"] as Long, encoded)
    }

    /** The same. */
    @JvmSynthetic
    public fun createClient(block: ClientOptions.() -> Unit): Client = createClient(ClientOptions().apply(block))

    /** Connects, lists and disconnects (SPEC 3.6). */
    @JvmSynthetic
    public suspend fun listMcpTools(options: McpToolsOptions): McpTools =
        McpTools.of(pump.perform("mcp.list", options.values, keep = this))

    /** The same. */
    @JvmSynthetic
    public suspend fun listMcpTools(block: McpToolsOptions.() -> Unit): McpTools = listMcpTools(McpToolsOptions().apply(block))

    /** Connects, lists and disconnects (SPEC 3.6). */
    @JvmName("listMcpTools")
    @Throws(InterruptedException::class)
    public fun listMcpToolsBlocking(options: McpToolsOptions): McpTools = waiting { listMcpTools(options) }

    /** The same, as a future. */
    public fun listMcpToolsAsync(options: McpToolsOptions): CompletableFuture<McpTools> = pump.promised { listMcpTools(options) }

    /** What is open and running. */
    public fun counters(): Counters = Counters.of(call("counters"))

    /** Version of the library. */
    public fun version(): String = call("version")["version"] as String

    /** Ends everything that is open, also what runs, and waits up to five seconds for that. */
    override fun close() {
        close(CLOSE_MS)
    }

    /**
     * The same, waiting up to [timeoutMs] until everything has ended and the sinks were told. False when that was not enough and
     * it goes on in the background. Whatever it says, no function of the program is called from then on; one that runs is not
     * waited for.
     */
    public fun close(timeoutMs: Long): Boolean {
        if (timeoutMs < 0) throw InvalidArgumentException(errorRecord("invalid_argument", "must not be negative", "timeoutMs"))
        return pump.close(timeoutMs)
    }

    /** An operation that needs no waiting, and during which the engine is not collected. */
    private fun call(op: String, args: JsonMap = emptyMap()): JsonMap = try {
        pump.call(op, args)
    } finally {
        Reference.reachabilityFence(this)
    }

    internal fun toolkitNumber(toolkit: Toolkit?): Long? {
        require(toolkit == null || toolkit.engine === this) { "the toolkit is one of another engine" }
        return toolkit?.handle?.number
    }

    private companion object {
        const val CLOSE_MS = 5000L
        private val count = AtomicInteger()

        fun opened(options: EngineOptions): Pump {
            NativeLibrary.load()
            val log = options.log
            val settings = options.values + present("log" to (options.logLevel ?: log?.let { LogLevel.DEBUG }))
            val native = try {
                NativeEngine(encode(settings + ("hostCalls" to ANSWERED)))
            } catch (refusal: Refusal.Refused) {
                throw refused(refusal.record)
            }
            return Pump(native, options.executor ?: workers(), log?.let { it::record })
        }

        /** As many as run at the same time; they end when they have had nothing to do for a minute. */
        fun workers(): Executor = Executors.newCachedThreadPool { work ->
            Thread(work, "toolspan-worker-${count.incrementAndGet()}").apply { isDaemon = true }
        }
    }
}

internal fun Handle.operands(toolkit: Long?, more: JsonMap): JsonMap = args() + present("toolkit" to toolkit) + more
