import dev.toolspan.*
import java.math.BigInteger
import kotlin.coroutines.AbstractCoroutineContextElement
import kotlin.coroutines.CoroutineContext
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withContext
import kotlinx.serialization.KSerializer
import kotlinx.serialization.builtins.serializer
import kotlinx.serialization.descriptors.buildClassSerialDescriptor
import kotlinx.serialization.encoding.Decoder
import kotlinx.serialization.encoding.Encoder
import kotlinx.serialization.encoding.decodeStructure
import org.junit.jupiter.api.AfterAll
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertSame
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Timeout

@JvmRecord
data class Add(@field:Description("the first") val a: Int, val b: Int)

@JvmRecord
data class Order(val size: Size, val tags: Set<String>, val note: java.util.Optional<String>, val price: Map<String, Double>, val lines: List<Add>) {
    enum class Size { SMALL, LARGE }
}

/** As the compiler plugin writes it. */
class Place(@field:Description("where") val name: String, val floor: Int) {
    companion object {
        fun serializer(): KSerializer<Place> = object : KSerializer<Place> {
            override val descriptor = buildClassSerialDescriptor("Place") {
                element("name", String.serializer().descriptor)
                element("floor", Int.serializer().descriptor, isOptional = true)
            }

            override fun serialize(encoder: Encoder, value: Place) = error("never written")

            override fun deserialize(decoder: Decoder): Place = decoder.decodeStructure(descriptor) {
                var name = ""
                var floor = 0
                while (true) {
                    when (decodeElementIndex(descriptor)) {
                        0 -> name = decodeStringElement(descriptor, 0)
                        1 -> floor = decodeIntElement(descriptor, 1)
                        else -> break
                    }
                }
                Place(name, floor)
            }
        }
    }
}

private class Who(val name: String) : AbstractCoroutineContextElement(Who) {
    companion object Key : CoroutineContext.Key<Who>
}

@Timeout(60)
class ToolkitTest {
    private fun any(name: String, run: suspend ToolCall.(Fields) -> Any?) = tool<Fields>(name, name, run)

    private suspend fun toolkit(vararg tools: Tool) = engine.createToolkit { tools(tools.asList()) }

    /** Without the check of the core, so that it is the decoder that reads the arguments. */
    private suspend fun unchecked(vararg tools: Tool) = engine.createToolkit { tools(tools.asList()).validateArguments(false) }

    @Test
    fun `what a tool returns becomes its output`(): Unit = runBlocking {
        toolkit(
            any("text") { "plain" }, any("number") { 4 }, any("object") { mapOf("b" to 1, "a" to listOf(null)) }, any("record") { Add(1, 2) },
            any("nothing") { }, any("later") { java.util.concurrent.CompletableFuture.completedFuture("late").get() },
            any("result") { ToolResult("no", isError = true, metadata = mapOf("n" to 1L)) },
        ).use { tk ->
            assertEquals(ToolResult("plain"), tk.execute("text"))
            assertEquals("4", tk.execute("number").output)
            assertEquals("""{"b":1,"a":[null]}""", tk.execute("object").output)
            assertEquals("""{"a":1,"b":2}""", tk.execute("record").output)
            assertEquals("", tk.execute("nothing").output)
            assertEquals(ToolResult("no", isError = true, metadata = mapOf("n" to 1L)), tk.execute("result"))
        }
    }

    @Test
    fun `what a tool throws is the text of an error result, and its exception`(): Unit = runBlocking {
        val original = IllegalStateException("too far")
        val deep = StackOverflowError()
        toolkit(any("throws") { throw original }, any("error") { throw deep }, any("cancels") { throw CancellationException("mine") }).use { tk ->
            val result = tk.execute("throws")
            assertEquals("too far" to true, result.output to result.isError)
            assertSame(original, result.exception)
            assertSame(deep, tk.execute("error").exception)
            assertEquals("mine", tk.execute("cancels").output)
        }
    }

    @Test
    fun `a value that JSON cannot hold is refused with its path`(): Unit = runBlocking {
        val circle = HashMap<String, Any?>().also { it["self"] = it }
        toolkit(any("nan") { mapOf("a" to listOf(Double.NaN)) }, any("circle") { circle }, any("object") { Any() }, any("half") { "\uD800" }).use { tk ->
            assertEquals("invalid_argument: ok.value.a[0]: NaN is no number in JSON", tk.execute("nan").exception!!.message)
            assertTrue(tk.execute("circle").exception is LimitExceededException)
            assertTrue("has no form in JSON" in tk.execute("object").output)
            assertTrue("half a surrogate pair" in tk.execute("half").output)
            assertThrows(InvalidArgumentException::class.java) { runBlocking { tk.execute("nan", mapOf("x" to "\uDC00")) } }
        }
        Unit
    }

    @Test
    fun `records describe and check the arguments`(): Unit = runBlocking {
        val add = tool<Add>("add", "Add") { it.a + it.b }
        val integer = mapOf("type" to "integer")
        assertEquals(
            mapOf("type" to "object", "properties" to mapOf("a" to integer + ("description" to "the first"), "b" to integer), "required" to listOf("a", "b")),
            add.definition["inputSchema"],
        )
        val order = tool<Order>("order", "Order") { "${it.size} ${it.tags} ${it.note.orElse("-")} ${it.price} ${it.lines}" }
        val schema = Json.write(order.definition["inputSchema"])
        assertTrue("""{"size":{"type":"string","enum":["SMALL","LARGE"]},"tags":{"type":"array","items":{"type":"string"},"uniqueItems":true}""" in schema, schema)
        assertTrue(schema.endsWith(""""required":["size","tags","price","lines"]}"""), schema)
        unchecked(add, order).use { tk ->
            assertEquals("3", tk.execute("add", mapOf("a" to 1, "b" to 2)).output)
            assertEquals("Invalid arguments. b: is missing", tk.execute("add", mapOf("a" to 1)).output)
            assertEquals("Invalid arguments. a: must be a number, not \"x\"", tk.execute("add", mapOf("a" to "x", "b" to 2)).output)
            assertEquals("Invalid arguments. a: must be an integer of that size, not 3000000000", tk.execute("add", mapOf("a" to 3_000_000_000, "b" to 2)).output)
            val args = """{"size":"LARGE","tags":["x","x"],"price":{"eur":1},"lines":[{"a":1,"b":2}]}"""
            assertEquals("LARGE [x] - {eur=1.0} [Add(a=1, b=2)]", tk.execute("order", args).output)
        }
        class Plain(@Suppress("unused") val a: Int)
        val refused = assertThrows(IllegalArgumentException::class.java) { tool<Plain>("plain", "d") { } }
        assertTrue("is neither a record (@JvmRecord data class) nor @Serializable" in refused.message!!)
    }

    @Test
    fun `cancelling stops the core and the tool before join returns`(): Unit = runBlocking {
        val entered = CompletableDeferred<Unit>()
        val cancelled = CompletableDeferred<Unit>()
        toolkit(any("never") { entered.complete(Unit); try { awaitCancellation() } finally { cancelled.complete(Unit) } }).use { tk ->
            val call = launch(Dispatchers.Default) { tk.execute("never") }
            entered.await()
            call.cancelAndJoin()
            assertEquals(0L, engine.counters().operations)
            cancelled.await()
        }
    }

    @Test
    fun `tools see the context of their caller, and run at the same time`(): Unit = runBlocking {
        val all = List(8) { CompletableDeferred<Unit>() }
        toolkit(any("who") { args -> all[(args["n"] as Long).toInt()].complete(Unit); all.forEach { it.await() }; currentCoroutineContext()[Who]!!.name }).use { tk ->
            val names = List(8) { n -> async { withContext(Who("w$n")) { tk.execute("who", mapOf("n" to n)).output } } }.awaitAll()
            assertEquals(List(8) { "w$it" }, names)
        }
    }

    @Test
    fun `a tool may call its own toolkit, also with a call that blocks`(): Unit = runBlocking {
        lateinit var tk: Toolkit
        tk = toolkit(any("outer") { tk.execute("middle").output + "!" }, any("middle") { tk.executeBlocking("inner").output + "?" }, any("inner") { "x" })
        withContext(Dispatchers.Unconfined) { assertEquals("x?!", tk.execute("outer").output) }
        tk.close()
    }

    @Test
    fun `no code of the program runs on the thread of the pump`(): Unit = runBlocking(Dispatchers.Unconfined) {
        val own = Engine(EngineOptions().log { threads += Thread.currentThread().name })
        val tk = own.createToolkit { tool<Fields>("t", "d") { threads += Thread.currentThread().name } }
        tk.execute("t")
        threads += Thread.currentThread().name
        tk.executeAsync("t").thenRun { threads += Thread.currentThread().name }.join()
        own.close()
        assertEquals(emptyList<String>(), threads.filter { "pump" in it })
    }

    private val threads = java.util.concurrent.CopyOnWriteArrayList<String>()

    @Test
    fun `large, deep and unusual values pass or are refused, never lost`(): Unit = runBlocking {
        toolkit(any("echo") { it }).use { tk ->
            suspend fun round(args: Fields) = Json.parse(tk.execute("echo", args).output)
            val odd = linkedMapOf<String, Any?>(
                "nul" to "\u0000", "emoji" to "😀", "z" to 1L, "a" to 2L, "half" to 0.5, "big" to BigInteger("123456789012345678901234567890"),
                "exact" to java.math.BigDecimal("0.1234567890123456789012345"), "null" to null, "yes" to true,
            )
            val back = round(odd) as Fields
            assertEquals(odd, back)
            assertEquals(odd.keys.toList(), back.keys.toList())
            val large = mapOf("text" to "x".repeat(4 shl 20))
            assertEquals(large, round(large))
            var deep: Fields = emptyMap()
            repeat(200) { deep = mapOf("d" to deep) }
            assertThrows(LimitExceededException::class.java) { runBlocking { tk.execute("echo", deep) } }
        }
        Unit
    }

    @Test
    fun `ten thousand calls leave nothing behind`(): Unit = runBlocking {
        toolkit(any("text") { "t" }).use { tk ->
            repeat(100) { assertEquals(List(100) { "t" }, List(100) { async(Dispatchers.Default) { tk.execute("text").output } }.awaitAll()) }
        }
        assertEquals(0L, engine.counters().operations)
    }

    @Test
    fun `a thousand cancelled calls leave nothing behind`(): Unit = runBlocking {
        toolkit(any("never") { awaitCancellation() }).use { tk ->
            val calls = List(1000) { launch(Dispatchers.Default) { tk.execute("never") } }
            calls.forEach { it.cancelAndJoin() }
            assertEquals(0L, engine.counters().operations)
            assertThrows(TimeoutException::class.java) { tk.executeBlocking("never", timeoutMs = 1) }
        }
    }

    @Test
    fun `a serializable class describes and checks the arguments`(): Unit = runBlocking {
        val place = tool<Place>("place", "d") { "${it.name} ${it.floor}" }
        val schema = """{"type":"object","properties":{"name":{"type":"string","description":"where"},"floor":{"type":"integer"}},"required":["name"]}"""
        assertEquals(schema, Json.write(place.definition["inputSchema"]))
        unchecked(place).use { tk ->
            assertEquals("hall 0", tk.execute("place", mapOf("name" to "hall", "other" to 1)).output)
            assertEquals("hall 3", tk.execute("place", mapOf("name" to "hall", "floor" to 3)).output)
            assertTrue(tk.execute("place", mapOf("name" to "hall", "floor" to "x")).let { it.isError && it.exception is IllegalArgumentException })
        }
    }

    @Test
    fun `a sink may call the library, and one that blocks or fails stops nothing but sinks`(): Unit = runBlocking {
        val nested = CompletableDeferred<String>()
        lateinit var own: Engine
        own = Engine(EngineOptions().log { record ->
            if (nested.complete(own.createToolkitBlocking(ToolkitOptions().tool(any("t") { record.message })).executeBlocking("t").output)) error("fails")
        })
        own.createToolkit { tool(any("taken") { }) }.use { tk ->
            tk.register(any("taken") { })
            assertTrue("taken" in nested.await())
            assertEquals("", tk.execute("taken").output)
        }
        own.close()
    }

    /** 32-bit platforms and JNA mistake small and structured types: the engine passes texts, truths and whole numbers of 4 and 8 bytes. */
    @Test
    fun `the native engine takes and gives only plain types`() {
        val methods = java.io.File("src/main/kotlin/dev/toolspan/internal/NativeEngine.kt").readText()
            .substringAfter("public interface NativeEngineInterface {").substringBefore("companion object")
        val types = Regex("`: `?kotlin\\.(\\w+)`?|\\): kotlin\\.(\\w+)|`: (\\w+)|\\): (\\w+)").findAll(methods).flatMap { it.groupValues.drop(1) }.filter(String::isNotEmpty).toSet()
        assertEquals(setOf("String", "UInt", "ULong", "Boolean"), types)
    }

    @Test
    fun `tools are listed, found and registered`(): Unit = runBlocking {
        toolkit(any("first") { "1" }).use { tk ->
            assertEquals(listOf("first"), tk.tools().map { it.name })
            assertEquals(ToolSource.NATIVE, tk.get("first")!!.source)
            assertNull(tk.get("second"))
            assertTrue(tk.register(any("second") { "2" }))
            assertFalse(tk.register(any("first") { "other" }))
            System.gc()
            assertEquals(listOf("2", "1", "Unknown tool: third"), listOf("second", "first", "third").map { tk.execute(it).output })
        }
    }

    @Test
    fun `an option that does not exist is an error that names it, and shows the caller`() {
        val error = assertThrows(InvalidConfigException::class.java) { runBlocking { engine.createToolkit { set("tols", listOf<Any>()) } } }
        assertEquals("tols", error.path)
        assertTrue(error.message!!.startsWith("invalid_config: tols: "))
        assertEquals("workers", assertThrows(InvalidArgumentException::class.java) { Engine(EngineOptions().workers(0)) }.path)
    }

    @Test
    fun `closing is idempotent, and what is closed is gone`(): Unit = runBlocking {
        val own = Engine()
        val tk = own.createToolkit { tool<Fields>("text", "d") { "t" } }
        repeat(2) { tk.close() }
        assertEquals(0L, own.counters().openToolkits)
        assertThrows(ClosedException::class.java) { tk.tools() }
        assertTrue(own.close(5000) && own.close(5000))
        tk.close()
        assertThrows(ClosedException::class.java) { own.counters() }
        assertThrows(ClosedException::class.java) { own.createToolkitBlocking() }
        Unit
    }

    @Test
    fun `close ends what runs, from many threads`(): Unit = runBlocking {
        val own = Engine()
        val tk = own.createToolkit { tool<Fields>("never", "d") { awaitCancellation() } }
        val calls = List(500) { tk.executeAsync("never") }
        List(32) { async(Dispatchers.IO) { own.close(5000) } }.awaitAll().forEach(::assertTrue)
        assertEquals(setOf("closed"), calls.map { call -> call.handle { _, error -> (error as ToolspanException).code }.join() }.toSet())
    }

    @Test
    fun `what is dropped is closed`() {
        val own = Engine()
        fun drop() = own.createToolkitBlocking(ToolkitOptions().tool(any("t") { "" }))
        drop()
        while (own.counters().openToolkits > 0) System.gc()
        own.close()
    }

    @Test
    fun `two engines do not know each other's toolkits`(): Unit = runBlocking {
        val other = Engine()
        val tk = other.createToolkit()
        val client = engine.createClient { baseUrl = "http://127.0.0.1:9"; style = Style.OPENAI; model = "m"; apiKey = "k" }
        assertThrows(IllegalArgumentException::class.java) { client.runBlocking("hi", RunOptions().toolkit(tk)) }
        other.close()
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
