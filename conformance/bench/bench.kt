// The scenario from Kotlin, through the public API. See src/lib.rs for what it prints.
import dev.toolspan.Json
import dev.toolspan.Style
import dev.toolspan.createClient
import dev.toolspan.createToolkit
import kotlin.math.roundToInt
import kotlinx.coroutines.runBlocking

/** Runs until the compiler of the JVM has seen enough; what is measured is the program that runs for long. */
private const val WARM_UP = 2000

fun main(): Unit = runBlocking {
    val plan = Json.parse(System.getenv("BENCH")) as Map<*, *>
    val toolkit = createToolkit { mcpConfig(mapOf("mcpServers" to mapOf("calc" to mapOf("command" to plan["command"])))) }
    val client = createClient {
        baseUrl = plan["baseUrl"] as String
        style = Style.OPENAI
        model = "bench"
    }
    val runs = (plan["runs"] as Long).toInt()
    val times = DoubleArray(runs)
    for (run in -WARM_UP until runs) {
        val start = System.nanoTime()
        val result = client.run("What is 2 + 2, twice?", toolkit)
        if (run >= 0) times[run] = (System.nanoTime() - start) / 1000.0
        check(result.toolCalls.size == 2) { "${result.toolCalls.size} tool calls instead of 2" }
    }
    toolkit.close()
    times.sort()
    fun at(share: Double) = times[((runs - 1) * share).roundToInt()]
    println(Json.write(mapOf("median_us" to at(0.5), "p95_us" to at(0.95), "runs" to runs)))
}
