import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.toolspan.*;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import kotlin.coroutines.Continuation;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The package as a Java program has it. */
@Timeout(60)
class JavaTest {
    record Sum(@Description("the first") int a, int b) {}

    private static final String ANY = """
        {"type": "object"}""";

    @Test
    void aRunOfThreeForms() throws Exception {
        var script = Map.of("llm", Map.of("main", Map.of("style", "openai", "replies", Stream.generate(() -> List.of(
            Map.of("calls", List.of(Map.of("id", "c1", "name", "add", "args", Map.of("a", 1, "b", 2)))), Map.of("text", "three"))).limit(3).flatMap(List::stream).toList())));
        try (var scenario = Fixtures.INSTANCE.scenario(script);
             var engine = new Engine();
             var toolkit = engine.createToolkit(new ToolkitOptions().tool(Tool.of("add", "Add", Sum.class, (sum, call) -> sum.a() + sum.b())));
             var client = engine.createClient(scenario.upstream("main"))) {
            var options = new RunOptions().toolkit(toolkit);
            RunResult result = client.run("1 + 2?", options);
            assertEquals("three", result.text());
            assertEquals("3", result.toolCalls().get(0).output());
            assertEquals("three", client.runAsync("1 + 2?", options).get().text());
            var text = new StringBuilder();
            try (EventStream events = client.stream("1 + 2?", options)) {
                for (Event event : events) if (event instanceof Event.Text it) text.append(it.delta());
            }
            assertEquals("three", text.toString());
        }
    }

    @Test
    void anInterruptCancelsAndInterruptsTheTool() throws Exception {
        var entered = new CountDownLatch(1);
        var interrupted = new CompletableFuture<Boolean>();
        try (var engine = new Engine(); var toolkit = engine.createToolkit(new ToolkitOptions().tool(Tool.of("never", "d", ANY, (args, call) -> {
            entered.countDown();
            try {
                new CountDownLatch(1).await();
            } catch (InterruptedException error) {
                interrupted.complete(true);
                throw error;
            }
            return null;
        })))) {
            var thrown = new CompletableFuture<Throwable>();
            var thread = new Thread(() -> {
                try {
                    toolkit.execute("never");
                } catch (Throwable error) {
                    thrown.complete(error);
                }
            });
            thread.start();
            entered.await();
            thread.interrupt();
            assertInstanceOf(InterruptedException.class, thrown.get());
            assertTrue(interrupted.get());
            assertEquals(0, engine.counters().operations());
        }
    }

    @Test
    void cancellingAFutureCancelsTheOperationAndTheStageOfTheTool() throws Exception {
        var entered = new CountDownLatch(1);
        var stage = new CompletableFuture<Object>();
        try (var engine = new Engine(); var toolkit = engine.createToolkit(new ToolkitOptions().tool(Tool.of("never", "d", ANY, (args, call) -> {
            entered.countDown();
            return stage;
        })))) {
            var call = toolkit.executeAsync("never");
            entered.await();
            assertTrue(call.cancel(true));
            assertThrows(CancellationException.class, stage::get);
            assertTrue(stage.isCancelled());
        }
    }

    @Test
    void failuresAreTyped() {
        var error = assertThrows(InvalidConfigException.class, () -> Toolspan.createToolkit(new ToolkitOptions().set("tols", List.of())));
        assertEquals("tols", error.getPath());
        assertEquals("invalid_config", error.getCode());
        assertFalse(error.getRetryable());
        var late = assertThrows(ExecutionException.class, () -> Toolspan.createToolkitAsync(new ToolkitOptions().set("tols", List.of())).get());
        assertInstanceOf(InvalidConfigException.class, late.getCause());
    }

    @Test
    void recordsOfLogsGoToTheLoggerOfThePlatform() throws Exception {
        var lines = new CopyOnWriteArrayList<String>();
        var logger = new System.Logger() {
            @Override public String getName() { return "test"; }
            @Override public boolean isLoggable(Level level) { return level.getSeverity() >= Level.WARNING.getSeverity(); }
            @Override public void log(Level level, ResourceBundle bundle, String text, Throwable thrown) { lines.add(level + " " + text); }
            @Override public void log(Level level, ResourceBundle bundle, String format, Object... values) { lines.add(level + " " + format); }
        };
        try (var engine = new Engine(new EngineOptions().log(LogSink.of(logger)));
             var toolkit = engine.createToolkit(new ToolkitOptions().tool(Tool.of("taken", "d", ANY, (args, call) -> "1")))) {
            assertFalse(toolkit.register(Tool.of("taken", "d", ANY, (args, call) -> "2")));
            assertEquals("1", toolkit.execute("taken").output());
        }
        assertEquals(1, lines.size(), lines.toString());
        assertTrue(lines.get(0).startsWith("WARNING toolkit: ") && lines.get(0).contains("taken"), lines.toString());
    }

    /** Hooks say what they have to say, and no more. */
    @Test
    void hooksAreFunctionsOfJava() throws Exception {
        var script = Map.of("llm", Map.of("main", Map.of("style", "openai", "replies", List.of(
            Map.of("calls", List.of(Map.of("id", "c1", "name", "add", "args", Map.of("a", 1, "b", 2)))), Map.of("text", "done")))));
        var answers = new AtomicInteger();
        try (var scenario = Fixtures.INSTANCE.scenario(script);
             var engine = new Engine();
             var toolkit = engine.createToolkit(new ToolkitOptions().tool(Tool.of("add", "Add", Sum.class, (sum, call) -> sum.a() + sum.b())));
             var client = engine.createClient(scenario.upstream("main").hooks(new Hooks()
                 .afterLLM(told -> answers.incrementAndGet())
                 .beforeTool(told -> new ToolChange().args(Map.of("a", 5, "b", 6)))
                 .afterTool(told -> new ToolResult(told.result().output() + "!"))))) {
            assertEquals("11!", client.run("1 + 2?", new RunOptions().toolkit(toolkit)).toolCalls().get(0).output());
            assertEquals(2, answers.get());
        }
    }

    /** What suspends for Kotlin blocks under the same name for Java, and gives a future. */
    @Test
    void whatTakesTimeHasThreeForms() {
        for (Class<?> type : List.of(Engine.class, Toolkit.class, Client.class, Conversation.class, StoredConversations.class, Toolspan.class)) {
            var methods = Stream.of(type.getDeclaredMethods()).filter(it -> Modifier.isPublic(it.getModifiers()) && !it.getName().contains("$")).toList();
            var suspending = new TreeSet<String>();
            var blocking = new TreeSet<String>();
            var futures = new TreeSet<String>();
            for (Method method : methods) {
                if (List.of(method.getParameterTypes()).contains(Continuation.class)) suspending.add(method.getName());
                else if (method.getReturnType() == CompletableFuture.class) futures.add(method.getName());
                else if (!method.isSynthetic()) blocking.add(method.getName());
            }
            assertFalse(suspending.isEmpty(), type.toString());
            assertEquals(new TreeSet<>(suspending.stream().map(it -> it + "Async").toList()), futures, type.toString());
            assertTrue(blocking.containsAll(suspending), type + " " + suspending + " " + blocking);
        }
    }

    /** Nothing that Java sees wants or gives what only Kotlin has. */
    @Test
    void noKotlinShowsThrough() {
        for (Class<?> type : List.of(Engine.class, Toolkit.class, Client.class, Conversation.class, StoredConversations.class, EventStream.class, Toolspan.class,
            ToolkitOptions.class, ClientOptions.class, RunOptions.class, McpToolsOptions.class, EngineOptions.class, Hooks.class, Tool.class)) {
            for (Method method : type.getDeclaredMethods()) {
                if (!Modifier.isPublic(method.getModifiers()) || method.isSynthetic() || method.getName().contains("$")) continue;
                assertFalse(List.of(method.getParameterTypes()).contains(Continuation.class), method.toString());
                for (Class<?> part : Stream.concat(Stream.of(method.getReturnType()), Stream.of(method.getParameterTypes())).toList()) {
                    assertFalse(part.getName().startsWith("kotlin"), method.toString());
                }
            }
        }
    }
}
