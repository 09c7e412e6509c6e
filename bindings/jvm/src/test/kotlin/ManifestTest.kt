import dev.toolspan.*
import dev.toolspan.internal.ANSWERED
import dev.toolspan.internal.HostFunction
import java.io.File
import org.junit.jupiter.api.Assertions.assertEquals
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

    @Test
    fun `every operation is called and every kind of host call is served`() {
        val sources = File("src/main/kotlin").walk().filter { it.extension == "kt" }.joinToString("\n") { it.readText() }
        // Objects are closed by their kind.
        val closed = setOf("toolkit.close", "client.close", "conversation.close")
        missing("operations", operations.keys - closed, Regex("\"([a-z]+(\\.[a-zA-Z]+)?)\"").findAll(sources).map { it.groupValues[1] }.toList())
        assertTrue("\"\$kind.close\"" in sources)
        val options = ClientOptions().bodyTransform { null }.onError { null }.httpClient { error("") }.store({ null }, { _, _ -> null }).onMetric { }
            .hooks { beforeLLM { null }; afterLLM { }; beforeTool { null }; afterTool { null } }
        val functions = options.values.values.flatMap { if (it is Map<*, *>) it.values else listOf(it) }.filterIsInstance<HostFunction>()
        val kinds = functions.flatMap { it.kinds } + tool<Map<String, Any?>>("t", "d") { }.function.kinds + "log"
        missing("hostCalls", manifest["hostCalls"] as List<String>, kinds)
        missing("hostCalls", ANSWERED, kinds)
    }
}
