import dev.toolspan.*
import java.net.http.HttpClient
import java.io.InputStream
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.CountDownLatch
import java.util.concurrent.LinkedBlockingQueue
import java.util.concurrent.TimeUnit.SECONDS
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import org.junit.jupiter.api.AfterAll
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertSame
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Timeout

@Timeout(60)
class ClientTest {
    private fun says(text: String) = mapOf("llm" to mapOf("main" to mapOf("style" to "openai", "replies" to listOf(mapOf("text" to text)))))

    @Test
    fun `a run calls the program's tool and gives the answer`(): Unit = runBlocking {
        Fixtures.scenario(oneCall("add", mapOf("a" to 1, "b" to 2), "three")).use { scenario ->
            val client = engine.createClient(scenario.upstream())
            val result = client.run("1 + 2?", engine.createToolkit { tool<Add>("add", "Add") { it.a + it.b } })
            assertEquals(listOf<Any?>("three", RunStatus.DONE, 2L, "m"), listOf(result.text, result.status, result.turns, result.model))
            assertEquals(listOf(ToolCallRecord("c1", "add", mapOf("a" to 1L, "b" to 2L), "3", false)), result.toolCalls)
            assertEquals(Usage(20, 10, 30), result.usage)
        }
    }

    @Test
    fun `what the program's functions threw is the cause`(): Unit = runBlocking {
        val original = IllegalStateException("mine")
        Fixtures.scenario(oneCall("fails", text = "sorry")).use { scenario ->
            val toolkit = engine.createToolkit { tool<Fields>("fails", "d") { throw original } }
            assertSame(original, engine.createClient(scenario.upstream()).run("go", toolkit).toolCalls.single().exception)
        }
        Fixtures.scenario(says("hi")).use { scenario ->
            val client = engine.createClient(scenario.upstream().hooks { beforeLLM { throw original } })
            assertSame(original, assertThrows(HostFailedException::class.java) { client.runBlocking("go") }.cause)
            assertSame(original, assertThrows(HostFailedException::class.java) { runBlocking { client.stream("go").toList() } }.cause)
        }
    }

    @Test
    fun `a stream gives the events of the run`(): Unit = runBlocking {
        Fixtures.scenario(oneCall("add", mapOf("a" to 1, "b" to 1), "so be it")).use { scenario ->
            val toolkit = engine.createToolkit { tool<Add>("add", "Add") { it.a + it.b } }
            val flow = engine.createClient(scenario.upstream()).stream("go", toolkit)
            assertEquals(0L, engine.counters().operations)
            val events = flow.toList()
            assertEquals(listOf("2"), events.filterIsInstance<Event.ToolResult>().map { it.output })
            assertEquals("so be it", events.filterIsInstance<Event.Text>().joinToString("") { it.delta })
            assertEquals("so be it", (events.last() as Event.Done).result.text)
        }
    }

    @Test
    fun `leaving a stream ends its run`(): Unit = runBlocking {
        Fixtures.scenario(oneCall("never")).use { scenario ->
            val toolkit = engine.createToolkit { tool<Fields>("never", "d") { awaitCancellation() } }
            val client = engine.createClient(scenario.upstream())
            client.stream("go", toolkit).first { it is Event.ToolCall }
            assertEquals(0L to 0L, engine.counters().let { it.operations to it.openStreams })
        }
    }

    @Test
    fun `a cancelled run leaves a client that works`(): Unit = runBlocking {
        Fixtures.scenario(oneCall("never", text = "again")).use { scenario ->
            val entered = CompletableDeferred<Unit>()
            val toolkit = engine.createToolkit { tool<Fields>("never", "d") { entered.complete(Unit); awaitCancellation() } }
            val client = engine.createClient(scenario.upstream())
            val run = launch(Dispatchers.Default) { client.run("go", toolkit) }
            entered.await()
            run.cancelAndJoin()
            assertEquals(0L, engine.counters().operations)
            assertEquals("again", client.run("go").text)
        }
    }

    @Test
    fun `the program's store, transport, hooks and sinks are used`(): Unit = runBlocking {
        Fixtures.scenario(says("hello")).use { scenario ->
            val kept = ConcurrentHashMap<String, Transcript>()
            val metrics = LinkedBlockingQueue<MetricEvent>()
            val sent = mutableListOf<String>()
            val jdk = HttpTransport.of(HttpClient.newHttpClient())
            val client = engine.createClient(
                scenario.upstream().store({ kept[it] }, { id, transcript -> kept[id] = transcript }).onMetric { metrics += it }
                    .httpClient(HttpTransport { request -> sent += request.method; jdk.send(request) })
                    .bodyTransform { it + ("seed" to 7) }
                    .hooks { beforeLLM { LlmChange().model("other") } },
            )
            assertEquals("hello", client.ask("hi", "c1").text)
            assertEquals(listOf("user", "assistant"), kept.getValue("c1").messages.map { it["role"] })
            assertEquals(kept["c1"], client.conversationStore().get("c1"))
            assertEquals(listOf("POST"), sent)
            assertEquals(listOf("llm", "run"), List(2) { metrics.poll(10, SECONDS)?.type })
            val body = Json.write(scenario.seen())
            assertTrue("\\\"model\\\":\\\"other\\\"" in body && "\\\"seed\\\":7" in body, body)
        }
    }

    private class Body(private val read: () -> Int) : InputStream() {
        val closed = CompletableDeferred<Unit>()

        override fun read() = read.invoke()
        override fun close() { closed.complete(Unit) }
    }

    private val nowhere = ClientOptions().baseUrl("http://127.0.0.1:9").style(Style.OPENAI).model("m").apiKey("k")

    @Test
    fun `a body that comes when nobody waits any more is closed`(): Unit = runBlocking {
        val asked = CompletableDeferred<Unit>()
        val over = CountDownLatch(1)
        val body = Body { -1 }
        // They are looked at when the transport has answered.
        val headers = object : AbstractList<HttpHeader>() {
            override val size: Int get() = 0.also { asked.complete(Unit); over.await() }
            override fun get(index: Int) = throw IndexOutOfBoundsException()
        }
        val client = engine.createClient(nowhere.httpClient { _: HttpRequest -> HttpResponse(200, headers, body) })
        val run = launch(Dispatchers.Default) { client.run("go") }
        asked.await()
        run.cancelAndJoin()
        over.countDown()
        withTimeout(10_000) { body.closed.await() }
    }

    @Test
    fun `a body that is being read is closed with its run, whatever sinks do`(): Unit = runBlocking {
        val reading = CompletableDeferred<Unit>()
        val release = CountDownLatch(1)
        lateinit var body: Body
        body = Body { reading.complete(Unit); runBlocking { body.closed.await() }; -1 }
        val own = Engine(EngineOptions().logLevel(LogLevel.WARN).log { release.await() })
        own.createToolkit { tool<Fields>("t", "d") { } }.register(tool<Fields>("t", "d") { })
        val client = own.createClient(nowhere.httpClient { _: HttpRequest -> HttpResponse(200, emptyList(), body) })
        val run = launch(Dispatchers.Default) { client.run("go") }
        reading.await()
        run.cancelAndJoin()
        withTimeout(10_000) { body.closed.await() }
        release.countDown()
        assertTrue(own.close(5000))
    }

    @Test
    fun `a client of the JDK that follows redirects is refused`() {
        for (follows in listOf(HttpClient.Redirect.NORMAL, HttpClient.Redirect.ALWAYS)) {
            val client = HttpClient.newBuilder().followRedirects(follows).build()
            assertEquals("httpClient", assertThrows(InvalidArgumentException::class.java) { ClientOptions().httpClient(client) }.path)
        }
    }

    @Test
    fun `content parts, conversations and metrics`(): Unit = runBlocking {
        Fixtures.scenario(mapOf("llm" to mapOf("main" to mapOf("style" to "openai", "replies" to listOf(mapOf("text" to "a"), mapOf("text" to "b")))))).use { scenario ->
            engine.createClient(scenario.upstream()).use { client ->
                client.conversation().use { conversation ->
                    assertEquals("a", conversation.send(listOf(ContentPart.Text("hi"))).text)
                    assertEquals("b", conversation.send("and?").text)
                    assertEquals(4, conversation.messages().size)
                    conversation.reset()
                    assertEquals(0, conversation.messages().size)
                }
                assertTrue("toolspan_llm_requests_total{model=\"m\",status=\"ok\"} 2" in client.metrics(), client.metrics())
            }
        }
    }

    companion object {
        val engine = Engine()

        @JvmStatic
        @AfterAll
        fun end() {
            assertTrue(engine.close(5000))
        }
    }
}
