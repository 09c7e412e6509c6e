using System.ComponentModel;
using System.Text.Json;
using System.Text.Json.Serialization;
using Toolspan;

/// <summary>Tools from functions of the program.</summary>
public sealed class ToolTests
{
    public enum Unit { Metric, Imperial }

    [Description("Where it is")]
    public sealed class Place
    {
        [Description("In degrees")]
        public double Latitude { get; set; }

        public double? Longitude { get; set; }

        [JsonPropertyName("place_name")]
        public string Name { get; set; } = "";

        public List<Place>? Near { get; set; }
    }

    // Without the check of the core, so that it is the binder that reads the arguments.
    private static async Task<ToolResult> Call(Tool tool, object? args = null)
    {
        await using var toolkit = await Toolkit.CreateAsync(new ToolkitOptions { Tools = { tool }, ValidateArguments = false });
        return await toolkit.ExecuteAsync(tool.Name, args);
    }

    [Test]
    public async Task ADelegateIsATool()
    {
        var add = Tool.From("add", "Add two integers", (int a, int b) => a + b);
        Check.Json(
            "{'type':'object','properties':{'a':{'type':'integer'},'b':{'type':'integer'}},'required':['a','b']}", add.InputSchema!.Value);
        Check.Equal("4", (await Call(add, new { a = 1, b = 3 })).Output);
    }

    [Test]
    public void TheSchemaFollowsTheParameters()
    {
        var tool = Tool.From("t", "d", ([Description("The city")] string city, Unit unit, int? days, string? note, DateTime[] at,
            Dictionary<string, decimal> prices, CancellationToken token, ToolCallContext context) => "");
        Check.Json(
            "{'type':'object','properties':{'city':{'type':'string','description':'The city'},'unit':{'type':'string','enum':['Metric','Imperial']},'days':{'type':'integer'},'note':{'type':'string'},'at':{'type':'array','items':{'type':'string','format':'date-time'}},'prices':{'type':'object','additionalProperties':{'type':'number'}}},'required':['city','unit','at','prices']}",
            tool.InputSchema!.Value);
    }

    [Test]
    public void ClassesStandUnderTheirNamesAndMayHoldThemselves()
    {
        var tool = Tool.From("t", "d", (Place place) => "");
        Check.Json(
            "{'type':'object','properties':{'place':{'$ref':'#/$defs/Place'}},'required':['place'],'$defs':{'Place':{'type':'object','properties':{'latitude':{'type':'number','description':'In degrees'},'longitude':{'type':'number'},'place_name':{'type':'string'},'near':{'type':'array','items':{'$ref':'#/$defs/Place'}}},'required':['latitude','place_name'],'description':'Where it is'}}}",
            tool.InputSchema!.Value);
    }

    [Test]
    public async Task ArgumentsBecomeWhatTheParametersAre()
    {
        var tool = Tool.From("t", "d", (Place place, Unit unit, int? days, string? note) =>
            $"{place.Name} {place.Near![0].Latitude} {unit} {days?.ToString() ?? "-"} {note ?? "-"}");
        var result = await Call(tool, new { place = new { place_name = "Bern", latitude = 1, near = new[] { new { latitude = 2.5, place_name = "x" } } }, unit = "Imperial", days = (int?)null });
        Check.Equal("Bern 2.5 Imperial - -", result.Output);
    }

    private static string WithDefault(string text, int times = 2) => string.Concat(Enumerable.Repeat(text, times));

    [Test]
    public async Task ADefaultIsUsed()
    {
        var tool = Tool.From("t", "d", WithDefault);
        Check.Json("{'type':'object','properties':{'text':{'type':'string'},'times':{'type':'integer'}},'required':['text']}", tool.InputSchema!.Value);
        Check.Equal("aa", (await Call(tool, new { text = "a" })).Output);
        Check.Equal("aaa", (await Call(tool, new { text = "a", times = 3 })).Output);
    }

    [Test]
    public async Task WrongArgumentsAreSaidToTheModel()
    {
        var tool = Tool.From("t", "d", (int a) => a);
        Check.Equal("Invalid arguments. a: is missing", (await Call(tool)).Output);
        Check.Equal("Invalid arguments. a: must not be null", (await Call(tool, new { a = (int?)null })).Output);
        var wrong = await Call(tool, new { a = "x" });
        Check.True(wrong.IsError && wrong.Output.StartsWith("Invalid arguments. a: The JSON value could not be converted to System.Int32."), wrong.Output);
        Check.Equal(typeof(ArgumentException), wrong.Exception!.GetType());
    }

    [Test]
    public async Task WhatAFunctionReturnsIsTheOutput()
    {
        async Task<string> Later(string text)
        {
            await Task.Yield();
            return text;
        }

        async Task Nothing() => await Task.Yield();
        Check.Equal("text", (await Call(Tool.From("t", "d", () => "text"))).Output);
        Check.Equal("later", (await Call(Tool.From("t", "d", () => Later("later")))).Output);
        Check.Equal("", (await Call(Tool.From("t", "d", Nothing))).Output);
        Check.Equal("", (await Call(Tool.From("t", "d", () => { }))).Output);
        Check.Equal("7", (await Call(Tool.From("t", "d", () => new ValueTask<int>(7)))).Output);
        Check.Equal("", (await Call(Tool.From("t", "d", () => ValueTask.CompletedTask))).Output);
        Check.Json("{'unit':'Imperial','places':[1.50]}", (await Call(Tool.From("t", "d", () => new { Unit = Unit.Imperial, Places = new[] { 1.50m } }))).Output);
        var parts = await Call(Tool.From("t", "d", () => new ToolResult { Output = "see", Parts = new[] { new ImagePart { MimeType = "image/png", Data = "AAAA" } } }));
        Check.Json("{'output':'see','isError':false,'parts':[{'type':'image','mimeType':'image/png','data':'AAAA'}]}", parts);
    }

    [Test]
    public async Task WhatAToolThrowsIsTheExceptionOfItsResult()
    {
        var original = new KeyNotFoundException("no such city");
        foreach (var tool in new[]
        {
            Tool.From("sync", "d", string () => throw original),
            Tool.From("task", "d", () => Task.FromException<string>(original)),
            new Tool("plain", "d", null, (args, context) => throw original),
        })
        {
            var result = await Call(tool);
            Check.True(result.IsError, tool.Name);
            Check.Equal("no such city", result.Output);
            Check.True(ReferenceEquals(original, result.Exception), tool.Name);
        }
    }

    private sealed class Mute : Exception
    {
        public override string Message => throw new InvalidOperationException("not even that");
    }

    [Test]
    public async Task AnExceptionWithoutAMessageIsAnAnswer()
    {
        var result = await Call(Tool.From("t", "d", string () => throw new Mute()));
        Check.Equal((true, "Mute"), (result.IsError, result.Output));
    }

    [Test]
    public async Task TheCallIsCancelledInTheTool()
    {
        var entered = new TaskCompletionSource();
        var left = new TaskCompletionSource();
        var tool = Tool.From("slow", "d", async (CancellationToken token) =>
        {
            entered.SetResult();
            using var registration = token.Register(left.SetResult);
            await Task.Delay(Timeout.Infinite, token);
        });
        await using var toolkit = await Toolkit.CreateAsync(new ToolkitOptions { Tools = { tool } });
        using var cancel = new CancellationTokenSource();
        var running = toolkit.ExecuteAsync("slow", cancellationToken: cancel.Token);
        await entered.Task;
        cancel.Cancel();
        var error = await Check.Throws<CancelledException>(() => running);
        await left.Task;
        Check.Equal(cancel.Token, error.CancellationToken);
        Check.True(running.IsCanceled);
    }

    [Test]
    public async Task ATimeoutOfOneCallIsAnError()
    {
        var tool = Tool.From("slow", "d", (ToolCallContext context) => Task.Delay(Timeout.Infinite, context.CancellationToken));
        await using var toolkit = await Toolkit.CreateAsync(new ToolkitOptions { Tools = { tool } });
        var error = await Check.Throws<ToolspanTimeoutException>(() => toolkit.ExecuteAsync("slow", timeout: TimeSpan.FromMilliseconds(50)));
        Check.True(error.Retryable);
    }

    [Test]
    public async Task NumberTextAndKeyOrderSurvive()
    {
        var tool = new Tool("echo", "d", null, (args, context) => Task.FromResult<object?>(args));
        await using var toolkit = await Toolkit.CreateAsync(new ToolkitOptions { Tools = { tool } });
        var text = "{'z':123456789012345678901234567890,'a':1.50,'10':-0.0,'n':'\\u0000é😀','m':18446744073709551616}".Replace('\'', '"');
        Check.Equal(text, (await toolkit.ExecuteAsync("echo", JsonDocument.Parse(text).RootElement)).Output);
    }

    [Test]
    public async Task RegisterKeepsTheFirst()
    {
        await using var toolkit = await Toolkit.CreateAsync();
        Check.True(toolkit.Register(Tool.From("a", "first", () => "1")));
        Check.True(!toolkit.Register(Tool.From("a", "second", () => "2")));
        Check.Equal("first", toolkit.Get("a")!.Description);
        Check.True(toolkit.Get("b") is null);
        Check.Equal("1", (await toolkit.ExecuteAsync("a")).Output);
    }

    [Test]
    public async Task WhatJsonHasNoFormForIsRefused()
    {
        Check.Throws<NotSupportedException>(() => Tool.From("t", "d", (Action callback) => ""));
        var tool = Tool.From("t", "d", () => new { Self = new Func<int>(() => 1) });
        Check.True((await Call(tool)).Exception is NotSupportedException);
    }
}
