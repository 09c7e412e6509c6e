package dev.toolspan.internal

import dev.toolspan.Event
import dev.toolspan.ToolspanException
import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.flow

/** The stream of a run: what it takes to start one. */
internal class Events(val pump: Pump, private val request: JsonMap, private val keep: Any) {
    /** Starts the run. */
    suspend fun start(): Operation = pump.start("client.stream", request, currentCoroutineContext(), keep)

    /** The next events, and whether they are the last. How the stream ended says more than that it has ended. */
    suspend fun next(stream: Operation): Pair<List<Event>, Boolean> {
        val batch = try {
            pump.perform("stream.next", mapOf("stream" to stream.number))
        } catch (error: ToolspanException) {
            pump.end(stream)
            stream.ended.await().get()
            throw error
        }
        val events = batch.list("items") { item ->
            val event = Event.of(item)
            if (event is Event.Done) event.copy(result = event.result.because(stream)) else event
        }
        val last = batch["end"] == true
        return events to last
    }

    /** Each collector has a run of its own. */
    fun flow(): Flow<Event> = flow {
        val stream = start()
        try {
            do {
                val (events, last) = next(stream)
                for (event in events) emit(event)
            } while (!last)
            stream.ended.await().get()
        } finally {
            pump.end(stream)
        }
    }
}
