package dev.toolspan.internal

import java.util.concurrent.Executor
import java.util.concurrent.locks.ReentrantLock
import kotlin.concurrent.withLock

/**
 * Tells the program's sinks one thing after the other, in the order it came. Nobody waits for them; one that lags too far
 * behind misses something, and [lost] is told how much.
 */
internal class Sinks(private val executor: Executor, private val lost: (Int) -> Unit) {
    private val lock = ReentrantLock()
    private val idle = lock.newCondition()
    private val waiting = ArrayDeque<() -> Unit>()
    private var dropped = 0
    private var busy = false
    private var muted = false

    fun tell(notice: () -> Unit) {
        lock.withLock {
            if (muted) return
            if (waiting.size >= LIMIT) {
                // It stands where the gap is.
                if (dropped++ == 0) waiting.addLast(::tellLost)
                return
            }
            waiting.addLast(notice)
            if (busy) return
            busy = true
        }
        executor.execute(::drain)
    }

    /** Waits until everything was told, and says whether the time sufficed. */
    fun drained(nanos: Long): Boolean = lock.withLock {
        var left = nanos
        while (busy && left > 0) left = idle.awaitNanos(left)
        !busy
    }

    /** Tells nothing any more. */
    fun mute() {
        lock.withLock {
            muted = true
            waiting.clear()
        }
    }

    /** Whether this thread runs a sink: it must not wait for one. */
    val isCurrent: Boolean get() = current.get() === this

    private fun drain() {
        current.set(this)
        try {
            while (true) {
                val notice = next() ?: return
                try {
                    notice()
                } catch (_: Throwable) {
                    // A sink that fails, with whatever, has nobody to tell, and the next one is told all the same.
                }
            }
        } finally {
            current.remove()
        }
    }

    private fun next(): (() -> Unit)? = lock.withLock {
        waiting.removeFirstOrNull().also {
            busy = it != null
            if (!busy) idle.signalAll()
        }
    }

    private fun tellLost() {
        lost(lock.withLock { dropped.also { dropped = 0 } })
    }

    private companion object {
        /** As in the library itself (SPEC 9). */
        const val LIMIT = 8192

        val current = ThreadLocal<Sinks>()
    }
}
