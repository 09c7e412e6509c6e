// The Kotlin column of the conformance suite: does what stdin says with the package's public API, answers on stdout.

import dev.toolspan.*
import java.io.PrintStream
import java.net.http.HttpClient
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.CopyOnWriteArrayList
import java.util.concurrent.atomic.AtomicInteger
import kotlin.system.exitProcess
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.Job
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.flow.onEach
import kotlinx.coroutines.flow.take
import kotlinx.coroutines.launch

private typealias Values = Map<String, Any?>

private val calls = CopyOnWriteArrayList<Values>()
private val logs = CopyOnWriteArrayList<LogRecord>()
private val metrics = CopyOnWriteArrayList<MetricEvent>()

/** Numbered toolkits, clients and conversations. */
private val objects = ConcurrentHashMap<Long, Any>()
private val numbers = AtomicInteger()

/** Steps under way. */
private val running = ConcurrentHashMap<Long, Job>()
private val engine = Engine(EngineOptions().log { logs += it })
private val out: PrintStream = System.out

private fun keep(value: Any): Long = numbers.incrementAndGet().toLong().also { objects[it] = value }

@Suppress("UNCHECKED_CAST")
private fun <T> Values.known(key: String): T = objects[this[key]] as T? ?: error("the case names $key ${this[key]}, which is nothing")

@Suppress("UNCHECKED_CAST")
private fun Values.map(key: String) = this[key] as Values? ?: emptyMap()

private fun Values.text(key: String) = this[key] as String

// The program's functions

/** A function of the case, as one that takes and gives JSON. */
private class Behaviour(private val number: Long, private val kind: String, private val behaviour: Values) {
    private val count = AtomicInteger()
    val keeps = "store" in behaviour
    val sends = "http" in behaviour

    fun record(payload: Any?, kind: String = this.kind) {
        calls += mapOf("handler" to number, "kind" to kind, "payload" to payload)
    }

    suspend fun call(payload: Values, kind: String = this.kind): Any? {
        record(payload, kind)
        return behave(behaviour, payload)
    }

    @Suppress("UNCHECKED_CAST")
    private suspend fun behave(behaviour: Values, payload: Values): Any? = when {
        "sequence" in behaviour -> (behaviour["sequence"] as List<Values>).let { behave(it[minOf(count.getAndIncrement(), it.size - 1)], payload) }
        "return" in behaviour -> behaviour["return"]
        "echo" in behaviour -> payload
        "throw" in behaviour -> throw IllegalStateException(behaviour.text("throw"))
        "hang" in behaviour -> awaitCancellation()
        "edit" in behaviour -> edit(payload, behaviour.map("edit"))
        else -> error("no such behaviour: $behaviour")
    }

    @Suppress("UNCHECKED_CAST")
    private fun edit(body: Values, edit: Values): Values {
        val edited = (body + edit.map("set") - (edit["drop"] as List<String>?).orEmpty().toSet()).toMutableMap()
        val more = edit["appendToLastUser"] as String? ?: return edited
        val messages = (edited["messages"] as List<Values>).toMutableList()
        val last = messages.indexOfLast { it["role"] == "user" }
        val content = messages[last]["content"]
        val longer: Any = if (content is String) content + more else content as List<Any?> + mapOf("type" to "text", "text" to more)
        messages[last] = messages[last] + ("content" to longer)
        return edited + ("messages" to messages)
    }
}

/** The functions of a step, by their numbers in its options. */
private class Functions(handlers: Values) {
    @Suppress("UNCHECKED_CAST")
    private val byNumber = handlers.map { (n, it) -> n.toLong() to Behaviour(n.toLong(), (it as Values).text("kind"), it.map("behaviour")) }.toMap()

    fun of(value: Any?): Behaviour? = byNumber[if (value is Map<*, *>) value["handler"] else value]

    /** A tool of the case; what is none stays as it is. */
    @Suppress("UNCHECKED_CAST")
    fun tool(definition: Any?): Any? {
        val behaviour = of((definition as? Values)?.get("handler")) ?: return definition
        return dev.toolspan.tool((definition as Values) - "handler") { args ->
            val value = behaviour.call(args)
            if (value is Map<*, *> && value["output"] is String && value["isError"] is Boolean) ToolResult.of(value as Values) else value
        }
    }

    fun client(options: Values): ClientOptions = ClientOptions().apply {
        for ((key, value) in options) {
            val function = of(value)
            when {
                key == "hooks" && value is Map<*, *> -> hooks(hooks(options.map(key)))
                function == null -> set(key, value)
                key == "bodyTransform" -> bodyTransform { @Suppress("UNCHECKED_CAST") (function.call(it) as Values?) }
                key == "onError" -> onError { failure -> function.call(failure.toMap())?.let { answer -> ErrorDecision.entries.first { it.text == answer } } }
                key == "onMetric" -> onMetric { function.record(it.toMap()); metrics += it }
                key == "store" && function.keeps -> ConcurrentHashMap<String, Transcript>().let { kept ->
                    store({ id -> function.record(mapOf("id" to id), "store.get"); kept[id] }, { id, transcript ->
                        function.record(mapOf("id" to id, "messages" to transcript.toMap()), "store.save")
                        kept[id] = transcript
                    })
                }
                key == "store" -> store({ id -> function.call(mapOf("id" to id), "store.get") }, { id, transcript -> function.call(mapOf("id" to id, "messages" to transcript.toMap()), "store.save") })
                key == "httpClient" && function.sends -> httpClient(sending(function))
                key == "httpClient" -> httpClient { request: HttpRequest -> function.call(mapOf("method" to request.method, "url" to request.url)); error("no answer") }
                else -> set(key, value)
            }
        }
    }

    private fun hooks(options: Values): Hooks = Hooks().apply {
        for ((key, value) in options) {
            val function = of(value)
            when (if (function == null) "" else key) {
                "beforeLLM" -> beforeLLM { function!!.call(it.toMap()).change(LlmChange()) }
                "afterLLM" -> afterLLM { function!!.call(it.toMap()) }
                "beforeTool" -> beforeTool { function!!.call(it.toMap()).change(ToolChange()) }
                "afterTool" -> afterTool { @Suppress("UNCHECKED_CAST") ((function!!.call(it.toMap()) as Values?)?.get("result") as Values?)?.let(ToolResult::of) }
                else -> set(key, value)
            }
        }
    }

    private fun <T : Options<T>> Any?.change(change: T): T? = (this as Map<*, *>?)?.let { it.forEach { (key, value) -> change.set(key as String, value) }; change }

    private fun sending(function: Behaviour): HttpTransport {
        val client = HttpTransport.of(HttpClient.newHttpClient())
        return HttpTransport { request ->
            function.record(mapOf("method" to request.method, "url" to request.url))
            client.send(request.copy(headers = request.headers + HttpHeader("x-injected", "1")))
        }
    }
}

// The operations

private fun toolkitOf(args: Values): Toolkit? = args["toolkit"]?.let { args.known<Toolkit>("toolkit") }

/** Options of a run, which the arguments of its operation are but for those that have a place of their own. */
private fun options(args: Values): RunOptions.() -> Unit = {
    for ((key, value) in args - setOf("client", "toolkit", "prompt", "id", "stopAfter")) set(key, value)
}

private class Partial(val events: List<Values>, cause: Throwable) : Exception(cause)

private suspend fun perform(op: String, args: Values, functions: Functions): Any? = when (op) {
    "toolkit.create" -> mapOf("toolkit" to keep(engine.createToolkit(ToolkitOptions().apply {
        for ((key, value) in args.map("options")) set(key, if (key == "tools" && value is List<*>) value.map(functions::tool) else value)
    })))
    "toolkit.tools" -> mapOf("tools" to args.known<Toolkit>("toolkit").tools())
    "toolkit.status" -> mapOf("servers" to args.known<Toolkit>("toolkit").status())
    "toolkit.get" -> mapOf("tool" to args.known<Toolkit>("toolkit").get(args.text("name")))
    "toolkit.execute" -> args.known<Toolkit>("toolkit").let { toolkit ->
        if ("args" in args) toolkit.execute(args.text("name"), args["args"], args["timeoutMs"] as Long?) else toolkit.execute(args.text("name"), timeoutMs = args["timeoutMs"] as Long?)
    }
    "toolkit.register" -> mapOf("registered" to args.known<Toolkit>("toolkit").register(functions.tool(args["tool"]) as Tool))
    "toolkit.adapt" -> args.known<Toolkit>("toolkit").adapt(args.text("provider"))
    "toolkit.close" -> args.known<Toolkit>("toolkit").close().let { emptyMap<String, Any?>() }
    "mcp.list" -> engine.listMcpTools { for ((key, value) in args) set(key, value) }
    "client.create" -> mapOf("client" to keep(engine.createClient(functions.client(args.map("options")))))
    "client.close" -> args.known<Client>("client").close().let { emptyMap<String, Any?>() }
    "client.run" -> parts(args)?.let { args.known<Client>("client").run(it, toolkitOf(args), options(args)) } ?: args.known<Client>("client").run(args.text("prompt"), toolkitOf(args), options(args))
    "client.ask" -> parts(args)?.let { args.known<Client>("client").ask(it, args.text("id"), toolkitOf(args), options(args)) } ?: args.known<Client>("client").ask(args.text("prompt"), args.text("id"), toolkitOf(args), options(args))
    "client.stream" -> {
        val events = mutableListOf<Values>()
        val client = args.known<Client>("client")
        val stream = if ("id" in args) client.stream(args.text("prompt"), args.text("id"), toolkitOf(args), options(args))
        else parts(args)?.let { client.stream(it, toolkitOf(args), options(args)) } ?: client.stream(args.text("prompt"), toolkitOf(args), options(args))
        try {
            stream.take((args["stopAfter"] as Long?)?.toInt() ?: Int.MAX_VALUE).onEach { events += it.toMap() }.collect {}
        } catch (error: Exception) {
            throw Partial(events, error)
        }
        mapOf("events" to events)
    }
    "conversation.create" -> mapOf("conversation" to keep(args.known<Client>("client").conversation(args["id"] as String?, toolkitOf(args))))
    "conversation.send" -> parts(args)?.let { args.known<Conversation>("conversation").send(it) } ?: args.known<Conversation>("conversation").send(args.text("prompt"))
    "conversation.messages" -> mapOf("messages" to args.known<Conversation>("conversation").messages())
    "conversation.reset" -> args.known<Conversation>("conversation").reset().let { emptyMap<String, Any?>() }
    "store.get" -> mapOf("transcript" to args.known<Client>("client").conversationStore().get(args.text("id")))
    "store.save" -> args.known<Client>("client").conversationStore().let { store ->
        @Suppress("UNCHECKED_CAST")
        if (args["messages"] is List<*>) store.save(args.text("id"), args["messages"] as List<Values>) else store.save(args.text("id"), Transcript.of(args.map("messages")))
        emptyMap<String, Any?>()
    }
    "client.metrics" -> mapOf("text" to args.known<Client>("client").metrics())
    "counters" -> engine.counters()
    "version" -> mapOf("version" to engine.version())
    "cancel" -> running[args["step"]]?.cancel().let { emptyMap<String, Any?>() }
    "host.calls" -> calls
    "host.logs" -> logs
    "host.metrics" -> metrics
    "host.reset" -> listOf(calls, logs, metrics).forEach { it.clear() }.let { emptyMap<String, Any?>() }
    else -> error("no such operation: $op")
}

@Suppress("UNCHECKED_CAST")
private fun parts(args: Values): List<ContentPart>? = (args["prompt"] as? List<Values>)?.mapNotNull(ContentPart::of)

// The protocol

private fun say(line: Values) = synchronized(out) { out.println(Json.write(line)); out.flush() }

private fun failure(error: Throwable): Values = when (error) {
    is ToolspanException -> error.record
    is CancellationException -> mapOf("code" to "cancelled", "message" to "the caller cancelled", "retryable" to false)
    else -> mapOf("code" to "shim", "message" to error.stackTraceToString())
}

private suspend fun answer(request: Values) {
    val step = request["step"]
    try {
        say(mapOf("step" to step, "ok" to perform(request.text("op"), request.map("args"), Functions(request.map("handlers")))))
    } catch (error: Partial) {
        say(mapOf("step" to step, "error" to failure(error.cause!!), "partial" to mapOf("events" to error.events)))
    } catch (error: Throwable) {
        say(mapOf("step" to step, "error" to failure(error)))
    }
    running.remove(step)
}

fun main() {
    say(mapOf("ready" to mapOf("language" to "kotlin", "version" to engine.version())))
    val scope = CoroutineScope(Dispatchers.IO)
    for (line in generateSequence(::readLine).filter(String::isNotBlank)) {
        @Suppress("UNCHECKED_CAST")
        val request = Json.parse(line) as Values
        val job = scope.launch(start = kotlinx.coroutines.CoroutineStart.LAZY) { answer(request) }
        running[request["step"] as Long] = job
        job.start()
    }
    engine.close()
    exitProcess(0)
}
