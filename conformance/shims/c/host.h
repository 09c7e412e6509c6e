/* What the host's functions do in a case (see "The host's functions" in ../../README.md), on slices of JSON text. */
#include "json.h"
#include <netdb.h>
#include <unistd.h>

static json whole(const buffer *text) { return (json){text->text, text->length}; }

static bool json_equal(json a, json b) { return a.length == b.length && memcmp(a.text, b.text, a.length) == 0; }

static void append_to_last_user(buffer *to, json messages, json text) {
    const char *at = NULL, *last = NULL, *inside = NULL;
    json key, message, value;
    while (json_next(messages, &at, &key, &message))
        if (json_is(json_get(message, "role"), "user")) last = message.text;
    put(to, "[", 1);
    for (at = NULL; json_next(messages, &at, &key, &message);) {
        put(to, ",", to->text[to->length - 1] != '[');
        if (message.text != last) {
            put_json(to, message);
            continue;
        }
        put(to, "{", 1);
        for (inside = NULL; json_next(message, &inside, &key, &value);) {
            put(to, ",", to->text[to->length - 1] != '{');
            put_json(to, key), put(to, ":", 1);
            put(to, value.text, json_is(key, "content") ? value.length - 1 : value.length);
            if (!json_is(key, "content")) continue;
            if (*value.text == '"') put(to, text.text + 1, text.length - 1);
            else put_text(to, ",{\"type\":\"text\",\"text\":"), put_json(to, text), put_text(to, "}]");
        }
        put(to, "}", 1);
    }
    put(to, "]", 1);
}

static json member(json object, json key) {
    const char *at = NULL;
    json name, value;
    while (json_next(object, &at, &name, &value))
        if (json_equal(name, key)) return value;
    return (json){NULL, 0};
}

static void edit(buffer *to, json body, json how) {
    json set = json_get(how, "set"), text = json_get(how, "appendToLastUser"), key, value, name, none;
    const char *at = NULL, *in = NULL;
    put(to, "{", 1);
    while (json_next(body, &at, &key, &value)) {
        bool dropped = false;
        for (in = NULL; json_next(json_get(how, "drop"), &in, &none, &name);)
            dropped |= json_equal(name, key);
        if (dropped) continue;
        put(to, ",", to->length > 1);
        put_json(to, key), put(to, ":", 1);
        if (member(set, key).text != NULL) put_json(to, member(set, key));
        else if (text.text != NULL && json_is(key, "messages")) append_to_last_user(to, value, text);
        else put_json(to, value);
    }
    for (at = NULL; json_next(set, &at, &key, &value);) {
        if (member(body, key).text != NULL) continue;
        put(to, ",", to->length > 1);
        put_json(to, key), put(to, ":", 1), put_json(to, value);
    }
    put(to, "}", 1);
}

/* Sends the request with sockets and gives the answer back in one piece. */
static bool send_http(buffer *to, json request) {
    buffer url = {0}, raw = {0}, body = {0};
    put_unquoted(&url, json_get(request, "url")), put_unquoted(&body, json_get(request, "body"));
    char *host = url.text + strlen("http://"), *path = strchr(host, '/'), *port = strchr(host, ':');
    put_text(&raw, "POST "), put_text(&raw, path), put_text(&raw, " HTTP/1.0\r\nhost: ");
    put(&raw, host, (size_t)(path - host)), put_text(&raw, "\r\nx-injected: 1\r\ncontent-length: ");
    put_number(&raw, body.length), *path = *port = '\0';
    const char *at = NULL;
    json none, header;
    while (json_next(json_get(request, "headers"), &at, &none, &header)) {
        json name = json_at(header.text + 1), value = json_at(strchr(name.text + name.length, ',') + 1);
        put_text(&raw, "\r\n"), put_unquoted(&raw, name), put_text(&raw, ": "), put_unquoted(&raw, value);
    }
    put_text(&raw, "\r\n\r\n"), put(&raw, body.text, body.length);
    struct addrinfo want = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    if (getaddrinfo(host, port + 1, &want, &found) != 0) return false;
    int peer = socket(found->ai_family, found->ai_socktype, 0);
    if (connect(peer, found->ai_addr, found->ai_addrlen) != 0 || write(peer, raw.text, raw.length) < 0) return false;
    char piece[4096];
    raw.length = 0;
    for (ssize_t got; (got = read(peer, piece, sizeof piece)) > 0;) put(&raw, piece, (size_t)got);
    close(peer), freeaddrinfo(found);
    char *line = strstr(raw.text, "\r\n"), *end = strstr(raw.text, "\r\n\r\n");
    if (end == NULL) return false;
    put_text(to, "{\"status\":"), put(to, raw.text + 9, 3), put_text(to, ",\"headers\":[");
    for (bool first = true; line < end; first = false) {
        char *name = line + 2, *colon = strchr(name, ':');
        line = strstr(name, "\r\n");
        put_text(to, first ? "[" : ",["), put_string(to, name, (size_t)(colon - name)), put(to, ",", 1);
        put_string(to, colon + 2, (size_t)(line - colon - 2)), put(to, "]", 1);
    }
    put_text(to, "],\"body\":"), put_string(to, end + 4, raw.length - (size_t)(end + 4 - raw.text)), put(to, "}", 1);
    free(url.text), free(raw.text), free(body.text);
    return true;
}

/* One conversation of a store. */
typedef struct kept {
    buffer id, transcript;
    struct kept *before;
} kept;

static void store(kept **all, json payload, buffer *value) {
    json id = json_get(payload, "id"), transcript = json_get(payload, "transcript");
    kept *one = *all;
    while (one != NULL && !json_equal(whole(&one->id), id)) one = one->before;
    if (transcript.text == NULL) {
        if (one != NULL) put_json(value, whole(&one->transcript));
        else put_text(value, "null");
        return;
    }
    if (one == NULL) {
        one = calloc(1, sizeof *one);
        put_json(&one->id, id);
        one->before = *all, *all = one;
    }
    one->transcript.length = 0;
    put_json(&one->transcript, transcript), put_text(value, "null");
}

/* A function of the host, as the case describes it. */
typedef struct handler {
    uint64_t number, count;
    buffer kind, behaviour;
    kept *conversations;
    struct handler *before;
} handler;

/* Writes the reply; leaves it empty when there is to be none. */
static void behave(handler *h, json behaviour, const char *kind, json given, json payload, buffer *reply) {
    const char *at = NULL;
    json name = {NULL, 0}, what = {NULL, 0}, item = {NULL, 0}, none;
    buffer value = {0};
    json_next(behaviour, &at, &name, &what);
    if (json_is(name, "sequence")) {
        at = NULL, h->count++;
        for (uint64_t n = 0; n < h->count && json_next(what, &at, &none, &item); n++) {}
        behave(h, item, kind, given, payload, reply);
        return;
    }
    if (json_is(name, "hang")) return;
    if (json_is(name, "return")) put_json(&value, what);
    else if (json_is(name, "echo")) put_json(&value, given);
    else if (json_is(name, "edit")) edit(&value, given, what);
    else if (json_is(name, "store")) store(&h->conversations, payload, &value);
    else if (!json_is(name, "http") || !send_http(&value, payload)) {
        put_text(reply, "{\"error\":{\"message\":");
        if (json_is(name, "throw")) put_json(reply, what);
        else put_text(reply, "\"the request failed\"");
        put_text(reply, "}}");
        return;
    }
    bool is_result = json_get(whole(&value), "output").text != NULL && json_get(whole(&value), "isError").text != NULL;
    bool tool = strcmp(kind, "\"tool.execute\"") == 0;
    put_text(reply, !tool ? "{\"ok\":" : is_result ? "{\"ok\":{\"result\":" : "{\"ok\":{\"value\":");
    put_json(reply, whole(&value)), put_text(reply, tool ? "}}" : "}");
    free(value.text);
}
