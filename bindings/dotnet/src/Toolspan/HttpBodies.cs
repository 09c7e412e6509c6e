using System;
using System.Collections.Generic;
using System.IO;
using System.Net.Http;
using System.Text;
using System.Text.Json;
using System.Threading;
using System.Threading.Tasks;

namespace Toolspan
{
    /// <summary>
    /// The program's own handler for requests to the model (SPEC 7.1 <c>httpClient</c>), and the answers of one operation that are being
    /// read.
    /// </summary>
    internal sealed class HttpBodies
    {
        private const int PieceBytes = 32 * 1024;

        private readonly Dictionary<ulong, Body> open = new Dictionary<ulong, Body>();
        private ulong last;
        private bool over;

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
        internal async Task<Action<Utf8JsonWriter>> SendAsync(HttpMessageInvoker invoker, HostCall call)
        {
            using var request = call.Begin(Request);
            var response = await invoker.SendAsync(request, call.Token).ConfigureAwait(false);
            ulong number;
            try
            {
                number = Keep(new Body(response, await response.Content.ReadAsStreamAsync().ConfigureAwait(false)));
            }
            catch
            {
                response.Dispose();
                throw;
            }
            // Whoever took the question back knows no number to close.
            call.Untaken = () => Close(number);
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
        internal async Task<Action<Utf8JsonWriter>> ReadAsync(JsonElement payload, CancellationToken token)
        {
            var number = Number(payload);
            Body? body;
            lock (open) open.TryGetValue(number, out body);
            if (body is null) throw new IOException("this body was closed");
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
        internal void Close(JsonElement payload) => Close(Number(payload));

        /// <summary>The operation has ended: what it left open is closed, away from the thread that delivers, and so is what comes later.</summary>
        internal void End()
        {
            lock (open)
            {
                over = true;
                foreach (var number in open.Keys) ThreadPool.UnsafeQueueUserWorkItem(_ => Close(number), null);
            }
        }

        private ulong Keep(Body body)
        {
            lock (open)
            {
                if (over) throw new IOException("the operation has ended");
                open[++last] = body;
                return last;
            }
        }

        private void Close(ulong number)
        {
            Body? body;
            lock (open) open.Remove(number, out body);
            body?.Dispose();
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

        private static void Write(Utf8JsonWriter writer, string name, IEnumerable<string> values)
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
