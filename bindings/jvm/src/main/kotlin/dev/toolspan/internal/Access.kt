package dev.toolspan.internal

import dev.toolspan.Choice
import kotlinx.serialization.json.JsonNull

// How generated records read their map, and write it. A map that does not fit is a defect: the schema was compared when the
// library was loaded.

@Suppress("UNCHECKED_CAST")
internal fun <T> JsonMap.atOrNull(key: String): T? = this[key] as T?

internal fun <T> JsonMap.at(key: String): T = atOrNull(key) ?: missing(key)

internal fun JsonMap.integerOrNull(key: String): Long? = (this[key] as Number?)?.toLong()

internal fun JsonMap.integer(key: String): Long = integerOrNull(key) ?: missing(key)

internal fun JsonMap.numberOrNull(key: String): Double? = (this[key] as Number?)?.toDouble()

internal fun JsonMap.number(key: String): Double = numberOrNull(key) ?: missing(key)

internal inline fun <reified T> JsonMap.choiceOrNull(key: String): T? where T : Enum<T>, T : Choice =
    this[key]?.let { text -> enumValues<T>().firstOrNull { it.text == text } ?: error("$key is $text, which is unknown") }

internal inline fun <reified T> JsonMap.choice(key: String): T where T : Enum<T>, T : Choice = choiceOrNull<T>(key) ?: missing(key)

internal fun <T> JsonMap.recordOrNull(key: String, of: (JsonMap) -> T): T? = atOrNull<JsonMap>(key)?.let(of)

internal fun <T : Any> JsonMap.record(key: String, of: (JsonMap) -> T?): T = atOrNull<JsonMap>(key)?.let(of) ?: missing(key)

/** Without what only a newer library knows. */
internal fun <T : Any> JsonMap.listOrNull(key: String, of: (JsonMap) -> T?): List<T>? = atOrNull<List<JsonMap>>(key)?.mapNotNull(of)

internal fun <T : Any> JsonMap.list(key: String, of: (JsonMap) -> T?): List<T> = listOrNull(key, of) ?: missing(key)

internal fun <T> JsonMap.mapped(key: String, of: (JsonMap) -> T): Map<String, T> =
    atOrNull<Map<String, JsonMap>>(key)?.mapValues { of(it.value) } ?: missing(key)

/** A map of what is there. */
internal fun present(vararg pairs: Pair<String, Any?>): JsonMap = buildMap {
    for ((key, value) in pairs) if (value != null) put(key, value.takeUnless { it === JsonNull })
}

/** A null that says something, beside what is absent. */
internal fun Any?.orNull(): Any = this ?: JsonNull

internal fun missing(key: String): Nothing = error("$key is missing")
