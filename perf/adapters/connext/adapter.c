/* RTI Connext DDS Professional, C API. Written after its public documentation; the project has no licence to build it. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ndds/ndds_c.h"
#include "perf.h"
#include "perfSupport.h"
#include "perfkit.h"

enum { TAKE_MAX = 64 };

typedef struct session {
  DDS_DomainParticipant *participant;
  DDS_Publisher *publisher;
  DDS_Subscriber *subscriber;
  int tuned;
  int multicast;
  unsigned filters;
} session;

typedef struct writer {
  session *owner;
  DDS_DataWriter *writer;
  int keyed;
  PerfBytes bytes;
  PerfKeyed keyed_sample;
} writer;

typedef struct reader {
  session *owner;
  DDS_DataReader *reader;
  DDS_ContentFilteredTopic *filtered;
  DDS_WaitSet *waitset;
  DDS_ReadCondition *condition;
  DDS_QueryCondition *query;
  char query_text[16];
  int keyed;
  perfkit_sink *sink;
  pthread_mutex_t taking;
} reader;

static perfkit_status failed(const char *what)
{
  return perfkit_fail(PERFKIT_FAILED, what);
}

static perfkit_status failed_with(const char *what, DDS_ReturnCode_t code)
{
  char text[120];
  snprintf(text, sizeof text, "%s: return code %d", what, (int) code);
  return failed(text);
}

static struct DDS_Duration_t milliseconds(uint64_t count)
{
  struct DDS_Duration_t duration;
  duration.sec = (DDS_Long) (count / 1000);
  duration.nanosec = (DDS_UnsignedLong) (count % 1000) * 1000000u;
  return duration;
}

static struct DDS_Duration_t nanoseconds(uint64_t count)
{
  struct DDS_Duration_t duration;
  duration.sec = (DDS_Long) (count / 1000000000u);
  duration.nanosec = (DDS_UnsignedLong) (count % 1000000000u);
  return duration;
}

/* ---- session ---- */

static int add_property(struct DDS_DomainParticipantQos *qos, const char *name, const char *value)
{
  return DDS_PropertyQosPolicyHelper_add_property(&qos->property, name, value, DDS_BOOLEAN_FALSE) == DDS_RETCODE_OK;
}

static int configure(const perfkit_session *spec, struct DDS_DomainParticipantQos *qos)
{
  int well = 1;
  /* UDP alone: shared memory is another transport. */
  qos->transport_builtin.mask = DDS_TRANSPORTBUILTIN_UDPv4;
  if (spec->interface != NULL)
    well &= add_property(qos, "dds.transport.UDPv4.builtin.parent.allow_interfaces", spec->interface);
  if (spec->interface != NULL && strcmp(spec->interface, "lo") == 0)
    well &= add_property(qos, "dds.transport.UDPv4.builtin.ignore_loopback_interface", "0");
  if (spec->tuned) {
    well &= add_property(qos, "dds.transport.UDPv4.builtin.send_socket_buffer_size", "4194304");
    well &= add_property(qos, "dds.transport.UDPv4.builtin.recv_socket_buffer_size", "4194304");
  }
  /* Names of types are enough; what others describe of theirs is not looked at. */
  qos->resource_limits.type_object_max_serialized_length = 0;
  qos->resource_limits.type_code_max_serialized_length = 0;
  return well;
}

static perfkit_status session_open(void *context, const perfkit_session *spec, void **out)
{
  struct DDS_DomainParticipantQos qos = DDS_DomainParticipantQos_INITIALIZER;
  DDS_DomainParticipantFactory *factory = DDS_DomainParticipantFactory_get_instance();
  session *self = calloc(1, sizeof *self);
  (void) context;
  DDS_DomainParticipantFactory_get_default_participant_qos(factory, &qos);
  if (configure(spec, &qos))
    self->participant = DDS_DomainParticipantFactory_create_participant(factory, (DDS_DomainId_t) spec->domain, &qos, NULL,
                                                                        DDS_STATUS_MASK_NONE);
  DDS_DomainParticipantQos_finalize(&qos);
  if (self->participant == NULL) {
    free(self);
    return failed("no participant: is there a licence file (RTI_LICENSE_FILE)?");
  }
  self->publisher = DDS_DomainParticipant_create_publisher(self->participant, &DDS_PUBLISHER_QOS_DEFAULT, NULL,
                                                           DDS_STATUS_MASK_NONE);
  self->subscriber = DDS_DomainParticipant_create_subscriber(self->participant, &DDS_SUBSCRIBER_QOS_DEFAULT, NULL,
                                                             DDS_STATUS_MASK_NONE);
  self->tuned = spec->tuned;
  self->multicast = spec->multicast;
  *out = self;
  if (self->publisher == NULL || self->subscriber == NULL
      || PerfBytesTypeSupport_register_type(self->participant, "PerfBytes") != DDS_RETCODE_OK
      || PerfKeyedTypeSupport_register_type(self->participant, "PerfKeyed") != DDS_RETCODE_OK)
    return failed("no publisher, subscriber or type");
  return PERFKIT_OK;
}

static void session_close(void *opaque)
{
  session *self = opaque;
  DDS_DomainParticipant_delete_contained_entities(self->participant);
  DDS_DomainParticipantFactory_delete_participant(DDS_DomainParticipantFactory_get_instance(), self->participant);
  free(self);
}

static DDS_Topic *make_topic(session *self, const perfkit_endpoint *spec)
{
  DDS_TopicDescription *known = DDS_DomainParticipant_lookup_topicdescription(self->participant, spec->topic);
  if (known != NULL)
    return DDS_Topic_narrow(known);
  return DDS_DomainParticipant_create_topic(self->participant, spec->topic, spec->keyed ? "PerfKeyed" : "PerfBytes",
                                            &DDS_TOPIC_QOS_DEFAULT, NULL, DDS_STATUS_MASK_NONE);
}

/* ---- QoS ---- */

/* The policies that writers and readers share have the same names in both. */
#define FILL(qos, spec)                                                                                              \
  do {                                                                                                               \
    (qos).reliability.kind = (spec)->reliable ? DDS_RELIABLE_RELIABILITY_QOS : DDS_BEST_EFFORT_RELIABILITY_QOS;       \
    (qos).reliability.max_blocking_time = milliseconds((spec)->blocking_ms);                                         \
    (qos).history.kind = (spec)->history_depth == 0 ? DDS_KEEP_ALL_HISTORY_QOS : DDS_KEEP_LAST_HISTORY_QOS;          \
    (qos).history.depth = (spec)->history_depth == 0 ? 1 : (DDS_Long) (spec)->history_depth;                         \
    (qos).durability.kind =                                                                                          \
      (spec)->transient_local ? DDS_TRANSIENT_LOCAL_DURABILITY_QOS : DDS_VOLATILE_DURABILITY_QOS;                    \
    (qos).ownership.kind = (spec)->exclusive ? DDS_EXCLUSIVE_OWNERSHIP_QOS : DDS_SHARED_OWNERSHIP_QOS;               \
    if ((spec)->deadline_ms != 0)                                                                                    \
      (qos).deadline.period = milliseconds((spec)->deadline_ms);                                                     \
    if ((spec)->liveliness_ms != 0)                                                                                  \
      (qos).liveliness.lease_duration = milliseconds((spec)->liveliness_ms);                                         \
    DDS_DataRepresentationIdSeq_ensure_length(&(qos).representation.value, 1, 1);                                    \
    *DDS_DataRepresentationIdSeq_get_reference(&(qos).representation.value, 0) = DDS_XCDR_DATA_REPRESENTATION;       \
  } while (0)

/* ---- writer ---- */

static void tune_writer(struct DDS_DataWriterQos *qos)
{
  struct DDS_RtpsReliableWriterProtocol_t *protocol = &qos->protocol.rtps_reliable_writer;
  protocol->heartbeat_period = milliseconds(5);
  protocol->fast_heartbeat_period = milliseconds(5);
  protocol->min_nack_response_delay = milliseconds(0);
  protocol->max_nack_response_delay = milliseconds(0);
}

static perfkit_status writer_new(void *opaque, const perfkit_endpoint *spec, void **out)
{
  session *owner = opaque;
  struct DDS_DataWriterQos qos = DDS_DataWriterQos_INITIALIZER;
  DDS_Topic *topic = make_topic(owner, spec);
  if (topic == NULL)
    return failed("no topic");
  DDS_Publisher_get_default_datawriter_qos(owner->publisher, &qos);
  FILL(qos, spec);
  qos.ownership_strength.value = spec->exclusive ? spec->ownership_strength : 0;
  qos.transport_priority.value = spec->priority;
  qos.writer_data_lifecycle.autodispose_unregistered_instances = DDS_BOOLEAN_FALSE;
  if (spec->batching) {
    qos.batch.enable = DDS_BOOLEAN_TRUE;
    qos.batch.max_data_bytes = 30720;
  }
  /* What is larger than a datagram is written asynchronously. */
  if (spec->payload_max > 60000)
    qos.publish_mode.kind = DDS_ASYNCHRONOUS_PUBLISH_MODE_QOS;
  /* Unbounded sequences are serialized into memory that grows with them. */
  DDS_PropertyQosPolicyHelper_add_property(&qos.property, "dds.data_writer.history.memory_manager.fast_pool.pool_buffer_max_size",
                                           "65536", DDS_BOOLEAN_FALSE);
  if (owner->tuned)
    tune_writer(&qos);
  DDS_DataWriter *entity =
    DDS_Publisher_create_datawriter(owner->publisher, topic, &qos, NULL, DDS_STATUS_MASK_NONE);
  DDS_DataWriterQos_finalize(&qos);
  if (entity == NULL)
    return failed("no writer");
  writer *self = calloc(1, sizeof *self);
  self->owner = owner;
  self->writer = entity;
  self->keyed = spec->keyed;
  PerfBytes_initialize(&self->bytes);
  PerfKeyed_initialize(&self->keyed_sample);
  *out = self;
  return PERFKIT_OK;
}

static void writer_delete(void *opaque)
{
  writer *self = opaque;
  DDS_Publisher_delete_datawriter(self->owner->publisher, self->writer);
  PerfBytes_finalize(&self->bytes);
  PerfKeyed_finalize(&self->keyed_sample);
  free(self);
}

/* The sequence borrows the payload for the time of the write. */
static perfkit_status write_sample(void *opaque, uint32_t instance, const void *payload, size_t size)
{
  writer *self = opaque;
  struct DDS_OctetSeq *data = self->keyed ? &self->keyed_sample.data : &self->bytes.data;
  DDS_ReturnCode_t code;
  if (!DDS_OctetSeq_loan_contiguous(data, (DDS_Octet *) payload, (DDS_Long) size, (DDS_Long) size))
    return failed("a payload cannot be lent");
  if (self->keyed) {
    self->keyed_sample.instance = instance;
    code = PerfKeyedDataWriter_write(PerfKeyedDataWriter_narrow(self->writer), &self->keyed_sample, &DDS_HANDLE_NIL);
  } else {
    self->bytes.instance = instance;
    code = PerfBytesDataWriter_write(PerfBytesDataWriter_narrow(self->writer), &self->bytes, &DDS_HANDLE_NIL);
  }
  DDS_OctetSeq_unloan(data);
  if (code == DDS_RETCODE_OK)
    return PERFKIT_OK;
  return code == DDS_RETCODE_TIMEOUT ? PERFKIT_TIMEOUT : failed_with("write", code);
}

static uint32_t writer_matched(void *opaque)
{
  struct DDS_PublicationMatchedStatus status = DDS_PublicationMatchedStatus_INITIALIZER;
  DDS_DataWriter_get_publication_matched_status(((writer *) opaque)->writer, &status);
  return (uint32_t) status.current_count;
}

static void flush(void *opaque)
{
  DDS_DataWriter_flush(((writer *) opaque)->writer);
}

static int32_t wait_acknowledged(void *opaque, uint64_t timeout_ns)
{
  const struct DDS_Duration_t timeout = nanoseconds(timeout_ns);
  DDS_DataWriter *entity = ((writer *) opaque)->writer;
  DDS_DataWriter_flush(entity);
  return DDS_DataWriter_wait_for_acknowledgments(entity, &timeout) == DDS_RETCODE_OK;
}

/* ---- reader ---- */

/* Takes or reads with the functions of one type, and hands samples to the sink if there is one. */
#define DEFINE_FETCH(TYPE)                                                                                           \
  static DDS_ReturnCode_t fetch_##TYPE(reader *self, int taking, DDS_ReadCondition *condition,                       \
                                       const DDS_InstanceHandle_t *instance, DDS_Long maximum, perfkit_sink *sink,   \
                                       uint64_t *count)                                                              \
  {                                                                                                                  \
    struct TYPE##Seq samples = DDS_SEQUENCE_INITIALIZER;                                                             \
    struct DDS_SampleInfoSeq infos = DDS_SEQUENCE_INITIALIZER;                                                       \
    TYPE##DataReader *typed = TYPE##DataReader_narrow(self->reader);                                                 \
    DDS_ReturnCode_t code;                                                                                           \
    if (condition != NULL)                                                                                           \
      code = TYPE##DataReader_read_w_condition(typed, &samples, &infos, maximum, condition);                         \
    else if (instance != NULL)                                                                                       \
      code = TYPE##DataReader_read_instance(typed, &samples, &infos, maximum, instance, DDS_ANY_SAMPLE_STATE,        \
                                            DDS_ANY_VIEW_STATE, DDS_ANY_INSTANCE_STATE);                             \
    else if (taking)                                                                                                 \
      code = TYPE##DataReader_take(typed, &samples, &infos, maximum, DDS_ANY_SAMPLE_STATE, DDS_ANY_VIEW_STATE,       \
                                   DDS_ANY_INSTANCE_STATE);                                                          \
    else                                                                                                             \
      code = TYPE##DataReader_read(typed, &samples, &infos, maximum, DDS_ANY_SAMPLE_STATE, DDS_ANY_VIEW_STATE,       \
                                   DDS_ANY_INSTANCE_STATE);                                                          \
    if (code != DDS_RETCODE_OK)                                                                                      \
      return code;                                                                                                   \
    for (DDS_Long i = 0; i < TYPE##Seq_get_length(&samples); i++) {                                                  \
      const TYPE *sample = TYPE##Seq_get_reference(&samples, i);                                                     \
      if (!DDS_SampleInfoSeq_get_reference(&infos, i)->valid_data)                                                   \
        continue;                                                                                                    \
      if (sink != NULL)                                                                                              \
        perfkit_deliver(sink, sample->instance, DDS_OctetSeq_get_contiguous_buffer(&sample->data),                   \
                        (size_t) DDS_OctetSeq_get_length(&sample->data));                                            \
      *count += 1;                                                                                                   \
    }                                                                                                                \
    TYPE##DataReader_return_loan(typed, &samples, &infos);                                                           \
    return DDS_RETCODE_OK;                                                                                           \
  }

DEFINE_FETCH(PerfBytes)
DEFINE_FETCH(PerfKeyed)

static DDS_ReturnCode_t fetch(reader *self, int taking, DDS_ReadCondition *condition,
                              const DDS_InstanceHandle_t *instance, DDS_Long maximum, perfkit_sink *sink, uint64_t *count)
{
  return self->keyed ? fetch_PerfKeyed(self, taking, condition, instance, maximum, sink, count)
                     : fetch_PerfBytes(self, taking, condition, instance, maximum, sink, count);
}

static DDS_ReturnCode_t take_all(reader *self, uint64_t *count)
{
  DDS_ReturnCode_t code;
  pthread_mutex_lock(&self->taking);
  do
    code = fetch(self, 1, NULL, NULL, TAKE_MAX, self->sink, count);
  while (code == DDS_RETCODE_OK);
  pthread_mutex_unlock(&self->taking);
  return code == DDS_RETCODE_NO_DATA ? DDS_RETCODE_OK : code;
}

static void on_data_available(void *listener_data, DDS_DataReader *entity)
{
  reader *self = listener_data;
  uint64_t count = 0;
  /* Data may come before the reader has been handed out. */
  self->reader = entity;
  (void) take_all(self, &count);
}

static DDS_TopicDescription *description_of(reader *self, const perfkit_endpoint *spec, DDS_Topic *topic)
{
  char name[300], limit[16];
  struct DDS_StringSeq parameters = DDS_SEQUENCE_INITIALIZER;
  char *values[1] = {limit};
  if (!spec->filtered)
    return DDS_Topic_as_topicdescription(topic);
  snprintf(name, sizeof name, "%s_filtered_%u", spec->topic, self->owner->filters++);
  snprintf(limit, sizeof limit, "%u", spec->filter_instances_below);
  DDS_StringSeq_loan_contiguous(&parameters, values, 1, 1);
  self->filtered = DDS_DomainParticipant_create_contentfilteredtopic(self->owner->participant, name, topic,
                                                                     "instance < %0", &parameters);
  DDS_StringSeq_unloan(&parameters);
  return self->filtered == NULL ? NULL : DDS_ContentFilteredTopic_as_topicdescription(self->filtered);
}

/* By multicast: the reader announces a group. */
static void add_group(struct DDS_DataReaderQos *qos)
{
  DDS_TransportMulticastSettingsSeq_ensure_length(&qos->multicast.value, 1, 1);
  struct DDS_TransportMulticastSettings_t *group = DDS_TransportMulticastSettingsSeq_get_reference(&qos->multicast.value, 0);
  DDS_String_replace(&group->receive_address, "239.255.0.1");
}

static void tune_reader(struct DDS_DataReaderQos *qos)
{
  qos->protocol.rtps_reliable_reader.min_heartbeat_response_delay = milliseconds(0);
  qos->protocol.rtps_reliable_reader.max_heartbeat_response_delay = milliseconds(0);
}

static int make_waitset(reader *self)
{
  self->waitset = DDS_WaitSet_new();
  self->condition = DDS_DataReader_create_readcondition(self->reader, DDS_ANY_SAMPLE_STATE, DDS_ANY_VIEW_STATE,
                                                        DDS_ANY_INSTANCE_STATE);
  return self->waitset != NULL && self->condition != NULL
         && DDS_WaitSet_attach_condition(self->waitset, DDS_ReadCondition_as_condition(self->condition)) == DDS_RETCODE_OK;
}

static perfkit_status reader_new(void *opaque, const perfkit_endpoint *spec, perfkit_sink *sink, void **out)
{
  session *owner = opaque;
  struct DDS_DataReaderQos qos = DDS_DataReaderQos_INITIALIZER;
  struct DDS_DataReaderListener listener = DDS_DataReaderListener_INITIALIZER;
  const int listens = spec->read == PERFKIT_READ_LISTENER;
  DDS_Topic *topic = make_topic(owner, spec);
  reader *self = calloc(1, sizeof *self);
  self->owner = owner;
  self->sink = sink;
  self->keyed = spec->keyed;
  pthread_mutex_init(&self->taking, NULL);
  DDS_TopicDescription *description = topic == NULL ? NULL : description_of(self, spec, topic);
  if (description == NULL) {
    free(self);
    return failed("no topic");
  }
  DDS_Subscriber_get_default_datareader_qos(owner->subscriber, &qos);
  FILL(qos, spec);
  if (owner->multicast == 1)
    add_group(&qos);
  if (owner->tuned)
    tune_reader(&qos);
  listener.as_listener.listener_data = self;
  listener.on_data_available = on_data_available;
  self->reader = DDS_Subscriber_create_datareader(owner->subscriber, description, &qos, listens ? &listener : NULL,
                                                  listens ? DDS_DATA_AVAILABLE_STATUS : DDS_STATUS_MASK_NONE);
  DDS_DataReaderQos_finalize(&qos);
  if (self->reader == NULL || (spec->read == PERFKIT_READ_WAITSET && !make_waitset(self))) {
    free(self);
    return failed("no reader");
  }
  *out = self;
  return PERFKIT_OK;
}

static void reader_delete(void *opaque)
{
  reader *self = opaque;
  DDS_DataReader_set_listener(self->reader, NULL, DDS_STATUS_MASK_NONE);
  if (self->waitset != NULL)
    DDS_WaitSet_delete(self->waitset);
  DDS_DataReader_delete_contained_entities(self->reader);
  DDS_Subscriber_delete_datareader(self->owner->subscriber, self->reader);
  if (self->filtered != NULL)
    DDS_DomainParticipant_delete_contentfilteredtopic(self->owner->participant, self->filtered);
  pthread_mutex_destroy(&self->taking);
  free(self);
}

static uint32_t reader_matched(void *opaque)
{
  struct DDS_SubscriptionMatchedStatus status = DDS_SubscriptionMatchedStatus_INITIALIZER;
  DDS_DataReader_get_subscription_matched_status(((reader *) opaque)->reader, &status);
  return (uint32_t) status.current_count;
}

static perfkit_status take(void *opaque, uint64_t *count)
{
  *count = 0;
  const DDS_ReturnCode_t code = take_all(opaque, count);
  return code == DDS_RETCODE_OK ? PERFKIT_OK : failed_with("take", code);
}

static perfkit_status wait_data(void *opaque, uint64_t timeout_ns, int32_t *ready)
{
  const struct DDS_Duration_t timeout = nanoseconds(timeout_ns);
  struct DDS_ConditionSeq active = DDS_SEQUENCE_INITIALIZER;
  const DDS_ReturnCode_t code = DDS_WaitSet_wait(((reader *) opaque)->waitset, &active, &timeout);
  DDS_ConditionSeq_finalize(&active);
  *ready = code == DDS_RETCODE_OK;
  return code == DDS_RETCODE_OK || code == DDS_RETCODE_TIMEOUT ? PERFKIT_OK : failed_with("wait", code);
}

/* ---- calls of a reader ---- */

static DDS_InstanceHandle_t lookup(reader *self, uint32_t instance)
{
  PerfKeyed key;
  PerfKeyed_initialize(&key);
  key.instance = instance;
  const DDS_InstanceHandle_t handle = PerfKeyedDataReader_lookup_instance(PerfKeyedDataReader_narrow(self->reader), &key);
  PerfKeyed_finalize(&key);
  return handle;
}

/* One condition, whose parameter changes. */
static DDS_ReadCondition *query_for(reader *self, uint32_t instance)
{
  struct DDS_StringSeq parameters = DDS_SEQUENCE_INITIALIZER;
  char *values[1] = {self->query_text};
  snprintf(self->query_text, sizeof self->query_text, "%u", instance);
  DDS_StringSeq_loan_contiguous(&parameters, values, 1, 1);
  if (self->query == NULL)
    self->query = DDS_DataReader_create_querycondition(self->reader, DDS_ANY_SAMPLE_STATE, DDS_ANY_VIEW_STATE,
                                                       DDS_ANY_INSTANCE_STATE, "instance = %0", &parameters);
  else
    DDS_QueryCondition_set_query_parameters(self->query, &parameters);
  DDS_StringSeq_unloan(&parameters);
  return self->query == NULL ? NULL : DDS_QueryCondition_as_readcondition(self->query);
}

static perfkit_status call(void *opaque, int32_t what, uint32_t instance, uint64_t *count)
{
  reader *self = opaque;
  DDS_ReturnCode_t code = DDS_RETCODE_OK;
  *count = 0;
  if (!self->keyed && (what == PERFKIT_CALL_LOOKUP || what == PERFKIT_CALL_READ_INSTANCE))
    return perfkit_fail(PERFKIT_UNSUPPORTED, "the topic has no instances");
  switch (what) {
    case PERFKIT_CALL_LOOKUP: {
      const DDS_InstanceHandle_t handle = lookup(self, instance);
      *count = DDS_InstanceHandle_is_nil(&handle) ? 0 : 1;
      break;
    }
    case PERFKIT_CALL_READ_INSTANCE: {
      const DDS_InstanceHandle_t handle = lookup(self, instance);
      code = fetch(self, 0, NULL, &handle, 1, NULL, count);
      break;
    }
    case PERFKIT_CALL_READ_ALL:
      code = fetch(self, 0, NULL, NULL, DDS_LENGTH_UNLIMITED, NULL, count);
      break;
    case PERFKIT_CALL_QUERY: {
      DDS_ReadCondition *condition = query_for(self, instance);
      if (condition == NULL)
        return failed("no query condition");
      code = fetch(self, 0, condition, NULL, DDS_LENGTH_UNLIMITED, NULL, count);
      break;
    }
    case PERFKIT_CALL_TAKE_ONE:
      code = fetch(self, 1, NULL, NULL, 1, NULL, count);
      break;
    default:
      return perfkit_fail(PERFKIT_UNSUPPORTED, "the adapter does not know this call");
  }
  return code == DDS_RETCODE_OK || code == DDS_RETCODE_NO_DATA ? PERFKIT_OK : failed_with("a call of the reader", code);
}

int main(void)
{
  static char version[64];
  const perfkit_adapter adapter = {
    .abi = PERFKIT_ABI,
    .product = "RTI Connext DDS",
    .version = version,
    .features = "rtps listener waitset polling keyed reliable best_effort multicast unicast ownership transient_local "
                "filter read_cost batching",
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
  const struct DDS_ProductVersion_t *known = NDDS_Config_Version_get_product_version();
  snprintf(version, sizeof version, "%d.%d.%d", known->major, known->minor, known->release);
  return perfkit_main(&adapter);
}
