using System;
using System.IO;
using System.Linq;
using System.Text;
using Microsoft.CodeAnalysis;
using Microsoft.CodeAnalysis.CSharp;
using Microsoft.CodeAnalysis.Emit;
using Microsoft.CodeAnalysis.Text;

/// <summary>A compiler with the command line of csc, around the newest Roslyn that the registries of the checks have.</summary>
internal static class Compile
{
    private static int Main(string[] args)
    {
        var command = CSharpCommandLineParser.Default.Parse(args, Directory.GetCurrentDirectory(), null);
        var trees = command.SourceFiles.Select(file => CSharpSyntaxTree.ParseText(
            SourceText.From(File.ReadAllText(file.Path), Encoding.UTF8), (CSharpParseOptions)command.ParseOptions, file.Path));
        var references = command.MetadataReferences.Select(reference => MetadataReference.CreateFromFile(reference.Reference));
        var compilation = CSharpCompilation.Create(
            Path.GetFileNameWithoutExtension(command.OutputFileName), trees, references, command.CompilationOptions);
        var output = command.OutputDirectory + Path.DirectorySeparatorChar;
        EmitResult result;
        using (var assembly = File.Create(output + command.OutputFileName))
        using (var documentation = command.DocumentationPath is string path ? File.Create(path) : null)
        {
            result = compilation.Emit(
                assembly, xmlDocumentationStream: documentation, options: new EmitOptions(debugInformationFormat: DebugInformationFormat.Embedded));
        }
        var said = command.Errors.Concat(result.Diagnostics).Where(d => d.Severity >= DiagnosticSeverity.Warning).ToList();
        foreach (var diagnostic in said) Console.WriteLine(diagnostic);
        if (result.Success && !said.Any(d => d.Severity == DiagnosticSeverity.Error)) return 0;
        File.Delete(output + command.OutputFileName);
        return 1;
    }
}
