// What Fast DDS 3 calls otherwise than Fast DDS 2.
#pragma once

#include <fastdds/config.hpp>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.hpp>
#include <fastdds/rtps/transport/shared_mem/SharedMemTransportDescriptor.hpp>
#include <fastdds/utils/IPLocator.hpp>

namespace product {

namespace rtps = eprosima::fastdds::rtps;
using namespace eprosima::fastdds::dds;
using Duration = eprosima::fastdds::dds::Duration_t;
using Locator = rtps::Locator_t;
using rtps::IPLocator;
using rtps::SharedMemTransportDescriptor;
using rtps::UDPv4TransportDescriptor;

inline const char *version()
{
  return FASTDDS_VERSION_STR;
}

inline bool is_ok(ReturnCode_t code)
{
  return code == RETCODE_OK;
}

inline bool is_timeout(ReturnCode_t code)
{
  return code == RETCODE_TIMEOUT;
}

inline int number(ReturnCode_t code)
{
  return static_cast<int>(code);
}

inline void tune(DataWriterQos &qos)
{
  rtps::WriterTimes &times = qos.reliable_writer_qos().times;
  times.heartbeat_period = Duration(0, 5000000);
  times.nack_response_delay = Duration(0, 0);
}

inline void tune(DataReaderQos &qos)
{
  qos.reliable_reader_qos().times.heartbeat_response_delay = Duration(0, 0);
}

template <typename Qos> void represent(Qos &qos)
{
  qos.representation().m_value = {DataRepresentationId_t::XCDR_DATA_REPRESENTATION};
}

// A topic data type from `encode`, `decode`, `encoded_size` and `key` of `Support`.
template <typename Support> class Bridge : public TopicDataType {
public:
  using Sample = typename Support::Sample;

  Bridge(const char *name, bool keyed, uint32_t size)
  {
    set_name(name);
    max_serialized_type_size = size;
    is_compute_key_provided = keyed;
  }
  bool serialize(const void *const data, rtps::SerializedPayload_t &payload, DataRepresentationId_t) override
  {
    payload.encapsulation = CDR_LE;
    payload.length = Support::encode(*static_cast<const Sample *>(data), payload.data, payload.max_size);
    return payload.length != 0;
  }
  bool deserialize(rtps::SerializedPayload_t &payload, void *data) override
  {
    return Support::decode(payload.data, payload.length, *static_cast<Sample *>(data));
  }
  uint32_t calculate_serialized_size(const void *const data, DataRepresentationId_t) override
  {
    return Support::encoded_size(*static_cast<const Sample *>(data));
  }
  void *create_data() override { return new Sample; }
  void delete_data(void *data) override { delete static_cast<Sample *>(data); }
  bool compute_key(rtps::SerializedPayload_t &payload, rtps::InstanceHandle_t &handle, bool) override
  {
    Sample sample;
    return Support::decode(payload.data, payload.length, sample) && compute_key(&sample, handle, false);
  }
  bool compute_key(const void *const data, rtps::InstanceHandle_t &handle, bool) override
  {
    Support::key(*static_cast<const Sample *>(data), &handle.value[0]);
    return true;
  }
};

// The adapter does not describe the type to Fast DDS 3, so that it has no filters.
inline bool describe_type(const char *)
{
  return false;
}

} // namespace product
