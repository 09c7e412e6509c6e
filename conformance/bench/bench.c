/* The scenario from C, through the C ABI. See src/lib.rs for what it prints. */
#include "json.h"
#include <toolspan.h>
#include <time.h>

static uint64_t engine;

static void fail(const char *what, const char *text, uint64_t length) {
    fprintf(stderr, "%s: %.*s\n", what, (int)length, text == NULL ? "" : text);
    exit(1);
}

/* Submits and waits for the one terminal event; its result is put into `result`. */
static void perform(uint64_t op, const buffer *request, buffer *result) {
    char *text;
    uint64_t length;
    if (ts_submit(engine, op, request->text, request->length, &text, &length) != TS_OK) fail("submit", text, length);
    for (bool ended = false; !ended;) {
        if (ts_poll(engine, TS_FOREVER, 0, &text, &length) != TS_OK) fail("poll", text, length);
        const char *at = NULL;
        json none, event;
        while (json_next((json){text, length}, &at, &none, &event)) {
            ended = true;
            if (!json_is(json_get(event, "type"), "done")) fail("the operation failed", event.text, event.length);
            result->length = 0;
            put_json(result, json_get(event, "result"));
        }
        ts_text_free(text, length);
    }
}

static double now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(void) {
    const char *text_of_plan = getenv("BENCH");
    if (text_of_plan == NULL) fail("BENCH", "set this variable", 17);
    json plan = json_at(text_of_plan);
    size_t warm_up = json_number(json_get(plan, "warmUp")), runs = json_number(json_get(plan, "runs"));
    char *text;
    uint64_t length;
    if (ts_engine_new("{}", 2, &engine, &text, &length) != TS_OK) fail("engine", text, length);

    buffer request = {0}, toolkit = {0}, client = {0}, result = {0};
    put_text(&request, "{\"op\":\"toolkit.create\",\"args\":{\"options\":{\"mcpConfig\":{\"mcpServers\":{\"calc\":{\"command\":");
    put_json(&request, json_get(plan, "command"));
    put_text(&request, "}}}}}}");
    perform(1, &request, &toolkit);
    request.length = 0;
    put_text(&request, "{\"op\":\"client.create\",\"args\":{\"options\":{\"style\":\"openai\",\"model\":\"bench\",\"baseUrl\":");
    put_json(&request, json_get(plan, "baseUrl"));
    put_text(&request, "}}}");
    perform(2, &request, &client);
    request.length = 0;
    put_text(&request, "{\"op\":\"client.run\",\"args\":{\"prompt\":\"What is 2 + 2, twice?\",\"client\":");
    put_json(&request, json_get(json_at(client.text), "client"));
    put_text(&request, ",\"toolkit\":");
    put_json(&request, json_get(json_at(toolkit.text), "toolkit"));
    put_text(&request, "}}");

    double *times = calloc(runs + 1, sizeof *times);
    if (times == NULL) abort();
    for (size_t run = 0; run < warm_up + runs; run++) {
        double start = now_us();
        perform(3, &request, &result);
        if (run >= warm_up) times[run - warm_up] = now_us() - start;
    }
    qsort(times, runs, sizeof *times, ascending);
    printf("{\"median_us\":%.1f,\"p95_us\":%.1f,\"runs\":%zu}\n", times[runs / 2], times[runs * 95 / 100], runs);
    int32_t closed = ts_engine_close(engine, 5000);
    ts_engine_free(engine);
    free(request.text), free(toolkit.text), free(client.text), free(result.text), free(times);
    return closed == TS_OK ? 0 : 1;
}
