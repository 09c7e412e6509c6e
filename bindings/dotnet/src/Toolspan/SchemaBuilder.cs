using System;
using System.Collections.Generic;
using System.ComponentModel;
using System.Diagnostics.CodeAnalysis;
using System.Linq;
using System.Reflection;
using System.Text.Json;
using System.Text.Json.Nodes;
using System.Text.Json.Serialization;

namespace Toolspan
{
    /// <summary>JSON Schemas of types, as <see cref="JsonSerializer"/> reads them.</summary>
    [RequiresUnreferencedCode(Values.Reflection)]
    [RequiresDynamicCode(Values.Reflection)]
    internal sealed class SchemaBuilder
    {
        private static readonly Dictionary<Type, (string Type, string? Format)> Simple = new Dictionary<Type, (string, string?)>
        {
            [typeof(string)] = ("string", null),
            [typeof(char)] = ("string", null),
            [typeof(bool)] = ("boolean", null),
            [typeof(byte)] = ("integer", null),
            [typeof(sbyte)] = ("integer", null),
            [typeof(short)] = ("integer", null),
            [typeof(ushort)] = ("integer", null),
            [typeof(int)] = ("integer", null),
            [typeof(uint)] = ("integer", null),
            [typeof(long)] = ("integer", null),
            [typeof(ulong)] = ("integer", null),
            [typeof(float)] = ("number", null),
            [typeof(double)] = ("number", null),
            [typeof(decimal)] = ("number", null),
            [typeof(DateTime)] = ("string", "date-time"),
            [typeof(DateTimeOffset)] = ("string", "date-time"),
            [typeof(Guid)] = ("string", "uuid"),
            [typeof(Uri)] = ("string", "uri"),
            [typeof(byte[])] = ("string", "byte"),
        };

        private readonly JsonSerializerOptions options;
        private readonly JsonObject definitions = new JsonObject();
        private readonly Dictionary<Type, string> names = new Dictionary<Type, string>();

        internal SchemaBuilder(JsonSerializerOptions options) => this.options = options;

        internal JsonElement Object(JsonObject properties, JsonArray required)
        {
            var schema = new JsonObject { ["type"] = "object", ["properties"] = properties };
            if (required.Count > 0) schema["required"] = required;
            if (definitions.Count > 0) schema["$defs"] = definitions;
            return Json.Parse(Json.Bytes(writer => schema.WriteTo(writer)).Span);
        }

        /// <summary>The schema with what <c>[Description]</c> says.</summary>
        internal JsonObject Described(JsonObject schema, ICustomAttributeProvider where)
        {
            var found = where.GetCustomAttributes(typeof(DescriptionAttribute), true).OfType<DescriptionAttribute>().FirstOrDefault();
            if (found != null) schema["description"] = found.Description;
            return schema;
        }

        internal JsonObject Of(Type type)
        {
            type = Nullable.GetUnderlyingType(type) ?? type;
            if (Simple.TryGetValue(type, out var simple))
            {
                var schema = new JsonObject { ["type"] = simple.Type };
                if (simple.Format != null) schema["format"] = simple.Format;
                return schema;
            }
            if (type == typeof(object) || type == typeof(JsonElement) || typeof(JsonNode).IsAssignableFrom(type)) return new JsonObject();
            if (type.IsEnum)
            {
                var members = new JsonArray();
                foreach (var name in Enum.GetNames(type)) members.Add(name);
                return new JsonObject { ["type"] = "string", ["enum"] = members };
            }
            if (Generic(type, typeof(IDictionary<,>), typeof(IReadOnlyDictionary<,>)) is Type[] map && map[0] == typeof(string))
            {
                return new JsonObject { ["type"] = "object", ["additionalProperties"] = Of(map[1]) };
            }
            if (Generic(type, typeof(IEnumerable<>)) is Type[] item) return new JsonObject { ["type"] = "array", ["items"] = Of(item[0]) };
            if (type.IsPointer || type.IsByRef || type.IsPrimitive || typeof(Delegate).IsAssignableFrom(type) || type.Namespace == "System")
            {
                throw new NotSupportedException($"JSON has no form for {type}.");
            }
            return Reference(type);
        }

        private static Type[]? Generic(Type type, params Type[] wanted) => type.GetInterfaces().Append(type)
            .FirstOrDefault(known => known.IsGenericType && wanted.Contains(known.GetGenericTypeDefinition()))?.GetGenericArguments();

        // Classes stand under $defs, so that one may hold itself.
        private JsonObject Reference(Type type)
        {
            if (!names.TryGetValue(type, out var name))
            {
                name = type.Name.Split('`')[0];
                while (definitions.ContainsKey(name)) name += "_";
                names[type] = name;
                definitions[name] = new JsonObject();
                definitions[name] = Members(type);
            }
            return new JsonObject { ["$ref"] = "#/$defs/" + name };
        }

        private JsonObject Members(Type type)
        {
            var properties = new JsonObject();
            var required = new JsonArray();
            foreach (var property in type.GetProperties(BindingFlags.Public | BindingFlags.Instance))
            {
                if (property.GetIndexParameters().Length > 0 || property.GetCustomAttribute<JsonIgnoreAttribute>() != null) continue;
                if (!CanRead(type, property)) continue;
                var name = property.GetCustomAttribute<JsonPropertyNameAttribute>()?.Name
                    ?? options.PropertyNamingPolicy?.ConvertName(property.Name) ?? property.Name;
                properties[name] = Described(Of(property.PropertyType), property);
                if (!Nullability.MayBeNull(property.PropertyType, property, property)) required.Add(name);
            }
            var schema = new JsonObject { ["type"] = "object", ["properties"] = properties };
            if (required.Count > 0) schema["required"] = required;
            return Described(schema, type);
        }

        /// <summary>Whether a value can be put into the property: by its setter, or by a constructor.</summary>
        private static bool CanRead(Type type, PropertyInfo property) =>
            property.SetMethod?.IsPublic == true || type.GetConstructors().Any(made => made.GetParameters().Any(
                parameter => string.Equals(parameter.Name, property.Name, StringComparison.OrdinalIgnoreCase)));
    }
}
