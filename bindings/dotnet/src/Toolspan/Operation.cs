using System;
using System.Collections.Concurrent;
using System.Collections.Generic;
using System.Text.Json;
using System.Threading;
using System.Threading.Tasks;

namespace Toolspan
{
    /// <summary>An operation that was started and has not ended.</summary>
    internal sealed class Operation
    {
        // Never on the thread that delivers: what waits for this may be code of the program.
        private readonly TaskCompletionSource<JsonElement> end =
            new TaskCompletionSource<JsonElement>(TaskCreationOptions.RunContinuationsAsynchronously);

        private readonly object? keep;

        internal Operation(Pump pump, ulong number, object? keep)
        {
            Pump = pump;
            Number = number;
            this.keep = keep;
            Context = ExecutionContext.Capture();
        }

        internal Pump Pump { get; }

        internal ulong Number { get; }

        /// <summary>Answers to requests of the program's own handler that are being read.</summary>
        internal HttpBodies Bodies { get; } = new HttpBodies();

        /// <summary>Where the program's functions run: with the AsyncLocal values of whoever started this.</summary>
        internal ExecutionContext? Context { get; }

        /// <summary>Host calls under way, by number.</summary>
        internal ConcurrentDictionary<ulong, HostCall> Calls { get; } = new ConcurrentDictionary<ulong, HostCall>();

        /// <summary>What functions of the program threw, by number of the host call.</summary>
        internal ConcurrentDictionary<long, Thrown> Thrown { get; } = new ConcurrentDictionary<long, Thrown>();

        /// <summary>The result, or the error.</summary>
        internal Task<JsonElement> Ended => end.Task;

        internal void Complete(JsonElement result) => end.TrySetResult(result);

        internal void Fail(ErrorRecord error)
        {
            Exception? inner = null;
            if (error.HostCall is long call && Thrown.TryGetValue(call, out var thrown)) inner = thrown.Exception;
            end.TrySetException(Exceptions.Of(error, inner));
            // A program that does not look at the end of what it started is not told of it twice.
            _ = end.Task.Exception;
            GC.KeepAlive(keep);
        }

        /// <summary>Asks it to stop. That it has ended already is no error.</summary>
        internal void Cancel() => NativeMethods.ts_cancel(Pump.Number, Number);

        /// <summary>The result; while the caller waits, its token cancels.</summary>
        internal async Task<JsonElement> ResultAsync(CancellationToken token)
        {
            using (token.Register(state => ((Operation)state!).Cancel(), this, useSynchronizationContext: false))
            {
                try
                {
                    return await Ended.ConfigureAwait(false);
                }
                catch (CancelledException e) when (token.IsCancellationRequested)
                {
                    throw new CancelledException(e.Record, e.InnerException, token);
                }
            }
        }
    }

    /// <summary>What a function of the program threw, and for which call of the model where it is a tool.</summary>
    internal readonly struct Thrown
    {
        internal Thrown(Exception exception, string? callId)
        {
            Exception = exception;
            CallId = callId;
        }

        internal Exception Exception { get; }

        internal string? CallId { get; }
    }

    /// <summary>Nobody waits any more for what a function of the program was to be called for.</summary>
    internal sealed class UnwantedException : Exception { }

    /// <summary>A question of the library that a function of the program answers.</summary>
    internal sealed class HostCall
    {
        private readonly CancellationTokenSource cancel = new CancellationTokenSource();
        private volatile bool cancelled;

        internal HostCall(JsonElement call, Operation operation)
        {
            Number = call.GetProperty("call").GetUInt64();
            Kind = call.GetProperty("kind").GetString()!;
            Handler = call.GetProperty("handler").GetUInt64();
            Payload = call.GetProperty("payload");
            Operation = operation;
        }

        internal ulong Number { get; }

        internal string Kind { get; }

        internal ulong Handler { get; }

        internal JsonElement Payload { get; }

        internal Operation Operation { get; }

        /// <summary>Cancelled when nobody waits for the answer any more.</summary>
        internal CancellationToken Token => cancel.Token;

        /// <summary>What becomes of an answer that nobody takes.</summary>
        internal Action? Untaken { get; set; }

        /// <summary>
        /// What a function is told. The last step before the function: one whose call was taken back, or whose operation or engine has
        /// ended, is not entered. That somebody cancelled the operation takes nothing back by itself: a store still keeps what was done.
        /// </summary>
        internal T Begin<T>(Func<JsonElement, T> read)
        {
            var told = read(Payload);
            if (cancelled || Operation.Pump.IsClosed) throw new UnwantedException();
            return told;
        }

        /// <summary>Tells the function, away from the thread that delivers, and whatever its callbacks throw.</summary>
        internal void Cancel()
        {
            cancelled = true;
            ThreadPool.UnsafeQueueUserWorkItem(
                state =>
                {
                    try
                    {
                        ((CancellationTokenSource)state!).Cancel();
                    }
                    catch (AggregateException)
                    {
                        // Callbacks of the program; nobody waits for them.
                    }
                },
                cancel);
        }
    }
}
