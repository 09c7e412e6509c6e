import dev.toolspan.*
import java.net.http.HttpClient
import java.util.concurrent.ConcurrentHashMap
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
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
            val metrics = mutableListOf<MetricEvent>()
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
            assertEquals(listOf("llm", "run"), metrics.map { it.type })
            val body = Json.write(scenario.seen())
            assertTrue("\\\"model\\\":\\\"other\\\"" in body && "\\\"seed\\\":7" in body, body)
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
