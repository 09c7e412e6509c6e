using System.Collections.Concurrent;
using System.Runtime.CompilerServices;
using System.Text.Json;
using Toolspan;

/// <summary>Threads, lifetimes and limits.</summary>
public sealed class EngineTests
{
    private static readonly Tool Add = Tool.From("add", "d", (int a, int b) => a + b);
    private static readonly Tool Never = Tool.From("never", "d", (CancellationToken token) => Task.Delay(Timeout.Infinite, token));
    private const string Idle = "{'openToolkits':0,'connectedServers':0,'openClients':0,'operations':0,'openStreams':0}";

    /// <summary>A context as a user interface has it: one thread does everything that is posted.</summary>
    private sealed class OneThread : SynchronizationContext
    {
        private readonly BlockingCollection<Action> posted = new();

        public override void Post(SendOrPostCallback d, object? state) => posted.Add(() => d(state));

        internal Task Run(Func<Task> main)
        {
            var end = new TaskCompletionSource();
            var thread = new Thread(() =>
            {
                SetSynchronizationContext(this);
                var running = main();
                running.ContinueWith(_ => posted.CompleteAdding(), TaskScheduler.Default);
                foreach (var action in posted.GetConsumingEnumerable()) action();
                if (running.Exception is { } failure) end.SetException(failure);
                else end.SetResult();
            }) { IsBackground = true };
            thread.Start();
            return end.Task;
        }
    }

    [Test]
    public async Task BlockingInAUserInterfaceContextDoesNotDeadlock()
    {
        await using var model = await Fixtures.OneCall("add", new { a = 1, b = 2 });
        await new OneThread().Run(async () =>
        {
            var thread = Environment.CurrentManagedThreadId;
            using var engine = new Engine();
            using var toolkit = engine.CreateToolkitAsync(new ToolkitOptions { Tools = { Add } }).GetAwaiter().GetResult();
            Check.Equal("3", toolkit.ExecuteAsync("add", new { a = 1, b = 2 }).Result.Output);
            using var client = engine.CreateClient(model.Options);
            Check.Equal("done", client.RunAsync("go", toolkit).Result.Text);
            // And who awaits goes on in the context.
            await toolkit.ExecuteAsync("add", new { a = 1, b = 2 });
            Check.Equal(thread, Environment.CurrentManagedThreadId);
        });
    }

    [Test]
    public async Task NothingOfTheProgramRunsOnTheThreadThatDelivers()
    {
        var names = new ConcurrentDictionary<string, bool>();
        void Note() => names[Thread.CurrentThread.Name ?? ""] = true;
        using var engine = new Engine(new EngineOptions { Log = _ => Note() });
        using var toolkit = await engine.CreateToolkitAsync(new ToolkitOptions { Tools = { Tool.From("t", "d", Note), Never } });
        for (var i = 0; i < 50; i++)
        {
            await toolkit.ExecuteAsync("t").ContinueWith(_ => Note(), TaskContinuationOptions.ExecuteSynchronously);
            using var cancel = new CancellationTokenSource();
            var noted = Tool.From($"c{i}", "d", async (CancellationToken token) =>
            {
                token.Register(Note);
                cancel.CancelAfter(1);
                await Task.Delay(Timeout.Infinite, token);
            });
            toolkit.Register(noted);
            await Check.Throws<CancelledException>(() => toolkit.ExecuteAsync($"c{i}", cancellationToken: cancel.Token));
        }
        Check.True(!names.ContainsKey("toolspan"), string.Join(',', names.Keys));
    }

    [Test]
    public async Task AsyncLocalsFlowIntoTools()
    {
        var user = new AsyncLocal<string>();
        using var toolkit = await Toolkit.CreateAsync(new ToolkitOptions
        {
            Tools = { Tool.From("who", "d", () => user.Value ?? "nobody"), Tool.From("later", "d", async () => { await Task.Yield(); return user.Value ?? "nobody"; }) },
        });
        async Task<string> As(string name, string tool)
        {
            user.Value = name;
            return (await toolkit.ExecuteAsync(tool)).Output;
        }

        var calls = Enumerable.Range(0, 40).Select(i => As($"u{i}", i % 2 == 0 ? "who" : "later"));
        Check.List(await Task.WhenAll(calls), Enumerable.Range(0, 40).Select(i => $"u{i}").ToArray());
        Check.Equal("nobody", (await toolkit.ExecuteAsync("who")).Output);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static async Task<WeakReference> Used(CancellationToken token)
    {
        var held = new object();
        await using var toolkit = await Toolkit.CreateAsync(new ToolkitOptions { Tools = { Tool.From("t", "d", () => held.GetHashCode()) } }, token);
        for (var i = 0; i < 100; i++) await toolkit.ExecuteAsync("t", cancellationToken: token);
        return new WeakReference(held);
    }

    private static async Task Collected(WeakReference reference)
    {
        for (var i = 0; i < 100 && reference.IsAlive; i++)
        {
            await Task.Delay(10);
            GC.Collect();
            GC.WaitForPendingFinalizers();
        }
        Check.True(!reference.IsAlive, "it is still there");
    }

    [Test]
    public async Task ALongLivedTokenKeepsNothing()
    {
        using var source = new CancellationTokenSource();
        await Collected(await Used(source.Token));
        source.Cancel();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static async Task<WeakReference> Forgotten(Engine engine)
    {
        Toolkit? toolkit = null;
        // It holds itself, as a tool that uses its toolkit does.
        toolkit = await engine.CreateToolkitAsync(new ToolkitOptions { Tools = { Tool.From("t", "d", () => toolkit!.GetTools().Count) } });
        Check.Equal("1", (await toolkit.ExecuteAsync("t")).Output);
        engine.CreateClient(new ClientOptions { BaseUrl = "http://127.0.0.1:9", Style = Style.OpenAI, Model = "m", ApiKey = "k" }).CreateConversation();
        return new WeakReference(toolkit);
    }

    [Test]
    public async Task WhatIsForgottenIsClosedByTheGarbageCollector()
    {
        using var engine = new Engine();
        await Collected(await Forgotten(engine));
        for (var i = 0; i < 100 && engine.GetCounters().ToString() != Idle.Replace('\'', '"'); i++)
        {
            await Task.Delay(10);
            GC.Collect();
            GC.WaitForPendingFinalizers();
        }
        Check.Json(Idle, engine.GetCounters());
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static async Task<WeakReference> Dropped()
    {
        Action<LogRecord> log = new List<LogRecord>().Add;
        await new Engine(new EngineOptions { Log = log }).CreateToolkitAsync();
        return new WeakReference(log);
    }

    [Test]
    public async Task AnEngineThatIsDroppedIsCollected() => await Collected(await Dropped());

    [Test]
    public async Task CloseDuringCallsOfManyThreads()
    {
        for (var round = 0; round < 10; round++)
        {
            var engine = new Engine();
            var toolkit = await engine.CreateToolkitAsync(new ToolkitOptions { Tools = { Add, Never } });
            var hanging = Enumerable.Range(0, 200).Select(_ => toolkit.ExecuteAsync("never")).ToList();
            using var go = new Barrier(33);
            var threads = Enumerable.Range(0, 32).Select(_ => Task.Factory.StartNew(() =>
            {
                go.SignalAndWait();
                for (var i = 0; i < 200; i++)
                {
                    try
                    {
                        toolkit.ExecuteAsync("add", new { a = 1, b = i }).GetAwaiter().GetResult();
                        toolkit.GetTools();
                    }
                    catch (ClosedException)
                    {
                        return;
                    }
                }
            }, TaskCreationOptions.LongRunning)).ToList();
            go.SignalAndWait();
            var clock = System.Diagnostics.Stopwatch.StartNew();
            var closes = new[] { engine.CloseAsync(), engine.CloseAsync() };
            foreach (var call in hanging) await Check.Throws<ClosedException>(() => call);
            await Task.WhenAll(threads);
            Check.List(await Task.WhenAll(closes), true, true);
            // The second waits for the first and for nothing else.
            Check.True(clock.Elapsed < TimeSpan.FromSeconds(3), $"{clock.Elapsed}");
            Check.Throws<ClosedException>(() => { toolkit.GetTools(); });
            Check.True(await engine.CloseAsync());
            await toolkit.DisposeAsync();
        }
    }

    [Test]
    public async Task ASecondCloseKeepsToItsOwnTime()
    {
        await using var scenario = await Fixtures.Server(stubborn: true);
        var engine = new Engine();
        await engine.CreateToolkitAsync(new ToolkitOptions { McpConfigText = scenario.Config });
        var first = engine.CloseAsync();
        Check.True(!await engine.CloseAsync(TimeSpan.FromMilliseconds(20)));
        // The first still waits for the server and what it started.
        Check.Equal(2, (int)(await scenario.Seen())["mcp"]!["srv"]!["processes"]!["alive"]!);
        Check.True(await first);
    }

    [Test]
    public async Task TheTimeOfACloseMayBeWithoutEnd()
    {
        foreach (var timeout in new[] { Timeout.InfiniteTimeSpan, TimeSpan.MaxValue })
        {
            await using var scenario = await Fixtures.Server(stubborn: true);
            var engine = new Engine();
            await engine.CreateToolkitAsync(new ToolkitOptions { McpConfigText = scenario.Config });
            Check.True(await engine.CloseAsync(timeout));
        }
    }

    [Test]
    public async Task ATimeThatIsNoneClosesNothing()
    {
        var engine = Engine.Shared;
        await Check.Throws<ArgumentOutOfRangeException>(() => engine.CloseAsync(TimeSpan.FromSeconds(-1)));
        Check.True(ReferenceEquals(engine, Engine.Shared));
    }

    [Test]
    public async Task CountersReturnToZero()
    {
        var engine = new Engine();
        var toolkit = await engine.CreateToolkitAsync(new ToolkitOptions { Tools = { Add, Never } });
        for (var batch = 0; batch < 50; batch++)
        {
            var calls = Enumerable.Range(0, 200).Select(i => toolkit.ExecuteAsync("add", new { a = i, b = 1 })).ToList();
            for (var i = 0; i < calls.Count; i++) Check.Equal($"{i + 1}", (await calls[i]).Output);
            using var cancel = new CancellationTokenSource();
            var cancelled = Enumerable.Range(0, 200).Select(_ => toolkit.ExecuteAsync("never", cancellationToken: cancel.Token)).ToList();
            cancel.Cancel();
            foreach (var call in cancelled) await Check.Throws<CancelledException>(() => call);
        }
        await toolkit.CloseAsync();
        Check.Json(Idle, engine.GetCounters());
        await engine.DisposeAsync();
    }

    [Test]
    public async Task CancelRacesWithTheReply()
    {
        using var toolkit = await Toolkit.CreateAsync(new ToolkitOptions { Tools = { Add } });
        int done = 0, cancelled = 0;
        await Task.WhenAll(Enumerable.Range(0, 4).Select(async worker =>
        {
            for (var i = 0; i < 2000; i++)
            {
                using var cancel = new CancellationTokenSource();
                var call = toolkit.ExecuteAsync("add", new { a = worker, b = i }, cancellationToken: cancel.Token);
                if (i % 2 == 0) _ = Task.Run(cancel.Cancel);
                try
                {
                    Check.Equal($"{worker + i}", (await call).Output);
                    Interlocked.Increment(ref done);
                }
                catch (OperationCanceledException)
                {
                    Interlocked.Increment(ref cancelled);
                }
            }
        }));
        Check.Equal(8000, done + cancelled);
        Check.True(done >= 4000);
    }

    [Test]
    public async Task PayloadsThatAreOdd()
    {
        var echo = new Tool("echo", "d", null, (args, context) => Task.FromResult<object?>(args.GetProperty("v")));
        using var toolkit = await Toolkit.CreateAsync(new ToolkitOptions { Tools = { echo } });
        async Task<string> Echo(object value) => (await toolkit.ExecuteAsync("echo", new { v = value })).Output;
        Check.Equal("", await Echo(""));
        Check.Equal("a\0b", await Echo("a\0b"));
        // JSON has no form for half a character.
        Check.Equal("\ufffd", await Echo("\ud800"));
        var long1 = new string('x', 20 << 20);
        Check.Equal(long1, await Echo(long1));
        await Check.Throws<LimitExceededException>(() => Echo(new string('x', 65 << 20)));
        string Nested(int depth) => new string('[', depth) + new string(']', depth);
        var deep = Nested(110);
        Check.Equal(deep, await Echo(JsonDocument.Parse(deep, new JsonDocumentOptions { MaxDepth = 200 }).RootElement));
        var error = await Check.Throws<LimitExceededException>(() =>
            Echo(JsonDocument.Parse(Nested(200), new JsonDocumentOptions { MaxDepth = 300 }).RootElement));
        Check.True(error.Message.Contains("127"), error.Message);
    }

    [Test]
    public async Task EnginesAreApart()
    {
        using var one = new Engine();
        using var two = new Engine(new EngineOptions { Workers = 1 });
        var toolkit = await one.CreateToolkitAsync(new ToolkitOptions { Tools = { Add } });
        Check.Equal((1, 0), (one.GetCounters().OpenToolkits, two.GetCounters().OpenToolkits));
        await two.CloseAsync();
        Check.Equal("2", (await toolkit.ExecuteAsync("add", new { a = 1, b = 1 })).Output);
    }

    [Test]
    public async Task AToolkitIsClosedOnce()
    {
        using var engine = new Engine();
        var toolkit = await engine.CreateToolkitAsync(new ToolkitOptions { Tools = { Add } });
        await Task.WhenAll(toolkit.CloseAsync(), toolkit.CloseAsync());
        toolkit.Dispose();
        await Check.Throws<ClosedException>(() => toolkit.ExecuteAsync("add", new { a = 1, b = 1 }));
        Check.Equal(0, engine.GetCounters().OpenToolkits);
    }

    [Test]
    public async Task DeepNestingOfBlockingCallsGoesOn()
    {
        Toolkit? toolkit = null;
        var deeper = Tool.From("deeper", "d", (int n) =>
            n == 0 ? "deep" : toolkit!.ExecuteAsync("deeper", new { n = n - 1 }).GetAwaiter().GetResult().Output);
        toolkit = await Toolkit.CreateAsync(new ToolkitOptions { Tools = { deeper } });
        Check.Equal("deep", (await toolkit.ExecuteAsync("deeper", new { n = 60 })).Output);
        await toolkit.CloseAsync();
    }
}
