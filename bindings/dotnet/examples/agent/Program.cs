using Toolspan;

var add = Tool.From("add", "Add two integers", (int a, int b) => a + b);
await using var toolkit = await Toolkit.CreateAsync(new ToolkitOptions { McpConfig = "mcp.json", Tools = { add } });

var client = new Client(new ClientOptions
{
    BaseUrl = Environment.GetEnvironmentVariable("BASE_URL"),
    Style = Style.OpenAI,
    Model = "gpt-5-mini",
});
var result = await client.RunAsync("What is 2 + 2?", toolkit);
Console.WriteLine($"{result.Text} ({result.Usage.TotalTokens} tokens)");

await foreach (var e in client.StreamAsync("And 3 + 3?", toolkit))
{
    if (e is TextEvent text) Console.Write(text.Delta);
}
