using System;
using System.Collections.Concurrent;
using System.Text.Json;
using System.Threading;
using System.Threading.Tasks;

namespace Toolspan
{
    /// <summary>Hands over what wants no answer, in order, on a thread of the pool. What the program's function throws ends here.</summary>
    internal sealed class Sink
    {
        /// <summary>How much a function may lag behind, as in the library itself (SPEC 9).</summary>
        private const int Limit = 8192;

        private readonly ConcurrentQueue<Action> queue = new ConcurrentQueue<Action>();
        private readonly Action<LogRecord>? log;
        private int waiting;
        // Only the thread that delivers counts.
        private int dropped;
        private volatile bool muted;

        internal Sink(Action<LogRecord>? log) => this.log = log;

        internal void Add(JsonElement call, object? function)
        {
            var payload = call.GetProperty("payload");
            switch (call.GetProperty("kind").GetString())
            {
                case "log" when log != null:
                    Hand(() => log(LogRecord.Read(payload)));
                    break;
                case "metric" when function is Action<MetricEvent> onMetric && MetricEvent.Read(payload) is MetricEvent metric:
                    Hand(() => onMetric(metric));
                    break;
            }
        }

        /// <summary>Ends when everything that was added was handed over.</summary>
        internal Task Drained()
        {
            var end = new TaskCompletionSource<bool>(TaskCreationOptions.RunContinuationsAsynchronously);
            Add(() => end.TrySetResult(true));
            return end.Task;
        }

        /// <summary>Nothing is handed over any more.</summary>
        internal void Mute() => muted = true;

        private void Hand(Action item)
        {
            if (Volatile.Read(ref waiting) >= Limit)
            {
                dropped++;
                return;
            }
            if (dropped > 0)
            {
                Tell(dropped);
                dropped = 0;
            }
            Add(() =>
            {
                if (!muted) item();
            });
        }

        private void Tell(int count) => Add(() =>
        {
            if (!muted) log?.Invoke(new LogRecord
            {
                Level = LogSeverity.Warn, Target = "bridge", Message = $"{count} log and metric events were dropped because the program's sinks lag behind",
            });
        });

        private void Add(Action item)
        {
            queue.Enqueue(item);
            if (Interlocked.Increment(ref waiting) == 1) ThreadPool.UnsafeQueueUserWorkItem(_ => Drain(), null);
        }

        private void Drain()
        {
            do
            {
                queue.TryDequeue(out var item);
                try
                {
                    item!();
                }
                catch (Exception)
                {
                    // The library does not wait for a sink, and one that fails must not end the process.
                }
            }
            while (Interlocked.Decrement(ref waiting) > 0);
        }
    }
}
