using System.Diagnostics;
using System.Reflection;
using System.Text.Json;
using Toolspan;

/// <summary>What only shows from outside.</summary>
public sealed class ProcessTests
{
    private static readonly object Endless = new { sse = new object[] { new { data = new { choices = new[] { new { index = 0, delta = new { content = "a" } } } } }, new { hang = true } } };

    [Test]
    public async Task AProgramWithAnIdleEngineEndsAndSoDoItsServers()
    {
        foreach (var stubborn in new[] { false, true })
        {
            await using var scenario = await Fixtures.Server(stubborn);
            var ended = await Child.Start("IdleEngine", null, scenario.Config).Ended();
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
        await using var scenario = await Fixtures.Server(stubborn: true);
        var child = Child.Start("Waits", null, scenario.Config);
        Check.Equal("entered", (await child.Said())!);
        Process.Start("kill", $"-TERM {child.Id}")!.WaitForExit();
        Check.Equal((128 + 15, "", ""), await child.Ended());
        await scenario.Wait(new { mcp = "srv", processes = 0 });
    }

    [Test]
    public async Task ManyEnginesTakeNoLongerToEndThanOne()
    {
        await using var scenario = await Fixtures.Server(stubborn: true);
        var child = Child.Start("ManyEngines", null, scenario.Config);
        Check.Equal("ending", (await child.Said())!);
        var clock = Stopwatch.StartNew();
        Check.Equal((0, "", ""), await child.Ended());
        // Two seconds at most for all of them, where four would take eight one after the other.
        Check.True(clock.Elapsed < TimeSpan.FromSeconds(4), $"{clock.Elapsed}");
        await scenario.Wait(new { mcp = "srv", processes = 0 });
    }

    [Test]
    public async Task AProgramThatWaitsForItsThreadsWhileItExitsEnds() =>
        Check.Equal((0, "closed closed\n", ""), await Child.Start("WaitsForItsThreads").Ended());

    [Test]
    public async Task NoToolIsStartedWhenItsCallIsOver() =>
        Check.Equal((0, "cancelled 0\ntimeout 0\nclosed 0\n", ""), await Child.Start("StartsLate").Ended());

    [Test]
    public async Task AnAnswerThatNobodyTakesIsClosed() =>
        Check.Equal((0, "retried: closed\ncancelled: closed\n", ""), await Child.Start("AnswersLate").Ended());

    [Test]
    public async Task ALibraryThatBreaksFailsWhatWaits()
    {
        var folder = Directory.CreateTempSubdirectory("toolspan-");
        try
        {
            var abi = typeof(Engine).Assembly.GetType("Toolspan.Abi")!;
            object Constant(string name) => abi.GetField(name, BindingFlags.Static | BindingFlags.NonPublic)!.GetRawConstantValue()!;
            var source = Broken.Replace("VERSION", $"{Constant("Version")}").Replace("HASH", $"{Constant("SchemaHash")}ull");
            async Task Is(string name, string poll, string expected)
            {
                var library = Compiled(Path.Combine(folder.FullName, name), source.Replace("POLL", poll), "-pthread");
                var ended = await Child.Start("Breaks", new Dictionary<string, string> { ["TOOLSPAN_NATIVE_PATH"] = library }).Ended();
                Check.Equal((0, expected, ""), ended);
            }

            await Is("panics", "return 4;", "internal_panic: the library answered 4\nclosed: it is\n");
            await Is("mumbles", "*text = \"[{}]\"; *length = 4; return 0;",
                "internal: an event could not be delivered: The given key was not present in the dictionary.\nclosed: it is\n");
        }
        finally
        {
            folder.Delete(recursive: true);
        }
    }

    /// <summary>A library that takes one operation, and breaks when its events are to be collected.</summary>
    private const string Broken = @"
#include <semaphore.h>
#include <stdint.h>
#include <string.h>
static sem_t submitted;
static volatile int closed;
uint32_t ts_abi_version(void) { return VERSION; }
uint64_t ts_schema_hash(void) { return HASH; }
int32_t ts_engine_new(const char *options, uint64_t length, uint64_t *engine, const char **text, uint64_t *size) { *engine = 1; return sem_init(&submitted, 0, 0); }
int32_t ts_submit(uint64_t engine, uint64_t op, const char *request, uint64_t length, const char **text, uint64_t *size) {
    if (!closed) return sem_post(&submitted);
    *text = ""{\""code\"":\""closed\"",\""message\"":\""it is\"",\""retryable\"":false}"";
    *size = strlen(*text);
    return 1;
}
int32_t ts_poll(uint64_t engine, uint64_t timeout, uint32_t max, const char **text, uint64_t *length) {
    sem_wait(&submitted);
    POLL
}
int32_t ts_engine_close(uint64_t engine, uint64_t timeout) { closed = 1; return 0; }
void ts_engine_free(uint64_t engine) {}
void ts_cancel(uint64_t engine, uint64_t op) {}
void ts_text_free(const char *text, uint64_t length) {}
";

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
