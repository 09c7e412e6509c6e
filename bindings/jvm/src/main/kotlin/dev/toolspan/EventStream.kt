package dev.toolspan

import dev.toolspan.internal.Events
import dev.toolspan.internal.Operation
import dev.toolspan.internal.Pump
import dev.toolspan.internal.errorRecord
import dev.toolspan.internal.waiting

/**
 * The events of one run, to be read once and by one thread. It starts when the first event is asked for. Closing ends the run
 * and its connection, so hold it with `try`. A thread that is interrupted while it waits gets a [CancelledException], and the
 * run has ended.
 */
public class EventStream internal constructor(private val events: Events) : Iterable<Event>, Iterator<Event>, AutoCloseable {
    private var stream: Operation? = null
    private var ready = ArrayDeque<Event>()
    private var last = false

    /** This object: a stream is read once. */
    override fun iterator(): Iterator<Event> = this

    /** Waits for an event. False at the end; the exception of the run where it failed. */
    override fun hasNext(): Boolean {
        while (ready.isEmpty() && !last) uninterrupted { read() }
        return ready.isNotEmpty()
    }

    override fun next(): Event {
        if (!hasNext()) throw NoSuchElementException("the run has ended")
        return ready.removeFirst()
    }

    /** Ends the run, if it has not ended, and waits for that. */
    override fun close() {
        last = true
        ready.clear()
        val open = stream ?: return
        uninterrupted { events.pump.end(open) }
    }

    private suspend fun read() {
        val open = stream ?: events.start().also {
            stream = it
            Pump.cleaner.register(this, Left(events.pump, it))
        }
        try {
            val (more, end) = events.next(open)
            ready.addAll(more)
            last = end
            if (end) open.ended.await().get()
        } catch (error: Throwable) {
            last = true
            events.pump.end(open)
            throw error
        }
    }

    private fun uninterrupted(work: suspend () -> Unit) {
        try {
            waiting { work() }
        } catch (interrupt: InterruptedException) {
            Thread.currentThread().interrupt()
            throw CancelledException(errorRecord("cancelled", "the caller cancelled"), interrupt)
        }
    }

    /** Knows everything but the stream itself. */
    private class Left(val pump: Pump, val operation: Operation) : Runnable {
        override fun run() = pump.cancel(operation)
    }
}
