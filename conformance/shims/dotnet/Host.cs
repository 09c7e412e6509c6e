using System.Collections.Concurrent;
using System.Text.Json;
using System.Text.Json.Nodes;
using Toolspan;

/// <summary>The functions of the program that a case writes as behaviours.</summary>
internal sealed class Host
{
    internal Recorded Calls { get; } = new();

    internal Recorded Metrics { get; } = new();

    /// <summary>The function that stands behind a number of the case.</summary>
    internal object? Function(int number, JsonElement handlers)
    {
        var entry = handlers.GetProperty(number.ToString());
        var kind = entry.GetProperty("kind").GetString()!;
        var behaviour = entry.GetProperty("behaviour");
        var count = 0;
        void Record(string payload, string? name = null) =>
            Calls.Add($"{{\"handler\":{number},\"kind\":\"{name ?? kind}\",\"payload\":{payload}}}");
        Task<JsonElement?> Behave(string payload, CancellationToken token)
        {
            Record(payload);
            return BehaveAsync(behaviour, payload, token, () => count++);
        }

        async Task<JsonElement?> Reply(Record payload, CancellationToken token) => await Behave(payload.ToJson(), token);
        return kind switch
        {
            "tool.execute" => (Func<JsonElement, CancellationToken, Task<JsonElement?>>)((args, token) => Behave(args.GetRawText(), token)),
            "bodyTransform" => (Func<JsonObject, CancellationToken, Task<JsonObject?>>)(async (body, token) =>
                await Behave(body.ToJsonString(), token) is JsonElement sent ? JsonObject.Create(sent) : null),
            "beforeLLM" => (Func<BeforeLlm, CancellationToken, Task<LlmChanges?>>)(async (payload, token) =>
                (await Reply(payload, token))?.Deserialize<LlmChanges>(Web)),
            "afterLLM" => (Func<AfterLlm, CancellationToken, Task>)Reply,
            "beforeTool" => (Func<BeforeTool, CancellationToken, Task<ToolCallChange?>>)(async (payload, token) =>
                (await Reply(payload, token)) is not JsonElement change ? null
                : change.TryGetProperty("args", out var args) ? ToolCallChange.Arguments(args)
                : ToolCallChange.Answer(ResultOf(change)!)),
            "afterTool" => (Func<AfterTool, CancellationToken, Task<ToolResult?>>)(async (payload, token) => ResultOf(await Reply(payload, token))),
            "onError" => (Func<RequestFailure, CancellationToken, Task<ErrorDecision>>)(async (payload, token) =>
                Enum.Parse<ErrorDecision>((await Reply(payload, token))?.GetString() ?? "Default", ignoreCase: true)),
            "onMetric" => (Action<MetricEvent>)(metric =>
            {
                Record(metric.ToJson());
                Metrics.Add(metric.ToJson());
            }),
            "httpClient" => new Injecting(request =>
                Record(JsonSerializer.Serialize(new { method = request.Method.Method, url = request.RequestUri!.OriginalString }))),
            "store" => new Store(Record, behaviour),
            _ => throw new ArgumentException(kind),
        };
    }

    private static readonly JsonSerializerOptions Web = new(JsonSerializerDefaults.Web);

    private static ToolResult? ResultOf(JsonElement? reply) =>
        reply is JsonElement found ? found.GetProperty("result").Deserialize<ToolResult>(Web) : null;

    /// <summary>What a behaviour does with what its function was given; null for nothing.</summary>
    internal static async Task<JsonElement?> BehaveAsync(JsonElement behaviour, string payload, CancellationToken token, Func<int> next)
    {
        if (behaviour.TryGetProperty("sequence", out var sequence))
        {
            var chosen = sequence[Math.Min(next(), sequence.GetArrayLength() - 1)];
            return await BehaveAsync(chosen, payload, token, next);
        }
        if (behaviour.TryGetProperty("return", out var value)) return value.ValueKind == JsonValueKind.Null ? null : value;
        if (behaviour.TryGetProperty("echo", out _)) return JsonDocument.Parse(payload).RootElement;
        if (behaviour.TryGetProperty("throw", out var message)) throw new InvalidOperationException(message.GetString());
        if (behaviour.TryGetProperty("edit", out var edit)) return Edited(JsonNode.Parse(payload)!.AsObject(), edit);
        if (behaviour.TryGetProperty("hang", out _)) await Task.Delay(Timeout.Infinite, token);
        throw new ArgumentException($"no such behaviour: {behaviour}");
    }

    private static JsonElement Edited(JsonObject body, JsonElement edit)
    {
        if (edit.TryGetProperty("set", out var set))
        {
            foreach (var entry in set.EnumerateObject()) body[entry.Name] = JsonNode.Parse(entry.Value.GetRawText());
        }
        if (edit.TryGetProperty("drop", out var drop))
        {
            foreach (var key in drop.EnumerateArray()) body.Remove(key.GetString()!);
        }
        if (edit.TryGetProperty("appendToLastUser", out var text))
        {
            var last = body["messages"]!.AsArray().Last(message => (string?)message!["role"] == "user")!;
            if (last["content"] is JsonArray parts) parts.Add(new JsonObject { ["type"] = "text", ["text"] = text.GetString() });
            else last["content"] = (string?)last["content"] + text.GetString();
        }
        return JsonSerializer.SerializeToElement(body);
    }

    private sealed class Store : ConversationStore
    {
        private readonly ConcurrentDictionary<string, JsonElement> kept = new();
        private readonly Action<string, string?> record;
        private readonly JsonElement behaviour;
        private int count;

        internal Store(Action<string, string?> record, JsonElement behaviour)
        {
            this.record = record;
            this.behaviour = behaviour;
        }

        public override async Task<JsonElement?> GetAsync(string id, CancellationToken cancellationToken)
        {
            var payload = JsonSerializer.Serialize(new { id });
            record(payload, "store.get");
            if (!behaviour.TryGetProperty("store", out _)) return await BehaveAsync(behaviour, payload, cancellationToken, () => count++);
            return kept.TryGetValue(id, out var found) ? found : null;
        }

        public override async Task SaveAsync(string id, JsonElement transcript, CancellationToken cancellationToken)
        {
            var payload = JsonSerializer.Serialize(new { id, messages = transcript });
            record(payload, "store.save");
            if (behaviour.TryGetProperty("store", out _)) kept[id] = transcript;
            else await BehaveAsync(behaviour, payload, cancellationToken, () => count++);
        }
    }

    private sealed class Injecting : DelegatingHandler
    {
        private readonly Action<HttpRequestMessage> record;

        internal Injecting(Action<HttpRequestMessage> record) : base(new SocketsHttpHandler { AllowAutoRedirect = false }) => this.record = record;

        protected override Task<HttpResponseMessage> SendAsync(HttpRequestMessage request, CancellationToken cancellationToken)
        {
            record(request);
            request.Headers.Add("x-injected", "1");
            return base.SendAsync(request, cancellationToken);
        }
    }
}
