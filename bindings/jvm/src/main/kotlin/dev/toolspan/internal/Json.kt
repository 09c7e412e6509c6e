package dev.toolspan.internal

import dev.toolspan.Choice
import dev.toolspan.InvalidArgumentException
import dev.toolspan.LimitExceededException
import dev.toolspan.Model
import dev.toolspan.ToolspanException
import dev.toolspan.exceptionOf
import java.math.BigDecimal
import java.math.BigInteger
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonNull
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive

/** A JSON object as programs see it: keys in the order of the text. */
internal typealias JsonMap = Map<String, Any?>

/** Deeper than this the core refuses; here only so that a value that contains itself ends as an error. */
private const val MAX_DEPTH = 256

/**
 * The compact text of a value. Maps, iterables, arrays, text, numbers, booleans, null, records, enums and
 * [kotlinx.serialization.json.JsonElement]s have one; what has none is refused with the path to it.
 */
internal fun encode(value: Any?): String = toElement(value, "", 0).toString()

/** The value of a text: ordered maps, lists, text, booleans, null, and [Long], [Double], or a big number of `java.math`. */
internal fun decode(text: String): Any? = fromElement(Json.parseToJsonElement(text))

internal fun toElement(value: Any?, path: String, depth: Int): JsonElement {
    if (depth > MAX_DEPTH) {
        val place = path.take(60)
        throw LimitExceededException(errorRecord("limit_exceeded", "the value contains itself or is nested too deep: $place..."))
    }
    return when (value) {
        null, Unit -> JsonNull
        is JsonElement -> value
        is CharSequence -> JsonPrimitive(wellFormed(value.toString(), path))
        is Char -> JsonPrimitive(wellFormed(value.toString(), path))
        is Boolean -> JsonPrimitive(value)
        is Number -> number(value, path)
        is Enum<*> -> JsonPrimitive((value as? Choice)?.text ?: value.name)
        is Map<*, *> -> JsonObject(
            value.entries.associateTo(LinkedHashMap()) { (key, item) ->
                val name = wellFormed(key as? String ?: (key as? Enum<*>)?.name ?: refuse(path, "a key of an object must be text"), path)
                name to toElement(item, at(path, name), depth + 1)
            },
        )
        is Iterable<*> -> JsonArray(value.mapIndexed { index, item -> toElement(item, "$path[$index]", depth + 1) })
        is Array<*> -> toElement(value.asList(), path, depth)
        is IntArray -> toElement(value.asList(), path, depth)
        is LongArray -> toElement(value.asList(), path, depth)
        is DoubleArray -> toElement(value.asList(), path, depth)
        is Model -> toElement(value.toMap(), path, depth)
        is java.util.Optional<*> -> toElement(value.orElse(null), path, depth)
        is Record -> toElement(recordValues(value), path, depth)
        else -> refuse(path, "${value.javaClass.name} has no form in JSON; give a map, a list, a record, text, a number or a boolean")
    }
}

internal fun fromElement(element: JsonElement): Any? = when (element) {
    is JsonObject -> element.entries.associateTo(LinkedHashMap(element.size * 2)) { (key, item) -> key to fromElement(item) }
    is JsonArray -> element.mapTo(ArrayList(element.size), ::fromElement)
    is JsonNull -> null
    is JsonPrimitive -> when {
        element.isString -> element.content
        element.content == "true" -> true
        element.content == "false" -> false
        else -> number(element.content)
    }
}

/** The smallest type that loses no digit. */
private fun number(text: String): Number {
    if (text.none { it == '.' || it == 'e' || it == 'E' }) return text.toLongOrNull() ?: BigInteger(text)
    val exact = BigDecimal(text)
    val near = exact.toDouble()
    return if (near.isFinite() && BigDecimal(near.toString()).compareTo(exact) == 0) near else exact
}

private fun number(value: Number, path: String): JsonPrimitive {
    if (value is Double && !value.isFinite() || value is Float && !value.isFinite()) refuse(path, "$value is no number in JSON")
    return JsonPrimitive(value)
}

/** Half of a surrogate pair is no text, in no encoding. */
private fun wellFormed(text: String, path: String): String {
    var index = 0
    while (index < text.length) {
        val char = text[index]
        if (char.isSurrogate()) {
            val pair = char.isHighSurrogate() && index + 1 < text.length && text[index + 1].isLowSurrogate()
            if (!pair) refuse(path, "half a surrogate pair is no text")
            index++
        }
        index++
    }
    return text
}

private fun at(path: String, key: String) = if (path.isEmpty()) key else "$path.$key"

private fun refuse(path: String, message: String): Nothing =
    throw InvalidArgumentException(errorRecord("invalid_argument", message, path.ifEmpty { null }))

/** An error that is found out here. */
internal fun errorRecord(code: String, message: String, path: String? = null): JsonMap = buildMap {
    put("code", code)
    put("message", message)
    put("retryable", false)
    if (path != null) put("path", path)
}

/** The record in what the native half refused with; a defect when it is none. */
@Suppress("UNCHECKED_CAST")
internal fun refused(text: String): ToolspanException = exceptionOf(decode(text) as JsonMap, null)
