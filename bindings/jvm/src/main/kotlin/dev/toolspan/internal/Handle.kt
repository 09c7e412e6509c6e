package dev.toolspan.internal

import dev.toolspan.ClosedException
import dev.toolspan.RunResult
import dev.toolspan.Tool
import dev.toolspan.ToolResult
import java.lang.ref.Cleaner
import java.util.concurrent.CompletableFuture
import java.util.concurrent.CopyOnWriteArrayList
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.future.future
import kotlinx.coroutines.runBlocking

/** Options with a number in the place of each function of the program, and what has to be held for the numbers to be known. */
internal class Encoded(val options: JsonMap, val functions: List<HostFunction>, val numbers: List<Long>)

/** Gives the functions in options their numbers. */
internal fun Pump.encoded(options: JsonMap): Encoded {
    val functions = mutableListOf<HostFunction>()
    val numbers = mutableListOf<Long>()
    fun number(function: HostFunction) = handler(function).also {
        functions += function
        numbers += it
    }
    fun replaced(value: Any?): Any? = when (value) {
        is HostFunction -> mapOf("handler" to number(value))
        is Tool -> value.definition + ("handler" to number(value.function))
        is Map<*, *> -> value.mapValues { replaced(it.value) }
        is List<*> -> value.map(::replaced)
        else -> value
    }
    return Encoded(options.mapValues { replaced(it.value) }, functions, numbers)
}

/** The counterpart of an object in the engine. It is closed with the object, or when that is collected. */
internal class Handle(owner: Any, val pump: Pump, private val kind: String, val number: Long, encoded: Encoded?) {
    private val functions = CopyOnWriteArrayList(encoded?.functions.orEmpty())
    private val numbers = CopyOnWriteArrayList(encoded?.numbers.orEmpty())
    private val dropped: Cleaner.Cleanable = Pump.cleaner.register(owner, Dropped(pump, kind, number, numbers))

    /** Arguments of an operation on the object. */
    fun args(vararg more: Pair<String, Any?>): JsonMap = mapOf(kind to number) + more

    /** An operation on the object that needs no waiting. */
    fun call(op: String, vararg more: Pair<String, Any?>): JsonMap = pump.call(op, args(*more))

    /** Holds what was registered later. */
    fun hold(encoded: Encoded) {
        functions += encoded.functions
        numbers += encoded.numbers
    }

    /** Closes the counterpart. With the engine everything of it was closed. */
    suspend fun close() {
        try {
            pump.perform("$kind.close", args())
        } catch (_: ClosedException) {
        }
        pump.forget(numbers)
        functions.clear()
        numbers.clear()
    }
}

/** Knows everything but the object itself. */
private class Dropped(val pump: Pump, val kind: String, val number: Long, val handlers: Collection<Long>) : Runnable {
    override fun run() {
        pump.forget(handlers)
        pump.discard("$kind.close", mapOf(kind to number))
    }
}

/** What the program's own tool threw becomes part of its result. */
internal fun ToolResult.because(operation: Operation): ToolResult =
    if (isError) operation.thrown.values.firstOrNull()?.let { copy(exception = it) } ?: this else this

/** The same for the calls of a run. */
internal fun RunResult.because(operation: Operation): RunResult {
    if (operation.thrown.isEmpty()) return this
    return copy(toolCalls = toolCalls.map { call -> if (call.isError) call.copy(exception = operation.thrown[call.id]) else call })
}

/** Waits for a coroutine, as Java does: an interrupt cancels it, and is thrown when it has ended. */
internal fun <T> waiting(work: suspend CoroutineScope.() -> T): T = runBlocking(block = work)

/** A future of a coroutine: it is completed on one of our threads, and cancelling it cancels the coroutine. */
internal fun <T> Pump.promised(work: suspend CoroutineScope.() -> T): CompletableFuture<T> =
    CoroutineScope(dispatcher).future(block = work)
