/* Just enough JSON for a small C program: slices of valid text, and a buffer to write into. Everything the library hands
   out is valid. A larger program brings the JSON library it already has. */
#ifndef TOOLSPAN_EXAMPLE_JSON_H
#define TOOLSPAN_EXAMPLE_JSON_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One value inside a text; `text` is NULL when there is none. */
typedef struct json {
    const char *text;
    size_t length;
} json;

/* Text that grows; always ends with a zero byte once something was put. */
typedef struct buffer {
    char *text;
    size_t length, room;
} buffer;

static inline void put(buffer *to, const char *text, size_t length) {
    if (to->length + length + 1 > to->room) {
        to->room = 2 * (to->length + length) + 64;
        to->text = realloc(to->text, to->room);
        if (to->text == NULL) abort();
    }
    if (length > 0) memcpy(to->text + to->length, text, length);
    to->length += length;
    to->text[to->length] = '\0';
}

static inline void put_text(buffer *to, const char *text) { put(to, text, strlen(text)); }

static inline void put_json(buffer *to, json value) { put(to, value.text, value.length); }

static inline void put_number(buffer *to, uint64_t number) {
    char digits[24];
    put(to, digits, (size_t)snprintf(digits, sizeof digits, "%llu", (unsigned long long)number));
}

/* A JSON string with this text in it. */
static inline void put_string(buffer *to, const char *text, size_t length) {
    put(to, "\"", 1);
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        char escape[8];
        if (c == '"' || c == '\\') put(to, escape, (size_t)snprintf(escape, sizeof escape, "\\%c", c));
        else if (c < 0x20) put(to, escape, (size_t)snprintf(escape, sizeof escape, "\\u%04x", c));
        else put(to, text + i, 1);
    }
    put(to, "\"", 1);
}

static inline const char *json_space(const char *at) { return at + strspn(at, " \t\r\n"); }

/* The value that starts here, without what follows it. */
static inline json json_at(const char *at) {
    at = json_space(at);
    const char *end = at;
    int depth = 0;
    do {
        if (*end == '"') {
            for (end++; *end != '"'; end++)
                if (*end == '\\') end++;
        } else if (*end == '{' || *end == '[') {
            depth++;
        } else if (*end == '}' || *end == ']') {
            depth--;
        } else if (depth == 0) {
            end += strcspn(end, ",:]} \t\r\n");
            return (json){at, (size_t)(end - at)};
        }
        end++;
    } while (depth > 0);
    return (json){at, (size_t)(end - at)};
}

/* Steps through an array or an object; `at` starts as NULL. For an array `key` stays empty. */
static inline bool json_next(json container, const char **at, json *key, json *value) {
    if (container.text == NULL || (*container.text != '{' && *container.text != '[')) return false;
    const char *next = json_space(*at == NULL ? container.text + 1 : *at);
    if (*next == ',') next = json_space(next + 1);
    if (*next == '}' || *next == ']') return false;
    *key = (json){NULL, 0};
    if (*container.text == '{') {
        *key = json_at(next);
        next = json_space(key->text + key->length) + 1; /* the colon */
    }
    *value = json_at(next);
    *at = value->text + value->length;
    return true;
}

/* Whether the value is the JSON string of this plain text. */
static inline bool json_is(json value, const char *plain) {
    size_t length = strlen(plain);
    return value.length == length + 2 && value.text[0] == '"' && memcmp(value.text + 1, plain, length) == 0;
}

/* The member of that name. */
static inline json json_get(json object, const char *name) {
    const char *at = NULL;
    json key, value;
    while (json_next(object, &at, &key, &value))
        if (json_is(key, name)) return value;
    return (json){NULL, 0};
}

static inline uint64_t json_number(json value) { return value.text == NULL ? 0 : strtoull(value.text, NULL, 10); }

/* Puts the text inside a JSON string. Escaped surrogate pairs become one character. */
static inline void put_unquoted(buffer *to, json string) {
    put(to, "", 0);
    for (size_t i = 1; i + 1 < string.length; i++) {
        if (string.text[i] != '\\') {
            put(to, string.text + i, 1);
            continue;
        }
        static const char from[] = "bfnrt", into[] = "\b\f\n\r\t";
        const char *plain = strchr(from, string.text[++i]);
        if (string.text[i] != 'u') {
            put(to, plain == NULL ? string.text + i : into + (plain - from), 1);
            continue;
        }
        unsigned code = 0, low = 0;
        sscanf(string.text + i + 1, "%4x", &code);
        i += 4;
        if (code >= 0xd800 && code < 0xdc00 && sscanf(string.text + i + 1, "\\u%4x", &low) == 1) {
            code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
            i += 6;
        }
        char utf8[4];
        size_t more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
        static const unsigned char lead[] = {0, 0xc0, 0xe0, 0xf0};
        utf8[0] = (char)(lead[more] | (code >> (6 * more)));
        for (size_t n = 1; n <= more; n++) utf8[n] = (char)(0x80 | ((code >> (6 * (more - n))) & 0x3f));
        put(to, utf8, more + 1);
    }
}

#endif
