using System;
using System.Collections.Generic;
using System.Diagnostics.CodeAnalysis;
using System.Reflection;
using System.Runtime.ExceptionServices;
using System.Text.Json;
using System.Text.Json.Nodes;
using System.Threading;
using System.Threading.Tasks;

namespace Toolspan
{
    /// <summary>What a tool may know about the call it serves.</summary>
    public sealed class ToolCallContext
    {
        internal ToolCallContext(JsonElement payload, CancellationToken token)
        {
            Name = Json.Text(payload, "name")!;
            CallId = Json.Text(payload, "callId");
            Timeout = Json.Milliseconds(payload, "timeoutMs");
            CancellationToken = token;
        }

        /// <summary>The tool.</summary>
        public string Name { get; }

        /// <summary>The id the model gave the call; null outside a run.</summary>
        public string? CallId { get; }

        /// <summary>The budget of the call, where it has one.</summary>
        public TimeSpan? Timeout { get; }

        /// <summary>Cancelled when nobody waits for the result any more.</summary>
        public CancellationToken CancellationToken { get; }
    }

    /// <summary>
    /// A tool of the program (SPEC 6). Its function gives text, a <see cref="ToolResult"/>, anything else that
    /// <see cref="JsonSerializer"/> writes (its compact JSON is the output), or nothing (an empty output), or a task of these. What it
    /// throws becomes an error result.
    /// </summary>
    public sealed class Tool
    {
        private readonly Func<JsonElement, ToolCallContext, Task<object?>> function;
        private readonly JsonSerializerOptions options = Values.Options;

        /// <summary>A tool whose arguments a JSON Schema describes. They are not checked against it.</summary>
        /// <param name="name"><c>[A-Za-z0-9_-]{1,64}</c>.</param>
        /// <param name="description">For the model.</param>
        /// <param name="inputSchema">The schema; null takes an object without properties.</param>
        /// <param name="function">Gets the arguments, an object.</param>
        public Tool(string name, string description, JsonElement? inputSchema, Func<JsonElement, ToolCallContext, Task<object?>> function)
        {
            Name = name ?? throw new ArgumentNullException(nameof(name));
            Description = description ?? throw new ArgumentNullException(nameof(description));
            this.function = function ?? throw new ArgumentNullException(nameof(function));
            InputSchema = inputSchema;
        }

        [RequiresUnreferencedCode(Values.Reflection)]
        [RequiresDynamicCode(Values.Reflection)]
        private Tool(string name, string description, Delegate function, JsonSerializerOptions options)
        {
            Name = name ?? throw new ArgumentNullException(nameof(name));
            Description = description ?? throw new ArgumentNullException(nameof(description));
            var binder = new Binder(function ?? throw new ArgumentNullException(nameof(function)), options);
            this.function = binder.InvokeAsync;
            this.options = options;
            InputSchema = binder.Schema;
        }

        /// <summary>The name, which the library does not change.</summary>
        public string Name { get; }

        /// <summary>For the model.</summary>
        public string Description { get; }

        /// <summary>JSON Schema of the arguments.</summary>
        public JsonElement? InputSchema { get; }

        /// <summary>What the tool says about itself, advisory.</summary>
        public ToolHints? Hints { get; set; }

        /// <summary>
        /// A tool of a function whose parameters are the arguments, by name. The schema comes from their types: numbers, text, enums,
        /// dates, lists, dictionaries, and classes by their properties; <c>[Description]</c> describes a parameter or a property to the
        /// model; one that may be null or has a default is optional. A <see cref="CancellationToken"/> or a
        /// <see cref="ToolCallContext"/> is no argument but the one of the call.
        /// </summary>
        /// <param name="name"><c>[A-Za-z0-9_-]{1,64}</c>.</param>
        /// <param name="description">For the model.</param>
        /// <param name="function">What to call. It may run on several threads at the same time.</param>
        /// <param name="options">How arguments are read and results written. Default: camelCase, enums by name.</param>
        /// <exception cref="NotSupportedException">A parameter has a type that JSON has no form for.</exception>
        [RequiresUnreferencedCode(Values.Reflection)]
        [RequiresDynamicCode(Values.Reflection)]
        public static Tool From(string name, string description, Delegate function, JsonSerializerOptions? options = null) =>
            new Tool(name, description, function, options ?? Values.Options);

        /// <summary>Runs the function; the answer is what the library takes.</summary>
        internal async Task<Action<Utf8JsonWriter>> AnswerAsync(HostCall call)
        {
            var args = call.Begin(payload => payload.GetProperty("args"));
            var value = await function(args, new ToolCallContext(call.Payload, call.Token)).ConfigureAwait(false);
            return writer =>
            {
                writer.WriteStartObject();
                writer.WritePropertyName(value is ToolResult ? "result" : "value");
                Values.Write(writer, value, options);
                writer.WriteEndObject();
            };
        }
    }

    /// <summary>Values of the program as JSON.</summary>
    internal static class Values
    {
        internal const string Reflection = "Types of the program are read and written by reflection; give a JsonElement to avoid it.";

        internal static readonly JsonSerializerOptions Options = MakeOptions();

        // What comes in as an object is one of the types below, or was declared where its type is known: see the callers.
        [UnconditionalSuppressMessage("Trimming", "IL2026", Justification = "Callers that take types of the program say so.")]
        [UnconditionalSuppressMessage("AOT", "IL3050", Justification = "Callers that take types of the program say so.")]
        internal static void Write(Utf8JsonWriter writer, object? value, JsonSerializerOptions? options = null)
        {
            switch (value)
            {
                case null:
                    writer.WriteNullValue();
                    break;
                case string text:
                    writer.WriteStringValue(text);
                    break;
                case JsonElement json:
                    Json.Write(writer, json);
                    break;
                case JsonNode node:
                    node.WriteTo(writer);
                    break;
                case Record record:
                    record.Write(writer);
                    break;
                default:
                    JsonSerializer.Serialize(writer, value, value.GetType(), options ?? Options);
                    break;
            }
        }

        private static JsonSerializerOptions MakeOptions()
        {
            var options = new JsonSerializerOptions(JsonSerializerDefaults.Web);
            options.Converters.Add(EnumNames());
            return options;
        }

        [UnconditionalSuppressMessage("AOT", "IL3050", Justification = "Callers that take types of the program say so.")]
        private static System.Text.Json.Serialization.JsonConverter EnumNames() => new System.Text.Json.Serialization.JsonStringEnumConverter();
    }
}
