import dev.toolspan.*
import dev.toolspan.internal.ANSWERED
import dev.toolspan.internal.HostFunction
import dev.toolspan.internal.NativeEngine
import dev.toolspan.internal.NativeEngineInterface
import dev.toolspan.internal.NativeLibrary
import dev.toolspan.internal.Pump
import java.io.File
import java.util.concurrent.ConcurrentHashMap
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test

/** What the core has and this package has not, by reflection. */
@Suppress("UNCHECKED_CAST")
class ManifestTest {
    private val manifest = Json.parse(File("../api-manifest.json").readText()) as Fields
    private val records = manifest["records"] as Map<String, List<String>>
    private val choices = manifest["choices"] as Fields
    private val operations = manifest["operations"] as Map<String, Fields>

    private fun missing(what: String, wanted: Collection<String>, has: Collection<String>) =
        assertEquals(emptyList<String>(), (wanted - has.toSet()).map { "$what.$it" }, "missing in this package")

    private fun methods(type: Class<*>) = type.methods.map { it.name }.toSet()

    private fun components(type: Class<*>) = type.recordComponents.map { it.name }

    @Test
    fun `every option can be set`() {
        missing("ToolkitOptions", records.getValue("ToolkitOptions"), methods(ToolkitOptions::class.java))
        missing("ClientOptions", records.getValue("ClientOptions"), methods(ClientOptions::class.java))
        missing("HookOptions", records.getValue("HookOptions"), methods(Hooks::class.java))
        missing("EngineOptions", records.getValue("EngineOptions") - "hostCalls", methods(EngineOptions::class.java))
        missing("mcp.list", operations.getValue("mcp.list")["args"] as List<String>, methods(McpToolsOptions::class.java))
        missing("client.run", operations.getValue("client.run")["args"] as List<String> - setOf("client", "prompt", "id"), methods(RunOptions::class.java))
    }

    @Test
    fun `every field of a record is there`() {
        val types = mapOf(
            "ToolResult" to ToolResult::class, "Hints" to ToolHints::class, "ToolInfo" to ToolInfo::class, "ServerStatus" to ServerStatus::class,
            "InventoryTool" to ListedTool::class, "Inventory" to McpTools::class, "Loss" to Loss::class, "Compiled" to Adaptation::class,
            "Usage" to Usage::class, "ToolCallRecord" to ToolCallRecord::class, "RunResult" to RunResult::class, "Counters" to Counters::class,
            "BeforeLlm" to BeforeLlm::class, "AfterLlm" to AfterLlm::class, "BeforeTool" to BeforeTool::class, "AfterTool" to AfterTool::class,
            "RequestFailure" to RequestFailure::class, "LogRecord" to LogRecord::class,
        )
        for ((name, type) in types) missing(name, records.getValue(name), components(type.java))
        missing("ErrorRecord", records.getValue("ErrorRecord") - setOf("hostCall"), methods(ToolspanException::class.java).map { it.removePrefix("get").replaceFirstChar(Char::lowercase) })
    }

    @Test
    fun `every variant of a union is there, and every choice`() {
        for ((name, type) in mapOf("Event" to Event::class.java, "ContentPart" to ContentPart::class.java, "MetricEvent" to MetricEvent::class.java)) {
            for ((tag, fields) in choices[name] as Map<String, List<String>>) {
                val variant = type.permittedSubclasses.firstOrNull { it.simpleName.equals(tag.replace("_", ""), ignoreCase = true) }
                missing(name, listOf(tag), if (variant == null) emptyList() else listOf(tag))
                missing("$name.$tag", fields, components(variant!!))
            }
        }
        val enums = mapOf(
            "Provider" to Provider.entries, "LogLevel" to LogLevel.entries, "Source" to ToolSource.entries, "ServerState" to ServerState.entries,
            "Action" to LossAction.entries, "RunStatus" to RunStatus.entries, "Limit" to RunLimit.entries, "LlmStatus" to LlmStatus.entries,
        )
        for ((name, values) in enums) missing(name, choices[name] as List<String>, values.map { it.text })
    }

    @Test
    fun `every error code has a class that says so`() {
        val codes = manifest["errorCodes"] as List<String>
        assertEquals(choices["ErrorCode"], codes)
        for (code in codes) {
            val error = exceptionOf(mapOf("code" to code, "message" to "text", "retryable" to true, "path" to "a.b", "httpStatus" to 500L), null)
            val name = code.removeSuffix("_error").split('_').joinToString("") { it.replaceFirstChar(Char::uppercase) } + "Exception"
            assertEquals(listOf(name, code, "$code: a.b: text", true, 500), listOf(error.javaClass.simpleName, error.code, error.message, error.retryable, error.httpStatus))
        }
    }

    /** The native engine, and what it was asked to do. */
    private class Recording(private val native: NativeEngineInterface = NativeEngine(Json.write(mapOf("hostCalls" to ANSWERED)))) : NativeEngineInterface by native {
        val operations: MutableSet<String> = ConcurrentHashMap.newKeySet()

        override fun submit(opId: ULong, request: String) = native.submit(opId, request.also(::record))

        override fun call(request: String) = native.call(request.also(::record))

        private fun record(request: String) {
            operations += (Json.parse(request) as Fields)["op"] as String
        }
    }

    @Test
    fun `every operation is called`(): Unit = runBlocking {
        NativeLibrary.load()
        val native = Recording()
        val engine = Engine(Pump(native, { Thread(it).apply { isDaemon = true }.start() }, null))
        engine.version()
        engine.counters()
        engine.listMcpTools { mcpConfig(emptyMap()) }
        val toolkit = engine.createToolkit()
        toolkit.tools()
        toolkit.get("t")
        toolkit.status()
        toolkit.adapt(Provider.OPENAI)
        toolkit.execute("t")
        assertTrue(toolkit.register(tool<Fields>("t", "d") { }))
        val client = engine.createClient { baseUrl = "http://127.0.0.1:9"; style = Style.OPENAI; model = "m"; apiKey = "k"; retries = 0 }
        client.metrics()
        client.conversationStore().save("id", listOf(mapOf("role" to "user", "content" to "hi")))
        assertEquals(Transcript(null, listOf(mapOf("role" to "user", "content" to "hi"))), client.conversationStore().get("id"))
        val conversation = client.conversation()
        conversation.messages()
        conversation.reset()
        for (run in listOf<suspend () -> Unit>({ client.run("hi") }, { client.ask("hi", "id") }, { client.stream("hi").toList() }, { conversation.send("hi") })) {
            assertThrows(ConnectionFailedException::class.java) { runBlocking { run() } }
        }
        conversation.close()
        client.close()
        toolkit.close()
        assertEquals(operations.keys.toSortedSet(), native.operations.toSortedSet())
        engine.close()
    }

    @Test
    fun `every kind of host call is served`() {
        val options = ClientOptions().bodyTransform { null }.onError { null }.httpClient { error("") }.store({ null }, { _, _ -> null }).onMetric { }
            .hooks { beforeLLM { null }; afterLLM { }; beforeTool { null }; afterTool { null } }
        val functions = options.values.values.flatMap { if (it is Map<*, *>) it.values else listOf(it) }.filterIsInstance<HostFunction>()
        // The pump reads and closes bodies itself, and takes logs.
        val kinds = functions.flatMap { it.kinds } + tool<Map<String, Any?>>("t", "d") { }.function.kinds + listOf("http.read", "http.close", "log")
        missing("hostCalls", manifest["hostCalls"] as List<String>, kinds)
        missing("hostCalls", ANSWERED, kinds)
    }
}
