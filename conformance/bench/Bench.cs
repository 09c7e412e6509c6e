// The scenario from .NET, through the public API. See src/lib.rs for what it prints.
using System.Diagnostics;
using System.Text.Json;
using Toolspan;

var plan = JsonDocument.Parse(Environment.GetEnvironmentVariable("BENCH")!).RootElement;
int warmUp = plan.GetProperty("warmUp").GetInt32(), runs = plan.GetProperty("runs").GetInt32();
await using var toolkit = await Toolkit.CreateAsync(new ToolkitOptions
{
    McpConfig = McpConfig.Document(new { mcpServers = new { calc = new { command = plan.GetProperty("command") } } }),
});
var client = new Client(new ClientOptions { BaseUrl = plan.GetProperty("baseUrl").GetString(), Style = Style.OpenAI, Model = "bench" });
var times = new List<double>();
for (var run = 0; run < warmUp + runs; run++)
{
    var clock = Stopwatch.StartNew();
    var result = await client.RunAsync("What is 2 + 2, twice?", toolkit);
    if (run >= warmUp) times.Add(clock.Elapsed.TotalMilliseconds * 1000);
    if (result.ToolCalls.Count != 2) throw new Exception($"{result.ToolCalls.Count} tool calls instead of 2");
}
times.Sort();
double At(double share) => times[(int)Math.Round((times.Count - 1) * share)];
Console.WriteLine(JsonSerializer.Serialize(new { median_us = At(0.5), p95_us = At(0.95), runs = times.Count }));
