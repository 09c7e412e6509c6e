using System;
using System.Collections.Generic;
using System.Diagnostics.CodeAnalysis;
using System.Text.Json;
using System.Text.Json.Nodes;

namespace Toolspan
{
    /// <summary>What the user says: text, or content parts, which convert to it. May be empty when there is a history.</summary>
    public readonly struct Prompt
    {
        private readonly string? text;
        private readonly IReadOnlyCollection<ContentPart>? parts;

        private Prompt(string? text, IReadOnlyCollection<ContentPart>? parts)
        {
            this.text = text;
            this.parts = parts;
        }

        /// <summary>A prompt of text.</summary>
        public static implicit operator Prompt(string text) => new Prompt(text, null);

        /// <summary>A prompt of parts.</summary>
        public static implicit operator Prompt(ContentPart[] parts) => new Prompt(null, parts);

        /// <summary>A prompt of parts.</summary>
        public static implicit operator Prompt(List<ContentPart> parts) => new Prompt(null, parts);

        internal void Write(Utf8JsonWriter writer)
        {
            if (parts is null) writer.WriteString("prompt", text ?? "");
            else Json.Write(writer, "prompt", parts);
        }
    }

    /// <summary>Which MCP servers there are (SPEC 3.1): the path of a file, which converts to it, or a document.</summary>
    public sealed class McpConfig
    {
        private readonly object value;

        private McpConfig(object value) => this.value = value;

        /// <summary>The file of that path.</summary>
        public static implicit operator McpConfig(string path) => new McpConfig(path);

        /// <summary>That document.</summary>
        public static implicit operator McpConfig(JsonElement document) => new McpConfig(document);

        /// <summary>That document.</summary>
        public static implicit operator McpConfig(JsonObject document) => new McpConfig(document);

        /// <summary>A document of anything <see cref="JsonSerializer"/> writes, such as an anonymous object.</summary>
        [RequiresUnreferencedCode(Values.Reflection)]
        [RequiresDynamicCode(Values.Reflection)]
        public static McpConfig Document(object document) => new McpConfig(document);

        internal void Write(Utf8JsonWriter writer) => Values.Write(writer, value);
    }
}
