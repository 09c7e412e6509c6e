import dev.toolspan.ClientOptions
import dev.toolspan.Json
import dev.toolspan.Style
import java.io.File
import java.net.URI
import java.net.http.HttpClient
import java.net.http.HttpRequest
import java.net.http.HttpRequest.BodyPublishers
import java.net.http.HttpResponse.BodyHandlers

typealias Fields = Map<String, Any?>

/** The peers every test talks to: one program, which ends with the tests. */
object Fixtures {
    private val program = System.getenv("TOOLSPAN_FIXTURES") ?: "../../target/debug/toolspan-fixtures"
    private val process = ProcessBuilder(program, "serve").redirectError(ProcessBuilder.Redirect.INHERIT).start()
    private val control = (Json.parse(process.inputStream.bufferedReader().readLine()) as Fields)["control"] as String
    private val http = HttpClient.newHttpClient()

    fun ask(method: String, path: String, body: Any? = null): Any? {
        val text = if (body == null) BodyPublishers.noBody() else BodyPublishers.ofString(Json.write(body))
        val answer = http.send(HttpRequest.newBuilder(URI(control + path)).method(method, text).build(), BodyHandlers.ofString())
        check(answer.statusCode() in 200..299) { "$method $path: ${answer.statusCode()} ${answer.body()}" }
        return answer.body().ifEmpty { null }?.let(Json::parse)
    }

    fun scenario(script: Fields) = Scenario(ask("POST", "/scenarios", script) as Fields)
}

class Scenario(private val servers: Fields) : AutoCloseable {
    private val path = "/scenarios/${servers["id"]}"

    fun llm(name: String = "main") = part("llm", name)["baseUrl"] as String

    fun mcp(name: String) = part("mcp", name)

    fun seen() = Fixtures.ask("GET", "$path/seen") as Fields

    fun await(vararg until: Pair<String, Any?>) = Fixtures.ask("POST", "$path/wait", mapOf("until" to until.toMap()))

    fun open(gate: String) = Fixtures.ask("POST", "$path/gates/$gate")

    fun upstream(name: String = "main") = ClientOptions().baseUrl(llm(name)).style(Style.OPENAI).model("m").apiKey("k")

    override fun close() {
        Fixtures.ask("DELETE", path)
    }

    @Suppress("UNCHECKED_CAST")
    private fun part(kind: String, name: String) = (servers[kind] as Map<String, Fields>).getValue(name)
}

/** An upstream that asks for one call of [name] and then says [text]. */
fun oneCall(name: String, args: Fields = emptyMap(), text: String = "done"): Fields = mapOf(
    "llm" to mapOf("main" to mapOf("style" to "openai", "replies" to listOf(mapOf("calls" to listOf(mapOf("id" to "c1", "name" to name, "args" to args))), mapOf("text" to text)))),
)

/** A program of its own: what it said, and how it ended. */
class Run(main: String, args: List<String> = emptyList(), jvm: List<String> = emptyList(), classpath: String = System.getProperty("java.class.path"), environment: Map<String, String?> = emptyMap()) {
    private val java = File(System.getProperty("java.home"), "bin/java").path
    private val builder = ProcessBuilder(listOf(java, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC") + jvm + listOf("-cp", classpath, main) + args)
    val process: Process

    init {
        for ((name, value) in environment) if (value == null) builder.environment().remove(name) else builder.environment()[name] = value
        process = builder.start()
    }

    val said get() = process.inputStream.bufferedReader()

    /** Exit code, stdout, stderr. */
    fun end(): Triple<Int, String, String> {
        val out = said.readText()
        val err = process.errorStream.bufferedReader().readText()
        return Triple(process.waitFor(), out, err)
    }
}
