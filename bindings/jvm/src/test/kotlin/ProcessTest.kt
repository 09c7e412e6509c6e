import dev.toolspan.*
import java.io.File
import java.net.URLClassLoader
import java.nio.file.Files
import java.nio.file.Path
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Timeout
import org.junit.jupiter.api.io.TempDir

/** What programs do whose end is looked at from outside. */
object Programs {
    @JvmStatic
    fun main(args: Array<String>) {
        when (args[0]) {
            "version" -> println(version())
            "open" -> runBlocking {
                val entered = CompletableDeferred<Unit>()
                val toolkit = createToolkit { tool<Fields>("never", "d") { println("entered"); entered.complete(Unit); awaitCancellation() } }
                toolkit.executeAsync("never")
                entered.await()
                createClient { baseUrl = "http://127.0.0.1:9"; style = Style.OPENAI; model = "m"; apiKey = "k" }
                val daemons = Thread.getAllStackTraces().keys.filter { it.name.startsWith("toolspan") || "JNA" in it.name }
                println(daemons.all(Thread::isDaemon))
            }
            "fails" -> try {
                version()
            } catch (error: ToolspanException) {
                println(error.message)
            }
        }
    }
}

@Timeout(120)
class ProcessTest {
    private val library: Path = Path.of(System.getenv("TOOLSPAN_LIBRARY_PATH")).let { if (Files.isDirectory(it)) it.resolve(System.mapLibraryName("toolspan_uniffi")) else it }

    private fun program(name: String, vararg jvm: String, classpath: String = System.getProperty("java.class.path"), environment: Map<String, String?> = emptyMap()) =
        Run("Programs", listOf(name), jvm.asList(), classpath, environment).end()

    /** A classpath with the library as the jar has it. */
    private fun packed(folder: Path): String {
        val target = Files.createDirectories(folder.resolve("dev/toolspan/native/linux-x86_64"))
        Files.createLink(target.resolve(library.fileName), library)
        return "$folder${File.pathSeparator}${System.getProperty("java.class.path")}"
    }

    @Test
    fun `a program ends with everything open`() {
        val (code, out, err) = program("open")
        assertEquals(0 to "", code to err)
        assertEquals("entered\ntrue\n", out)
    }

    @Test
    fun `the library of the jar is unpacked, wherever it can be, and goes again`(@TempDir folder: Path) {
        val temporary = Files.createDirectories(folder.resolve("with a space"))
        val (code, out, err) = program("version", "-Djava.io.tmpdir=$temporary", classpath = packed(folder.resolve("p")), environment = mapOf("TOOLSPAN_LIBRARY_PATH" to null))
        assertEquals(Triple(0, "0.1.0\n", ""), Triple(code, out, err))
        assertEquals(emptyList<Path>(), Files.list(temporary).toList())
    }

    @Test
    fun `where nothing can be written the next folder is taken, and the last failure names them all`(@TempDir folder: Path) {
        val classpath = packed(folder.resolve("p"))
        val nowhere = Files.writeString(folder.resolve("file"), "no folder").resolve("tmp")
        val cache = Files.createDirectories(folder.resolve("cache"))
        val environment = mapOf("TOOLSPAN_LIBRARY_PATH" to null, "XDG_RUNTIME_DIR" to "$nowhere", "XDG_CACHE_HOME" to "$cache")
        assertEquals("0.1.0\n", program("version", "-Djava.io.tmpdir=$nowhere", classpath = classpath, environment = environment).second)
        val none = environment + ("XDG_CACHE_HOME" to "$nowhere")
        val (_, out, _) = program("fails", "-Djava.io.tmpdir=$nowhere", "-Duser.dir=$nowhere", classpath = classpath, environment = none)
        assertTrue(out.startsWith("unsupported: the native library finds no folder to be unpacked to, of $nowhere (") && "toolspan.library.path" in out, out)
    }

    @Test
    fun `a library that is missing, or is not ours, is refused with a reason`(@TempDir folder: Path) {
        val none = folder.resolve("none.so")
        assertTrue(program("fails", "-Dtoolspan.library.path=$none").second.startsWith("not_found: the native library $none is not there"))
        val text = Files.writeString(folder.resolve("text.so"), "not a library")
        assertTrue(program("fails", "-Dtoolspan.library.path=$text").second.startsWith("unsupported: the native library $text does not load"))
        val other = library.resolveSibling(System.mapLibraryName("toolspan_capi"))
        if (Files.exists(other)) assertTrue(program("fails", "-Dtoolspan.library.path=$other").second.startsWith("abi_mismatch: the native library $other does not belong"))
        val bare = program("fails", environment = mapOf("TOOLSPAN_LIBRARY_PATH" to null)).second
        assertTrue(bare.startsWith("unsupported: this jar has no native library for ") && "TOOLSPAN_LIBRARY_PATH" in bare, bare)
    }

    @Test
    fun `two class loaders have a library each`() {
        val urls = System.getProperty("java.class.path").split(File.pathSeparator).map { File(it).toURI().toURL() }.toTypedArray()
        val loaders = List(2) { URLClassLoader(urls, ClassLoader.getPlatformClassLoader()) }
        val versions = loaders.map { it.loadClass("dev.toolspan.Toolspan").getMethod("version").invoke(null) }
        assertEquals(listOf("0.1.0", "0.1.0"), versions)
        assertFalse(loaders[0].loadClass("dev.toolspan.Engine") === loaders[1].loadClass("dev.toolspan.Engine"))
    }

    @Test
    fun `many processes unpack at the same time`(@TempDir folder: Path) {
        val classpath = packed(folder.resolve("p"))
        val runs = List(4) { Run("Programs", listOf("version"), listOf("-Djava.io.tmpdir=$folder"), classpath, mapOf("TOOLSPAN_LIBRARY_PATH" to null)) }
        assertEquals(List(4) { Triple(0, "0.1.0\n", "") }, runs.map(Run::end))
    }

    @Test
    fun `a dropped engine ends its thread`() {
        fun pumps() = Thread.getAllStackTraces().keys.filter { it.name == "toolspan-pump" }
        val others = pumps()
        fun drop() = Engine().createToolkitBlocking().let { (pumps() - others.toSet()).single() }
        val pump = drop()
        while (pump.isAlive) System.gc()
    }
}
