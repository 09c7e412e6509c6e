using System.Reflection;
using System.Text.Json;
using Toolspan;

/// <summary>Nothing of the core is missing here: the manifest of the waist against the package, by reflection.</summary>
public sealed class ApiTests
{
    private static readonly Assembly Package = typeof(Engine).Assembly;
    private static readonly JsonElement Manifest = JsonDocument.Parse(File.ReadAllText(FindManifest())).RootElement;

    private static string FindManifest()
    {
        var named = Environment.GetEnvironmentVariable("TOOLSPAN_MANIFEST");
        return named ?? Path.Combine("bindings", "api-manifest.json");
    }

    private static IEnumerable<string> Strings(JsonElement list) => list.EnumerateArray().Select(item => item.GetString()!);

    /// <summary>The property that a key is spelled as: `timeoutMs` is the TimeSpan `Timeout`.</summary>
    private static string Property(string key) => key == "ms" ? "Elapsed" : key.EndsWith("Ms") ? key[..^2] : key;

    /// <summary>Says which keys have no property, and which properties no key.</summary>
    private static void Same(string record, Type type, IEnumerable<string> keys, params string[] own)
    {
        var properties = type.GetProperties(BindingFlags.Public | BindingFlags.Instance).Select(property => property.Name).Except(own).ToList();
        bool Are(string a, string b) => a.Equals(b, StringComparison.OrdinalIgnoreCase);
        var missing = keys.Where(key => !properties.Any(name => Are(name, Property(key)))).Select(key => $"{record}.{key} is missing");
        var unknown = properties.Where(name => !keys.Any(key => Are(name, Property(key)))).Select(name => $"{type.Name}.{name} is nothing");
        Check.List(missing.Concat(unknown));
    }

    [Test]
    public void EveryOptionIsAProperty()
    {
        var records = Manifest.GetProperty("records");
        IEnumerable<string> Args(string op, params string[] without) =>
            Strings(Manifest.GetProperty("operations").GetProperty(op).GetProperty("args")).Except(without);
        Same("toolkit.create", typeof(ToolkitOptions), Strings(records.GetProperty("ToolkitOptions")));
        Same("client.create", typeof(ClientOptions), Strings(records.GetProperty("ClientOptions")));
        Same("hooks", typeof(Hooks), Strings(records.GetProperty("HookOptions")));
        Same("mcp.list", typeof(ListOptions), Args("mcp.list"));
        foreach (var op in new[] { "client.run", "client.ask", "client.stream" })
        {
            Same(op, typeof(RunOptions), Args(op, "client", "prompt", "id"));
        }
        // The level of the log beside its sink; the kinds are what the package answers.
        Same("engine", typeof(EngineOptions), Strings(records.GetProperty("EngineOptions")).Except(new[] { "hostCalls" }), "LogLevel");
        // The function of a tool is given when it is made.
        Same("tool", typeof(Tool), Strings(records.GetProperty("ToolSpec")).Except(new[] { "handler" }));
    }

    [Test]
    public void EveryRecordHasEveryField()
    {
        var names = new Dictionary<string, Type>
        {
            ["ErrorRecord"] = typeof(ErrorRecord), ["Cause"] = typeof(ErrorCause), ["ToolResult"] = typeof(ToolResult),
            ["Hints"] = typeof(ToolHints), ["ToolInfo"] = typeof(ToolInfo), ["ServerStatus"] = typeof(ServerStatus),
            ["InventoryTool"] = typeof(ListedTool), ["Inventory"] = typeof(Inventory), ["Loss"] = typeof(Loss),
            ["Compiled"] = typeof(Adaptation), ["Usage"] = typeof(Usage), ["ToolCallRecord"] = typeof(ToolCall),
            ["RunResult"] = typeof(RunResult), ["Counters"] = typeof(Counters), ["BeforeLlm"] = typeof(BeforeLlm),
            ["AfterLlm"] = typeof(AfterLlm), ["BeforeTool"] = typeof(BeforeTool), ["AfterTool"] = typeof(AfterTool),
            ["RequestFailure"] = typeof(RequestFailure), ["LogRecord"] = typeof(LogRecord),
        };
        foreach (var (name, type) in names) Same(name, type, Strings(Manifest.GetProperty("records").GetProperty(name)), "Exception");
    }

    [Test]
    public void EveryEventPartAndMetricHasAClass()
    {
        foreach (var (union, suffix) in new[] { ("Event", "Event"), ("ContentPart", "Part"), ("MetricEvent", "Metric") })
        {
            foreach (var variant in Manifest.GetProperty("choices").GetProperty(union).EnumerateObject())
            {
                var name = variant.Name.Replace("_", "") + suffix;
                var type = Package.GetExportedTypes().SingleOrDefault(known => known.Name.Equals(name, StringComparison.OrdinalIgnoreCase));
                Check.True(type != null, $"{union} {variant.Name} has no class");
                Same(name, type!, Strings(variant.Value));
            }
        }
    }

    [Test]
    public void EveryClosedListHasEveryValue()
    {
        var lists = new Dictionary<string, Type>
        {
            ["LogLevel"] = typeof(LogSeverity), ["Source"] = typeof(ToolSource), ["ServerState"] = typeof(ServerState),
            ["Action"] = typeof(LossAction), ["RunStatus"] = typeof(RunStatus), ["Limit"] = typeof(RunLimit), ["LlmStatus"] = typeof(LlmStatus),
        };
        foreach (var (name, type) in lists)
        {
            Check.List(
                Enum.GetNames(type).Select(value => value.ToLowerInvariant()),
                Strings(Manifest.GetProperty("choices").GetProperty(name)).Select(value => value.ToLowerInvariant()).ToArray());
        }
        Check.List(new[] { Provider.OpenAI, Provider.Anthropic, Provider.Gemini }.Select(p => p.ToString()),
            Strings(Manifest.GetProperty("choices").GetProperty("Provider")).ToArray());
    }

    [Test]
    public void EveryErrorCodeHasAConstantAndAClass()
    {
        var constants = typeof(ErrorCodes).GetFields().Select(field => (string)field.GetValue(null)!).ToList();
        Check.List(constants, Strings(Manifest.GetProperty("errorCodes")).ToArray());
        var of = Package.GetType("Toolspan.Exceptions")!.GetMethod("Of", BindingFlags.Static | BindingFlags.NonPublic)!;
        var classes = new HashSet<Type>();
        foreach (var code in Strings(Manifest.GetProperty("errorCodes")))
        {
            var made = (Exception)of.Invoke(null, new object?[] { new ErrorRecord { Code = code }, null })!;
            Check.True(classes.Add(made.GetType()) && made.GetType() != typeof(ToolspanException), $"{code} has no class of its own");
            Check.True(code == "cancelled" ? made is OperationCanceledException : made is ToolspanException, $"{code} has the wrong base");
        }
        Check.Equal(typeof(ToolspanException), of.Invoke(null, new object?[] { new ErrorRecord { Code = "brand_new" }, null })!.GetType());
    }

    [Test]
    public void EveryHostCallIsServed()
    {
        var kinds = (IEnumerable<string>)Package.GetType("Toolspan.HostCalls")!
            .GetProperty("Kinds", BindingFlags.Static | BindingFlags.NonPublic)!.GetValue(null)!;
        Check.List(Strings(Manifest.GetProperty("hostCalls")).Except(kinds), "http.close", "metric", "log");
        Check.List(kinds.Except(Strings(Manifest.GetProperty("hostCalls"))));
    }

    [Test]
    public void EveryOperationHasAMember()
    {
        var members = new Dictionary<string, (Type, string)>
        {
            ["version"] = (typeof(Engine), "Version"), ["counters"] = (typeof(Engine), "GetCounters"),
            ["toolkit.create"] = (typeof(Engine), "CreateToolkitAsync"), ["toolkit.tools"] = (typeof(Toolkit), "GetTools"),
            ["toolkit.get"] = (typeof(Toolkit), "Get"), ["toolkit.register"] = (typeof(Toolkit), "Register"),
            ["toolkit.status"] = (typeof(Toolkit), "GetStatus"), ["toolkit.adapt"] = (typeof(Toolkit), "Adapt"),
            ["toolkit.execute"] = (typeof(Toolkit), "ExecuteAsync"), ["toolkit.close"] = (typeof(Toolkit), "CloseAsync"),
            ["mcp.list"] = (typeof(Engine), "ListMcpToolsAsync"), ["client.create"] = (typeof(Engine), "CreateClient"),
            ["client.run"] = (typeof(Client), "RunAsync"), ["client.ask"] = (typeof(Client), "AskAsync"),
            ["client.stream"] = (typeof(Client), "StreamAsync"), ["stream.next"] = (typeof(Client), "StreamAsync"),
            ["client.metrics"] = (typeof(Client), "GetMetrics"), ["client.close"] = (typeof(Client), "CloseAsync"),
            ["conversation.create"] = (typeof(Client), "CreateConversation"), ["conversation.send"] = (typeof(Conversation), "SendAsync"),
            ["conversation.messages"] = (typeof(Conversation), "GetMessagesAsync"), ["conversation.reset"] = (typeof(Conversation), "ResetAsync"),
            ["conversation.close"] = (typeof(Conversation), "Dispose"), ["store.get"] = (typeof(ConversationStore), "GetAsync"),
            ["store.save"] = (typeof(ConversationStore), "SaveAsync"),
        };
        var operations = Manifest.GetProperty("operations").EnumerateObject().Select(operation => operation.Name).ToList();
        Check.List(operations.Except(members.Keys).Select(name => $"{name} has no member"));
        Check.List(members.Where(entry => !operations.Contains(entry.Key) || entry.Value.Item1.GetMember(entry.Value.Item2).Length == 0)
            .Select(entry => $"{entry.Key} is not {entry.Value}"));
    }
}
