// A shapes application on eProsima Fast DDS 2.9. It knows XCDR1 only.
#include "../common/shapes.h"

#include <map>
#include <string>
#include <vector>

#include <fastcdr/Cdr.h>
#include <fastdds/dds/core/LoanableSequence.hpp>
#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/domain/DomainParticipantListener.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/ContentFilteredTopic.hpp>
#include <fastdds/dds/topic/Topic.hpp>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <fastdds/dds/topic/TypeSupport.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>
#include <fastrtps/types/DynamicTypeBuilder.h>
#include <fastrtps/types/DynamicTypeBuilderFactory.h>
#include <fastrtps/types/TypeObjectFactory.h>
#include <fastrtps/utils/md5.h>

using namespace eprosima::fastdds::dds;
using eprosima::fastcdr::Cdr;
using eprosima::fastcdr::FastBuffer;
using eprosima::fastdds::rtps::UDPv4TransportDescriptor;
using eprosima::fastrtps::rtps::SerializedPayload_t;

namespace {

struct Shape {
  std::string color;
  int32_t x = 0, y = 0, shapesize = 0;
  std::vector<uint8_t> additional_payload_size;
};

FASTDDS_SEQUENCE(ShapeSequence, Shape);

class ShapeSupport : public TopicDataType {
public:
  ShapeSupport()
  {
    setName("ShapeType");
    m_typeSize = 4 + 4 + 132 + 12 + 4; // grows with the payload: see the memory policy
    m_isGetKeyDefined = true;
    auto_fill_type_object(false);
    auto_fill_type_information(false);
  }

  bool serialize(void *data, SerializedPayload_t *payload) override
  {
    const Shape &shape = *static_cast<Shape *>(data);
    FastBuffer buffer(reinterpret_cast<char *>(payload->data), payload->max_size);
    Cdr cdr(buffer, Cdr::LITTLE_ENDIANNESS, Cdr::DDS_CDR);
    payload->encapsulation = CDR_LE;
    try {
      cdr.serialize_encapsulation();
      cdr << shape.color << shape.x << shape.y << shape.shapesize << shape.additional_payload_size;
    } catch (const eprosima::fastcdr::exception::Exception &) {
      return false;
    }
    payload->length = static_cast<uint32_t>(cdr.getSerializedDataLength());
    return true;
  }

  // A payload may hold the key alone, so what is missing after the colour is left as it is.
  bool deserialize(SerializedPayload_t *payload, void *data) override
  {
    Shape &shape = *static_cast<Shape *>(data);
    shape = Shape();
    FastBuffer buffer(reinterpret_cast<char *>(payload->data), payload->length);
    Cdr cdr(buffer, Cdr::DEFAULT_ENDIAN, Cdr::DDS_CDR);
    try {
      cdr.read_encapsulation();
      cdr >> shape.color;
    } catch (const eprosima::fastcdr::exception::Exception &) {
      return false;
    }
    try {
      cdr >> shape.x >> shape.y >> shape.shapesize >> shape.additional_payload_size;
    } catch (const eprosima::fastcdr::exception::Exception &) {
    }
    return true;
  }

  std::function<uint32_t()> getSerializedSizeProvider(void *data) override
  {
    const Shape *shape = static_cast<Shape *>(data);
    return [shape]() -> uint32_t {
      const size_t color = (4 + shape->color.size() + 1 + 3) / 4 * 4;
      return static_cast<uint32_t>(4 + color + 12 + 4 + shape->additional_payload_size.size());
    };
  }

  void *createData() override { return new Shape; }
  void deleteData(void *data) override { delete static_cast<Shape *>(data); }

  // The key may exceed 16 octets, so its hash is always the MD5 of its big-endian CDR.
  bool getKey(void *data, InstanceHandle_t *handle, bool) override
  {
    const std::string &color = static_cast<Shape *>(data)->color;
    const uint32_t length = static_cast<uint32_t>(color.size() + 1);
    std::vector<unsigned char> key = {
      static_cast<unsigned char>(length >> 24), static_cast<unsigned char>(length >> 16),
      static_cast<unsigned char>(length >> 8), static_cast<unsigned char>(length)};
    key.insert(key.end(), color.c_str(), color.c_str() + length);
    MD5 md5;
    md5.init();
    md5.update(key.data(), static_cast<unsigned int>(key.size()));
    md5.finalize();
    for (int i = 0; i < 16; i++)
      handle->value[i] = md5.digest[i];
    return true;
  }
};

// Filters find members by the description of the type.
void describe_type()
{
  using namespace eprosima::fastrtps::types;
  DynamicTypeBuilderFactory *factory = DynamicTypeBuilderFactory::get_instance();
  DynamicTypeBuilder *builder = factory->create_struct_builder();
  builder->set_name("ShapeType");
  builder->add_member(0, "color", factory->create_string_type(128));
  builder->add_member(1, "x", factory->create_int32_type());
  builder->add_member(2, "y", factory->create_int32_type());
  builder->add_member(3, "shapesize", factory->create_int32_type());
  builder->add_member(4, "additional_payload_size",
                      factory->create_sequence_builder(factory->create_byte_type(), LENGTH_UNLIMITED)->build());
  const DynamicType_ptr type = builder->build();
  static TypeObject complete, minimal;
  static TypeIdentifier complete_identifier, minimal_identifier;
  factory->build_type_object(type, complete, true, true);
  factory->build_type_object(type, minimal, false, true);
  factory->build_type_identifier(type, complete_identifier, true);
  factory->build_type_identifier(type, minimal_identifier, false);
  TypeObjectFactory *objects = TypeObjectFactory::get_instance();
  objects->add_type_object("ShapeType", &complete_identifier, &complete);
  objects->add_type_object("ShapeType", &minimal_identifier, &minimal);
}

std::string names(const char *topic) { return std::string("topic: '") + topic + "'  type: 'ShapeType'"; }

class Reporter : public DomainParticipantListener {
public:
  explicit Reporter(const char *topic) : names_(names(topic)) {}

  void on_publication_matched(DataWriter *, const PublicationMatchedStatus &status) override
  {
    shapes_say("on_publication_matched() %s : matched readers %d (change = %d)", names_.c_str(),
               status.current_count, status.current_count_change);
  }
  void on_subscription_matched(DataReader *, const SubscriptionMatchedStatus &status) override
  {
    shapes_say("on_subscription_matched() %s : matched writers %d (change = %d)", names_.c_str(),
               status.current_count, status.current_count_change);
  }
  void on_offered_incompatible_qos(DataWriter *, const OfferedIncompatibleQosStatus &status) override
  {
    say_policy("on_offered_incompatible_qos", status.last_policy_id);
  }
  void on_requested_incompatible_qos(DataReader *, const RequestedIncompatibleQosStatus &status) override
  {
    say_policy("on_requested_incompatible_qos", status.last_policy_id);
  }
  void on_offered_deadline_missed(DataWriter *, const OfferedDeadlineMissedStatus &status) override
  {
    say_counts("on_offered_deadline_missed", status.total_count, status.total_count_change);
  }
  void on_requested_deadline_missed(DataReader *, const RequestedDeadlineMissedStatus &status) override
  {
    say_counts("on_requested_deadline_missed", status.total_count, status.total_count_change);
  }
  void on_liveliness_lost(DataWriter *, const LivelinessLostStatus &status) override
  {
    say_counts("on_liveliness_lost", status.total_count, status.total_count_change);
  }
  void on_liveliness_changed(DataReader *, const LivelinessChangedStatus &status) override
  {
    shapes_say("on_liveliness_changed() %s : (alive = %d, not_alive = %d)", names_.c_str(),
               status.alive_count, status.not_alive_count);
  }

private:
  void say_policy(const char *event, int id)
  {
    shapes_say("%s() %s : %d (%s)", event, names_.c_str(), id, shapes_policy_name(id));
  }
  void say_counts(const char *event, int total, int change)
  {
    shapes_say("%s() %s : (total = %d, change = %d)", event, names_.c_str(), total, change);
  }

  std::string names_;
};

Duration_t milliseconds(int count)
{
  return Duration_t(count / 1000, static_cast<uint32_t>(count % 1000) * 1000000u);
}

DurabilityQosPolicyKind durability(char letter)
{
  switch (letter) {
    case 'l': return TRANSIENT_LOCAL_DURABILITY_QOS;
    case 't': return TRANSIENT_DURABILITY_QOS;
    case 'p': return PERSISTENT_DURABILITY_QOS;
    default: return VOLATILE_DURABILITY_QOS;
  }
}

// What writers and readers have in common.
template <typename Qos> void fill(const shapes_options &options, Qos &qos)
{
  qos.reliability().kind = options.best_effort ? BEST_EFFORT_RELIABILITY_QOS : RELIABLE_RELIABILITY_QOS;
  qos.durability().kind = durability(options.durability);
  if (options.history_depth == 0)
    qos.history().kind = KEEP_ALL_HISTORY_QOS;
  else if (options.history_depth > 0)
    qos.history().depth = options.history_depth;
  // 0 is no limit here.
  qos.resource_limits().max_samples = 0;
  qos.resource_limits().max_instances = 0;
  qos.resource_limits().max_samples_per_instance = 0;
  // Not DYNAMIC_REUSABLE: its reader refuses changes of 0 octets, which Fast DDS sends to dispose.
  qos.endpoint().history_memory_policy = eprosima::fastrtps::rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
  if (options.deadline_ms > 0)
    qos.deadline().period = milliseconds(options.deadline_ms);
  if (options.ownership_strength >= 0)
    qos.ownership().kind = EXCLUSIVE_OWNERSHIP_QOS;
}

template <typename Entity> Entity *made(const char *what, Entity *entity)
{
  if (entity == nullptr) {
    fprintf(stderr, "%s: not created\n", what);
    exit(EXIT_SETUP);
  }
  return entity;
}

DomainParticipant *make_participant(const shapes_options &options)
{
  // UDP alone: the harness watches what goes over the network.
  DomainParticipantQos qos;
  auto udp = std::make_shared<UDPv4TransportDescriptor>();
  udp->sendBufferSize = udp->receiveBufferSize = 4 << 20;
  qos.transport().use_builtin_transports = false;
  qos.transport().user_transports.push_back(udp);
  DomainParticipantFactory *factory = DomainParticipantFactory::get_instance();
  return made("participant", factory->create_participant(static_cast<uint32_t>(options.domain), qos));
}

// Statuses go to the endpoint's own listener: without one, 2.9 crashes when a writer misses a deadline.
StatusMask statuses()
{
  StatusMask mask = StatusMask::all();
  mask >> StatusMask::data_available() >> StatusMask::data_on_readers();
  return mask;
}

int publish(const shapes_options &options, DomainParticipant *participant, Topic *topic, Reporter &reporter)
{
  PublisherQos group;
  if (options.partition)
    group.partition().push_back(options.partition);
  DataWriterQos qos;
  fill(options, qos);
  qos.reliability().max_blocking_time = milliseconds(10000);
  qos.publish_mode().kind = ASYNCHRONOUS_PUBLISH_MODE; // samples of more than one datagram need it
  qos.writer_data_lifecycle().autodispose_unregistered_instances = false; // disposed when asked to
  if (options.ownership_strength >= 0)
    qos.ownership_strength().value = static_cast<uint32_t>(options.ownership_strength);
  if (options.lifespan_ms > 0)
    qos.lifespan().duration = milliseconds(options.lifespan_ms);
  Publisher *publisher = made("publisher", participant->create_publisher(group));
  // Its listener is told of it, maybe at once: said before.
  shapes_say("Create writer for topic: %s color: %s", options.topic, options.color ? options.color : "BLUE");
  DataWriter *writer = made("writer", publisher->create_datawriter(topic, qos, &reporter, statuses()));

  shapes_motion motion = shapes_start_motion(&options);
  char color[COLOR_SIZE];
  Shape shape;
  shape.additional_payload_size.assign(static_cast<size_t>(options.additional_payload_size), 255);
  for (int n = 0; !shapes_stopped && (options.iterations == 0 || n < options.iterations); n++) {
    shapes_move(&options, &motion);
    shape.x = motion.x;
    shape.y = motion.y;
    shape.shapesize = motion.size;
    for (int i = 0; i < options.instances; i++) {
      shapes_instance_color(&options, i, color);
      shape.color = color;
      if (!writer->write(&shape)) {
        fprintf(stderr, "write: failed\n");
        return EXIT_RUN;
      }
      if (options.print_written)
        shapes_say_sample(options.topic, color, shape.x, shape.y, shape.shapesize,
                          shape.additional_payload_size.data(),
                          static_cast<uint32_t>(shape.additional_payload_size.size()));
    }
    shapes_sleep_ms(options.write_period_ms);
  }
  for (int i = 0; options.final_state && i < options.instances; i++) {
    shapes_instance_color(&options, i, color);
    shape.color = color;
    if (options.final_state == 'd')
      writer->dispose(&shape, HANDLE_NIL);
    else
      writer->unregister_instance(&shape, HANDLE_NIL);
  }
  writer->wait_for_acknowledgments(milliseconds(1000));
  return 0;
}

// Takes and prints what is there. `colors` names instances, for samples without data.
void take_all(const shapes_options &options, DataReader *reader, std::map<InstanceHandle_t, std::string> &colors)
{
  ShapeSequence shapes;
  SampleInfoSeq infos;
  while (reader->take(shapes, infos) == ReturnCode_t::RETCODE_OK) {
    for (LoanableCollection::size_type i = 0; i < shapes.length(); i++) {
      const Shape &shape = shapes[i];
      const SampleInfo &info = infos[i];
      if (info.valid_data)
        colors[info.instance_handle] = shape.color;
      const char *color = colors[info.instance_handle].c_str();
      if (options.color && strcmp(options.color, color) != 0)
        continue;
      if (info.valid_data)
        shapes_say_sample(options.topic, color, shape.x, shape.y, shape.shapesize,
                          shape.additional_payload_size.data(),
                          static_cast<uint32_t>(shape.additional_payload_size.size()));
      else if (info.instance_state == NOT_ALIVE_DISPOSED_INSTANCE_STATE)
        shapes_say("%-10s %-10s NOT_ALIVE_DISPOSED_INSTANCE_STATE", options.topic, color);
      else if (info.instance_state == NOT_ALIVE_NO_WRITERS_INSTANCE_STATE)
        shapes_say("%-10s %-10s NOT_ALIVE_NO_WRITERS_INSTANCE_STATE", options.topic, color);
    }
    reader->return_loan(shapes, infos);
  }
}

int subscribe(const shapes_options &options, DomainParticipant *participant, Topic *topic, Reporter &reporter)
{
  SubscriberQos group;
  if (options.partition)
    group.partition().push_back(options.partition);
  DataReaderQos qos;
  fill(options, qos);
  Subscriber *subscriber = made("subscriber", participant->create_subscriber(group));
  const std::string filtered = std::string(options.topic) + "_filtered";
  TopicDescription *source = topic;
  if (options.filter)
    source = made("filter", participant->create_contentfilteredtopic(filtered, topic, options.filter, {}));
  // Its listener is told of it, maybe at once: said before.
  shapes_say("Create reader for topic: %s", options.filter ? filtered.c_str() : options.topic);
  DataReader *reader = made("reader", subscriber->create_datareader(source, qos, &reporter, statuses()));
  std::map<InstanceHandle_t, std::string> colors;
  for (int n = 0; !shapes_stopped && (options.iterations == 0 || n < options.iterations); n++) {
    take_all(options, reader, colors);
    shapes_sleep_ms(options.read_period_ms);
  }
  return 0;
}

} // namespace

int main(int argc, char **argv)
{
  const shapes_options options = shapes_parse(argc, argv);
  if (options.data_representation != 1) {
    shapes_say("XCDR2 is not supported");
    return EXIT_SETUP;
  }
  shapes_install_interrupt();
  Reporter reporter(options.topic);
  DomainParticipant *participant = make_participant(options);
  TypeSupport type(new ShapeSupport);
  type.register_type(participant);
  describe_type();
  Topic *topic = made("topic", participant->create_topic(options.topic, "ShapeType", TOPIC_QOS_DEFAULT));
  shapes_say("Create topic: %s", options.topic);
  const int status =
    options.publish ? publish(options, participant, topic, reporter)
                    : subscribe(options, participant, topic, reporter);
  participant->delete_contained_entities();
  DomainParticipantFactory::get_instance()->delete_participant(participant);
  shapes_say("Done.");
  return status;
}
