/* The C column of the conformance suite. C has no layer above the waist, so this passes operations on as they come and
   serves the host's functions. One thread reads steps, one collects events; a lock keeps them apart. */
#include "host.h"
#include <pthread.h>
#include <toolspan.h>

#define NEXT (UINT64_C(1) << 40) /* ids of stream.next: that of the stream and this bit */

typedef struct stream {
    uint64_t step, count, most;
    bool left;
    buffer items, ending;
    struct stream *before;
} stream;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t engine;
static handler *handlers;
static stream *streams;
static buffer calls, logs, metrics;

static void add(buffer *list, json item) {
    put(list, ",", list->length > 0);
    put_json(list, item);
}

static void say(uint64_t step, const char *what, json value, const buffer *partial) {
    printf("{\"step\":%llu,\"%s\":%.*s", (unsigned long long)step, what, (int)value.length, value.text);
    if (partial != NULL) printf(",\"partial\":{\"events\":[%s]}", partial->text == NULL ? "" : partial->text);
    printf("}\n");
    fflush(stdout);
}

static void serve(json event) {
    json kind = json_get(event, "kind"), payload = json_get(event, "payload"), given = payload, body;
    uint64_t number = json_number(json_get(event, "handler")), call = json_number(json_get(event, "call"));
    handler *h = handlers;
    while (h != NULL && h->number != number) h = h->before;
    if (json_is(kind, "log")) add(&logs, payload);
    if (json_is(kind, "metric")) add(&metrics, payload);
    if (h == NULL || json_is(kind, "log")) return;
    buffer line = {0}, shown = {0}, reply = {0};
    if (json_is(kind, "tool.execute")) given = json_get(payload, "args");
    if (json_is(kind, "bodyTransform")) given = json_get(payload, "body");
    if (json_is(kind, "http.send")) {
        put_text(&shown, "{\"method\":"), put_json(&shown, json_get(payload, "method")), put_text(&shown, ",\"url\":");
        put_json(&shown, json_get(payload, "url")), put_text(&shown, "}");
    } else if (json_is(kind, "store.save")) {
        put_text(&shown, "{\"id\":"), put_json(&shown, json_get(payload, "id")), put_text(&shown, ",\"messages\":");
        put_json(&shown, json_get(payload, "transcript")), put_text(&shown, "}");
    } else {
        put_json(&shown, given);
    }
    body = strncmp(kind.text, "\"store", 6) == 0 ? kind : whole(&h->kind);
    put_text(&line, "{\"handler\":"), put_number(&line, number), put_text(&line, ",\"kind\":"), put_json(&line, body);
    put_text(&line, ",\"payload\":"), put_json(&line, whole(&shown)), put_text(&line, "}");
    add(&calls, whole(&line));
    if (call != 0) behave(h, whole(&h->behaviour), h->kind.text, given, payload, &reply);
    char *error;
    uint64_t length;
    /* Refused when the run was cancelled meanwhile. */
    if (reply.length > 0 && ts_respond(engine, call, reply.text, reply.length, &error, &length) == TS_REFUSED)
        ts_text_free(error, length);
    free(line.text), free(shown.text), free(reply.text);
}

/* The operations */

/* The arguments with `{"handler": N}` where the case has the number of a function, and without what is only for shims. */
static void put_args(buffer *to, json value, json name) {
    static const char *const functions[] = {"bodyTransform", "beforeLLM", "afterLLM",   "beforeTool", "afterTool",
                                            "onError",       "store",     "httpClient", "onMetric"};
    bool opens = name.text == NULL || json_is(name, "options") || json_is(name, "hooks");
    const char *at = NULL;
    json key, inner;
    if (opens && *value.text == '{') {
        put(to, "{", 1);
        while (json_next(value, &at, &key, &inner)) {
            if (json_is(key, "stopAfter")) continue;
            put(to, ",", to->text[to->length - 1] != '{');
            put_json(to, key), put(to, ":", 1), put_args(to, inner, key);
        }
        put(to, "}", 1);
        return;
    }
    bool function = false;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        function |= name.text != NULL && json_is(name, functions[i]) && *value.text >= '0' && *value.text <= '9';
    put_text(to, function ? "{\"handler\":" : ""), put_json(to, value), put_text(to, function ? "}" : "");
}

/* Submits; a refusal is the answer to the step. */
static bool submit(uint64_t id, const buffer *request) {
    char *text;
    uint64_t length;
    if (ts_submit(engine, id, request->text, request->length, &text, &length) == TS_OK) return true;
    say(id & ~NEXT, "error", (json){text, length}, NULL);
    ts_text_free(text, length);
    return false;
}

static void pull(uint64_t step) {
    buffer request = {0};
    put_text(&request, "{\"op\":\"stream.next\",\"args\":{\"stream\":"), put_number(&request, step), put_text(&request, "}}");
    submit(step | NEXT, &request);
    free(request.text);
}

static void answer_stream(stream *s) {
    buffer all = {0};
    put_text(&all, "{\"events\":["), put(&all, s->items.text, s->items.length), put_text(&all, "]}");
    json ending = json_at(s->ending.length > 0 ? s->ending.text : "{\"type\":\"done\"}");
    if (json_is(json_get(ending, "type"), "done")) say(s->step, "ok", whole(&all), NULL);
    else say(s->step, "error", json_get(ending, "error"), &s->items);
    free(all.text);
}

static void forget_stream(stream *s) {
    stream **link = &streams;
    while (*link != s) link = &(*link)->before;
    *link = s->before;
    free(s->items.text), free(s->ending.text), free(s);
}

static void finish(uint64_t id, json event) {
    json error = json_get(event, "error"), result = json_get(event, "result"), none, item;
    const char *at = NULL;
    stream *s = streams;
    while (s != NULL && s->step != (id & ~NEXT)) s = s->before;
    if (s == NULL) {
        say(id, error.text == NULL ? "ok" : "error", error.text == NULL ? result : error, NULL);
    } else if ((id & NEXT) == 0) {
        put_json(&s->ending, event);
        if (s->left) forget_stream(s);
    } else {
        while (s->count < s->most && json_next(json_get(result, "items"), &at, &none, &item)) add(&s->items, item), s->count++;
        bool end = *json_get(result, "end").text == 't';
        s->left = s->count == s->most && !end;
        if (!s->left && !end) return pull(s->step);
        answer_stream(s);
        if (end) forget_stream(s);
        else ts_cancel(engine, s->step);
    }
}

static void begin(json line) {
    json op = json_get(line, "op"), args = json_get(line, "args"), key, value, step = json_get(line, "step");
    uint64_t id = json_number(step);
    const char *at = NULL;
    while (json_next(json_get(line, "handlers"), &at, &key, &value)) {
        handler *h = calloc(1, sizeof *h);
        h->number = strtoull(key.text + 1, NULL, 10);
        put_json(&h->kind, json_get(value, "kind")), put_json(&h->behaviour, json_get(value, "behaviour"));
        h->before = handlers, handlers = h;
    }
    buffer *list = json_is(op, "host.calls") ? &calls : json_is(op, "host.logs") ? &logs : &metrics, text = {0};
    if (json_is(op, "cancel")) {
        ts_cancel(engine, json_number(json_get(args, "step")));
        say(id, "ok", json_at("{}"), NULL);
    } else if (json_is(op, "host.reset")) {
        calls.length = logs.length = metrics.length = 0;
        say(id, "ok", json_at("{}"), NULL);
    } else if (strncmp(op.text, "\"host.", 6) == 0) {
        put_text(&text, "["), put(&text, list->text, list->length), put_text(&text, "]");
        say(id, "ok", whole(&text), NULL);
    } else {
        put_text(&text, "{\"op\":"), put_json(&text, op), put_text(&text, ",\"args\":");
        put_args(&text, args, (json){NULL, 0}), put_text(&text, "}");
        if (submit(id, &text) && json_is(op, "client.stream")) {
            stream *s = calloc(1, sizeof *s);
            json most = json_get(args, "stopAfter");
            s->step = id, s->most = most.text == NULL ? UINT64_MAX : json_number(most);
            s->before = streams, streams = s;
            pull(id);
        }
    }
    free(text.text);
}

static void *collect(void *unused) {
    char *text;
    uint64_t length;
    json none, event;
    while (ts_poll(engine, TS_FOREVER, 0, &text, &length) == TS_OK) {
        const char *at = NULL;
        pthread_mutex_lock(&lock);
        while (json_next(json_at(text), &at, &none, &event)) {
            json type = json_get(event, "type");
            if (json_is(type, "host_call")) serve(event);
            else if (!json_is(type, "host_call_cancelled")) finish(json_number(json_get(event, "op")), event);
        }
        pthread_mutex_unlock(&lock);
        ts_text_free(text, length);
    }
    return unused;
}

int main(void) {
    const char *options = "{\"log\":\"debug\",\"hostCalls\":[\"tool.execute\",\"hook.beforeLLM\",\"hook.afterLLM\","
                          "\"hook.beforeTool\",\"hook.afterTool\",\"bodyTransform\",\"onError\",\"store.get\",\"store.save\","
                          "\"http.send\",\"http.read\"]}";
    const char *version = "{\"op\":\"version\"}";
    char *text, *line = NULL;
    uint64_t length;
    size_t room = 0;
    pthread_t pump;
    if (ts_engine_new(options, strlen(options), &engine, &text, &length) != TS_OK) return 1;
    if (ts_call(engine, version, strlen(version), &text, &length) != TS_OK) return 1;
    printf("{\"ready\":{\"language\":\"c\",%s}\n", text + 1), fflush(stdout);
    ts_text_free(text, length);
    pthread_create(&pump, NULL, collect, NULL);
    while (getline(&line, &room, stdin) > 0) {
        pthread_mutex_lock(&lock);
        begin(json_at(line));
        pthread_mutex_unlock(&lock);
    }
    free(line);
    ts_engine_close(engine, 5000);
    pthread_join(pump, NULL);
    ts_engine_free(engine);
    return 0;
}
