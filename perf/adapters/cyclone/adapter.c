/* Eclipse Cyclone DDS, C API: 0.10.2 of Debian, or 11.0.1 of the Python package (with PERF_CYCLONE_11 defined). */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dds/dds.h"
#include "dds/version.h"
#include "perf.h"
#include "perfkit.h"

#ifdef PERF_CYCLONE_11
/* Not in the headers of 0.10. */
void dds_qset_writer_batching(dds_qos_t *qos, bool batch_updates);
#define CYCLONE_VERSION "11.0.1"
#else
#define CYCLONE_VERSION DDS_VERSION
#endif

enum { TAKE_MAX = 64, TAKE_OCTETS_MAX = 64 << 20 };

typedef struct session {
  dds_entity_t participant;
} session;

typedef struct writer {
  dds_entity_t entity;
  bool batching;
} writer;

typedef struct reader {
  dds_entity_t participant;
  dds_entity_t entity;
  dds_entity_t waitset; /* 0 unless it is waited for */
  perfkit_sink *sink;
  pthread_mutex_t taking;
  /* PerfKeyed has the same members. Sequences keep their storage from one take to the next. */
  PerfBytes samples[TAKE_MAX];
  void *pointers[TAKE_MAX];
  dds_sample_info_t infos[TAKE_MAX];
  uint32_t take_max;
  uint32_t filter_below;
  /* For perf of calls. */
  uint32_t instances;
  dds_instance_handle_t *handles;
  void **loans;
  dds_sample_info_t *loan_infos;
  dds_entity_t query;
  uint32_t query_instance;
} reader;

/* The expression of a query takes no argument. */
static uint32_t query_instance;

static perfkit_status failed(const char *what, dds_return_t code)
{
  char text[200];
  snprintf(text, sizeof text, "%s: %s", what, dds_strretcode(code < 0 ? -code : code));
  return perfkit_fail(PERFKIT_FAILED, text);
}

static dds_duration_t milliseconds(uint64_t count)
{
  return count == 0 ? DDS_INFINITY : (dds_duration_t) DDS_MSECS((int64_t) count);
}

/* ---- session ---- */

static void put_interface(char *out, size_t size, const char *name)
{
  /* An address has dots or colons, a name of an interface (usually) not. */
  const char *attribute = strpbrk(name, ".:") ? "address" : "name";
  snprintf(out, size, "<Interfaces><NetworkInterface %s=\"%s\"/></Interfaces>", attribute, name);
}

/* All that the specification asks of the domain, as Cyclone's configuration. User data by unicast still leaves
 * discovery its multicast ("spdp"). Cyclone discovers, so that it needs no addresses of others. */
static void configure(const perfkit_session *spec)
{
  static const char *const multicast[] = {"default", "spdp", "true"};
  char interfaces[200] = "", text[2000];
  if (spec->interface != NULL)
    put_interface(interfaces, sizeof interfaces, spec->interface);
  snprintf(text, sizeof text,
           "<CycloneDDS><Domain><General>%s<AllowMulticast>%s</AllowMulticast>%s</General>"
           "<Discovery><MaxAutoParticipantIndex>200</MaxAutoParticipantIndex></Discovery>%s</Domain></CycloneDDS>",
           interfaces, multicast[spec->multicast + 1],
           spec->tuned ? "<MaxMessageSize>65500B</MaxMessageSize><FragmentSize>65000B</FragmentSize>" : "",
           spec->tuned ? "<Internal><SocketReceiveBufferSize min=\"4MB\"/></Internal>" : "");
  setenv("CYCLONEDDS_URI", text, 1);
}

static perfkit_status session_open(void *context, const perfkit_session *spec, void **out)
{
  (void) context;
  configure(spec);
  const dds_entity_t participant = dds_create_participant(spec->domain, NULL, NULL);
  if (participant < 0)
    return failed("no participant", participant);
  session *self = calloc(1, sizeof *self);
  self->participant = participant;
  *out = self;
  return PERFKIT_OK;
}

static void session_close(void *opaque)
{
  session *self = opaque;
  dds_delete(self->participant);
  free(self);
}

/* ---- QoS ---- */

static dds_qos_t *make_qos(const perfkit_endpoint *spec)
{
  const dds_data_representation_id_t representation = DDS_DATA_REPRESENTATION_XCDR1;
  const dds_history_kind_t history = spec->history_depth == 0 ? DDS_HISTORY_KEEP_ALL : DDS_HISTORY_KEEP_LAST;
  const int32_t depth = spec->history_depth == 0 ? 1 : (int32_t) spec->history_depth;
  dds_qos_t *qos = dds_create_qos();
  dds_qset_data_representation(qos, 1, &representation);
  dds_qset_reliability(qos, spec->reliable ? DDS_RELIABILITY_RELIABLE : DDS_RELIABILITY_BEST_EFFORT,
                       DDS_MSECS((int64_t) spec->blocking_ms));
  dds_qset_history(qos, history, depth);
  if (spec->transient_local) {
    dds_qset_durability(qos, DDS_DURABILITY_TRANSIENT_LOCAL);
    dds_qset_durability_service(qos, 0, history, depth, DDS_LENGTH_UNLIMITED, DDS_LENGTH_UNLIMITED,
                                DDS_LENGTH_UNLIMITED);
  }
  if (spec->exclusive)
    dds_qset_ownership(qos, DDS_OWNERSHIP_EXCLUSIVE);
  if (spec->deadline_ms != 0)
    dds_qset_deadline(qos, milliseconds(spec->deadline_ms));
  dds_qset_liveliness(qos, DDS_LIVELINESS_AUTOMATIC, milliseconds(spec->liveliness_ms));
  return qos;
}

static bool below(const void *sample, void *arg)
{
  return ((const PerfBytes *) sample)->instance < ((const reader *) arg)->filter_below;
}

static dds_entity_t make_topic(dds_entity_t participant, const perfkit_endpoint *spec)
{
  return dds_create_topic(participant, spec->keyed ? &PerfKeyed_desc : &PerfBytes_desc, spec->topic, NULL, NULL);
}

/* ---- writer ---- */

static perfkit_status writer_new(void *opaque, const perfkit_endpoint *spec, void **out)
{
  const session *owner = opaque;
  const dds_entity_t topic = make_topic(owner->participant, spec);
  if (topic < 0)
    return failed("no topic", topic);
  dds_qos_t *qos = make_qos(spec);
  dds_qset_transport_priority(qos, spec->priority);
  dds_qset_writer_data_lifecycle(qos, false);
  if (spec->exclusive)
    dds_qset_ownership_strength(qos, spec->ownership_strength);
#ifdef PERF_CYCLONE_11
  dds_qset_writer_batching(qos, spec->batching);
#else
  /* For all writers of the process; one that shall not batch flushes after each write. */
  if (spec->batching)
    dds_write_set_batch(true);
#endif
  const dds_entity_t entity = dds_create_writer(owner->participant, topic, qos, NULL);
  dds_delete_qos(qos);
  if (entity < 0)
    return failed("no writer", entity);
  writer *self = calloc(1, sizeof *self);
  self->entity = entity;
  self->batching = spec->batching;
  *out = self;
  return PERFKIT_OK;
}

static void writer_delete(void *opaque)
{
  writer *self = opaque;
  dds_delete(self->entity);
  free(self);
}

static perfkit_status write_sample(void *opaque, uint32_t instance, const void *payload, size_t size)
{
  const writer *self = opaque;
  /* Cyclone does not change what it writes. */
  const PerfBytes sample = {
    .instance = instance,
    .data = {._maximum = (uint32_t) size, ._length = (uint32_t) size, ._buffer = (uint8_t *) payload}};
  const dds_return_t code = dds_write(self->entity, &sample);
  if (code == DDS_RETCODE_TIMEOUT)
    return PERFKIT_TIMEOUT;
  if (code != DDS_RETCODE_OK)
    return failed("write", code);
#ifndef PERF_CYCLONE_11
  if (!self->batching)
    dds_write_flush(self->entity);
#endif
  return PERFKIT_OK;
}

static uint32_t writer_matched(void *opaque)
{
  dds_publication_matched_status_t status;
  return dds_get_publication_matched_status(((writer *) opaque)->entity, &status) < 0 ? 0 : status.current_count;
}

static void flush(void *opaque)
{
  const writer *self = opaque;
  if (self->batching)
    dds_write_flush(self->entity);
}

static int32_t wait_acknowledged(void *opaque, uint64_t timeout_ns)
{
  const writer *self = opaque;
  dds_write_flush(self->entity);
  return dds_wait_for_acks(self->entity, (dds_duration_t) timeout_ns) == DDS_RETCODE_OK;
}

/* ---- reader ---- */

static dds_return_t take_all(reader *self, uint64_t *count)
{
  dds_return_t got;
  pthread_mutex_lock(&self->taking);
  do {
    got = dds_take(self->entity, self->pointers, self->infos, self->take_max, self->take_max);
    for (dds_return_t i = 0; i < got; i++) {
      if (!self->infos[i].valid_data)
        continue;
      const PerfBytes *sample = self->pointers[i];
      perfkit_deliver(self->sink, sample->instance, sample->data._buffer, sample->data._length);
      *count += 1;
    }
  } while (got == (dds_return_t) self->take_max);
  pthread_mutex_unlock(&self->taking);
  return got;
}

static void on_data_available(dds_entity_t entity, void *arg)
{
  reader *self = arg;
  uint64_t count = 0;
  /* Data may come before dds_create_reader() has returned. */
  self->entity = entity;
  (void) take_all(self, &count);
}

static void release_reader(reader *self)
{
  for (uint32_t i = 0; i < TAKE_MAX; i++)
    if (self->samples[i].data._release)
      dds_free(self->samples[i].data._buffer);
  pthread_mutex_destroy(&self->taking);
  free(self->handles);
  free(self->loans);
  free(self->loan_infos);
  free(self);
}

static reader *new_reader(const perfkit_endpoint *spec, perfkit_sink *sink)
{
  reader *self = calloc(1, sizeof *self);
  const uint64_t fitting = TAKE_OCTETS_MAX / (spec->payload_max + 1);
  self->sink = sink;
  self->take_max = fitting < 1 ? 1 : fitting > TAKE_MAX ? TAKE_MAX : (uint32_t) fitting;
  self->filter_below = spec->filter_instances_below;
  self->instances = spec->instances == 0 ? 1 : spec->instances;
  pthread_mutex_init(&self->taking, NULL);
  for (uint32_t i = 0; i < TAKE_MAX; i++)
    self->pointers[i] = &self->samples[i];
  return self;
}

static dds_return_t make_waitset(reader *self)
{
  self->waitset = dds_create_waitset(self->participant);
  if (self->waitset < 0)
    return self->waitset;
  const dds_entity_t condition = dds_create_readcondition(self->entity, DDS_ANY_STATE);
  return condition < 0 ? condition : dds_waitset_attach(self->waitset, condition, 0);
}

static perfkit_status reader_new(void *opaque, const perfkit_endpoint *spec, perfkit_sink *sink, void **out)
{
  const session *owner = opaque;
  const dds_entity_t topic = make_topic(owner->participant, spec);
  if (topic < 0)
    return failed("no topic", topic);
  reader *self = new_reader(spec, sink);
  self->participant = owner->participant;
  /* This topic entity is the reader's own: the filter belongs to it. */
  if (spec->filtered)
    dds_set_topic_filter_and_arg(topic, below, self);
  dds_qos_t *qos = make_qos(spec);
  dds_listener_t *listener = dds_create_listener(self);
  if (spec->read == PERFKIT_READ_LISTENER)
    dds_lset_data_available(listener, on_data_available);
  const dds_entity_t entity = dds_create_reader(owner->participant, topic, qos, listener);
  dds_delete_listener(listener);
  dds_delete_qos(qos);
  dds_return_t code = entity;
  if (entity >= 0) {
    self->entity = entity;
    code = spec->read == PERFKIT_READ_WAITSET ? make_waitset(self) : DDS_RETCODE_OK;
  }
  if (code < 0) {
    if (entity >= 0)
      dds_delete(entity);
    release_reader(self);
    return failed("no reader", code);
  }
  *out = self;
  return PERFKIT_OK;
}

static void reader_delete(void *opaque)
{
  reader *self = opaque;
  if (self->waitset > 0)
    dds_delete(self->waitset);
  dds_delete(self->entity);
  release_reader(self);
}

static uint32_t reader_matched(void *opaque)
{
  dds_subscription_matched_status_t status;
  return dds_get_subscription_matched_status(((reader *) opaque)->entity, &status) < 0 ? 0 : status.current_count;
}

static perfkit_status take(void *opaque, uint64_t *count)
{
  *count = 0;
  const dds_return_t code = take_all(opaque, count);
  return code < 0 ? failed("take", code) : PERFKIT_OK;
}

static perfkit_status wait_data(void *opaque, uint64_t timeout_ns, int32_t *ready)
{
  dds_attach_t triggered;
  const dds_return_t count =
    dds_waitset_wait(((reader *) opaque)->waitset, &triggered, 1, (dds_duration_t) timeout_ns);
  if (count < 0)
    return failed("wait", count);
  *ready = count > 0;
  return PERFKIT_OK;
}

/* ---- calls of a reader ---- */

static bool is_queried(const void *sample)
{
  return ((const PerfBytes *) sample)->instance == query_instance;
}

static dds_instance_handle_t lookup(const reader *self, uint32_t instance)
{
  const PerfBytes key = {.instance = instance};
  return dds_lookup_instance(self->entity, &key);
}

static dds_return_t read_loans(reader *self, dds_entity_t from, uint32_t maximum, dds_instance_handle_t instance)
{
  self->loans[0] = NULL;
  const dds_return_t count =
    instance == 0 ? dds_read(from, self->loans, self->loan_infos, maximum, maximum)
                  : dds_read_instance(from, self->loans, self->loan_infos, maximum, maximum, instance);
  if (count > 0)
    dds_return_loan(from, self->loans, count);
  return count;
}

/* A query of Cyclone is a function without argument: another instance needs another condition. */
static dds_return_t read_query(reader *self, uint32_t instance)
{
  if (self->query <= 0 || self->query_instance != instance) {
    if (self->query > 0)
      dds_delete(self->query);
    query_instance = self->query_instance = instance;
    self->query = dds_create_querycondition(self->entity, DDS_ANY_STATE, is_queried);
    if (self->query < 0)
      return self->query;
  }
  return read_loans(self, self->query, self->instances, 0);
}

static perfkit_status call(void *opaque, int32_t what, uint32_t instance, uint64_t *count)
{
  reader *self = opaque;
  dds_return_t code = 0;
  if (self->loans == NULL) {
    self->loans = calloc(self->instances, sizeof *self->loans);
    self->loan_infos = calloc(self->instances, sizeof *self->loan_infos);
    self->handles = calloc(self->instances, sizeof *self->handles);
  }
  switch (what) {
    case PERFKIT_CALL_LOOKUP:
      code = lookup(self, instance) != DDS_HANDLE_NIL;
      break;
    case PERFKIT_CALL_READ_INSTANCE:
      if (instance >= self->instances)
        return failed("read_instance", DDS_RETCODE_BAD_PARAMETER);
      if (self->handles[instance] == DDS_HANDLE_NIL)
        self->handles[instance] = lookup(self, instance);
      code = read_loans(self, self->entity, 1, self->handles[instance]);
      break;
    case PERFKIT_CALL_READ_ALL:
      code = read_loans(self, self->entity, self->instances, 0);
      break;
    case PERFKIT_CALL_QUERY:
      code = read_query(self, instance);
      break;
    case PERFKIT_CALL_TAKE_ONE:
      self->loans[0] = NULL;
      code = dds_take(self->entity, self->loans, self->loan_infos, 1, 1);
      if (code > 0)
        dds_return_loan(self->entity, self->loans, code);
      break;
    default:
      return perfkit_fail(PERFKIT_UNSUPPORTED, "the adapter does not know this call");
  }
  if (code < 0)
    return failed("a call of the reader", code);
  *count = (uint64_t) code;
  return PERFKIT_OK;
}

int main(void)
{
  static const perfkit_adapter adapter = {
    .product = "Cyclone DDS",
    .version = CYCLONE_VERSION,
    .features = "rtps listener waitset polling keyed reliable best_effort multicast unicast ownership transient_local "
                "filter read_cost batching",
    .abi = PERFKIT_ABI,
    .open = session_open,
    .close = session_close,
    .writer_new = writer_new,
    .writer_delete = writer_delete,
    .write = write_sample,
    .writer_matched = writer_matched,
    .flush = flush,
    .wait_acknowledged = wait_acknowledged,
    .reader_new = reader_new,
    .reader_delete = reader_delete,
    .reader_matched = reader_matched,
    .take = take,
    .wait = wait_data,
    .call = call,
  };
  return perfkit_main(&adapter);
}
