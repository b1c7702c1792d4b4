// Types and samples that are made at run time, on Fast DDS 3.2: types/fastdds.py drives it.
//
// A line of input is an S-expression:
//   (topic NAME XCDR WRITTEN READ (DEFINITION...) TYPE (VALUE...))  opens a topic and writes the samples
//   (read SECONDS QUIET)   waits for as many, no longer than so, or until nothing came for QUIET; tells of each topic
//   (close)                                                        ends all
// Output: "NAME<tab>PROBLEM" for each topic where something is wrong, and "done" after reading.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/xtypes/dynamic_types/DynamicData.hpp>
#include <fastdds/dds/xtypes/dynamic_types/DynamicDataFactory.hpp>
#include <fastdds/dds/xtypes/dynamic_types/DynamicPubSubType.hpp>
#include <fastdds/dds/xtypes/dynamic_types/DynamicTypeBuilder.hpp>
#include <fastdds/dds/xtypes/dynamic_types/DynamicTypeBuilderFactory.hpp>
#include <fastdds/dds/xtypes/dynamic_types/MemberDescriptor.hpp>
#include <fastdds/dds/xtypes/dynamic_types/TypeDescriptor.hpp>
#include <fastdds/dds/xtypes/utils.hpp>

using namespace eprosima::fastdds::dds;
using Type = DynamicType::_ref_type;
using Data = DynamicData::_ref_type;

struct Node {
  std::string atom;
  std::vector<Node> items;
  const Node& operator[](size_t at) const { return items.at(at); }
  size_t size() const { return items.size(); }
  bool is(const char* word) const { return atom == word; }
  long long number() const { return std::stoll(atom); }
};

static Node parse(std::istream& in) {
  Node node;
  in >> std::ws;
  if (in.peek() != '(') {
    while (in.peek() != ' ' && in.peek() != ')' && in.peek() != EOF) node.atom += static_cast<char>(in.get());
    return node;
  }
  in.get();
  while ((in >> std::ws).peek() != ')') {
    if (in.peek() == EOF) throw std::runtime_error("a ) is missing");
    node.items.push_back(parse(in));
  }
  in.get();
  return node;
}

// x and two digits for each octet.
static std::string text(const Node& node) {
  std::string octets;
  for (size_t at = 1; at + 1 < node.atom.size(); at += 2)
    octets += static_cast<char>(std::stoi(node.atom.substr(at, 2), nullptr, 16));
  return octets;
}

// x and four digits for each character.
static std::wstring wide_text(const Node& node) {
  std::wstring characters;
  for (size_t at = 1; at + 3 < node.atom.size(); at += 4)
    characters += static_cast<wchar_t>(std::stoi(node.atom.substr(at, 4), nullptr, 16));
  return characters;
}

static void check(ReturnCode_t code, const std::string& what) {
  if (code != RETCODE_OK) throw std::runtime_error(what + ": return code " + std::to_string(code));
}

template <typename T>
static T check(T object, const std::string& what) {
  if (!object) throw std::runtime_error(what + " failed");
  return object;
}

static const std::map<std::string, TypeKind> PRIMITIVES = {
    {"boolean", TK_BOOLEAN}, {"octet", TK_BYTE},      {"int8", TK_INT8},     {"uint8", TK_UINT8},
    {"int16", TK_INT16},     {"uint16", TK_UINT16},   {"int32", TK_INT32},   {"uint32", TK_UINT32},
    {"int64", TK_INT64},     {"uint64", TK_UINT64},   {"float32", TK_FLOAT32}, {"float64", TK_FLOAT64},
    {"char", TK_CHAR8},      {"wchar", TK_CHAR16},
};

static Type primitive(TypeKind kind) { return DynamicTypeBuilderFactory::get_instance()->get_primitive_type(kind); }

static TypeDescriptor::_ref_type descriptor(TypeKind kind, const std::string& name) {
  auto made = traits<TypeDescriptor>::make_shared();
  made->kind(kind);
  made->name(name);
  return made;
}

static DynamicTypeBuilder::_ref_type builder(const TypeDescriptor::_ref_type& of) {
  return check(DynamicTypeBuilderFactory::get_instance()->create_type(of), "create_type " + of->name().to_string());
}

static void add(const DynamicTypeBuilder::_ref_type& to, const MemberDescriptor::_ref_type& member) {
  check(to->add_member(member), "add_member " + member->name().to_string());
}

static ExtensibilityKind extensibility(const Node& node) {
  return node.is("final") ? ExtensibilityKind::FINAL
         : node.is("mutable") ? ExtensibilityKind::MUTABLE : ExtensibilityKind::APPENDABLE;
}

class Types {
 public:
  explicit Types(const Node& definitions) {
    for (const Node& definition : definitions.items) named_[definition[1].atom] = define(definition);
  }

  Type type(const Node& node) const {
    auto factory = DynamicTypeBuilderFactory::get_instance();
    if (!node.atom.empty()) {
      auto found = PRIMITIVES.find(node.atom);
      return found != PRIMITIVES.end() ? primitive(found->second) : named_.at(node.atom);
    }
    const Node& kind = node[0];
    auto bound = [](const Node& it) { return it.number() == 0 ? static_cast<uint32_t>(LENGTH_UNLIMITED) : static_cast<uint32_t>(it.number()); };
    if (kind.is("string")) return factory->create_string_type(bound(node[1]))->build();
    if (kind.is("wstring")) return factory->create_wstring_type(bound(node[1]))->build();
    if (kind.is("sequence")) return check(factory->create_sequence_type(type(node[2]), bound(node[1])), "sequence")->build();
    if (kind.is("map")) return check(factory->create_map_type(type(node[2]), type(node[3]), bound(node[1])), "map")->build();
    BoundSeq dimensions;
    for (const Node& size : node[1].items) dimensions.push_back(static_cast<uint32_t>(size.number()));
    return check(factory->create_array_type(type(node[2]), dimensions), "array")->build();
  }

 private:
  std::map<std::string, Type> named_;

  MemberDescriptor::_ref_type member(const Node& node) const {
    // (NAME ID TYPE FLAG...)
    auto made = traits<MemberDescriptor>::make_shared();
    made->name(node[0].atom);
    made->id(static_cast<MemberId>(node[1].number()));
    made->type(type(node[2]));
    for (size_t at = 3; at < node.size(); ++at) {
      if (node[at].is("key")) made->is_key(true);
      if (node[at].is("optional")) made->is_optional(true);
      if (node[at].is("external")) made->is_shared(true);
      if (node[at].is("must_understand")) made->is_must_understand(true);
    }
    return made;
  }

  Type define(const Node& node) const {
    const Node& kind = node[0];
    const std::string& name = node[1].atom;
    if (kind.is("alias")) {
      auto of = descriptor(TK_ALIAS, name);
      of->base_type(type(node[2]));
      return builder(of)->build();
    }
    if (kind.is("enum")) return enumeration(node);
    if (kind.is("bitmask")) {
      auto of = descriptor(TK_BITMASK, name);
      of->element_type(primitive(TK_BOOLEAN));
      of->bound({static_cast<uint32_t>(node[2].number())});
      auto made = builder(of);
      for (const Node& flag : node[3].items) {
        auto it = traits<MemberDescriptor>::make_shared();
        it->name(flag[0].atom);
        it->type(primitive(TK_BOOLEAN));
        it->id(static_cast<MemberId>(flag[1].number()));
        add(made, it);
      }
      return made->build();
    }
    if (kind.is("bitset")) {
      auto of = descriptor(TK_BITSET, name);
      BoundSeq widths;
      for (const Node& field : node[2].items) widths.push_back(static_cast<uint32_t>(field[2].number()));
      of->bound(widths);
      auto made = builder(of);
      for (const Node& field : node[2].items) {
        auto it = traits<MemberDescriptor>::make_shared();
        it->name(field[0].atom);
        it->type(type(field[3]));
        it->id(static_cast<MemberId>(field[1].number()));
        add(made, it);
      }
      return made->build();
    }
    if (kind.is("struct")) {
      // (struct NAME EXTENSIBILITY NESTED BASE (MEMBER...))
      auto of = descriptor(TK_STRUCTURE, name);
      of->extensibility_kind(extensibility(node[2]));
      of->is_nested(node[3].is("nested"));
      if (!node[4].is("-")) of->base_type(type(node[4]));
      auto made = builder(of);
      for (const Node& it : node[5].items) add(made, member(it));
      return made->build();
    }
    // (union NAME EXTENSIBILITY NESTED DISCRIMINATOR ((MEMBER DEFAULT LABEL...)...))
    auto of = descriptor(TK_UNION, name);
    of->extensibility_kind(extensibility(node[2]));
    of->is_nested(node[3].is("nested"));
    of->discriminator_type(type(node[4]));
    auto made = builder(of);
    for (const Node& it : node[5].items) {
      auto one = member(it[0]);
      one->is_default_label(it[1].is("default"));
      UnionCaseLabelSeq labels;
      for (size_t at = 2; at < it.size(); ++at) labels.push_back(static_cast<int32_t>(it[at].number()));
      one->label(labels);
      add(made, one);
    }
    return made->build();
  }

  Type enumeration(const Node& node) const {
    // (enum NAME BITS DEFAULT ((NAME VALUE)...))
    const long long bits = node[2].number();
    auto made = builder(descriptor(TK_ENUM, node[1].atom));
    for (const Node& literal : node[4].items) {
      auto it = traits<MemberDescriptor>::make_shared();
      it->name(literal[0].atom);
      it->type(primitive(bits <= 8 ? TK_INT8 : bits <= 16 ? TK_INT16 : TK_INT32));
      it->default_value(literal[1].atom);
      it->is_default_label(literal[0].atom == node[3].atom);
      add(made, it);
    }
    return made->build();
  }
};

// What an alias stands for.
static Type resolved(Type type) {
  while (type->get_kind() == TK_ALIAS) {
    auto of = traits<TypeDescriptor>::make_shared();
    type->get_descriptor(of);
    type = of->base_type();
  }
  return type;
}

static TypeDescriptor::_ref_type descriptor_of(const Type& type) {
  auto of = traits<TypeDescriptor>::make_shared();
  check(type->get_descriptor(of), "get_descriptor");
  return of;
}

static Type member_type(const Type& type, MemberId id) {
  DynamicTypeMember::_ref_type member;
  check(type->get_member(member, id), "get_member " + std::to_string(id));
  auto of = traits<MemberDescriptor>::make_shared();
  check(member->get_descriptor(of), "get_descriptor");
  return of->type();
}

static Data made(const Type& type, const Node& value);

// Sets what `id` names, of this type.
static void set(const Data& data, MemberId id, const Type& declared, const Node& value) {
  const Type type = resolved(declared);
  TypeKind kind = type->get_kind();
  if (kind == TK_ENUM) {
    DynamicTypeMember::_ref_type literal;
    check(type->get_member_by_index(literal, 0), "get_member_by_index");
    auto of = traits<MemberDescriptor>::make_shared();
    literal->get_descriptor(of);
    kind = of->type()->get_kind();
  } else if (kind == TK_BITMASK) {
    const uint32_t bits = descriptor_of(type)->bound()[0];
    kind = bits <= 8 ? TK_UINT8 : bits <= 16 ? TK_UINT16 : bits <= 32 ? TK_UINT32 : TK_UINT64;
  }
  const std::string& atom = value.atom;
  auto code = [&]() -> ReturnCode_t {
    switch (kind) {
      case TK_BOOLEAN: return data->set_boolean_value(id, atom == "1");
      case TK_BYTE: return data->set_byte_value(id, static_cast<uint8_t>(value.number()));
      case TK_INT8: return data->set_int8_value(id, static_cast<int8_t>(value.number()));
      case TK_UINT8: return data->set_uint8_value(id, static_cast<uint8_t>(value.number()));
      case TK_INT16: return data->set_int16_value(id, static_cast<int16_t>(value.number()));
      case TK_UINT16: return data->set_uint16_value(id, static_cast<uint16_t>(value.number()));
      case TK_INT32: return data->set_int32_value(id, static_cast<int32_t>(value.number()));
      case TK_UINT32: return data->set_uint32_value(id, static_cast<uint32_t>(value.number()));
      case TK_INT64: return data->set_int64_value(id, value.number());
      case TK_UINT64: return data->set_uint64_value(id, std::stoull(atom));
      case TK_FLOAT32: return data->set_float32_value(id, static_cast<float>(std::strtod(atom.c_str(), nullptr)));
      case TK_FLOAT64: return data->set_float64_value(id, std::strtod(atom.c_str(), nullptr));
      case TK_CHAR8: return data->set_char8_value(id, static_cast<char>(value.number()));
      case TK_CHAR16: return data->set_char16_value(id, static_cast<wchar_t>(value.number()));
      case TK_STRING8: return data->set_string_value(id, text(value));
      case TK_STRING16: return data->set_wstring_value(id, wide_text(value));
      default: return data->set_complex_value(id, made(declared, value));
    }
  }();
  check(code, "setting member " + std::to_string(id) + " of " + data->type()->get_name().to_string());
}

// A value of a structure, union, bitset or collection.
static Data made(const Type& declared, const Node& value) {
  Data data = check(DynamicDataFactory::get_instance()->create_data(declared), "create_data");
  const Type type = resolved(declared);
  switch (type->get_kind()) {
    case TK_SEQUENCE:
    case TK_ARRAY: {
      const Type element = descriptor_of(type)->element_type();
      for (size_t at = 0; at < value.size(); ++at) set(data, static_cast<MemberId>(at), element, value[at]);
      break;
    }
    case TK_MAP: {
      const Type element = descriptor_of(type)->element_type();
      for (const Node& pair : value.items) set(data, data->get_member_id_by_name(text(pair[0])), element, pair[1]);
      break;
    }
    case TK_UNION:
      // (DISCRIMINATOR ID VALUE) or (DISCRIMINATOR); - for that of a default member
      if (value.size() > 1) {
        const MemberId id = static_cast<MemberId>(value[1].number());
        set(data, id, member_type(type, id), value[2]);
      }
      if (!value[0].is("-")) set(data, 0, descriptor_of(type)->discriminator_type(), value[0]);
      break;
    default:
      // ((ID VALUE)...)
      for (const Node& member : value.items) {
        const MemberId id = static_cast<MemberId>(member[0].number());
        set(data, id, member_type(type, id), member[1]);
      }
  }
  return data;
}

static const char* const NO_JSON = "what has no JSON";

static std::string shown(const Data& data) {
  std::ostringstream out;
  return json_serialize(data, DynamicDataJsonFormat::EPROSIMA, out) == RETCODE_OK ? out.str() : NO_JSON;
}

// Maps are equal for equals() only if their keys were set in one order.
static bool are_equal(const Data& one, const Data& other) {
  return one->equals(other) || (shown(one) == shown(other) && shown(one) != NO_JSON);
}

struct Exchange {
  std::string name;
  Type type;
  std::vector<Data> left;
  DataReader* reader = nullptr;
  std::string problem;
};

class Peer {
 public:
  explicit Peer(uint32_t domain) : domain_(domain) { begin(); }

  void open(const Node& request) {
    exchanges_.emplace_back();
    Exchange& exchange = exchanges_.back();
    exchange.name = request[1].atom;
    try {
      exchange.type = Types(request[5]).type(request[6]);
      open_endpoints(exchange, request);
    } catch (const std::exception& error) {
      exchange.problem = error.what();
    }
  }

  void read(double seconds, double quiet) {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::duration<double>(seconds);
    auto quiet_end = Clock::now() + std::chrono::duration<double>(2 * quiet);
    size_t left = SIZE_MAX;
    while (left > 0 && Clock::now() < end && Clock::now() < quiet_end) {
      size_t now_left = 0;
      for (Exchange& exchange : exchanges_) {
        take(exchange);
        now_left += exchange.problem.empty() ? exchange.left.size() : 0;
      }
      if (now_left < left) quiet_end = std::max(quiet_end, Clock::now() + std::chrono::duration<double>(quiet));
      left = now_left;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    for (Exchange& exchange : exchanges_) {
      if (exchange.problem.empty() && !exchange.left.empty()) exchange.problem = "no " + shown(exchange.left[0]) + " came";
      if (!exchange.problem.empty()) std::cout << exchange.name << '\t' << one_line(exchange.problem) << '\n';
    }
  }

  void close() {
    exchanges_.clear();
    participant_->delete_contained_entities();
    DomainParticipantFactory::get_instance()->delete_participant(participant_);
    begin();
  }

 private:
  uint32_t domain_;
  DomainParticipant* participant_ = nullptr;
  Publisher* publisher_ = nullptr;
  Subscriber* subscriber_ = nullptr;
  std::vector<Exchange> exchanges_;

  void begin() {
    DomainParticipantQos qos;
    qos.setup_transports(eprosima::fastdds::rtps::BuiltinTransports::UDPv4);
    participant_ = check(DomainParticipantFactory::get_instance()->create_participant(domain_, qos), "participant");
    publisher_ = check(participant_->create_publisher(PUBLISHER_QOS_DEFAULT), "publisher");
    subscriber_ = check(participant_->create_subscriber(SUBSCRIBER_QOS_DEFAULT), "subscriber");
  }

  void open_endpoints(Exchange& exchange, const Node& request) {
    TypeSupport support(new DynamicPubSubType(exchange.type));
    check(support.register_type(participant_), "register_type");
    auto topic = [&](const Node& way) {
      const std::string name = exchange.name + "/" + way.atom;
      if (auto* known = participant_->lookup_topicdescription(name)) return static_cast<Topic*>(known);
      return check(participant_->create_topic(name, support.get_type_name(), TOPIC_QOS_DEFAULT), "topic");
    };
    const auto representation = request[2].is("1") ? XCDR_DATA_REPRESENTATION : XCDR2_DATA_REPRESENTATION;
    DataWriterQos offered;
    offered.reliability().kind = RELIABLE_RELIABILITY_QOS;
    offered.durability().kind = TRANSIENT_LOCAL_DURABILITY_QOS;
    offered.history().kind = KEEP_ALL_HISTORY_QOS;
    offered.representation().m_value = {representation};
    offered.data_sharing().off();
    // Not the 3 s after which a late reader would be answered.
    offered.reliable_writer_qos().times.heartbeat_period = eprosima::fastdds::dds::Duration_t(0, 100'000'000);
    DataReaderQos requested;
    requested.reliability().kind = RELIABLE_RELIABILITY_QOS;
    requested.durability().kind = TRANSIENT_LOCAL_DURABILITY_QOS;
    requested.history().kind = KEEP_ALL_HISTORY_QOS;
    requested.representation().m_value = {representation};
    requested.data_sharing().off();
    auto* writer = check(publisher_->create_datawriter(topic(request[3]), offered), "writer");
    exchange.reader = check(subscriber_->create_datareader(topic(request[4]), requested), "reader");
    for (const Node& value : request[7].items) {
      Data data = made(resolved(exchange.type), value);
      for (const Data& other : exchange.left) {
        if (request[7].size() > 1 && data->equals(other) && shown(data) != shown(other))
          throw std::runtime_error("equals() takes " + shown(data) + " for " + shown(other));
      }
      check(writer->write(&data), "write " + shown(data));
      exchange.left.push_back(data);
    }
  }

  void take(Exchange& exchange) {
    if (!exchange.problem.empty() || exchange.reader == nullptr) return;
    SampleInfo info;
    while (true) {
      Data data = DynamicDataFactory::get_instance()->create_data(exchange.type);
      if (exchange.reader->take_next_sample(&data, &info) != RETCODE_OK) return;
      if (!info.valid_data) continue;
      size_t at = 0;
      while (at < exchange.left.size() && !are_equal(data, exchange.left[at])) ++at;
      if (at == exchange.left.size()) {
        exchange.problem = "reads " + shown(data) + " instead of " + (at ? shown(exchange.left[0]) : "nothing");
        return;
      }
      exchange.left.erase(exchange.left.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }

  static std::string one_line(std::string text) {
    for (char& letter : text) letter = letter == '\n' || letter == '\t' ? ' ' : letter;
    return text;
  }
};

int main(int count, char** arguments) {
  if (count != 2) {
    std::cerr << "usage: fastdds_types DOMAIN\n";
    return 2;
  }
  Peer peer(static_cast<uint32_t>(std::stoul(arguments[1])));
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream in(line);
    const Node request = parse(in);
    if (request[0].is("topic")) {
      peer.open(request);
    } else if (request[0].is("close")) {
      peer.close();
    } else {
      peer.read(std::stod(request[1].atom), std::stod(request[2].atom));
      std::cout << "done" << std::endl;
    }
  }
}
