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
        private readonly ConcurrentQueue<Action> queue = new ConcurrentQueue<Action>();
        private readonly Action<LogRecord>? log;
        private int waiting;
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
                case "http.close":
                    // Not behind a slow sink: a connection waits for it.
                    ThreadPool.UnsafeQueueUserWorkItem(_ => HttpBodies.Close(payload), null);
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

        private void Hand(Action item) => Add(() =>
        {
            if (!muted) item();
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
