// An agent in one screen: an MCP server, a tool of our own, a streamed answer. `make demo` runs it.
using Toolspan;

const string Prompt = "What is the weather in Chicago, and how many days are left until the picnic on 2026-12-24? Today is 2026-11-30.";

static string? Env(string name) => Environment.GetEnvironmentVariable(name);

// The real endpoint when there is a key for it, the scripted one otherwise.
static ClientOptions Endpoint() =>
    Env("ANTHROPIC_API_KEY") != null ? new() { BaseUrl = "https://api.anthropic.com", Style = Style.Anthropic, Model = "claude-sonnet-4-5" }
    : Env("OPENAI_API_KEY") != null ? new() { BaseUrl = "https://api.openai.com/v1", Style = Style.OpenAI, Model = "gpt-5-mini" }
    : new() { BaseUrl = Env("DEMO_MODEL"), Style = Style.OpenAI, Model = "scripted" };

var daysBetween = Tool.From("days_between", "Number of days from one date to another", (DateTime from, DateTime to) => (to - from).Days);
await using var toolkit = await Toolkit.CreateAsync(new ToolkitOptions { McpConfig = Env("DEMO_MCP")!, Tools = { daysBetween } });
Console.WriteLine($"\x1b[1m> {Prompt}\x1b[0m\n");
await foreach (var next in new Client(Endpoint()).StreamAsync(Prompt, toolkit))
{
    switch (next)
    {
        case TextEvent text: Console.Write(text.Delta); break;
        case ToolCallEvent call: Console.WriteLine($"\x1b[36m  * {call.Name} {call.Args}\x1b[0m"); break;
        case ToolResultEvent done: Console.WriteLine($"\x1b[90m    {done.Output}\x1b[0m"); break;
        case DoneEvent { Result: var result }:
            Console.WriteLine($"\n\n\x1b[90m{result.Turns} turns, {result.Usage.TotalTokens} tokens\x1b[0m");
            if (Env("DEMO_TRANSCRIPT") is { } path) File.WriteAllText(path, $"[{string.Join(',', result.Messages)}]");
            break;
    }
}
