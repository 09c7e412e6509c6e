package dev.toolspan

import dev.toolspan.internal.Encoded
import dev.toolspan.internal.Handle
import dev.toolspan.internal.JsonMap
import dev.toolspan.internal.because
import dev.toolspan.internal.encoding
import dev.toolspan.internal.list
import dev.toolspan.internal.mapped
import dev.toolspan.internal.present
import dev.toolspan.internal.promised
import dev.toolspan.internal.recordOrNull
import dev.toolspan.internal.waiting
import java.util.concurrent.CompletableFuture

/** An ordered set of tools and the connections behind them (SPEC 4). Close it, or hold it with `use` or `try`. */
public class Toolkit internal constructor(internal val engine: Engine, number: Long, encoded: Encoded) : AutoCloseable {
    internal val handle = Handle(engine, "toolkit", number, encoded)

    /** The tools, in order. */
    public fun tools(): List<ToolInfo> = handle.call("toolkit.tools").list("tools", ToolInfo::of)

    /** The tool of that name, or null. */
    public fun get(name: String): ToolInfo? = handle.call("toolkit.get", "name" to name).recordOrNull("tool", ToolInfo::of)

    /** Every server of the configuration by id. */
    public fun status(): Map<String, ServerStatus> = handle.call("toolkit.status").mapped("servers", ServerStatus::of)

    /** The tools as a provider declares them (SPEC 5). */
    public fun adapt(provider: Provider): Adaptation = adapt(provider.text)

    /** The same for a provider by its name, for programs that read it from somewhere. */
    public fun adapt(provider: String): Adaptation = Adaptation.of(handle.call("toolkit.adapt", "provider" to provider))

    /** Adds a tool of the program; false when the name was taken. */
    public fun register(tool: Tool): Boolean = engine.pump.encoding(mapOf("tool" to tool)) { encoded ->
        val registered = handle.call("toolkit.register", *encoded.options.toList().toTypedArray())["registered"] == true
        if (registered) handle.hold(encoded) else engine.pump.forget(encoded.numbers)
        registered
    }

    /** Executes one call outside a run. [args] may have any shape of SPEC 4.4. */
    @JvmSynthetic
    public suspend fun execute(name: String, args: Any? = emptyMap<String, Any?>(), timeoutMs: Long? = null): ToolResult {
        val request = handle.args("name" to name, "args" to args) + present("timeoutMs" to timeoutMs)
        val (operation, outcome) = engine.pump.outcome("toolkit.execute", request, keep = this)
        return ToolResult.of(outcome.get()).because(operation)
    }

    /** Executes one call outside a run. [args] may have any shape of SPEC 4.4. */
    @JvmName("execute")
    @JvmOverloads
    @Throws(InterruptedException::class)
    public fun executeBlocking(name: String, args: Any? = emptyMap<String, Any?>(), timeoutMs: Long? = null): ToolResult =
        waiting { execute(name, args, timeoutMs) }

    /** The same, as a future. */
    @JvmOverloads
    public fun executeAsync(name: String, args: Any? = emptyMap<String, Any?>(), timeoutMs: Long? = null): CompletableFuture<ToolResult> =
        engine.pump.promised { execute(name, args, timeoutMs) }

    /** Ends sessions, sockets and processes, and waits for that; again and again if you like. */
    @JvmSynthetic
    @JvmName("close")
    public suspend fun closeSuspending(): Unit = handle.close()

    /** Ends sessions, sockets and processes, and waits for that; again and again if you like. An interrupt ends only the wait. */
    override fun close(): Unit = handle.closeBlocking()

    /** The same, as a future. */
    public fun closeAsync(): CompletableFuture<Unit> = engine.pump.promised { handle.close() }
}
