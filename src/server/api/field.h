// Fields of the API. Each is described once: the readers, the writers, the errors and openapi.json
// follow from the description.
//
//   struct Pause {
//     std::string tube;
//     std::optional<Duration> duration;
//   };
//   template <>
//   inline constexpr auto kFields<Pause> = fields(
//       field<&Pause::tube>("The tube.", {.needed = true, .form = &kTubeForm}),
//       field<&Pause::duration>("How long; until it is resumed, if nothing is said.",
//                               {.least = 1, .most = queue::kMaxTtr}));
//
//   Pause pause;
//   read_fields(reader, kShape<Pause>, object, &pause);   // {"tube":"mail","duration":"10m"}
//   write_fields(kShape<Pause>, &pause);                  // the same object again
//
// The type of a member says which JSON value it reads and writes:
//
//   std::string            a text                      Duration   "30s", "1h30m": ms
//   Bytes                  NAME, or NAME_base64        Moment     RFC 3339, or ms since 1970
//   JobBody                the same, or any JSON
//   a whole number, bool   a number, true or false     an enum    one of kWords<E>
//   double                 any number
//   a struct with a Shape  an object                   Json       any object
//   a type with a Text<T>  a text of a form of its own
//   std::vector<T>         a list of T                 std::optional<T>   it may be left out
//   Unread<T>              the same, not read yet
//   Patch<T>               it may be left out, and null takes it away (RFC 7396)
//
// A value outside its range is a fault; nothing is clamped. Null means that the field is left out,
// except for a Patch. The same fields read a query, in which all values are texts.
//
// Thread safety: pure.
#pragma once

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "carillon/queue/job.h"
#include "server/api/problem.h"

namespace carillon::server {

// --- Types of values.

struct Duration {
  queue::Millis ms = 0;
};
struct Moment {
  queue::UtcMs at = 0;  // ms since 1970
};
// Bytes. The field NAME has them if they are UTF-8, else NAME_base64.
struct Bytes {
  std::string bytes;
};
// The body of a job: Bytes, or any other JSON value than a text, which is kept as its text.
struct JobBody {
  std::string bytes;
  bool is_json = false;  // it was such a value
};
struct Json {
  boost::json::object object;
};
// Specialize this for a type whose values are texts in a form of their own: `static T
// parse(std::string_view)` throws std::invalid_argument with what is wrong, and `static std::string
// show(const T&)` writes the text.
template <class T>
struct Text;
template <class T>
struct Patch {
  bool given = false;      // the field is there, perhaps as null
  std::optional<T> value;  // none if the field is null, which removes the value
};
// A list of objects of which each is read by itself (read_fields()), so that a long one may be read
// in steps. It points into RequestContext::json.
template <class T>
struct Unread {
  const boost::json::array* items = nullptr;
};
// The words for the values of an enum, in their order:
//
//   template <>
//   inline constexpr auto kWords<Colour> = words("red", "green");
namespace detail {
template <class Enum>
consteval std::array<std::string_view, 0> wordless() {
  static_assert(sizeof(Enum) == 0, "the enum has no words: specialize kWords");
  return {};
}
}  // namespace detail
template <class Enum>
inline constexpr auto kWords = detail::wordless<Enum>();
template <class... Texts>
constexpr std::array<std::string_view, sizeof...(Texts)> words(const Texts&... all) {
  return {all...};
}

// --- Names, as the program has them.

namespace detail {

// Returns what stands between the last "::" and the end of the argument. The text of the compiler
// ends like "what = &carillon::server::Pause::tube]" with clang, and with "; ..." instead of the
// bracket with g++. A _ at the end of a name is left out: `using` is no name in C++, and using_ is.
consteval std::string_view last_name(std::string_view function) {
  const std::string_view argument =
      function.substr(0, std::min(function.find(';'), function.size() - 1));
  const std::string_view name = argument.substr(argument.find_last_of(":&= ") + 1);
  return name.substr(0, name.find_last_not_of('_') + 1);
}
template <class What>
consteval std::string_view name_of_type() {
  return last_name(__PRETTY_FUNCTION__);
}
template <auto what>
consteval std::string_view name_of_value() {
  return last_name(__PRETTY_FUNCTION__);
}
// The name of a member alone, so that the program does not have the text of the compiler.
template <auto member>
inline constexpr auto kLetters = [] {
  std::array<char, name_of_value<member>().size()> letters{};
  std::ranges::copy(name_of_value<member>(), letters.begin());
  return letters;
}();

}  // namespace detail

// --- The description of a field.

// A rule for texts.
struct Form {
  bool (*is_good)(std::string_view);
  std::string_view fault;  // ends the message `"a b": not the name of a tube`
};
extern const Form kTubeForm;
extern const Form kNameForm;  // schedules and endpoints: their names are like those of tubes
extern const Form kKeyForm;   // keys of jobs, and groups
extern const Form kTypeForm;  // content types

struct Rule {
  // The range of a number, of a duration in ms, of the bytes of a text, or of the items of a list.
  std::uint64_t least = 0;
  std::uint64_t most = UINT64_MAX;
  bool needed = false;
  bool shows_null = false;      // in an answer: as null instead of being left out
  std::string_view usual = {};  // the value if the field is left out; for readers of openapi.json
  const Form* form = nullptr;
  std::string_view format = {};  // the name of a text in JSON Schema: date-time
  // For an operation that takes a body which is not JSON: that body is this field, and a header
  // Carillon-NAME is one of those fields.
  bool is_body = false;
  bool in_header = false;
};
inline constexpr Rule kTubeRule{.form = &kTubeForm};

enum class Type : std::uint8_t {
  kText,
  kBytes,
  kBody,
  kNumber,
  kReal,
  kFlag,
  kDuration,
  kMoment,
  kWord,
  kObject,
  kAnyObject
};

struct Field;
struct Shape;
class Reader;

struct Field {
  std::string_view name;
  std::string_view help;  // one sentence
  Rule rule;
  Type type;
  std::span<const std::string_view> words;  // the choices, if the type is kWord
  const Shape* shape;                       // the fields of the object, if the type is kObject
  bool is_list;
  bool is_optional;  // an answer may lack it
  bool is_patch;
  void (*read)(Reader&, const Field&, const boost::json::value&, void* object);
  // Adds the field to the object if there is a value.
  void (*write)(const Field&, const void* object, boost::json::object& to);

  // Returns true if it may have the name NAME_base64.
  constexpr bool has_base64() const {
    return (type == Type::kBytes || type == Type::kBody) && !is_list;
  }
  // Returns the field with a name that is not that of its member.
  constexpr Field named(std::string_view other) const {
    Field renamed = *this;
    renamed.name = other;
    return renamed;
  }
};

// The fields of a struct.
struct Shape {
  std::string_view name;  // its schema in openapi.json
  std::span<const Field> fields;
  std::string_view help = {};
};

// A schema whose name is not that of the struct.
struct Schema {
  std::string_view name = {};
  std::string_view help = {};
};
template <std::size_t n>
struct Fields {
  Schema schema;
  std::array<Field, n> all;
};
namespace detail {
template <class T>
consteval Fields<0> undescribed() {
  static_assert(sizeof(T) == 0, "the struct has no fields: specialize kFields");
  return {};
}
}  // namespace detail
template <class T>
inline constexpr auto kFields = detail::undescribed<T>();
template <class T>
inline constexpr Shape kShape = {
    .name = kFields<T>.schema.name.empty() ? detail::name_of_type<T>() : kFields<T>.schema.name,
    .fields = kFields<T>.all,
    .help = kFields<T>.schema.help};

// --- Reading and writing.

// One answer names at most this many faults.
inline constexpr std::size_t kMostFaults = 20;

// What is read: a JSON; one of a PATCH, where null for what cannot be taken away is a fault; an
// answer, in which a newer server may have further fields; a query; or headers. In the last two all
// values are texts.
enum class Source : std::uint8_t { kJson, kPatch, kAnswer, kQuery, kHeaders };

class Reader {
 public:
  explicit Reader(Source source = Source::kJson)
      : source_(source), at_(source == Source::kQuery ? "?" : "") {}

  bool refuses_null() const { return source_ == Source::kPatch; }
  bool passes_over_unknown() const { return source_ == Source::kAnswer; }
  // Numbers, true and false stand in texts.
  bool has_texts() const { return source_ == Source::kQuery || source_ == Source::kHeaders; }
  void fault(std::string_view field, std::string detail);
  // The same for a fault elsewhere in the request.
  void fault_at(std::string pointer, std::string detail);
  bool is_full() const { return faults_.size() >= kMostFaults; }
  const std::vector<FieldFault>& faults() const { return faults_; }
  // Throws a Problem with all faults if there is a fault.
  void throw_if_any() const;

  // Calls `read`, which reads the fields of the object inside this field.
  template <class Read>
  void within(std::string_view field, Read read) {
    const std::size_t length = at_.size();
    at_ += pointer_part(field);
    read();
    at_.resize(length);
  }

 private:
  static std::string pointer_part(std::string_view field);

  Source source_;
  std::string at_;  // the JSON pointer of the object that is read
  std::vector<FieldFault> faults_;
};

// Reads the values of the object into `into`, a struct of the shape. Notes wrong values and fields
// that the shape does not have. A member whose field is left out keeps its value. Skips fields for
// which `is_elsewhere` returns true.
void read_fields(Reader& reader, const Shape& shape, const boost::json::object& from, void* into,
                 const std::function<bool(const Field&)>& is_elsewhere = {});
boost::json::object write_fields(const Shape& shape, const void* from);

template <class T>
T read(Reader& reader, const boost::json::object& from) {
  T into{};
  read_fields(reader, kShape<T>, from, &into);
  return into;
}
template <class T>
boost::json::object write(const T& from) {
  return write_fields(kShape<T>, &from);
}

// These note a wrong value and return false.
bool read_value(Reader&, const Field&, const boost::json::value&, std::string& into);
bool read_value(Reader&, const Field&, const boost::json::value&, Bytes& into);
bool read_value(Reader&, const Field&, const boost::json::value&, JobBody& into);
bool read_value(Reader&, const Field&, const boost::json::value&, bool& into);
bool read_value(Reader&, const Field&, const boost::json::value&, double& into);
bool read_value(Reader&, const Field&, const boost::json::value&, Duration& into);
bool read_value(Reader&, const Field&, const boost::json::value&, Moment& into);
bool read_value(Reader&, const Field&, const boost::json::value&, Json& into);
bool read_number(Reader&, const Field&, const boost::json::value&, std::uint64_t& into);
bool read_word(Reader&, const Field&, const boost::json::value&, std::size_t& into);
bool read_object(Reader&, const Field&, const boost::json::value&, void* into);
const boost::json::array* read_list(Reader&, const Field&, const boost::json::value&);

boost::json::value to_json(const std::string& text);
boost::json::value to_json(Duration duration);
boost::json::value to_json(Moment moment);
void write_bytes(const Field& field, std::string_view bytes, boost::json::object& to);

// --- From a member to its Field.

namespace detail {

template <class T>
struct Unwrapped {
  using Value = T;
  static constexpr bool kOptional = false, kPatch = false, kList = false;
};
template <class T>
struct Unwrapped<std::optional<T>> : Unwrapped<T> {
  static constexpr bool kOptional = true;
};
template <class T>
struct Unwrapped<Patch<T>> : Unwrapped<T> {
  static constexpr bool kOptional = true, kPatch = true;
};
template <class T>
struct Unwrapped<std::vector<T>> : Unwrapped<T> {
  static constexpr bool kList = true;
};
template <class T>
struct Unwrapped<Unread<T>> : Unwrapped<T> {
  static constexpr bool kList = true;
};

template <class T>
constexpr Type type_of() {
  if constexpr (std::is_same_v<T, std::string>) return Type::kText;
  if constexpr (std::is_same_v<T, Bytes>) return Type::kBytes;
  if constexpr (std::is_same_v<T, JobBody>) return Type::kBody;
  if constexpr (std::is_same_v<T, bool>) return Type::kFlag;
  if constexpr (std::is_same_v<T, Duration>) return Type::kDuration;
  if constexpr (std::is_same_v<T, Moment>) return Type::kMoment;
  if constexpr (std::is_same_v<T, Json>) return Type::kAnyObject;
  if constexpr (std::is_enum_v<T>) return Type::kWord;
  if constexpr (std::integral<T>) return Type::kNumber;
  if constexpr (std::floating_point<T>) return Type::kReal;
  if constexpr (requires(T value) { Text<T>::show(value); }) return Type::kText;
  return Type::kObject;
}

// An optional list is one of the cases below.
template <class T>
bool read_into(Reader& reader, const Field& field, const boost::json::value& value,
               std::vector<T>& into);
template <class T>
void write_from(const Field& field, const std::vector<T>& from, boost::json::object& to);

template <class T>
bool read_into(Reader& reader, const Field& field, const boost::json::value& value, T& into) {
  if constexpr (std::is_enum_v<T>) {
    std::size_t index = 0;
    if (!read_word(reader, field, value, index)) return false;
    into = static_cast<T>(index);
    return true;
  } else if constexpr (type_of<T>() == Type::kNumber) {
    std::uint64_t number = 0;
    if (!read_number(reader, field, value, number)) return false;
    into = static_cast<T>(number);
    return true;
  } else if constexpr (type_of<T>() == Type::kObject) {
    return read_object(reader, field, value, &into);
  } else if constexpr (requires { Text<T>::show(into); }) {
    std::string text;
    if (!read_value(reader, field, value, text)) return false;
    try {
      into = Text<T>::parse(text);
      return true;
    } catch (const std::invalid_argument& error) {
      reader.fault(field.name, error.what());
      return false;
    }
  } else {
    return read_value(reader, field, value, into);
  }
}

template <class T>
bool read_into(Reader& reader, const Field& field, const boost::json::value& value,
               std::optional<T>& into) {
  T read = into.value_or(T{});
  const bool is_right = read_into(reader, field, value, read);
  // An object with a wrong field is kept, so that one answer can name the faults of its other
  // fields.
  const bool is_partly_right = type_of<T>() == Type::kObject && value.is_object();
  if (is_right || is_partly_right) into = std::move(read);
  return is_right;
}
template <class T>
bool read_into(Reader& reader, const Field& field, const boost::json::value& value,
               Patch<T>& into) {
  into.given = true;
  return value.is_null() || read_into(reader, field, value, into.value);
}
template <class T>
bool read_into(Reader& reader, const Field& field, const boost::json::value& value,
               std::vector<T>& into) {
  const boost::json::array* const list = read_list(reader, field, value);
  if (list == nullptr) return false;
  into.clear();
  reader.within(field.name, [&] {
    for (std::size_t i = 0; i < list->size() && !reader.is_full(); ++i) {
      Field item = field;
      const std::string name = std::to_string(i);
      item.name = name;
      item.rule = {.form = field.rule.form};
      read_into(reader, item, (*list)[i], into.emplace_back());
    }
  });
  return true;
}
template <class T>
bool read_into(Reader& reader, const Field& field, const boost::json::value& value,
               Unread<T>& into) {
  into.items = read_list(reader, field, value);
  return into.items != nullptr;
}

template <class T>
void write_from(const Field& field, const T& from, boost::json::object& to) {
  if constexpr (std::is_same_v<T, Bytes> || std::is_same_v<T, JobBody>) {
    write_bytes(field, from.bytes, to);
  } else if constexpr (std::is_enum_v<T>) {
    to[field.name] = field.words[static_cast<std::size_t>(from)];
  } else if constexpr (std::is_arithmetic_v<T>) {
    to[field.name] = from;
  } else if constexpr (std::is_same_v<T, Json>) {
    to[field.name] = from.object;
  } else if constexpr (type_of<T>() == Type::kObject) {
    to[field.name] = write_fields(*field.shape, &from);
  } else if constexpr (requires { Text<T>::show(from); }) {
    to[field.name] = Text<T>::show(from);
  } else {
    to[field.name] = to_json(from);
  }
}
template <class T>
void write_from(const Field& field, const std::optional<T>& from, boost::json::object& to) {
  if (from) return write_from(field, *from, to);
  if (field.rule.shows_null) to[field.name] = nullptr;
}
template <class T>
void write_from(const Field& field, const Patch<T>& from, boost::json::object& to) {
  if (from.value) return write_from(field, *from.value, to);
  if (from.given) to[field.name] = nullptr;
}
template <class T>
void write_from(const Field& field, const std::vector<T>& from, boost::json::object& to) {
  boost::json::array list;
  for (const T& item : from) {
    boost::json::object one;
    write_from(field, item, one);
    list.push_back(std::move(one.begin()->value()));
  }
  to[field.name] = std::move(list);
}
template <class T>
void write_from(const Field&, const Unread<T>&, boost::json::object&) {}  // no answer has one

template <class>
struct Member;
template <class Struct, class T>
struct Member<T Struct::*> {
  using Owner = Struct;
  using Value = T;
};

template <class T>
constexpr std::span<const std::string_view> words_of() {
  if constexpr (std::is_enum_v<T>) return kWords<T>;
  return {};
}
template <class T>
constexpr const Shape* shape_of() {
  if constexpr (type_of<T>() == Type::kObject) return &kShape<T>;
  return nullptr;
}

}  // namespace detail

// Describes the member, whose name without a _ at its end is that of the field. A struct or enum in
// it must be described before. `Owner` is the struct that is read or written, if the member belongs
// to a base of it.
template <auto member, class Owner = typename detail::Member<decltype(member)>::Owner>
constexpr Field field(std::string_view help, Rule rule = {}) {
  using Of = detail::Member<decltype(member)>;
  using As = detail::Unwrapped<typename Of::Value>;
  using Value = typename As::Value;
  static_assert(!As::kList || !std::is_same_v<Value, Bytes>, "a list has no items of type Bytes");
  if constexpr (detail::type_of<Value>() == Type::kNumber)
    rule.most = std::min<std::uint64_t>(rule.most, std::numeric_limits<Value>::max());
  constexpr auto& kName = detail::kLetters<member>;
  return {.name = {kName.data(), kName.size()},
          .help = help,
          .rule = rule,
          .type = detail::type_of<Value>(),
          .words = detail::words_of<Value>(),
          .shape = detail::shape_of<Value>(),
          .is_list = As::kList,
          .is_optional = As::kOptional,
          .is_patch = As::kPatch,
          .read =
              [](Reader& reader, const Field& described, const boost::json::value& value,
                 void* object) {
                detail::read_into(reader, described, value, static_cast<Owner*>(object)->*member);
              },
          .write =
              [](const Field& described, const void* object, boost::json::object& to) {
                detail::write_from(described, static_cast<const Owner*>(object)->*member, to);
              }};
}

// Makes one list of fields and of lists of fields.
template <class... Parts>
constexpr auto list(const Parts&... parts) {
  std::array<Field, ((sizeof(Parts) / sizeof(Field)) + ... + 0)> all{};
  auto next = all.begin();
  [[maybe_unused]] const auto add = [&next](const auto& part) {
    if constexpr (requires { part.size(); }) {
      next = std::copy(part.begin(), part.end(), next);
    } else {
      *next++ = part;
    }
  };
  (add(parts), ...);
  return all;
}
template <class... Parts>
constexpr auto fields(const Schema& schema, const Parts&... parts) {
  const auto all = list(parts...);
  return Fields<all.size()>{.schema = schema, .all = all};
}
template <class... Parts>
constexpr auto fields(const Parts&... parts) {
  return fields(Schema{}, parts...);
}

}  // namespace carillon::server
