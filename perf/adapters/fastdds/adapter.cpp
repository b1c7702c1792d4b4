// eProsima Fast DDS: 2.9 of Debian, or 3.2 of the Python package ros-fastdds.
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <fastdds/dds/core/LoanableSequence.hpp>
#include <fastdds/dds/core/condition/WaitSet.hpp>
#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/DataReaderListener.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/ContentFilteredTopic.hpp>
#include <fastdds/dds/topic/Topic.hpp>
#include <fastdds/dds/topic/TypeSupport.hpp>

#ifdef PERF_FASTDDS_3
#include "version_3.hpp"
#else
#include "encode.hpp"
#include "version_2.hpp"
#endif
#include "perfkit.h"

using namespace product;

namespace {

constexpr uint32_t TAKE_MAX = 64;
constexpr uint64_t TAKE_OCTETS_MAX = 64 << 20;
// What a KEEP_ALL history may hold: Fast DDS' own limit, or as many large samples as are this many octets.
constexpr int32_t SAMPLES_MAX = 5000;
constexpr uint64_t HISTORY_OCTETS_MAX = 256 << 20;
// What is allocated for a sample before the first one; it grows with larger ones.
constexpr uint64_t ALLOCATED_OCTETS_MAX = 1 << 16;
constexpr uint32_t HEAD = 12;

perfkit_status answer(perfkit_status status, const std::string &text)
{
  return perfkit_fail(status, text.c_str());
}

perfkit_status failed(const char *what)
{
  return answer(PERFKIT_FAILED, what);
}

perfkit_status failed(const char *what, const ReturnCode_t &code)
{
  return answer(PERFKIT_FAILED, std::string(what) + ": return code " + std::to_string(number(code)));
}

Duration milliseconds(uint64_t count)
{
  return Duration(static_cast<int32_t>(count / 1000), static_cast<uint32_t>(count % 1000) * 1000000u);
}

// PerfBytes and PerfKeyed in XCDR1, written by hand. A writer lends its payload, a reader's sample owns it.
struct PerfSupport {
  struct Sample {
    uint32_t instance = 0;
    const uint8_t *lent = nullptr;
    uint32_t lent_size = 0;
    std::vector<uint8_t> data;
  };

  static uint32_t encoded_size(const Sample &sample) { return HEAD + sample.lent_size; }

  static uint32_t encode(const Sample &sample, uint8_t *out, uint32_t space)
  {
    static const uint8_t encapsulation[4] = {0, 1, 0, 0};
    if (space < encoded_size(sample))
      return 0;
    memcpy(out, encapsulation, 4);
    memcpy(out + 4, &sample.instance, 4);
    memcpy(out + 8, &sample.lent_size, 4);
    memcpy(out + HEAD, sample.lent, sample.lent_size);
    return encoded_size(sample);
  }

  static uint32_t word(const uint8_t *at, bool little)
  {
    uint32_t value;
    memcpy(&value, at, 4);
    return little ? value : __builtin_bswap32(value);
  }

  // What holds the key alone ends after it.
  static bool decode(const uint8_t *in, uint32_t length, Sample &sample)
  {
    if (length < 8)
      return false;
    const bool little = (in[1] & 1) != 0;
    sample.instance = word(in + 4, little);
    const uint32_t size = length < HEAD ? 0 : word(in + 8, little);
    if (size > 0 && size > length - HEAD)
      return false;
    sample.data.assign(in + std::min(length, HEAD), in + std::min(length, HEAD) + size);
    return true;
  }

  // Up to 16 octets, the key hash is the big-endian key itself.
  static void key(const Sample &sample, unsigned char *out)
  {
    memset(out, 0, 16);
    for (int i = 0; i < 4; i++)
      out[i] = static_cast<unsigned char>(sample.instance >> (24 - 8 * i));
  }
};

using Sample = PerfSupport::Sample;
FASTDDS_SEQUENCE(SampleSequence, Sample);

struct Session {
  DomainParticipant *participant = nullptr;
  Publisher *publisher = nullptr;
  Subscriber *subscriber = nullptr;
  std::map<std::string, Topic *> topics;
  unsigned filters = 0;
  uint32_t domain = 0;
  int32_t multicast = -1;
  bool tuned = false;

  Topic *topic(const perfkit_endpoint &spec)
  {
    Topic *&found = topics[spec.topic];
    const char *type_name = spec.keyed ? "PerfKeyed" : "PerfBytes";
    if (found == nullptr) {
      if (participant->find_type(type_name).empty()) {
        const uint64_t size = std::min(spec.payload_max, ALLOCATED_OCTETS_MAX) + HEAD;
        TypeSupport type(new Bridge<PerfSupport>(type_name, spec.keyed, static_cast<uint32_t>(size)));
        type.register_type(participant);
      }
      found = participant->create_topic(spec.topic, type_name, TOPIC_QOS_DEFAULT);
    }
    return found;
  }
};

// The address of an interface that is given by name or address; empty if there is none.
std::string address_of(const char *interface)
{
  in_addr parsed;
  if (inet_pton(AF_INET, interface, &parsed) == 1)
    return interface;
  std::string found;
  ifaddrs *all = nullptr;
  getifaddrs(&all);
  for (const ifaddrs *one = all; one != nullptr; one = one->ifa_next) {
    char text[INET_ADDRSTRLEN];
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET || strcmp(one->ifa_name, interface) != 0)
      continue;
    const auto *address = reinterpret_cast<const sockaddr_in *>(one->ifa_addr);
    if (inet_ntop(AF_INET, &address->sin_addr, text, sizeof text) != nullptr)
      found = text;
  }
  freeifaddrs(all);
  return found;
}

// The adapter whose name ends so uses shared memory alone, the others UDP alone.
bool by_shared_memory()
{
  const std::string name = program_invocation_short_name;
  const std::string suffix = "-shm";
  return name.size() > suffix.size() && name.compare(name.size() - suffix.size(), suffix.size(), suffix) == 0;
}

// Octets of the memory of one participant, and messages that may wait for it.
constexpr uint32_t SEGMENT_SIZE = 128 << 20;
constexpr uint32_t QUEUE_CAPACITY = 8192;

std::shared_ptr<SharedMemTransportDescriptor> make_shared_memory()
{
  auto shared_memory = std::make_shared<SharedMemTransportDescriptor>();
  shared_memory->segment_size(SEGMENT_SIZE);
  shared_memory->port_queue_capacity(QUEUE_CAPACITY);
  return shared_memory;
}

std::shared_ptr<UDPv4TransportDescriptor> make_transport(const perfkit_session &spec, const std::string &address)
{
  auto udp = std::make_shared<UDPv4TransportDescriptor>();
  if (spec.tuned)
    udp->sendBufferSize = udp->receiveBufferSize = 4 << 20;
  if (!address.empty())
    udp->interfaceWhiteList.push_back(address);
  return udp;
}

// Fast DDS discovers, so that it needs no addresses of others.
perfkit_status session_open(void *, const perfkit_session *spec, void **out)
{
  std::string address;
  if (spec->interface != nullptr) {
    address = address_of(spec->interface);
    if (address.empty())
      return answer(PERFKIT_FAILED, std::string("no IPv4 address on interface ") + spec->interface);
  }
  DomainParticipantQos qos;
  qos.transport().use_builtin_transports = false;
  if (by_shared_memory())
    qos.transport().user_transports.push_back(make_shared_memory());
  else
    qos.transport().user_transports.push_back(make_transport(*spec, address));
  // Many participants of one host look for free ports.
  qos.wire_protocol().builtin.mutation_tries = 500;
  auto self = std::make_unique<Session>();
  self->participant = DomainParticipantFactory::get_instance()->create_participant(spec->domain, qos);
  if (self->participant == nullptr)
    return failed("no participant");
  self->publisher = self->participant->create_publisher(PUBLISHER_QOS_DEFAULT);
  self->subscriber = self->participant->create_subscriber(SUBSCRIBER_QOS_DEFAULT);
  if (self->publisher == nullptr || self->subscriber == nullptr)
    return failed("no publisher or subscriber");
  self->domain = spec->domain;
  self->multicast = spec->multicast;
  self->tuned = spec->tuned;
  *out = self.release();
  return PERFKIT_OK;
}

void session_close(void *opaque)
{
  std::unique_ptr<Session> self(static_cast<Session *>(opaque));
  self->participant->delete_contained_entities();
  DomainParticipantFactory::get_instance()->delete_participant(self->participant);
}

// What writers and readers have in common.
template <typename Qos> void fill(const Session &session, const perfkit_endpoint &spec, Qos &qos)
{
  const auto fitting = static_cast<int32_t>(std::min<uint64_t>(HISTORY_OCTETS_MAX / (spec.payload_max + 1), SAMPLES_MAX));
  const int32_t depth = static_cast<int32_t>(spec.history_depth);
  const int32_t instances = static_cast<int32_t>(std::max(spec.instances, 1u));
  represent(qos);
  qos.reliability().kind = spec.reliable ? RELIABLE_RELIABILITY_QOS : BEST_EFFORT_RELIABILITY_QOS;
  qos.reliability().max_blocking_time = milliseconds(spec.blocking_ms);
  qos.durability().kind = spec.transient_local ? TRANSIENT_LOCAL_DURABILITY_QOS : VOLATILE_DURABILITY_QOS;
  qos.history().kind = depth == 0 ? KEEP_ALL_HISTORY_QOS : KEEP_LAST_HISTORY_QOS;
  qos.history().depth = std::max(depth, 1);
  // Each instance has room for what it keeps; with KEEP_ALL all of them share what fits.
  const int32_t share = std::max({depth, fitting / instances, depth == 0 ? 2 : 1});
  qos.resource_limits().max_samples_per_instance = share;
  qos.resource_limits().max_instances = instances;
  qos.resource_limits().max_samples = static_cast<int32_t>(std::min<int64_t>(int64_t(share) * instances, INT32_MAX));
  qos.resource_limits().allocated_samples = std::min(qos.resource_limits().allocated_samples, std::max(fitting, 1));
  if (spec.exclusive)
    qos.ownership().kind = EXCLUSIVE_OWNERSHIP_QOS;
  if (spec.deadline_ms != 0)
    qos.deadline().period = milliseconds(spec.deadline_ms);
  if (spec.liveliness_ms != 0) {
    qos.liveliness().lease_duration = milliseconds(spec.liveliness_ms);
    qos.liveliness().announcement_period = milliseconds(std::max<uint64_t>(spec.liveliness_ms * 2 / 5, 1));
  }
  qos.data_sharing().off();
  if (session.tuned)
    tune(qos);
}

struct Writer {
  Session *session;
  DataWriter *writer;
};

perfkit_status writer_new(void *opaque, const perfkit_endpoint *spec, void **out)
{
  Session &session = *static_cast<Session *>(opaque);
  if (spec->priority != 0)
    return answer(PERFKIT_UNSUPPORTED, "Fast DDS does not implement TRANSPORT_PRIORITY");
  Topic *topic = session.topic(*spec);
  if (topic == nullptr)
    return failed("no topic");
  DataWriterQos qos;
  fill(session, *spec, qos);
  qos.writer_data_lifecycle().autodispose_unregistered_instances = false;
  if (spec->exclusive)
    qos.ownership_strength().value = static_cast<uint32_t>(std::max(spec->ownership_strength, 0));
  DataWriter *writer = session.publisher->create_datawriter(topic, qos);
  if (writer == nullptr)
    return failed("no writer");
  *out = new Writer{&session, writer};
  return PERFKIT_OK;
}

void writer_delete(void *opaque)
{
  std::unique_ptr<Writer> self(static_cast<Writer *>(opaque));
  self->session->publisher->delete_datawriter(self->writer);
}

perfkit_status write_sample(void *opaque, uint32_t instance, const void *payload, size_t size)
{
  Sample sample;
  sample.instance = instance;
  sample.lent = static_cast<const uint8_t *>(payload);
  sample.lent_size = static_cast<uint32_t>(size);
  const ReturnCode_t code = static_cast<Writer *>(opaque)->writer->write(&sample, HANDLE_NIL);
  if (is_ok(code))
    return PERFKIT_OK;
  return is_timeout(code) ? PERFKIT_TIMEOUT : failed("write", code);
}

uint32_t writer_matched(void *opaque)
{
  PublicationMatchedStatus status;
  static_cast<Writer *>(opaque)->writer->get_publication_matched_status(status);
  return static_cast<uint32_t>(status.current_count);
}

int32_t wait_acknowledged(void *opaque, uint64_t timeout_ns)
{
  const Duration timeout(static_cast<int32_t>(timeout_ns / 1000000000), static_cast<uint32_t>(timeout_ns % 1000000000));
  return is_ok(static_cast<Writer *>(opaque)->writer->wait_for_acknowledgments(timeout));
}

struct Reader : DataReaderListener {
  Session *session = nullptr;
  DataReader *reader = nullptr;
  ContentFilteredTopic *filtered = nullptr;
  std::unique_ptr<WaitSet> waitset;
  perfkit_sink *sink = nullptr;
  std::mutex taking;
  SampleSequence samples;
  SampleInfoSeq infos;
  int32_t take_max = 1;
  int32_t instances = 1;

  uint64_t take_all(DataReader *from)
  {
    uint64_t count = 0;
    const std::lock_guard<std::mutex> lock(taking);
    while (is_ok(from->take(samples, infos, take_max))) {
      for (LoanableCollection::size_type i = 0; i < infos.length(); i++) {
        if (!infos[i].valid_data)
          continue;
        const Sample &sample = samples[i];
        perfkit_deliver(sink, sample.instance, sample.data.data(), sample.data.size());
        count += 1;
      }
      from->return_loan(samples, infos);
    }
    return count;
  }

  void on_data_available(DataReader *from) override { take_all(from); }
};

// By multicast: the reader announces the group of the domain and no address of its own.
void add_group(const Session &session, DataReaderQos &qos)
{
  Locator group;
  IPLocator::createLocator(LOCATOR_KIND_UDPv4, "239.255.0.1", 7401 + 250 * session.domain, group);
  qos.endpoint().multicast_locator_list.push_back(group);
}

perfkit_status filter(const perfkit_endpoint &spec, Topic *topic, Reader &reader)
{
  static const bool described[] = {describe_type("PerfBytes"), describe_type("PerfKeyed")};
  if (!described[spec.keyed ? 1 : 0])
    return answer(PERFKIT_UNSUPPORTED, "this adapter makes no content filters in Fast DDS 3");
  Session &session = *reader.session;
  const std::string name = std::string(spec.topic) + "_filtered_" + std::to_string(session.filters++);
  reader.filtered = session.participant->create_contentfilteredtopic(
    name, topic, "instance < %0", {std::to_string(spec.filter_instances_below)});
  return reader.filtered == nullptr ? failed("no content-filtered topic") : PERFKIT_OK;
}

perfkit_status reader_new(void *opaque, const perfkit_endpoint *spec, perfkit_sink *sink, void **out)
{
  Session &session = *static_cast<Session *>(opaque);
  Topic *topic = session.topic(*spec);
  if (topic == nullptr)
    return failed("no topic");
  auto self = std::make_unique<Reader>();
  self->session = &session;
  self->sink = sink;
  self->instances = static_cast<int32_t>(std::max(spec->instances, 1u));
  self->take_max = static_cast<int32_t>(
    std::max<uint64_t>(1, std::min<uint64_t>(TAKE_MAX, TAKE_OCTETS_MAX / (spec->payload_max + 1))));
  TopicDescription *description = topic;
  if (spec->filtered) {
    const perfkit_status result = filter(*spec, topic, *self);
    if (result != PERFKIT_OK)
      return result;
    description = self->filtered;
  }
  DataReaderQos qos;
  fill(session, *spec, qos);
  // A read gives 32 samples at most by default.
  qos.reader_resource_limits().max_samples_per_read = std::max(qos.reader_resource_limits().max_samples_per_read, self->instances);
  if (session.multicast == 1)
    add_group(session, qos);
  const bool listens = spec->read == PERFKIT_READ_LISTENER;
  self->reader = session.subscriber->create_datareader(
    description, qos, listens ? self.get() : nullptr, listens ? StatusMask::data_available() : StatusMask::none());
  if (self->reader == nullptr)
    return failed("no reader");
  if (spec->read == PERFKIT_READ_WAITSET) {
    self->waitset = std::make_unique<WaitSet>();
    StatusCondition &condition = self->reader->get_statuscondition();
    condition.set_enabled_statuses(StatusMask::data_available());
    self->waitset->attach_condition(condition);
  }
  *out = self.release();
  return PERFKIT_OK;
}

void reader_delete(void *opaque)
{
  std::unique_ptr<Reader> self(static_cast<Reader *>(opaque));
  self->reader->set_listener(nullptr);
  if (self->waitset)
    self->waitset->detach_condition(self->reader->get_statuscondition());
  self->session->subscriber->delete_datareader(self->reader);
  if (self->filtered != nullptr)
    self->session->participant->delete_contentfilteredtopic(self->filtered);
}

uint32_t reader_matched(void *opaque)
{
  SubscriptionMatchedStatus status;
  static_cast<Reader *>(opaque)->reader->get_subscription_matched_status(status);
  return static_cast<uint32_t>(status.current_count);
}

perfkit_status take(void *opaque, uint64_t *count)
{
  Reader &self = *static_cast<Reader *>(opaque);
  *count = self.take_all(self.reader);
  return PERFKIT_OK;
}

perfkit_status wait_data(void *opaque, uint64_t timeout_ns, int32_t *ready)
{
  ConditionSeq active;
  const Duration timeout(static_cast<int32_t>(timeout_ns / 1000000000), static_cast<uint32_t>(timeout_ns % 1000000000));
  const ReturnCode_t code = static_cast<Reader *>(opaque)->waitset->wait(active, timeout);
  if (!is_ok(code) && !is_timeout(code))
    return failed("wait", code);
  *ready = is_ok(code);
  return PERFKIT_OK;
}

uint64_t returned(Reader &self)
{
  const uint64_t count = static_cast<uint64_t>(self.infos.length());
  self.reader->return_loan(self.samples, self.infos);
  return count;
}

perfkit_status call(void *opaque, int32_t what, uint32_t instance, uint64_t *count)
{
  Reader &self = *static_cast<Reader *>(opaque);
  Sample key;
  key.instance = instance;
  *count = 0;
  switch (what) {
    case PERFKIT_CALL_LOOKUP:
      *count = self.reader->lookup_instance(&key).isDefined() ? 1 : 0;
      break;
    case PERFKIT_CALL_READ_INSTANCE: {
      InstanceHandle_t handle;
      PerfSupport::key(key, &handle.value[0]);
      if (is_ok(self.reader->read_instance(self.samples, self.infos, 1, handle)))
        *count = returned(self);
      break;
    }
    case PERFKIT_CALL_READ_ALL:
      if (is_ok(self.reader->read(self.samples, self.infos, self.instances)))
        *count = returned(self);
      break;
    case PERFKIT_CALL_QUERY:
      return answer(PERFKIT_UNSUPPORTED, "Fast DDS has no query conditions");
    case PERFKIT_CALL_TAKE_ONE:
      if (is_ok(self.reader->take(self.samples, self.infos, 1)))
        *count = returned(self);
      break;
    default:
      return answer(PERFKIT_UNSUPPORTED, "the adapter does not know this call");
  }
  return PERFKIT_OK;
}

perfkit_adapter table()
{
  perfkit_adapter adapter = {};
  adapter.abi = PERFKIT_ABI;
  adapter.product = by_shared_memory() ? "Fast DDS, shared memory" : "Fast DDS";
  adapter.version = version();
#ifdef PERF_FASTDDS_3
  adapter.features = "rtps listener waitset polling keyed reliable best_effort multicast unicast ownership "
                     "transient_local read_cost";
#else
  adapter.features = "rtps listener waitset polling keyed reliable best_effort multicast unicast ownership "
                     "transient_local filter read_cost encode";
  adapter.encode_cost = encode::measure_cost;
#endif
  adapter.open = session_open;
  adapter.close = session_close;
  adapter.writer_new = writer_new;
  adapter.writer_delete = writer_delete;
  adapter.write = write_sample;
  adapter.writer_matched = writer_matched;
  adapter.wait_acknowledged = wait_acknowledged;
  adapter.reader_new = reader_new;
  adapter.reader_delete = reader_delete;
  adapter.reader_matched = reader_matched;
  adapter.take = take;
  adapter.wait = wait_data;
  adapter.call = call;
  return adapter;
}

} // namespace

int main()
{
  const perfkit_adapter adapter = table();
  return perfkit_main(&adapter);
}
