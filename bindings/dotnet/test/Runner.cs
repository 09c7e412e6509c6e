using System.Reflection;
using System.Text.Json;

/// <summary>A test: a public method of any class here, which runs on an object of its own.</summary>
[AttributeUsage(AttributeTargets.Method)]
internal sealed class TestAttribute : Attribute { }

/// <summary>
/// Runs the tests whose names contain the first argument, or all; with <c>program NAME</c>, one of <see cref="Programs"/> as a process
/// of its own.
/// </summary>
internal static class Runner
{
    private static async Task<int> Main(string[] args)
    {
        if (args.Length > 1 && args[0] == "program")
        {
            var program = typeof(Programs).GetMethod(args[1], BindingFlags.Static | BindingFlags.NonPublic)!;
            await (Task)program.Invoke(null, new object[] { args[2..] })!;
            return 0;
        }
        int passed = 0, failed = 0;
        var tests = typeof(Runner).Assembly.GetTypes()
            .SelectMany(type => type.GetMethods())
            .Where(method => method.GetCustomAttribute<TestAttribute>() != null)
            .Where(method => args.Length == 0 || $"{method.DeclaringType!.Name}.{method.Name}".Contains(args[0]));
        foreach (var test in tests)
        {
            var name = $"{test.DeclaringType!.Name}.{test.Name}";
            try
            {
                var running = Task.Run(() => test.Invoke(Activator.CreateInstance(test.DeclaringType), null) as Task ?? Task.CompletedTask);
                await running.WaitAsync(TimeSpan.FromSeconds(60));
                passed++;
                Console.WriteLine($"ok   {name}");
            }
            catch (Exception e)
            {
                failed++;
                Console.WriteLine($"FAIL {name}: {(e is TargetInvocationException ? e.InnerException : e)}");
            }
        }
        Fixtures.Stop();
        Console.WriteLine($"{passed} passed, {failed} failed");
        return failed == 0 && passed > 0 ? 0 : 1;
    }
}

internal static class Check
{
    internal static void Equal<T>(T expected, T actual)
    {
        if (!EqualityComparer<T>.Default.Equals(expected, actual)) throw new Exception($"expected {expected}, got {actual}");
    }

    internal static void List<T>(IEnumerable<T> actual, params T[] expected) => Equal(string.Join('|', expected), string.Join('|', actual));

    /// <summary>Compares JSON, which is written with single quotes here.</summary>
    internal static void Json(string expected, object actual) =>
        Equal(expected.Replace('\'', '"'), actual is JsonElement json ? JsonSerializer.Serialize(json) : actual.ToString()!);

    internal static void True(bool condition, string? what = null)
    {
        if (!condition) throw new Exception(what ?? "it is not so");
    }

    internal static async Task<T> Throws<T>(Func<Task> function) where T : Exception
    {
        try
        {
            await function();
        }
        catch (Exception e) when (e.GetType() == typeof(T))
        {
            return (T)e;
        }
        throw new Exception($"no {typeof(T)} was thrown");
    }

    internal static T Throws<T>(Action function) where T : Exception =>
        Throws<T>(() => { function(); return Task.CompletedTask; }).GetAwaiter().GetResult();
}
