import dev.toolspan.*;

/** The example of README.md, with the addresses of the test. */
final class ReadmeJava {
    record Add(int a, int b) {}

    static void readme(String config, String url) throws InterruptedException {
    var tools = new ToolkitOptions().mcpConfig(config)
        .tool(Tool.of("add", "Add two integers", Add.class, (add, call) -> add.a() + add.b()));
    try (var toolkit = Toolspan.createToolkit(tools);
         var client = Toolspan.createClient(new ClientOptions().baseUrl(url).style(Style.OPENAI).model("m"))) {
        var options = new RunOptions().toolkit(toolkit);
        System.out.println(client.run("What is 2 + 2?", options).text());
        try (var events = client.stream("And 3 + 3?", options)) {
            for (var event : events) if (event instanceof Event.Text text) System.out.print(text.delta());
        }
    }
    }
}
