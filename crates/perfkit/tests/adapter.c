/* An adapter in C for a product of a few lines: Unix datagram sockets in the scratch directory, one reader for each topic. */
#include "perfkit.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define LARGEST 60000

struct session {
    char scratch[64];
};

struct writer {
    int socket;
    struct sockaddr_un to;
    char mark[96];
};

struct reader {
    int socket;
    struct sockaddr_un at;
    char mark[96];
    perfkit_sink *sink;
    int listening;
    atomic_int ending;
    pthread_t thread;
};

static perfkit_status session_open(void *context, const perfkit_session *spec, void **out) {
    (void)context;
    /* Not heard by whoever reads events. */
    printf("a library that talks\n");
    fflush(stdout);
    if (spec->multicast == 1)
        return perfkit_fail(PERFKIT_UNSUPPORTED, "no multicast in C");
    /* A product that hangs. */
    while (spec->domain == 66)
        pause();
    if (strlen(spec->scratch) >= sizeof((struct session *)0)->scratch)
        return perfkit_fail(PERFKIT_FAILED, "the path of the scratch directory is too long");
    struct session *session = calloc(1, sizeof *session);
    strcpy(session->scratch, spec->scratch);
    *out = session;
    return PERFKIT_OK;
}

static void session_close(void *session) { free(session); }

static void name(struct sockaddr_un *address, char *mark, size_t size, const struct session *session, const char *topic) {
    address->sun_family = AF_UNIX;
    snprintf(address->sun_path, sizeof address->sun_path, "%s/%.16s.r", session->scratch, topic);
    snprintf(mark, size, "%s/%.16s.w", session->scratch, topic);
}

static perfkit_status writer_new(void *session, const perfkit_endpoint *endpoint, void **out) {
    struct writer *writer = calloc(1, sizeof *writer);
    name(&writer->to, writer->mark, sizeof writer->mark, session, endpoint->topic);
    writer->socket = socket(AF_UNIX, SOCK_DGRAM, 0);
    FILE *mark = fopen(writer->mark, "w");
    if (writer->socket < 0 || mark == NULL)
        return perfkit_fail(PERFKIT_FAILED, strerror(errno));
    fclose(mark);
    *out = writer;
    return PERFKIT_OK;
}

static void writer_delete(void *handle) {
    struct writer *writer = handle;
    unlink(writer->mark);
    close(writer->socket);
    free(writer);
}

static perfkit_status writer_write(void *handle, uint32_t instance, const void *payload, size_t size) {
    struct writer *writer = handle;
    struct iovec parts[2] = {{&instance, sizeof instance}, {(void *)payload, size}};
    struct msghdr message = {.msg_name = &writer->to, .msg_namelen = sizeof writer->to, .msg_iov = parts, .msg_iovlen = 2};
    if (sendmsg(writer->socket, &message, 0) < 0)
        return perfkit_fail(PERFKIT_FAILED, strerror(errno));
    return PERFKIT_OK;
}

static uint32_t writer_matched(void *handle) {
    struct writer *writer = handle;
    return access(writer->to.sun_path, F_OK) == 0;
}

static perfkit_status reader_take(void *handle, uint64_t *count) {
    struct reader *reader = handle;
    static _Thread_local char buffer[4 + LARGEST];
    ssize_t octets;
    *count = 0;
    while ((octets = recv(reader->socket, buffer, sizeof buffer, MSG_DONTWAIT)) >= 4) {
        uint32_t instance;
        memcpy(&instance, buffer, sizeof instance);
        perfkit_deliver(reader->sink, instance, buffer + 4, (size_t)octets - 4);
        ++*count;
    }
    return PERFKIT_OK;
}

static perfkit_status reader_wait(void *handle, uint64_t timeout_ns, int32_t *ready) {
    struct reader *reader = handle;
    struct pollfd look = {.fd = reader->socket, .events = POLLIN};
    *ready = poll(&look, 1, (int)((timeout_ns + 999999) / 1000000)) > 0;
    return PERFKIT_OK;
}

static void *listen_to(void *handle) {
    struct reader *reader = handle;
    while (!reader->ending) {
        int32_t ready;
        uint64_t count;
        reader_wait(reader, 10000000, &ready);
        reader_take(reader, &count);
    }
    return NULL;
}

static perfkit_status reader_new(void *session, const perfkit_endpoint *endpoint, perfkit_sink *sink, void **out) {
    if (endpoint->payload_max > LARGEST)
        return perfkit_fail(PERFKIT_UNSUPPORTED, "samples above 60000 octets");
    struct reader *reader = calloc(1, sizeof *reader);
    name(&reader->at, reader->mark, sizeof reader->mark, session, endpoint->topic);
    reader->sink = sink;
    reader->socket = socket(AF_UNIX, SOCK_DGRAM, 0);
    if (bind(reader->socket, (struct sockaddr *)&reader->at, sizeof reader->at) < 0) {
        close(reader->socket);
        free(reader);
        return perfkit_fail(PERFKIT_FAILED, "there is a reader of this topic already");
    }
    reader->listening = endpoint->read == PERFKIT_READ_LISTENER;
    if (reader->listening)
        pthread_create(&reader->thread, NULL, listen_to, reader);
    *out = reader;
    return PERFKIT_OK;
}

static void reader_delete(void *handle) {
    struct reader *reader = handle;
    reader->ending = 1;
    if (reader->listening)
        pthread_join(reader->thread, NULL);
    unlink(reader->at.sun_path);
    close(reader->socket);
    free(reader);
}

static uint32_t reader_matched(void *handle) {
    struct reader *reader = handle;
    return access(reader->mark, F_OK) == 0;
}

static perfkit_status encode_cost(void *context, const char *type_name, uint64_t rounds, perfkit_encode_cost *cost) {
    (void)context;
    if (strcmp(type_name, "numbers") != 0)
        return PERFKIT_UNSUPPORTED;
    volatile double values[40];
    uint64_t begin = perfkit_now_ns();
    for (uint64_t round = 0; round < rounds; ++round)
        values[round % 40] = (double)round;
    cost->encode_ns = cost->decode_ns = (double)(perfkit_now_ns() - begin) / (double)rounds;
    cost->encoded_octets = sizeof values;
    return PERFKIT_OK;
}

int main(void) {
    perfkit_adapter adapter = {
        .abi = PERFKIT_ABI,
        .product = "Product of a test",
        .version = "1.0",
        .features = "listener waitset polling encode",
        .open = session_open,
        .close = session_close,
        .writer_new = writer_new,
        .writer_delete = writer_delete,
        .write = writer_write,
        .writer_matched = writer_matched,
        .reader_new = reader_new,
        .reader_delete = reader_delete,
        .reader_matched = reader_matched,
        .take = reader_take,
        .wait = reader_wait,
        .encode_cost = encode_cost,
    };
    return perfkit_main(&adapter);
}
