/* The functions of toolspan.h as a program in C uses and misuses them. Each check says what it is about. */
#include "json.h"
#include <pthread.h>
#include <sys/wait.h>
#include <toolspan.h>
#include <unistd.h>

#define TEXT(literal) literal, strlen(literal)

static _Atomic int checks, failures;

static void check(bool holds, const char *what) {
    checks++;
    if (holds) return;
    failures++;
    fprintf(stderr, "FAILED: %s\n", what);
}

/* The code of a record, and frees it. */
static bool refused(int32_t status, char *text, uint64_t length, const char *code) {
    bool same = status == TS_REFUSED && json_is(json_get(json_at(text), "code"), code) && text[length] == '\0';
    ts_text_free(text, length);
    return same;
}

static uint64_t new_engine(void) {
    uint64_t engine, length;
    char *error;
    check(ts_engine_new(TEXT("{\"hostCalls\":[\"tool.execute\"]}"), &engine, &error, &length) == TS_OK, "an engine is made");
    return engine;
}

/* Submits and gives the next batch of events. */
static char *perform(uint64_t engine, uint64_t op, const char *request, uint64_t *length) {
    char *text;
    check(ts_submit(engine, op, request, strlen(request), &text, length) == TS_OK, "a request is accepted");
    check(ts_poll(engine, TS_FOREVER, 1, &text, length) == TS_OK, "an event comes");
    return text;
}

static void misuse(void) {
    uint64_t engine = 7, length = 7;
    char *text = NULL;
    check(ts_engine_new(TEXT("{}"), NULL, &text, &length) == TS_NULL, "nowhere to write the number");
    check(ts_engine_new(TEXT("{}"), &engine, NULL, &length) == TS_NULL, "nowhere to write the error");
    int32_t status = ts_engine_new(TEXT("{\"worker\":1}"), &engine, &text, &length);
    check(refused(status, text, length, "invalid_argument") && engine == 0, "an unknown option");
    engine = new_engine();
    status = ts_call(engine, NULL, 5, &text, &length);
    check(refused(status, text, length, "invalid_argument"), "a null request");
    status = ts_call(engine, NULL, 0, &text, &length);
    check(refused(status, text, length, "invalid_argument"), "an empty request");
    status = ts_call(engine, "\xff\xfe", 2, &text, &length);
    check(refused(status, text, length, "invalid_argument"), "a request that is not UTF-8");
    status = ts_call(engine, "{}", UINT64_MAX, &text, &length);
    check(refused(status, text, length, "invalid_argument"), "a length beyond the memory");
    status = ts_submit(engine, 1, TEXT("{\"op\":\"test.panic\",\"args\":{\"at\":\"poll\"}}"), &text, &length);
    check(refused(status, text, length, "invalid_argument"), "no operation for tests is in the library");
    status = ts_respond(engine, 99, TEXT("{\"ok\":1}"), &text, &length);
    check(refused(status, text, length, "not_found"), "an answer to nothing");
    check(ts_poll(engine, 0, 0, NULL, NULL) == TS_NULL, "nowhere to write events");
    ts_cancel(engine, 4711);
    ts_text_free(NULL, 0);
    ts_engine_free(engine);
}

static void a_tool_is_asked(void) {
    uint64_t engine = new_engine(), length;
    char *text = perform(engine, 1, "{\"op\":\"toolkit.create\",\"args\":{\"options\":{\"tools\":[{\"name\":\"t\",\"handler\":3}]}}}", &length);
    buffer request = {0};
    json none, event;
    const char *at = NULL;
    check(json_next(json_at(text), &at, &none, &event) && json_is(json_get(event, "type"), "done"), "a toolkit is made");
    put_text(&request, "{\"op\":\"toolkit.execute\",\"args\":{\"name\":\"t\",\"args\":{\"z\":1,\"a\":1.50},\"toolkit\":");
    put_json(&request, json_get(json_get(event, "result"), "toolkit")), put_text(&request, "}}");
    ts_text_free(text, length);
    text = perform(engine, 2, request.text, &length);
    at = NULL;
    check(json_next(json_at(text), &at, &none, &event) && json_is(json_get(event, "kind"), "tool.execute"), "the host is asked");
    json args = json_get(json_get(event, "payload"), "args");
    check(args.length == 16 && memcmp(args.text, "{\"z\":1,\"a\":1.50}", 16) == 0, "arguments pass as they were written");
    uint64_t call = json_number(json_get(event, "call"));
    ts_text_free(text, length);
    check(ts_respond(engine, call, TEXT("{\"ok\":{\"value\":\"fine\"}}"), &text, &length) == TS_OK, "an answer is taken");
    check(ts_poll(engine, TS_FOREVER, 0, &text, &length) == TS_OK && strstr(text, "\"output\":\"fine\"") != NULL, "and is the result");
    ts_text_free(text, length);
    check(ts_engine_close(engine, TS_FOREVER) == TS_OK, "everything ends");
    check(ts_poll(engine, TS_FOREVER, 0, &text, &length) == TS_CLOSED && text == NULL, "a closed engine has no more events");
    int32_t status = ts_call(engine, TEXT("{\"op\":\"version\"}"), &text, &length);
    check(refused(status, text, length, "closed"), "a closed engine does nothing");
    ts_engine_free(engine), ts_engine_free(engine);
    status = ts_poll(engine, 0, 0, &text, &length);
    check(refused(status, text, length, "closed"), "a freed engine says closed");
    check(ts_engine_close(engine, 0) == TS_CLOSED, "a freed engine is closed");
    uint64_t other = new_engine();
    check(other != engine, "a number is not used again");
    ts_engine_free(other);
    free(request.text);
}

static void *wait_for_the_end(void *engine) {
    char *text;
    uint64_t length;
    while (ts_poll(*(uint64_t *)engine, TS_FOREVER, 0, &text, &length) == TS_OK) ts_text_free(text, length);
    ts_text_free(text, length);
    return NULL;
}

static void freeing_ends_a_waiting_poll(void) {
    uint64_t engine = new_engine();
    pthread_t pump;
    pthread_create(&pump, NULL, wait_for_the_end, &engine);
    ts_engine_free(engine);
    check(pthread_join(pump, NULL) == 0, "a waiting poll ends when the engine is freed");
}

static void *many(void *unused) {
    for (int i = 0; i < 20; i++) {
        uint64_t engine = new_engine(), length;
        ts_text_free(perform(engine, 1, "{\"op\":\"version\"}", &length), length);
        ts_engine_close(engine, TS_FOREVER), ts_engine_free(engine);
    }
    return unused;
}

static void many_threads(void) {
    pthread_t threads[32];
    for (int i = 0; i < 32; i++) pthread_create(&threads[i], NULL, many, NULL);
    for (int i = 0; i < 32; i++) pthread_join(threads[i], NULL);
}

static void a_forked_child_is_told_so(void) {
    uint64_t engine = new_engine(), length;
    ts_text_free(perform(engine, 1, "{\"op\":\"mcp.list\",\"args\":{\"mcpConfig\":{}}}", &length), length);
    pid_t child = fork();
    if (child == 0) {
        char *text;
        failures = 0;
        int32_t status = ts_call(engine, TEXT("{\"op\":\"version\"}"), &text, &length);
        check(refused(status, text, length, "forked"), "a call in the child");
        status = ts_poll(engine, TS_FOREVER, 0, &text, &length);
        check(refused(status, text, length, "forked"), "a poll in the child");
        ts_engine_free(engine);
        uint64_t own = new_engine();
        check(own != engine, "the child's engine has a number of its own");
        ts_text_free(perform(own, 1, "{\"op\":\"mcp.list\",\"args\":{\"mcpConfig\":{}}}", &length), length);
        check(ts_engine_close(own, TS_FOREVER) == TS_OK, "an engine of the child works");
        ts_engine_free(own);
        _exit(failures == 0 ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a forked child");
    ts_text_free(perform(engine, 2, "{\"op\":\"version\"}", &length), length);
    check(ts_engine_close(engine, TS_FOREVER) == TS_OK, "the parent goes on");
    ts_engine_free(engine);
}

int main(int argc, char **argv) {
    misuse();
    a_tool_is_asked();
    freeing_ends_a_waiting_poll();
    many_threads();
    /* The child gives up what belongs to its parent without freeing it, which a leak checker takes for leaks. */
    if (argc < 2 || strcmp(argv[1], "--no-fork") != 0) a_forked_child_is_told_so();
    printf("%d checks, %d failed\n", checks, failures);
    return failures == 0 ? 0 : 1;
}
