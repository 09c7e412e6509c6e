using System.Diagnostics;
using System.Text.Json;
using Toolspan;

/// <summary>What only shows from outside.</summary>
public sealed class ProcessTests
{
    private static readonly object Endless = new { sse = new object[] { new { data = new { choices = new[] { new { index = 0, delta = new { content = "a" } } } } }, new { hang = true } } };

    private static async Task<Scenario> Server(bool stubborn = false) => await Fixtures.Scenario(new
    {
        mcp = new { srv = new { transport = "stdio", tools = new[] { new { name = "a" } }, grandchild = true, ignoreEof = stubborn, ignoreTerm = stubborn } },
    });

    private static string Config(Scenario scenario) =>
        JsonSerializer.Serialize(new { mcpServers = new { srv = new { command = scenario.Server("srv")["command"] } } });

    [Test]
    public async Task AProgramWithAnIdleEngineEndsAndSoDoItsServers()
    {
        foreach (var stubborn in new[] { false, true })
        {
            await using var scenario = await Server(stubborn);
            var ended = await Child.Start("IdleEngine", null, Config(scenario)).Ended();
            Check.Equal((0, "2\n", ""), ended);
            await scenario.Wait(new { mcp = "srv", processes = 0 });
        }
    }

    [Test]
    public async Task AProgramEndsWithEverythingOpen()
    {
        for (var i = 0; i < 5; i++)
        {
            await using var model = await Fixtures.Model(Enumerable.Repeat(Endless, 4).ToArray());
            foreach (var (program, code) in new[] { ("EverythingRuns", 0), ("Exits", 3) })
            {
                var clock = Stopwatch.StartNew();
                var ended = await Child.Start(program, null, model.BaseUrl).Ended();
                Check.Equal((code, ""), (ended.Code, ended.Errors));
                Check.True(clock.Elapsed < TimeSpan.FromSeconds(10), $"{clock.Elapsed}");
            }
        }
    }

    [Test]
    public async Task ASignalEndsAProgramThatWaits()
    {
        await using var scenario = await Server(stubborn: true);
        var child = Child.Start("Waits", null, Config(scenario));
        Check.Equal("entered", (await child.Said())!);
        Process.Start("kill", $"-TERM {child.Id}")!.WaitForExit();
        Check.Equal((128 + 15, "", ""), await child.Ended());
        await scenario.Wait(new { mcp = "srv", processes = 0 });
    }

    [Test]
    public async Task GarbageCollectionTakesNothingThatIsInUse() =>
        Check.Equal((0, "True\n", ""), await Child.Start("Collects").Ended());

    [Test]
    public async Task NothingStartsBeforeItIsNeeded() => Check.Equal((0, "0\n", ""), await Child.Start("StartsNothing").Ended());

    private static async Task<string> Loaded(string library)
    {
        var ended = await Child.Start("Loads", new Dictionary<string, string> { ["TOOLSPAN_NATIVE_PATH"] = library }).Ended();
        Check.Equal((0, ""), (ended.Code, ended.Errors));
        return ended.Output;
    }

    [Test]
    public async Task ALibraryThatIsMissingOrNotOursIsRefusedWithAReason()
    {
        var folder = Directory.CreateTempSubdirectory("toolspan-");
        string At(string name) => Path.Combine(folder.FullName, name);
        try
        {
            Check.True((await Loaded(At("none.so"))).StartsWith("unsupported: the native library"));
            File.WriteAllText(At("text.so"), "not a library");
            Check.True((await Loaded(At("text.so"))).StartsWith("unsupported: the native library"));
            Check.True((await Loaded(Compiled(At("other"), "int x;"))).StartsWith("abi_mismatch: the native library that was found is not"));
            var functions = "#include <stdint.h>\nuint32_t ts_abi_version(void) { return ABI; }\nuint64_t ts_schema_hash(void) { return 1; }\n";
            Check.Equal("abi_mismatch: the ABI version of the native library is 99, not 1\n", await Loaded(Compiled(At("old"), functions, "-DABI=99")));
            Check.True((await Loaded(Compiled(At("new"), functions, "-DABI=1"))).StartsWith("abi_mismatch: the schema hash of the native library is 0000000000000001, not "));
            File.Copy(Path.Combine(AppContext.BaseDirectory, "libtoolspan.so"), At("with space.so"));
            Check.Equal(Engine.Shared.Version + "\n", await Loaded(At("with space.so")));
        }
        finally
        {
            folder.Delete(recursive: true);
        }
    }

    private static string Compiled(string path, string source, params string[] flags)
    {
        File.WriteAllText(path + ".c", source);
        var compiler = Process.Start("cc", new[] { "-shared", "-fPIC", "-o", path + ".so", path + ".c" }.Concat(flags))!;
        compiler.WaitForExit();
        Check.Equal(0, compiler.ExitCode);
        return path + ".so";
    }
}
