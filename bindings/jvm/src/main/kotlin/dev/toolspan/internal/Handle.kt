package dev.toolspan.internal

import dev.toolspan.ClosedException
import dev.toolspan.Engine
import dev.toolspan.RunResult
import dev.toolspan.Tool
import dev.toolspan.ToolResult
import java.lang.ref.Cleaner
import java.lang.ref.Reference
import java.util.concurrent.CompletableFuture
import java.util.concurrent.CopyOnWriteArrayList
import java.util.concurrent.CountDownLatch
import kotlin.coroutines.CoroutineContext
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.ExperimentalCoroutinesApi
import kotlinx.coroutines.currentCoroutineContext
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

/** The same for [make], whose failure forgets the functions again. */
internal inline fun <T> Pump.encoding(options: JsonMap, make: (Encoded) -> T): T {
    val encoded = encoded(options)
    try {
        return make(encoded)
    } catch (failed: Throwable) {
        forget(encoded.numbers)
        throw failed
    }
}

/** The counterpart of an object in the engine. It is closed with the object, or when that is collected. */
internal class Handle(private val engine: Engine, private val kind: String, val number: Long, encoded: Encoded?) {
    val pump: Pump = engine.pump
    private val functions = CopyOnWriteArrayList(encoded?.functions.orEmpty())
    private val dropped = Dropped(pump, kind, number, CopyOnWriteArrayList(encoded?.numbers.orEmpty()))
    private val cleanable: Cleaner.Cleanable = Pump.cleaner.register(this, dropped)

    /** Arguments of an operation on the object. */
    fun args(vararg more: Pair<String, Any?>): JsonMap = mapOf(kind to number) + more

    /** An operation on the object that needs no waiting. */
    fun call(op: String, vararg more: Pair<String, Any?>): JsonMap = try {
        pump.call(op, args(*more))
    } finally {
        // Or the object is closed while it is used for the last time.
        Reference.reachabilityFence(this)
    }

    /** Holds what was registered later. */
    fun hold(encoded: Encoded) {
        functions += encoded.functions
        dropped.handlers += encoded.numbers
    }

    /** Closes the counterpart. Cancelled, it goes on closing. */
    suspend fun close() {
        closed(closing(currentCoroutineContext())?.ended?.await())
    }

    /** The same. It needs no thread but this one, and an interrupt ends the wait and stays to be seen. */
    fun closeBlocking() {
        // The pump itself may open a latch, as it may hand over to a dispatcher.
        val closing = closing(Dispatchers.Default)
        val latch = CountDownLatch(1)
        closing?.ended?.invokeOnCompletion { latch.countDown() } ?: latch.countDown()
        try {
            latch.await()
        } catch (_: InterruptedException) {
            return Thread.currentThread().interrupt()
        }
        @OptIn(ExperimentalCoroutinesApi::class)
        closed(closing?.ended?.getCompleted())
    }

    /** Begins to close it; null when the engine was closed, and everything of it. */
    private fun closing(context: CoroutineContext): Operation? {
        val operation = try {
            pump.start("$kind.close", args(), context, keep = this)
        } catch (_: ClosedException) {
            null
        }
        dropped.closed = true
        return operation
    }

    private fun closed(outcome: Outcome?) {
        cleanable.clean()
        functions.clear()
        try {
            outcome?.get()
        } catch (_: ClosedException) {
            // The engine was closed meanwhile.
        }
    }
}

/** Knows everything but the object itself. */
private class Dropped(val pump: Pump, val kind: String, val number: Long, val handlers: MutableCollection<Long>) : Runnable {
    /** By the program. */
    @Volatile
    var closed = false

    override fun run() {
        pump.forget(handlers)
        if (!closed) pump.discard("$kind.close", mapOf(kind to number))
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
