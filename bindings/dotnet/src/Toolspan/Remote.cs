using System;
using System.Text.Json;
using System.Threading;
using System.Threading.Tasks;

namespace Toolspan
{
    /// <summary>
    /// What a toolkit, client or conversation is in the engine: its number, and the functions it was given. It is closed with its
    /// object, and by the garbage collector when the program forgot to.
    /// </summary>
    internal sealed class Remote
    {
        private readonly object closing = new object();
        private readonly string kind;
        private readonly ulong engine;
        private Task? closed;

        /// <param name="pump">The engine.</param>
        /// <param name="kind">What it is called there.</param>
        /// <param name="made">What it was made with, <c>{KIND: NUMBER}</c>.</param>
        /// <param name="functions">What it was given.</param>
        internal Remote(Pump pump, string kind, JsonElement made, Functions functions)
        {
            this.kind = kind;
            Pump = pump;
            engine = pump.Number;
            Number = made.GetProperty(kind).GetUInt64();
            Functions = functions;
        }

        ~Remote()
        {
            Functions.Forget();
            Pump.Discard(engine, $"{kind}.close", Write);
        }

        internal Pump Pump { get; }

        internal ulong Number { get; }

        internal Functions Functions { get; }

        /// <summary>Writes <c>KIND: NUMBER</c>.</summary>
        internal void Write(Utf8JsonWriter writer) => writer.WriteNumber(kind, Number);

        internal JsonElement Call(string op, Action<Utf8JsonWriter>? arguments = null)
        {
            var result = Pump.Call(op, With(arguments));
            GC.KeepAlive(this);
            return result;
        }

        internal Operation Start(string op, Action<Utf8JsonWriter>? arguments, object? keep) =>
            Pump.Start(op, With(arguments), keep is null ? (object)this : new[] { this, keep });

        /// <summary>Closes it, once; the task is the same for every call.</summary>
        internal Task CloseAsync()
        {
            lock (closing) return closed ??= EndAsync();
        }

        private async Task EndAsync()
        {
            try
            {
                await Pump.RunAsync($"{kind}.close", Write, this, CancellationToken.None).ConfigureAwait(false);
            }
            catch (ClosedException)
            {
                // With the engine everything of it was closed.
            }
            GC.SuppressFinalize(this);
            Functions.Forget();
        }

        private Action<Utf8JsonWriter> With(Action<Utf8JsonWriter>? arguments) => writer =>
        {
            Write(writer);
            arguments?.Invoke(writer);
        };
    }
}
