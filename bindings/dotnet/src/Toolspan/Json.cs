using System;
using System.Buffers;
using System.Collections.Generic;
using System.Text;
using System.Text.Encodings.Web;
using System.Text.Json;
using System.Text.Json.Nodes;

namespace Toolspan
{
    /// <summary>A record of the contract, as it crosses the waist.</summary>
    public abstract class Record
    {
        private protected Record() { }

        /// <summary>The record as compact JSON, with the keys of SPEC.md.</summary>
        public string ToJson() => Encoding.UTF8.GetString(Json.Bytes(Write).Span);

        /// <inheritdoc cref="ToJson"/>
        public override string ToString() => ToJson();

        internal abstract void Write(Utf8JsonWriter writer);
    }

    /// <summary>Reading and writing records without reflection. What is absent and what is null read the same.</summary>
    internal static class Json
    {
        // Nothing the library sends is nested deeper than 127 (SPEC 9) below the few levels of an event.
        private const int MaxDepth = 160;

        private static readonly JsonWriterOptions Writing = new JsonWriterOptions
        {
            Encoder = JavaScriptEncoder.UnsafeRelaxedJsonEscaping,
        };

        internal static JsonElement Parse(ReadOnlySpan<byte> text)
        {
            var reader = Reader(text);
            reader.Read();
            return Value(ref reader);
        }

        /// <summary>The values of an array, each with a memory of its own.</summary>
        internal static List<JsonElement> ParseArray(ReadOnlySpan<byte> text)
        {
            var values = new List<JsonElement>();
            var reader = Reader(text);
            reader.Read();
            while (reader.Read() && reader.TokenType != JsonTokenType.EndArray) values.Add(Value(ref reader));
            return values;
        }

        private static Utf8JsonReader Reader(ReadOnlySpan<byte> text) =>
            new Utf8JsonReader(text, new JsonReaderOptions { MaxDepth = MaxDepth });

        private static JsonElement Value(ref Utf8JsonReader reader) => JsonElement.ParseValue(ref reader);

        internal static ReadOnlyMemory<byte> Bytes(Action<Utf8JsonWriter> write)
        {
            var buffer = new ArrayBufferWriter<byte>();
            using (var writer = new Utf8JsonWriter(buffer, Writing)) write(writer);
            return buffer.WrittenMemory;
        }

        // Reading

        private static bool Has(JsonElement json, string key, out JsonElement value) =>
            json.TryGetProperty(key, out value) && value.ValueKind != JsonValueKind.Null;

        internal static string? Text(JsonElement json, string key) => Has(json, key, out var value) ? value.GetString() : null;

        internal static long? Integer(JsonElement json, string key) => Has(json, key, out var value) ? value.GetInt64() : (long?)null;

        internal static bool? Bool(JsonElement json, string key) => Has(json, key, out var value) ? value.GetBoolean() : (bool?)null;

        internal static TimeSpan? Milliseconds(JsonElement json, string key) =>
            Integer(json, key) is long ms ? TimeSpan.FromMilliseconds(ms) : (TimeSpan?)null;

        internal static JsonElement? Any(JsonElement json, string key) =>
            json.TryGetProperty(key, out var value) ? value : (JsonElement?)null;

        internal static T? Record<T>(JsonElement json, string key, Func<JsonElement, T?> read) where T : Record =>
            Has(json, key, out var value) ? read(value) : null;

        internal static IReadOnlyList<JsonElement>? Anys(JsonElement json, string key) =>
            Has(json, key, out var value) ? new List<JsonElement>(value.EnumerateArray()) : null;

        internal static IReadOnlyList<T>? List<T>(JsonElement json, string key, Func<JsonElement, T?> read) where T : Record =>
            Has(json, key, out var value) ? ListOf(value, read) : null;

        internal static List<T> ListOf<T>(JsonElement array, Func<JsonElement, T?> read) where T : Record
        {
            var list = new List<T>(array.GetArrayLength());
            foreach (var item in array.EnumerateArray())
            {
                if (read(item) is T record) list.Add(record);
            }
            return list;
        }

        internal static IReadOnlyDictionary<string, T>? Map<T>(JsonElement json, string key, Func<JsonElement, T?> read) where T : Record =>
            Has(json, key, out var value) ? MapOf(value, item => read(item)!) : null;

        internal static IReadOnlyDictionary<string, IReadOnlyList<T>>? MapOfLists<T>(
            JsonElement json, string key, Func<JsonElement, T?> read) where T : Record =>
            Has(json, key, out var value) ? MapOf(value, item => (IReadOnlyList<T>)ListOf(item, read)) : null;

        internal static Dictionary<string, T> MapOf<T>(JsonElement json, Func<JsonElement, T> read)
        {
            var map = new Dictionary<string, T>();
            foreach (var entry in json.EnumerateObject()) map[entry.Name] = read(entry.Value);
            return map;
        }

        // Writing: null is absent, and so is an empty list of options.

        internal static void Write(Utf8JsonWriter writer, string key, string? value)
        {
            if (value != null) writer.WriteString(key, value);
        }

        internal static void Write(Utf8JsonWriter writer, string key, long? value)
        {
            if (value is long number) writer.WriteNumber(key, number);
        }

        internal static void Write(Utf8JsonWriter writer, string key, bool? value)
        {
            if (value is bool flag) writer.WriteBoolean(key, flag);
        }

        internal static void Write(Utf8JsonWriter writer, string key, TimeSpan? value)
        {
            // Rounded up: a budget that is there must not become none.
            if (value is TimeSpan time) writer.WriteNumber(key, (long)Math.Ceiling(time.TotalMilliseconds));
        }

        internal static void Write(Utf8JsonWriter writer, string key, JsonElement? value)
        {
            if (!(value is JsonElement json) || json.ValueKind == JsonValueKind.Undefined) return;
            writer.WritePropertyName(key);
            Write(writer, json);
        }

        internal static void Write(Utf8JsonWriter writer, string key, JsonObject? value)
        {
            if (value is null) return;
            writer.WritePropertyName(key);
            value.WriteTo(writer);
        }

        internal static void Write(Utf8JsonWriter writer, string key, Record? value)
        {
            if (value is null) return;
            writer.WritePropertyName(key);
            value.Write(writer);
        }

        internal static void Write(Utf8JsonWriter writer, string key, McpConfig? value)
        {
            if (value is null) return;
            writer.WritePropertyName(key);
            value.Write(writer);
        }

        internal static void Write(Utf8JsonWriter writer, string key, Toolkit? value) => Write(writer, key, (long?)value?.Number);

        internal static void Write(Utf8JsonWriter writer, string key, IReadOnlyCollection<Record>? list)
        {
            if (list is null) return;
            writer.WriteStartArray(key);
            foreach (var item in list) item.Write(writer);
            writer.WriteEndArray();
        }

        internal static void Write(Utf8JsonWriter writer, string key, IReadOnlyCollection<JsonElement>? list)
        {
            if (list is null) return;
            writer.WriteStartArray(key);
            foreach (var item in list) Write(writer, item);
            writer.WriteEndArray();
        }

        internal static void Write(Utf8JsonWriter writer, string key, IList<string>? list)
        {
            if (list is null || list.Count == 0) return;
            writer.WriteStartArray(key);
            foreach (var item in list) writer.WriteStringValue(item);
            writer.WriteEndArray();
        }

        internal static void Write(Utf8JsonWriter writer, string key, IList<int>? list)
        {
            if (list is null || list.Count == 0) return;
            writer.WriteStartArray(key);
            foreach (var item in list) writer.WriteNumberValue(item);
            writer.WriteEndArray();
        }

        internal static void Write(Utf8JsonWriter writer, string key, IDictionary<string, string>? map)
        {
            if (map is null || map.Count == 0) return;
            writer.WriteStartObject(key);
            foreach (var entry in map) writer.WriteString(entry.Key, entry.Value);
            writer.WriteEndObject();
        }

        internal static void Write<T>(Utf8JsonWriter writer, string key, IReadOnlyDictionary<string, T> map) where T : Record
        {
            writer.WriteStartObject(key);
            foreach (var entry in map) Write(writer, entry.Key, entry.Value);
            writer.WriteEndObject();
        }

        internal static void Write<T>(Utf8JsonWriter writer, string key, IReadOnlyDictionary<string, IReadOnlyList<T>> map)
            where T : Record
        {
            writer.WriteStartObject(key);
            foreach (var entry in map) Write(writer, entry.Key, entry.Value);
            writer.WriteEndObject();
        }

        /// <summary>A value in its own words: number text and escapes stay as they came.</summary>
        internal static void Write(Utf8JsonWriter writer, JsonElement json)
        {
            if (json.ValueKind == JsonValueKind.Undefined) writer.WriteNullValue();
            else writer.WriteRawValue(json.GetRawText(), skipInputValidation: true);
        }
    }
}
