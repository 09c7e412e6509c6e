package dev.toolspan.internal

import dev.toolspan.Description
import java.lang.reflect.InvocationTargetException
import java.lang.reflect.ParameterizedType
import java.lang.reflect.RecordComponent
import java.lang.reflect.Type
import java.lang.reflect.WildcardType
import java.math.BigDecimal
import java.math.BigInteger
import java.util.Optional

// Records as the arguments of tools: their JSON Schema, and JSON as their values.

/** The schema of a record, or of any object for [Map]. */
internal fun schemaOf(type: Class<*>, tool: String): JsonMap = when {
    type == Map::class.java -> mapOf("type" to "object")
    type.isRecord -> schema(type, "tool $tool", emptyList())
    else -> throw IllegalArgumentException("tool $tool: ${type.name} is no record; give a record, or a JSON Schema and take a map")
}

/** A record from the arguments of a call. What does not fit is said to the model. */
internal fun <T : Any> argumentsOf(type: Class<T>, args: JsonMap): T = type.cast(if (type == Map::class.java) args else value(type, args, ""))

/** The components of a record by name. */
internal fun recordValues(record: Record): Map<String, Any?> =
    record.javaClass.recordComponents.associateTo(LinkedHashMap()) { component ->
        component.accessor.trySetAccessible()
        component.name to component.accessor.invoke(record)
    }

private fun schema(type: Type, place: String, within: List<Class<*>>): JsonMap {
    val raw = rawClass(type)
    return when {
        raw == String::class.java || raw == CharSequence::class.java -> mapOf("type" to "string")
        raw == Boolean::class.java || raw == Boolean::class.javaObjectType -> mapOf("type" to "boolean")
        raw in INTEGERS -> mapOf("type" to "integer")
        raw in NUMBERS -> mapOf("type" to "number")
        raw == Any::class.java -> emptyMap()
        raw == Optional::class.java -> schema(argument(type, 0), place, within)
        raw.isEnum -> mapOf("type" to "string", "enum" to raw.enumConstants.map { (it as Enum<*>).name })
        raw.isArray -> mapOf("type" to "array", "items" to schema(raw.componentType, place, within))
        Set::class.java.isAssignableFrom(raw) ->
            mapOf("type" to "array", "items" to schema(argument(type, 0), place, within), "uniqueItems" to true)
        Collection::class.java.isAssignableFrom(raw) -> mapOf("type" to "array", "items" to schema(argument(type, 0), place, within))
        Map::class.java.isAssignableFrom(raw) -> mapOf("type" to "object", "additionalProperties" to schema(argument(type, 1), place, within))
        raw.isRecord -> {
            require(raw !in within) { "$place: ${raw.name} contains itself; give a JSON Schema and take a map" }
            val components = raw.recordComponents
            present(
                "type" to "object",
                "properties" to components.associateTo(LinkedHashMap()) { component ->
                    val described = description(raw, component)?.let { mapOf("description" to it) }.orEmpty()
                    component.name to schema(component.genericType, "$place: ${component.name}", within + raw) + described
                },
                "required" to components.filterNot(::isOptional).map(RecordComponent::getName).ifEmpty { null },
            )
        }
        else -> throw IllegalArgumentException("$place: ${type.typeName} cannot be described; use a record, an enum, text, a number, a list or a map")
    }
}

private fun value(type: Type, json: Any?, path: String): Any? {
    val raw = rawClass(type)
    return when {
        raw == Optional::class.java -> Optional.ofNullable(json?.let { value(argument(type, 0), it, path) })
        raw == Any::class.java -> json
        raw == String::class.java || raw == CharSequence::class.java -> json as? String ?: wrong(path, "text", json)
        raw == Boolean::class.java || raw == Boolean::class.javaObjectType -> json as? Boolean ?: wrong(path, "a boolean", json)
        raw in INTEGERS || raw in NUMBERS -> number(raw, json, path)
        raw.isEnum -> raw.enumConstants.firstOrNull { (it as Enum<*>).name == json } ?: wrong(path, "one of ${raw.enumConstants.joinToString()}", json)
        raw.isArray -> {
            val items = items(raw.componentType, json, path)
            java.lang.reflect.Array.newInstance(raw.componentType, items.size).also { array ->
                items.forEachIndexed { index, item -> java.lang.reflect.Array.set(array, index, item) }
            }
        }
        Set::class.java.isAssignableFrom(raw) -> LinkedHashSet(items(argument(type, 0), json, path))
        Collection::class.java.isAssignableFrom(raw) -> items(argument(type, 0), json, path)
        Map::class.java.isAssignableFrom(raw) ->
            (json as? Map<*, *> ?: wrong(path, "an object", json)).mapValues { (key, item) -> value(argument(type, 1), item, "$path.$key") }
        else -> record(raw, json, path)
    }
}

private fun record(type: Class<*>, json: Any?, path: String): Any {
    if (json !is Map<*, *>) wrong(path, "an object", json)
    val components = type.recordComponents
    val values = components.map { component ->
        val place = if (path.isEmpty()) component.name else "$path.${component.name}"
        val given = json[component.name]
        if (given == null && !isOptional(component)) misfit("$place: is missing")
        value(component.genericType, given, place)
    }
    val constructor = type.getDeclaredConstructor(*components.map(RecordComponent::getType).toTypedArray())
    constructor.trySetAccessible()
    try {
        return constructor.newInstance(*values.toTypedArray())
    } catch (error: InvocationTargetException) {
        // The record's own check of its components.
        throw error.targetException
    }
}

private fun items(type: Type, json: Any?, path: String): List<Any?> =
    (json as? List<*> ?: wrong(path, "a list", json)).mapIndexed { index, item -> value(type, item, "$path[$index]") }

private fun number(type: Class<*>, json: Any?, path: String): Any {
    val exact = when (json) {
        is Number -> BigDecimal(json.toString())
        else -> wrong(path, "a number", json)
    }
    return try {
        when (type) {
            Int::class.java, Int::class.javaObjectType -> exact.intValueExact()
            Long::class.java, Long::class.javaObjectType -> exact.longValueExact()
            Short::class.java, Short::class.javaObjectType -> exact.shortValueExact()
            Byte::class.java, Byte::class.javaObjectType -> exact.byteValueExact()
            BigInteger::class.java -> exact.toBigIntegerExact()
            Float::class.java, Float::class.javaObjectType -> exact.toFloat()
            BigDecimal::class.java -> exact
            else -> exact.toDouble()
        }
    } catch (_: ArithmeticException) {
        wrong(path, "an integer of that size", json)
    }
}

private fun wrong(path: String, wanted: String, json: Any?): Nothing =
    misfit("${if (path.isEmpty()) "" else "$path: "}must be $wanted, not ${runCatching { encode(json) }.getOrDefault("$json").take(60)}")

/** What the model is told about arguments that do not fit. */
internal fun misfit(what: String, cause: Throwable? = null): Nothing = throw IllegalArgumentException("Invalid arguments. $what", cause)

private fun isOptional(component: RecordComponent) = component.type == Optional::class.java

/** Kotlin writes it on the field, Java on the field too: a component hands it on. */
private fun description(type: Class<*>, component: RecordComponent): String? =
    runCatching { type.getDeclaredField(component.name) }.getOrNull()?.getAnnotation(Description::class.java)?.value

private fun argument(type: Type, index: Int): Type =
    (type as? ParameterizedType)?.actualTypeArguments?.get(index) ?: Any::class.java

private fun rawClass(type: Type): Class<*> = when (type) {
    is Class<*> -> type
    is ParameterizedType -> type.rawType as Class<*>
    is WildcardType -> rawClass(type.upperBounds[0])
    else -> Any::class.java
}

private val INTEGERS = setOf(
    Int::class.java, Int::class.javaObjectType, Long::class.java, Long::class.javaObjectType, Short::class.java,
    Short::class.javaObjectType, Byte::class.java, Byte::class.javaObjectType, BigInteger::class.java,
)
private val NUMBERS = setOf(Double::class.java, Double::class.javaObjectType, Float::class.java, Float::class.javaObjectType, BigDecimal::class.java)
