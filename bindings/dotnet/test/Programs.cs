using System.Text.Json;
using Toolspan;

/// <summary>Programs that run as processes of their own.</summary>
internal static class Programs
{
    private static Tool Never => Tool.From("never", "d", () =>
    {
        Say("entered");
        return Task.Delay(Timeout.Infinite);
    });

    private static Tool Add => Tool.From("add", "d", (int a, int b) => a + b);

    private static void Say(object text)
    {
        lock (Console.Out)
        {
            Console.Out.WriteLine(text);
            Console.Out.Flush();
        }
    }

    private static ClientOptions Options(string url) => new() { BaseUrl = url, Style = Style.OpenAI, Model = "m", ApiKey = "k" };

    internal static async Task IdleEngine(string[] args)
    {
        var toolkit = await Toolkit.CreateAsync(new ToolkitOptions { McpConfigText = args[0], Tools = { Add } });
        _ = new Client(Options("http://127.0.0.1:9"));
        Say(toolkit.GetTools().Count);
    }

    internal static async Task EverythingRuns(string[] args)
    {
        var toolkit = await Toolkit.CreateAsync(new ToolkitOptions { Tools = { Never, Add } });
        for (var i = 0; i < 10; i++) _ = toolkit.ExecuteAsync("never");
        var client = new Client(Options(args[0]));
        _ = client.RunAsync("go", toolkit);
        var events = client.StreamAsync("go").GetAsyncEnumerator();
        await events.MoveNextAsync();
        _ = events.MoveNextAsync().AsTask();
        new Thread(() =>
        {
            while (true) toolkit.ExecuteAsync("add", new { a = 1, b = 2 }).Wait();
        }) { IsBackground = true }.Start();
        _ = new Engine(new EngineOptions { Log = _ => { } }).CreateToolkitAsync();
    }

    internal static async Task Exits(string[] args)
    {
        await EverythingRuns(args);
        Environment.Exit(3);
    }

    internal static async Task Waits(string[] args)
    {
        var toolkit = await Toolkit.CreateAsync(new ToolkitOptions { McpConfigText = args[0], Tools = { Never } });
        await toolkit.ExecuteAsync("never");
    }

    internal static async Task Collects(string[] args)
    {
        using var stop = new CancellationTokenSource();
        var collecting = Task.Factory.StartNew(() =>
        {
            while (!stop.IsCancellationRequested)
            {
                GC.Collect();
                // A collection stops every thread: back to back they leave none of the processor to the calls.
                Thread.Sleep(1);
            }
        }, TaskCreationOptions.LongRunning);
        async Task<string> Call(Engine engine, int i)
        {
            // Nothing but the call itself knows the toolkit, and nothing but the calls the engine.
            var toolkit = await engine.CreateToolkitAsync(new ToolkitOptions
            {
                Tools = { Tool.From("slow", "d", async (int n) => { await Task.Delay(20); return n; }) },
            });
            return (await toolkit.ExecuteAsync("slow", new { n = i })).Output;
        }

        List<Task<string>> AllOf(Engine engine) => Enumerable.Range(0, 10).Select(i => Call(engine, i)).ToList();
        var outputs = await Task.WhenAll(Enumerable.Range(0, 4).SelectMany(_ => AllOf(new Engine())));
        stop.Cancel();
        await collecting;
        Say(outputs.Select(int.Parse).SequenceEqual(Enumerable.Range(0, 40).Select(i => i % 10)));
    }

    internal static Task Loads(string[] args)
    {
        try
        {
            Say(Engine.Shared.Version);
        }
        catch (ToolspanException e)
        {
            Say(e.Message);
        }
        return Task.CompletedTask;
    }

    internal static Task StartsNothing(string[] args)
    {
        int Threads() => System.Diagnostics.Process.GetCurrentProcess().Threads.Count;
        var before = Threads();
        using var client = new Client(Options("http://127.0.0.1:9"));
        Say(Threads() - before);
        return Task.CompletedTask;
    }
}
