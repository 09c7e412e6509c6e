// The .NET column of the conformance suite: does what stdin says with the package's public API, answers on stdout.
using System.Collections;
using System.Collections.Concurrent;
using System.Text.Json;
using System.Text.Json.Nodes;
using Toolspan;

Host host = new();
Recorded logs = new();
Engine engine = new(new EngineOptions { Log = record => logs.Add(record.ToJson()) });
ConcurrentDictionary<int, object> objects = new();
ConcurrentDictionary<int, CancellationTokenSource> running = new();
var numbers = 0;

string Keep(string kind, object made)
{
    var number = Interlocked.Increment(ref numbers);
    objects[number] = made;
    return $"{{\"{kind}\":{number}}}";
}

T Known<T>(JsonElement args, string key) where T : class =>
    args.TryGetProperty(key, out var number) && number.ValueKind == JsonValueKind.Number ? (T)objects[number.GetInt32()] : null!;

string List(IEnumerable<object> items) => $"[{string.Join(',', items)}]";

string Entries<T>(IReadOnlyDictionary<string, T> map) =>
    $"{{{string.Join(',', map.Select(entry => $"{JsonSerializer.Serialize(entry.Key)}:{entry.Value}"))}}}";

static string Text(JsonElement args, string key) => args.GetProperty(key).GetString()!;

static TimeSpan? Milliseconds(JsonElement args) =>
    args.TryGetProperty("timeoutMs", out var ms) ? TimeSpan.FromMilliseconds(ms.GetInt64()) : null;

RunOptions RunOf(JsonElement args)
{
    var options = new RunOptions { Toolkit = Known<Toolkit>(args, "toolkit") };
    Options.Fill(options, args, key => null, "client", "toolkit", "prompt", "id", "stopAfter");
    return options;
}

Prompt PromptOf(JsonElement args) =>
    args.GetProperty("prompt") is { ValueKind: JsonValueKind.Array } parts ? parts.EnumerateArray().Select(PartOf).ToArray() : Text(args, "prompt");

static ContentPart PartOf(JsonElement part)
{
    string? Maybe(string key) => part.TryGetProperty(key, out var value) ? value.GetString() : null;
    string kind = Text(part, "type"), type = Maybe("mimeType") ?? "";
    return kind switch
    {
        "text" => new TextPart { Text = Text(part, "text") },
        "image" => new ImagePart { MimeType = type, Data = Maybe("data"), Url = Maybe("url") },
        "file" => new FilePart { MimeType = type, Data = Maybe("data"), Url = Maybe("url"), Name = Maybe("name") },
        "audio" => new AudioPart { MimeType = type, Data = Maybe("data"), Url = Maybe("url") },
        _ => throw new ArgumentException($"no such part: {kind}"),
    };
}

async Task<string> Perform(string op, JsonElement args, JsonElement handlers, CancellationToken token)
{
    T Filled<T>(string key) where T : new()
    {
        var made = new T();
        Options.Fill(made, args.GetProperty(key), number => host.Function(number, handlers));
        return made;
    }

    switch (op)
    {
        case "toolkit.create": return Keep("toolkit", await engine.CreateToolkitAsync(Filled<ToolkitOptions>("options"), token));
        case "toolkit.tools": return $"{{\"tools\":{List(Known<Toolkit>(args, "toolkit").GetTools())}}}";
        case "toolkit.status": return $"{{\"servers\":{Entries(Known<Toolkit>(args, "toolkit").GetStatus())}}}";
        case "toolkit.get": return $"{{\"tool\":{Known<Toolkit>(args, "toolkit").Get(Text(args, "name"))?.ToJson() ?? "null"}}}";
        case "toolkit.execute":
            args.TryGetProperty("args", out var given);
            return (await Known<Toolkit>(args, "toolkit").ExecuteAsync(Text(args, "name"), given, Milliseconds(args), token)).ToJson();
        case "toolkit.register":
            var tool = Options.ToolOf(args.GetProperty("tool"), number => host.Function(number, handlers));
            return $"{{\"registered\":{(Known<Toolkit>(args, "toolkit").Register(tool) ? "true" : "false")}}}";
        case "toolkit.adapt": return Known<Toolkit>(args, "toolkit").Adapt(Text(args, "provider")).ToJson();
        case "toolkit.close": await Known<Toolkit>(args, "toolkit").CloseAsync(); return "{}";
        case "mcp.list":
            var list = new ListOptions();
            Options.Fill(list, args, key => null);
            return (await engine.ListMcpToolsAsync(list, token)).ToJson();
        case "client.create": return Keep("client", engine.CreateClient(Filled<ClientOptions>("options")));
        case "client.close": await Known<Client>(args, "client").CloseAsync(); return "{}";
        case "client.metrics": return JsonSerializer.Serialize(new { text = Known<Client>(args, "client").GetMetrics() });
        case "client.run": return (await Known<Client>(args, "client").RunAsync(PromptOf(args), RunOf(args), token)).ToJson();
        case "client.ask": return (await Known<Client>(args, "client").AskAsync(PromptOf(args), Text(args, "id"), RunOf(args), token)).ToJson();
        case "client.stream":
            var events = new List<object>();
            var stop = args.TryGetProperty("stopAfter", out var after) ? after.GetInt32() : int.MaxValue;
            try
            {
                var client = Known<Client>(args, "client");
                var stream = args.TryGetProperty("id", out var known)
                    ? client.StreamAsync(PromptOf(args), known.GetString()!, RunOf(args), token)
                    : client.StreamAsync(PromptOf(args), RunOf(args), token);
                await foreach (var next in stream)
                {
                    events.Add(next);
                    if (events.Count >= stop) break;
                }
            }
            catch (Exception e) when (e is IToolspanError)
            {
                throw new Partial(e, $"{{\"events\":{List(events)}}}");
            }
            return $"{{\"events\":{List(events)}}}";
        case "conversation.create":
            var id = args.TryGetProperty("id", out var named) ? named.GetString() : null;
            return Keep("conversation", Known<Client>(args, "client").CreateConversation(id, Known<Toolkit>(args, "toolkit")));
        case "conversation.send": return (await Known<Conversation>(args, "conversation").SendAsync(PromptOf(args), token)).ToJson();
        case "conversation.messages":
            return $"{{\"messages\":{List((await Known<Conversation>(args, "conversation").GetMessagesAsync(token)).Cast<object>())}}}";
        case "conversation.reset": await Known<Conversation>(args, "conversation").ResetAsync(token); return "{}";
        case "store.get":
            var kept = await Known<Client>(args, "client").ConversationStore.GetAsync(Text(args, "id"), token);
            return $"{{\"transcript\":{kept?.GetRawText() ?? "null"}}}";
        case "store.save":
            await Known<Client>(args, "client").ConversationStore.SaveAsync(Text(args, "id"), args.GetProperty("messages"), token);
            return "{}";
        case "counters": return engine.GetCounters().ToJson();
        case "version": return JsonSerializer.Serialize(new { version = engine.Version });
        case "cancel":
            if (running.TryGetValue(args.GetProperty("step").GetInt32(), out var source)) source.Cancel();
            return "{}";
        case "host.calls": return host.Calls.ToString();
        case "host.logs": return logs.ToString();
        case "host.metrics": return host.Metrics.ToString();
        case "host.reset":
            foreach (var recorded in new[] { host.Calls, host.Metrics, logs }) recorded.Clear();
            return "{}";
        default: throw new ArgumentException($"no such operation: {op}");
    }
}

// The protocol

void Say(string line)
{
    lock (objects) Console.Out.WriteLine(line);
}

async Task Answer(JsonElement step)
{
    var number = step.GetProperty("step").GetInt32();
    using var cancel = running[number] = new CancellationTokenSource();
    step.TryGetProperty("args", out var args);
    step.TryGetProperty("handlers", out var handlers);
    try
    {
        Say($"{{\"step\":{number},\"ok\":{await Perform(Text(step, "op"), args, handlers, cancel.Token)}}}");
    }
    catch (Exception e)
    {
        var partial = e is Partial some ? $",\"partial\":{some.Events}" : "";
        var record = ((e is Partial ? e.InnerException : e) as IToolspanError)?.Record.ToJson()
            ?? JsonSerializer.Serialize(new { code = "shim", message = e.ToString() });
        Say($"{{\"step\":{number},\"error\":{record}{partial}}}");
    }
    running.TryRemove(number, out _);
}

Say(JsonSerializer.Serialize(new { ready = new { language = "dotnet", version = engine.Version } }));
while (Console.In.ReadLine() is string line)
{
    if (line.Length > 0) _ = Task.Run(() => Answer(JsonDocument.Parse(line, new JsonDocumentOptions { MaxDepth = 1000 }).RootElement));
}
await engine.CloseAsync();

internal sealed class Partial : Exception
{
    internal Partial(Exception error, string events) : base(null, error) => Events = events;

    internal string Events { get; }
}

/// <summary>JSON texts in order of arrival.</summary>
internal sealed class Recorded
{
    private readonly List<string> items = new();

    internal void Add(string json)
    {
        lock (items) items.Add(json);
    }

    internal void Clear()
    {
        lock (items) items.Clear();
    }

    public override string ToString()
    {
        lock (items) return $"[{string.Join(',', items)}]";
    }
}
