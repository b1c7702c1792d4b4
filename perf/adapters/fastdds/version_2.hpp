// What Fast DDS 2 calls otherwise than Fast DDS 3.
#pragma once

#include <fastdds/dds/topic/TopicDataType.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>
#include <fastdds/rtps/transport/shared_mem/SharedMemTransportDescriptor.h>
#include <fastrtps/config.h>
#include <fastrtps/types/DynamicTypeBuilder.h>
#include <fastrtps/types/DynamicTypeBuilderFactory.h>
#include <fastrtps/types/TypeObjectFactory.h>
#include <fastrtps/utils/IPLocator.h>

namespace product {

namespace rtps = eprosima::fastrtps::rtps;
using namespace eprosima::fastdds::dds;
using Duration = eprosima::fastrtps::Duration_t;
using eprosima::fastdds::rtps::SharedMemTransportDescriptor;
using eprosima::fastdds::rtps::UDPv4TransportDescriptor;
using Locator = rtps::Locator_t;
using rtps::IPLocator;

inline const char *version()
{
  return FASTRTPS_VERSION_STR;
}

inline bool is_ok(const ReturnCode_t &code)
{
  return code == ReturnCode_t::RETCODE_OK;
}

inline bool is_timeout(const ReturnCode_t &code)
{
  return code == ReturnCode_t::RETCODE_TIMEOUT;
}

inline int number(const ReturnCode_t &code)
{
  return static_cast<int>(code());
}

inline void tune(DataWriterQos &qos)
{
  rtps::WriterTimes &times = qos.reliable_writer_qos().times;
  times.heartbeatPeriod = Duration(0, 5000000);
  times.nackResponseDelay = Duration(0, 0);
}

inline void tune(DataReaderQos &qos)
{
  qos.reliable_reader_qos().times.heartbeatResponseDelay = Duration(0, 0);
}

// XCDR1 is all it has.
template <typename Qos> void represent(Qos &)
{
}

// A topic data type from `encode`, `decode`, `encoded_size` and `key` of `Support`.
template <typename Support> class Bridge : public TopicDataType {
public:
  using Sample = typename Support::Sample;

  Bridge(const char *name, bool keyed, uint32_t size)
  {
    setName(name);
    m_typeSize = size;
    m_isGetKeyDefined = keyed;
    auto_fill_type_object(false);
    auto_fill_type_information(false);
  }
  bool serialize(void *data, rtps::SerializedPayload_t *payload) override
  {
    payload->encapsulation = CDR_LE;
    payload->length = Support::encode(*static_cast<Sample *>(data), payload->data, payload->max_size);
    return payload->length != 0;
  }
  bool deserialize(rtps::SerializedPayload_t *payload, void *data) override
  {
    return Support::decode(payload->data, payload->length, *static_cast<Sample *>(data));
  }
  std::function<uint32_t()> getSerializedSizeProvider(void *data) override
  {
    return [data]() { return Support::encoded_size(*static_cast<Sample *>(data)); };
  }
  void *createData() override { return new Sample; }
  void deleteData(void *data) override { delete static_cast<Sample *>(data); }
  bool getKey(void *data, rtps::InstanceHandle_t *handle, bool) override
  {
    Support::key(*static_cast<Sample *>(data), &handle->value[0]);
    return true;
  }
};

// Filters find members by the description of the type.
inline bool describe_type(const char *name)
{
  using namespace eprosima::fastrtps::types;
  DynamicTypeBuilderFactory *factory = DynamicTypeBuilderFactory::get_instance();
  DynamicTypeBuilder *builder = factory->create_struct_builder();
  builder->set_name(name);
  builder->add_member(0, "instance", factory->create_uint32_type());
  builder->add_member(1, "data", factory->create_sequence_builder(factory->create_byte_type(), LENGTH_UNLIMITED)->build());
  const DynamicType_ptr type = builder->build();
  TypeObject complete, minimal;
  TypeIdentifier complete_identifier, minimal_identifier;
  factory->build_type_object(type, complete, true, true);
  factory->build_type_object(type, minimal, false, true);
  factory->build_type_identifier(type, complete_identifier, true);
  factory->build_type_identifier(type, minimal_identifier, false);
  TypeObjectFactory *objects = TypeObjectFactory::get_instance();
  objects->add_type_object(name, &complete_identifier, &complete);
  objects->add_type_object(name, &minimal_identifier, &minimal);
  return true;
}

} // namespace product
