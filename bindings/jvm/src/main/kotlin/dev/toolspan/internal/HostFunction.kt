package dev.toolspan.internal

import kotlinx.coroutines.future.await
import kotlinx.coroutines.runInterruptible
import java.util.concurrent.CompletionStage

/** A function of the program: what it answers, and what it is told, by kind of host call. */
internal class HostFunction(
    private val answers: Map<String, suspend (JsonMap) -> Any?> = emptyMap(),
    private val notices: Map<String, (JsonMap) -> Unit> = emptyMap(),
) {
    /** Kinds of host calls it is for. */
    val kinds: Set<String> get() = answers.keys + notices.keys

    suspend fun serve(kind: String, payload: JsonMap): Any? =
        (answers[kind] ?: error("this function does not answer $kind"))(payload)

    fun notify(kind: String, payload: JsonMap) {
        notices[kind]?.invoke(payload)
    }
}

/** Every kind that this package answers: with [HostFunction]s, and `http.read` with the [Bodies] of an operation. */
internal val ANSWERED = listOf(
    "tool.execute",
    "hook.beforeLLM",
    "hook.afterLLM",
    "hook.beforeTool",
    "hook.afterTool",
    "bodyTransform",
    "onError",
    "store.get",
    "store.save",
    "http.send",
    "http.read",
)

/**
 * Calls a function that blocks; when nobody waits for it any more its thread is interrupted. A stage that it returns is
 * waited for, and cancelled in its turn.
 */
internal suspend fun <T> blocking(call: () -> T): T {
    val value = runInterruptible { call() }
    @Suppress("UNCHECKED_CAST")
    return if (value is CompletionStage<*>) value.await() as T else value
}
