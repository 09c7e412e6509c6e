using System;
using System.Collections.Generic;
using System.Net.Http;
using System.Text.Json;
using System.Threading;

namespace Toolspan
{
    /// <summary>
    /// The program's functions in some options, each under a number. Whoever holds this keeps the functions known; disposed of, they
    /// are not.
    /// </summary>
    internal sealed class Functions
    {
        private readonly Dictionary<ulong, object> numbered = new Dictionary<ulong, object>();

        internal void Write(Utf8JsonWriter writer, string key, Delegate? function) => WriteHandler(writer, key, function);

        internal void Write(Utf8JsonWriter writer, string key, HttpMessageHandler? handler)
        {
            if (handler is null) return;
            if (FollowsRedirects(handler))
            {
                // .NET would send the key along: it takes only one header off a request that goes elsewhere.
                throw Exceptions.Of(new ErrorRecord
                {
                    Code = ErrorCodes.InvalidArgument, Path = key, Message = "the handler follows redirects; set its AllowAutoRedirect to false",
                }, null);
            }
            WriteHandler(writer, key, new HttpMessageInvoker(handler, disposeHandler: false));
        }

        internal void Write(Utf8JsonWriter writer, string key, ConversationStore? store)
        {
            if (store?.Name is string name) writer.WriteString(key, name);
            else WriteHandler(writer, key, store);
        }

        internal void Write(Utf8JsonWriter writer, string key, Hooks? hooks)
        {
            if (hooks is null) return;
            writer.WriteStartObject(key);
            hooks.Write(writer, this);
            writer.WriteEndObject();
        }

        internal void Write(Utf8JsonWriter writer, string key, IList<Tool>? tools)
        {
            if (tools is null || tools.Count == 0) return;
            writer.WriteStartArray(key);
            foreach (var tool in tools) Write(writer, tool);
            writer.WriteEndArray();
        }

        internal void Write(Utf8JsonWriter writer, Tool tool)
        {
            writer.WriteStartObject();
            writer.WriteString("name", tool.Name);
            writer.WriteString("description", tool.Description);
            Json.Write(writer, "inputSchema", tool.InputSchema);
            Json.Write(writer, "hints", tool.Hints);
            writer.WriteNumber("handler", Add(tool));
            writer.WriteEndObject();
        }

        /// <summary>Takes over what another holds.</summary>
        internal void Take(Functions other)
        {
            lock (numbered)
            {
                foreach (var entry in other.numbered) numbered[entry.Key] = entry.Value;
            }
        }

        /// <summary>The functions are not known any more.</summary>
        internal void Forget()
        {
            lock (numbered)
            {
                foreach (var number in numbered.Keys) Pump.Forget(number);
            }
        }

        private static bool FollowsRedirects(HttpMessageHandler? handler) => handler switch
        {
            DelegatingHandler outer => FollowsRedirects(outer.InnerHandler),
            HttpClientHandler client => client.AllowAutoRedirect,
#if NET5_0_OR_GREATER
            SocketsHttpHandler sockets => sockets.AllowAutoRedirect,
#endif
            _ => false,
        };

        private void WriteHandler(Utf8JsonWriter writer, string key, object? function)
        {
            if (function is null) return;
            writer.WriteStartObject(key);
            writer.WriteNumber("handler", Add(function));
            writer.WriteEndObject();
        }

        private ulong Add(object function)
        {
            var number = Pump.NextNumber();
            numbered[number] = function;
            Pump.Know(number, function);
            return number;
        }
    }
}
