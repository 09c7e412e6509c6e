package dev.toolspan.internal

import dev.toolspan.ToolspanException
import dev.toolspan.exceptionOf
import java.lang.ref.Cleaner
import java.lang.ref.WeakReference
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.Executor
import java.util.concurrent.atomic.AtomicLong
import kotlin.coroutines.ContinuationInterceptor
import kotlin.coroutines.CoroutineContext
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.Job
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.asCoroutineDispatcher
import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.isActive
import kotlinx.coroutines.launch
import kotlinx.coroutines.withContext

/** How an operation ended: with a result, or with an error. */
internal class Outcome(private val result: Any?, private val error: JsonMap?, private val cause: Throwable?) {
    /** The result; or the exception, made here, where the caller is, so that its stack shows who called. */
    @Suppress("UNCHECKED_CAST")
    fun get(): JsonMap = if (error == null) result as JsonMap else throw exceptionOf(error, cause)
}

/** An operation under way. [keep] is not collected before its end. */
internal class Operation(val number: Long, context: CoroutineContext, val keep: Any?) {
    val ended = CompletableDeferred<Outcome>()

    /** Host calls that are being served, by number. */
    val calls = ConcurrentHashMap<Long, Job>()

    /** What the program's functions threw, by number of the host call and id of the tool call. */
    val thrown = ConcurrentHashMap<Any, Throwable>()

    /** What the caller's context hands on to the functions that serve it: everything but its job and its threads. */
    val inherited = context.minusKey(Job).minusKey(ContinuationInterceptor)

    /** Whether the end only queues the caller's continuation, so that the pump may tell it itself. */
    val queues = context[ContinuationInterceptor].let { it is CoroutineDispatcher && it !== Dispatchers.Unconfined && it.isDispatchNeeded(context) }

    /** Whether a sink waits for it: it must not wait for that sink. */
    val ofSink = Lane.isCurrent()
}

/**
 * Hands requests to the native engine and its events to whoever waits for them.
 *
 * One daemon thread polls. It runs no code of the program: functions of the program run on [executor], sinks one after the
 * other on a [Lane] of it, and a caller is continued on its own dispatcher.
 */
internal class Pump(private val native: NativeEngine, private val executor: Executor, private val log: HostFunction?) {
    private val numbers = AtomicLong()
    private val operations = ConcurrentHashMap<Long, Operation>()

    /** Owned by the toolkits and clients they were given to. */
    private val handlers = ConcurrentHashMap<Long, WeakReference<HostFunction>>()

    /** Where functions of the program run. */
    val dispatcher: CoroutineDispatcher = executor.asCoroutineDispatcher()
    private val sinks = Lane(executor)
    private val thread by lazy { Thread(::poll, "toolspan-pump").apply { isDaemon = true; start() } }

    /** An operation that needs no waiting. */
    @Suppress("UNCHECKED_CAST")
    fun call(op: String, args: JsonMap = emptyMap()): JsonMap =
        decode(checked { native.call(request(op, args)) }) as JsonMap

    /** Submits an operation for the coroutine of the context. */
    fun start(op: String, args: JsonMap, context: CoroutineContext, keep: Any?): Operation {
        val request = request(op, args)
        val operation = Operation(numbers.incrementAndGet(), context, keep)
        thread
        operations[operation.number] = operation
        try {
            checked { native.submit(operation.number.toULong(), request) }
        } catch (refused: Throwable) {
            operations.remove(operation.number)
            throw refused
        }
        return operation
    }

    /** Performs an operation. Cancelled, it returns when the engine is done with it. */
    suspend fun perform(op: String, args: JsonMap, keep: Any? = null): JsonMap = outcome(op, args, keep).second.get()

    /** The same, for those who want to know what the program's functions threw meanwhile. */
    suspend fun outcome(op: String, args: JsonMap, keep: Any?): Pair<Operation, Outcome> {
        val operation = start(op, args, currentCoroutineContext(), keep)
        try {
            return operation to operation.ended.await()
        } finally {
            end(operation)
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

    /** Submits an operation whose end nobody waits for; for cleaners, so it never throws. */
    fun discard(op: String, args: JsonMap) {
        try {
            native.submit(numbers.incrementAndGet().toULong(), request(op, args))
        } catch (_: Exception) {
            // The engine is closed, and everything of it.
        }
    }

    /** Ends everything that is open; false when that took longer than allowed and goes on in the background. */
    fun close(timeoutMs: Long): Boolean = native.close(timeoutMs.toULong())

    /** Closes without waiting, for the cleaner. */
    fun abandon(): Unit = native.abandon()

    // From here on: the thread of the pump.

    private fun poll() {
        while (true) {
            val text = native.poll(POLL_MS, 0u) ?: break
            try {
                @Suppress("UNCHECKED_CAST")
                for (event in decode(text) as List<JsonMap>) deliver(event)
            } catch (defect: Exception) {
                // Whoever waits must be told, or waits for ever.
                native.abandon()
                failAll(defect)
            }
        }
        failAll(null)
    }

    /** Only a defect leaves an operation here: a close ends them all. */
    private fun failAll(defect: Throwable?) {
        val error = errorRecord("internal", "the engine ended without an answer")
        for (number in operations.keys) {
            operations.remove(number)?.let { finish(it, Outcome(null, error, defect)) }
        }
    }

    private fun deliver(event: JsonMap) {
        val operation = operations[event["op"]]
        when (event["type"]) {
            "host_call" -> if (event["call"] == 0L) notify(event, operation) else serve(event, operation)
            "host_call_cancelled" -> operation?.calls?.remove(event["call"])?.cancel()
            "done", "failed", "cancelled" -> if (operation != null) {
                operations.remove(operation.number)
                @Suppress("UNCHECKED_CAST")
                val error = event["error"] as JsonMap?
                finish(operation, Outcome(event["result"], error, error?.get("hostCall")?.let(operation.thrown::get)))
            }
        }
    }

    /** What sinks were told before the end is with them before the caller goes on. */
    private fun finish(operation: Operation, outcome: Outcome) {
        val end = { operation.ended.complete(outcome); Unit }
        val tell = if (operation.queues) end else ({ executor.execute(end) })
        if (operation.ofSink || sinks.isIdle) tell() else sinks.execute(tell)
    }

    private fun notify(event: JsonMap, operation: Operation?) {
        val kind = event["kind"] as String
        val function = if (kind == "log") log else handlers[event["handler"]]?.get()
        if (function == null) return
        @Suppress("UNCHECKED_CAST")
        val payload = event["payload"] as JsonMap
        sinks.execute {
            try {
                function.notify(kind, payload)
            } catch (_: Exception) {
                // A sink that fails has nobody to tell, and the engine does not wait for it.
            }
        }
    }

    @Suppress("UNCHECKED_CAST")
    private fun serve(event: JsonMap, operation: Operation?) {
        val call = event["call"] as Long
        val payload = event["payload"] as JsonMap
        val function = handlers[event["handler"]]?.get()
        if (operation == null || function == null) {
            return respond(call, failure(IllegalStateException("nothing of the program serves this call any more")))
        }
        val serving = CoroutineScope(operation.inherited + dispatcher).launch(start = CoroutineStart.LAZY) {
            val reply = try {
                encode(mapOf("ok" to function.serve(event["kind"] as String, payload)))
            } catch (thrown: Throwable) {
                operation.thrown[call] = thrown
                (payload["callId"] as? String)?.let { operation.thrown[it] = thrown }
                failure(thrown)
            }
            operation.calls.remove(call)
            if (isActive) respond(call, reply)
        }
        operation.calls[call] = serving
        serving.start()
    }

    private fun respond(call: Long, reply: String) {
        try {
            native.respond(call.toULong(), reply)
        } catch (_: Exception) {
            // Nobody waits for it any more, or the engine could not read it and has failed the call.
        }
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

/** Runs tasks one after the other, in the order they came. */
internal class Lane(private val executor: Executor) {
    private val tasks = ArrayDeque<() -> Unit>()
    private var busy = false

    /** Whether everything that came has been run. */
    val isIdle: Boolean get() = synchronized(tasks) { !busy }

    fun execute(task: () -> Unit) {
        synchronized(tasks) {
            tasks.addLast(task)
            if (busy) return
            busy = true
        }
        executor.execute(::drain)
    }

    private fun drain() {
        current.set(true)
        try {
            while (true) {
                val task = synchronized(tasks) { tasks.removeFirstOrNull().also { busy = it != null } } ?: return
                task()
            }
        } finally {
            current.remove()
        }
    }

    companion object {
        private val current = ThreadLocal<Boolean>()

        /** Whether this thread runs a task of a lane. */
        fun isCurrent(): Boolean = current.get() == true
    }
}
