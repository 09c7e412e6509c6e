using System.Diagnostics;
using System.Text.Json;

/// <summary>The example of the README is the program that runs here.</summary>
public sealed class ReadmeTests
{
    private static readonly string Package = Path.Combine(Environment.CurrentDirectory, "bindings", "dotnet");

    [Test]
    public async Task TheExampleRunsAsItStands()
    {
        var example = File.ReadAllText(Path.Combine(Package, "examples", "agent", "Program.cs"));
        Check.True(File.ReadAllText(Path.Combine(Package, "README.md")).Contains($"```csharp\n{example}```"), "the README says something else");
        await using var scenario = await Fixtures.Scenario(new
        {
            mcp = new { srv = new { transport = "stdio", tools = new[] { new { name = "a" } } } },
            llm = new { main = new { style = "openai", replies = new object[] {
                new { calls = new[] { new { id = "c1", name = "add", args = new { a = 2, b = 2 } } } }, new { text = "4" }, new { text = "6" } } } },
        });
        var folder = Directory.CreateTempSubdirectory("toolspan-");
        try
        {
            var config = JsonSerializer.Serialize(new { mcpServers = new { srv = new { command = scenario.Server("srv")["command"] } } });
            File.WriteAllText(Path.Combine(folder.FullName, "mcp.json"), config);
            var start = new ProcessStartInfo(Environment.ProcessPath!) { WorkingDirectory = folder.FullName, RedirectStandardOutput = true };
            start.ArgumentList.Add(Path.Combine(AppContext.BaseDirectory, "agent.dll"));
            start.Environment["BASE_URL"] = scenario.BaseUrl;
            using var agent = Process.Start(start)!;
            Check.Equal("4 (30 tokens)\n6", await agent.StandardOutput.ReadToEndAsync());
            await agent.WaitForExitAsync();
            Check.Equal(0, agent.ExitCode);
        }
        finally
        {
            folder.Delete(recursive: true);
        }
    }
}
