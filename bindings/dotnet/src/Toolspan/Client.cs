using System;
using System.Collections.Generic;
using System.Runtime.CompilerServices;
using System.Text.Json;
using System.Threading;
using System.Threading.Tasks;

namespace Toolspan
{
    /// <summary>One endpoint and one model (SPEC 7). A client costs little: all clients of an engine share their connections.</summary>
    public sealed class Client : IAsyncDisposable, IDisposable
    {
        private readonly Remote remote;

        /// <inheritdoc cref="Engine.CreateClient"/>
        public Client(ClientOptions options) : this(options, Engine.Shared) { }

        internal Client(ClientOptions options, Engine engine)
        {
            if (options is null) throw new ArgumentNullException(nameof(options));
            var functions = new Functions();
            try
            {
                var made = engine.Pump.Call("client.create", writer =>
                {
                    writer.WriteStartObject("options");
                    options.Write(writer, functions);
                    writer.WriteEndObject();
                });
                remote = new Remote(engine.Pump, "client", made, functions);
            }
            catch
            {
                functions.Forget();
                throw;
            }
        }

        /// <summary>
        /// Sends the prompt, executes the calls the model asks for, and repeats until it answers or a limit is reached. What tools of
        /// the program threw is the <see cref="ToolCall.Exception"/> of their calls.
        /// </summary>
        /// <exception cref="ToolspanException">The run failed; there is a class for each code.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public Task<RunResult> RunAsync(Prompt prompt, Toolkit? toolkit = null, CancellationToken cancellationToken = default) =>
            RunAsync(prompt, new RunOptions { Toolkit = toolkit }, cancellationToken);

        /// <inheritdoc cref="RunAsync(Prompt, Toolkit?, CancellationToken)"/>
        public Task<RunResult> RunAsync(Prompt prompt, RunOptions options, CancellationToken cancellationToken = default) =>
            RunAsync("client.run", prompt, null, options, cancellationToken);

        /// <summary>The same run with a memory: loads the conversation of that id, runs, saves it (SPEC 7.7).</summary>
        public Task<RunResult> AskAsync(Prompt prompt, string id, Toolkit? toolkit = null, CancellationToken cancellationToken = default) =>
            AskAsync(prompt, id, new RunOptions { Toolkit = toolkit }, cancellationToken);

        /// <inheritdoc cref="AskAsync(Prompt, string, Toolkit?, CancellationToken)"/>
        public Task<RunResult> AskAsync(Prompt prompt, string id, RunOptions options, CancellationToken cancellationToken = default) =>
            RunAsync("client.ask", prompt, id, options, cancellationToken);

        /// <summary>
        /// The same run, event by event (SPEC 7.5). It starts when the first is asked for; leaving the loop ends the run and closes its
        /// connection.
        /// </summary>
        public IAsyncEnumerable<Event> StreamAsync(Prompt prompt, Toolkit? toolkit = null, CancellationToken cancellationToken = default) =>
            StreamAsync(prompt, new RunOptions { Toolkit = toolkit }, cancellationToken);

        /// <inheritdoc cref="StreamAsync(Prompt, Toolkit?, CancellationToken)"/>
        public IAsyncEnumerable<Event> StreamAsync(Prompt prompt, RunOptions options, CancellationToken cancellationToken = default) =>
            EventsAsync(prompt, null, options, cancellationToken);

        /// <summary>The run of <see cref="AskAsync(Prompt, string, RunOptions, CancellationToken)"/>, event by event.</summary>
        public IAsyncEnumerable<Event> StreamAsync(Prompt prompt, string id, RunOptions options, CancellationToken cancellationToken = default) =>
            EventsAsync(prompt, id, options, cancellationToken);

        private async IAsyncEnumerable<Event> EventsAsync(
            Prompt prompt, string? id, RunOptions options, [EnumeratorCancellation] CancellationToken cancellationToken)
        {
            Pump.ThrowIfCancelled(cancellationToken);
            var stream = Start("client.stream", prompt, id, options);
            using var registration = cancellationToken.Register(
                state => ((Operation)state!).Cancel(), stream, useSynchronizationContext: false);
            try
            {
                for (var end = false; !end;)
                {
                    var batch = await NextAsync(stream, cancellationToken).ConfigureAwait(false);
                    end = batch.GetProperty("end").GetBoolean();
                    foreach (var item in batch.GetProperty("items").EnumerateArray())
                    {
                        if (!(Event.Read(item) is Event next)) continue;
                        if (next is DoneEvent done) Explain(done.Result, stream);
                        yield return next;
                    }
                }
                await stream.ResultAsync(cancellationToken).ConfigureAwait(false);
            }
            finally
            {
                // The run is over, and its connection closed, when the loop has been left.
                stream.Cancel();
                await Task.WhenAny(stream.Ended).ConfigureAwait(false);
            }
        }

        /// <summary>Prompts that follow each other, in the conversation of that id where one is given.</summary>
        public Conversation CreateConversation(string? id = null, Toolkit? toolkit = null)
        {
            var made = remote.Call("conversation.create", writer =>
            {
                Json.Write(writer, "toolkit", Checked(toolkit));
                Json.Write(writer, "id", id);
            });
            return new Conversation(new Remote(remote.Pump, "conversation", made, new Functions()), this, toolkit);
        }

        /// <summary>The store that <see cref="AskAsync(Prompt, string, Toolkit?, CancellationToken)"/> uses.</summary>
        public ConversationStore ConversationStore => new StoreOfClient(remote);

        /// <summary>What was counted, in the text format of Prometheus (SPEC 10).</summary>
        public string GetMetrics() => Json.Text(remote.Call("client.metrics"), "text")!;

        /// <summary>Ends the runs of the client; again and again if you like.</summary>
        public Task CloseAsync() => remote.CloseAsync();

        /// <inheritdoc cref="CloseAsync"/>
        public ValueTask DisposeAsync() => new ValueTask(CloseAsync());

        /// <summary>Like <see cref="CloseAsync"/>, which it waits for.</summary>
        public void Dispose() => CloseAsync().GetAwaiter().GetResult();

        /// <summary>Tells of each failed call what a tool of the program threw.</summary>
        internal static void Explain(RunResult result, Operation operation)
        {
            foreach (var thrown in operation.Thrown.Values)
            {
                foreach (var call in result.ToolCalls)
                {
                    if (call.IsError && call.Id == thrown.CallId) call.Exception = thrown.Exception;
                }
            }
        }

        private async Task<RunResult> RunAsync(string op, Prompt prompt, string? id, RunOptions options, CancellationToken token)
        {
            Pump.ThrowIfCancelled(token);
            var operation = Start(op, prompt, id, options);
            var result = RunResult.Read(await operation.ResultAsync(token).ConfigureAwait(false));
            Explain(result, operation);
            return result;
        }

        private Operation Start(string op, Prompt prompt, string? id, RunOptions options)
        {
            if (options is null) throw new ArgumentNullException(nameof(options));
            Checked(options.Toolkit);
            var functions = new Functions();
            return remote.Start(op, writer =>
            {
                prompt.Write(writer);
                Json.Write(writer, "id", id);
                options.Write(writer, functions);
            }, options.Toolkit);
        }

        private static async Task<JsonElement> NextAsync(Operation stream, CancellationToken token)
        {
            try
            {
                return await stream.Pump.RunAsync(
                    "stream.next", writer => writer.WriteNumber("stream", stream.Number), null, CancellationToken.None).ConfigureAwait(false);
            }
            catch (Exception e) when (e is IToolspanError)
            {
                // A stream that has ended is not known any more; how it ended says more than that.
                stream.Cancel();
                await stream.ResultAsync(token).ConfigureAwait(false);
                throw;
            }
        }

        private Toolkit? Checked(Toolkit? toolkit)
        {
            if (toolkit != null && toolkit.Pump != remote.Pump)
            {
                throw new ArgumentException("The toolkit belongs to another engine.", nameof(toolkit));
            }
            return toolkit;
        }

        private sealed class StoreOfClient : ConversationStore
        {
            private readonly Remote remote;

            internal StoreOfClient(Remote remote) => this.remote = remote;

            public override async Task<JsonElement?> GetAsync(string id, CancellationToken cancellationToken = default)
            {
                Pump.ThrowIfCancelled(cancellationToken);
                var found = await remote.Start("store.get", writer => writer.WriteString("id", id), null)
                    .ResultAsync(cancellationToken).ConfigureAwait(false);
                var transcript = found.GetProperty("transcript");
                return transcript.ValueKind == JsonValueKind.Null ? (JsonElement?)null : transcript;
            }

            public override async Task SaveAsync(string id, JsonElement transcript, CancellationToken cancellationToken = default)
            {
                Pump.ThrowIfCancelled(cancellationToken);
                await remote.Start("store.save", writer =>
                {
                    writer.WriteString("id", id);
                    Json.Write(writer, "messages", transcript);
                }, null).ResultAsync(cancellationToken).ConfigureAwait(false);
            }
        }
    }

    /// <summary>Prompts that follow each other. Disposing of it forgets the conversation's object; what is stored stays.</summary>
    public sealed class Conversation : IAsyncDisposable, IDisposable
    {
        private readonly Remote remote;
        private readonly object[] keep;

        internal Conversation(Remote remote, Client client, Toolkit? toolkit)
        {
            this.remote = remote;
            keep = toolkit is null ? new object[] { client } : new object[] { client, toolkit };
        }

        /// <summary>The next prompt.</summary>
        public async Task<RunResult> SendAsync(Prompt prompt, CancellationToken cancellationToken = default)
        {
            Pump.ThrowIfCancelled(cancellationToken);
            var operation = remote.Start("conversation.send", prompt.Write, keep);
            var result = RunResult.Read(await operation.ResultAsync(cancellationToken).ConfigureAwait(false));
            Client.Explain(result, operation);
            return result;
        }

        /// <summary>What was said so far, in the dialect of the client.</summary>
        public async Task<IReadOnlyList<JsonElement>> GetMessagesAsync(CancellationToken cancellationToken = default)
        {
            Pump.ThrowIfCancelled(cancellationToken);
            var found = await remote.Start("conversation.messages", null, keep).ResultAsync(cancellationToken).ConfigureAwait(false);
            return Json.Anys(found, "messages")!;
        }

        /// <summary>Forgets what was said.</summary>
        public async Task ResetAsync(CancellationToken cancellationToken = default)
        {
            Pump.ThrowIfCancelled(cancellationToken);
            await remote.Start("conversation.reset", null, keep).ResultAsync(cancellationToken).ConfigureAwait(false);
        }

        /// <summary>Forgets this object.</summary>
        public ValueTask DisposeAsync() => new ValueTask(remote.CloseAsync());

        /// <summary>Forgets this object.</summary>
        public void Dispose() => remote.CloseAsync().GetAwaiter().GetResult();
    }
}
