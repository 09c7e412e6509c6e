using System;
using System.Collections.Generic;
using System.ComponentModel;
using System.Diagnostics.CodeAnalysis;
using System.Linq;
using System.Reflection;
using System.Runtime.ExceptionServices;
using System.Text.Json;
using System.Text.Json.Nodes;
using System.Threading;
using System.Threading.Tasks;

namespace Toolspan
{
    /// <summary>A function of the program as a tool: the schema of its parameters, and calls with arguments from JSON.</summary>
    [RequiresUnreferencedCode(Values.Reflection)]
    [RequiresDynamicCode(Values.Reflection)]
    internal sealed class Binder
    {
        private readonly Delegate function;
        private readonly JsonSerializerOptions options;
        private readonly ParameterInfo[] parameters;

        internal Binder(Delegate function, JsonSerializerOptions options)
        {
            this.function = function;
            this.options = options;
            // A delegate that is bound to its first parameter has one less than its method; the method has the names.
            var count = function.GetType().GetMethod("Invoke")!.GetParameters().Length;
            parameters = function.Method.GetParameters();
            parameters = parameters.Skip(parameters.Length - count).ToArray();
            Schema = MakeSchema();
        }

        internal JsonElement Schema { get; }

        internal async Task<object?> InvokeAsync(JsonElement args, ToolCallContext context)
        {
            var values = parameters.Select(parameter => Value(parameter, args, context)).ToArray();
            try
            {
                return await ResultAsync(function.DynamicInvoke(values)).ConfigureAwait(false);
            }
            catch (TargetInvocationException e) when (e.InnerException != null)
            {
                ExceptionDispatchInfo.Capture(e.InnerException).Throw();
                throw;
            }
        }

        private JsonElement MakeSchema()
        {
            var schema = new SchemaBuilder(options);
            var properties = new JsonObject();
            var required = new JsonArray();
            foreach (var parameter in parameters)
            {
                if (IsContext(parameter)) continue;
                var name = parameter.Name ?? throw new NotSupportedException("A parameter of a tool needs a name.");
                properties[name] = schema.Described(schema.Of(parameter.ParameterType), parameter);
                if (!IsOptional(parameter)) required.Add(name);
            }
            return schema.Object(properties, required);
        }

        private static bool IsContext(ParameterInfo parameter) =>
            parameter.ParameterType == typeof(CancellationToken) || parameter.ParameterType == typeof(ToolCallContext);

        private static bool IsOptional(ParameterInfo parameter) =>
            parameter.HasDefaultValue || Nullability.MayBeNull(parameter.ParameterType, parameter, parameter.Member);

        private object? Value(ParameterInfo parameter, JsonElement args, ToolCallContext context)
        {
            if (parameter.ParameterType == typeof(CancellationToken)) return context.CancellationToken;
            if (parameter.ParameterType == typeof(ToolCallContext)) return context;
            if (!args.TryGetProperty(parameter.Name!, out var value))
            {
                if (parameter.HasDefaultValue) return parameter.DefaultValue;
                if (IsOptional(parameter)) return null;
                throw new ArgumentException($"Invalid arguments. {parameter.Name}: is missing");
            }
            if (value.ValueKind == JsonValueKind.Null && !IsOptional(parameter))
            {
                throw new ArgumentException($"Invalid arguments. {parameter.Name}: must not be null");
            }
            try
            {
                return JsonSerializer.Deserialize(value, parameter.ParameterType, options);
            }
            catch (JsonException e)
            {
                throw new ArgumentException($"Invalid arguments. {parameter.Name}: {e.Message}", e);
            }
        }

        /// <summary>What a function returned, or what its task gives.</summary>
        private static async Task<object?> ResultAsync(object? returned)
        {
            if (returned is null) return null;
            var type = returned.GetType();
            if (returned is ValueTask plain)
            {
                await plain.ConfigureAwait(false);
                return null;
            }
            if (type.IsGenericType && type.GetGenericTypeDefinition() == typeof(ValueTask<>))
            {
                returned = type.GetMethod("AsTask")!.Invoke(returned, null)!;
            }
            if (!(returned is Task task)) return returned;
            await task.ConfigureAwait(false);
            for (var of = task.GetType(); of != null; of = of.BaseType)
            {
                if (!of.IsGenericType || of.GetGenericTypeDefinition() != typeof(Task<>)) continue;
                // What the compiler makes of a task without a result.
                if (of.GetGenericArguments()[0].Name == "VoidTaskResult") return null;
                return of.GetProperty("Result")!.GetValue(task);
            }
            return null;
        }
    }

    /// <summary>Whether something may be null, as the compiler wrote it down for nullable annotations.</summary>
    internal static class Nullability
    {
        private const byte Annotated = 2;

        internal static bool MayBeNull(Type type, ICustomAttributeProvider where, MemberInfo member)
        {
            if (type.IsValueType) return Nullable.GetUnderlyingType(type) != null;
            if (Flag(where, "System.Runtime.CompilerServices.NullableAttribute") is byte own) return own == Annotated;
            for (MemberInfo? scope = member; scope != null; scope = scope.DeclaringType)
            {
                if (Flag(scope, "System.Runtime.CompilerServices.NullableContextAttribute") is byte context) return context == Annotated;
            }
            return false;
        }

        // The compiler puts the attributes into each assembly, so they are known by name only.
        private static byte? Flag(ICustomAttributeProvider where, string attribute)
        {
            var data = where is ParameterInfo parameter ? parameter.GetCustomAttributesData() : ((MemberInfo)where).GetCustomAttributesData();
            var found = data.FirstOrDefault(entry => entry.AttributeType.FullName == attribute);
            if (found is null) return null;
            var value = found.ConstructorArguments[0].Value;
            return value is byte flag ? flag : ((IReadOnlyList<CustomAttributeTypedArgument>)value!)[0].Value as byte?;
        }
    }
}
