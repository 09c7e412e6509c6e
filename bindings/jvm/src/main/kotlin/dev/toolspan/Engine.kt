package dev.toolspan

import dev.toolspan.internal.ANSWERED
import dev.toolspan.internal.Handle
import dev.toolspan.internal.HostFunction
import dev.toolspan.internal.JsonMap
import dev.toolspan.internal.NativeEngine
import dev.toolspan.internal.NativeLibrary
import dev.toolspan.internal.Pump
import dev.toolspan.internal.Refusal
import dev.toolspan.internal.encode
import dev.toolspan.internal.encoded
import dev.toolspan.internal.present
import dev.toolspan.internal.promised
import dev.toolspan.internal.refused
import dev.toolspan.internal.waiting
import java.util.concurrent.CompletableFuture
import java.util.concurrent.Executor
import java.util.concurrent.Executors
import java.util.concurrent.atomic.AtomicInteger

/**
 * Threads, toolkits, clients and logs of its own. Most programs use the functions of the package and never make one. All its
 * threads are daemons; a program ends with an engine open.
 *
 * Each operation has three forms: a suspending one for Kotlin, one that blocks (for Java it has the plain name), and one that
 * gives a future. Cancelling the coroutine or the future, or interrupting the thread, cancels the operation.
 */
public class Engine @JvmOverloads constructor(options: EngineOptions = EngineOptions()) : AutoCloseable {
    internal val pump: Pump

    init {
        NativeLibrary.load()
        val log = options.log
        val settings = options.values + present("log" to (options.logLevel ?: log?.let { LogLevel.DEBUG }))
        val native = try {
            NativeEngine(encode(settings + ("hostCalls" to ANSWERED)))
        } catch (refusal: Refusal.Refused) {
            throw refused(refusal.record)
        }
        val sink = log?.let { HostFunction(notices = mapOf("log" to { record -> it.record(LogRecord.of(record)) })) }
        pump = Pump(native, options.executor ?: workers(), sink)
        Pump.cleaner.register(this, pump::abandon)
    }

    /** Connects the servers and collects the tools. A server that fails is left out, see [Toolkit.status]. */
    @JvmSynthetic
    public suspend fun createToolkit(options: ToolkitOptions): Toolkit {
        val encoded = pump.encoded(options.values)
        val made = pump.perform("toolkit.create", mapOf("options" to encoded.options), keep = listOf(this, encoded))
        return Toolkit(this, made["toolkit"] as Long, encoded)
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
    public fun createClient(options: ClientOptions): Client {
        val encoded = pump.encoded(options.values)
        return Client(this, pump.call("client.create", mapOf("options" to encoded.options))["client"] as Long, encoded)
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
    public fun counters(): Counters = Counters.of(pump.call("counters"))

    /** Version of the library. */
    public fun version(): String = pump.call("version")["version"] as String

    /** Ends everything that is open, also what runs. */
    override fun close() {
        close(CLOSE_MS)
    }

    /** The same; false when [timeoutMs] was not enough and it goes on in the background. */
    public fun close(timeoutMs: Long): Boolean = pump.close(timeoutMs)

    internal fun toolkitNumber(toolkit: Toolkit?): Long? {
        require(toolkit == null || toolkit.engine === this) { "the toolkit is one of another engine" }
        return toolkit?.handle?.number
    }

    private companion object {
        const val CLOSE_MS = 5000L
        private val count = AtomicInteger()

        /** As many as run at the same time; they end when they have had nothing to do for a minute. */
        fun workers(): Executor = Executors.newCachedThreadPool { work ->
            Thread(work, "toolspan-worker-${count.incrementAndGet()}").apply { isDaemon = true }
        }
    }
}

internal fun Handle.operands(toolkit: Long?, more: JsonMap): JsonMap = args() + present("toolkit" to toolkit) + more
