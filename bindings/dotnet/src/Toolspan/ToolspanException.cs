using System;
using System.Collections.Generic;
using System.Text.Json;
using System.Threading;

namespace Toolspan
{
    /// <summary>
    /// What <see cref="ToolspanException"/> and <see cref="CancelledException"/> have in common: the error record (SPEC 8), for a
    /// program that handles both alike: <c>catch (Exception e) when (e is IToolspanError)</c>.
    /// </summary>
    public interface IToolspanError
    {
        /// <summary>What the library said.</summary>
        ErrorRecord Record { get; }
    }

    /// <summary>
    /// What every failure of this package is, but for <see cref="CancelledException"/>; there is a class for each code. The message
    /// reads <c>code: path: text</c>. <see cref="Exception.InnerException"/> is what a function of the program threw, else the
    /// library's own chain of causes.
    /// </summary>
    public class ToolspanException : Exception, IToolspanError
    {
        internal ToolspanException(ErrorRecord record, Exception? inner)
            : base(MessageOf(record), inner ?? ChainOf(record.Cause))
        {
            Record = record;
        }

        /// <inheritdoc/>
        public ErrorRecord Record { get; }

        /// <summary>One of <see cref="ErrorCodes"/>, or that of a newer library.</summary>
        public string Code => Record.Code;

        /// <inheritdoc cref="ErrorRecord.Retryable"/>
        public bool Retryable => Record.Retryable;

        /// <inheritdoc cref="ErrorRecord.RetryAfter"/>
        public TimeSpan? RetryAfter => Record.RetryAfter;

        /// <inheritdoc cref="ErrorRecord.HttpStatus"/>
        public int? HttpStatus => Record.HttpStatus;

        /// <inheritdoc cref="ErrorRecord.Provider"/>
        public string? Provider => Record.Provider;

        /// <inheritdoc cref="ErrorRecord.Server"/>
        public string? Server => Record.Server;

        /// <inheritdoc cref="ErrorRecord.Tool"/>
        public string? Tool => Record.Tool;

        /// <inheritdoc cref="ErrorRecord.Path"/>
        public string? Path => Record.Path;

        /// <inheritdoc cref="ErrorRecord.Details"/>
        public JsonElement? Details => Record.Details;

        internal static string MessageOf(ErrorRecord record) =>
            record.Path is null ? $"{record.Code}: {record.Message}" : $"{record.Code}: {record.Path}: {record.Message}";

        /// <summary>The library's chain of causes as nested exceptions, outermost first.</summary>
        internal static Exception? ChainOf(IReadOnlyList<ErrorCause>? chain)
        {
            Exception? inner = null;
            for (var i = (chain?.Count ?? 0) - 1; i >= 0; i--)
            {
                inner = new Exception(chain![i].Code is string code ? $"{code}: {chain[i].Message}" : chain[i].Message, inner);
            }
            return inner;
        }
    }

    /// <summary>
    /// The caller cancelled. It is an <see cref="OperationCanceledException"/>, as .NET expects of a cancelled operation, and
    /// therefore the one failure that is no <see cref="ToolspanException"/>.
    /// </summary>
    public sealed class CancelledException : OperationCanceledException, IToolspanError
    {
        internal CancelledException(ErrorRecord record, Exception? inner, CancellationToken token = default)
            : base(ToolspanException.MessageOf(record), inner ?? ToolspanException.ChainOf(record.Cause), token)
        {
            Record = record;
        }

        /// <inheritdoc/>
        public ErrorRecord Record { get; }

        /// <summary>Always <see cref="ErrorCodes.Cancelled"/>.</summary>
        public string Code => Record.Code;
    }
}
