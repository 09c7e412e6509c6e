// The Java column of the conformance suite: does what stdin says with the package's public API, answers on stdout.

import dev.toolspan.*;
import java.io.*;
import java.net.http.HttpClient;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.*;
import java.util.stream.Stream;

@SuppressWarnings("unchecked")
public final class Shim {
    private static final List<Object> calls = new CopyOnWriteArrayList<>(), logs = new CopyOnWriteArrayList<>(), metrics = new CopyOnWriteArrayList<>();
    /** Numbered toolkits, clients and conversations. */
    private static final Map<Object, Object> objects = new ConcurrentHashMap<>();
    private static final AtomicLong numbers = new AtomicLong();
    /** Threads of the steps under way; a cancel interrupts. */
    private static final Map<Object, Thread> running = new ConcurrentHashMap<>();
    private static final Engine engine = new Engine(new EngineOptions().log(logs::add));
    private static final PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);

    private static synchronized long keep(Object object) { objects.put(numbers.incrementAndGet(), object); return numbers.get(); }

    private static <T> T known(Map<String, Object> args, String key) { return args.get(key) == null ? null : (T) objects.get(args.get(key)); }
    private static Map<String, Object> map(Object value) { return value == null ? Map.of() : (Map<String, Object>) value; }

    /** A map of pairs that keeps its order and takes null. */
    private static Map<String, Object> of(Object... pairs) {
        Map<String, Object> map = new LinkedHashMap<>();
        for (int i = 0; i < pairs.length; i += 2) map.put((String) pairs[i], pairs[i + 1]);
        return map;
    }

    /** A function of the case, as one that takes and gives JSON. */
    private record Behaviour(Object number, String kind, Map<String, Object> behaviour, AtomicInteger count) {
        void record(String kind, Object payload) { calls.add(of("handler", number, "kind", kind, "payload", payload)); }
        boolean keeps() { return behaviour.containsKey("store"); }
        boolean sends() { return behaviour.containsKey("http"); }
        Object call(Map<String, Object> payload) throws Exception { return call(kind, payload); }

        Object call(String kind, Map<String, Object> payload) throws Exception { record(kind, payload); return behave(behaviour, payload); }

        private Object behave(Map<String, Object> behaviour, Map<String, Object> payload) throws Exception {
            if (behaviour.get("sequence") instanceof List<?> list) return behave(map(list.get(Math.min(count.getAndIncrement(), list.size() - 1))), payload);
            if (behaviour.containsKey("return")) return behaviour.get("return");
            if (behaviour.containsKey("echo")) return payload;
            if (behaviour.get("throw") instanceof String text) throw new IllegalStateException(text);
            if (behaviour.containsKey("hang")) return new CompletableFuture<>();
            if (behaviour.containsKey("edit")) return edit(payload, map(behaviour.get("edit")));
            if (keeps() || sends()) return null;
            throw new IllegalStateException("no such behaviour: " + behaviour);
        }

        private static Map<String, Object> edit(Map<String, Object> body, Map<String, Object> edit) {
            Map<String, Object> edited = new LinkedHashMap<>(body);
            edited.putAll(map(edit.get("set")));
            if (edit.get("drop") instanceof List<?> keys) keys.forEach(edited::remove);
            if (!(edit.get("appendToLastUser") instanceof String more)) return edited;
            List<Object> messages = new ArrayList<>((List<Object>) edited.get("messages"));
            int last = messages.size() - 1;
            while (!"user".equals(map(messages.get(last)).get("role"))) last--;
            Map<String, Object> message = new LinkedHashMap<>(map(messages.get(last)));
            message.computeIfPresent("content", (key, content) -> content instanceof String text ? text + more
                : Stream.concat(((List<Object>) content).stream(), Stream.of(of("type", "text", "text", more))).toList());
            messages.set(last, message);
            edited.put("messages", messages);
            return edited;
        }
    }

    /** The functions of a step, by their numbers in its options. */
    private record Functions(Map<String, Behaviour> known) {
        static Functions of(Map<String, Object> handlers) {
            Map<String, Behaviour> known = new HashMap<>();
            handlers.forEach((n, it) -> known.put(n, new Behaviour(Long.valueOf(n), (String) map(it).get("kind"), map(map(it).get("behaviour")), new AtomicInteger())));
            return new Functions(known);
        }

        Behaviour function(Object value) { return known.get(String.valueOf(value instanceof Map<?, ?> object ? object.get("handler") : value)); }

        /** A tool of the case; what is none stays as it is. */
        Object tool(Object definition) {
            Behaviour function = definition instanceof Map<?, ?> object ? function(object.get("handler")) : null;
            if (function == null) return definition;
            Map<String, Object> plain = new LinkedHashMap<>(map(definition));
            plain.remove("handler");
            return Tool.of(plain, (args, call) -> {
                Object value = function.call(args);
                boolean result = value instanceof Map<?, ?> it && it.get("output") instanceof String && it.get("isError") instanceof Boolean;
                return result ? ToolResult.of(map(value)) : value;
            });
        }

        ClientOptions client(Map<String, Object> given) {
            ClientOptions options = new ClientOptions();
            given.forEach((key, value) -> {
                Behaviour function = function(value);
                if (key.equals("hooks") && value instanceof Map<?, ?>) options.hooks(hooks(map(value)));
                else if (function == null) options.set(key, value);
                else if (key.equals("bodyTransform")) options.bodyTransform(body -> function.call(body) instanceof Map<?, ?> changed ? map(changed) : null);
                else if (key.equals("onError")) options.onError(failure -> function.call(failure.toMap()) instanceof String text ? ErrorDecision.valueOf(text.toUpperCase(Locale.ROOT)) : null);
                else if (key.equals("onMetric")) options.onMetric(event -> { function.record("onMetric", event.toMap()); metrics.add(event); });
                else if (key.equals("store")) options.store(new Store(function, new ConcurrentHashMap<>()));
                else if (key.equals("httpClient")) options.httpClient(transport(function));
                else options.set(key, value);
            });
            return options;
        }

        private Hooks hooks(Map<String, Object> given) {
            Hooks hooks = new Hooks();
            given.forEach((key, value) -> {
                Behaviour function = function(value);
                switch (function == null ? "" : key) {
                    case "beforeLLM" -> hooks.beforeLLM(told -> change(function.call(told.toMap()), new LlmChange()));
                    case "afterLLM" -> hooks.afterLLM(told -> function.call(told.toMap()));
                    case "beforeTool" -> hooks.beforeTool(told -> change(function.call(told.toMap()), new ToolChange()));
                    case "afterTool" -> hooks.afterTool(told -> map(function.call(told.toMap())).get("result") instanceof Map<?, ?> result ? ToolResult.of(map(result)) : null);
                    default -> hooks.set(key, value);
                }
            });
            return hooks;
        }

        private static <T extends Options<T>> T change(Object value, T change) { return value == null ? null : all(change, map(value)); }

        private static HttpTransport transport(Behaviour function) {
            HttpTransport client = HttpTransport.of(HttpClient.newHttpClient());
            return request -> {
                Object answer = function.call(Shim.of("method", request.method(), "url", request.url()));
                if (!function.sends()) return (HttpResponse) answer;
                List<HttpHeader> headers = new ArrayList<>(request.headers());
                headers.add(new HttpHeader("x-injected", "1"));
                return client.send(new HttpRequest(request.method(), request.url(), headers, request.body()));
            };
        }
    }

    private record Store(Behaviour function, Map<String, Object> kept) implements ConversationStore {
        public Object get(String id) throws Exception {
            Object answer = function.call("store.get", of("id", id));
            return function.keeps() ? kept.get(id) : answer;
        }
        public void save(String id, Transcript transcript) throws Exception {
            function.call("store.save", of("id", id, "messages", transcript.toMap()));
            kept.put(id, transcript);
        }
    }

    /** Options of a run, which the arguments of its operation are but for those that have a place of their own. */
    private static RunOptions options(Map<String, Object> args) {
        Map<String, Object> plain = new LinkedHashMap<>(args);
        plain.keySet().removeAll(Set.of("client", "toolkit", "prompt", "id", "stopAfter"));
        return all(new RunOptions().toolkit(known(args, "toolkit")), plain);
    }

    private static <T extends Options<T>> T all(T options, Map<String, Object> values) { values.forEach(options::set); return options; }

    private interface Work { void run() throws Exception; }
    private static Object done(Work work) throws Exception { work.run(); return of(); }

    private static Object perform(String op, Map<String, Object> args, Functions functions, List<Object> events) throws Exception {
        List<ContentPart> parts = args.get("prompt") instanceof List<?> list ? list.stream().map(part -> ContentPart.of(map(part))).toList() : null;
        String prompt = parts == null ? (String) args.get("prompt") : null;
        Client client = op.equals("client.create") ? null : known(args, "client");
        Conversation conversation = op.equals("conversation.create") ? null : known(args, "conversation");
        Toolkit toolkit = known(args, "toolkit");
        String id = (String) args.get("id");
        return switch (op) {
            case "toolkit.create" -> {
                ToolkitOptions options = new ToolkitOptions();
                map(args.get("options")).forEach((key, value) ->
                    options.set(key, key.equals("tools") && value instanceof List<?> tools ? tools.stream().map(functions::tool).toList() : value));
                yield of("toolkit", keep(engine.createToolkit(options)));
            }
            case "toolkit.tools" -> of("tools", toolkit.tools());
            case "toolkit.status" -> of("servers", toolkit.status());
            case "toolkit.get" -> of("tool", toolkit.get((String) args.get("name")));
            case "toolkit.execute" -> toolkit.execute((String) args.get("name"), args.getOrDefault("args", Map.of()), (Long) args.get("timeoutMs"));
            case "toolkit.register" -> of("registered", toolkit.register((Tool) functions.tool(args.get("tool"))));
            case "toolkit.adapt" -> toolkit.adapt((String) args.get("provider"));
            case "toolkit.close" -> done(toolkit::close);
            case "mcp.list" -> engine.listMcpTools(all(new McpToolsOptions(), args));
            case "client.create" -> of("client", keep(engine.createClient(functions.client(map(args.get("options"))))));
            case "client.close" -> done(client::close);
            case "client.run" -> parts == null ? client.run(prompt, options(args)) : client.run(parts, options(args));
            case "client.ask" -> parts == null ? client.ask(prompt, id, options(args)) : client.ask(parts, id, options(args));
            case "client.stream" -> {
                long stopAfter = (Long) args.getOrDefault("stopAfter", Long.MAX_VALUE);
                try (EventStream stream = id != null ? client.stream(prompt, id, options(args)) : parts == null ? client.stream(prompt, options(args)) : client.stream(parts, options(args))) {
                    while (events.size() < stopAfter && stream.hasNext()) events.add(stream.next());
                }
                yield of("events", events);
            }
            case "conversation.create" -> of("conversation", keep(client.conversation(id, toolkit)));
            case "conversation.send" -> parts == null ? conversation.send(prompt) : conversation.send(parts);
            case "conversation.messages" -> of("messages", conversation.messages());
            case "conversation.reset" -> done(conversation::reset);
            case "store.get" -> of("transcript", client.conversationStore().get(id));
            case "store.save" -> args.get("messages") instanceof List<?> messages
                ? done(() -> client.conversationStore().save(id, messages.stream().map(Shim::map).toList()))
                : done(() -> client.conversationStore().save(id, Transcript.of(map(args.get("messages")))));
            case "client.metrics" -> of("text", client.metrics());
            case "counters" -> engine.counters();
            case "version" -> of("version", engine.version());
            case "cancel" -> done(() -> Optional.ofNullable(running.get(args.get("step"))).ifPresent(Thread::interrupt));
            case "host.calls" -> calls;
            case "host.logs" -> logs;
            case "host.metrics" -> metrics;
            case "host.reset" -> done(() -> Stream.of(calls, logs, metrics).forEach(List::clear));
            default -> throw new IllegalStateException("no such operation: " + op);
        };
    }

    private static synchronized void say(Map<String, Object> line) { out.println(Json.write(line)); }

    private static Object failure(Throwable error) {
        if (error instanceof ToolspanException failed) return failed.getRecord();
        if (error instanceof InterruptedException) return of("code", "cancelled", "message", "the caller cancelled", "retryable", false);
        return of("code", "shim", "message", error + " at " + Arrays.asList(error.getStackTrace()));
    }

    private static void answer(Object step, String op, Map<String, Object> request) {
        List<Object> events = new ArrayList<>();
        Map<String, Object> answer = of("step", step);
        try {
            answer.put("ok", perform(op, map(request.get("args")), Functions.of(map(request.get("handlers"))), events));
        } catch (Throwable error) {
            answer.put("error", failure(error));
            if (op.equals("client.stream")) answer.put("partial", of("events", events));
        }
        say(answer);
        running.remove(step);
    }

    public static void main(String[] args) throws IOException {
        say(of("ready", of("language", "java", "version", engine.version())));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            if (line.isBlank()) continue;
            Map<String, Object> request = map(Json.parse(line));
            Thread thread = new Thread(() -> answer(request.get("step"), (String) request.get("op"), request));
            thread.setDaemon(true);
            running.put(request.get("step"), thread);
            thread.start();
        }
        engine.close();
    }
}
