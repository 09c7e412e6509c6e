using System.Text.Json;
using System.Text.Json.Nodes;
using Toolspan;

/// <summary>Options of a case as the package's option types: a key is the property of that name.</summary>
internal static class Options
{
    internal static void Fill(object target, JsonElement json, Func<int, object?> function, params string[] except)
    {
        foreach (var entry in json.EnumerateObject())
        {
            if (except.Contains(entry.Name) || entry.Value.ValueKind == JsonValueKind.Null) continue;
            var name = entry.Name.EndsWith("Ms") ? entry.Name[..^2] : entry.Name;
            var property = target.GetType().GetProperties().Single(known => known.Name.Equals(name, StringComparison.OrdinalIgnoreCase));
            property.SetValue(target, Value(property.PropertyType, entry.Value, function));
        }
    }

    internal static Tool ToolOf(JsonElement tool, Func<int, object?> function)
    {
        string Text(string key) => tool.TryGetProperty(key, out var text) ? text.GetString()! : "";
        var run = (Func<JsonElement, CancellationToken, Task<JsonElement?>>)function(tool.GetProperty("handler").GetInt32())!;
        return new Tool(
            Text("name"),
            Text("description"),
            tool.TryGetProperty("inputSchema", out var schema) ? schema : null,
            async (args, context) => await run(args, context.CancellationToken));
    }

    private static object? Value(Type type, JsonElement json, Func<int, object?> function)
    {
        type = Nullable.GetUnderlyingType(type) ?? type;
        if (json.ValueKind == JsonValueKind.Object && json.TryGetProperty("handler", out var number)) return function(number.GetInt32());
        if (type == typeof(TimeSpan)) return TimeSpan.FromMilliseconds(json.GetInt64());
        if (type == typeof(Style)) return (Style)json.GetString()!;
        if (type == typeof(ConversationStore)) return (ConversationStore)json.GetString()!;
        if (type == typeof(McpConfig)) return json.ValueKind == JsonValueKind.String ? (McpConfig)json.GetString()! : (McpConfig)json;
        if (type == typeof(IList<Tool>)) return json.EnumerateArray().Select(tool => ToolOf(tool, function)).ToList();
        if (type == typeof(Hooks))
        {
            var hooks = new Hooks();
            Fill(hooks, json, function);
            return hooks;
        }
        return json.Deserialize(type);
    }
}
