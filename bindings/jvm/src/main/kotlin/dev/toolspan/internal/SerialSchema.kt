@file:OptIn(ExperimentalSerializationApi::class)

package dev.toolspan.internal

import dev.toolspan.Description
import kotlin.reflect.KType
import kotlinx.serialization.ExperimentalSerializationApi
import kotlinx.serialization.KSerializer
import kotlinx.serialization.SerializationException
import kotlinx.serialization.descriptors.PolymorphicKind
import kotlinx.serialization.descriptors.PrimitiveKind
import kotlinx.serialization.descriptors.SerialDescriptor
import kotlinx.serialization.descriptors.SerialKind
import kotlinx.serialization.descriptors.StructureKind
import kotlinx.serialization.json.Json
import kotlinx.serialization.serializerOrNull

// `@Serializable` classes as the arguments of tools.

private val json = Json { ignoreUnknownKeys = true }

internal fun schemaOf(type: KType, java: Class<*>, tool: String): JsonMap {
    if (java == Map::class.java || java.isRecord) return schemaOf(java, tool)
    val serializer = serializerOrNull(type)
        ?: throw IllegalArgumentException("tool $tool: ${java.name} is neither a record (@JvmRecord data class) nor @Serializable")
    val schema = schema(serializer.descriptor, "tool $tool", emptyList())
    require(schema["type"] == "object") { "tool $tool: ${java.name} describes no object" }
    val properties = schema.atOrNull<Map<String, JsonMap>>("properties") ?: return schema
    return schema + ("properties" to properties.mapValues { (name, property) -> described(java, name, property) })
}

@Suppress("UNCHECKED_CAST")
internal fun <T : Any> argumentsOf(type: KType, java: Class<T>, args: JsonMap): T {
    if (java == Map::class.java || java.isRecord) return argumentsOf(java, args)
    try {
        return json.decodeFromJsonElement(serializerOrNull(type) as KSerializer<T>, toElement(args, "", 0))
    } catch (error: SerializationException) {
        misfit(error.message.orEmpty().lineSequence().first(), error)
    }
}

/** The annotation is on the class and not in its descriptor: there, an annotation would need the compiler plugin here too. */
private fun described(java: Class<*>, name: String, schema: JsonMap): JsonMap {
    val field = runCatching { java.getDeclaredField(name) }.getOrNull()
    return schema + field?.getAnnotation(Description::class.java)?.let { mapOf("description" to it.value) }.orEmpty()
}

private fun schema(type: SerialDescriptor, place: String, within: List<String>): JsonMap = when (type.kind) {
    PrimitiveKind.STRING, PrimitiveKind.CHAR -> mapOf("type" to "string")
    PrimitiveKind.BOOLEAN -> mapOf("type" to "boolean")
    PrimitiveKind.BYTE, PrimitiveKind.SHORT, PrimitiveKind.INT, PrimitiveKind.LONG -> mapOf("type" to "integer")
    PrimitiveKind.FLOAT, PrimitiveKind.DOUBLE -> mapOf("type" to "number")
    SerialKind.ENUM -> mapOf("type" to "string", "enum" to (0 until type.elementsCount).map(type::getElementName))
    StructureKind.LIST -> mapOf("type" to "array", "items" to schema(type.getElementDescriptor(0), place, within))
    StructureKind.MAP -> mapOf("type" to "object", "additionalProperties" to schema(type.getElementDescriptor(1), place, within))
    StructureKind.CLASS, StructureKind.OBJECT -> if (type.isInline) schema(type.getElementDescriptor(0), place, within) else members(type, place, within)
    // What stands there is decided when it is read.
    SerialKind.CONTEXTUAL, is PolymorphicKind -> emptyMap()
}

private fun members(type: SerialDescriptor, place: String, within: List<String>): JsonMap {
    require(type.serialName !in within) { "$place: ${type.serialName} contains itself; give a JSON Schema and take a map" }
    val names = (0 until type.elementsCount).toList()
    return present(
        "type" to "object",
        "properties" to names.associate { type.getElementName(it) to schema(type.getElementDescriptor(it), "$place: ${type.getElementName(it)}", within + type.serialName) },
        "required" to names.filterNot(type::isElementOptional).map(type::getElementName).ifEmpty { null },
    )
}
