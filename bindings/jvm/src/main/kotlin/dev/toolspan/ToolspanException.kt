package dev.toolspan

/**
 * What every failure of this library is (SPEC 8); there is a subclass for each code. The message reads `code: path: text`.
 * The cause is what a function of the program threw, or else the library's own chain.
 */
public open class ToolspanException internal constructor(
    /** The error record as it came. */
    public val record: Map<String, Any?>,
    cause: Throwable?,
) : RuntimeException(messageOf(record), cause ?: chainOf(record)) {
    /** One of the codes of SPEC 12, equal in every language. */
    public val code: String get() = record["code"] as String

    /** Whether the same call may succeed later. */
    public val retryable: Boolean get() = record["retryable"] == true

    /** How long the provider asks to wait, milliseconds. */
    public val retryAfterMs: Long? get() = record["retryAfterMs"] as Long?

    /** Status of the answer that was refused. */
    public val httpStatus: Int? get() = (record["httpStatus"] as Long?)?.toInt()

    /** The provider that failed. */
    public val provider: String? get() = record["provider"] as String?

    /** The MCP server that failed. */
    public val server: String? get() = record["server"] as String?

    /** The tool that failed. */
    public val tool: String? get() = record["tool"] as String?

    /** The option or argument that is wrong. */
    public val path: String? get() = record["path"] as String?

    /** What else is known, as JSON. */
    public val details: Any? get() = record["details"]
}

private fun messageOf(record: Map<String, Any?>): String {
    val place = record["path"]?.let { "$it: " }.orEmpty()
    return "${record["code"]}: $place${record["message"]}"
}

/** The core's chain of causes as nested exceptions, outermost first. */
private fun chainOf(record: Map<String, Any?>): Throwable? =
    (record["cause"] as? List<*>).orEmpty().foldRight(null as Throwable?) { link, inner ->
        val (code, message) = (link as Map<*, *>).let { it["code"] to it["message"] }
        ToolspanCause(if (code == null) "$message" else "$code: $message", inner)
    }

/** A link of the core's chain of causes. It has no stack of its own. */
private class ToolspanCause(message: String, cause: Throwable?) : Exception(message, cause, false, false)
