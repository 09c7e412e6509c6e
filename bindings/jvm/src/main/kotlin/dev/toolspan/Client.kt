package dev.toolspan

import dev.toolspan.internal.Encoded
import dev.toolspan.internal.Events
import dev.toolspan.internal.Handle
import dev.toolspan.internal.JsonMap
import dev.toolspan.internal.because
import dev.toolspan.internal.present
import dev.toolspan.internal.promised
import dev.toolspan.internal.recordOrNull
import dev.toolspan.internal.waiting
import java.util.concurrent.CompletableFuture
import kotlinx.coroutines.flow.Flow

/**
 * One endpoint and one model (SPEC 7). It costs little: all clients of an engine share their connections.
 *
 * A prompt is text, or a list of [ContentPart]s; it may be empty when there is a history.
 */
public class Client internal constructor(internal val engine: Engine, number: Long, encoded: Encoded) : AutoCloseable {
    internal val handle = Handle(engine, "client", number, encoded)

    /** Sends the prompt, executes the calls the model asks for, and repeats until it answers or a limit is reached. */
    @JvmSynthetic
    public suspend fun run(prompt: String, toolkit: Toolkit? = null, options: RunOptions.() -> Unit = {}): RunResult =
        perform("client.run", prompt, RunOptions().toolkit(toolkit).apply(options))

    /** The same with content parts. */
    @JvmSynthetic
    public suspend fun run(prompt: List<ContentPart>, toolkit: Toolkit? = null, options: RunOptions.() -> Unit = {}): RunResult =
        perform("client.run", prompt, RunOptions().toolkit(toolkit).apply(options))

    /** Sends the prompt, executes the calls the model asks for, and repeats until it answers or a limit is reached. */
    @JvmName("run")
    @JvmOverloads
    @Throws(InterruptedException::class)
    public fun runBlocking(prompt: String, options: RunOptions = RunOptions()): RunResult = waiting { perform("client.run", prompt, options) }

    /** The same with content parts. */
    @JvmName("run")
    @JvmOverloads
    @Throws(InterruptedException::class)
    public fun runBlocking(prompt: List<ContentPart>, options: RunOptions = RunOptions()): RunResult =
        waiting { perform("client.run", prompt, options) }

    /** The same, as a future. */
    @JvmOverloads
    public fun runAsync(prompt: String, options: RunOptions = RunOptions()): CompletableFuture<RunResult> =
        engine.pump.promised { perform("client.run", prompt, options) }

    /** The same, as a future. */
    @JvmOverloads
    public fun runAsync(prompt: List<ContentPart>, options: RunOptions = RunOptions()): CompletableFuture<RunResult> =
        engine.pump.promised { perform("client.run", prompt, options) }

    /** The same run with a memory: loads the conversation [id], runs, saves it. */
    @JvmSynthetic
    public suspend fun ask(prompt: String, id: String, toolkit: Toolkit? = null, options: RunOptions.() -> Unit = {}): RunResult =
        perform("client.ask", prompt, RunOptions().toolkit(toolkit).apply(options), id)

    /** The same with content parts. */
    @JvmSynthetic
    public suspend fun ask(prompt: List<ContentPart>, id: String, toolkit: Toolkit? = null, options: RunOptions.() -> Unit = {}): RunResult =
        perform("client.ask", prompt, RunOptions().toolkit(toolkit).apply(options), id)

    /** The same run with a memory: loads the conversation [id], runs, saves it. */
    @JvmName("ask")
    @JvmOverloads
    @Throws(InterruptedException::class)
    public fun askBlocking(prompt: String, id: String, options: RunOptions = RunOptions()): RunResult =
        waiting { perform("client.ask", prompt, options, id) }

    /** The same with content parts. */
    @JvmName("ask")
    @JvmOverloads
    @Throws(InterruptedException::class)
    public fun askBlocking(prompt: List<ContentPart>, id: String, options: RunOptions = RunOptions()): RunResult =
        waiting { perform("client.ask", prompt, options, id) }

    /** The same, as a future. */
    @JvmOverloads
    public fun askAsync(prompt: String, id: String, options: RunOptions = RunOptions()): CompletableFuture<RunResult> =
        engine.pump.promised { perform("client.ask", prompt, options, id) }

    /** The same, as a future. */
    @JvmOverloads
    public fun askAsync(prompt: List<ContentPart>, id: String, options: RunOptions = RunOptions()): CompletableFuture<RunResult> =
        engine.pump.promised { perform("client.ask", prompt, options, id) }

    /** The run, event by event. It starts when it is collected; leaving the collector ends it and its connection. */
    @JvmSynthetic
    public fun stream(prompt: String, toolkit: Toolkit? = null, options: RunOptions.() -> Unit = {}): Flow<Event> =
        events(prompt, RunOptions().toolkit(toolkit).apply(options)).flow()

    /** The same with content parts. */
    @JvmSynthetic
    public fun stream(prompt: List<ContentPart>, toolkit: Toolkit? = null, options: RunOptions.() -> Unit = {}): Flow<Event> =
        events(prompt, RunOptions().toolkit(toolkit).apply(options)).flow()

    /** The run of [ask], event by event. */
    @JvmSynthetic
    public fun stream(prompt: String, id: String, toolkit: Toolkit? = null, options: RunOptions.() -> Unit = {}): Flow<Event> =
        events(prompt, RunOptions().toolkit(toolkit).apply(options), id).flow()

    /** The same with content parts. */
    @JvmSynthetic
    public fun stream(prompt: List<ContentPart>, id: String, toolkit: Toolkit? = null, options: RunOptions.() -> Unit = {}): Flow<Event> =
        events(prompt, RunOptions().toolkit(toolkit).apply(options), id).flow()

    /** The run, event by event. It starts when the first event is asked for; closing ends it and its connection. */
    @JvmName("stream")
    @JvmOverloads
    public fun streamBlocking(prompt: String, options: RunOptions = RunOptions()): EventStream = EventStream(events(prompt, options))

    /** The same with content parts. */
    @JvmName("stream")
    @JvmOverloads
    public fun streamBlocking(prompt: List<ContentPart>, options: RunOptions = RunOptions()): EventStream = EventStream(events(prompt, options))

    /** The run of [ask], event by event. */
    @JvmName("stream")
    @JvmOverloads
    public fun streamBlocking(prompt: String, id: String, options: RunOptions = RunOptions()): EventStream =
        EventStream(events(prompt, options, id))

    /** The same with content parts. */
    @JvmName("stream")
    @JvmOverloads
    public fun streamBlocking(prompt: List<ContentPart>, id: String, options: RunOptions = RunOptions()): EventStream =
        EventStream(events(prompt, options, id))

    /** A conversation, of that id where one is given. */
    @JvmOverloads
    public fun conversation(id: String? = null, toolkit: Toolkit? = null): Conversation {
        val args = present("id" to id, "toolkit" to engine.toolkitNumber(toolkit)).toList().toTypedArray()
        return Conversation(this, toolkit, handle.call("conversation.create", *args)["conversation"] as Long)
    }

    /** The store that [ask] uses. */
    public fun conversationStore(): StoredConversations = StoredConversations(this)

    /** Metrics in the text format of Prometheus. */
    public fun metrics(): String = handle.call("client.metrics")["text"] as String

    /** Ends the runs of the client. */
    @JvmSynthetic
    @JvmName("close")
    public suspend fun closeSuspending(): Unit = handle.close()

    /** Ends the runs of the client. An interrupt ends only the wait. */
    override fun close(): Unit = handle.closeBlocking()

    /** The same, as a future. */
    public fun closeAsync(): CompletableFuture<Unit> = engine.pump.promised { handle.close() }

    private suspend fun perform(op: String, prompt: Any, options: RunOptions, id: String? = null): RunResult {
        val (operation, outcome) = engine.pump.outcome(op, request(prompt, options) + present("id" to id), keep = listOf(this, options.toolkit))
        return RunResult.of(outcome.get()).because(operation)
    }

    private fun events(prompt: Any, options: RunOptions, id: String? = null) =
        Events(engine.pump, request(prompt, options) + present("id" to id), listOf(this, options.toolkit))

    private fun request(prompt: Any, options: RunOptions): JsonMap =
        handle.operands(engine.toolkitNumber(options.toolkit), options.values + ("prompt" to prompt))
}

/** Prompts that follow each other (SPEC 7.7). */
public class Conversation internal constructor(private val client: Client, private val toolkit: Toolkit?, number: Long) : AutoCloseable {
    private val handle = Handle(client.engine, "conversation", number, null)

    /** The next prompt. */
    @JvmSynthetic
    public suspend fun send(prompt: String): RunResult = perform(prompt)

    /** The same with content parts. */
    @JvmSynthetic
    public suspend fun send(prompt: List<ContentPart>): RunResult = perform(prompt)

    /** The next prompt. */
    @JvmName("send")
    @Throws(InterruptedException::class)
    public fun sendBlocking(prompt: String): RunResult = waiting { perform(prompt) }

    /** The same with content parts. */
    @JvmName("send")
    @Throws(InterruptedException::class)
    public fun sendBlocking(prompt: List<ContentPart>): RunResult = waiting { perform(prompt) }

    /** The same, as a future. */
    public fun sendAsync(prompt: String): CompletableFuture<RunResult> = handle.pump.promised { perform(prompt) }

    /** The same, as a future. */
    public fun sendAsync(prompt: List<ContentPart>): CompletableFuture<RunResult> = handle.pump.promised { perform(prompt) }

    /** What was said so far. */
    @JvmSynthetic
    @Suppress("UNCHECKED_CAST")
    public suspend fun messages(): List<Map<String, Any?>> =
        handle.pump.perform("conversation.messages", handle.args(), keep = this)["messages"] as List<Map<String, Any?>>

    /** What was said so far. */
    @JvmName("messages")
    @Throws(InterruptedException::class)
    public fun messagesBlocking(): List<Map<String, Any?>> = waiting { messages() }

    /** The same, as a future. */
    public fun messagesAsync(): CompletableFuture<List<Map<String, Any?>>> = handle.pump.promised { messages() }

    /** Forgets what was said. */
    @JvmSynthetic
    public suspend fun reset() {
        handle.pump.perform("conversation.reset", handle.args(), keep = this)
    }

    /** Forgets what was said. */
    @JvmName("reset")
    @Throws(InterruptedException::class)
    public fun resetBlocking(): Unit = waiting { reset() }

    /** The same, as a future. */
    public fun resetAsync(): CompletableFuture<Unit> = handle.pump.promised { reset() }

    /** Forgets this object; what is stored stays. */
    @JvmSynthetic
    @JvmName("close")
    public suspend fun closeSuspending(): Unit = handle.close()

    /** Forgets this object; what is stored stays. An interrupt ends only the wait. */
    override fun close(): Unit = handle.closeBlocking()

    /** The same, as a future. */
    public fun closeAsync(): CompletableFuture<Unit> = handle.pump.promised { handle.close() }

    private suspend fun perform(prompt: Any): RunResult {
        val (operation, outcome) = handle.pump.outcome("conversation.send", handle.args("prompt" to prompt), keep = listOf(this, client, toolkit))
        return RunResult.of(outcome.get()).because(operation)
    }
}

/** The conversations of a client's store. */
public class StoredConversations internal constructor(private val client: Client) {
    /** The conversation of that id, or null. */
    @JvmSynthetic
    public suspend fun get(id: String): Transcript? =
        client.engine.pump.perform("store.get", client.handle.args("id" to id), keep = client).recordOrNull("transcript", Transcript::of)

    /** The conversation of that id, or null. */
    @JvmName("get")
    @Throws(InterruptedException::class)
    public fun getBlocking(id: String): Transcript? = waiting { get(id) }

    /** The same, as a future; it gives null when there is none. */
    public fun getAsync(id: String): CompletableFuture<Transcript?> = client.engine.pump.promised { get(id) }

    /** Keeps a conversation of the client's style: its messages. */
    @JvmSynthetic
    public suspend fun save(id: String, messages: List<Map<String, Any?>>): Unit = keep(id, messages)

    /** Keeps a conversation of either style. */
    @JvmSynthetic
    public suspend fun save(id: String, transcript: Transcript): Unit = keep(id, transcript)

    /** Keeps a conversation of the client's style: its messages. */
    @JvmName("save")
    @Throws(InterruptedException::class)
    public fun saveBlocking(id: String, messages: List<Map<String, Any?>>): Unit = waiting { keep(id, messages) }

    /** Keeps a conversation of either style. */
    @JvmName("save")
    @Throws(InterruptedException::class)
    public fun saveBlocking(id: String, transcript: Transcript): Unit = waiting { keep(id, transcript) }

    /** The same, as a future. */
    public fun saveAsync(id: String, messages: List<Map<String, Any?>>): CompletableFuture<Unit> =
        client.engine.pump.promised { keep(id, messages) }

    /** The same, as a future. */
    public fun saveAsync(id: String, transcript: Transcript): CompletableFuture<Unit> = client.engine.pump.promised { keep(id, transcript) }

    private suspend fun keep(id: String, what: Any) {
        client.engine.pump.perform("store.save", client.handle.args("id" to id, "messages" to what), keep = client)
    }
}
