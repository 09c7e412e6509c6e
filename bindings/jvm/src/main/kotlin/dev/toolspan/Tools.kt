@file:JvmName("Tools")

package dev.toolspan

import dev.toolspan.internal.HostFunction
import dev.toolspan.internal.JsonMap
import dev.toolspan.internal.argumentsOf
import dev.toolspan.internal.blocking
import dev.toolspan.internal.decode
import dev.toolspan.internal.integerOrNull
import dev.toolspan.internal.schemaOf
import kotlin.reflect.KType
import kotlin.reflect.typeOf

/** What a tool may know about the call it serves. */
@JvmRecord
public data class ToolCall(
    /** The tool's name. */
    public val name: String,
    /** The id that the model gave the call; null outside a run. */
    public val callId: String?,
    /** The budget of the call, milliseconds, where it has one. */
    public val timeoutMs: Long?,
)

/**
 * The function of a Java tool. It returns text, a [ToolResult], null, or another value that JSON has (maps, lists, records,
 * numbers), or a `CompletionStage` of these. What it throws becomes an error result for the model. It runs on the engine's
 * executor and may block; its thread is interrupted when nobody waits for the result any more.
 */
public fun interface ToolFunction<in T> {
    /** Serves one call. */
    @Throws(Exception::class)
    public fun call(args: T, call: ToolCall): Any?
}

/** A tool of the program (SPEC 6). Made by [tool], or in Java by [Tool.of]. */
public class Tool private constructor(
    /** `name`, `description`, `inputSchema` and `hints`, as JSON has them. */
    public val definition: Map<String, Any?>,
    internal val function: HostFunction,
) {
    /** The same tool with hints for whoever decides about calls. */
    public fun withHints(hints: ToolHints): Tool = Tool(definition + ("hints" to hints.toMap()), function)

    override fun toString(): String = "Tool(${definition["name"]})"

    public companion object {
        /** A tool whose arguments are a record of Java: its components are described to the model, see [Description]. */
        @JvmStatic
        public fun <T : Any> of(name: String, description: String, arguments: Class<T>, function: ToolFunction<T>): Tool {
            val schema = schemaOf(arguments, name)
            return of(describe(name, description, schema)) { args, call -> blocking { function.call(argumentsOf(arguments, args), call) } }
        }

        /** A tool whose arguments a JSON Schema describes. They are not checked against it. */
        @JvmStatic
        public fun of(name: String, description: String, inputSchema: String, function: ToolFunction<@JvmSuppressWildcards Map<String, Any?>>): Tool {
            val schema = try {
                decode(inputSchema)
            } catch (error: IllegalArgumentException) {
                throw IllegalArgumentException("tool $name: the schema is no JSON: ${error.message}", error)
            }
            return of(describe(name, description, schema), function)
        }

        /** A tool from its definition, as SPEC 6 has it. */
        @JvmStatic
        public fun of(definition: Map<String, Any?>, function: ToolFunction<@JvmSuppressWildcards Map<String, Any?>>): Tool =
            of(definition) { args, call -> blocking { function.call(args, call) } }

        internal fun of(definition: JsonMap, run: suspend (JsonMap, ToolCall) -> Any?) = Tool(
            definition,
            HostFunction(
                mapOf(
                    "tool.execute" to { payload ->
                        val call = ToolCall(payload["name"] as String, payload["callId"] as String?, payload.integerOrNull("timeoutMs"))
                        @Suppress("UNCHECKED_CAST")
                        val value = run(payload["args"] as JsonMap, call)
                        mapOf((if (value is ToolResult) "result" else "value") to value)
                    },
                ),
            ),
        )
    }
}

/**
 * A tool whose arguments [T] describes: a record (`@JvmRecord data class`), a `@Serializable` class, or `Map<String, Any?>` for any object.
 * [run] returns what [ToolFunction] may return; it is cancelled when nobody waits for the result any more.
 */
public inline fun <reified T : Any> tool(name: String, description: String, noinline run: suspend ToolCall.(T) -> Any?): Tool =
    typedTool(name, description, typeOf<T>(), T::class.java, run)

/** A tool whose arguments a JSON Schema describes. They are not checked against it. */
public fun tool(
    name: String,
    description: String,
    inputSchema: Map<String, Any?>,
    run: suspend ToolCall.(Map<String, Any?>) -> Any?,
): Tool = Tool.of(describe(name, description, inputSchema)) { args, call -> call.run(args) }

/** A tool from its definition, as SPEC 6 has it. */
public fun tool(definition: Map<String, Any?>, run: suspend ToolCall.(Map<String, Any?>) -> Any?): Tool =
    Tool.of(definition) { args, call -> call.run(args) }

@PublishedApi
internal fun <T : Any> typedTool(name: String, description: String, type: KType, java: Class<T>, run: suspend ToolCall.(T) -> Any?): Tool {
    val schema = schemaOf(type, java, name)
    return Tool.of(describe(name, description, schema)) { args, call -> call.run(argumentsOf(type, java, args)) }
}

private fun describe(name: String, description: String, schema: Any?): JsonMap =
    mapOf("name" to name, "description" to description, "inputSchema" to schema)

/** Says to the model what an argument is for: on a component of a record, or on a property. */
@Target(AnnotationTarget.FIELD)
@Retention(AnnotationRetention.RUNTIME)
public annotation class Description(
    /** The text. */
    public val value: String,
)
