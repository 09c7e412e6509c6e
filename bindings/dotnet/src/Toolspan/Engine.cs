using System;
using System.Text.Json;
using System.Threading;
using System.Threading.Tasks;

namespace Toolspan
{
    /// <summary>What an engine of one's own is made with.</summary>
    public sealed class EngineOptions
    {
        /// <summary>
        /// Receives log records, in order, on a thread of the pool; the library prints nothing (SPEC 10). With
        /// <c>Microsoft.Extensions.Logging</c>: <c>Log = r => logger.Log((LogLevel)r.Level, "{Target}: {Message}", r.Target, r.Message)</c>.
        /// </summary>
        public Action<LogRecord>? Log { get; set; }

        /// <summary>Least level wanted. Default: every record when <see cref="Log"/> is set, else none.</summary>
        public LogSeverity? LogLevel { get; set; }

        /// <summary>Worker threads of the library. Default: 1; more pay off where the runs at a time compute more than one core does.</summary>
        public int? Workers { get; set; }

        internal void Write(Utf8JsonWriter writer)
        {
            writer.WriteStartObject();
            writer.WriteStartArray("hostCalls");
            foreach (var kind in HostCalls.Kinds) writer.WriteStringValue(kind);
            writer.WriteEndArray();
            var level = LogLevel ?? (Log is null ? (LogSeverity?)null : LogSeverity.Debug);
            Json.Write(writer, "log", level is LogSeverity least ? Words.Of(least) : null);
            Json.Write(writer, "workers", Workers);
            writer.WriteEndObject();
        }
    }

    /// <summary>
    /// An instance of the library: its threads, toolkits, clients and logs. Most programs make none and use
    /// <see cref="Toolkit.CreateAsync"/> and <see cref="Client(ClientOptions)"/>, which stand on <see cref="Shared"/>.
    /// Thread-safe, as everything in this package but option objects is.
    /// </summary>
    public sealed class Engine : IAsyncDisposable, IDisposable
    {
        private static readonly TimeSpan CloseTimeout = TimeSpan.FromSeconds(5);
        private static readonly object Making = new object();
        private static Engine? shared;

        /// <summary>Starts no thread before there is something to do.</summary>
        /// <exception cref="UnsupportedException">The native library is not there.</exception>
        /// <exception cref="AbiMismatchException">The native library is of another version.</exception>
        public Engine(EngineOptions? options = null) => Pump = new Pump(options ?? new EngineOptions());

        /// <summary>The engine of those who make none; made when first used, and again when it was closed.</summary>
        public static Engine Shared
        {
            get
            {
                lock (Making)
                {
                    if (shared is null || shared.Pump.IsClosed) shared = new Engine();
                    return shared;
                }
            }
        }

        internal Pump Pump { get; }

        /// <summary>Version of the library.</summary>
        public string Version => Json.Text(Pump.Call("version"), "version")!;

        /// <summary>What is open and running.</summary>
        public Counters GetCounters() => Counters.Read(Pump.Call("counters"));

        /// <summary>Connects the servers and collects the tools. A server that fails is left out, see <see cref="Toolkit.GetStatus"/>.</summary>
        /// <exception cref="ToolspanException">The configuration is wrong, or a required server failed.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled; nothing is left open.</exception>
        public async Task<Toolkit> CreateToolkitAsync(ToolkitOptions? options = null, CancellationToken cancellationToken = default)
        {
            options ??= new ToolkitOptions();
            Pump.ThrowIfCancelled(cancellationToken);
            var functions = new Functions();
            try
            {
                var made = await Pump.RunAsync("toolkit.create", writer =>
                {
                    writer.WriteStartObject("options");
                    options.Write(writer, functions);
                    writer.WriteEndObject();
                }, functions, cancellationToken).ConfigureAwait(false);
                return new Toolkit(new Remote(Pump, "toolkit", made, functions));
            }
            catch
            {
                functions.Forget();
                throw;
            }
        }

        /// <summary>A client of an endpoint. Nothing is sent before the first run.</summary>
        /// <exception cref="ToolspanException">An option is wrong; <see cref="ToolspanException.Path"/> names it.</exception>
        public Client CreateClient(ClientOptions options) => new Client(options, this);

        /// <summary>Connects, lists and disconnects (SPEC 3.6).</summary>
        public async Task<Inventory> ListMcpToolsAsync(ListOptions options, CancellationToken cancellationToken = default)
        {
            if (options is null) throw new ArgumentNullException(nameof(options));
            var functions = new Functions();
            return Inventory.Read(await Pump.RunAsync(
                "mcp.list", writer => options.Write(writer, functions), null, cancellationToken).ConfigureAwait(false));
        }

        /// <summary>
        /// Ends everything that is open, also what runs, which then fails with <see cref="ClosedException"/>. False when
        /// <paramref name="timeout"/> (default: 5 s) was not enough and it goes on behind.
        /// </summary>
        public Task<bool> CloseAsync(TimeSpan? timeout = null) => Pump.CloseAsync(timeout ?? CloseTimeout);

        /// <inheritdoc cref="CloseAsync"/>
        public async ValueTask DisposeAsync() => await CloseAsync().ConfigureAwait(false);

        /// <summary>Like <see cref="CloseAsync"/>, which it waits for.</summary>
        public void Dispose() => CloseAsync().GetAwaiter().GetResult();
    }
}
