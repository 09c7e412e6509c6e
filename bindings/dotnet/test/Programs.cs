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

    internal static async Task ManyEngines(string[] args)
    {
        for (var i = 0; i < 4; i++) await new Engine().CreateToolkitAsync(new ToolkitOptions { McpConfigText = args[0] });
        Say("ending");
    }

    internal static async Task WaitsForItsThreads(string[] args)
    {
        var toolkit = await Toolkit.CreateAsync(new ToolkitOptions { Tools = { Add, Tool.From("never", "d", () => Task.Delay(Timeout.Infinite)) } });
        var ends = new string[2];
        Thread Calls(int number, string tool) => new(() =>
        {
            try
            {
                while (true) toolkit.ExecuteAsync(tool, new { a = 1, b = 2 }).GetAwaiter().GetResult();
            }
            catch (ClosedException e)
            {
                ends[number] = e.Code;
            }
        }) { IsBackground = true };
        // One starts calls all the time, the other waits in one.
        var threads = new[] { Calls(0, "add"), Calls(1, "never") };
        foreach (var thread in threads) thread.Start();
        // After the package's own handler, which was added first.
        AppDomain.CurrentDomain.ProcessExit += (_, _) =>
        {
            foreach (var thread in threads) thread.Join();
            Say(string.Join(' ', ends));
        };
    }

    /// <summary>Keeps every thread of the pool busy, so that what is given to it waits.</summary>
    private sealed class FullPool
    {
        private readonly ManualResetEventSlim release = new();
        private readonly int threads;

        internal FullPool()
        {
            ThreadPool.GetMinThreads(out threads, out var ports);
            ThreadPool.SetMaxThreads(threads, ports);
            Meet(release.Wait);
        }

        /// <summary>Waits until so much is waiting.</summary>
        internal static void Waiting(int count)
        {
            if (!SpinWait.SpinUntil(() => ThreadPool.PendingWorkItemCount >= count, 30_000)) throw new TimeoutException();
        }

        /// <summary>Lets go, and waits until every thread has done what waited before.</summary>
        internal void Empty()
        {
            release.Set();
            Meet(() => { });
        }

        private void Meet(Action then)
        {
            var all = new CountdownEvent(threads);
            for (var i = 0; i < threads; i++)
            {
                ThreadPool.UnsafeQueueUserWorkItem(_ =>
                {
                    all.Signal();
                    all.Wait();
                    then();
                }, null);
            }
            all.Wait();
        }
    }

    internal static Task StartsLate(string[] args)
    {
        foreach (var code in new[] { ErrorCodes.Cancelled, ErrorCodes.Timeout, ErrorCodes.Closed })
        {
            var engine = new Engine();
            var started = 0;
            var tools = new ToolkitOptions { Tools = { Tool.From("count", "d", () => { started++; }) } };
            var toolkit = engine.CreateToolkitAsync(tools).GetAwaiter().GetResult();
            using var cancel = new CancellationTokenSource();
            var pool = new FullPool();
            var running = toolkit.ExecuteAsync("count", null, code == ErrorCodes.Timeout ? TimeSpan.FromMilliseconds(50) : null, cancel.Token);
            // The call of the tool, then the end of its token, and what waits for the operation.
            FullPool.Waiting(1);
            if (code == ErrorCodes.Cancelled) cancel.Cancel();
            if (code == ErrorCodes.Closed) _ = engine.CloseAsync();
            FullPool.Waiting(3);
            pool.Empty();
            try
            {
                running.GetAwaiter().GetResult();
            }
            catch (Exception e) when (e is IToolspanError error)
            {
                Say($"{error.Record.Code} {started}");
            }
        }
        return Task.CompletedTask;
    }

    /// <summary>Answers when it is told to, on the thread that tells it.</summary>
    private sealed class Answering : HttpMessageHandler
    {
        internal readonly TaskCompletionSource<HttpResponseMessage> Answer = new();
        internal readonly ManualResetEventSlim Asked = new();

        protected override Task<HttpResponseMessage> SendAsync(HttpRequestMessage request, CancellationToken cancellationToken)
        {
            Asked.Set();
            return Answer.Task;
        }
    }

    private sealed class Body : MemoryStream
    {
        internal bool Closed { get; private set; }

        protected override void Dispose(bool disposing) => Closed = true;
    }

    internal static Task AnswersLate(string[] args)
    {
        foreach (var retried in new[] { true, false })
        {
            var handler = new Answering();
            var options = Options("http://127.0.0.1:9/v1");
            options.HttpClient = handler;
            options.Retries = 1;
            options.RetryBase = TimeSpan.FromMilliseconds(1);
            if (retried) options.FirstByteTimeout = TimeSpan.FromSeconds(1);
            using var cancel = new CancellationTokenSource();
            using var engine = new Engine();
            var running = engine.CreateClient(options).RunAsync("go", cancellationToken: cancel.Token);
            handler.Asked.Wait();
            var pool = new FullPool();
            if (!retried) cancel.Cancel();
            // The end of the first request's token, and the second request or what waits for the operation.
            FullPool.Waiting(2);
            var body = new Body();
            handler.Answer.SetResult(new HttpResponseMessage { Content = new StreamContent(body) });
            Say((retried ? "retried" : "cancelled") + (body.Closed ? ": closed" : ": open"));
            cancel.Cancel();
            pool.Empty();
            Task.WhenAny(running).GetAwaiter().GetResult();
        }
        return Task.CompletedTask;
    }

    internal static async Task Breaks(string[] args)
    {
        using var engine = new Engine();
        for (var i = 0; i < 2; i++)
        {
            try
            {
                await engine.CreateToolkitAsync();
            }
            catch (ToolspanException e)
            {
                Say(e.Message);
            }
        }
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
