import dev.toolspan.*
import dev.toolspan.internal.NativeEngineInterface
import dev.toolspan.internal.Pump
import java.util.concurrent.CompletableFuture
import java.util.concurrent.CountDownLatch
import java.util.concurrent.Executor
import java.util.concurrent.Executors
import java.util.concurrent.LinkedBlockingQueue
import java.util.concurrent.RejectedExecutionException
import java.util.concurrent.ThreadPoolExecutor
import java.util.concurrent.TimeUnit.MILLISECONDS
import java.util.concurrent.TimeUnit.SECONDS
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.asCoroutineDispatcher
import kotlinx.coroutines.async
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.delay
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withContext
import kotlinx.coroutines.withTimeout
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Timeout

/** What the one thread, the sinks and the executor promise, whatever the program's functions do to them. */
@Timeout(30)
class PumpTest {
    private val daemons = Executors.newCachedThreadPool { Thread(it).apply { isDaemon = true } }

    private fun echo() = ToolkitOptions().tool(tool<Fields>("echo", "d") { it["x"] })

    /** Lets the log say something. */
    private fun Toolkit.warn() = assertFalse(register(tool<Fields>("echo", "d") { }))

    private fun <T : Any> LinkedBlockingQueue<T>.next(): T = poll(10, SECONDS) ?: throw AssertionError("nothing came")

    /** A native engine that has this to say, then nothing until it is closed. */
    private class Scripted(vararg batches: () -> String?) : NativeEngineInterface {
        private val batches = ArrayDeque(batches.asList())
        val said = CountDownLatch(1)
        val submitted = CountDownLatch(1)
        private val abandoned = CountDownLatch(1)

        override fun poll(timeoutMs: ULong, max: UInt): String? {
            batches.removeFirstOrNull()?.let { return it() }
            said.countDown()
            abandoned.await()
            return null
        }

        override fun submit(opId: ULong, request: String) = submitted.countDown()
        override fun abandon() = abandoned.countDown()
        override fun close(timeoutMs: ULong) = true.also { abandon() }
        override fun call(request: String) = "{}"
        override fun cancel(opId: ULong) = Unit
        override fun respond(callId: ULong, reply: String) = Unit
    }

    private fun logs(count: Int) = List(count) {
        """{"type":"host_call","call":0,"op":0,"handler":0,"kind":"log","payload":{"level":"info","target":"t","message":"$it","fields":{}}}"""
    }.joinToString(",", "[", "]")

    @Test
    fun `a sink that fails with an Error is told the next thing`(): Unit = runBlocking {
        val told = LinkedBlockingQueue<String>()
        val own = Engine(EngineOptions().logLevel(LogLevel.WARN).log { told += it.level.name; TODO() })
        val tk = own.createToolkit(echo())
        repeat(3) {
            tk.warn()
            assertEquals("WARN", told.next())
            assertEquals("y", tk.execute("echo", mapOf("x" to "y")).output)
        }
        assertTrue(own.close(5000))
    }

    @Test
    fun `an executor that refuses everything holds up nobody`(): Unit = runBlocking {
        val told = LinkedBlockingQueue<String>()
        val own = Engine(EngineOptions().logLevel(LogLevel.WARN).executor { throw RejectedExecutionException("full") }.log { told += it.level.name })
        val tk = own.createToolkit(echo())
        assertEquals("1", tk.execute("echo", mapOf("x" to 1)).output)
        assertEquals("2", withContext(Dispatchers.Unconfined) { tk.execute("echo", mapOf("x" to 2)) }.output)
        assertEquals("3", tk.executeAsync("echo", mapOf("x" to 3)).get(10, SECONDS).output)
        tk.warn()
        assertEquals("WARN", told.next())
        assertTrue(own.close(5000))
    }

    @Test
    fun `a sink that blocks holds up no result, and no close beyond its time`(): Unit = runBlocking {
        val entered = CountDownLatch(1)
        val release = CountDownLatch(1)
        val told = LinkedBlockingQueue<String>()
        val own = Engine(EngineOptions().logLevel(LogLevel.WARN).log { told += it.message; entered.countDown(); release.await() })
        val tk = own.createToolkit(echo())
        repeat(2) { tk.warn() }
        entered.await()
        assertEquals("1", tk.execute("echo", mapOf("x" to 1)).output)
        assertEquals("2", withContext(Dispatchers.Unconfined) { tk.execute("echo", mapOf("x" to 2)) }.output)
        assertFalse(own.close(50))
        release.countDown()
        assertTrue(own.close(5000))
        assertEquals(1, told.size)
    }

    @Test
    fun `close returns when the sinks were told`(): Unit = runBlocking {
        val closed = CountDownLatch(1)
        val late = LinkedBlockingQueue<Boolean>()
        val own = Engine(EngineOptions().logLevel(LogLevel.WARN).log { late += closed.await(200, MILLISECONDS) })
        val tk = own.createToolkit(echo())
        repeat(3) { tk.warn() }
        assertTrue(own.close(10_000))
        closed.countDown()
        assertEquals(List(3) { false }, late.toList())
    }

    @Test
    fun `a sink may close its engine`() {
        val closed = CompletableFuture<Boolean>()
        lateinit var own: Engine
        own = Engine(EngineOptions().logLevel(LogLevel.WARN).log { closed.complete(own.close(10_000)) })
        own.createToolkitBlocking(echo()).warn()
        assertTrue(closed.get(5, SECONDS))
    }

    @Test
    fun `a log is told what is said before anything runs`() {
        val told = LinkedBlockingQueue<String>()
        val own = Engine(Pump(Scripted({ logs(2) }), daemons) { told += it.message })
        assertEquals(listOf("0", "1"), List(2) { told.next() })
        own.close()
    }

    @Test
    fun `a sink that lags behind misses something, and is told how much`() {
        val entered = CountDownLatch(1)
        val release = CountDownLatch(1)
        val told = LinkedBlockingQueue<LogRecord>()
        val native = Scripted({ logs(1) }, { entered.await(); logs(9000) })
        val own = Engine(Pump(native, daemons) { told += it; entered.countDown(); release.await() })
        native.said.await()
        release.countDown()
        assertTrue(own.close(10_000))
        assertEquals(1 + 8192 + 1, told.size)
        assertEquals(LogRecord(LogLevel.WARN, "bridge", "808 log and metric events were dropped because the program's sinks lag behind", mapOf("dropped" to 808L)), told.last())
    }

    @Test
    fun `whatever ends the pump, those who wait are told`(): Unit = runBlocking {
        val broken = NoClassDefFoundError("gone")
        for ((says, cause) in listOf<Pair<() -> String, Class<*>>>({ -> throw broken } to broken.javaClass, { -> "[{]" } to kotlinx.serialization.SerializationException::class.java, { -> """[{"type":"host_call","call":1}]""" } to NullPointerException::class.java)) {
            lateinit var native: Scripted
            native = Scripted({ native.submitted.await(10, SECONDS); says() })
            val own = Engine(Pump(native, daemons, null))
            val failed = assertThrows(InternalException::class.java) { own.createToolkitBlocking() }
            assertTrue(cause.isInstance(failed.cause), "${failed.cause}")
            assertTrue(own.close(5000))
        }
    }

    @Test
    fun `a cancelled createToolkit leaves no toolkit`(): Unit = runBlocking {
        val own = Engine()
        val threads = Executors.newSingleThreadExecutor()
        val making = launch(threads.asCoroutineDispatcher()) { own.createToolkit() }
        // Its thread is held meanwhile, so that the toolkit is there, and not yet taken, when it is cancelled.
        val held = CountDownLatch(1)
        threads.execute { held.await() }
        while (own.counters().openToolkits == 0L) Thread.onSpinWait()
        making.cancel()
        held.countDown()
        making.join()
        // It is closed behind the back of whoever cancelled.
        withTimeout(10_000) { while (own.counters().openToolkits != 0L) delay(1) }
        threads.shutdown()
        own.close()
    }

    @Test
    fun `what was refused leaves no number`(): Unit = runBlocking {
        val own = Engine()
        val tk = own.createToolkit()
        val before = own.pump.known
        assertThrows(InvalidConfigException::class.java) { own.createToolkitBlocking(echo().set("tols", 1)) }
        assertThrows(InvalidConfigException::class.java) { own.createClient { onMetric { } } }
        assertThrows(ToolspanException::class.java) { tk.register(tool<Fields>("not a name", "d") { }) }
        assertEquals(before, own.pump.known)
        own.close()
    }

    /** One thread, which is taken until [free]. */
    private class Saturated(val pool: ThreadPoolExecutor = Executors.newFixedThreadPool(1) as ThreadPoolExecutor) : Executor by pool {
        private val gate = CountDownLatch(1)

        fun take() = pool.execute { gate.await() }

        /** Waits until something waits for the thread. */
        suspend fun queued() {
            while (pool.queue.isEmpty()) kotlinx.coroutines.yield()
        }

        /** Runs what waited. */
        fun free() {
            gate.countDown()
            pool.shutdown()
            assertTrue(pool.awaitTermination(10, SECONDS))
        }
    }

    @Test
    fun `a tool whose call is over before a thread is free never begins`(): Unit = runBlocking {
        for (close in listOf(false, true)) {
            val threads = Saturated()
            val own = Engine(EngineOptions().executor(threads))
            var begun = false
            val tk = own.createToolkit { tool<Fields>("t", "d") { begun = true } }
            threads.take()
            val call = async(Dispatchers.Default) { runCatching { tk.execute("t") } }
            threads.queued()
            if (close) assertTrue(own.close(5000)) else call.cancelAndJoin()
            threads.free()
            assertFalse(begun)
            own.close()
        }
    }

    @Test
    fun `closing needs no thread of the executor`() {
        val threads = Executors.newSingleThreadExecutor()
        val own = Engine(EngineOptions().executor(threads))
        val tk = own.createToolkitBlocking(echo())
        assertNull(threads.submit { tk.close() }.get(10, SECONDS))
        assertEquals(0L, own.counters().openToolkits)
        threads.shutdown()
        own.close()
    }

    @Test
    fun `an interrupt ends the wait of a close, and stays to be seen`() {
        val own = Engine()
        val tk = own.createToolkitBlocking(echo())
        Thread.currentThread().interrupt()
        tk.close()
        assertTrue(Thread.interrupted())
        assertThrows(ClosedException::class.java) { while (true) tk.tools() }
        own.close()
    }

    @Test
    fun `a time to close in that is negative is refused`(): Unit = runBlocking {
        val own = Engine()
        assertEquals("timeoutMs", assertThrows(InvalidArgumentException::class.java) { own.close(-1) }.path)
        assertEquals(0L, own.counters().openToolkits)
        assertTrue(own.close(Long.MAX_VALUE))
    }
}
