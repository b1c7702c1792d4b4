/* The worker side of `plainsong perf`, for adapters in C and C++.
 *
 * An adapter is an executable `perf-adapter-NAME` that speaks one product and nothing else. It fills in a table of
 * functions and hands over:
 *
 *     int main(void) { return perfkit_main(&adapter); }
 *
 * perfkit_main does the rest: it reads commands from standard input, makes the product's entities through the table, does
 * the workload, measures it and writes events to standard output. What the adapter or its product print to standard output goes to
 * standard error instead.
 *
 * Link with libplainsong_perfkit.a -lpthread -ldl -lm.
 *
 * Threads: sessions, writers and readers are made and deleted on the thread of perfkit_main. write, take, wait and the others
 * may be called on other threads, but never two at a time for one writer or reader. A listener calls
 * perfkit_deliver on any thread, but never two at a time for one sink, and not from within a call of the same reader's new
 * function; it may happen from within `write`.
 *
 * Strings and structures that a function is given are valid until it returns: copy what must last.
 */
#ifndef PERFKIT_H
#define PERFKIT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface, for perfkit_adapter.abi. */
#define PERFKIT_ABI 1u

/* How a call ended. */
typedef int32_t perfkit_status;
#define PERFKIT_OK 0
/* The product, or its adapter, has no such thing: the cell is shown as "not offered". */
#define PERFKIT_UNSUPPORTED 1
/* The product refused or failed. */
#define PERFKIT_FAILED 2
/* A reliable writer could not hand the sample over within its blocking time. */
#define PERFKIT_TIMEOUT 3

/* Gives `status` back and remembers why, for the thread that calls: `return perfkit_fail(PERFKIT_FAILED, "no writer");`. */
perfkit_status perfkit_fail(perfkit_status status, const char *reason);

/* The monotonic clock (CLOCK_MONOTONIC), nanoseconds. */
uint64_t perfkit_now_ns(void);

/* Where a session joins. */
typedef struct perfkit_session {
    uint32_t domain;
    const char *interface;      /* name or address; NULL: the product chooses */
    int32_t multicast;          /* user data by multicast: 1 yes, 0 no, -1 the product chooses */
    const char *const *peers;   /* addresses of other hosts, for what cannot discover */
    size_t peer_count;
    const char *listen;         /* address this host has for others; NULL: none given */
    int32_t tuned;              /* 1: the best settings that the product's makers document; 0: as it comes */
    const char *scratch;        /* a directory that all workers of a cell on this host share; may be "" */
} perfkit_session;

/* How a reader gets its samples. */
#define PERFKIT_READ_LISTENER 0  /* the product's threads call perfkit_deliver */
#define PERFKIT_READ_WAITSET 1   /* perfkit calls wait, then take */
#define PERFKIT_READ_POLLING 2   /* perfkit calls take every read_period_us, or always if that is 0 */

/* A writer or a reader. Its type is PerfKeyed if `keyed`, PerfBytes if not (perf.idl); `data` is the payload. */
typedef struct perfkit_endpoint {
    const char *topic;
    int32_t keyed;                  /* 1: the instance is a key */
    int32_t reliable;               /* RELIABILITY: 1 RELIABLE, 0 BEST_EFFORT */
    uint32_t history_depth;         /* HISTORY KEEP_LAST of this depth; 0: KEEP_ALL */
    int32_t transient_local;        /* DURABILITY: 1 TRANSIENT_LOCAL, 0 VOLATILE */
    uint64_t blocking_ms;           /* how long a reliable write may block */
    int32_t exclusive;              /* OWNERSHIP: 1 EXCLUSIVE with ownership_strength, 0 SHARED */
    int32_t ownership_strength;
    uint64_t deadline_ms;           /* DEADLINE; 0: none */
    uint64_t liveliness_ms;         /* LIVELINESS AUTOMATIC with this lease; 0: infinite */
    int32_t priority;               /* TRANSPORT_PRIORITY */
    uint64_t payload_max;           /* the largest payload that will be written */
    uint32_t instances;             /* the number of instances that will be written */
    int32_t batching;               /* 1: the product may put samples together */
    int32_t read;                   /* PERFKIT_READ_...; readers only */
    uint64_t read_period_us;        /* PERFKIT_READ_POLLING: time between looks */
    int32_t filtered;               /* readers only: 1: a content filter `instance < filter_instances_below` */
    uint32_t filter_instances_below;
} perfkit_endpoint;

/* Takes every sample of a reader. */
typedef struct perfkit_sink perfkit_sink;

/* Gives a sample to the sink of its reader, on the thread that reads it. `instance` is 0 for a product without instances. */
void perfkit_deliver(perfkit_sink *sink, uint32_t instance, const void *payload, size_t size);

/* A call of a reader whose cost is measured. */
#define PERFKIT_CALL_LOOKUP 0         /* lookup_instance */
#define PERFKIT_CALL_READ_INSTANCE 1  /* read_instance, up to 1 sample */
#define PERFKIT_CALL_READ_ALL 2       /* read of everything */
#define PERFKIT_CALL_QUERY 3          /* read with a QueryCondition `instance = N` */
#define PERFKIT_CALL_TAKE_ONE 4       /* take of one sample */

/* The time that serialization takes. */
typedef struct perfkit_encode_cost {
    double encode_ns;         /* to encode one sample */
    double decode_ns;         /* to decode one sample */
    uint64_t encoded_octets;  /* of one sample */
} perfkit_encode_cost;

/* A product. Functions that may be NULL say so. Handles are the adapter's own pointers. */
typedef struct perfkit_adapter {
    uint32_t abi;           /* PERFKIT_ABI */
    void *context;          /* given to open and encode_cost */
    const char *product;    /* as users know it: "Cyclone DDS" */
    const char *version;    /* as the product itself tells it, if it can */
    const char *features;   /* separated by spaces: listener waitset polling keyed reliable best_effort multicast unicast
                               ownership read_cost encode batching rtps */

    /* Joins a domain. */
    perfkit_status (*open)(void *context, const perfkit_session *spec, void **session);
    /* Leaves it; all its writers and readers have been deleted. */
    void (*close)(void *session);

    perfkit_status (*writer_new)(void *session, const perfkit_endpoint *endpoint, void **writer);
    void (*writer_delete)(void *writer);
    /* Writes one sample. */
    perfkit_status (*write)(void *writer, uint32_t instance, const void *payload, size_t size);
    /* The number of readers that are matched now. */
    uint32_t (*writer_matched)(void *writer);
    /* Sends what waits in a batch. May be NULL. */
    void (*flush)(void *writer);
    /* Waits until all readers have acknowledged everything; 1 if they have. May be NULL. */
    int32_t (*wait_acknowledged)(void *writer, uint64_t timeout_ns);

    /* With PERFKIT_READ_LISTENER the product's threads call perfkit_deliver with `sink` from now on; otherwise it is called
     * within `take`. After reader_delete has returned, it is never called again. */
    perfkit_status (*reader_new)(void *session, const perfkit_endpoint *endpoint, perfkit_sink *sink, void **reader);
    void (*reader_delete)(void *reader);
    /* The number of writers that are matched now. */
    uint32_t (*reader_matched)(void *reader);
    /* Gives all samples that are there to the sink, and their number to `count`. */
    perfkit_status (*take)(void *reader, uint64_t *count);
    /* Blocks until there may be samples (`ready` becomes 1) or the time is over (0). */
    perfkit_status (*wait)(void *reader, uint64_t timeout_ns, int32_t *ready);
    /* Makes one call of the kind PERFKIT_CALL_..., and gives the number of samples seen. May be NULL. */
    perfkit_status (*call)(void *reader, int32_t call, uint32_t instance, uint64_t *count);

    /* Encodes and decodes one of the types numbers, text, pose, image, track of encode.idl `rounds` times. May be NULL. */
    perfkit_status (*encode_cost)(void *context, const char *type_name, uint64_t rounds, perfkit_encode_cost *cost);
} perfkit_adapter;

/* Is a worker until it is told to leave; the exit status of the process. */
int perfkit_main(const perfkit_adapter *adapter);

#ifdef __cplusplus
}
#endif

#endif
