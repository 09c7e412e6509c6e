using System;
using System.Collections.Generic;
using System.Net.Http;
using System.Text.Json;
using System.Text.Json.Nodes;
using System.Threading;
using System.Threading.Tasks;

namespace Toolspan
{
    using Answer = Action<Utf8JsonWriter>;

    /// <summary>The program's functions as the library calls them: one entry for each kind of host call.</summary>
    internal static class HostCalls
    {
        private delegate Task<Answer> Server(object function, HostCall call);

        private static readonly Answer Null = writer => writer.WriteNullValue();

        /// <summary>Kinds that want an answer. Those that want none are in <see cref="Sink"/>.</summary>
        private static readonly Dictionary<string, Server> Served = new Dictionary<string, Server>
        {
            ["tool.execute"] = (function, call) => ((Tool)function).AnswerAsync(call),
            ["hook.beforeLLM"] = async (function, call) =>
                Or(await Hook<BeforeLlm, LlmChanges?>(function)(call.Begin(BeforeLlm.Read), call.Token).ConfigureAwait(false)),
            ["hook.afterLLM"] = async (function, call) =>
            {
                await ((Func<AfterLlm, CancellationToken, Task>)function)(call.Begin(AfterLlm.Read), call.Token).ConfigureAwait(false);
                return Null;
            },
            ["hook.beforeTool"] = async (function, call) =>
                Or(await Hook<BeforeTool, ToolCallChange?>(function)(call.Begin(BeforeTool.Read), call.Token).ConfigureAwait(false)),
            ["hook.afterTool"] = async (function, call) =>
                ResultOr(await Hook<AfterTool, ToolResult?>(function)(call.Begin(AfterTool.Read), call.Token).ConfigureAwait(false)),
            ["bodyTransform"] = async (function, call) =>
            {
                var body = call.Begin(payload => JsonObject.Create(payload.GetProperty("body"))!);
                var sent = await Hook<JsonObject, JsonObject?>(function)(body, call.Token).ConfigureAwait(false);
                if (sent is null) return Null;
                return writer => sent.WriteTo(writer);
            },
            ["onError"] = async (function, call) =>
            {
                var decision = await Hook<RequestFailure, ErrorDecision>(function)(call.Begin(RequestFailure.Read), call.Token).ConfigureAwait(false);
                if (decision == ErrorDecision.Default) return Null;
                return writer => writer.WriteStringValue(decision == ErrorDecision.Retry ? "retry" : "fail");
            },
            ["store.get"] = async (function, call) =>
            {
                var found = await ((ConversationStore)function).GetAsync(call.Begin(IdOf), call.Token).ConfigureAwait(false);
                if (!(found is JsonElement transcript)) return Null;
                return writer => Json.Write(writer, transcript);
            },
            ["store.save"] = async (function, call) =>
            {
                var transcript = call.Payload.GetProperty("transcript");
                await ((ConversationStore)function).SaveAsync(call.Begin(IdOf), transcript, call.Token).ConfigureAwait(false);
                return Null;
            },
            ["http.send"] = (function, call) => call.Operation.Bodies.SendAsync((HttpMessageInvoker)function, call),
            ["http.read"] = (function, call) => call.Operation.Bodies.ReadAsync(call.Payload, call.Token),
        };

        internal static IEnumerable<string> Kinds => Served.Keys;

        internal static Task<Answer> ServeAsync(HostCall call, object function) => Served[call.Kind](function, call);

        private static Func<TIn, CancellationToken, Task<TOut>> Hook<TIn, TOut>(object function) =>
            (Func<TIn, CancellationToken, Task<TOut>>)function;

        private static string IdOf(JsonElement payload) => payload.GetProperty("id").GetString()!;

        private static Answer Or(IReply? reply) => reply is null ? Null : reply.Write;

        private static Answer ResultOr(ToolResult? result)
        {
            if (result is null) return Null;
            return writer =>
            {
                writer.WriteStartObject();
                Json.Write(writer, "result", result);
                writer.WriteEndObject();
            };
        }
    }

    /// <summary>What a hook may change.</summary>
    internal interface IReply
    {
        void Write(Utf8JsonWriter writer);
    }

    /// <summary>What <see cref="Hooks.BeforeLlm"/> may change; what is null stays (SPEC 7.4).</summary>
    public sealed class LlmChanges : IReply
    {
        /// <summary>Replaces the transcript, for good.</summary>
        public IReadOnlyList<JsonElement>? Messages { get; set; }

        /// <summary>Replaces the declarations of the tools, for one turn.</summary>
        public IReadOnlyList<JsonElement>? Tools { get; set; }

        /// <summary>Replaces the model, for one turn.</summary>
        public string? Model { get; set; }

        void IReply.Write(Utf8JsonWriter writer)
        {
            writer.WriteStartObject();
            Json.Write(writer, "messages", Messages);
            Json.Write(writer, "tools", Tools);
            Json.Write(writer, "model", Model);
            writer.WriteEndObject();
        }
    }

    /// <summary>What <see cref="Hooks.BeforeTool"/> may do to a call (SPEC 7.4).</summary>
    public sealed class ToolCallChange : IReply
    {
        private readonly ToolResult? result;
        private readonly JsonElement? args;

        private ToolCallChange(ToolResult? result, JsonElement? args)
        {
            this.result = result;
            this.args = args;
        }

        /// <summary>The tool is not called; this is its result.</summary>
        public static ToolCallChange Answer(ToolResult result) =>
            new ToolCallChange(result ?? throw new ArgumentNullException(nameof(result)), null);

        /// <summary>The tool is called with these arguments, an object.</summary>
        public static ToolCallChange Arguments(JsonElement args) => new ToolCallChange(null, args);

        void IReply.Write(Utf8JsonWriter writer)
        {
            writer.WriteStartObject();
            Json.Write(writer, "result", result);
            Json.Write(writer, "args", args);
            writer.WriteEndObject();
        }
    }

    /// <summary>What <see cref="ClientOptions.OnError"/> decides about a failed request.</summary>
    public enum ErrorDecision
    {
        /// <summary>The library decides (SPEC 7.6).</summary>
        Default,

        /// <summary>The request is tried again, within the attempts allowed.</summary>
        Retry,

        /// <summary>The run ends with this error.</summary>
        Fail,
    }
}
