using System;
using System.Collections.Generic;
using System.Collections.Immutable;
using System.IO;
using System.Linq;
using System.Reflection;
using Microsoft.CodeAnalysis;
using Microsoft.CodeAnalysis.CSharp;

/// <summary>
/// Lets sources be compiled against netstandard with a library that was built for a newer framework, to see that they ask for nothing
/// netstandard does not have: for each assembly that library refers to, an empty one of the same identity that forwards
/// every type to netstandard. <c>Facades NETSTANDARD OUTPUT LIBRARY...</c>
/// </summary>
internal static class Facades
{
    private static void Main(string[] args)
    {
        var standard = MetadataReference.CreateFromFile(args[0]);
        var look = CSharpCompilation.Create("look", references: new[] { standard });
        var types = Types(((IAssemblySymbol)look.GetAssemblyOrModuleSymbol(standard)).GlobalNamespace);
        var forwards = string.Concat(types.Select(type => $"[assembly: System.Runtime.CompilerServices.TypeForwardedTo(typeof({type}))]\n"));
        foreach (var library in args.Skip(2))
        {
            foreach (var reference in Assembly.LoadFrom(library).GetReferencedAssemblies())
            {
                var identity = AssemblyName.GetAssemblyName(Path.Combine(Path.GetDirectoryName(library), reference.Name + ".dll"));
                var version = $"[assembly: System.Reflection.AssemblyVersion(\"{identity.Version}\")]\n";
                var options = new CSharpCompilationOptions(OutputKind.DynamicallyLinkedLibrary)
                    .WithPublicSign(true).WithCryptoPublicKey(identity.GetPublicKey().ToImmutableArray());
                var facade = CSharpCompilation.Create(reference.Name, new[] { CSharpSyntaxTree.ParseText(version + forwards) }, new[] { standard }, options);
                using (var file = File.Create(Path.Combine(args[1], reference.Name + ".dll")))
                {
                    var result = facade.Emit(file);
                    if (!result.Success) throw new Exception(string.Join("\n", result.Diagnostics.Where(d => d.Severity == DiagnosticSeverity.Error)));
                }
            }
        }
    }

    private static IEnumerable<string> Types(INamespaceSymbol space)
    {
        foreach (var type in space.GetTypeMembers())
        {
            if (type.DeclaredAccessibility != Accessibility.Public || type.SpecialType == SpecialType.System_Void) continue;
            if (type.GetAttributes().Any(a => a.AttributeClass.Name == "ObsoleteAttribute" && a.ConstructorArguments.Length == 2)) continue;
            var name = $"global::{space.ToDisplayString()}.{type.Name}";
            yield return type.Arity == 0 ? name : $"{name}<{new string(',', type.Arity - 1)}>";
        }
        foreach (var inner in space.GetNamespaceMembers().SelectMany(Types)) yield return inner;
    }
}
