// The types of encode.idl as fastddsgen writes them for Fast DDS 2, with the operators of Fast CDR 1, and what they cost.
#pragma once

#include <array>
#include <chrono>
#include <exception>
#include <string>
#include <vector>

#include <fastcdr/Cdr.h>
#include <fastcdr/FastBuffer.h>

#include "perfkit.h"

namespace encode {

using eprosima::fastcdr::Cdr;
using eprosima::fastcdr::FastBuffer;

// More than a sample of any of the types takes.
constexpr size_t OCTETS_MAX = 1 << 17;

struct Numbers {
  std::array<double, 40> values;
  void serialize(Cdr &cdr) const { cdr << values; }
  void deserialize(Cdr &cdr) { cdr >> values; }
};

struct Text {
  std::array<std::string, 8> words;
  void serialize(Cdr &cdr) const { cdr << words; }
  void deserialize(Cdr &cdr) { cdr >> words; }
};

struct Point {
  double x = 0, y = 0, z = 0;
  void serialize(Cdr &cdr) const { cdr << x << y << z; }
  void deserialize(Cdr &cdr) { cdr >> x >> y >> z; }
};

struct Rotation {
  double x = 0, y = 0, z = 0, w = 0;
  void serialize(Cdr &cdr) const { cdr << x << y << z << w; }
  void deserialize(Cdr &cdr) { cdr >> x >> y >> z >> w; }
};

struct Pose {
  Point position;
  Rotation orientation;
  std::array<double, 36> covariance;
  int32_t seconds = 1;
  uint32_t nanoseconds = 2;
  void serialize(Cdr &cdr) const { cdr << position << orientation << covariance << seconds << nanoseconds; }
  void deserialize(Cdr &cdr) { cdr >> position >> orientation >> covariance >> seconds >> nanoseconds; }
};

struct Image {
  uint32_t width = 256, height = 256;
  std::string encoding = "mono8";
  std::vector<uint8_t> data;
  void serialize(Cdr &cdr) const { cdr << width << height << encoding << data; }
  void deserialize(Cdr &cdr) { cdr >> width >> height >> encoding >> data; }
};

struct TrackPoint {
  Point position;
  float speed = 1.5f;
  uint8_t quality = 9;
  std::string label;
  void serialize(Cdr &cdr) const { cdr << position << speed << quality << label; }
  void deserialize(Cdr &cdr) { cdr >> position >> speed >> quality >> label; }
};

struct Track {
  uint32_t id = 1;
  std::vector<TrackPoint> points;
  void serialize(Cdr &cdr) const { cdr << id << points; }
  void deserialize(Cdr &cdr) { cdr >> id >> points; }
};

// What is at this address is used, as far as the compiler knows.
inline void use(const void *address)
{
  asm volatile("" : : "r"(address) : "memory");
}

// As Fast DDS does it: into memory that is there, and out of it into a sample that is there.
template <typename Type> perfkit_status measure(const Type &sample, uint64_t rounds, perfkit_encode_cost *cost)
{
  using Clock = std::chrono::steady_clock;
  std::vector<char> octets(OCTETS_MAX);
  size_t length = 0;
  Type decoded = sample;
  const auto begin = Clock::now();
  for (uint64_t round = 0; round < rounds; round++) {
    FastBuffer buffer(octets.data(), octets.size());
    Cdr cdr(buffer, Cdr::DEFAULT_ENDIAN, Cdr::DDS_CDR);
    use(&sample);
    cdr.serialize_encapsulation();
    sample.serialize(cdr);
    length = cdr.getSerializedDataLength();
    use(octets.data());
  }
  const auto encoded = Clock::now();
  for (uint64_t round = 0; round < rounds; round++) {
    FastBuffer buffer(octets.data(), length);
    Cdr cdr(buffer, Cdr::DEFAULT_ENDIAN, Cdr::DDS_CDR);
    cdr.read_encapsulation();
    decoded.deserialize(cdr);
    use(&decoded);
  }
  const auto end = Clock::now();
  const auto each = [rounds](Clock::duration all) {
    return std::chrono::duration<double, std::nano>(all).count() / static_cast<double>(rounds);
  };
  cost->encode_ns = each(encoded - begin);
  cost->decode_ns = each(end - encoded);
  cost->encoded_octets = length;
  return PERFKIT_OK;
}

inline perfkit_status measure_named(const std::string &name, uint64_t rounds, perfkit_encode_cost *cost)
{
  const std::string word = "twelve chars";
  if (name == "numbers") {
    Numbers numbers;
    numbers.values.fill(0.5);
    return measure(numbers, rounds, cost);
  }
  if (name == "text") {
    Text text;
    text.words.fill(word);
    return measure(text, rounds, cost);
  }
  if (name == "pose") {
    Pose pose;
    pose.covariance.fill(0.25);
    return measure(pose, rounds, cost);
  }
  if (name == "image") {
    Image image;
    image.data.assign(1 << 16, 7);
    return measure(image, rounds, cost);
  }
  if (name == "track") {
    TrackPoint point;
    point.label = word;
    Track track;
    track.points.assign(50, point);
    return measure(track, rounds, cost);
  }
  return perfkit_fail(PERFKIT_UNSUPPORTED, "there is no such type: take numbers, text, pose, image or track");
}

inline perfkit_status measure_cost(void *, const char *name, uint64_t rounds, perfkit_encode_cost *cost)
{
  try {
    return measure_named(name, rounds > 0 ? rounds : 1, cost);
  } catch (const std::exception &error) {
    return perfkit_fail(PERFKIT_FAILED, error.what());
  }
}

} // namespace encode
