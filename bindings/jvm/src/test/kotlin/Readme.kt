import dev.toolspan.*
import java.io.File
import java.nio.file.Files
import java.nio.file.Path
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir

/** The example of README.md, with the addresses of the test. */
suspend fun readme(config: String, url: String) {
    createToolkit {
        mcpConfig(config)
        tool<Add>("add", "Add two integers") { it.a + it.b }
    }.use { toolkit ->
        val client = createClient { baseUrl = url; style = Style.OPENAI; model = "m" }
        println(client.run("What is 2 + 2?", toolkit).text)
        client.stream("And 3 + 3?", toolkit).collect { if (it is Event.Text) print(it.delta) }
    }
}

class ReadmeTest {
    private fun example(language: String, source: String) {
        val block = File("README.md").readText().substringAfter("```$language\n").substringBefore("```")
        val body = block.substringAfter(if (language == "kotlin") "main() {\n" else "InterruptedException {\n").substringBeforeLast("\n}")
        val here = body.replace("\"mcp.json\"", "config").replace("\"https://api.example.com/v1\"", "url")
        assertTrue(here in File(source).readText(), "README.md says something else than $source:\n$here")
    }

    private fun says(language: String, folder: Path, run: (config: String, url: String) -> Unit) {
        val answers = listOf(mapOf("calls" to listOf(mapOf("id" to "c1", "name" to "add", "args" to mapOf("a" to 2, "b" to 2)))), mapOf("text" to "four"), mapOf("text" to "six"))
        Fixtures.scenario(mapOf("llm" to mapOf("main" to mapOf("style" to "openai", "replies" to answers)))).use { scenario ->
            val config = Files.writeString(folder.resolve("$language.json"), """{"mcpServers": {}}""")
            val out = System.out
            val said = java.io.ByteArrayOutputStream()
            System.setOut(java.io.PrintStream(said))
            try {
                run("$config", scenario.llm())
            } finally {
                System.setOut(out)
            }
            assertEquals("four\nsix", said.toString())
        }
    }

    @Test
    fun `the example of the README runs in Kotlin`(@TempDir folder: Path) {
        example("kotlin", "src/test/kotlin/Readme.kt")
        says("kotlin", folder) { config, url -> runBlocking { readme(config, url) } }
    }

    @Test
    fun `the example of the README runs in Java`(@TempDir folder: Path) {
        example("java", "src/test/java/ReadmeJava.java")
        says("java", folder) { config, url -> ReadmeJava.readme(config, url) }
    }
}
