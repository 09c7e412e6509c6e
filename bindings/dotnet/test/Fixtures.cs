using System.Diagnostics;
using System.Net.Http.Json;
using System.Text.Json;
using System.Text.Json.Nodes;
using Toolspan;

/// <summary>The servers of the fixtures: scenarios are made, asked, waited for, and dropped with the test.</summary>
internal static class Fixtures
{
    private static readonly HttpClient Http = new();
    private static readonly string Program = Environment.GetEnvironmentVariable("TOOLSPAN_FIXTURES")
        ?? Path.Combine(AppContext.BaseDirectory, "..", "toolspan-fixtures");
    private static readonly Lazy<(Process Process, string Control)> Served = new(Start);

    private static (Process, string) Start()
    {
        var process = Process.Start(new ProcessStartInfo(Program, "serve") { RedirectStandardInput = true, RedirectStandardOutput = true })!;
        return (process, (string)JsonNode.Parse(process.StandardOutput.ReadLine()!)!["control"]!);
    }

    internal static void Stop()
    {
        if (!Served.IsValueCreated) return;
        Served.Value.Process.StandardInput.Close();
        Served.Value.Process.WaitForExit();
    }

    internal static async Task<Scenario> Scenario(object script) => new(await Ask(HttpMethod.Post, "/scenarios", script));

    /// <summary>An upstream that gives these answers, one after the other.</summary>
    internal static Task<Scenario> Model(params object[] replies) => Scenario(new { llm = new { main = new { style = "openai", replies } } });

    /// <summary>An upstream that asks for one call and then says <c>done</c>.</summary>
    internal static Task<Scenario> OneCall(string name, object args) =>
        Model(new { calls = new[] { new { id = "c1", name, args } } }, new { text = "done" });

    /// <summary>An MCP server of two processes; a stubborn one ends only when it is killed.</summary>
    internal static Task<Scenario> Server(bool stubborn) => Scenario(new
    {
        mcp = new { srv = new { transport = "stdio", tools = new[] { new { name = "a" } }, grandchild = true, ignoreEof = stubborn, ignoreTerm = stubborn } },
    });

    internal static async Task<JsonNode> Ask(HttpMethod method, string path, object? body = null)
    {
        using var request = new HttpRequestMessage(method, Served.Value.Control + path);
        if (body != null) request.Content = new StringContent(JsonSerializer.Serialize(body));
        using var response = await Http.SendAsync(request);
        var text = await response.Content.ReadAsStringAsync();
        if (!response.IsSuccessStatusCode) throw new Exception($"fixtures: {method} {path}: {text}");
        return JsonNode.Parse(text.Length == 0 ? "{}" : text)!;
    }
}

internal sealed class Scenario : IAsyncDisposable
{
    private readonly JsonNode made;

    internal Scenario(JsonNode made) => this.made = made;

    internal string BaseUrl => (string)made["llm"]!["main"]!["baseUrl"]!;

    internal JsonNode Server(string name) => made["mcp"]![name]!;

    /// <summary>The configuration of the MCP server <c>srv</c>.</summary>
    internal string Config => JsonSerializer.Serialize(new { mcpServers = new { srv = new { command = Server("srv")["command"] } } });

    internal ClientOptions Options => new() { BaseUrl = BaseUrl, Style = Style.OpenAI, Model = "m", ApiKey = "k" };

    internal Task<JsonNode> Seen() => Fixtures.Ask(HttpMethod.Get, $"/scenarios/{made["id"]}/seen");

    internal Task Wait(object until) => Fixtures.Ask(HttpMethod.Post, $"/scenarios/{made["id"]}/wait", new { until });

    public async ValueTask DisposeAsync() => await Fixtures.Ask(HttpMethod.Delete, $"/scenarios/{made["id"]}");
}

/// <summary>Programs of <see cref="Programs"/> as processes, for what can only be seen from outside.</summary>
internal sealed class Child
{
    private readonly Process process;
    private readonly Task<string> errors;

    private Child(Process process)
    {
        this.process = process;
        errors = process.StandardError.ReadToEndAsync();
    }

    internal static Child Start(string program, IReadOnlyDictionary<string, string>? environment = null, params string[] args)
    {
        var start = new ProcessStartInfo(Environment.ProcessPath!) { RedirectStandardOutput = true, RedirectStandardError = true };
        foreach (var argument in new[] { typeof(Child).Assembly.Location, "program", program }.Concat(args)) start.ArgumentList.Add(argument);
        foreach (var entry in environment ?? new Dictionary<string, string>()) start.Environment[entry.Key] = entry.Value;
        return new Child(Process.Start(start)!);
    }

    internal int Id => process.Id;

    /// <summary>The next line it says.</summary>
    internal Task<string?> Said() => process.StandardOutput.ReadLineAsync();

    /// <summary>How it ends: code, the rest of what it says, and what it complains about.</summary>
    internal async Task<(int Code, string Output, string Errors)> Ended()
    {
        var output = await process.StandardOutput.ReadToEndAsync();
        await process.WaitForExitAsync();
        return (process.ExitCode, output, await errors);
    }
}
