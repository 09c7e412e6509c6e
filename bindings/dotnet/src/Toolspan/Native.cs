using System;
using System.Collections.Concurrent;
using System.Collections.Generic;
using System.IO;
using System.Reflection;
using System.Runtime.InteropServices;
using System.Text.Json;
using System.Threading;

namespace Toolspan
{
    /// <summary>The number of an engine. The garbage collector gives it up when the program forgot to.</summary>
    internal sealed class EngineHandle : SafeHandle
    {
        // An engine's number has 64 bits on every platform, which is more than an IntPtr may hold.
        internal readonly ulong Number;

        internal EngineHandle(ulong number) : base(IntPtr.Zero, true)
        {
            Number = number;
            Native.Open[number] = default;
        }

        public override bool IsInvalid => Number == 0;

        protected override bool ReleaseHandle()
        {
            Native.Open.TryRemove(Number, out _);
            NativeMethods.ts_engine_free(Number);
            return true;
        }
    }

    /// <summary>The functions of the C ABI with texts and exceptions. No text of the library outlives the call that got it.</summary>
    internal static unsafe class Native
    {
        /// <summary>
        /// How long the end of the process waits at most: twice what the library needs for children that have to be killed. Less, and
        /// the process may be gone before they are.
        /// </summary>
        private const ulong ExitMs = 4000;

        internal static readonly ConcurrentDictionary<ulong, byte> Open = new ConcurrentDictionary<ulong, byte>();

        /// <summary>How long a process that does end is gone for sure once its engines are closed.</summary>
        private const int HeldBackMs = 1000;

        private static readonly ManualResetEventSlim Exited = new ManualResetEventSlim();
        private static int exiting;

        private static readonly Lazy<bool> Library = new Lazy<bool>(Load);

        internal static EngineHandle NewEngine(ReadOnlyMemory<byte> options)
        {
            _ = Library.Value;
            ulong number;
            byte* error;
            ulong length;
            fixed (byte* text = options.Span)
            {
                Check(NativeMethods.ts_engine_new(text, (ulong)options.Length, &number, &error, &length), error, length);
            }
            return new EngineHandle(number);
        }

        internal static JsonElement Call(ulong engine, ReadOnlyMemory<byte> request)
        {
            byte* result;
            ulong length;
            fixed (byte* text = request.Span)
            {
                Check(NativeMethods.ts_call(engine, text, (ulong)request.Length, &result, &length), result, length);
            }
            return Take(result, length);
        }

        internal static void Submit(ulong engine, ulong op, ReadOnlyMemory<byte> request)
        {
            byte* error;
            ulong length;
            fixed (byte* text = request.Span)
            {
                Check(NativeMethods.ts_submit(engine, op, text, (ulong)request.Length, &error, &length), error, length);
            }
        }

        /// <summary>Waits for events; false once the engine is closed and everything was collected.</summary>
        internal static bool Poll(ulong engine, Action<JsonElement> deliver)
        {
            byte* events;
            ulong length;
            var status = NativeMethods.ts_poll(engine, ulong.MaxValue, 0, &events, &length);
            if (status == NativeMethods.TS_CLOSED) return false;
            Check(status, events, length);
            try
            {
                foreach (var item in Json.ParseArray(Span(events, length))) deliver(item);
            }
            finally
            {
                NativeMethods.ts_text_free(events, length);
            }
            return true;
        }

        /// <summary>Answers a host call; false when nobody waits for the answer, or it is none.</summary>
        internal static bool Respond(ulong engine, ulong call, ReadOnlyMemory<byte> reply)
        {
            byte* error;
            ulong length;
            int status;
            fixed (byte* text = reply.Span)
            {
                status = NativeMethods.ts_respond(engine, call, text, (ulong)reply.Length, &error, &length);
            }
            NativeMethods.ts_text_free(error, length);
            return status == NativeMethods.TS_OK;
        }

        /// <summary>Ends everything; false when something had to be abandoned. Blocks for as long.</summary>
        internal static bool Close(ulong engine, ulong timeoutMs) =>
            NativeMethods.ts_engine_close(engine, timeoutMs) != NativeMethods.TS_TIMEOUT;

        private static void Check(int status, byte* text, ulong length)
        {
            if (status == NativeMethods.TS_OK) return;
            HoldBack();
            if (status == NativeMethods.TS_REFUSED) throw Exceptions.Of(ErrorRecord.Read(Take(text, length)), null);
            throw Failure(ErrorCodes.InternalPanic, $"the library answered {status}");
        }

        private static JsonElement Take(byte* text, ulong length)
        {
            try
            {
                return Json.Parse(Span(text, length));
            }
            finally
            {
                NativeMethods.ts_text_free(text, length);
            }
        }

        private static ReadOnlySpan<byte> Span(byte* text, ulong length) => new ReadOnlySpan<byte>(text, checked((int)length));

        internal static Exception Failure(string code, string message, Exception? inner = null) =>
            Exceptions.Of(new ErrorRecord { Code = code, Message = message }, inner);

        /// <summary>Finds the library and compares what it speaks with what this package speaks.</summary>
        private static bool Load()
        {
#if NET5_0_OR_GREATER
            NativeLibrary.SetDllImportResolver(typeof(Native).Assembly, Resolve);
#endif
            uint version;
            ulong hash;
            try
            {
                version = NativeMethods.ts_abi_version();
                hash = NativeMethods.ts_schema_hash();
            }
            catch (Exception e) when (e is DllNotFoundException || e is BadImageFormatException)
            {
                throw Failure(ErrorCodes.Unsupported, "the native library of toolspan is not there, or not for this platform", e);
            }
            catch (EntryPointNotFoundException e)
            {
                throw Failure(ErrorCodes.AbiMismatch, "the native library that was found is not that of toolspan", e);
            }
            if (version != Abi.Version)
            {
                throw Failure(ErrorCodes.AbiMismatch, $"the ABI version of the native library is {version}, not {Abi.Version}");
            }
            if (hash != Abi.SchemaHash)
            {
                throw Failure(ErrorCodes.AbiMismatch, $"the schema hash of the native library is {hash:x16}, not {Abi.SchemaHash:x16}");
            }
            AppDomain.CurrentDomain.ProcessExit += (_, __) => Exit();
            return true;
        }

        /// <summary>
        /// Other threads than the one that ends the process hear of the end when that could have happened, and did not since a handler of
        /// the program still waits for them. Before, what they wait for would fail, which in a main program turns the end into a crash.
        /// </summary>
        internal static void HoldBack()
        {
            var thread = Volatile.Read(ref exiting);
            if (thread != 0 && thread != Environment.CurrentManagedThreadId) Exited.Wait();
        }

        // Children that ignore the end of their input would else stay behind. Side by side: the time is for all of them.
        private static void Exit()
        {
            Volatile.Write(ref exiting, Environment.CurrentManagedThreadId);
            var closing = new List<Thread>();
            foreach (var engine in Open.Keys)
            {
                var thread = new Thread(() => Close(engine, ExitMs)) { IsBackground = true };
                thread.Start();
                closing.Add(thread);
            }
            foreach (var thread in closing) thread.Join();
            new Thread(() =>
            {
                Thread.Sleep(HeldBackMs);
                Exited.Set();
            }) { IsBackground = true }.Start();
        }

#if NET5_0_OR_GREATER
        private static IntPtr Resolve(string name, Assembly assembly, DllImportSearchPath? search)
        {
            var path = Environment.GetEnvironmentVariable("TOOLSPAN_NATIVE_PATH");
            return string.IsNullOrEmpty(path) ? IntPtr.Zero : NativeLibrary.Load(Path.GetFullPath(path));
        }
#endif
    }
}
