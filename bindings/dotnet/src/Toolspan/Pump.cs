using System;
using System.Collections.Concurrent;
using System.Collections.Generic;
using System.Text.Json;
using System.Threading;
using System.Threading.Tasks;

namespace Toolspan
{
    /// <summary>
    /// An instance of the library as this package sees it: operations by number, the program's functions by number, and one
    /// thread that collects events and runs nothing of the program.
    /// </summary>
    internal sealed class Pump
    {
        // Both are numbered across all engines. What waits for an operation is rooted here until that has ended, so that a program
        // may forget a task, a toolkit and the engine while the operation runs; functions are owned by what they were given to.
        private static readonly ConcurrentDictionary<ulong, Operation> Pending = new ConcurrentDictionary<ulong, Operation>();
        private static readonly ConcurrentDictionary<ulong, WeakReference<object>> Known = new ConcurrentDictionary<ulong, WeakReference<object>>();
        private static long numbers;

        private static readonly ErrorRecord Cancelled = new ErrorRecord { Code = ErrorCodes.Cancelled, Message = "the caller cancelled" };

        private readonly EngineHandle handle;
        private readonly Sink sink;
        private readonly TaskCompletionSource<bool> collected =
            new TaskCompletionSource<bool>(TaskCreationOptions.RunContinuationsAsynchronously);
        private int started;

        internal Pump(EngineOptions options)
        {
            sink = new Sink(options.Log);
            handle = Native.NewEngine(Json.Bytes(options.Write));
            if (options.Log != null) Start();
        }

        internal ulong Number => handle.Number;

        internal bool IsClosed { get; private set; }

        internal static ulong NextNumber() => (ulong)Interlocked.Increment(ref numbers);

        internal static void Know(ulong number, object function) => Known[number] = new WeakReference<object>(function);

        internal static void Forget(ulong number) => Known.TryRemove(number, out _);

        /// <summary>An operation that needs no waiting.</summary>
        internal JsonElement Call(string op, Action<Utf8JsonWriter>? arguments = null) =>
            Native.Call(Number, Request(op, arguments));

        /// <summary>Starts an operation; <paramref name="keep"/> is not collected before it has ended.</summary>
        internal Operation Start(string op, Action<Utf8JsonWriter>? arguments, object? keep = null)
        {
            var request = Request(op, arguments);
            Start();
            var operation = new Operation(this, NextNumber(), keep);
            Pending[operation.Number] = operation;
            try
            {
                Native.Submit(Number, operation.Number, request);
            }
            catch
            {
                Pending.TryRemove(operation.Number, out _);
                throw;
            }
            return operation;
        }

        /// <summary>Starts an operation and gives its result.</summary>
        internal async Task<JsonElement> RunAsync(
            string op, Action<Utf8JsonWriter>? arguments, object? keep, CancellationToken token)
        {
            ThrowIfCancelled(token);
            return await Start(op, arguments, keep).ResultAsync(token).ConfigureAwait(false);
        }

        internal static void ThrowIfCancelled(CancellationToken token)
        {
            if (token.IsCancellationRequested) throw new CancelledException(Cancelled, null, token);
        }

        /// <summary>Starts an operation whose end interests nobody. For finalizers: nothing is waited for, nothing is thrown.</summary>
        internal static void Discard(ulong engine, string op, Action<Utf8JsonWriter> arguments)
        {
            try
            {
                Native.Submit(engine, NextNumber(), Request(op, arguments));
            }
            catch (ToolspanException)
            {
                // The engine is closed, and everything of it.
            }
        }

        /// <summary>Ends everything that is open. After it nothing reaches the program any more.</summary>
        internal async Task<bool> CloseAsync(TimeSpan timeout)
        {
            if (timeout < TimeSpan.Zero && timeout != Timeout.InfiniteTimeSpan) throw new ArgumentOutOfRangeException(nameof(timeout));
            // Weeks are for ever, which is also what a timer cannot measure.
            var forever = timeout == Timeout.InfiniteTimeSpan || timeout.TotalMilliseconds > int.MaxValue;
            IsClosed = true;
            var deadline = Task.Delay(forever ? Timeout.InfiniteTimeSpan : timeout);
            // A thread of its own: those of the pool may all be waiting for this.
            var ended = await Task.Factory.StartNew(
                () => Native.Close(Number, forever ? ulong.MaxValue : (ulong)timeout.TotalMilliseconds),
                CancellationToken.None,
                TaskCreationOptions.LongRunning,
                TaskScheduler.Default).ConfigureAwait(false);
            var told = Volatile.Read(ref started) == 0 ? Task.CompletedTask : collected.Task;
            // Another close may be under way, and take longer than this one is to.
            ended &= await Task.WhenAny(told, deadline).ConfigureAwait(false) == told;
            await Task.WhenAny(sink.Drained(), deadline).ConfigureAwait(false);
            sink.Mute();
            return ended;
        }

        private static ReadOnlyMemory<byte> Request(string op, Action<Utf8JsonWriter>? arguments) => Json.Bytes(writer =>
        {
            writer.WriteStartObject();
            writer.WriteString("op", op);
            writer.WriteStartObject("args");
            arguments?.Invoke(writer);
            writer.WriteEndObject();
            writer.WriteEndObject();
        });

        private void Start()
        {
            if (Interlocked.Exchange(ref started, 1) != 0) return;
            // The thread knows the engine by number, so that an engine that is dropped can be collected, which ends the thread.
            var engine = Number;
            var pump = new WeakReference<Pump>(this);
            var thread = new Thread(() => Collect(engine, pump)) { IsBackground = true, Name = "toolspan" };
            // Without the AsyncLocal values of whoever happens to be the first.
            if (ExecutionContext.IsFlowSuppressed()) thread.Start();
            else using (ExecutionContext.SuppressFlow()) thread.Start();
        }

        private static void Collect(ulong engine, WeakReference<Pump> pump)
        {
            void Deliver(JsonElement item) => Pump.Deliver(item, pump);
            var reason = new ErrorRecord { Code = ErrorCodes.Closed, Message = "the engine was closed" };
            try
            {
                while (Native.Poll(engine, Deliver)) { }
            }
            catch (Exception e)
            {
                // A defect. Nobody collects any more, so nothing more may be started.
                reason = (e as IToolspanError)?.Record
                    ?? new ErrorRecord { Code = ErrorCodes.Internal, Message = $"an event could not be delivered: {e.Message}" };
                Native.Close(engine, 0);
            }
            foreach (var operation in Pending.Values)
            {
                if (operation.Pump.Number == engine && End(operation)) operation.Fail(reason);
            }
            if (pump.TryGetTarget(out var own)) own.collected.TrySetResult(true);
        }

        private static void Deliver(JsonElement item, WeakReference<Pump> pump)
        {
            Native.HoldBack();
            Pending.TryGetValue(item.GetProperty("op").GetUInt64(), out var operation);
            switch (item.GetProperty("type").GetString())
            {
                case "host_call" when item.GetProperty("kind").GetString() == "http.close":
                    // Not behind a slow sink: a connection waits for it.
                    if (operation != null) ThreadPool.UnsafeQueueUserWorkItem(_ => operation.Bodies.Close(item.GetProperty("payload")), null);
                    break;
                case "host_call" when item.GetProperty("call").GetUInt64() == 0:
                    if (pump.TryGetTarget(out var own)) own.sink.Add(item, Function(item.GetProperty("handler").GetUInt64()));
                    break;
                case "host_call":
                    if (operation is null) break;
                    var call = new HostCall(item, operation);
                    operation.Calls[call.Number] = call;
                    ThreadPool.UnsafeQueueUserWorkItem(state => Serve((HostCall)state!), call);
                    break;
                case "host_call_cancelled":
                    if (operation != null && operation.Calls.TryRemove(item.GetProperty("call").GetUInt64(), out call)) call.Cancel();
                    break;
                case "done":
                    if (End(operation)) operation!.Complete(item.GetProperty("result"));
                    break;
                case "failed":
                case "cancelled":
                    if (End(operation)) operation!.Fail(ErrorRecord.Read(item.GetProperty("error")));
                    break;
            }
        }

        private static bool End(Operation? operation)
        {
            if (operation is null || !Pending.TryRemove(operation.Number, out _)) return false;
            foreach (var call in operation.Calls.Values) call.Cancel();
            operation.Bodies.End();
            return true;
        }

        private static object? Function(ulong number) =>
            Known.TryGetValue(number, out var weak) && weak.TryGetTarget(out var function) ? function : null;

        private static void Serve(HostCall call)
        {
            // The task is not looked at: it never fails.
            if (call.Operation.Context is ExecutionContext context) ExecutionContext.Run(context, state => _ = AnswerAsync(call), null);
            else _ = AnswerAsync(call);
        }

        private static async Task AnswerAsync(HostCall call)
        {
            ReadOnlyMemory<byte> reply;
            try
            {
                var function = Function(call.Handler)
                    ?? throw new InvalidOperationException("nothing of the program serves this call any more");
                var value = await HostCalls.ServeAsync(call, function).ConfigureAwait(false);
                reply = Json.Bytes(writer =>
                {
                    writer.WriteStartObject();
                    writer.WritePropertyName("ok");
                    value(writer);
                    writer.WriteEndObject();
                });
            }
            catch (UnwantedException)
            {
                return;
            }
            catch (Exception e)
            {
                // Kept before the answer is given: the end of the operation may follow at once.
                call.Operation.Thrown[(long)call.Number] = new Thrown(e, Json.Text(call.Payload, "callId"));
                reply = Json.Bytes(writer =>
                {
                    writer.WriteStartObject();
                    writer.WriteStartObject("error");
                    writer.WriteString("message", MessageOf(e));
                    writer.WriteString("type", e.GetType().Name);
                    writer.WriteEndObject();
                    writer.WriteEndObject();
                });
            }
            // Whose question was taken back gets no answer.
            var wanted = call.Operation.Calls.TryRemove(call.Number, out _);
            if (!wanted || !Native.Respond(call.Operation.Pump.Number, call.Number, reply)) call.Untaken?.Invoke();
        }

        /// <summary>What an exception of the program says; its kind where it cannot say anything.</summary>
        private static string MessageOf(Exception e)
        {
            try
            {
                return e.Message;
            }
            catch (Exception)
            {
                return e.GetType().Name;
            }
        }
    }
}
