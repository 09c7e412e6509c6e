package dev.toolspan.internal

import dev.toolspan.LogLevel
import dev.toolspan.LogRecord
import dev.toolspan.ToolspanException
import dev.toolspan.exceptionOf
import java.lang.ref.Cleaner
import java.lang.ref.WeakReference
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.CountDownLatch
import java.util.concurrent.Executor
import java.util.concurrent.RejectedExecutionException
import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.AtomicLong
import kotlin.coroutines.ContinuationInterceptor
import kotlin.coroutines.CoroutineContext
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.Job
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.asCoroutineDispatcher
import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.launch
import kotlinx.coroutines.withContext

/** How an operation ended: with a result, or with an error. */
internal class Outcome(private val result: Any?, private val error: JsonMap?, private val cause: Throwable?) {
    /** The result; or the exception, made here, where the caller is, so that its stack shows who called. */
    @Suppress("UNCHECKED_CAST")
    fun get(): JsonMap = if (error == null) result as JsonMap else throw exceptionOf(error, cause)

    /** The result, if there is one. */
    fun orNull(): JsonMap? = if (error == null) get() else null
}

/** An operation under way. [keep] is not collected before its end. */
internal class Operation(val number: Long, context: CoroutineContext, val keep: Any?) {
    val ended = CompletableDeferred<Outcome>()

    /** Host calls that are being served, by number. Whoever takes one out of here answers it, or ends it. */
    val calls = ConcurrentHashMap<Long, Job>()

    /** Bodies of answers to requests of the program's own transport. */
    val bodies = Bodies()

    /** What the program's functions threw, by number of the host call and id of the tool call. */
    val thrown = ConcurrentHashMap<Any, Throwable>()

    /** What the caller's context hands on to the functions that serve it: everything but its job and its threads. */
    val inherited = context.minusKey(Job).minusKey(ContinuationInterceptor)

    /** Whether the end only queues the caller's continuation, so that the pump may tell it itself. */
    val queues = context[ContinuationInterceptor].let { it is CoroutineDispatcher && it !== Dispatchers.Unconfined && it.isDispatchNeeded(context) }
}

/**
 * Hands requests to the native engine and its events to whoever waits for them.
 *
 * One daemon thread polls. It runs no code of the program: functions of the program run on [executor], sinks one after the
 * other on it too, and a caller is continued on its own dispatcher.
 */
internal class Pump(private val native: NativeEngineInterface, given: Executor, private val log: ((LogRecord) -> Unit)?) {
    private val numbers = AtomicLong()
    private val operations = ConcurrentHashMap<Long, Operation>()

    /** Owned by the toolkits and clients they were given to. */
    private val handlers = ConcurrentHashMap<Long, WeakReference<HostFunction>>()

    /** What the program's executor refuses runs on a thread of its own: somebody waits for it. */
    private val executor = Executor { work ->
        try {
            given.execute(work)
        } catch (_: RejectedExecutionException) {
            Thread(work, "toolspan-refused").apply { isDaemon = true }.start()
        }
    }

    /** Where functions of the program run. */
    val dispatcher: CoroutineDispatcher = executor.asCoroutineDispatcher()
    private val sinks = Sinks(executor, ::lost)
    private val pumping = lazy { Thread(::pump, "toolspan-pump").apply { isDaemon = true; start() } }
    private val stopped = CountDownLatch(1)

    /** The program was told that nothing of it is called any more. */
    @Volatile
    private var closed = false

    init {
        // A log may say something before anything runs.
        if (log != null) pumping.value
    }

    /** An operation that needs no waiting. */
    @Suppress("UNCHECKED_CAST")
    fun call(op: String, args: JsonMap = emptyMap()): JsonMap =
        decode(checked { native.call(request(op, args)) }) as JsonMap

    /** Submits an operation for the coroutine of the context. */
    fun start(op: String, args: JsonMap, context: CoroutineContext, keep: Any?): Operation {
        val request = request(op, args)
        val operation = Operation(numbers.incrementAndGet(), context, keep)
        pumping.value
        operations[operation.number] = operation
        try {
            checked { native.submit(operation.number.toULong(), request) }
        } catch (refused: Throwable) {
            operations.remove(operation.number)
            throw refused
        }
        return operation
    }

    /** Performs an operation. Cancelled, it returns when the engine is done with it; what it made all the same is for [undo]. */
    suspend fun perform(op: String, args: JsonMap, keep: Any? = null, undo: suspend (JsonMap) -> Unit = {}): JsonMap =
        outcome(op, args, keep, undo).second.get()

    /** The same, for those who want to know what the program's functions threw meanwhile. */
    suspend fun outcome(op: String, args: JsonMap, keep: Any?, undo: suspend (JsonMap) -> Unit = {}): Pair<Operation, Outcome> {
        val operation = start(op, args, currentCoroutineContext(), keep)
        try {
            return operation to operation.ended.await()
        } catch (cancelled: CancellationException) {
            withContext(NonCancellable) {
                cancel(operation)
                // It may have done its work before it was told.
                operation.ended.await().orNull()?.let { undo(it) }
            }
            throw cancelled
        }
    }

    /** Ends an operation unless it has ended, and waits for that; it is prompt. */
    suspend fun end(operation: Operation) {
        if (operation.ended.isCompleted) return
        cancel(operation)
        withContext(NonCancellable) { operation.ended.await() }
    }

    /** Asks an operation to end, if it has not. */
    fun cancel(operation: Operation) {
        if (operations.containsKey(operation.number)) native.cancel(operation.number.toULong())
    }

    /** Gives a function of the program a number. It is known as long as somebody holds the function. */
    fun handler(function: HostFunction): Long {
        val number = numbers.incrementAndGet()
        handlers[number] = WeakReference(function)
        return number
    }

    /** Forgets functions of the program. */
    fun forget(numbers: Collection<Long>) {
        numbers.forEach(handlers::remove)
    }

    /** How many functions of the program have a number. */
    val known: Int get() = handlers.size

    /** Submits an operation whose end nobody waits for; for cleaners, so it never throws. */
    fun discard(op: String, args: JsonMap) {
        try {
            pumping.value
            native.submit(numbers.incrementAndGet().toULong(), request(op, args))
        } catch (_: Exception) {
            // The engine is closed, and everything of it.
        }
    }

    /**
     * Ends everything that is open, and tells the callers and the sinks what there is to tell. False when that took longer than
     * allowed: callers are still told, sinks are not. Nothing of the program is started any more.
     */
    fun close(timeoutMs: Long): Boolean {
        val begun = System.nanoTime()
        fun left() = TimeUnit.MILLISECONDS.toNanos(timeoutMs) - (System.nanoTime() - begun)
        val complete = native.close(timeoutMs.toULong())
        // A sink that closes its engine is told the rest when it has returned.
        if (sinks.isCurrent) return complete
        val told = try {
            (!pumping.isInitialized() || stopped.await(left(), TimeUnit.NANOSECONDS)) && sinks.drained(left())
        } catch (_: InterruptedException) {
            Thread.currentThread().interrupt()
            false
        }
        closed = true
        sinks.mute()
        return complete && told
    }

    /** Closes without waiting, for the cleaner. */
    fun abandon(): Unit = native.abandon()

    // From here on: the thread of the pump.

    private fun pump() {
        val defect = try {
            collect()
            null
        } catch (defect: Throwable) {
            defect
        }
        if (defect != null) runCatching { native.abandon() }
        // Whoever waits must be told, or waits for ever. A close has ended them all before.
        val error = errorRecord("internal", "the engine ended without an answer")
        for (operation in operations.values) finish(operation, Outcome(null, error, defect))
        stopped.countDown()
    }

    private fun collect() {
        while (true) {
            val text = native.poll(POLL_MS, 0u) ?: return
            @Suppress("UNCHECKED_CAST")
            for (event in decode(text) as List<JsonMap>) deliver(event)
        }
    }

    private fun deliver(event: JsonMap) {
        val operation = operations[event["op"]]
        when (event["type"]) {
            "host_call" -> if (event["call"] == 0L) notify(event, operation) else serve(event, operation)
            "host_call_cancelled" -> operation?.calls?.remove(event["call"])?.cancel()
            "done", "failed", "cancelled" -> if (operation != null) {
                @Suppress("UNCHECKED_CAST")
                val error = event["error"] as JsonMap?
                finish(operation, Outcome(event["result"], error, error?.get("hostCall")?.let(operation.thrown::get)))
            }
        }
    }

    /** Nothing of an operation that has ended goes on, and whoever waits for it is told, whatever that meets. */
    private fun finish(operation: Operation, outcome: Outcome) {
        operations.remove(operation.number)
        for (call in operation.calls.keys) operation.calls.remove(call)?.cancel()
        val end = { operation.ended.complete(outcome); Unit }
        try {
            if (!operation.bodies.isEmpty) executor.execute(operation.bodies::closeAll)
            if (operation.queues) end() else executor.execute(end)
        } catch (_: Throwable) {
            end()
        }
    }

    private fun notify(event: JsonMap, operation: Operation?) {
        val kind = event["kind"] as String
        @Suppress("UNCHECKED_CAST")
        val payload = event["payload"] as JsonMap
        when (kind) {
            "http.close" -> operation?.bodies?.let { executor.execute { it.close(payload.integer("stream")) } }
            "log" -> log?.let { sinks.tell { it(LogRecord.of(payload)) } }
            else -> handlers[event["handler"]]?.get()?.let { sinks.tell { it.notify(kind, payload) } }
        }
    }

    private fun lost(count: Int) {
        val message = "$count log and metric events were dropped because the program's sinks lag behind"
        log?.invoke(LogRecord(LogLevel.WARN, "bridge", message, mapOf("dropped" to count.toLong())))
    }

    @Suppress("UNCHECKED_CAST")
    private fun serve(event: JsonMap, operation: Operation?) {
        val call = event["call"] as Long
        val kind = event["kind"] as String
        val payload = event["payload"] as JsonMap
        val function = handlers[event["handler"]]?.get()
        if (operation == null || function == null) {
            respond(call, failure(IllegalStateException("nothing of the program serves this call any more")))
            return
        }
        // One that is cancelled before a thread was free for it never begins.
        val serving = CoroutineScope(operation.inherited + dispatcher).launch(start = CoroutineStart.LAZY) {
            if (closed) return@launch
            val reply = try {
                val answer = if (kind == "http.read") operation.bodies.read(payload.integer("stream")) else function.serve(kind, payload)
                encode(mapOf("ok" to if (answer is Answered) operation.bodies.keep(call, answer) else answer))
            } catch (thrown: Throwable) {
                operation.thrown[call] = thrown
                (payload["callId"] as? String)?.let { operation.thrown[it] = thrown }
                failure(thrown)
            }
            // A body that nobody was told of is one that nobody closes.
            if (operation.calls.remove(call) == null || !respond(call, reply)) operation.bodies.close(call)
        }
        operation.calls[call] = serving
        serving.start()
    }

    /** False when nobody waits for it any more, or the engine could not read it and has failed the call. */
    private fun respond(call: Long, reply: String): Boolean = try {
        native.respond(call.toULong(), reply)
        true
    } catch (_: Exception) {
        false
    }

    private fun request(op: String, args: JsonMap) = encode(mapOf("op" to op, "args" to args))

    private inline fun <T> checked(call: () -> T): T = try {
        call()
    } catch (refusal: Refusal.Refused) {
        throw refused(refusal.record)
    }

    internal companion object {
        /** Only so long that a poll ends at all. */
        private const val POLL_MS = 60_000uL

        /** Closes what programs drop; a net, no more. */
        val cleaner: Cleaner = Cleaner.create { Thread(it, "toolspan-cleaner").apply { isDaemon = true } }
    }
}

/** The reply that says a function of the program failed. */
private fun failure(thrown: Throwable): String {
    val message = runCatching { thrown.message }.getOrNull()
    return try {
        encode(mapOf("error" to mapOf("message" to message.orEmpty(), "type" to thrown.javaClass.name)))
    } catch (_: ToolspanException) {
        encode(mapOf("error" to mapOf("message" to "the message of the failure is no text", "type" to thrown.javaClass.name)))
    }
}
