using System;
using System.Text.Json;
using System.Threading;
using System.Threading.Tasks;

namespace Toolspan
{
    /// <summary>
    /// Where conversations are kept (SPEC 7.7). A program derives its own, or names one of the library's: a text converts to it.
    /// </summary>
    public abstract class ConversationStore
    {
        /// <summary>Keeps conversations as long as the client lives, as a client does that is told nothing.</summary>
        public static ConversationStore Memory => "memory";

        /// <summary>The name, where the library keeps it.</summary>
        internal virtual string? Name => null;

        /// <summary>Keeps each conversation in a file of that folder.</summary>
        public static ConversationStore Folder(string path) => "file:" + path;

        /// <summary><c>memory</c>, or <c>file:DIR</c>.</summary>
        public static implicit operator ConversationStore(string name) => new Named(name);

        /// <summary>The transcript of that id, <c>{"version", "style", "messages"}</c> or a list of messages; null when there is none.</summary>
        public abstract Task<JsonElement?> GetAsync(string id, CancellationToken cancellationToken = default);

        /// <summary>Keeps a transcript under that id.</summary>
        public abstract Task SaveAsync(string id, JsonElement transcript, CancellationToken cancellationToken = default);

        /// <summary>A store of the library, which is read and written through <see cref="Client.ConversationStore"/>.</summary>
        private sealed class Named : ConversationStore
        {
            internal Named(string name) => Name = name ?? throw new ArgumentNullException(nameof(name));

            internal override string Name { get; }

            public override Task<JsonElement?> GetAsync(string id, CancellationToken cancellationToken) => throw Elsewhere();

            public override Task SaveAsync(string id, JsonElement transcript, CancellationToken cancellationToken) => throw Elsewhere();

            private static Exception Elsewhere() =>
                new InvalidOperationException("The library keeps this store; ConversationStore of the client reads and writes it.");
        }
    }
}
