using System;
using System.Collections.Concurrent;
using System.IO;
using System.Net.Http;
using System.Text;
using System.Text.Json;
using System.Threading;
using System.Threading.Tasks;

namespace Toolspan
{
    /// <summary>The program's own <see cref="HttpClient"/> for requests to the model (SPEC 7.1 <c>httpClient</c>).</summary>
    internal static class HttpBodies
    {
        private const int PieceBytes = 32 * 1024;

        private static readonly ConcurrentDictionary<ulong, Body> Open = new ConcurrentDictionary<ulong, Body>();

        private sealed class Body : IDisposable
        {
            private readonly HttpResponseMessage response;

            internal Body(HttpResponseMessage response, Stream stream)
            {
                this.response = response;
                Stream = stream;
            }

            internal Stream Stream { get; }

            public void Dispose() => response.Dispose();
        }

        /// <summary>Sends one request; the body of the answer is read piece by piece.</summary>
        internal static async Task<Action<Utf8JsonWriter>> SendAsync(HttpMessageInvoker invoker, JsonElement payload, CancellationToken token)
        {
            using var request = Request(payload);
            // An HttpClient would else collect the whole body first.
            var response = await (invoker is HttpClient client
                ? client.SendAsync(request, HttpCompletionOption.ResponseHeadersRead, token)
                : invoker.SendAsync(request, token)).ConfigureAwait(false);
            var number = Pump.NextNumber();
            try
            {
                Open[number] = new Body(response, await response.Content.ReadAsStreamAsync().ConfigureAwait(false));
            }
            catch
            {
                response.Dispose();
                throw;
            }
            // Whoever takes the question back after this knows no number to close.
            if (token.IsCancellationRequested) Close(number);
            token.ThrowIfCancellationRequested();
            return writer =>
            {
                writer.WriteStartObject();
                writer.WriteNumber("status", (int)response.StatusCode);
                writer.WriteStartArray("headers");
                foreach (var header in response.Headers) Write(writer, header.Key, header.Value);
                foreach (var header in response.Content.Headers) Write(writer, header.Key, header.Value);
                writer.WriteEndArray();
                writer.WriteNumber("stream", number);
                writer.WriteEndObject();
            };
        }

        /// <summary>The next piece of a body. One that ends or fails is not closed again.</summary>
        internal static async Task<Action<Utf8JsonWriter>> ReadAsync(JsonElement payload, CancellationToken token)
        {
            var number = Number(payload);
            if (!Open.TryGetValue(number, out var body)) throw new IOException("this body was closed");
            var piece = new byte[PieceBytes];
            var length = 0;
            try
            {
                length = await body.Stream.ReadAsync(piece, 0, piece.Length, token).ConfigureAwait(false);
            }
            finally
            {
                if (length == 0) Close(number);
            }
            return writer =>
            {
                writer.WriteStartObject();
                if (length == 0) writer.WriteBoolean("end", true);
                else writer.WriteBase64String("data", new ReadOnlySpan<byte>(piece, 0, length));
                writer.WriteEndObject();
            };
        }

        /// <summary>Nobody reads the body any more.</summary>
        internal static void Close(JsonElement payload) => Close(Number(payload));

        private static void Close(ulong number)
        {
            if (Open.TryRemove(number, out var body)) body.Dispose();
        }

        private static ulong Number(JsonElement payload) => payload.GetProperty("stream").GetUInt64();

        private static HttpRequestMessage Request(JsonElement payload)
        {
            var request = new HttpRequestMessage(new HttpMethod(Json.Text(payload, "method")!), Json.Text(payload, "url"))
            {
                Content = new ByteArrayContent(Encoding.UTF8.GetBytes(Json.Text(payload, "body") ?? "")),
            };
            foreach (var header in payload.GetProperty("headers").EnumerateArray())
            {
                string name = header[0].GetString()!, value = header[1].GetString()!;
                // .NET keeps the headers of the body apart; this one tells which they are.
                if (!request.Headers.TryAddWithoutValidation(name, value)) request.Content.Headers.TryAddWithoutValidation(name, value);
            }
            return request;
        }

        private static void Write(Utf8JsonWriter writer, string name, System.Collections.Generic.IEnumerable<string> values)
        {
            foreach (var value in values)
            {
                writer.WriteStartArray();
                writer.WriteStringValue(name);
                writer.WriteStringValue(value);
                writer.WriteEndArray();
            }
        }
    }
}
