using System.Collections.Concurrent;
using System.Net;
using System.Text;
using System.Text.Json;
using System.Text.Json.Nodes;
using Toolspan;

/// <summary>Runs, streams, memory, and the program's functions in them.</summary>
public sealed class ClientTests
{
    private static readonly object Delta = new { data = new { choices = new[] { new { index = 0, delta = new { content = "a" } } } } };
    private static readonly object Hang = new { hang = true };

    private static async Task<List<Event>> All(IAsyncEnumerable<Event> stream)
    {
        var events = new List<Event>();
        await foreach (var next in stream) events.Add(next);
        return events;
    }

    private static ToolkitOptions With(params Tool[] tools) => new() { Tools = tools };

    [Test]
    public async Task ARunCallsTheToolAndGivesTheAnswer()
    {
        await using var model = await Fixtures.OneCall("add", new { a = 1, b = 2 });
        await using var toolkit = await Toolkit.CreateAsync(With(Tool.From("add", "d", (int a, int b) => a + b)));
        var result = await new Client(model.Options).RunAsync("1 + 2?", toolkit);
        Check.Equal(("done", RunStatus.Done, 2, "m"), (result.Text, result.Status, result.Turns, result.Model));
        Check.Json("{'id':'c1','name':'add','args':{'a':1,'b':2},'output':'3','isError':false}", result.ToolCalls[0]);
        Check.List(result.Messages.Select(message => message.GetProperty("role").GetString()!), "user", "assistant", "tool", "assistant");
        Check.Json("{'promptTokens':20,'completionTokens':10,'totalTokens':30}", result.Usage);
    }

    [Test]
    public async Task WhatAToolThrewIsTheExceptionOfItsCall()
    {
        var original = new TimeZoneNotFoundException("where?");
        await using var model = await Fixtures.OneCall("fails", new { });
        await using var toolkit = await Toolkit.CreateAsync(With(Tool.From("fails", "d", string () => throw original)));
        var client = new Client(model.Options);
        var result = await client.RunAsync("go", toolkit);
        Check.Equal(("where?", true), (result.ToolCalls[0].Output, result.ToolCalls[0].IsError));
        Check.True(ReferenceEquals(original, result.ToolCalls[0].Exception));
        await using var again = await Fixtures.OneCall("fails", new { });
        var events = await All(new Client(again.Options).StreamAsync("go", toolkit));
        Check.True(ReferenceEquals(original, ((DoneEvent)events[^1]).Result.ToolCalls[0].Exception));
    }

    [Test]
    public async Task AToolMayCallTheLibraryAlsoBlocking()
    {
        await using var model = await Fixtures.OneCall("ask", new { });
        await using var inner = await Fixtures.Model(new { text = "inner" }, new { text = "again" });
        var sub = new Client(inner.Options);
        var tool = Tool.From("ask", "d", async () => (await sub.RunAsync("?")).Text + sub.RunAsync("?").GetAwaiter().GetResult().Text);
        await using var toolkit = await Toolkit.CreateAsync(With(tool));
        Check.Equal("inneragain", (await new Client(model.Options).RunAsync("go", toolkit)).ToolCalls[0].Output);
    }

    [Test]
    public async Task AStreamGivesTheEventsOfTheRun()
    {
        await using var model = await Fixtures.OneCall("add", new { a = 1 });
        await using var toolkit = await Toolkit.CreateAsync(With(Tool.From("add", "d", (int a) => "2")));
        var stream = new Client(model.Options).StreamAsync("go", toolkit);
        Check.Equal(0, (await model.Seen())["llm"]!["main"]!["requests"]!.AsArray().Count);
        var events = await All(stream);
        Check.Json("{'type':'tool_call','id':'c1','name':'add','args':{'a':1}}", events.OfType<ToolCallEvent>().Single());
        Check.Json("{'type':'tool_result','id':'c1','name':'add','output':'2','isError':false}", events.OfType<ToolResultEvent>().Single());
        Check.Equal("done", string.Concat(events.OfType<TextEvent>().Select(text => text.Delta)));
        Check.Equal("done", ((DoneEvent)events[^1]).Result.Text);
    }

    [Test]
    public async Task LeavingTheLoopEndsTheRunAndClosesTheConnection()
    {
        await using var engine = new Engine();
        await using var model = await Fixtures.Model(new { sse = new[] { Delta, Hang } });
        var client = engine.CreateClient(model.Options);
        await foreach (var next in client.StreamAsync("go"))
        {
            Check.Equal("a", ((TextEvent)next).Delta);
            Check.Equal(1, engine.GetCounters().OpenStreams);
            break;
        }
        // At once, not some time later.
        Check.Json("{'openToolkits':0,'connectedServers':0,'openClients':1,'operations':0,'openStreams':0}", engine.GetCounters());
        await model.Wait(new { llm = "main", connections = 0 });
        GC.KeepAlive(client);
    }

    [Test]
    public async Task AStreamEndsWithItsToken()
    {
        await using var model = await Fixtures.Model(new { sse = new[] { Delta, Hang } });
        using var cancel = new CancellationTokenSource();
        var seen = 0;
        var error = await Check.Throws<CancelledException>(async () =>
        {
            await foreach (var next in new Client(model.Options).StreamAsync("go").WithCancellation(cancel.Token))
            {
                seen++;
                cancel.Cancel();
            }
        });
        Check.Equal((1, cancel.Token), (seen, error.CancellationToken));
        await model.Wait(new { llm = "main", connections = 0 });
    }

    [Test]
    public async Task AStreamThatIsCutFailsAfterTheEventsThatCame()
    {
        await using var model = await Fixtures.Model(new { sse = new[] { Delta, new { cut = true } } });
        var options = model.Options;
        options.Retries = 0;
        var seen = new List<Event>();
        await Check.Throws<StreamInterruptedException>(async () =>
        {
            await foreach (var next in new Client(options).StreamAsync("go")) seen.Add(next);
        });
        Check.Json("{'type':'text','delta':'a'}", seen.Single());
    }

    [Test]
    public async Task AReaderThatStopsReadingStopsTheSender()
    {
        var piece = JsonSerializer.Serialize(new { choices = new[] { new { index = 0, delta = new { content = new string('x', 65536) } } } });
        await using var model = await Fixtures.Model(new { sse = Enumerable.Repeat(piece, 400).Append("[DONE]") });
        await using var engine = new Engine();
        await foreach (var next in engine.CreateClient(model.Options).StreamAsync("go"))
        {
            var before = Environment.WorkingSet;
            await Task.Delay(300);
            // 26 MB are on their way; what the reader did not ask for stays in the sender.
            Check.True(Environment.WorkingSet - before < 20 << 20);
            break;
        }
        await model.Wait(new { llm = "main", connections = 0 });
    }

    [Test]
    public async Task CancellingIsOfTheKindThatDotNetKnows()
    {
        await using var model = await Fixtures.Model(Hang, new { text = "next" });
        var client = new Client(model.Options);
        using var cancel = new CancellationTokenSource();
        var running = client.RunAsync("go", cancellationToken: cancel.Token);
        await model.Wait(new { llm = "main", requests = 1 });
        cancel.Cancel();
        try
        {
            await running;
            throw new Exception("it ended");
        }
        catch (OperationCanceledException e) when (e is IToolspanError error)
        {
            Check.Equal((cancel.Token, "cancelled", "cancelled: the caller cancelled"), (e.CancellationToken, error.Record.Code, e.Message));
        }
        Check.Equal(TaskStatus.Canceled, running.Status);
        await model.Wait(new { llm = "main", connections = 0 });
        Check.Equal("next", (await client.RunAsync("go")).Text);
        // One that is cancelled already sends nothing.
        await Check.Throws<CancelledException>(() => client.RunAsync("go", cancellationToken: cancel.Token));
        Check.Equal(2, (await model.Seen())["llm"]!["main"]!["requests"]!.AsArray().Count);
    }

    [Test]
    public async Task CancellingReachesTheToolAndTheServer()
    {
        await using var scenario = await Fixtures.Scenario(new
        {
            mcp = new { srv = new { transport = "http", tools = new[] { new { name = "slow", does = Hang } } } },
            llm = new { main = new { style = "openai", replies = new[] { new { calls = new[] {
                new { id = "a", name = "srv_slow", args = new { } }, new { id = "b", name = "own", args = new { } } } } } } },
        });
        TaskCompletionSource entered = new(), left = new();
        var options = With(Tool.From("own", "d", async (CancellationToken token) =>
        {
            token.Register(left.SetResult);
            entered.SetResult();
            await Task.Delay(Timeout.Infinite, token);
        }));
        options.McpConfig = McpConfig.Document(new { mcpServers = new { srv = new { url = (string)scenario.Server("srv")["url"]! } } });
        await using var toolkit = await Toolkit.CreateAsync(options);
        Check.Equal(ServerState.Connected, toolkit.GetStatus()["srv"].State);
        using var cancel = new CancellationTokenSource();
        var running = new Client(scenario.Options).RunAsync("go", toolkit, cancel.Token);
        await entered.Task;
        await scenario.Wait(new { mcp = "srv", method = "tools/call" });
        cancel.Cancel();
        await Check.Throws<CancelledException>(() => running);
        await left.Task;
        await scenario.Wait(new { mcp = "srv", method = "notifications/cancelled" });
    }

    [Test]
    public async Task WhatAHookThrowsEndsTheRunAndIsTheInnerException()
    {
        var original = new NotSupportedException("not today");
        await using var model = await Fixtures.Model(new { text = "unsaid" });
        var options = model.Options;
        options.Hooks = new Hooks { BeforeLlm = (payload, token) => throw original };
        var client = new Client(options);
        Check.True(ReferenceEquals(original, (await Check.Throws<HostFailedException>(() => client.RunAsync("go"))).InnerException));
        Check.True(ReferenceEquals(original, (await Check.Throws<HostFailedException>(() => All(client.StreamAsync("go")))).InnerException));
    }

    [Test]
    public async Task HooksAndBodyTransformSeeAndChangeARun()
    {
        await using var model = await Fixtures.OneCall("echo", new { q = 1 });
        var seen = new ConcurrentQueue<string>();
        var options = model.Options;
        options.RequestParams = new JsonObject { ["temperature"] = 0.5 };
        options.Hooks = new Hooks
        {
            BeforeLlm = (payload, token) =>
            {
                seen.Enqueue($"before {payload.Turn}");
                return Task.FromResult<LlmChanges?>(payload.Turn == 2 ? new LlmChanges { Model = "big" } : null);
            },
            AfterLlm = (payload, token) =>
            {
                seen.Enqueue($"after {payload.Turn} {payload.Model}");
                return Task.CompletedTask;
            },
            BeforeTool = (payload, token) => Task.FromResult<ToolCallChange?>(
                ToolCallChange.Arguments(JsonSerializer.SerializeToElement(new { q = payload.Args.GetProperty("q").GetInt32() + 1 }))),
            AfterTool = (payload, token) => Task.FromResult<ToolResult?>(new ToolResult { Output = payload.Result.Output + "!" }),
        };
        options.BodyTransform = (body, token) =>
        {
            body["seed"] = 7;
            return Task.FromResult<JsonObject?>(body);
        };
        await using var toolkit = await Toolkit.CreateAsync(With(new Tool("echo", "d", null, (args, context) => Task.FromResult<object?>(args))));
        var result = await new Client(options).RunAsync("go", toolkit);
        Check.Json("{'q':2}!", result.ToolCalls[0].Output);
        Check.List(seen, "before 1", "after 1 m", "before 2", "after 2 big");
        var bodies = (await model.Seen())["llm"]!["main"]!["requests"]!.AsArray().Select(request => JsonNode.Parse((string)request!["body"]!)!);
        Check.List(bodies.Select(body => $"{body["model"]} {body["temperature"]} {body["seed"]}"), "m 0.5 7", "big 0.5 7");
    }

    [Test]
    public async Task OnErrorIsGivenTheErrorAndDecides()
    {
        await using var model = await Fixtures.Model(new { status = 503, json = new { } });
        var options = model.Options;
        var seen = new ConcurrentQueue<RequestFailure>();
        options.OnError = (failure, token) =>
        {
            seen.Enqueue(failure);
            return Task.FromResult(ErrorDecision.Fail);
        };
        var error = await Check.Throws<ProviderUnavailableException>(() => new Client(options).RunAsync("go"));
        Check.Equal((503, true, ErrorCodes.ProviderUnavailable), (error.HttpStatus!.Value, error.Retryable, error.Code));
        Check.List(seen.Select(failure => $"{failure.Error.HttpStatus} {failure.Attempt} {failure.Retryable}"), "503 0 True");
    }

    [Test]
    public async Task AHandlerSendsTheRequestsPieceByPiece()
    {
        await using var model = await Fixtures.Model(new { text = "one two" }, new { text = "three four", chunkBytes = 7 });
        var options = model.Options;
        options.HttpClient = new HttpClientHandler { AllowAutoRedirect = false };
        var client = new Client(options);
        Check.Equal("one two", (await client.RunAsync("go")).Text);
        Check.Equal("three four", ((DoneEvent)(await All(client.StreamAsync("go")))[^1]).Result.Text);
    }

    private sealed class Around : DelegatingHandler
    {
        internal Around(HttpMessageHandler inner) : base(inner) { }
    }

    [Test]
    public void AHandlerThatFollowsRedirectsIsRefused()
    {
        foreach (var handler in new HttpMessageHandler[] { new HttpClientHandler(), new SocketsHttpHandler(), new Around(new SocketsHttpHandler()) })
        {
            var options = new ClientOptions { BaseUrl = "http://127.0.0.1:9", Style = Style.Anthropic, Model = "m", ApiKey = "k", HttpClient = handler };
            var error = Check.Throws<InvalidArgumentException>(() => new Client(options));
            Check.Equal("invalid_argument: httpClient: the handler follows redirects; set its AllowAutoRedirect to false", error.Message);
        }
    }

    [Test]
    public async Task TheKeyDoesNotFollowARedirect()
    {
        await using var elsewhere = await Fixtures.Model(new { text = "caught" });
        await using var model = await Fixtures.Model(new { status = 307, headers = new { location = elsewhere.BaseUrl + "/v1/messages" } });
        var options = model.Options;
        options.Style = Style.Anthropic;
        options.ApiKey = "marker-6f1d";
        options.HttpClient = new Around(new SocketsHttpHandler { AllowAutoRedirect = false });
        var error = await Check.Throws<InvalidResponseException>(() => new Client(options).RunAsync("go"));
        Check.Equal(307, error.HttpStatus!.Value);
        Check.Equal("marker-6f1d", (string)(await model.Seen())["llm"]!["main"]!["requests"]![0]!["headers"]!["x-api-key"]!);
        Check.Equal(0, (await elsewhere.Seen())["llm"]!["main"]!["requests"]!.AsArray().Count);
    }

    private sealed class Answering : HttpMessageHandler
    {
        private readonly Func<HttpContent> content;

        internal Answering(Func<HttpContent> content) => this.content = content;

        protected override Task<HttpResponseMessage> SendAsync(HttpRequestMessage request, CancellationToken cancellationToken) =>
            Task.FromResult(new HttpResponseMessage { Content = content() });
    }

    private sealed class Endless : MemoryStream
    {
        internal readonly TaskCompletionSource Closed = new();
        private int reads;

        public override async Task<int> ReadAsync(byte[] buffer, int offset, int count, CancellationToken cancellationToken)
        {
            // As a stream may that looks at no token: only closing it ends the wait.
            if (reads++ > 0) await Closed.Task;
            return Encoding.UTF8.GetBytes("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n", buffer.AsSpan(offset));
        }

        protected override void Dispose(bool disposing) => Closed.TrySetResult();
    }

    [Test]
    public async Task LeavingAStreamClosesTheBodyOfTheProgramsHandler()
    {
        var body = new Endless();
        var handler = new Answering(() => new StreamContent(body) { Headers = { ContentType = new("text/event-stream") } });
        var client = new Client(new ClientOptions { BaseUrl = "http://127.0.0.1:9/v1", Style = Style.OpenAI, Model = "m", ApiKey = "k", HttpClient = handler });
        await foreach (var next in client.StreamAsync("go")) break;
        await body.Closed.Task;
    }

    [Test]
    public async Task AFailingHandlerIsTheInnerException()
    {
        var original = new WebException("no route");
        var options = new ClientOptions { BaseUrl = "http://127.0.0.1:9/v1", Style = Style.OpenAI, Model = "m", ApiKey = "k", Retries = 0 };
        options.HttpClient = new Answering(() => throw original);
        var error = await Check.Throws<ConnectionFailedException>(() => new Client(options).RunAsync("go"));
        Check.True(ReferenceEquals(original, error.InnerException));
    }

    private sealed class Store : ConversationStore
    {
        internal readonly ConcurrentDictionary<string, JsonElement> Kept = new();

        public override Task<JsonElement?> GetAsync(string id, CancellationToken cancellationToken) =>
            id == "broken" ? throw new IOException("disk is full") : Task.FromResult<JsonElement?>(Kept.TryGetValue(id, out var found) ? found : null);

        public override Task SaveAsync(string id, JsonElement transcript, CancellationToken cancellationToken)
        {
            Kept[id] = transcript;
            return Task.CompletedTask;
        }
    }

    [Test]
    public async Task AskRemembersInTheProgramsOwnStore()
    {
        await using var model = await Fixtures.Model(new { text = "1" }, new { text = "2" });
        var store = new Store();
        var options = model.Options;
        options.Store = store;
        var client = new Client(options);
        Check.Equal("x", (await client.AskAsync("one", "x")).ConversationId!);
        Check.Equal(4, (await client.AskAsync("two", "x")).Messages.Count);
        Check.Equal(4, store.Kept["x"].GetProperty("messages").GetArrayLength());
        var seen = await client.ConversationStore.GetAsync("x");
        Check.Equal(4, seen!.Value.GetProperty("messages").GetArrayLength());
        Check.True(await client.ConversationStore.GetAsync("y") is null);
        await client.ConversationStore.SaveAsync("y", JsonSerializer.SerializeToElement(new[] { new { role = "user", content = "hi" } }));
        Check.Equal(1, store.Kept["y"].GetProperty("messages").GetArrayLength());
        var error = await Check.Throws<StoreFailedException>(() => client.AskAsync("go", "broken"));
        Check.Equal(typeof(IOException), error.InnerException!.GetType());
    }

    [Test]
    public async Task AConversationGoesOnUntilItIsReset()
    {
        await using var model = await Fixtures.Model(new { text = "1" }, new { text = "2" });
        var options = model.Options;
        options.Store = ConversationStore.Memory;
        await using var conversation = new Client(options).CreateConversation();
        Check.Equal("1", (await conversation.SendAsync("one")).Text);
        Check.Equal("2", (await conversation.SendAsync("two")).Text);
        Check.Equal(4, (await conversation.GetMessagesAsync()).Count);
        await conversation.ResetAsync();
        Check.Equal(0, (await conversation.GetMessagesAsync()).Count);
    }

    [Test]
    public async Task LogsAndMetricsArriveInOrderAndASinkThatThrowsHarmsNobody()
    {
        await using var model = await Fixtures.Model(new { text = "1" }, new { text = "2" });
        var logs = new ConcurrentQueue<LogRecord>();
        var events = new ConcurrentQueue<string>();
        var engine = new Engine(new EngineOptions { Log = logs.Enqueue });
        var options = model.Options;
        options.OnMetric = metric =>
        {
            // Slower than the close that follows, which waits for it.
            Thread.Sleep(50);
            events.Enqueue(metric.GetType().Name);
            throw new InvalidOperationException("full");
        };
        var client = engine.CreateClient(options);
        await client.RunAsync("go");
        await client.RunAsync("go");
        Check.True(client.GetMetrics().StartsWith("# HELP toolspan_"));
        var toolkit = await engine.CreateToolkitAsync(With(Tool.From("a", "d", () => "")));
        Check.True(!toolkit.Register(Tool.From("a", "d", () => "")));
        await engine.DisposeAsync();
        Check.List(events, "LlmMetric", "RunMetric", "LlmMetric", "RunMetric");
        Check.True(logs.Any(record => record.Level == LogSeverity.Warn && record.Target == "toolkit"));
        var after = (logs.Count, events.Count);
        await Check.Throws<ClosedException>(() => client.RunAsync("go"));
        Check.Equal(after, (logs.Count, events.Count));
    }

    [Test]
    public async Task ASinkThatLagsBehindIsToldHowMuchItMissed()
    {
        const int limit = 8192, more = 1000;
        using ManualResetEventSlim entered = new(), release = new();
        var records = new ConcurrentQueue<LogRecord>();
        var engine = new Engine(new EngineOptions
        {
            Log = record =>
            {
                records.Enqueue(record);
                entered.Set();
                release.Wait();
            },
        });
        var toolkit = await engine.CreateToolkitAsync(With(Tool.From("a", "d", () => "")));
        // A second tool of a name is logged.
        void Register(int times)
        {
            for (var i = 0; i < times; i++) Check.True(!toolkit.Register(Tool.From("a", "d", () => "")));
        }

        Register(1);
        entered.Wait();
        for (var i = 0; i < 8; i++)
        {
            Register((limit + more) / 8);
            // What was logged before an operation ends is delivered before its end.
            await toolkit.ExecuteAsync("a");
        }
        release.Set();
        while (records.Count < limit) await Task.Delay(1);
        Register(1);
        Check.True(await engine.CloseAsync());
        var dropped = records.Where(record => record.Target == "bridge").Select(record => record.Message).Single();
        Check.Equal($"{more + 1} log and metric events were dropped because the program's sinks lag behind", dropped);
        Check.Equal(limit + 2, records.Count);
    }

    [Test]
    public async Task ContentPartsAreAPrompt()
    {
        await using var model = await Fixtures.Model(new { text = "a cat" });
        await new Client(model.Options).RunAsync(new ContentPart[] { new TextPart { Text = "what?" }, new ImagePart { MimeType = "image/png", Data = "AAAA" } });
        var body = JsonNode.Parse((string)(await model.Seen())["llm"]!["main"]!["requests"]![0]!["body"]!)!;
        Check.Equal("text", (string)body["messages"]![0]!["content"]![0]!["type"]!);
        Check.Equal(2, body["messages"]![0]!["content"]!.AsArray().Count);
    }

    [Test]
    public async Task RunOptionsAreOfOneRun()
    {
        await using var model = await Fixtures.Model(new { text = "1" }, new { text = "2" });
        var client = new Client(model.Options);
        var first = await client.RunAsync("one", new RunOptions { SystemPrompt = "be brief", Model = "big" });
        Check.Equal("big", first.Model);
        var second = await client.RunAsync("two", new RunOptions { History = first.Messages, Timeout = TimeSpan.FromSeconds(30) });
        Check.Equal((4, "m"), (second.Messages.Count, second.Model));
    }

    [Test]
    public async Task AnInventoryNeedsNoToolkit()
    {
        await using var scenario = await Fixtures.Scenario(new { mcp = new { srv = new { transport = "stdio", tools = new[] { new { name = "a" } } } } });
        var config = JsonSerializer.Serialize(new { mcpServers = new { srv = new { command = scenario.Server("srv")["command"] } } });
        var inventory = await Engine.Shared.ListMcpToolsAsync(new ListOptions { McpConfigText = config });
        Check.List(inventory.Tools["srv"].Select(tool => $"{tool.Name} {tool.ExposedName}"), "a srv_a");
        Check.Equal(ServerState.Connected, inventory.Status["srv"].State);
    }

    [Test]
    public async Task ErrorsNameWhatIsWrong()
    {
        var error = Check.Throws<InvalidConfigException>(() => new Client(new ClientOptions { BaseUrl = "http://127.0.0.1:9", Style = "gopher", Model = "m" }));
        Check.Equal("style", error.Path!);
        Check.True(error.Message.StartsWith("invalid_config: style: "), error.Message);
        await using var other = new Engine();
        var toolkit = await other.CreateToolkitAsync();
        var client = new Client(new ClientOptions { BaseUrl = "http://127.0.0.1:9", Style = Style.OpenAI, Model = "m", ApiKey = "k" });
        await Check.Throws<ArgumentException>(() => client.RunAsync("go", toolkit));
    }
}
