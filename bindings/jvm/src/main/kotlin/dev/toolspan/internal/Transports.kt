package dev.toolspan.internal

import dev.toolspan.HttpHeader
import dev.toolspan.HttpRequest
import dev.toolspan.HttpResponse
import java.io.InputStream
import java.util.Base64
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicLong
import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.ensureActive
import kotlinx.coroutines.isActive

/** The answers of a transport of the program whose bodies are being read, by a number of ours. */
internal class Transports {
    private val bodies = ConcurrentHashMap<Long, InputStream>()
    private val last = AtomicLong()

    /** Sends a request; the body of the answer is read piece by piece. */
    suspend fun send(transport: suspend (HttpRequest) -> HttpResponse, request: JsonMap): JsonMap {
        val headers = request.at<List<List<String>>>("headers").map { (name, value) -> HttpHeader(name, value) }
        val response = transport(HttpRequest(request.at("method"), request.at("url"), headers, request.at("body")))
        if (!currentCoroutineContext().isActive) response.body.close()
        currentCoroutineContext().ensureActive()
        val number = last.incrementAndGet()
        bodies[number] = response.body
        return mapOf(
            "status" to response.status,
            "headers" to response.headers.map { listOf(it.name, it.value) },
            "stream" to number,
        )
    }

    /** The next piece of a body. One that ends or fails is not closed again. */
    suspend fun read(number: Long): JsonMap {
        val body = bodies[number] ?: error("nobody reads body $number any more")
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
        bodies.remove(number)?.close()
    }

    private companion object {
        const val PIECE = 64 * 1024
    }
}
