package dev.toolspan.internal

import dev.toolspan.HttpHeader
import dev.toolspan.HttpRequest
import dev.toolspan.HttpResponse
import java.io.InputStream
import java.util.Base64
import java.util.concurrent.ConcurrentHashMap

/** The answer of a transport of the program: its head, and the body that is read piece by piece. */
internal class Answered(val head: JsonMap, val body: InputStream)

/** A transport of the program as the core asks it. */
internal fun transportFunction(transport: suspend (HttpRequest) -> HttpResponse): HostFunction = HostFunction(
    mapOf(
        "http.send" to { request ->
            val headers = request.at<List<List<String>>>("headers").map { (name, value) -> HttpHeader(name, value) }
            val response = transport(HttpRequest(request.at("method"), request.at("url"), headers, request.at("body")))
            Answered(mapOf("status" to response.status, "headers" to response.headers.map { listOf(it.name, it.value) }), response.body)
        },
    ),
)

/** The bodies that are being read for one operation, each under the number of the call that brought it. */
internal class Bodies {
    private val open = ConcurrentHashMap<Long, InputStream>()

    val isEmpty: Boolean get() = open.isEmpty()

    fun keep(number: Long, answer: Answered): JsonMap {
        open[number] = answer.body
        return answer.head + ("stream" to number)
    }

    /** The next piece. A body that ends or fails is closed. */
    suspend fun read(number: Long): JsonMap {
        val body = open[number] ?: error("nobody reads body $number any more")
        var last = true
        try {
            val piece = ByteArray(PIECE)
            val count = blocking { body.read(piece) }
            last = count < 0
            return if (last) mapOf("end" to true) else mapOf("data" to Base64.getEncoder().encodeToString(piece.copyOf(count)))
        } finally {
            if (last) close(number)
        }
    }

    /** Nobody reads the body any more. */
    fun close(number: Long) {
        val body = open.remove(number) ?: return
        try {
            body.close()
        } catch (_: Exception) {
            // There is nobody to tell.
        }
    }

    fun closeAll() = open.keys.forEach(::close)

    private companion object {
        const val PIECE = 64 * 1024
    }
}
