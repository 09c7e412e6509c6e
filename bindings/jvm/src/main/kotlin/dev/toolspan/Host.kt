package dev.toolspan

import dev.toolspan.internal.choiceOrNull
import dev.toolspan.internal.errorRecord
import dev.toolspan.internal.present
import java.io.InputStream
import java.net.URI
import java.net.http.HttpClient
import java.net.http.HttpRequest as JdkRequest
import java.net.http.HttpResponse.BodyHandlers

/**
 * A function of a Java program that the library asks. It runs on the engine's executor and may block; its thread is
 * interrupted when nobody waits for the answer any more. Null leaves things as they are.
 */
public fun interface Hook<in In : Any, out Out : Any> {
    /** Answers. What it throws ends the run, and is the cause of the exception there. */
    @Throws(Exception::class)
    public fun call(told: In): Out?
}

/** A function of a Java program that the library tells something. It runs as a [Hook] does. */
public fun interface Observer<in In : Any> {
    /** Is told. What it throws ends the run, and is the cause of the exception there. */
    @Throws(Exception::class)
    public fun call(told: In)
}

/** What a hook changes about a request to the model: `messages` for good, `tools` and `model` for this turn. */
public class LlmChange : Options<LlmChange>() {
    /** The transcript from now on. */
    public fun messages(value: List<Map<String, Any?>>): LlmChange = set("messages", value)

    /** The declarations of the tools, in the client's dialect. */
    public fun tools(value: List<Any?>): LlmChange = set("tools", value)

    /** The model. */
    public fun model(value: String): LlmChange = set("model", value)
}

/** What a hook says before a call: a result in place of it, or other arguments. */
public class ToolChange : Options<ToolChange>() {
    /** The result; the call is not made. */
    public fun result(value: ToolResult): ToolChange = set("result", value)

    /** The arguments of a call that is to be made. */
    public fun args(value: Map<String, Any?>): ToolChange = set("args", value)
}

/** What [ClientOptions.onError] decides. */
public enum class ErrorDecision(override val text: String) : Choice {
    /** Try again, within `retries`. */
    RETRY("retry"),

    /** Give up. */
    FAIL("fail"),
}

/** A stored conversation. */
@JvmRecord
public data class Transcript(
    /** The dialect of the messages; null where it is not said, as of messages that were saved without one. */
    public val style: Style?,
    /** The messages, without the client's system prompt. */
    public val messages: List<Map<String, Any?>>,
) : Model {
    override fun toMap(): Map<String, Any?> = present("version" to 1L, "style" to style?.text, "messages" to messages)

    public companion object {
        /** A transcript from its JSON. */
        @JvmStatic
        @Suppress("UNCHECKED_CAST")
        public fun of(map: Map<String, Any?>): Transcript = Transcript(
            map.choiceOrNull<Style>("style"),
            map["messages"] as List<Map<String, Any?>>,
        )
    }
}

/** Keeps conversations for a client (SPEC 7.7). Its methods may block. */
public interface ConversationStore {
    /** The conversation of that id: a [Transcript], one as a map, a list of messages, or null when there is none. */
    @Throws(Exception::class)
    public fun get(id: String): Any?

    /** Keeps a conversation. */
    @Throws(Exception::class)
    public fun save(id: String, transcript: Transcript)
}

/** Receives metric events. It is called for one after the other and must not wait for an operation of its engine. */
public fun interface MetricSink {
    /** Takes an event. What it throws is ignored. */
    public fun record(event: MetricEvent)
}

/** Receives log records. It is called for one after the other and must not wait for an operation of its engine. */
public fun interface LogSink {
    /** Takes a record. What it throws is ignored. */
    public fun record(record: LogRecord)

    public companion object {
        /** Hands records to a logger of the platform, which every logging library of Java can take over. */
        @JvmStatic
        public fun of(logger: System.Logger): LogSink = LogSink { record ->
            val level = System.Logger.Level.valueOf(if (record.level == LogLevel.WARN) "WARNING" else record.level.name)
            if (logger.isLoggable(level)) {
                val fields = record.fields?.takeUnless(Map<*, *>::isEmpty)?.let { " $it" }.orEmpty()
                logger.log(level, "${record.target}: ${record.message}$fields")
            }
        }
    }
}

/** A header of a request or an answer. */
@JvmRecord
public data class HttpHeader(
    /** The name, in any case. */
    public val name: String,
    /** The value. */
    public val value: String,
)

/** A request to the model. */
@JvmRecord
public data class HttpRequest(
    /** The method, in capitals. */
    public val method: String,
    /** The whole URL. */
    public val url: String,
    /** Names and values, in order. */
    public val headers: List<HttpHeader>,
    /** The body; UTF-8 on the wire. */
    public val body: String,
)

/** The answer to a request. */
@JvmRecord
public data class HttpResponse(
    /** The status code. */
    public val status: Int,
    /** Names and values. */
    public val headers: List<HttpHeader>,
    /** The body, read as it arrives and closed in the end. */
    public val body: InputStream,
)

/** Sends requests to the model in place of the library. It may block. */
public fun interface HttpTransport {
    /** Sends a request and returns when the head of the answer is there. Redirects are not followed. */
    @Throws(Exception::class)
    public fun send(request: HttpRequest): HttpResponse

    public companion object {
        /** Sends with the JDK's client. One that follows redirects is refused: it would take the key along to wherever they point. */
        @JvmStatic
        public fun of(client: HttpClient): HttpTransport {
            if (client.followRedirects() != HttpClient.Redirect.NEVER) {
                throw InvalidArgumentException(errorRecord("invalid_argument", "the client must not follow redirects", "httpClient"))
            }
            return HttpTransport { request ->
                val builder = JdkRequest.newBuilder(URI(request.url))
                    .method(request.method, JdkRequest.BodyPublishers.ofString(request.body))
                for (header in request.headers) builder.header(header.name, header.value)
                val response = client.send(builder.build(), BodyHandlers.ofInputStream())
                val headers = response.headers().map().flatMap { (name, values) -> values.map { HttpHeader(name, it) } }
                HttpResponse(response.statusCode(), headers, response.body())
            }
        }
    }
}
