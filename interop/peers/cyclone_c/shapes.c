/* A shapes application on Eclipse Cyclone DDS, C API. */
#include "../common/shapes.h"

#include "dds/dds.h"
#include "shape_type.h"
#include "shape_type_plain.h"

enum { TAKE_MAX = 32 };

static void fail(const char *what, dds_return_t code)
{
  fprintf(stderr, "%s: %s\n", what, dds_strretcode(code));
  exit(EXIT_SETUP);
}

static dds_entity_t made(const char *what, dds_entity_t entity)
{
  if (entity < 0)
    fail(what, entity);
  return entity;
}

/* The id of a policy by the DDS specification; Cyclone numbers some of its own in between. */
static int policy_id(uint32_t id)
{
  switch (id) {
    case DDS_DATA_REPRESENTATION_QOS_POLICY_ID: return 23;
    case DDS_TYPE_CONSISTENCY_ENFORCEMENT_QOS_POLICY_ID: return 24;
    default: return (int) id;
  }
}

/* The topic of every endpoint. Cyclone cannot tell it in a listener that it calls before the writer
 * or reader is handed out, as it does when the other side is known already. */
static const char *topic_name;
static const char type_name[] = "ShapeType";

static void on_publication_matched(dds_entity_t writer, const dds_publication_matched_status_t status, void *arg)
{
  (void) writer;
  (void) arg;
  shapes_say("on_publication_matched() topic: '%s'  type: '%s' : matched readers %u (change = %d)",
             topic_name, type_name, status.current_count, status.current_count_change);
}

static void on_subscription_matched(dds_entity_t reader, const dds_subscription_matched_status_t status, void *arg)
{
  (void) reader;
  (void) arg;
  shapes_say("on_subscription_matched() topic: '%s'  type: '%s' : matched writers %u (change = %d)",
             topic_name, type_name, status.current_count, status.current_count_change);
}

static void on_offered_incompatible_qos(dds_entity_t writer, const dds_offered_incompatible_qos_status_t status, void *arg)
{
  const int id = policy_id(status.last_policy_id);
  (void) writer;
  (void) arg;
  shapes_say("on_offered_incompatible_qos() topic: '%s'  type: '%s' : %d (%s)", topic_name, type_name, id, shapes_policy_name(id));
}

static void on_requested_incompatible_qos(dds_entity_t reader, const dds_requested_incompatible_qos_status_t status, void *arg)
{
  const int id = policy_id(status.last_policy_id);
  (void) reader;
  (void) arg;
  shapes_say("on_requested_incompatible_qos() topic: '%s'  type: '%s' : %d (%s)", topic_name, type_name, id, shapes_policy_name(id));
}

static void on_offered_deadline_missed(dds_entity_t writer, const dds_offered_deadline_missed_status_t status, void *arg)
{
  (void) writer;
  (void) arg;
  shapes_say("on_offered_deadline_missed() topic: '%s'  type: '%s' : (total = %u, change = %d)",
             topic_name, type_name, status.total_count, status.total_count_change);
}

static void on_requested_deadline_missed(dds_entity_t reader, const dds_requested_deadline_missed_status_t status, void *arg)
{
  (void) reader;
  (void) arg;
  shapes_say("on_requested_deadline_missed() topic: '%s'  type: '%s' : (total = %u, change = %d)",
             topic_name, type_name, status.total_count, status.total_count_change);
}

static void on_liveliness_lost(dds_entity_t writer, const dds_liveliness_lost_status_t status, void *arg)
{
  (void) writer;
  (void) arg;
  shapes_say("on_liveliness_lost() topic: '%s'  type: '%s' : (total = %u, change = %d)",
             topic_name, type_name, status.total_count, status.total_count_change);
}

static void on_liveliness_changed(dds_entity_t reader, const dds_liveliness_changed_status_t status, void *arg)
{
  (void) reader;
  (void) arg;
  shapes_say("on_liveliness_changed() topic: '%s'  type: '%s' : (alive = %u, not_alive = %u)",
             topic_name, type_name, status.alive_count, status.not_alive_count);
}

static dds_entity_t make_participant(const shapes_options *options)
{
  dds_listener_t *listener = dds_create_listener(NULL);
  dds_lset_publication_matched(listener, on_publication_matched);
  dds_lset_subscription_matched(listener, on_subscription_matched);
  dds_lset_offered_incompatible_qos(listener, on_offered_incompatible_qos);
  dds_lset_requested_incompatible_qos(listener, on_requested_incompatible_qos);
  dds_lset_offered_deadline_missed(listener, on_offered_deadline_missed);
  dds_lset_requested_deadline_missed(listener, on_requested_deadline_missed);
  dds_lset_liveliness_lost(listener, on_liveliness_lost);
  dds_lset_liveliness_changed(listener, on_liveliness_changed);
  const dds_entity_t participant =
    made("participant", dds_create_participant((dds_domainid_t) options->domain, NULL, listener));
  dds_delete_listener(listener);
  return participant;
}

/* Cyclone 0.10 writes an appendable type in XCDR2 only. In XCDR1 an appendable and a final
 * structure are the same octets, so XCDR1 takes the final twin, under the same name and without
 * type information. */
static dds_entity_t make_topic(const shapes_options *options, dds_entity_t participant)
{
  static dds_topic_descriptor_t plain;
  const dds_topic_descriptor_t *descriptor = &ShapeType_desc;
  if (options->data_representation == 1) {
    memcpy(&plain, &ShapeTypePlain_desc, sizeof plain);
    *(const char **) &plain.m_typename = "ShapeType";
    descriptor = &plain;
  }
  return made("topic", dds_create_topic(participant, descriptor, options->topic, NULL, NULL));
}

static dds_qos_t *make_qos(const shapes_options *options)
{
  static const char durabilities[] = "vltp";
  const dds_durability_kind_t durability =
    (dds_durability_kind_t) (strchr(durabilities, options->durability) - durabilities);
  const dds_data_representation_id_t representation =
    options->data_representation == 1 ? DDS_DATA_REPRESENTATION_XCDR1 : DDS_DATA_REPRESENTATION_XCDR2;
  dds_qos_t *qos = dds_create_qos();
  dds_qset_reliability(qos, options->best_effort ? DDS_RELIABILITY_BEST_EFFORT : DDS_RELIABILITY_RELIABLE,
                       DDS_SECS(10));
  dds_qset_durability(qos, durability);
  dds_qset_data_representation(qos, 1, &representation);
  if (options->history_depth == 0)
    dds_qset_history(qos, DDS_HISTORY_KEEP_ALL, 0);
  else if (options->history_depth > 0)
    dds_qset_history(qos, DDS_HISTORY_KEEP_LAST, options->history_depth);
  if (durability != DDS_DURABILITY_VOLATILE) {
    const bool keep_all = options->history_depth == 0;
    dds_qset_durability_service(qos, 0, keep_all ? DDS_HISTORY_KEEP_ALL : DDS_HISTORY_KEEP_LAST,
                                options->history_depth > 0 ? options->history_depth : 1,
                                DDS_LENGTH_UNLIMITED, DDS_LENGTH_UNLIMITED, DDS_LENGTH_UNLIMITED);
  }
  if (options->deadline_ms > 0)
    dds_qset_deadline(qos, DDS_MSECS(options->deadline_ms));
  if (options->ownership_strength >= 0)
    dds_qset_ownership(qos, DDS_OWNERSHIP_EXCLUSIVE);
  if (options->publish) {
    if (options->ownership_strength >= 0)
      dds_qset_ownership_strength(qos, options->ownership_strength);
    if (options->lifespan_ms > 0)
      dds_qset_lifespan(qos, DDS_MSECS(options->lifespan_ms));
    dds_qset_writer_data_lifecycle(qos, false); /* disposed when asked to, not on leaving */
  }
  return qos;
}

static dds_qos_t *make_group_qos(const shapes_options *options)
{
  dds_qos_t *qos = dds_create_qos();
  if (options->partition) {
    const char *names[1] = { options->partition };
    dds_qset_partition(qos, 1, names);
  }
  return qos;
}

static int publish(const shapes_options *options, dds_entity_t participant, dds_entity_t topic)
{
  dds_qos_t *group_qos = make_group_qos(options), *qos = make_qos(options);
  const dds_entity_t publisher = made("publisher", dds_create_publisher(participant, group_qos, NULL));
  /* Its listener is told of it, maybe at once: said before. */
  shapes_say("Create writer for topic: %s color: %s", options->topic, options->color ? options->color : "BLUE");
  const dds_entity_t writer = made("writer", dds_create_writer(publisher, topic, qos, NULL));
  dds_delete_qos(group_qos);
  dds_delete_qos(qos);

  shapes_motion motion = shapes_start_motion(options);
  char color[COLOR_SIZE];
  ShapeType shape; /* ShapeTypePlain has the same members */
  memset(&shape, 0, sizeof shape);
  const uint32_t payload_size = (uint32_t) options->additional_payload_size;
  if (payload_size > 0) {
    shape.additional_payload_size._buffer = dds_alloc(payload_size);
    shape.additional_payload_size._length = shape.additional_payload_size._maximum = payload_size;
    memset(shape.additional_payload_size._buffer, 255, payload_size);
  }
  for (int n = 0; !shapes_stopped && (options->iterations == 0 || n < options->iterations); n++) {
    shapes_move(options, &motion);
    shape.x = motion.x;
    shape.y = motion.y;
    shape.shapesize = motion.size;
    for (int i = 0; i < options->instances; i++) {
      shapes_instance_color(options, i, color);
      memcpy(shape.color, color, sizeof color);
      const dds_return_t code = dds_write(writer, &shape);
      if (code < 0) {
        fprintf(stderr, "write: %s\n", dds_strretcode(code));
        return EXIT_RUN;
      }
      if (options->print_written)
        shapes_say_sample(options->topic, color, shape.x, shape.y, shape.shapesize,
                          shape.additional_payload_size._buffer, payload_size);
    }
    shapes_sleep_ms(options->write_period_ms);
  }
  for (int i = 0; options->final_state && i < options->instances; i++) {
    shapes_instance_color(options, i, color);
    memcpy(shape.color, color, sizeof color);
    if (options->final_state == 'd')
      dds_dispose(writer, &shape);
    else
      dds_unregister_instance(writer, &shape);
  }
  dds_free(shape.additional_payload_size._buffer);
  dds_wait_for_acks(writer, DDS_SECS(1));
  return 0;
}

/* Prints the end of an instance, once, after its last sample. */
static void say_end(const shapes_options *options, const char *color, const dds_sample_info_t *info)
{
  if (info->sample_rank != 0)
    return;
  if (info->instance_state == DDS_IST_NOT_ALIVE_DISPOSED)
    shapes_say("%-10s %-10s NOT_ALIVE_DISPOSED_INSTANCE_STATE", options->topic, color);
  else if (info->instance_state == DDS_IST_NOT_ALIVE_NO_WRITERS)
    shapes_say("%-10s %-10s NOT_ALIVE_NO_WRITERS_INSTANCE_STATE", options->topic, color);
}

/* Takes and prints what is there. */
static void take_all(const shapes_options *options, dds_entity_t reader)
{
  void *samples[TAKE_MAX];
  dds_sample_info_t infos[TAKE_MAX];
  int32_t count;
  do {
    memset(samples, 0, sizeof samples);
    count = dds_take(reader, samples, infos, TAKE_MAX, TAKE_MAX);
    for (int32_t i = 0; i < count; i++) {
      const ShapeType *shape = samples[i];
      if (options->color && strcmp(options->color, shape->color) != 0)
        continue;
      if (infos[i].valid_data)
        shapes_say_sample(options->topic, shape->color, shape->x, shape->y, shape->shapesize,
                          shape->additional_payload_size._buffer, shape->additional_payload_size._length);
      say_end(options, shape->color, &infos[i]);
    }
    if (count > 0)
      dds_return_loan(reader, samples, count);
  } while (count > 0);
  if (count < 0)
    fprintf(stderr, "take: %s\n", dds_strretcode(count));
}

static int subscribe(const shapes_options *options, dds_entity_t participant, dds_entity_t topic)
{
  dds_qos_t *group_qos = make_group_qos(options), *qos = make_qos(options);
  const dds_entity_t subscriber = made("subscriber", dds_create_subscriber(participant, group_qos, NULL));
  /* Its listener is told of it, maybe at once: said before. */
  shapes_say("Create reader for topic: %s", options->topic);
  const dds_entity_t reader = made("reader", dds_create_reader(subscriber, topic, qos, NULL));
  dds_delete_qos(group_qos);
  dds_delete_qos(qos);
  for (int n = 0; !shapes_stopped && (options->iterations == 0 || n < options->iterations); n++) {
    take_all(options, reader);
    shapes_sleep_ms(options->read_period_ms);
  }
  return 0;
}

int main(int argc, char **argv)
{
  const shapes_options options = shapes_parse(argc, argv);
  if (options.filter) {
    shapes_say("--cft is not supported");
    return EXIT_SETUP;
  }
  shapes_install_interrupt();
  topic_name = options.topic;
  const dds_entity_t participant = make_participant(&options);
  const dds_entity_t topic = make_topic(&options, participant);
  shapes_say("Create topic: %s", options.topic);
  const int status =
    options.publish ? publish(&options, participant, topic) : subscribe(&options, participant, topic);
  dds_delete(participant);
  shapes_say("Done.");
  return status;
}
