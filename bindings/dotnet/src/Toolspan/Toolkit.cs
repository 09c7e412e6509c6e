using System;
using System.Collections.Generic;
using System.Diagnostics.CodeAnalysis;
using System.Text.Json;
using System.Threading;
using System.Threading.Tasks;

namespace Toolspan
{
    /// <summary>An ordered set of tools and the connections behind them (SPEC 4).</summary>
    public sealed class Toolkit : IAsyncDisposable, IDisposable
    {
        private readonly Remote remote;

        internal Toolkit(Remote remote) => this.remote = remote;

        internal ulong Number => remote.Number;

        internal Pump Pump => remote.Pump;

        /// <inheritdoc cref="Engine.CreateToolkitAsync"/>
        public static Task<Toolkit> CreateAsync(ToolkitOptions? options = null, CancellationToken cancellationToken = default) =>
            Engine.Shared.CreateToolkitAsync(options, cancellationToken);

        /// <summary>The tools, in order.</summary>
        public IReadOnlyList<ToolInfo> GetTools() =>
            Json.ListOf(remote.Call("toolkit.tools").GetProperty("tools"), ToolInfo.Read);

        /// <summary>The tool of that name, or null.</summary>
        public ToolInfo? Get(string name) =>
            Json.Record(remote.Call("toolkit.get", writer => writer.WriteString("name", name)), "tool", ToolInfo.Read);

        /// <summary>What became of every server of the configuration, by id.</summary>
        public IReadOnlyDictionary<string, ServerStatus> GetStatus() =>
            Json.MapOf(remote.Call("toolkit.status").GetProperty("servers"), ServerStatus.Read);

        /// <summary>The tools as a provider declares them (SPEC 5).</summary>
        public Adaptation Adapt(Provider provider) =>
            Adaptation.Read(remote.Call("toolkit.adapt", writer => writer.WriteString("provider", provider.Text)));

        /// <summary>Adds a tool of the program; false when the name was taken.</summary>
        public bool Register(Tool tool)
        {
            if (tool is null) throw new ArgumentNullException(nameof(tool));
            var functions = new Functions();
            var added = false;
            try
            {
                added = remote.Call("toolkit.register", writer =>
                {
                    writer.WritePropertyName("tool");
                    functions.Write(writer, tool);
                }).GetProperty("registered").GetBoolean();
            }
            finally
            {
                if (added) remote.Functions.Take(functions);
                else functions.Forget();
            }
            return added;
        }

        /// <summary>
        /// Executes one call outside a run. A failure of the tool is a result; what a tool of the program threw is then its
        /// <see cref="ToolResult.Exception"/>.
        /// </summary>
        /// <param name="name">The tool.</param>
        /// <param name="args">Anything <see cref="JsonSerializer"/> writes, in any shape of SPEC 4.4; a text is JSON text.</param>
        /// <param name="timeout">The budget of the call.</param>
        /// <param name="cancellationToken">Cancels the call.</param>
        [RequiresUnreferencedCode(Values.Reflection)]
        [RequiresDynamicCode(Values.Reflection)]
        public Task<ToolResult> ExecuteAsync(
            string name, object? args = null, TimeSpan? timeout = null, CancellationToken cancellationToken = default) =>
            RunAsync(name, args, timeout, cancellationToken);

        /// <inheritdoc cref="ExecuteAsync(string, object?, TimeSpan?, CancellationToken)"/>
        public Task<ToolResult> ExecuteAsync(
            string name, JsonElement args, TimeSpan? timeout = null, CancellationToken cancellationToken = default) =>
            RunAsync(name, args, timeout, cancellationToken);

        private async Task<ToolResult> RunAsync(string name, object? args, TimeSpan? timeout, CancellationToken cancellationToken)
        {
            Pump.ThrowIfCancelled(cancellationToken);
            var operation = remote.Start("toolkit.execute", writer =>
            {
                writer.WriteString("name", name);
                if (args != null)
                {
                    writer.WritePropertyName("args");
                    Values.Write(writer, args);
                }
                Json.Write(writer, "timeoutMs", timeout);
            }, this);
            var result = ToolResult.Read(await operation.ResultAsync(cancellationToken).ConfigureAwait(false));
            if (result.IsError)
            {
                foreach (var thrown in operation.Thrown.Values) result.Exception = thrown.Exception;
            }
            return result;
        }

        /// <summary>Ends sessions, sockets and processes; again and again if you like.</summary>
        public Task CloseAsync() => remote.CloseAsync();

        /// <inheritdoc cref="CloseAsync"/>
        public ValueTask DisposeAsync() => new ValueTask(CloseAsync());

        /// <summary>Like <see cref="CloseAsync"/>, which it waits for.</summary>
        public void Dispose() => CloseAsync().GetAwaiter().GetResult();
    }
}
