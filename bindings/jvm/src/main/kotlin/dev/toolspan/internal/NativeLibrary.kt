package dev.toolspan.internal

import com.sun.jna.Native
import com.sun.jna.Platform
import dev.toolspan.ToolspanException
import dev.toolspan.exceptionOf
import java.io.IOException
import java.nio.file.Files
import java.nio.file.Path
import java.nio.file.attribute.PosixFilePermissions

/** Finds the native library, and makes sure that it belongs to this package. */
internal object NativeLibrary {
    /** Names the file or its folder, in place of the one in the jar: a system property, and a variable of the environment. */
    private const val PROPERTY = "toolspan.library.path"
    private const val VARIABLE = "TOOLSPAN_LIBRARY_PATH"

    private val NAME: String = System.mapLibraryName("toolspan_uniffi")

    /** The file that JNA opens. Read by generated code. */
    @JvmStatic
    lateinit var path: String
        private set

    private var ready = false

    /** Loads and checks the library, once. What fails now may succeed later. */
    @Synchronized
    fun load() {
        if (ready) return
        val named = System.getProperty(PROPERTY) ?: System.getenv(VARIABLE)
        if (named != null) open(Path.of(named).toAbsolutePath().let { if (Files.isDirectory(it)) it.resolve(NAME) else it }) else unpacked(::open)
        ready = true
    }

    private fun open(file: Path) {
        if (!Files.isRegularFile(file)) throw refuse("not_found", "the native library $file is not there")
        path = file.toString()
        val version: UInt
        val hash: ULong
        try {
            uniffiEnsureInitialized()
            version = abiVersion()
            hash = schemaHash()
        } catch (error: Throwable) {
            throw unusable(file, error)
        }
        if (version != Abi.VERSION) throw mismatch(file, "its ABI version is $version, not ${Abi.VERSION}")
        if (hash != Abi.SCHEMA_HASH) {
            throw mismatch(file, "its schema hash is ${hash.toString(16)}, not ${Abi.SCHEMA_HASH.toString(16)}")
        }
    }

    private fun unusable(file: Path, error: Throwable): ToolspanException {
        val cause = generateSequence(error) { it.cause }.last()
        val foreign = cause is UnsatisfiedLinkError && cause.message?.contains("looking up function") == true
        return when {
            foreign || cause is RuntimeException -> mismatch(file, "${cause.message}", error)
            else -> refuse("unsupported", "the native library $file does not load on ${Platform.RESOURCE_PREFIX}: ${cause.message}", error)
        }
    }

    /**
     * Opens the library of the jar from a private folder that is gone afterwards. A folder of its own for every load:
     * nobody else can have put something there, and processes and class loaders do not meet.
     */
    private fun unpacked(open: (Path) -> Unit) {
        val resource = "/dev/toolspan/native/${platform()}/$NAME"
        val found = NativeLibrary::class.java.getResource(resource)
            ?: throw refuse("unsupported", "this jar has no native library for ${platform()} ($resource); name one in the property $PROPERTY or in $VARIABLE")
        val tried = mutableListOf<String>()
        for (parent in folders()) {
            val folder = try {
                privateFolder(parent)
            } catch (error: IOException) {
                tried += "$parent ($error)"
                continue
            }
            try {
                val file = folder.resolve(NAME)
                found.openStream().use { Files.copy(it, file) }
                file.toFile().setExecutable(true, true)
                // A file system without execution says so here, before anything has tried and cannot try again.
                if (!Files.isExecutable(file)) {
                    tried += "$parent (nothing can be executed there)"
                    continue
                }
                unpackingJna(folder)
                return open(file)
            } catch (error: IOException) {
                tried += "$parent ($error)"
            } finally {
                discard(folder)
            }
        }
        throw refuse("unsupported", "the native library finds no folder to be unpacked to, of ${tried.joinToString()}; name a file in the property $PROPERTY or in $VARIABLE")
    }

    private fun folders(): List<Path> {
        val home = System.getProperty("user.home")
        val candidates = listOf(
            System.getProperty("java.io.tmpdir"),
            System.getenv("XDG_RUNTIME_DIR"),
            System.getenv("XDG_CACHE_HOME") ?: home?.let { "$it/.cache" },
            System.getProperty("user.dir"),
        )
        return candidates.filterNotNull().filter(String::isNotEmpty).map(Path::of).distinct()
    }

    private fun privateFolder(parent: Path): Path {
        Files.createDirectories(parent)
        val posix = "posix" in parent.fileSystem.supportedFileAttributeViews()
        if (!posix) return Files.createTempDirectory(parent, "toolspan-")
        val mine = PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"))
        return Files.createTempDirectory(parent, "toolspan-", mine)
    }

    /** JNA unpacks a library of its own; where nobody has said where, into the folder that was found to do. */
    private fun unpackingJna(folder: Path) {
        if (System.getProperty("jna.tmpdir") != null) return
        System.setProperty("jna.tmpdir", folder.toString())
        try {
            Native.POINTER_SIZE
        } catch (error: LinkageError) {
            throw refuse("unsupported", "JNA does not load on ${platform()}: ${error.message}", error)
        } finally {
            System.clearProperty("jna.tmpdir")
        }
    }

    /** An open library needs no file, except where the system locks it; there it goes when the process ends. */
    private fun discard(folder: Path) {
        val files = folder.toFile().walkBottomUp().toList()
        for (file in files) if (!file.delete()) file.deleteOnExit()
    }

    private fun platform(): String {
        val os = System.getProperty("os.name").lowercase()
        val system = when {
            os.startsWith("linux") -> "linux"
            os.startsWith("mac") -> "darwin"
            os.startsWith("windows") -> "windows"
            else -> os.replace(' ', '-')
        }
        val machine = when (val arch = System.getProperty("os.arch").lowercase()) {
            "amd64", "x86_64" -> "x86_64"
            "aarch64", "arm64" -> "aarch64"
            else -> arch
        }
        return "$system-$machine"
    }

    private fun mismatch(file: Path, what: String, cause: Throwable? = null) = refuse(
        "abi_mismatch",
        "the native library $file does not belong to this package: $what; install both from the same version, or build the library again",
        cause,
    )

    private fun refuse(code: String, message: String, cause: Throwable? = null): ToolspanException =
        exceptionOf(errorRecord(code, message), cause)
}
