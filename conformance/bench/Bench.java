// The scenario from Java, through the public API. See src/lib.rs for what it prints.
import dev.toolspan.ClientOptions;
import dev.toolspan.Json;
import dev.toolspan.RunOptions;
import dev.toolspan.Style;
import dev.toolspan.ToolkitOptions;
import dev.toolspan.Toolspan;
import java.util.Arrays;
import java.util.Map;

public final class Bench {
    /** Runs until the compiler of the JVM has seen enough; what is measured is the program that runs for long. */
    private static final int WARM_UP = 2000;

    public static void main(String[] args) throws InterruptedException {
        var plan = (Map<?, ?>) Json.parse(System.getenv("BENCH"));
        var servers = Map.of("mcpServers", Map.of("calc", Map.of("command", plan.get("command"))));
        int runs = ((Long) plan.get("runs")).intValue();
        double[] times = new double[runs];
        try (var toolkit = Toolspan.createToolkit(new ToolkitOptions().mcpConfig(servers));
             var client = Toolspan.createClient(new ClientOptions().baseUrl((String) plan.get("baseUrl")).style(Style.OPENAI).model("bench"))) {
            var options = new RunOptions().toolkit(toolkit);
            for (int run = -WARM_UP; run < runs; run++) {
                long start = System.nanoTime();
                var result = client.run("What is 2 + 2, twice?", options);
                if (run >= 0) times[run] = (System.nanoTime() - start) / 1000.0;
                if (result.toolCalls().size() != 2) throw new IllegalStateException(result.toolCalls().size() + " tool calls instead of 2");
            }
        }
        Arrays.sort(times);
        System.out.println(Json.write(Map.of("median_us", at(times, 0.5), "p95_us", at(times, 0.95), "runs", runs)));
    }

    private static double at(double[] times, double share) {
        return times[(int) Math.round((times.length - 1) * share)];
    }
}
