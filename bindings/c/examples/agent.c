/* A whole agent with one tool of its own. Set TOOLSPAN_BASE_URL and TOOLSPAN_MODEL, and TOOLSPAN_STYLE when it is not
   `openai`; then `agent "What is 2 + 2?"`. The engine works on its own threads; this program collects what happened. */
#include "json.h"
#include <toolspan.h>

static uint64_t engine;

/* Ends the program with what the library said. */
static void fail(const char *what, const char *text, uint64_t length) {
    fprintf(stderr, "%s: %.*s\n", what, (int)length, text == NULL ? "" : text);
    exit(1);
}

static const char *setting(const char *name, const char *otherwise) {
    const char *value = getenv(name);
    if (value == NULL && otherwise == NULL) fail(name, "set this variable", 17);
    return value == NULL ? otherwise : value;
}

/* The tool: adds two numbers. Writes the answer to the host call. */
static void add(json args, buffer *reply) {
    json a = json_get(args, "a"), b = json_get(args, "b");
    if (a.text == NULL || b.text == NULL) {
        put_text(reply, "{\"error\":{\"message\":\"add needs a and b\"}}");
        return;
    }
    char sum[64];
    snprintf(sum, sizeof sum, "{\"ok\":{\"value\":%g}}", strtod(a.text, NULL) + strtod(b.text, NULL));
    put_text(reply, sum);
}

static void answer(json event) {
    buffer reply = {0};
    char *error;
    uint64_t length;
    fprintf(stderr, "[%.*s]\n", (int)json_get(event, "payload").length, json_get(event, "payload").text);
    add(json_get(json_get(event, "payload"), "args"), &reply);
    /* Refused when the run was cancelled meanwhile, which is no failure of ours. */
    if (ts_respond(engine, json_number(json_get(event, "call")), reply.text, reply.length, &error, &length) == TS_REFUSED)
        ts_text_free(error, length);
    free(reply.text);
}

/* Starts an operation and serves the tool until it ends. The result is appended to `result`. */
static void perform(uint64_t op, const buffer *request, buffer *result) {
    char *text;
    uint64_t length;
    if (ts_submit(engine, op, request->text, request->length, &text, &length) != TS_OK) fail("submit", text, length);
    for (bool ended = false; !ended;) {
        if (ts_poll(engine, TS_FOREVER, 0, &text, &length) != TS_OK) fail("poll", text, length);
        const char *at = NULL;
        json none, event;
        while (json_next(json_at(text), &at, &none, &event)) {
            json type = json_get(event, "type");
            if (json_is(type, "host_call")) {
                answer(event);
            } else if (json_number(json_get(event, "op")) == op && !json_is(type, "host_call_cancelled")) {
                ended = true;
                json error = json_get(event, "error");
                if (!json_is(type, "done")) fail("the operation failed", error.text, error.length);
                put_json(result, json_get(event, "result"));
            }
        }
        ts_text_free(text, length);
    }
}

int main(int argc, char **argv) {
    if (ts_abi_version() != 1) fail("this program was written for another version of the library", NULL, 0);
    const char *options = "{\"hostCalls\":[\"tool.execute\"]}";
    char *text;
    uint64_t length;
    if (ts_engine_new(options, strlen(options), &engine, &text, &length) != TS_OK) fail("engine", text, length);

    buffer request = {0}, toolkit = {0}, client = {0}, result = {0}, said = {0};
    put_text(&request, "{\"op\":\"toolkit.create\",\"args\":{\"options\":{\"tools\":[{\"name\":\"add\",\"handler\":1,"
                       "\"description\":\"Adds two numbers\",\"inputSchema\":{\"type\":\"object\",\"properties\":"
                       "{\"a\":{\"type\":\"number\"},\"b\":{\"type\":\"number\"}},\"required\":[\"a\",\"b\"]}}]}}}");
    perform(1, &request, &toolkit);

    const char *base_url = setting("TOOLSPAN_BASE_URL", NULL), *model = setting("TOOLSPAN_MODEL", NULL);
    const char *style = setting("TOOLSPAN_STYLE", "openai");
    request.length = 0;
    put_text(&request, "{\"op\":\"client.create\",\"args\":{\"options\":{\"baseUrl\":");
    put_string(&request, base_url, strlen(base_url));
    put_text(&request, ",\"style\":");
    put_string(&request, style, strlen(style));
    put_text(&request, ",\"model\":");
    put_string(&request, model, strlen(model));
    if (getenv("TOOLSPAN_API_KEY") != NULL) put_text(&request, ",\"apiKeyEnv\":\"TOOLSPAN_API_KEY\"");
    put_text(&request, "}}}");
    perform(2, &request, &client);

    const char *prompt = argc > 1 ? argv[1] : "What is 2 + 2? Use the tool.";
    request.length = 0;
    put_text(&request, "{\"op\":\"client.run\",\"args\":{\"client\":");
    put_json(&request, json_get(json_at(client.text), "client"));
    put_text(&request, ",\"toolkit\":");
    put_json(&request, json_get(json_at(toolkit.text), "toolkit"));
    put_text(&request, ",\"prompt\":");
    put_string(&request, prompt, strlen(prompt));
    put_text(&request, "}}");
    perform(3, &request, &result);

    put_unquoted(&said, json_get(json_at(result.text), "text"));
    printf("%s\n", said.text);
    int32_t closed = ts_engine_close(engine, 5000);
    ts_engine_free(engine);
    free(request.text), free(toolkit.text), free(client.text), free(result.text), free(said.text);
    return closed == TS_OK ? 0 : 1;
}
